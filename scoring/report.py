"""The replayed outputs: scores.json and the tables, byte for byte the same on every replay.

`build_report` is pure over the log; `write_report` puts the files into a folder. No file holds the
time of the replay, a path or a version of a library. Tables that carry no head of the log are
digested for `report.published`.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from ledger.canonical import canonicalize, format_readable
from ledger.decimals import UNITS, format_units
from ledger.errors import BadInputError, OrderError
from ledger.events.anchor import PublishedScore, ReportPublished, TableDigest
from ledger.events.plan import Plan
from ledger.store.port import Store
from scoring import analysis
from scoring.audit_vector import AUDIT_COLUMNS, audit_rows, branch_losses, primary_pair
from scoring.calibration import calibration_error
from scoring.evaluation import Evaluation, read_evaluation
from scoring.examples import EXAMPLE_RULES
from scoring.leaderboard import render_leaderboard
from scoring.panel import Panel, build_panel
from scoring.tables import PER_CARD_COLUMNS, calibration_rows, prediction_rows, stratum_scores

JsonDict = dict[str, Any]
HEAD_FILES = ("scores.json", "run_config_snapshot.json", "leaderboard.md")
"""Files that name the log's size and root, and so change with every event."""


@dataclass(frozen=True, slots=True)
class Report:
    """A replay: the content of scores.json and what the tables are written from."""

    evaluation: Evaluation
    plan: Plan
    panel: Panel
    scores: JsonDict


def build_report(store: Store, *, compare: Sequence[tuple[str, str]] = ()) -> Report:
    """Recompute every score from the log alone.

    Args:
        store: the ledger.
        compare: pairs of methods asked for besides the plan's; they are exploratory.

    Raises:
        OrderError: no plan is registered.
        BadInputError: a pair names a method that is not registered.
        DamagedLedgerError: bytes do not match their hashes.
    """
    evaluation = read_evaluation(store)
    plan = evaluation.plan
    if plan is None:
        raise OrderError(
            "order.plan-before-use", "no plan is registered", remedy="Run `ledger preregister`."
        )
    for pair in compare:
        for method in pair:
            if method not in evaluation.state.methods:
                raise BadInputError(
                    f"method {method!r} is not registered",
                    remedy=f"Registered: {', '.join(evaluation.state.methods)}.",
                )
    panel = build_panel(evaluation, plan)
    return Report(evaluation, plan, panel, _scores(evaluation, plan, panel, compare))


def _scores(
    evaluation: Evaluation, plan: Plan, panel: Panel, compare: Sequence[tuple[str, str]]
) -> JsonDict:
    scores = {m: analysis.method_scores(panel, plan, m) for m in panel.methods}
    paired = [
        analysis.paired_comparison(panel, plan, c.a, c.b)
        | {"status": "confirmatory", "primary": c.primary}
        for c in plan.comparisons
    ]
    registered = {frozenset((c.a, c.b)) for c in plan.comparisons}
    paired += [
        analysis.paired_comparison(panel, plan, a, b) | {"status": "exploratory", "primary": False}
        for a, b in compare
        if frozenset((a, b)) not in registered
    ]
    a, b = primary_pair(plan)
    d = analysis.differences(panel, plan, a, b)
    examples = EXAMPLE_RULES[plan.example_selection.rule](
        dict(zip(panel.cards, map(int, d.units), strict=True)), plan.example_selection.count
    )
    return {
        "ledger": {"size": evaluation.size, "root": evaluation.root.hex()},
        "plan": {"plan_id": plan.plan_id, "seq": evaluation.state.plan_seq},
        "cards": {
            "registered": len(plan.card_set.cards),
            "scored": len(panel.cards),
            "excluded": panel.excluded,
            "policy": plan.missing_predictions.policy,
        },
        "scores": scores,
        "paired": paired,
        "multiplicity": analysis.multiplicity(panel, plan),
        "leaderboard": analysis.leaderboard(scores, plan.primary_metric),
        "failure_anatomy": branch_losses(plan, panel),
        "examples": list(examples),
        "strata": stratum_scores(evaluation, panel, plan),
        "attempts": {
            "started": evaluation.state.started,
            "failed": evaluation.state.failed,
        },
        "looks": {
            "confirmatory": len(plan.comparisons),
            "exploratory": len(paired) - len(plan.comparisons),
            "published_reports": evaluation.reports,
        },
        "withheld_events": list(evaluation.withheld),
        "conventions": _conventions(plan),
    }


def _conventions(plan: Plan) -> JsonDict:
    return {
        "difference": "loss(b) - loss(a); positive favours a",
        "log": f"natural logarithm, p clipped to [{plan.clip.low}, {plan.clip.high}]",
        "ece": f"{plan.calibration.bins} equal-width bins, {plan.calibration.edges}",
        "bootstrap": "percentile and BCa of the mean over resampled cards; limit is the percentile"
        " interval for infinitely many resamples, which depends on no generator and no seed",
        "specification": "docs/spec/scoring.md",
    }


