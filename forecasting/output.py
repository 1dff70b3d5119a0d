"""What a backtest leaves in its folder: the eval framework's files, from the log and nothing else.

Columns and sort order are the framework's (sections 7 and 8), and the same ledger gives the same
octets on every machine. The statistics beside them (intervals, paired tests, multiplicity) are
those of the registered plan, as `ledger replay` computes them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from statistics import pstdev

from forecasting.accounts import (
    ACCOUNT_COLUMNS,
    EVIDENCE_COLUMNS,
    Called,
    CellAccount,
    Grouping,
    JsonDict,
    count_by,
    count_by_cell,
    evidence_rows,
    read_calls,
)
from ledger.canonical import canonicalize, format_readable
from ledger.decimals import UNITS, format_units
from ledger.events.plan import MethodSpec
from ledger.protocol.state import Cell
from ledger.store.port import Store
from scoring.csv_text import format_csv
from scoring.leaderboard import format_table, render_leaderboard
from scoring.report import Report, build_report, report_files
from scoring.rules import brier_score, log_loss

SUMMARY_COLUMNS = (
    "rank",
    "strategy_id",
    "questions",
    "failed",
    "mean_brier",
    "mean_log_loss",
    "ece",
    "mean_cost_usd",
    "mean_latency_ms",
    "total_cost_usd",
    "calls_without_cost",
    "input_tokens",
    "output_tokens",
    "model_calls",
    "tool_calls",
    "cached_calls",
    "evidence_kept",
    "timeboxed_out",
    "relevance_removed",
)


@dataclass(frozen=True, slots=True, eq=False)
class Outputs:
    """Everything that the files are written from."""

    report: Report
    calls: tuple[Called, ...]
    cells: Mapping[Cell, CellAccount]


def read_outputs(store: Store) -> Outputs:
    """Fold a ledger for its files.

    Raises:
        OrderError, WithheldError, DamagedLedgerError: as `scoring.report.build_report`.
    """
    calls = tuple(read_calls(store))
    return Outputs(build_report(store), calls, count_by_cell(calls))


def output_files(outputs: Outputs, store: Store) -> Iterator[tuple[str, Iterable[bytes]]]:
    """Yield each file's name and octets."""
    rows = list(_prediction_rows(outputs))
    summary = _summary_rows(outputs, rows)
    yield "predictions.jsonl", (canonicalize_row(row) for row in rows)
    yield "strategy_summary.csv", format_csv(SUMMARY_COLUMNS, summary)
    yield "leaderboard.md", [_leaderboard(outputs, summary).encode()]
    for name, pieces in report_files(outputs.report, store):
        if name.startswith("calibration_"):
            yield name, pieces
    yield "run_config_snapshot.json", [format_readable(_snapshot(outputs))]
    yield "evidence.csv", format_csv(EVIDENCE_COLUMNS, evidence_rows(outputs.calls))
    yield "costs.csv", format_csv(("by", "name", *ACCOUNT_COLUMNS), _cost_rows(outputs))


def write_outputs(store: Store, folder: Path) -> list[str]:
    """Write the files into a folder; each appears whole or not at all. Returns their names."""
    folder.mkdir(parents=True, exist_ok=True)
    names: list[str] = []
    for name, pieces in output_files(read_outputs(store), store):
        draft = folder / f".{name}.new"
        try:
            draft.write_bytes(b"".join(pieces))
            draft.replace(folder / name)
        finally:
            draft.unlink(missing_ok=True)
        names.append(name)
    return names


def canonicalize_row(row: JsonDict) -> bytes:
    """Write one row as a line of JSON."""
    return canonicalize(row) + b"\n"


def _prediction_rows(outputs: Outputs) -> Iterator[JsonDict]:
    report = outputs.report
    for method in report.panel.methods:
        spec = report.evaluation.state.methods[method]
        for row, card_id in enumerate(report.panel.cards):
            yield _prediction_row(outputs, spec, row, card_id)


def _prediction_row(outputs: Outputs, spec: MethodSpec, row: int, card_id: str) -> JsonDict:
    report = outputs.report
    panel, state = report.panel, report.evaluation.state
    units, y = panel.units[spec.id][row : row + 1], panel.y[row : row + 1]
    clip = (report.plan.clip.low, report.plan.clip.high)
    is_imputed = bool(panel.imputed[spec.id][row])
    draws = [Cell(spec.id, card_id, draw) for draw in range(1, spec.draws + 1)]
    frozen = [state.cells[cell][1] for cell in draws if cell in state.cells]
    account = _sum(outputs.cells[cell] for cell in draws if cell in outputs.cells)
    errors = [state.last_failure[c] for c in draws if c in state.last_failure and is_imputed]
    card = state.cards[card_id].card
    return {
        "strategy_id": spec.id,
        "question_id": card_id,
        "title": card.title,
        "as_of_time": card.as_of,
        "label": int(y[0]),
        "probability": None if is_imputed else format_units(int(units[0])),
        "brier": brier_score(units, y),
        "log_loss": log_loss(units, y, clip),
        "penalised": is_imputed,
        "num_runs": spec.draws,
        "all_probabilities": [format_units(value) for value in frozen],
        "stddev": pstdev(value / UNITS for value in frozen) if frozen else None,
        "error": "; ".join(errors) or ("no prediction" if is_imputed else None),
        "requested_model": spec.parameters.get("requested_model.final_forecast"),
        "enforced_model": spec.model_route.requested_model,
        **_account_columns(account),
    }


