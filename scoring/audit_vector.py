"""The audit vector: what is known of each card and method beside its score (design section 8).

Every field is read from the log. `not recorded` means that the log does not say; `not applicable`
that the question does not arise for the method.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ledger.decimals import format_units, parse_units
from ledger.events.plan import MethodSpec, Plan
from ledger.protocol.state import Cell
from ledger.store.port import Store
from scoring.evaluation import Evaluation, read_prediction_details
from scoring.failure_tags import FAILURE_RULES, PairedCard
from scoring.panel import Panel

NOT_RECORDED = "not recorded"
NOT_APPLICABLE = "not applicable"

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


def audit_rows(
    evaluation: Evaluation, store: Store, plan: Plan, panel: Panel
) -> Iterator[dict[str, str]]:
    """Yield one audit vector a registered method and card, in the plan's order."""
    unresolved = _unresolved_mass(store)
    tags = _tags(plan, panel)
    for method in plan.methods:
        for card_id in plan.card_set.cards:
            cell = Cell(method.id, card_id, 1)
            yield {
                "card": card_id,
                "method": method.id,
                "initialization_validity": _initialization(evaluation, method, cell),
                "endpoint_hygiene": _hygiene(evaluation, method, card_id),
                "path_mass_conservation": _mass(evaluation, method, cell),
                "unresolved_mass": unresolved.get((method.id, card_id), _default(method)),
                "extraction_rule": method.extraction_rule,
                "report_grounding": _grounding(evaluation, method, cell),
                "leakage_exposure": _exposure(evaluation, method, card_id),
                "failure_tags": " ".join(tags.get((method.id, card_id), ())),
            }


def _default(method: MethodSpec) -> str:
    return NOT_APPLICABLE if method.branch_policy is None else NOT_RECORDED


def _initialization(evaluation: Evaluation, method: MethodSpec, cell: Cell) -> str:
    world = evaluation.initialized.get(cell)
    if world is None:
        return _default(method)
    failed = [row.dimension for row in world.rubric if row.score < row.pass_mark]
    if not world.rubric:
        return "initialized; rubric not recorded"
    return f"failed: {' '.join(failed)}" if failed else f"passed {len(world.rubric)} dimensions"


def _hygiene(evaluation: Evaluation, method: MethodSpec, card_id: str) -> str:
    rejected = sum(
        len(evaluation.rejected.get(key, ())) for key in ((method.id, card_id), (None, card_id))
    )
    auxiliary = len(evaluation.card(card_id).card.auxiliary_endpoints)
    return f"binary apart from {auxiliary} auxiliary; {rejected} rejected"


def _mass(evaluation: Evaluation, method: MethodSpec, cell: Cell) -> str:
    # The order rules refuse and the verifier names any posting that does not balance.
    return "balanced to the unit" if cell in evaluation.initialized else _default(method)


def _grounding(evaluation: Evaluation, method: MethodSpec, cell: Cell) -> str:
    claims = evaluation.claims.get(cell)
    if claims is None:
        return _default(method)
    return f"{sum(grounded is True for grounded in claims)} of {len(claims)} claims grounded"


def _exposure(evaluation: Evaluation, method: MethodSpec, card_id: str) -> str:
    risk = evaluation.card(card_id).card.leakage_risk or NOT_RECORDED
    seen = method.exposure
    parts = [f"card risk {risk}", f"full card {seen.full_card}"]
    for name, value in (
        ("masked ids", seen.masked_ids),
        ("retrieval", seen.retrieval),
        ("local context", seen.local_context),
    ):
        parts.append(f"{name} {'yes' if value else 'no'}")
    return "; ".join([*parts, f"method risk {seen.risk}"])


def _unresolved_mass(store: Store) -> dict[tuple[str, str], str]:
    out: dict[tuple[str, str], str] = {}
    for _, p in read_prediction_details(store):
        if p["unresolved_mass_units"] is not None and p["draw"] == 1:
            out[p["method"], p["card_id"]] = format_units(p["unresolved_mass_units"])
    return out


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

    `difference` is loss(b) - loss(a), negative; `tags` are the registered failure tags that hold.
    Source: the paper's Table 7.
    """
    a, b = primary_pair(plan)
    rows: list[dict[str, Any]] = []
    for index, card_id in enumerate(panel.cards):
        pair = PairedCard(
            int(panel.units[a][index]), int(panel.units[b][index]), int(panel.y[index])
        )
        if pair.difference < 0:
            rows.append(
                {
                    "card": card_id,
                    "label": "yes" if pair.y else "no",
                    "p_a": format_units(pair.a_units),
                    "p_b": format_units(pair.b_units),
                    "difference": pair.difference / 10**18,
                    "tags": _tags_of(plan, pair),
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