def report_files(report: Report, store: Store) -> Iterator[tuple[str, bytes]]:
    """Yield every output file's name and bytes."""
    plan, panel = report.plan, report.panel
    rows = list(prediction_rows(report.evaluation, store, plan))
    yield "predictions.jsonl", b"".join(canonicalize(row) + b"\n" for row in rows)
    yield "per_card.csv", format_csv(PER_CARD_COLUMNS, rows)
    summary = list(_summary_rows(report))
    yield "strategy_summary.csv", format_csv(tuple(summary[0]), summary)
    yield (
        "audit_vectors.csv",
        format_csv(AUDIT_COLUMNS, audit_rows(report.evaluation, store, plan, panel)),
    )
    for method in panel.methods:
        yield f"calibration_{method}.csv", _calibration_csv(panel, plan, method)
    yield "leaderboard.md", render_leaderboard(report.scores, plan).encode()
    yield "scores.json", format_readable(report.scores)
    yield "run_config_snapshot.json", format_readable(_snapshot(report))


def write_report(report: Report, store: Store, folder: Path) -> list[str]:
    """Write the files into a folder; each appears whole or not at all. Returns their names."""
    folder.mkdir(parents=True, exist_ok=True)
    names: list[str] = []
    for name, data in report_files(report, store):
        draft = folder / f".{name}.{os.getpid()}.new"
        draft.write_bytes(data)
        draft.replace(folder / name)
        names.append(name)
    return names


def publish_report(report: Report, store: Store, *, authority: str) -> ReportPublished:
    """Say in the log what was shown: scores, table digests and the number of looks."""
    looks = report.scores["looks"]
    return ReportPublished(
        evaluated_size=report.evaluation.size,
        scores=tuple(_published(report, method) for method in report.panel.methods),
        tables=tuple(
            TableDigest(name=name, sha256=hashlib.sha256(data).hexdigest())
            for name, data in report_files(report, store)
            if name not in HEAD_FILES
        ),
        confirmatory_looks=looks["confirmatory"],
        exploratory_looks=looks["exploratory"],
        authority=authority,
    )


def _published(report: Report, method: str) -> PublishedScore:
    row = report.scores["scores"][method]
    units, y = report.panel.units[method], report.panel.y
    brier = None
    if row["n"]:
        total = sum((int(u) - int(label) * UNITS) ** 2 for u, label in zip(units, y, strict=True))
        brier = format_units(round(Fraction(total, row["n"] * UNITS)))
    log = None if row["log"] is None else format_units(round(Fraction(row["log"]) * UNITS))
    return PublishedScore(method=method, n=row["n"], brier=brier, log=log)


def format_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Write rows as RFC 4180 CSV with bare line feeds; None is empty, floats by shortest repr."""
    buffer = io.StringIO(newline="")
    writer = csv.DictWriter(buffer, columns, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue().encode()


def _calibration_csv(panel: Panel, plan: Plan, method: str) -> bytes:
    count = plan.calibration.bins
    result = calibration_error(
        panel.units[method],
        panel.y,
        bins=count,
        closed="left" if plan.calibration.edges == "left-closed" else "right",
    )
    columns = ("bin", "low", "high", "n", "mean_p", "observed", "gap")
    return format_csv(columns, calibration_rows(result.bins, count) if result else ())


def _summary_rows(report: Report) -> Iterator[JsonDict]:
    for rank, method in enumerate(report.scores["leaderboard"], 1):
        spec = report.evaluation.state.methods[method]
        row = report.scores["scores"][method]
        yield {
            "rank": rank,
            "method": method,
            "label": spec.label,
            "role": spec.role,
            "model": spec.model_route.resolved_model or spec.model_route.requested_model,
            "extraction_rule": spec.extraction_rule,
            "n": row["n"],
            "n_imputed": row["n_imputed"],
            **{name: row[name] for name in ("brier", "log", "log_clipped_count", "ece", "mce")},
            **{name: row[name] for name in ("mcb", "dsc", "unc", "auc")},
            "variance_p": row["sharpness"] and row["sharpness"]["variance"],
        }


def _snapshot(report: Report) -> JsonDict:
    state = report.evaluation.state
    return {
        "ledger": report.scores["ledger"],
        "log": state.opened and {"id": state.opened.log_id, "origin": state.opened.origin},
        "plan": report.plan.model_dump(mode="json"),
        "plan_seq": state.plan_seq,
        "closed_seq": state.closed_seq,
        "first_unsealed_seq": state.first_unsealed_seq,
    }
