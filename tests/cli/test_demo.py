"""`ledger demo`: the fixed surface that outsiders rely on, and what it must never overwrite."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from console import METHODS, contents, is_one_sentence, ledger, must

REPLAYED = {
    "scores.json",
    "predictions.jsonl",
    "per_card.csv",
    "strategy_summary.csv",
    "audit_vectors.csv",
    "leaderboard.md",
    "run_config_snapshot.json",
    *(f"calibration_{method}.csv" for method in METHODS),
}


def test_demo_leaves_the_promised_files(demo: Path) -> None:
    assert {path.name for path in demo.iterdir()} >= {
        "ledger.db",
        "vault.db",
        "ledger.key",
        "checkpoint.txt",
        "replay",
    }
    assert (demo / "vault.db").stat().st_mode & 0o777 == 0o600
    assert (demo / "ledger.key").stat().st_mode & 0o777 == 0o600
    assert {path.name for path in (demo / "replay").iterdir()} >= REPLAYED
    assert not list(demo.rglob("*tampered*"))


def test_demo_prints_seven_rows_and_a_verdict(tmp_path: Path) -> None:
    out = must("demo", "--dir", "d", cwd=tmp_path).out
    head = next(n for n, line in enumerate(out.splitlines()) if line.startswith("method"))
    rows = [line.split() for line in out.splitlines()[head + 1 : head + 8]]
    assert rows[0][0] == "blend_50_50"
    assert sorted(row[0] for row in rows) == sorted(METHODS)
    assert all(row[1] == "24" for row in rows)
    assert "14 of 14 cells recompute" in out
    assert "event 100, log.leaf: the envelope was changed" in out
    assert "\x1b" not in out


def test_demo_runs_twice_in_one_folder(tmp_path: Path) -> None:
    must("demo", "--dir", "d", cwd=tmp_path)
    first = contents(tmp_path)
    must("demo", "--dir", "d", cwd=tmp_path)
    assert contents(tmp_path).keys() == first.keys()


def test_demo_refuses_a_folder_with_a_real_ledger(tmp_path: Path) -> None:
    must("init", "--origin", "forecast-ledger.local/demo2", cwd=tmp_path)
    before = contents(tmp_path)
    run = ledger("demo", "--dir", ".", cwd=tmp_path)
    assert (run.code, run.out) == (2, "")
    assert is_one_sentence(run.err)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", ["ledger.db", "vault.db", "ledger.key", "checkpoint.txt"])
def test_demo_refuses_files_that_are_not_its_own(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine", encoding="utf-8")
    run = ledger("demo", "--dir", ".", cwd=tmp_path)
    assert run.code == 2
    assert name in run.err
    assert contents(tmp_path) == {name: b"mine"}


def test_demo_verifies_against_the_checkpoint_that_it_leaves(demo: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(demo, tmp_path / "d")
    run = ledger("verify", "ledger.db", "--checkpoint", "checkpoint.txt", "--json", cwd=folder)
    assert (run.code, run.json["verdict"]) == (0, "sound")
    assert contents(folder) == contents(demo)


def test_demo_scores_are_those_of_the_published_table(demo: Path) -> None:
    scores = json.loads((demo / "replay" / "scores.json").read_text(encoding="utf-8"))
    printed = {
        "wf_branch": (0.214, 0.581),
        "wf_no_branch": (0.282, 0.725),
        "uniform": (0.25, 0.693),
    }
    for method, (brier, log) in printed.items():
        row = scores["scores"][method]
        assert (round(row["brier"], 3), round(row["log"], 3)) == (brier, log)
