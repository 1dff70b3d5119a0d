"""The per-card table and its kin: one row a cell, every column of the reproducibility package.

Columns follow the paper's section 5 (Reproducibility package). What is not recorded is empty in CSV
and null in JSON; a probability that the plan imputed is marked, never passed off as given.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from ledger.decimals import UNITS, format_units, parse_units
from ledger.events.plan import MethodSpec, Plan
from ledger.store.port import Store
from scoring.evaluation import Evaluation, read_prediction_details
from scoring.panel import Panel
from scoring.rules import log_losses

JsonDict = dict[str, Any]

PER_CARD_COLUMNS = (
    "card",
    "method",
    "draw",
    "status",
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


def prediction_rows(evaluation: Evaluation, store: Store, plan: Plan) -> Iterator[JsonDict]:
    """Yield one row a frozen prediction in order of seq, then constants and empty cells.

    Losses stand beside each draw; they are null while the label is withheld or the card excluded.
    """
    registered = set(evaluation.draws_units)
    for seq, p in read_prediction_details(store):
        if p["method"] in registered and p["card_id"] in evaluation.state.planned_cards:
            yield _frozen_row(evaluation, plan, seq, p)
    for spec in plan.methods:
        if spec.source == "constant":
            for card_id in plan.card_set.cards:
                yield (
                    _row(evaluation, plan, spec, card_id)
                    | {"status": "constant"}
                    | _losses(evaluation, plan, card_id, UNITS // 2)
                    | {"p_raw": "0.5", "p_yes": "0.5"}
                )
    for cell in evaluation.closed.empty if evaluation.closed else ():
        spec = evaluation.state.methods[cell.method]
        yield _row(evaluation, plan, spec, cell.card_id) | {
            "draw": cell.draw,
            "status": cell.status,
        }


def _frozen_row(evaluation: Evaluation, plan: Plan, seq: int, p: JsonDict) -> JsonDict:
    spec = evaluation.state.methods[p["method"]]
    route = p["model_route"]
    mass = p["unresolved_mass_units"]
    rejected = [f"{item['endpoint']}: {item['reason']}" for item in p["rejected_endpoints"]]
    rejected += [
        f"{event.endpoint}: {event.reason}"
        for key in ((p["method"], p["card_id"]), (None, p["card_id"]))
        for event in evaluation.rejected.get(key, ())
    ]
    row = _row(evaluation, plan, spec, p["card_id"])
    row |= {name: route[name] for name in ("provider", "route", "requested_model")}
    row |= {
        "draw": p["draw"],
        "status": "frozen",
        "resolved_model": route["resolved_model"],
        "prompt_version": p["prompt_version"],
        "response_id": p["response_id"],
        "p_raw": p["p_raw"],
        "p_yes": p["p_yes"],
        "extraction_rule": p["extraction_rule"],
        "unresolved_mass": None if mass is None else format_units(mass),
        "rejected_auxiliary_endpoints": "; ".join(rejected) or None,
        "frozen_seq": seq,
    }
    return row | _losses(evaluation, plan, p["card_id"], parse_units(p["p_yes"]))


def _row(evaluation: Evaluation, plan: Plan, spec: MethodSpec, card_id: str) -> JsonDict:
    card = evaluation.state.cards.get(card_id)
    excluded = None
    if card is not None and card.annulled in plan.exclusions.reasons:
        excluded = card.annulled
    return dict.fromkeys(PER_CARD_COLUMNS) | {
        "card": card_id,
        "method": spec.id,
        "draw": 1,
        "extraction_rule": spec.extraction_rule,
        "label": card.label if card is not None else None,
        "excluded": excluded,
    }


def _losses(evaluation: Evaluation, plan: Plan, card_id: str, units: int) -> JsonDict:
    card = evaluation.state.cards.get(card_id)
    if card is None or card.label is None or card.annulled in plan.exclusions.reasons:
        return {}
    y = int(card.label == "yes")
    # The same elementary operations as the scores, so that the column adds up to them.
    log = float(log_losses(np.array([units]), [y], (plan.clip.low, plan.clip.high))[0])
    return {
        "brier": format_decimal(Fraction((units - y * UNITS) ** 2, UNITS**2)),
        "log_clipped": None if np.isinf(log) else f"{log:.12f}",
    }


def format_decimal(value: Fraction) -> str:
    """Write a fraction whose denominator divides 10^18 as an exact decimal."""
    units = value * 10**18
    whole, part = divmod(int(units), 10**18)
    return f"{whole}.{part:018d}".rstrip("0").rstrip(".") if part else str(whole)


def calibration_rows(
    bins: tuple[Any, ...], count: int
) -> Iterator[dict[str, str | int | float | None]]:
    """Yield one row a bin of an equal-width reliability table, empty bins included."""
    for item in bins:
        yield {
            "bin": item.index,
            "low": format_decimal(Fraction(item.index, count)),
            "high": format_decimal(Fraction(item.index + 1, count)),
            "n": item.n,
            "mean_p": item.mean_p,
            "observed": item.observed,
            "gap": item.gap,
        }


def stratum_of(evaluation: Evaluation, card_id: str, stratum: str) -> str:
    """Return a card's value in a registered stratum; `not recorded` where the card is silent.

    `deadline_days` is the bucket of whole days from as-of to deadline: 0-7, 8-30, 31-90, 91+.
    """
    card = evaluation.card(card_id).card
    if stratum != "deadline_days":
        return str(getattr(card, stratum) or "not recorded")
    if card.deadline is None:
        return "not recorded"
    days = int(
        (np.datetime64(card.deadline[:10]) - np.datetime64(card.as_of[:10])).astype(np.int64)
    )
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
            name: {"n": len(rows)}
            | {method: _mean_brier(panel, method, rows) for method in panel.methods}
            for name, rows in sorted(groups.items())
        }
    return out


def _mean_brier(panel: Panel, method: str, rows: list[int]) -> float:
    total = sum((int(panel.units[method][i]) - int(panel.y[i]) * UNITS) ** 2 for i in rows)
    return float(Fraction(total, len(rows) * UNITS**2))
