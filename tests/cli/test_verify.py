"""`ledger verify`: the promised JSON, the exit codes, and checkpoints kept outside."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from console import Stage, contents, ledger, must


def test_verify_json_has_the_promised_keys(demo: Path) -> None:
    value = must("verify", demo / "ledger.db", "--json", cwd=demo).json
    assert set(value) == {"verdict", "size", "root", "findings", "proved", "not_proved"}
    assert (value["verdict"], value["size"]) == ("unanchored", 221)
    assert all({"rule", "seq", "message"} <= set(finding) for finding in value["findings"])
    assert value["proved"]
    assert value["not_proved"]
    assert value["root"] == must("prove", "0", "--json", cwd=demo).json["root"]


def test_the_file_is_named_by_argument_option_or_environment(stages: dict[str, Path]) -> None:
    folder = stages["closed"]
    target = folder / "ledger.db"
    runs = [
        must("verify", target, "--json", cwd=folder.parent),
        must("verify", "--ledger", target, "--json", cwd=folder.parent),
        must("verify", "--json", cwd=folder.parent, env={"LEDGER": str(target)}),
        must("verify", "--json", cwd=folder),
    ]
    assert len({run.out for run in runs}) == 1


def test_the_text_ends_with_what_is_not_proved(demo: Path) -> None:
    out = must("verify", "ledger.db", "--checkpoint", "checkpoint.txt", cwd=demo).out
    assert out.startswith("sound")
    assert out.index("Proved") < out.index("Not proved")


def test_an_anchor_can_be_required(demo: Path) -> None:
    assert ledger("verify", "ledger.db", "--require-anchor", cwd=demo).code == 3
    held = ("--checkpoint", "checkpoint.txt", "--require-anchor")
    assert ledger("verify", "ledger.db", *held, cwd=demo).code == 0


def test_an_older_checkpoint_holds_a_longer_log(demo: Path) -> None:
    run = ledger("verify", "--checkpoint", "checkpoint-before-labels.txt", "--json", cwd=demo)
    assert (run.code, run.json["verdict"]) == (0, "sound")
    assert "checkpoint.uncovered" in {finding["rule"] for finding in run.json["findings"]}


def test_a_flipped_byte_is_tampering_at_its_event(stage: Stage) -> None:
    folder = stage("unsealed")
    with sqlite3.connect(folder / "ledger.db") as connection:
        connection.execute("DROP TRIGGER events_are_never_updated")
        (data,) = connection.execute("SELECT envelope FROM events WHERE seq = 77").fetchone()
        data = data[:60] + bytes([data[60] ^ 1]) + data[61:]
        connection.execute("UPDATE events SET envelope = ? WHERE seq = 77", (data,))
    connection.close()
    run = ledger("verify", "--json", cwd=folder)
    assert (run.code, run.json["verdict"]) == (1, "tampered")
    assert run.json["findings"][0]["rule"] == "log.leaf"
    assert run.json["findings"][0]["seq"] == 77


def test_a_rewritten_history_does_not_match_a_kept_checkpoint(stage: Stage) -> None:
    """A log that was made anew is consistent in itself; only a checkpoint kept outside shows it."""
    first, second = stage("closed"), stage("opened")
    must("checkpoint", "--out", "kept.txt", cwd=first)
    run = ledger("verify", second / "ledger.db", "--checkpoint", first / "kept.txt", cwd=first)
    assert run.code == 1
    assert "checkpoint.truncated" in run.out


def test_a_redacted_payload_is_withheld_and_not_tampered(stage: Stage) -> None:
    folder = stage("closed")
    must("redact", "100", "--reason", "holds a name", cwd=folder)
    must("checkpoint", "--out", "kept.txt", cwd=folder)
    run = ledger("verify", "--checkpoint", "kept.txt", "--json", cwd=folder)
    assert (run.code, run.json["verdict"]) == (0, "withheld")


def test_a_label_opened_under_a_waiver_is_noted(stage: Stage) -> None:
    folder = stage("planned")
    must("unseal", "--waiver", "a rehearsal of deviation", cwd=folder)
    must("close", "--missing", "never run", cwd=folder)
    run = ledger("verify", "--json", cwd=folder)
    assert (run.code, run.json["verdict"]) == (0, "unanchored")
    assert "label.waiver" in {finding["rule"] for finding in run.json["findings"]}


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_give_the_same_answer(demo: Path, workers: int) -> None:
    one = must("verify", "--json", cwd=demo).out
    assert must("verify", "--json", "--workers", workers, cwd=demo).out == one


def test_verify_leaves_the_folder_as_it_was(stage: Stage) -> None:
    folder = stage("unsealed")
    before = contents(folder)
    must("verify", cwd=folder)
    assert contents(folder) == before
