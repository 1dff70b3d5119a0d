"""The replayed outputs: scores.json and the tables, byte for byte the same on every replay.

`build_report` is pure over the log; `write_report` puts the files into a folder. No file holds the
time of the replay, a path or a version of a library. Tables that carry no head of the log are
digested for `report.published`. Files and columns: docs/spec/preregistration.md, "What replay
writes".
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from ledger.canonical import canonicalize, format_readable
from ledger.decimals import UNITS, format_units
from ledger.errors import BadInputError, BugError, OrderError
from ledger.events.anchor import PublishedScore, ReportPublished, TableDigest
from ledger.events.plan import Plan
from ledger.store.port import Store
from scoring import analysis
from scoring.audit_vector import AUDIT_COLUMNS, audit_rows, branch_losses, primary_pair
from scoring.calibration import calibration_error
from scoring.csv_text import format_csv
from scoring.evaluation import Evaluation, read_evaluation
from scoring.examples import EXAMPLE_RULES
from scoring.leaderboard import render_leaderboard
from scoring.pairs import Pairs
from scoring.panel import Panel, build_panel
from scoring.rules import brier_fraction
from scoring.tables import PER_CARD_COLUMNS, calibration_rows, prediction_rows, stratum_scores

JsonDict = dict[str, Any]
HEAD_FILES = ("scores.json", "run_config_snapshot.json", "leaderboard.md")
"""Files that name the log's size and root, and so change with every event."""


@dataclass(frozen=True, slots=True, eq=False)
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
        compare: pairs of methods asked for besides the plan's; they are exploratory. A pair that
            the plan registers, in either direction, or that stands twice, is no further look.

    Raises:
        OrderError: no plan is registered.
        WithheldError: the plan in force is redacted.
        BadInputError: a pair names a method that is not registered, or one method twice.
        DamagedLedgerError: bytes do not match their hashes.
    """
    evaluation = read_evaluation(store)
    plan = evaluation.plan
    if plan is None:
        raise OrderError(
            "order.plan-before-use", "no plan is registered", remedy="Run `ledger preregister`."
        )
    for a, b in compare:
        for method in (a, b):
            if method not in evaluation.state.methods:
                raise BadInputError(
                    f"method {method!r} is not registered",
                    remedy=f"Registered: {', '.join(evaluation.state.methods)}.",
                )
        if a == b:
            raise BadInputError(f"{a!r} is compared with itself", remedy="Name two methods.")
    panel = build_panel(evaluation, plan)
    return Report(evaluation, plan, panel, _scores(evaluation, plan, panel, compare))


def _scores(
    evaluation: Evaluation, plan: Plan, panel: Panel, compare: Sequence[tuple[str, str]]
) -> JsonDict:
    scores = {m: analysis.method_scores(panel, plan, m) for m in panel.methods}
    pairs = Pairs(panel, plan)
    family = analysis.multiplicity(pairs)
    paired = _paired(pairs, plan, compare, family)
    return {
        "ledger": {"size": evaluation.size, "root": evaluation.root.hex()},
        "plan": _registration(evaluation, plan),
        "cards": {
            "registered": len(plan.card_set.cards),
            "scored": len(panel.cards),
            "excluded": panel.excluded,
            "policy": plan.missing_predictions.policy,
            "imputed_value": plan.missing_predictions.value,
        },
        "metrics": analysis.metric_roles(plan),
        "scores": scores,
        "paired": paired,
        "multiplicity": family,
        "leaderboard": analysis.leaderboard(scores, plan.primary_metric),
        "failure_anatomy": branch_losses(plan, panel),
        "examples": _examples(pairs),
        "strata": stratum_scores(evaluation, panel, plan),
        "attempts": {
            "started": evaluation.state.started,
            "failed": evaluation.state.failed,
        },
        "looks": {
            "confirmatory": len(plan.comparisons),
            "exploratory": len(paired) - len(plan.comparisons),
            "published_reports": evaluation.findings.reports,
            "published_exploratory": evaluation.findings.published_exploratory,
        },
        "withheld_events": list(evaluation.findings.withheld),
        "conventions": _conventions(plan),
    }


def _paired(
    pairs: Pairs, plan: Plan, compare: Sequence[tuple[str, str]], family: JsonDict
) -> list[JsonDict]:
    """Return the plan's comparisons, then those asked for besides; each is marked."""
    registered = {frozenset((c.a, c.b)) for c in plan.comparisons}
    # Both directions of a pair are one look.
    asked = {frozenset(pair): pair for pair in reversed(compare)}
    once = dict.fromkeys(asked[frozenset(pair)] for pair in compare)
    besides = [pair for pair in once if frozenset(pair) not in registered]
    rows: list[JsonDict] = []
    for spec, row in zip(
        plan.comparisons, pairs.compare([(c.a, c.b) for c in plan.comparisons]), strict=True
    ):
        decision = analysis.decide_primary(row, plan, family)
        rows.append(row | {"status": "confirmatory", "primary": spec.primary, "decision": decision})
    # One by one: what is asked for besides must not move a bit of what is registered.
    for pair in besides:
        (row,) = pairs.compare([pair])
        rows.append(row | {"status": "exploratory", "primary": False, "decision": None})
    return rows


