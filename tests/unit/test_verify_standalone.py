"""The verifier stands alone: bare Python, no trace on the file, one verdict for every input."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from builders import VKEY
from evaluations import closed, honest_book
from rows import Rows

import ledger.verify
from ledger.store.sqlite import SqliteStore
from ledger.verify.__main__ import main
from ledger.verify.check import verify_file
from ledger.verify.rules import INTEGRITY_RULES, NOTES, ORDER_RULES, RULES

REPOSITORY = Path(__file__).resolve().parents[2]
SPEC = REPOSITORY / "docs/spec"
_CRASHED = """
import os, sqlite3, sys
conn = sqlite3.connect(sys.argv[1])
conn.execute("PRAGMA journal_mode = WAL")
conn.execute("CREATE TABLE scores (brier TEXT)")
conn.commit()
conn.execute("DROP TRIGGER events_are_never_updated")
conn.execute("UPDATE events SET leaf = zeroblob(32) WHERE seq = 1")
conn.commit()
os._exit(0)
"""


def ledger_file(folder: Path) -> Path:
    """A small whole ledger."""
    return Rows.of(closed()).write(folder / "ledger.db")


def folder_state(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Names, times, sizes and bytes of all files in a folder."""
    return {
        each.name: (each.stat().st_mtime_ns, each.stat().st_size, each.read_bytes())
        for each in sorted(folder.iterdir())
    }


