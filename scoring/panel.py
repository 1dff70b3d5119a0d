"""The scored panel: which cards count, and what each method said of them, under the plan.

A missing prediction is never 0.5 of itself: the plan's policy decides, every imputed cell is
marked, and a card that leaves a denominator is listed with its reason.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ledger.decimals import UNITS, parse_units
from ledger.errors import BugError
from ledger.events.plan import Plan
from ledger.protocol.blend import CONSTANT_UNITS
from scoring.evaluation import MISSING, Evaluation, aggregate_units


@dataclass(frozen=True, slots=True)
class Panel:
    """Scored cards and aggregated probabilities.

    `cards` are the ids in the plan's order; `y` int8 0/1 of the same length; `units[method]` int64
    of 1e-9; `imputed[method]` bool. `excluded` gives each registered card that is not scored its
    reason. Methods stand in the plan's order.
    """

    methods: tuple[str, ...]
    cards: tuple[str, ...]
    y: NDArray[np.int8]
    units: dict[str, NDArray[np.int64]]
    imputed: dict[str, NDArray[np.bool_]]
    excluded: dict[str, str]


def build_panel(evaluation: Evaluation, plan: Plan) -> Panel:
    """Select cards by label, annulment and the missing-prediction policy of the plan."""
    registered = plan.card_set.cards
    excluded: dict[str, str] = {}
    labels: dict[str, str] = {}
    for card_id in registered:
        reason, label = _label_or_reason(evaluation, plan, card_id)
        if label is None:
            excluded[card_id] = reason
        else:
            labels[card_id] = label
    rows = np.array([i for i, card in enumerate(registered) if card in labels], dtype=np.int64)
    y = np.array([labels[registered[i]] == "yes" for i in rows], dtype=np.int8)
    units = {m.id: method_units(evaluation, plan, m.id)[rows] for m in plan.methods}
    gaps = {method: values == MISSING for method, values in units.items()}
    if plan.missing_predictions.policy == "complete_case":
        keep = np.ones(len(rows), dtype=bool)
        for gap in gaps.values():
            keep &= ~gap
        for row in rows[~keep]:
            excluded[registered[row]] = _missing_reason(registered[row], rows, registered, gaps)
        rows, y = rows[keep], y[keep]
        units = {method: values[keep] for method, values in units.items()}
        gaps = {method: gap[keep] for method, gap in gaps.items()}
    else:
        units = {
            method: np.where(gaps[method], _imputed(plan, y), values)
            for method, values in units.items()
        }
    return Panel(
        methods=tuple(units),
        cards=tuple(registered[row] for row in rows),
        y=y,
        units=units,
        imputed=gaps,
        excluded=excluded,
    )


def method_units(evaluation: Evaluation, plan: Plan, method_id: str) -> NDArray[np.int64]:
    """Return a method's aggregated probabilities over the registered cards; MISSING where none."""
    spec = evaluation.state.methods[method_id]
    if spec.source == "constant":
        return np.full(len(plan.card_set.cards), CONSTANT_UNITS, dtype=np.int64)
    return aggregate_units(evaluation.draws_units[method_id], spec.aggregate)


def _label_or_reason(evaluation: Evaluation, plan: Plan, card_id: str) -> tuple[str, str | None]:
    card = evaluation.state.cards.get(card_id)
    if card is None:
        return "not frozen", None
    if not card.needs_seal:
        return f"kind {card.card.kind}: no binary label", None
    if card.annulled is not None and card.annulled in plan.exclusions.reasons:
        return card.annulled, None
    if card.label is None:
        sealed = card.sealed_seq is not None
        return ("label withheld: still sealed" if sealed else "no label"), None
    return "", card.label


def _missing_reason(
    card: str,
    rows: NDArray[np.int64],
    registered: tuple[str, ...],
    gaps: dict[str, NDArray[np.bool_]],
) -> str:
    place = next(i for i, row in enumerate(rows) if registered[row] == card)
    lacking = [method for method, gap in gaps.items() if gap[place]]
    return f"no prediction from {', '.join(lacking)}"


def _imputed(plan: Plan, y: NDArray[np.int8]) -> NDArray[np.int64]:
    policy = plan.missing_predictions
    if policy.policy == "worst_case":
        return np.where(y == 1, 0, UNITS).astype(np.int64)
    if policy.value is None:
        raise BugError("a plan that imputes has no value to impute")
    return np.full(y.size, parse_units(policy.value), dtype=np.int64)
