"""The per-card table and its kin: one row a cell, every column of the reproducibility package.

Columns follow the paper's section 5 (Reproducibility package). What is not recorded is empty in CSV
and null in JSON; a probability that the plan imputed is marked, never passed off as given.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ledger.decimals import UNITS, format_units
from ledger.events.plan import MethodSpec, Plan
from ledger.events.prediction import EmptyCell
from ledger.store.port import Store
from scoring.evaluation import Evaluation, read_prediction_details
from scoring.panel import Panel
from scoring.rules import brier_score, brier_units, log_losses

JsonDict = dict[str, Any]

PER_CARD_COLUMNS = (
    "card",
    "method",
    "method_label",
    "draw",
    "status",
    "status_reason",
    "provider",
    "route",
    "requested_model",
    "resolved_model",
    "prompt_version",
    "response_id",
    "p_raw",
    "p_yes",
    "extraction_rule",
    "unresolved_mass",
    "label",
    "brier",
    "log_clipped",
    "rejected_auxiliary_endpoints",
    "excluded",
    "frozen_seq",
)

_ROUTE = ("provider", "route", "requested_model", "resolved_model")
_BRIER_PLACES = 18


@dataclass(frozen=True, slots=True, eq=False)
class _Losses:
    """Losses of a panel, by method, in the order of its cards; `row` is a card's place."""

    row: dict[str, int]
    brier: dict[str, NDArray[np.int64]]
    log: dict[str, NDArray[np.float64]]

    def of(self, method: str, card_id: str) -> JsonDict:
        """Return a cell's losses as decimal text; nothing for a card that is not scored."""
        row = self.row.get(card_id)
        if row is None:
            return {}
        log = float(self.log[method][row])
        return {
            "brier": format_places(int(self.brier[method][row])),
            "log_clipped": None if np.isinf(log) else f"{log:.12f}",
        }


def prediction_rows(
    evaluation: Evaluation, store: Store, plan: Plan, panel: Panel
) -> Iterator[JsonDict]:
    """Yield one row a frozen prediction in order of seq, then one a cell that has none.

    `status` is `frozen`; `repeated` or `unregistered` for a prediction that is not scored because
    its cell was frozen before or its draw is not the plan's; `withheld` where it is redacted;
    `failed` or `missing` as the closing declares; `aggregated` for the value that several draws
    come to; `constant`; `imputed` for the value that the plan's policy supplies.

    Losses stand in exactly one row a method and scored card, so that a method's column adds up to
    n times its mean: the frozen row of a single draw, else the aggregated, constant or imputed one.
    """
    losses = _losses(panel, plan)
    for seq, p in read_prediction_details(store):
        if p["method"] in evaluation.cells and p["card_id"] in evaluation.state.planned_cards:
            yield _frozen_row(evaluation, panel, losses, seq, p)
    for cell, seq in sorted(evaluation.findings.withheld_cells.items(), key=lambda item: item[1]):
        spec = evaluation.state.methods.get(cell.method)
        if spec is not None and cell.card_id in evaluation.state.planned_cards:
            row = _row(evaluation, panel, spec, cell.card_id)
            yield row | {"draw": cell.draw, "status": "withheld", "frozen_seq": seq}
    closed = evaluation.findings.closed
    for empty in closed.empty if closed is not None else ():
        if empty.method in evaluation.state.methods:
            yield _empty_row(evaluation, panel, empty)
    for spec in plan.methods:
        yield from _derived_rows(evaluation, panel, losses, plan, spec)


def _losses(panel: Panel, plan: Plan) -> _Losses:
    clip = (plan.clip.low, plan.clip.high)
    return _Losses(
        row={card: row for row, card in enumerate(panel.cards)},
        brier={m: brier_units(panel.units[m], panel.y) for m in panel.methods},
        # The same elementary operations as the scores, so that the column adds up to them.
        log={m: log_losses(panel.units[m], panel.y, clip) for m in panel.methods},
    )


def _frozen_row(
    evaluation: Evaluation, panel: Panel, losses: _Losses, seq: int, p: JsonDict
) -> JsonDict:
    method, card_id, draw = p["method"], p["card_id"], p["draw"]
    spec = evaluation.state.methods[method]
    mass = p["unresolved_mass_units"]
    row = _row(evaluation, panel, spec, card_id)
    row |= {name: p["model_route"][name] for name in _ROUTE}
    status = _frozen_status(evaluation, spec, card_id, draw, seq)
    row |= {
        "draw": draw,
        "status": status,
        "prompt_version": p["prompt_version"],
        "response_id": p["response_id"],
        "p_raw": p["p_raw"],
        "p_yes": p["p_yes"],
        "extraction_rule": p["extraction_rule"],
        "unresolved_mass": None if mass is None else format_units(mass),
        "rejected_auxiliary_endpoints": _rejected(evaluation, p),
        "frozen_seq": seq,
    }
    if status == "frozen" and spec.draws == 1:
        row |= losses.of(method, card_id)
    return row


