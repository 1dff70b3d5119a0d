"""Pipes, terminals and interrupts: a reader that leaves, a full disk, Ctrl-C, foreign text."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
from pathlib import Path

import pytest
from console import SCRIPT, Stage, clean_environment, contents, is_one_sentence, ledger, must


def shell(script: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a line of bash in which `ledger` is the console script."""
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", script],
        cwd=cwd,
        env=clean_environment({"PATH": f"{SCRIPT.parent}:{os.environ['PATH']}"}),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    "line",
    [
        "ledger log | head -1",
        "ledger log --json | head -1",
        "ledger show 49 | head -1",
        "ledger replay --json | head -c 10",
        "ledger log | true",
        "ledger verify ledger.db | true",
    ],
)
def test_a_reader_that_leaves_is_no_error(stages: dict[str, Path], line: str) -> None:
    done = shell(line, stages["unsealed"])
    assert (done.returncode, done.stderr) == (0, "")


def test_a_verdict_keeps_its_exit_code_when_the_reader_leaves(tmp_path: Path) -> None:
    done = shell("ledger verify nothing.db | true", tmp_path)
    assert (done.returncode, done.stderr) == (3, "")


def test_a_full_disk_is_told(stages: dict[str, Path]) -> None:
    done = shell("ledger log > /dev/full", stages["unsealed"])
    assert done.returncode == 2
    assert is_one_sentence(done.stderr)
    assert "space" in done.stderr


def test_closed_streams_do_no_harm(stage: Stage) -> None:
    folder = stage("unsealed")
    before = contents(folder)
    assert shell("ledger log >&- 2>&-", folder).returncode == 0
    assert shell("ledger show 9999 >&- 2>&-", folder).returncode == 2
    assert contents(folder) == before


def test_an_interrupt_while_reading_leaves_nothing(stage: Stage) -> None:
    folder = stage("planned")
    os.mkfifo(folder / "slow.csv")
    before = must("log", "--json", cwd=folder).out
    process = subprocess.Popen(
        [SCRIPT, "predictions", "import", "slow.csv"],
        cwd=folder,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # Opening blocks until the command opens the other end: from here on it waits for rows.
    with (folder / "slow.csv").open("w", encoding="utf-8") as file:
        file.write("card,method,p_yes\n001,direct_gpt54,0.5\n")
        file.flush()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (out, err) == ("", "ledger: interrupted; nothing was half-written.\n")
    (folder / "slow.csv").unlink()
    assert must("log", "--json", cwd=folder).out == before


@pytest.mark.parametrize("lines", [1, 3, 5, 7])
def test_an_interrupted_demo_can_be_run_again(tmp_path: Path, lines: int) -> None:
    """Ctrl-C after so many steps: the log is whole, and the next demo clears and succeeds."""
    process = subprocess.Popen(
        [SCRIPT, "demo", "--dir", "d"],
        cwd=tmp_path,
        env=clean_environment({"PYTHONUNBUFFERED": "1"}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for _ in range(lines):
        process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode in {0, 130}
    assert "Traceback" not in err
    rows = must("log", "--ledger", "d/ledger.db", "--json", cwd=tmp_path).json
    assert [row["seq"] for row in rows] == list(range(len(rows)))
    # All cards, all seals and all predictions: each batch whole or not at all.
    types = [row["type"] for row in rows]
    for name, size in (("card.frozen", 24), ("label.sealed", 24), ("label.unsealed", 24)):
        assert types.count(name) in {0, size}
    must("demo", "--dir", "d", cwd=tmp_path)


def test_output_is_plain_and_unwrapped_when_piped(stages: dict[str, Path]) -> None:
    for command in (("replay",), ("cards", "list", "worldfork_pilot"), ("doctor",), ("log",)):
        out = must(*command, cwd=stages["unsealed"], env={"COLUMNS": "40", "FORCE_COLOR": "1"}).out
        assert "\x1b" not in out
        assert "\r" not in out
        plain = must(*command, cwd=stages["unsealed"], env={"TERM": "dumb"}).out
        assert out == plain


def test_foreign_text_cannot_write_on_the_terminal(stage: Stage) -> None:
    folder = stage("unsealed")
    nasty = "all \x9b31m is \u202ewell\u2066"
    must("annul", "001", "--reason", "invalid", "--detail", nasty, cwd=folder)
    shown = ledger("show", "219", cwd=folder).out
    assert not {"\x9b", "\u202e", "\u2066"} & set(shown)
    assert "\\u202e" in shown
    assert must("show", "219", "--json", cwd=folder).json["payload"]["detail"] == nasty
    err = ledger("cards", "list", "no\x1b[31m\nsuch", cwd=folder).err
    assert "\x1b" not in err
    assert err.count("\n") == 1


def test_a_ledger_is_browsable_by_any_sqlite(stages: dict[str, Path], tmp_path: Path) -> None:
    """The design: any SQLite browser opens it; projections are tables with readable names."""
    copy = shutil.copy(stages["unsealed"] / "ledger.db", tmp_path)
    with sqlite3.connect(copy) as connection:
        (labels,) = connection.execute("SELECT COUNT(*) FROM labels WHERE label IN ('yes','no')")
        (predictions,) = connection.execute("SELECT COUNT(*) FROM predictions")
    connection.close()
    assert (labels[0], predictions[0]) == (24, 144)
