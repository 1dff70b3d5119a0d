"""The audit vector: what is known of each card and method beside its score (design section 8).

Every field is read from the log. `not recorded` means that the log does not say; `not applicable`
that the question does not arise for the method; `withheld` that an event which would say is
redacted. Where a method has several draws a field speaks of all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from ledger.decimals import format_units, parse_units
from ledger.events.plan import MethodSpec, Plan
from ledger.protocol.state import Cell
from scoring.evaluation import MISSING, Evaluation
from scoring.failure_tags import FAILURE_RULES, PairedCard
from scoring.panel import Panel
from scoring.rules import brier_units

NOT_RECORDED = "not recorded"
NOT_APPLICABLE = "not applicable"
WITHHELD = "withheld"

AUDIT_COLUMNS = (
    "card",
    "method",
    "initialization_validity",
    "endpoint_hygiene",
    "path_mass_conservation",
    "unresolved_mass",
    "extraction_rule",
    "report_grounding",
    "leakage_exposure",
    "failure_tags",
)


def audit_rows(evaluation: Evaluation, plan: Plan, panel: Panel) -> Iterator[dict[str, str]]:
    """Yield one audit vector a registered method and card, in the plan's order."""
    tags = _tags(plan, panel)
    for method in plan.methods:
        for card_id in plan.card_set.cards:
            cells = [Cell(method.id, card_id, draw) for draw in range(1, method.draws + 1)]
            yield {
                "card": card_id,
                "method": method.id,
                "initialization_validity": _initialization(evaluation, method, cells),
                "endpoint_hygiene": _hygiene(evaluation, method, card_id),
                "path_mass_conservation": _mass(evaluation, method, cells),
                "unresolved_mass": _unresolved(evaluation, method, card_id),
                "extraction_rule": method.extraction_rule,
                "report_grounding": _grounding(evaluation, method, cells),
                "leakage_exposure": _exposure(evaluation, method, card_id),
                "failure_tags": " ".join(tags.get((method.id, card_id), ())),
            }


def _default(method: MethodSpec) -> str:
    return NOT_APPLICABLE if method.branch_policy is None else NOT_RECORDED


def _initialization(evaluation: Evaluation, method: MethodSpec, cells: list[Cell]) -> str:
    found = evaluation.findings.worlds
    worlds = [found[cell] for cell in cells if cell in found]
    if not worlds:
        hidden = any(cell in evaluation.findings.books.hidden for cell in cells)
        return WITHHELD if hidden else _default(method)
    if not all(world.rubric for world in worlds):
        return "initialized; rubric not recorded"
    failed = sorted({r.dimension for w in worlds for r in w.rubric if r.score < r.pass_mark})
    if failed:
        return f"failed: {' '.join(failed)}"
    return f"passed {len({r.dimension for w in worlds for r in w.rubric})} dimensions"


def _hygiene(evaluation: Evaluation, method: MethodSpec, card_id: str) -> str:
    card = evaluation.state.cards.get(card_id)
    if card is None:
        return NOT_RECORDED
    rejected = sum(
        len(evaluation.findings.rejected.get(key, ()))
        for key in ((method.id, card_id), (None, card_id))
    )
    return f"binary apart from {len(card.card.auxiliary_endpoints)} auxiliary; {rejected} rejected"


def _mass(evaluation: Evaluation, method: MethodSpec, cells: list[Cell]) -> str:
    books = evaluation.findings.books
    known = [status for cell in cells if (status := books.status(cell)) is not None]
    # The gravest first: one world that does not balance is not hidden by others that do.
    for status in ("not balanced", WITHHELD, "balanced to the unit"):
        if status in known:
            return status
    return _default(method)


def _unresolved(evaluation: Evaluation, method: MethodSpec, card_id: str) -> str:
    """Return the exact mean over the draws that record one, rounded half to even to 1e-9."""
    if method.id not in evaluation.cells:
        return _default(method)
    row = evaluation.cells[method.id].unresolved_units[evaluation.card_rows[card_id]]
    known = row[row != MISSING]
    if known.size:
        return format_units(round(Fraction(int(known.sum()), known.size)))
    withheld = evaluation.findings.withheld_cells
    if any(Cell(method.id, card_id, draw) in withheld for draw in range(1, method.draws + 1)):
        return WITHHELD
    return _default(method)


def _grounding(evaluation: Evaluation, method: MethodSpec, cells: list[Cell]) -> str:
    claims = [claim for cell in cells for claim in evaluation.findings.claims.get(cell, ())]
    if not claims:
        return _default(method)
    return f"{sum(grounded is True for grounded in claims)} of {len(claims)} claims grounded"


def _exposure(evaluation: Evaluation, method: MethodSpec, card_id: str) -> str:
    card = evaluation.state.cards.get(card_id)
    risk = (card.card.leakage_risk if card is not None else None) or NOT_RECORDED
    seen = method.exposure
    parts = [f"card risk {risk}", f"full card {seen.full_card}"]
    for name, value in (
        ("masked ids", seen.masked_ids),
        ("retrieval", seen.retrieval),
        ("local context", seen.local_context),
    ):
        parts.append(f"{name} {'yes' if value else 'no'}")
    return "; ".join([*parts, f"method risk {seen.risk}"])


def _tags(plan: Plan, panel: Panel) -> dict[tuple[str, str], tuple[str, ...]]:
    """Tags of the primary comparison, on the cards where b has the lower loss."""
    return {
        (primary_pair(plan)[0], row["card"]): tuple(row["tags"])
        for row in branch_losses(plan, panel)
    }


def primary_pair(plan: Plan) -> tuple[str, str]:
    """Return methods a and b of the plan's one primary comparison."""
    return next((c.a, c.b) for c in plan.comparisons if c.primary)


def branch_losses(plan: Plan, panel: Panel) -> list[dict[str, Any]]:
    """Return the cards on which method b of the primary comparison has the lower Brier loss.

    `difference` is loss(b) - loss(a), negative; `tags` are the registered failure tags that hold;
    `imputed` names the methods whose probability the plan's policy supplied. Source: the paper's
    Table 7.
    """
    a, b = primary_pair(plan)
    d = brier_units(panel.units[b], panel.y) - brier_units(panel.units[a], panel.y)
    imputed = [m for m in (a, b) if panel.imputed[m].any()]
    rows: list[dict[str, Any]] = []
    for index in np.flatnonzero(d < 0).tolist():
        pair = PairedCard(
            int(panel.units[a][index]), int(panel.units[b][index]), int(panel.y[index])
        )
        rows.append(
            {
                "card": panel.cards[index],
                "label": "yes" if pair.y else "no",
                "p_a": format_units(pair.a_units),
                "p_b": format_units(pair.b_units),
                "difference": pair.difference / 10**18,
                "tags": _tags_of(plan, pair),
                "imputed": [m for m in imputed if panel.imputed[m][index]],
            }
        )
    return rows


def _tags_of(plan: Plan, pair: PairedCard) -> list[str]:
    return [
        tag.id
        for tag in plan.failure_tags
        if FAILURE_RULES[tag.rule].holds(
            pair, {name: parse_units(value) for name, value in tag.parameters.items()}
        )
    ]
