"""The per-card table: the paper's columns, exact sums, draws, strata, CSV that runs no formula."""

from __future__ import annotations

import csv
import io
import math
from fractions import Fraction
from typing import Any

import pytest
import replay_ledgers
from hypothesis import given
from hypothesis import strategies as st
from replay_ledgers import Bench, blend, constant, make_plan, method, plan_fields

from ledger.canonical import parse_strict
from ledger.events.base import ModelRoute
from ledger.events.endpoint import EndpointRejected
from scoring.csv_text import format_csv, guard_cell
from scoring.report import build_report, report_files
from scoring.tables import PER_CARD_COLUMNS, format_edge, format_places

PAPER = {
    "method label": ("method", "method_label"),
    "model route": ("provider", "route", "requested_model", "resolved_model"),
    "prompt version": ("prompt_version",),
    "response identifier": ("response_id",),
    "raw yes probability": ("p_raw",),
    "extracted yes probability": ("p_yes", "extraction_rule"),
    "unresolved mass": ("unresolved_mass",),
    "binary label": ("label",),
    "Brier loss": ("brier",),
    "clipped log loss": ("log_clipped",),
    "excluded or rejected auxiliary endpoints": ("rejected_auxiliary_endpoints",),
}
"""The list of section 5, Reproducibility package."""

OURS = {"card", "draw", "status", "status_reason", "excluded", "frozen_seq"}


def test_the_columns_are_the_papers_and_what_places_a_row() -> None:
    assert {c for columns in PAPER.values() for c in columns} | OURS == set(PER_CARD_COLUMNS)
    assert len(set(PER_CARD_COLUMNS)) == len(PER_CARD_COLUMNS)


def outputs(made: Bench) -> tuple[dict[str, Any], dict[str, str]]:
    report = build_report(made.session.store)
    pieces = report_files(report, made.session.store)
    return report.scores, {name: b"".join(found).decode() for name, found in pieces}


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def check_sums(scores: dict[str, Any], rows: list[dict[str, str]]) -> None:
    for name, row in scores["scores"].items():
        mine = [r for r in rows if r["method"] == name and r["brier"]]
        assert len(mine) == len({r["card"] for r in mine}) == row["n"]
        total = sum((Fraction(r["brier"]) for r in mine), Fraction(0))
        assert float(total / row["n"]) == row["brier"]
        log = math.fsum(float(r["log_clipped"]) for r in mine) / row["n"]
        assert log == pytest.approx(row["log"], abs=1e-11)


def test_the_pilots_losses_add_up_exactly() -> None:
    report = build_report(replay_ledgers.pilot().store)
    store = replay_ledgers.pilot().store
    files = {n: b"".join(p).decode() for n, p in report_files(report, store)}
    rows = table(files["per_card.csv"])
    assert len(rows) == 7 * 24
    check_sums(report.scores, rows)


@pytest.mark.parametrize("policy", ["complete_case", "impute", "worst_case"])
def test_losses_add_up_with_draws_gaps_and_blends(policy: str) -> None:
    methods = [
        constant(),
        method("a", draws=3, aggregate="median"),
        method("b"),
        blend("mix", {"a": "0.3", "uniform": "0.7"}, rounding=None),
    ]
    value = "0.4" if policy == "impute" else None
    cards = ["c1", "c2", "c3"]
    plan = make_plan(
        plan_fields(cards, methods, missing_predictions={"policy": policy, "value": value})
    )
    made = Bench(plan).freeze({"c1": "yes", "c2": "no", "c3": "yes"}).register()
    made.predict("a", {"c1": ["0.1", "0.2", "0.7"], "c2": ["1", "0", "0.5"], "c3": ["0.9"]})
    made.predict("b", {"c1": "0.123456789", "c2": "0"})
    scores, files = outputs(made.close().unseal())
    rows = table(files["per_card.csv"])
    check_sums(scores, rows)
    drawn = [r for r in rows if r["method"] == "a" and r["status"] == "frozen"]
    assert len(drawn) == 7
    assert all(r["brier"] == "" for r in drawn)
    aggregated = [r for r in rows if r["status"] == "aggregated"]
    assert [(r["card"], r["p_yes"]) for r in aggregated] == [("c1", "0.2"), ("c2", "0.5")]
    assert {r["status_reason"] for r in aggregated} == {"median of 3 draws"}
    assert len(table(files["per_card.csv"])) == len(files["predictions.jsonl"].splitlines())


