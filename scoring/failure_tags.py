"""Failure tags: pure, named and versioned rules over frozen values, fixed by the plan.

A tag says what kind of loss a card shows in the primary comparison, where method b (the plainer
one) has the lower Brier loss than method a. Source: the paper's Appendix E, its Table 7.
Add a rule: one function, one row in FAILURE_RULES.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

HALF_UNITS = 500_000_000
ONE_UNITS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class PairedCard:
    """One card of a comparison: both probabilities in 1e-9 units, the label 0 or 1."""

    a_units: int
    b_units: int
    y: int

    @property
    def difference(self) -> int:
        """loss(b) - loss(a) in 1e-18 units of Brier loss; negative favours b."""
        target = self.y * ONE_UNITS
        return (self.b_units - target) ** 2 - (self.a_units - target) ** 2


@dataclass(frozen=True, slots=True)
class FailureRule:
    """A rule: which parameters it takes (1e-9 units), its function, and a sentence for a reader."""

    parameters: tuple[str, ...]
    holds: Callable[[PairedCard, Mapping[str, int]], bool]
    sentence: str


def near_tie(card: PairedCard, parameters: Mapping[str, int]) -> bool:
    """`near-tie/1`: the Brier losses differ by at most `epsilon`."""
    return abs(card.difference) <= parameters["epsilon"] * ONE_UNITS


def confident_correct_diluted(card: PairedCard, parameters: Mapping[str, int]) -> bool:
    """`confident-correct-diluted/1`: b was right within `confident_within`, a stood further off."""
    miss_b = abs(card.b_units - card.y * ONE_UNITS)
    miss_a = abs(card.a_units - card.y * ONE_UNITS)
    return miss_b <= parameters["confident_within"] < miss_a


def both_wrong_side(card: PairedCard, _parameters: Mapping[str, int]) -> bool:
    """`both-wrong-side/1`: both gave the outcome less than one half."""
    return all(
        abs(units - card.y * ONE_UNITS) > HALF_UNITS for units in (card.a_units, card.b_units)
    )


FAILURE_RULES: dict[str, FailureRule] = {
    "near-tie/1": FailureRule(("epsilon",), near_tie, "Numerical near-tie"),
    "confident-correct-diluted/1": FailureRule(
        ("confident_within",),
        confident_correct_diluted,
        "Confident correct forecast diluted by the other method",
    ),
    "both-wrong-side/1": FailureRule(
        (), both_wrong_side, "Both methods give the true outcome less than one half"
    ),
}