def _examples(pairs: Pairs) -> list[str]:
    a, b = primary_pair(pairs.plan)
    spec = pairs.plan.example_selection
    d = pairs.differences(a, b).units.tolist()
    return list(EXAMPLE_RULES[spec.rule](dict(zip(pairs.panel.cards, d, strict=True)), spec.count))


def _registration(evaluation: Evaluation, plan: Plan) -> JsonDict:
    """Say when the plan in force was registered, against the deadlines of its cards.

    After the last deadline every outcome may have been known to whoever wrote the plan: it fixes
    the computation and proves nothing about the order of choices.
    """
    at = evaluation.findings.plan_recorded_at
    if at is None:
        raise BugError("a plan in force has no time of registration")
    cards = [evaluation.state.cards.get(card_id) for card_id in plan.card_set.cards]
    deadlines = [c.card.deadline for c in cards if c is not None and c.card.deadline is not None]
    passed = sum(deadline < at for deadline in deadlines)
    return {
        "plan_id": plan.plan_id,
        "seq": evaluation.state.plan_seq,
        "registered_at": at,
        "amendments": evaluation.findings.plans - 1,
        "cards_with_deadline": len(deadlines),
        "deadlines_passed": passed,
        "last_deadline": max(deadlines, default=None),
        "retrospective": bool(deadlines) and passed == len(deadlines),
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


def report_files(report: Report, store: Store) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Yield every output file's name and its bytes in pieces.

    A table with a row a prediction is never whole in memory; each such file reads the log once.
    """
    plan, panel = report.plan, report.panel

    def rows() -> Iterator[JsonDict]:
        return prediction_rows(report.evaluation, store, plan, panel)

    yield "predictions.jsonl", (canonicalize(row) + b"\n" for row in rows())
    yield "per_card.csv", format_csv(PER_CARD_COLUMNS, rows())
    summary = list(_summary_rows(report))
    yield "strategy_summary.csv", format_csv(tuple(summary[0]), summary)
    yield "audit_vectors.csv", format_csv(AUDIT_COLUMNS, audit_rows(report.evaluation, plan, panel))
    for method in panel.methods:
        yield f"calibration_{method}.csv", _calibration_csv(panel, plan, method)
    yield "leaderboard.md", [render_leaderboard(report.scores, plan).encode()]
    yield "scores.json", [format_readable(report.scores)]
    yield "run_config_snapshot.json", [format_readable(_snapshot(report))]


def write_report(report: Report, store: Store, folder: Path) -> list[str]:
    """Write the files into a folder; each appears whole or not at all. Returns their names."""
    folder.mkdir(parents=True, exist_ok=True)
    names: list[str] = []
    for name, pieces in report_files(report, store):
        draft = folder / f".{name}.{os.getpid()}.new"
        try:
            with draft.open("wb") as file:
                file.writelines(pieces)
            draft.replace(folder / name)
        finally:
            draft.unlink(missing_ok=True)
        names.append(name)
    return names


def publish_report(report: Report, store: Store, *, authority: str) -> ReportPublished:
    """Say in the log what was shown: scores, table digests and the number of looks."""
    looks = report.scores["looks"]
    return ReportPublished(
        evaluated_size=report.evaluation.size,
        scores=tuple(_published(report, method) for method in report.panel.methods),
        tables=tuple(
            TableDigest(name=name, sha256=_digest(pieces))
            for name, pieces in report_files(report, store)
            if name not in HEAD_FILES
        ),
        confirmatory_looks=looks["confirmatory"],
        exploratory_looks=looks["exploratory"],
        authority=authority,
    )


def _digest(pieces: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def _published(report: Report, method: str) -> PublishedScore:
    row = report.scores["scores"][method]
    mean = brier_fraction(report.panel.units[method], report.panel.y)
    brier = None if mean is None else format_units(round(mean * UNITS))
    log = None if row["log"] is None else format_units(round(Fraction(row["log"]) * UNITS))
    return PublishedScore(method=method, n=row["n"], brier=brier, log=log)


def _calibration_csv(panel: Panel, plan: Plan, method: str) -> Iterator[bytes]:
    count = plan.calibration.bins
    result = calibration_error(
        panel.units[method], panel.y, bins=count, closed=analysis.closed_side(plan)
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
