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
from ledger.events.plan import MethodSpec, Plan
from ledger.protocol.blend import CONSTANT_UNITS
from ledger.protocol.state import Cell
from scoring.evaluation import MISSING, Evaluation, aggregate_units

# Redacted events that leave it open what a card's label is, or whether the card counts at all.
_DECIDES_LABEL = ("label.unsealed", "label.revised", "card.annulled")


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """Scored cards and aggregated probabilities.

    `cards` are the ids in the plan's order; `y` int8 0/1 of the same length; `units[method]` int64
    of 1e-9; `imputed[method]` bool. `missing[method]` gives each card that has a label and no
    probability of the method the reason (`withheld`, `failed`, `missing`, `not frozen`), whether
    the card is scored or not. `excluded` gives each registered card that is not scored its reason.
    Methods stand in the plan's order.
    """

    methods: tuple[str, ...]
    cards: tuple[str, ...]
    y: NDArray[np.int8]
    units: dict[str, NDArray[np.int64]]
    imputed: dict[str, NDArray[np.bool_]]
    missing: dict[str, dict[str, str]]
    excluded: dict[str, str]


def build_panel(evaluation: Evaluation, plan: Plan) -> Panel:
    """Select cards by label, annulment and the missing-prediction policy of the plan."""
    registered = plan.card_set.cards
    excluded, labels = _labels(evaluation, plan)
    rows = np.array([i for i, card in enumerate(registered) if card in labels], dtype=np.int64)
    y = np.array([labels[registered[i]] == "yes" for i in rows], dtype=np.int8)
    units = {m.id: method_units(evaluation, plan, m)[rows] for m in plan.methods}
    gaps = {method: values == MISSING for method, values in units.items()}
    missing = _missing(evaluation, plan, {m: rows[gap] for m, gap in gaps.items()})
    if plan.missing_predictions.policy == "complete_case":
        keep = np.ones(len(rows), dtype=bool)
        for gap in gaps.values():
            keep &= ~gap
        for row in rows[~keep].tolist():
            excluded[registered[row]] = _missing_reason(registered[row], missing)
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
        cards=tuple(registered[row] for row in rows.tolist()),
        y=y,
        units=units,
        imputed=gaps,
        missing=missing,
        excluded={card: excluded[card] for card in registered if card in excluded},
    )


def method_units(evaluation: Evaluation, plan: Plan, spec: MethodSpec) -> NDArray[np.int64]:
    """Return a method's aggregated probabilities over the registered cards; MISSING where none."""
    if spec.source == "constant":
        return np.full(len(plan.card_set.cards), CONSTANT_UNITS, dtype=np.int64)
    return aggregate_units(evaluation.cells[spec.id].p_units, spec.aggregate)


def _labels(evaluation: Evaluation, plan: Plan) -> tuple[dict[str, str], dict[str, str]]:
    """Return why cards are not scored, and the labels of the others."""
    excluded: dict[str, str] = {}
    labels: dict[str, str] = {}
    for card_id in plan.card_set.cards:
        reason = _why_unlabelled(evaluation, plan, card_id)
        if reason:
            excluded[card_id] = reason
        else:
            labels[card_id] = evaluation.state.cards[card_id].label or ""
    return excluded, labels


def _why_unlabelled(evaluation: Evaluation, plan: Plan, card_id: str) -> str:
    """Return why a card has no label to score against; empty where it has one."""
    card = evaluation.state.cards.get(card_id)
    hidden = evaluation.findings.withheld_cards.get(card_id, set())
    if card is None:
        return "card withheld: redacted" if "card.frozen" in hidden else "not frozen"
    if not card.needs_seal:
        return f"kind {card.card.kind}: no binary label"
    if card.annulled is not None and card.annulled in plan.exclusions.reasons:
        return card.annulled
    for name in _DECIDES_LABEL:
        if name in hidden:
            return f"label withheld: {name} redacted"
    if card.label is None:
        return "label withheld: still sealed" if card.sealed_seq is not None else "no label"
    return ""


def _missing(
    evaluation: Evaluation, plan: Plan, gaps: dict[str, NDArray[np.int64]]
) -> dict[str, dict[str, str]]:
    closed = evaluation.findings.closed
    # A method may miss some draws for one reason and some for another: failed is the graver word.
    statuses: dict[tuple[str, str], str] = {}
    for empty in closed.empty if closed is not None else ():
        key = (empty.method, empty.card_id)
        if statuses.get(key) != "failed":
            statuses[key] = empty.status
    out: dict[str, dict[str, str]] = {}
    for spec in plan.methods:
        reasons: dict[str, str] = {}
        for row in gaps[spec.id].tolist():
            card = plan.card_set.cards[row]
            withheld = any(
                Cell(spec.id, card, draw) in evaluation.findings.withheld_cells
                for draw in range(1, spec.draws + 1)
            )
            unknown = statuses.get((spec.id, card), "not frozen")
            reasons[card] = "withheld" if withheld else unknown
        out[spec.id] = reasons
    return out


def _missing_reason(card: str, missing: dict[str, dict[str, str]]) -> str:
    lacking = [
        f"{method} ({reasons[card]})" for method, reasons in missing.items() if card in reasons
    ]
    return f"no prediction from {', '.join(lacking)}"


def _imputed(plan: Plan, y: NDArray[np.int8]) -> NDArray[np.int64]:
    policy = plan.missing_predictions
    if policy.policy == "worst_case":
        return np.where(y == 1, 0, UNITS).astype(np.int64)
    if policy.value is None:
        raise BugError("a plan that imputes has no value to impute")
    return np.full(y.size, parse_units(policy.value), dtype=np.int64)
