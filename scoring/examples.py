"""Which cards a report shows as examples: pure rules, registered before anyone knows outcomes.

Add a rule: one function, one row in EXAMPLE_RULES.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping


def extremes(differences: Mapping[str, int], count: int) -> tuple[str, ...]:
    """`extremes/1`: largest gain of a, largest loss of a, then by turns; ties by card id.

    Args:
        differences: loss(b) - loss(a) by card id, any integer unit.
        count: how many cards.
    """
    ranked = sorted(differences, key=lambda card: (-differences[card], card))
    chosen: list[str] = []
    while ranked and len(chosen) < count:
        chosen.append(ranked.pop(0 if len(chosen) % 2 == 0 else -1))
    return tuple(chosen)


def first_cards(differences: Mapping[str, int], count: int) -> tuple[str, ...]:
    """`first/1`: the first cards by id, whatever their scores."""
    return tuple(sorted(differences)[:count])


EXAMPLE_RULES: dict[str, Callable[[Mapping[str, int], int], tuple[str, ...]]] = {
    "extremes/1": extremes,
    "first/1": first_cards,
}