def _frozen_status(
    evaluation: Evaluation, spec: MethodSpec, card_id: str, draw: int, seq: int
) -> str:
    if not 1 <= draw <= spec.draws:
        return "unregistered"
    place = evaluation.card_rows[card_id]
    stands = int(evaluation.cells[spec.id].seqs[place, draw - 1])
    return "frozen" if stands == seq else "repeated"


def _rejected(evaluation: Evaluation, p: JsonDict) -> str | None:
    rejected = [f"{item['endpoint']}: {item['reason']}" for item in p["rejected_endpoints"]]
    rejected += [
        f"{event.endpoint}: {event.reason}"
        for key in ((p["method"], p["card_id"]), (None, p["card_id"]))
        for event in evaluation.findings.rejected.get(key, ())
    ]
    return "; ".join(rejected) or None


def _row(evaluation: Evaluation, panel: Panel, spec: MethodSpec, card_id: str) -> JsonDict:
    card = evaluation.state.cards.get(card_id)
    return dict.fromkeys(PER_CARD_COLUMNS) | {
        "card": card_id,
        "method": spec.id,
        "method_label": spec.label,
        "extraction_rule": spec.extraction_rule,
        "label": card.label if card is not None else None,
        "excluded": panel.excluded.get(card_id),
    }


def _empty_row(evaluation: Evaluation, panel: Panel, empty: EmptyCell) -> JsonDict:
    spec = evaluation.state.methods[empty.method]
    return _row(evaluation, panel, spec, empty.card_id) | {
        "draw": empty.draw,
        "status": empty.status,
        "status_reason": empty.reason,
    }


def _derived_rows(
    evaluation: Evaluation, panel: Panel, losses: _Losses, plan: Plan, spec: MethodSpec
) -> Iterator[JsonDict]:
    """Yield the rows of values that no event holds: constants, aggregates, imputed ones."""
    units, imputed = panel.units[spec.id], panel.imputed[spec.id]
    for row, card_id in enumerate(panel.cards):
        status, reason = "", None
        if imputed[row]:
            status, reason = "imputed", f"policy {plan.missing_predictions.policy}"
        elif spec.source == "constant":
            status = "constant"
        elif spec.draws > 1:
            status, reason = "aggregated", f"{spec.aggregate} of {spec.draws} draws"
        if status:
            derived = {"status": status, "status_reason": reason}
            derived["p_yes"] = format_units(int(units[row]))
            yield _row(evaluation, panel, spec, card_id) | derived | losses.of(spec.id, card_id)


def format_places(units: int) -> str:
    """Write a whole number of 1e-18 as an exact decimal."""
    whole, part = divmod(units, 10**_BRIER_PLACES)
    return f"{whole}.{part:018d}".rstrip("0") if part else str(whole)


def calibration_rows(
    bins: tuple[Any, ...], count: int
) -> Iterator[dict[str, str | int | float | None]]:
    """Yield one row a bin of an equal-width reliability table, empty bins included.

    Edges are decimals of at most nine places where they have one, else fractions such as `1/3`.
    """
    for item in bins:
        yield {
            "bin": item.index,
            "low": format_edge(item.index, count),
            "high": format_edge(item.index + 1, count),
            "n": item.n,
            "mean_p": item.mean_p,
            "observed": item.observed,
            "gap": item.gap,
        }


def format_edge(index: int, count: int) -> str:
    """Write the bin edge index/count exactly."""
    units, rest = divmod(index * UNITS, count)
    return str(Fraction(index, count)) if rest else format_units(units)


def stratum_of(evaluation: Evaluation, card_id: str, stratum: str) -> str:
    """Return a frozen card's value in a registered stratum; `not recorded` where it is silent.

    `deadline_days` is the bucket of whole days from as-of to deadline: 0-7, 8-30, 31-90, 91+.
    """
    card = evaluation.state.cards[card_id].card
    if stratum != "deadline_days":
        return str(getattr(card, stratum) or "not recorded")
    if card.deadline is None:
        return "not recorded"
    days = (date.fromisoformat(card.deadline[:10]) - date.fromisoformat(card.as_of[:10])).days
    for last, name in ((7, "0-7"), (30, "8-30"), (90, "31-90")):
        if days <= last:
            return name
    return "91+"


def stratum_scores(evaluation: Evaluation, panel: Panel, plan: Plan) -> JsonDict:
    """Return n and mean Brier of each method in each value of each registered stratum."""
    out: JsonDict = {}
    for stratum in plan.strata:
        groups: dict[str, list[int]] = {}
        for index, card_id in enumerate(panel.cards):
            groups.setdefault(stratum_of(evaluation, card_id, stratum), []).append(index)
        out[stratum] = {
            name: {"n": len(rows), "brier": _briers(panel, np.array(rows))}
            for name, rows in sorted(groups.items())
        }
    return out


def _briers(panel: Panel, rows: NDArray[np.int64]) -> dict[str, float | None]:
    return {m: brier_score(panel.units[m][rows], panel.y[rows]) for m in panel.methods}
