"""The report: same bytes on every replay, marked pages, published figures, files that are whole."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import replay_ledgers
from replay_ledgers import Bench, constant, make_plan, method, plan_fields

from ledger.events.plan import PlanAmended
from scoring import report as report_module
from scoring.leaderboard import render_leaderboard
from scoring.report import HEAD_FILES, build_report, publish_report, report_files, write_report

DIGESTS = """
import hashlib, sys
sys.path.insert(0, {tests!r})
import replay_ledgers
from scoring.report import build_report, report_files
store = replay_ledgers.pilot().store
for name, pieces in report_files(build_report(store), store):
    print(name, hashlib.sha256(b"".join(pieces)).hexdigest())
"""


def digests(seed: str) -> str:
    tests = str(Path(__file__).parents[1])
    environment = os.environ | {"PYTHONHASHSEED": seed}
    command = [sys.executable, "-c", DIGESTS.format(tests=tests)]
    done = subprocess.run(
        command,
        check=True,
        capture_output=True,
        text=True,
        env=environment,
        cwd=Path(__file__).parents[2],
    )
    return done.stdout


def test_files_are_the_same_bytes_under_any_hash_seed() -> None:
    first = digests("0")
    assert first == digests("1")
    store = replay_ledgers.pilot().store
    here = [
        f"{name} {hashlib.sha256(b''.join(pieces)).hexdigest()}\n"
        for name, pieces in report_files(build_report(store), store)
    ]
    assert first == "".join(here)


def small(
    *, start: datetime = replay_ledgers.START, deadlines: tuple[str | None, ...] = (None, None),
    title: str = "Small",
) -> Bench:  # fmt: skip
    plan = make_plan(plan_fields(["c1", "c2"], [method("a"), constant()], title=title))
    made = Bench(plan, start=start)
    for card, deadline in zip(("c1", "c2"), deadlines, strict=True):
        made.freeze({card: "yes"}, deadline=deadline)
    return made.register().predict("a", {"c1": "0.9", "c2": "0.4"})


def page(made: Bench, **options: Any) -> str:
    report = build_report(made.session.store, **options)
    return render_leaderboard(report.scores, report.plan)


EARLY, LATE = "2026-02-01T23:59:59.999999Z", "2026-06-01T23:59:59.999999Z"


@pytest.mark.parametrize(
    ("deadlines", "sentence"),
    [
        ((EARLY, EARLY), "Registered after the last deadline: retrospective."),
        ((EARLY, None), "Registered after the last deadline: retrospective."),
        ((EARLY, LATE), "after the deadlines of 1 of 2 cards."),
        ((LATE, LATE), "before every deadline."),
        ((None, None), "no card has a deadline."),
    ],
)
def test_the_page_holds_registration_against_the_deadlines(
    deadlines: tuple[str | None, ...], sentence: str
) -> None:
    text = page(small(deadlines=deadlines).close().unseal())
    assert sentence in text
    retrospective = "retrospective" in sentence
    assert ("under a retrospective plan" in text) == retrospective


def test_the_plan_in_force_counts_and_amendments_are_shown() -> None:
    made = small(start=datetime(2026, 1, 5, tzinfo=UTC), deadlines=(EARLY, EARLY))
    assert "before every deadline" in page(made)
    seq = made.session.state().plan_seq
    assert seq is not None
    made.add(
        PlanAmended(
            plan=made.plan,
            source_sha256="1" * 64,
            amends_seq=seq,
            reason="a typing error",
            authority="tests",
        )
    )
    assert "amended 1 times" in page(made)


def test_nothing_unregistered_is_called_confirmatory() -> None:
    made = small(deadlines=(LATE, LATE)).close().unseal()
    text = page(made)
    assert "### a against uniform (primary, confirmatory)" in text
    other = make_plan(plan_fields(["c1", "c2"], [method("a"), method("b"), constant()]))
    wide = Bench(other).freeze({"c1": "yes", "c2": "no"}).register()
    wide.predict("a", {"c1": "0.9", "c2": "0.1"}).predict("b", {"c1": "0.5", "c2": "0.4"})
    shown = page(wide.close().unseal(), compare=[("uniform", "b")])
    assert "### uniform against b (exploratory)" in shown
    section = shown.split("### uniform against b")[1].split("## Multiplicity")[0]
    assert "confirmatory" not in section
    assert "Registered test" not in section
    assert "1 exploratory ones here" in shown


def test_published_reports_and_their_looks_are_counted() -> None:
    other = make_plan(plan_fields(["c1", "c2"], [method("a"), method("b"), constant()]))
    made = Bench(other).freeze({"c1": "yes", "c2": "no"}).register()
    made.predict("a", {"c1": "0.9", "c2": "0.1"}).predict("b", {"c1": "0.5", "c2": "0.4"})
    made.close().unseal()
    store = made.session.store
    first = build_report(store, compare=[("b", "uniform"), ("a", "uniform")])
    made.add(publish_report(first, store, authority="tests"))
    looks = build_report(store).scores["looks"]
    assert looks == {
        "confirmatory": 1,
        "exploratory": 0,
        "published_reports": 1,
        "published_exploratory": 2,
    }


def test_what_is_published_is_digested_but_for_the_files_that_name_the_head() -> None:
    made = small().close().unseal()
    store = made.session.store
    report = build_report(store)
    published = publish_report(report, store, authority="tests")
    made.add(published)
    again = dict(report_files(build_report(store), store))
    assert {table.name for table in published.tables} == set(again) - set(HEAD_FILES)
    for table in published.tables:
        assert hashlib.sha256(b"".join(again[table.name])).hexdigest() == table.sha256
    (a, uniform) = published.scores
    assert (a.brier, a.n) == ("0.185", 2)
    assert (uniform.brier, uniform.log) == ("0.25", "0.693147181")


def test_a_report_before_labels_open_publishes_nulls() -> None:
    made = small().close()
    published = publish_report(
        build_report(made.session.store), made.session.store, authority="tests"
    )
    assert {(row.n, row.brier, row.log) for row in published.scores} == {(0, None, None)}


def test_files_are_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = small().close().unseal()
    report = build_report(made.session.store)
    names = write_report(report, made.session.store, tmp_path / "out")
    assert sorted(names) == sorted(path.name for path in (tmp_path / "out").iterdir())

    def broken(*_: object) -> Iterator[tuple[str, Iterator[bytes]]]:
        def pieces() -> Iterator[bytes]:
            yield b"half"
            raise OSError("no space")

        yield "scores.json", pieces()

    before = (tmp_path / "out" / "scores.json").read_bytes()
    monkeypatch.setattr(report_module, "report_files", broken)
    with pytest.raises(OSError, match="no space"):
        write_report(report, made.session.store, tmp_path / "out")
    assert (tmp_path / "out" / "scores.json").read_bytes() == before
    assert len(list((tmp_path / "out").iterdir())) == len(names)


def test_a_title_cannot_break_the_page() -> None:
    text = page(small(title="One\n\n## Leaderboard\n| a | b").close().unseal())
    assert text.startswith("# One ## Leaderboard | a | b\n")
    assert text.count("\n## Leaderboard\n") == 1
