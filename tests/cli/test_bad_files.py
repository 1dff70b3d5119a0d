"""Files and arguments that are wrong: one sentence with the place, exit 2, nothing half-written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from console import PILOT, Inside, Stage, contents, is_one_sentence, ledger

FILE = "bad.csv"
TAKES_A_FILE: tuple[tuple[object, ...], ...] = (
    ("preregister", FILE),
    ("amend", FILE, "--reason", "a rehearsal of refusals"),
    ("predictions", "import", FILE),
    ("unseal", FILE),
    ("unseal", "--vault", FILE),
    ("checkpoint", "--key", FILE),
    ("cards", "lint", FILE),
    ("cards", "freeze", FILE),
    ("seal", FILE),
    ("log", "--ledger", FILE),
    ("show", "0", "--ledger", FILE),
    ("prove", "0", "--ledger", FILE),
    ("replay", "--ledger", FILE),
    ("close", "--ledger", FILE),
)
KINDS = ("missing", "folder", "unreadable", "empty", "binary", "below a file")


@pytest.mark.parametrize("command", TAKES_A_FILE, ids=lambda c: " ".join(map(str, c[:2])))
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_cannot_be_used(
    stage: Stage, inside: Inside, command: tuple[str, ...], kind: str
) -> None:
    # Only a new process can give up the right to read what it may not.
    call = ledger if kind == "unreadable" else inside
    folder = stage("planned")
    name = "ledger.db/bad.csv" if kind == "below a file" else FILE
    make_bad(folder / FILE, kind)
    before = {} if kind == "unreadable" else contents(folder)
    run = call(*(name if part == FILE else part for part in command), cwd=folder)
    assert (run.code, run.out) == (2, ""), run
    assert is_one_sentence(run.err), run.err
    assert name in run.err
    if kind == "unreadable":
        (folder / FILE).chmod(0o600)
    else:
        assert contents(folder) == before


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "missing"])
def test_a_held_checkpoint_that_cannot_be_used(stages: dict[str, Path], kind: str) -> None:
    """A checkpoint that is none is never taken for a match: `verify` does not say sound."""
    folder = stages["closed"].parent / f"held-{kind}".replace(" ", "-")
    folder.mkdir(exist_ok=True)
    make_bad(folder / FILE, kind)
    target = stages["closed"] / "ledger.db"
    run = ledger("verify", target, "--checkpoint", folder / FILE, "--json", cwd=folder)
    assert run.code in {1, 2, 3}
    if run.code == 2:
        assert is_one_sentence(run.err)
    else:
        assert run.json["verdict"] in {"tampered", "unverifiable"}


@pytest.mark.parametrize("kind", KINDS)
def test_verify_never_says_zero_of_a_file_that_is_no_ledger(tmp_path: Path, kind: str) -> None:
    """docs/spec/verification.md: a missing, empty or foreign file is never 0."""
    make_bad(tmp_path / FILE, kind)
    run = ledger("verify", FILE, "--json", cwd=tmp_path)
    assert (run.code, run.json["verdict"]) == (3, "unverifiable")


@pytest.mark.parametrize(
    ("arguments", "phrase"),
    [
        (("nonsense",), "nonsense"),
        (("log", "--nonsense"), "--nonsense"),
        (("show",), "seq"),
        (("show", "minus"), "seq"),
        (("show", "-1"), "-1"),
        (("show", "9999"), "events 0 to 49"),
        (("prove", "9999"), "events 0 to 49"),
        (("log", "--start", "x"), "--start"),
        (("amend", PILOT / "plan.yaml"), "--reason"),
        (("amend", PILOT / "plan.yaml", "--reason", "short"), "reason"),
        (("annul", "001", "--reason", "bored", "--detail", "x"), "bored"),
        (("revise", "001", "--resolution", "maybe", "--reason", "x"), "maybe"),
        (("replay", "--compare", "uniform"), "A:B"),
        (("replay", "--compare", "uniform:nobody"), "nobody"),
        (("verify", "--key", "not a key"), "--key"),
        (("verify", "--workers", "0"), "workers"),
        (("cards", "show", "worldfork_pilot", "999"), "999"),
        (("cards", "list", "nowhere"), "nowhere"),
        (("init", "--ledger", "new.db", "--origin", "two words"), "two words"),
        (("init", "--ledger", "new.db", "--origin", ""), "name"),
        (("init", "--ledger", "nowhere/new.db"), "nowhere"),
        (("init", "--ledger", "."), "exists"),
        (("replay", "--out", "ledger.db"), "ledger.db"),
        (("checkpoint", "--out", "nowhere/c.txt"), "nowhere"),
        (("checkpoint", "--out", "."), "."),
        (("redact", "3", "--reason", ""), "reason"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_wrong_arguments(
    stage: Stage, inside: Inside, arguments: tuple[object, ...], phrase: str
) -> None:
    folder = stage("planned")
    before = contents(folder)
    run = inside(*arguments, cwd=folder)
    assert (run.code, run.out) == (2, "")
    assert is_one_sentence(run.err), run.err
    assert phrase in run.err
    assert contents(folder) == before


def test_no_command_shows_the_help(tmp_path: Path) -> None:
    run = ledger(cwd=tmp_path)
    assert run.code == 2
    assert "preregister" in run.err
    assert ledger("cards", cwd=tmp_path).err.startswith("Usage: ledger cards")


@pytest.mark.parametrize("actor", ["", "a" * 500, "line\nbreak", "naïve"])
def test_an_actor_that_is_no_name(tmp_path: Path, actor: str) -> None:
    run = ledger("init", cwd=tmp_path, env={"LEDGER_ACTOR": actor})
    assert run.code == 2
    assert is_one_sentence(run.err)
    assert contents(tmp_path) == {}


def test_a_read_only_folder_gets_no_ledger(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    run = ledger("init", cwd=tmp_path)
    tmp_path.chmod(0o700)
    assert run.code == 2
    assert is_one_sentence(run.err)
    assert contents(tmp_path) == {}


def test_a_key_that_others_can_read_signs_nothing(stage: Stage) -> None:
    folder = stage("opened")
    (folder / "ledger.key").chmod(0o644)
    run = ledger("checkpoint", cwd=folder)
    assert run.code == 2
    assert "chmod 600" in run.err


def test_a_damaged_ledger_is_named_and_gives_no_numbers(stage: Stage) -> None:
    folder = stage("unsealed")
    data = bytearray((folder / "ledger.db").read_bytes())
    at = data.index(b'"type":"predictions.closed"')
    data[at + 9] ^= 1
    (folder / "ledger.db").write_bytes(data)
    run = ledger("replay", "--json", cwd=folder)
    assert (run.code, run.out) == (1, "")
    assert is_one_sentence(run.err)
    assert "ledger verify" in run.err


def make_bad(path: Path, kind: str) -> None:
    if kind == "folder":
        path.mkdir(exist_ok=True)
    elif kind == "unreadable":
        path.write_text("plan_id: x\n", encoding="utf-8")
        path.chmod(0)
    elif kind == "empty":
        path.touch()
    elif kind == "binary":
        path.write_bytes(bytes(range(256)) * 4)
        path.chmod(0o600)
    os.utime(path.parent)
