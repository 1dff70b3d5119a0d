"""Aggregated probabilities, blends and published scores, recomputed exactly.

Normative: docs/spec/events.md, "Scores that a verifier recomputes". Probabilities are integers of
1e-9 units throughout; a mean is a Fraction and is rounded once, half to even.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from ledger.verify.forms import UNITS, format_units, parse_units
from ledger.verify.state import Plan, State

LOG_TOLERANCE_UNITS = 2
"""`log` is compared within 2e-9: the last place of a logarithm is nobody's promise."""

_CONTEXT = Context(prec=40)


class Score(NamedTuple):
    """A recomputed row: number of cards, and means in 1e-9 units; None where not computable."""

    n: int
    brier_units: int | None
    log_units: int | None


class Unscorable(NamedTuple):
    """Why nothing can be recomputed."""

    why: str


def aggregate(state: State, plan: Plan, method_id: str, card_id: str) -> int | None:
    """Return a method's probability for a card in 1e-9 units, None if a draw is not frozen."""
    method = plan.methods[method_id]
    if method["source"] == "constant":
        return UNITS // 2
    draws = []
    for draw in range(1, method["draws"] + 1):
        frozen = state.frozen.get((method_id, card_id, draw))
        if frozen is None:
            return None
        draws.append(frozen.units)
    if method["aggregate"] == "mean":
        return round(Fraction(sum(draws), len(draws)))
    if method["aggregate"] == "median":
        draws.sort()
        middle = len(draws) // 2
        return round(Fraction(draws[(len(draws) - 1) // 2] + draws[middle], 2))
    return draws[0]


def blend(spec: dict[str, Any], values: Sequence[int]) -> Fraction:
    """Return the weighted mean of the parts' values, in 1e-9 units, not rounded."""
    weights = [parse_units(part["weight"]) or 0 for part in spec["parts"]]
    return Fraction(sum(w * v for w, v in zip(weights, values, strict=True)), UNITS)


def scored_cards(state: State, plan: Plan) -> dict[str, int]:
    """Return the scored cards with their outcomes, 1 for yes."""
    excluded = plan.fields["exclusions"]["reasons"]
    found = {}
    for card_id in plan.cards:
        card, label = state.cards.get(card_id), state.labels.get(card_id)
        if card is None or card.kind != "resolved" or label is None or label.resolution is None:
            continue
        if card_id in state.annulled and state.annulled[card_id][1] in excluded:
            continue
        found[card_id] = int(label.resolution == "yes")
    return found


class ScoreSheet:
    """Probabilities of all registered methods for the scored cards, filled by the plan's policy."""

    def __init__(self, state: State, plan: Plan) -> None:
        self._plan = plan
        outcomes = scored_cards(state, plan)
        table = {
            method: {card: aggregate(state, plan, method, card) for card in outcomes}
            for method in plan.methods
        }
        policy = plan.fields["missing_predictions"]
        self._policy: str = policy["policy"]
        value = policy["value"]
        self._value = None if value is None else parse_units(value)
        if self._policy == "complete_case":
            outcomes = {
                card: outcome
                for card, outcome in outcomes.items()
                if all(row[card] is not None for row in table.values())
            }
        self.outcomes = outcomes
        self._table = table

    def score(self, method: str) -> Score | Unscorable:
        """Return the score of one registered method."""
        pairs = []
        for card, outcome in self.outcomes.items():
            units = self._table[method][card]
            if units is None:
                units = self._value if self._policy == "impute" else UNITS * (1 - outcome)
            if units is None:
                return Unscorable("the plan imputes and gives no value")
            pairs.append((units, outcome))
        clip = self._plan.fields["clip"]
        low, high = parse_units(clip["low"]) or 0, parse_units(clip["high"]) or 0
        return Score(len(pairs), _brier(pairs), _log(pairs, low, high))


def differs(published: dict[str, Any], score: Score) -> str:
    """Say how a published row differs from the recomputed one, empty if it does not."""
    if published["n"] != score.n:
        return f"n is {score.n}, published {published['n']}"
    brier = _shown(score.brier_units)
    if published["brier"] != brier:
        return f"brier is {brier}, published {published['brier']}"
    log = published["log"]
    if (log is None) != (score.log_units is None):
        return f"log is {_shown(score.log_units)}, published {log}"
    if log is not None and score.log_units is not None:
        units = parse_units(log)
        if units is None or abs(units - score.log_units) > LOG_TOLERANCE_UNITS:
            return f"log is {_shown(score.log_units)}, published {log}"
    return ""


def _shown(units: int | None) -> str | None:
    return None if units is None else format_units(units)


def _brier(pairs: Iterable[tuple[int, int]]) -> int | None:
    squares = [(units - outcome * UNITS) ** 2 for units, outcome in pairs]
    return round(Fraction(sum(squares), len(squares) * UNITS)) if squares else None


def _log(pairs: Sequence[tuple[int, int]], low: int, high: int) -> int | None:
    if not pairs:
        return None
    logarithms: dict[int, Decimal] = {}
    total = Decimal(0)
    for units, outcome in pairs:
        clipped = min(max(units, low), high)
        given = clipped if outcome else UNITS - clipped
        if given == 0:
            return None  # An infinite loss has no nine places.
        if given not in logarithms:
            logarithms[given] = -_CONTEXT.ln(_CONTEXT.divide(Decimal(given), Decimal(UNITS)))
        total = _CONTEXT.add(total, logarithms[given])
    mean = _CONTEXT.divide(total, Decimal(len(pairs)))
    return int(_CONTEXT.multiply(mean, Decimal(UNITS)).to_integral_value())