def free(text: str) -> tuple[dict[str, str], dict[str, Any]]:
    plan = make_plan(plan_fields(["c1"], [method("a", label=text), constant()]))
    made = Bench(plan).freeze({"c1": "yes"}).register()
    route = ModelRoute(provider=text, requested_model=text)
    made.add(made.prediction("a", "c1", 1, "0.5", model_route=route, response_id=text))
    made.add(EndpointRejected(method=None, card_id="c1", endpoint="x", wording="w", reason="leaks"))
    _, files = outputs(made.close().unseal())
    row: dict[str, Any] = parse_strict(files["predictions.jsonl"].splitlines()[0])
    return table(files["per_card.csv"])[0], row


@pytest.mark.parametrize("text", ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "=cmd|' /C"])
def test_a_text_that_a_spreadsheet_would_run_gets_an_apostrophe(text: str) -> None:
    cells, row = free(text)
    for name in ("method_label", "provider", "requested_model", "response_id"):
        assert cells[name] == f"'{text}"
        assert row[name] == text
    assert cells["rejected_auxiliary_endpoints"] == "x: leaks"


@pytest.mark.parametrize("text", ["gpt-5", "a=b", "-0.5", "+.5", "-1e-9", "0", ""])
def test_other_texts_and_plain_numbers_stay(text: str) -> None:
    assert guard_cell(text) == text
    assert guard_cell(None) is None
    assert guard_cell(-0.5) == -0.5


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"))))
def test_any_text_comes_back_out_of_the_csv(texts: list[str]) -> None:
    rows = [{"x": text, "y": None} for text in texts]
    data = b"".join(format_csv(("x", "y"), rows)).decode()
    found = [row["x"] for row in table(data)]
    assert found == [str(guard_cell(text)) for text in texts]


@pytest.mark.parametrize(
    ("units", "text"),
    [(0, "0"), (10**18, "1"), (1, "0.000000000000000001"), (25 * 10**16, "0.25")],
)
def test_places(units: int, text: str) -> None:
    assert format_places(units) == text


@pytest.mark.parametrize(
    ("index", "count", "text"), [(0, 10, "0"), (3, 10, "0.3"), (1, 3, "1/3"), (3, 3, "1")]
)
def test_edges_of_bins_are_exact(index: int, count: int, text: str) -> None:
    assert format_edge(index, count) == text


def test_a_calibration_table_of_three_bins_is_written() -> None:
    plan = make_plan(
        plan_fields(
            ["c1"],
            [method("a"), constant()],
            calibration={"bins": 3, "edges": "right-closed"},
        )
    )
    made = Bench(plan).freeze({"c1": "yes"}).register().predict("a", {"c1": "0.2"})
    _, files = outputs(made.close().unseal())
    rows = table(files["calibration_a.csv"])
    assert [(r["low"], r["high"], r["n"]) for r in rows] == [
        ("0", "1/3", "1"),
        ("1/3", "2/3", "0"),
        ("2/3", "1", "0"),
    ]


def test_strata_are_scored_by_value() -> None:
    strata = ["domain", "deadline_days", "leakage_risk", "kind", "source_class"]
    plan = make_plan(plan_fields(["c1", "c2", "c3"], [method("n"), constant()], strata=strata))
    made = Bench(plan)
    made.freeze({"c1": "yes"}, domain="sport", deadline="2026-01-08T23:59:59.999999Z")
    made.freeze({"c2": "no"}, domain="sport", deadline="2026-01-09T23:59:59.999999Z")
    made.freeze({"c3": "yes"}, deadline=None).register()
    made.predict("n", {"c1": "0.5", "c2": "0.1", "c3": "1"})
    scores, _ = outputs(made.close().unseal())
    found = scores["strata"]
    assert found["domain"]["sport"] == {"n": 2, "brier": {"n": 0.13, "uniform": 0.25}}
    assert found["domain"]["not recorded"]["n"] == 1
    assert {name: row["n"] for name, row in found["deadline_days"].items()} == {
        "0-7": 1,
        "8-30": 1,
        "not recorded": 1,
    }
    assert list(found) == strata
