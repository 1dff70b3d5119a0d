"""`ledger replay --json`: the promised keys, and the same bytes on every machine and every time."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest
from console import METHODS, contents, must

from ledger.projections.registry import PROJECTIONS
from ledger.store.sqlite import PROJECTION_SNAPSHOTS

NUMBERS = {"n", "brier", "log", "ece", "auc", "mcb", "dsc", "unc"}


@pytest.fixture
def folder(demo: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(demo, tmp_path / "d"))


def test_replay_json_has_the_promised_keys(folder: Path) -> None:
    value = must("replay", "--ledger", "ledger.db", "--json", cwd=folder).json
    assert set(value["ledger"]) >= {"size", "root"}
    assert len(value["ledger"]["root"]) == 64
    assert set(value["scores"]) == set(METHODS)
    assert all(set(row) >= NUMBERS for row in value["scores"].values())
    assert sorted(value["leaderboard"]) == sorted(METHODS)
    assert "multiplicity" in value
    primary = value["paired"][0]
    assert set(primary) >= {"a", "b", "mean_difference", "sign", "permutation_p", "wilcoxon_p"}
    assert all(
        set(row) >= {"epsilon", "a_lower", "b_lower", "ties", "p"} for row in primary["sign"]
    )
    assert set(primary["bootstrap"]) >= {"percentile", "bca", "limit", "resamples", "seed"}
    for name in ("percentile", "bca", "limit"):
        low, high = primary["bootstrap"][name]
        assert low < primary["mean_difference"] < high


def test_replay_gives_the_papers_comparison(folder: Path) -> None:
    value = must("replay", "--json", cwd=folder).json
    pair = next(p for p in value["paired"] if {p["a"], p["b"]} == {"wf_branch", "wf_no_branch"})
    assert round(pair["sign"][0]["p"], 12) == 0.063914656639
    assert {pair["sign"][0]["a_lower"], pair["sign"][0]["b_lower"]} == {7, 17}
    assert [round(end, 3) for end in pair["bootstrap"]["limit"]] == [-0.065, 0.189]


def test_two_replays_are_the_same_bytes(folder: Path) -> None:
    first, second = (must("replay", "--json", cwd=folder).out for _ in range(2))
    assert first == second
    must("replay", "--out", "again", cwd=folder)
    assert contents(folder / "again") == contents(folder / "replay")
    assert first.encode() == (folder / "replay" / "scores.json").read_bytes()


def test_replay_needs_no_projected_table(folder: Path) -> None:
    """Projections are disposable: dropped and replayed, every byte comes back."""
    with sqlite3.connect(folder / "ledger.db") as connection:
        names = [projection.table for projection in PROJECTIONS] + [PROJECTION_SNAPSHOTS]
        before = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in names}
        for name in names:
            connection.execute(f"DROP TABLE {name}")
    connection.close()
    must("replay", "--out", "again", cwd=folder)
    assert contents(folder / "again") == contents(folder / "replay")
    must("annul", "001", "--reason", "withdrawn", "--detail", "to write once", cwd=folder)
    with sqlite3.connect(folder / "ledger.db") as connection:
        after = connection.execute("SELECT * FROM predictions").fetchall()
    connection.close()
    assert after == before["predictions"]


@pytest.mark.parametrize(
    "env",
    [
        {"PYTHONHASHSEED": "1", "TZ": "Asia/Kolkata", "LC_ALL": "C"},
        {"PYTHONHASHSEED": "4242", "TZ": "America/St_Johns", "LC_ALL": "POSIX", "LANG": "de_DE"},
        {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONUTF8": "0"},
        {"OMP_NUM_THREADS": "7", "OPENBLAS_NUM_THREADS": "7", "PYTHONIOENCODING": "ascii"},
        {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3"},
    ],
    ids=["hash and zone", "locale", "one thread", "seven threads", "an older processor"],
)
def test_replay_is_the_same_in_every_process(folder: Path, env: dict[str, str]) -> None:
    out = must("replay", "--json", "--out", "again", cwd=folder, env=env).out
    assert contents(folder / "again") == contents(folder / "replay")
    assert out.encode() == (folder / "replay" / "scores.json").read_bytes()


def test_replay_changes_nothing_in_the_folder(folder: Path) -> None:
    before = contents(folder)
    must("replay", cwd=folder)
    assert contents(folder) == before