def run_bare(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a copy of the verifier with nothing but the standard library in reach."""
    copy = folder / "bare" / "ledger"
    if not copy.exists():
        copy.mkdir(parents=True)
        shutil.copy(REPOSITORY / "ledger/__init__.py", copy)
        source = Path(ledger.verify.__file__).parent
        shutil.copytree(source, copy / "verify", ignore=shutil.ignore_patterns("__pycache__"))
    start = (
        "import runpy, sys; sys.path.insert(0, sys.argv.pop(1));"
        " runpy.run_module('ledger.verify', run_name='__main__')"
    )
    command = [sys.executable, "-I", "-S", "-W", "error", "-c", start, str(copy.parent)]
    return subprocess.run(
        [*command, *arguments], capture_output=True, text=True, check=False, timeout=60
    )


def test_bare_python_is_enough(tmp_path: Path) -> None:
    """`python -m ledger.verify FILE` needs the standard library alone."""
    path = Rows.of(honest_book()).write(tmp_path / "ledger.db")
    done = run_bare(tmp_path, str(path), "--json")
    assert (done.returncode, done.stderr) == (0, "")
    value = json.loads(done.stdout)
    assert value["verdict"] == "unanchored"
    assert list(value) == ["verdict", "size", "root", "findings", "proved", "not_proved"]
    assert value["size"] == 60
    rules = {finding["rule"] for finding in value["findings"]}
    assert rules == {"payload.withheld", "checkpoint.unchecked"}


def test_without_a_library_a_signature_is_unverifiable(tmp_path: Path) -> None:
    """Without `cryptography` a signature is *unverifiable*, never silently fine."""
    book = closed()
    path = Rows.of(book).write(tmp_path / "ledger.db")
    note = tmp_path / "checkpoint"
    note.write_text(book.checkpoint(), encoding="utf-8")
    done = run_bare(tmp_path, str(path), "--checkpoint", str(note), "--key", VKEY)
    assert done.returncode == 3
    assert "checkpoint.unverifiable" in done.stdout
    assert "cryptography" in done.stdout


def test_the_verifier_imports_nothing_else_of_the_project() -> None:
    for source in Path(ledger.verify.__file__).parent.glob("*.py"):
        text = source.read_text(encoding="utf-8")
        for name in re.findall(r"^\s*(?:from|import) ([\w.]+)", text, re.MULTILINE):
            root = name.split(".")[0]
            allowed = root in sys.stdlib_module_names or name.startswith("ledger.verify")
            assert allowed or root == "cryptography", f"{source.name} imports {name}"


def table(page: str, section: str) -> dict[str, tuple[str, ...]]:
    """The cells of the first table under a heading, by the id in the first column."""
    text = (SPEC / page).read_text(encoding="utf-8").split(f"\n## {section}\n", 1)[1]
    rows = re.findall(r"^\| `([a-z.-]+)` \| (.*) \|$", text.split("\n## ")[0], re.MULTILINE)
    return {rule: tuple(cells.split(" | ")) for rule, cells in rows}


def test_the_rules_are_those_of_the_specification_word_for_word() -> None:
    integrity = {r.id: (r.severity, r.statement) for r in INTEGRITY_RULES}
    assert integrity == table("verification.md", "Rules")
    assert {r.id: (r.statement,) for r in ORDER_RULES} == table("events.md", "Order rules")
    assert {r.id: (r.statement,) for r in NOTES} == table("events.md", "Notes")
    assert len(RULES) == len(INTEGRITY_RULES) + len(ORDER_RULES) + len(NOTES)


def test_a_ledger_at_rest_is_left_as_it_was(tmp_path: Path) -> None:
    """The file is opened read-only and MUST be left as it was, folder included."""
    path = ledger_file(tmp_path)
    conn = sqlite3.connect(path)
    conn.execute("PRAGMA journal_mode = WAL")
    conn.close()
    before = folder_state(tmp_path)
    assert list(before) == ["ledger.db"]
    assert verify_file(path).verdict == "unanchored"
    assert folder_state(tmp_path) == before


@pytest.mark.parametrize("shared_memory", [True, False])
def test_content_in_a_write_ahead_log_is_part_of_the_file(
    tmp_path: Path, *, shared_memory: bool
) -> None:
    """Content in a write-ahead log beside the file is part of it."""
    path = ledger_file(tmp_path)
    subprocess.run([sys.executable, "-c", _CRASHED, str(path)], check=True)
    assert (tmp_path / "ledger.db-wal").stat().st_size > 0
    if not shared_memory:
        (tmp_path / "ledger.db-shm").unlink()
    before = folder_state(tmp_path)
    result = verify_file(path)
    assert ("log.leaf", 1) in {(f.rule, f.seq) for f in result.findings}
    after = folder_state(tmp_path)
    before.pop("ledger.db-shm", None)
    after.pop("ledger.db-shm", None)  # A lock in it is how readers and writers share a log.
    assert before == after


def test_a_hot_journal_is_rolled_back_in_a_copy(tmp_path: Path) -> None:
    """Content in a rollback journal beside the file is part of it."""
    path = ledger_file(tmp_path)
    whole = path.read_bytes()
    conn = sqlite3.connect(path, isolation_level=None)
    conn.execute("PRAGMA cache_size = 1")
    conn.execute("PRAGMA cache_spill = 1")
    conn.execute("DROP TRIGGER events_are_never_updated")
    conn.execute("BEGIN IMMEDIATE")
    conn.execute("UPDATE events SET leaf = zeroblob(32)")
    conn.execute("CREATE TABLE filler AS SELECT randomblob(50000) AS b FROM events")
    torn, journal = path.read_bytes(), (tmp_path / "ledger.db-journal").read_bytes()
    conn.close()
    assert journal
    assert torn != whole
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    (crashed / "ledger.db").write_bytes(torn)
    (crashed / "ledger.db-journal").write_bytes(journal)
    before = folder_state(crashed)
    result = verify_file(crashed / "ledger.db")
    assert {f.rule for f in result.findings} <= {"store.guard", "label.sealed"}
    assert folder_state(crashed) == before


def test_a_living_writer_is_no_damage(tmp_path: Path) -> None:
    path = ledger_file(tmp_path)
    conn = sqlite3.connect(path, isolation_level=None)
    conn.execute("PRAGMA journal_mode = WAL")
    conn.execute("CREATE TABLE scores (brier TEXT)")
    conn.execute("BEGIN IMMEDIATE")
    conn.execute("INSERT INTO scores VALUES ('0.09')")
    assert verify_file(path).verdict == "unanchored"
    conn.execute("COMMIT")
    conn.close()


def test_a_ledger_of_the_store_verifies(tmp_path: Path) -> None:
    """Writer and verifier meet in bytes alone."""
    book = honest_book()
    path = Rows.of(book).write(tmp_path / "copy.db")
    clock, entropy = book.store._clock, book.entropy
    store = SqliteStore(path, clock=clock, entropy=entropy)
    assert store.head() == book.store.head()
    store.close()
    result = verify_file(path, checkpoint_text=book.checkpoint())
    assert (result.verdict, result.exit_code) == ("withheld", 0)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], 0),
        (["--require-anchor"], 3),
        (["--json"], 0),
        (["--workers", "2"], 0),
    ],
)
def test_the_command_line_returns_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int
) -> None:
    path = ledger_file(tmp_path)
    assert main([str(path), *arguments]) == code
    out = capsys.readouterr().out
    assert "unanchored" in out
    assert out.isascii()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["file", "--workers", "0"],
        ["file", "--workers", "9" * 5000],
        ["file", "--key", "PRIVATE+KEY+name+00000000+c2VjcmV0"],
        ["file", "--checkpoint", "/nonexistent/checkpoint"],
    ],
)
def test_wrong_arguments_are_usage_and_repeat_no_secret(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    """2 is the exit code of wrong arguments."""
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "c2VjcmV0" not in capsys.readouterr().err


def test_hostile_text_is_escaped_on_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    book = closed()
    book.add_bytes("weather.observed", b'{"\xe2\x80\xae":"\\u001b[2J"}')
    path = Rows.of(book).write(tmp_path / "ledger\x1b[2J.db")
    main([str(path)])
    main([str(path) + "none"])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert out.isascii()


def test_a_reader_who_stops_reading_is_no_error(tmp_path: Path) -> None:
    path = ledger_file(tmp_path)
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = [sys.executable, "-m", "ledger.verify", str(path)]
    with os.fdopen(write_end, "wb") as closed_pipe:
        done = subprocess.run(
            command, stdout=closed_pipe, stderr=subprocess.PIPE, cwd=REPOSITORY, check=False
        )
    assert (done.returncode, done.stderr) == (0, b"")