def _account_columns(account: CellAccount) -> JsonDict:
    models, tools = account.models, account.tools
    unknown = models.calls_without_cost + tools.calls_without_cost
    return {
        "input_tokens": models.input_tokens,
        "output_tokens": models.output_tokens,
        "cost_usd": f"{(models.cost_usd + tools.cost_usd).normalize():f}" if not unknown else None,
        "calls_without_cost": unknown,
        "latency_ms": models.latency_ms + tools.latency_ms,
        "model_calls": models.calls,
        "tool_calls": tools.calls,
        "cached_calls": models.cached + tools.cached,
        "evidence_kept": account.kept,
        "timeboxed_out": account.timeboxed_out,
        "relevance_removed": account.relevance_removed,
    }


def _sum(accounts: Iterable[CellAccount]) -> CellAccount:
    total = CellAccount()
    for account in accounts:
        for part, of in ((total.models, account.models), (total.tools, account.tools)):
            for name in ACCOUNT_COLUMNS:
                setattr(part, name, getattr(part, name) + getattr(of, name))
        total.kept += account.kept
        total.timeboxed_out += account.timeboxed_out
        total.relevance_removed += account.relevance_removed
    return total


def _summary_rows(outputs: Outputs, rows: list[JsonDict]) -> list[JsonDict]:
    """Rank by mean Brier, mean log loss, ECE, mean cost, each ascending; unknown goes last."""
    summary = [_summary_row(outputs, method, rows) for method in outputs.report.panel.methods]

    def key(row: JsonDict) -> tuple[object, ...]:
        names = ("mean_brier", "mean_log_loss", "ece", "mean_cost_usd")
        numbers = [math.inf if row[name] is None else float(row[name]) for name in names]
        return (*numbers, row["strategy_id"])

    return [{**row, "rank": rank} for rank, row in enumerate(sorted(summary, key=key), 1)]


def _summary_row(outputs: Outputs, method: str, rows: list[JsonDict]) -> JsonDict:
    scores = outputs.report.scores["scores"][method]
    own = [row for row in rows if row["strategy_id"] == method]
    count = len(own)
    unknown = sum(row["calls_without_cost"] for row in own)
    known = sum(
        (Decimal(row["cost_usd"]) for row in own if row["cost_usd"] is not None), Decimal(0)
    )
    sums = ("input_tokens", "output_tokens", "model_calls", "tool_calls", "cached_calls")
    kinds = ("evidence_kept", "timeboxed_out", "relevance_removed")
    latency = sum(row["latency_ms"] for row in own)
    return {
        "strategy_id": method,
        "questions": count,
        "failed": sum(row["penalised"] for row in own),
        "mean_brier": scores["brier"],
        "mean_log_loss": scores["log"],
        "ece": scores["ece"],
        "mean_cost_usd": float(known / count) if count and not unknown else None,
        "mean_latency_ms": latency / count if count else None,
        "total_cost_usd": f"{known.normalize():f}" if not unknown else None,
        "calls_without_cost": unknown,
        **{name: sum(row[name] for row in own) for name in (*sums, *kinds)},
    }


def _leaderboard(outputs: Outputs, summary: list[JsonDict]) -> str:
    head = (
        "rank",
        "strategy",
        "n",
        "failed",
        "mean Brier",
        "mean log loss",
        "ECE",
        "mean cost USD",
    )
    names = ("rank", "strategy_id", "questions", "failed", "mean_brier", "mean_log_loss", "ece")
    table = format_table(
        head, ((*(row[name] for name in names), _money(row["mean_cost_usd"])) for row in summary)
    )
    return (
        "# Ranking by mean Brier, then mean log loss, ECE, mean cost\n\n"
        f"{table}\n\n"
        "A question without a prediction counts at the full loss and stays in every mean.\n\n"
        f"{render_leaderboard(outputs.report.scores, outputs.report.plan)}"
    )


def _money(value: float | None) -> str | None:
    return None if value is None else f"{value:.6f}"


def _snapshot(outputs: Outputs) -> JsonDict:
    state = outputs.report.evaluation.state
    scores = outputs.report.scores
    return {
        "ledger": scores["ledger"],
        "log": state.opened and {"id": state.opened.log_id, "origin": state.opened.origin},
        "plan": outputs.report.plan.model_dump(mode="json"),
        "plan_seq": state.plan_seq,
        "cards": {
            card_id: {"as_of": card.card.as_of, "title": card.card.title}
            for card_id, card in state.cards.items()
        },
        "attempts": scores["attempts"],
        "excluded": scores["cards"]["excluded"],
    }


def _cost_rows(outputs: Outputs) -> Iterator[JsonDict]:
    groupings: tuple[Grouping, ...] = ("method", "stage", "model")
    for by in groupings:
        for name, account in count_by(outputs.calls, by).items():
            yield {"by": by, "name": name, **account.to_row()}
