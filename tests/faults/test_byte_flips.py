"""Flip every byte of every envelope, payload, salt and leaf, and demand the named finding."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from evaluations import closed, honest_book
from rows import Rows, Stored

from ledger.verify.check import verify_file
from ledger.verify.report import Verification

COLUMNS = ("envelope", "data", "salt", "leaf")


def small_log() -> Rows:
    """Eight events of a whole evaluation."""
    book = closed()
    book.unseal("a")
    return Rows.of(book)


SMALL = small_log()
LAST = SMALL.stored[-1].seq


def flip(stored: Stored, column: str, place: int, mask: int) -> bytes:
    """The column with some bits of one byte flipped."""
    data = bytearray(getattr(stored, column))
    data[place] ^= mask
    return bytes(data)


def grave(result: Verification) -> set[tuple[str, int | None]]:
    """Rule and seq of what makes a log tampered."""
    return {(f.rule, f.seq) for f in result.findings if f.severity == "tampered"}


def demand(stored: Stored, column: str, place: int, mask: int) -> None:
    """One flip has to be found, first, at its event and under its name."""
    seq = stored.seq
    result = SMALL.patch(seq, **{column: flip(stored, column, place, mask)}).verify()
    found = grave(result)
    where = f"{column} of event {seq}, byte {place}, mask {mask}"
    assert result.verdict == "tampered", where
    assert result.exit_code == 1, where
    first = result.findings[0]
    assert (first.severity, first.seq) == ("tampered", seq), where
    if column == "leaf":
        assert found == {("log.leaf", seq)}, where
        changed = "hash of the stored envelope" if seq == LAST else "stored leaf was changed"
        assert changed in first.message, where
    elif column == "envelope":
        assert ("log.leaf", seq) in found, where
        assert seq == LAST or ("log.prev", seq + 1) in found, where
    else:
        assert ("payload.commitment", seq) in found, where


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("seq", range(len(SMALL.stored)))
def test_every_flipped_byte_is_found(seq: int, column: str) -> None:
    """`leaf = SHA-256(0x00 || envelope)`; `prev` MUST be the leaf of the event before."""
    stored = SMALL.stored[seq]
    for place in range(len(getattr(stored, column))):
        demand(stored, column, place, 0x01)


@pytest.mark.parametrize("column", COLUMNS)
def test_every_flipped_bit_of_one_event_is_found(column: str) -> None:
    stored = SMALL.stored[2]
    for place in range(0, len(getattr(stored, column)), 3):
        for bit in range(8):
            demand(stored, column, place, 1 << bit)


@pytest.mark.parametrize("column", COLUMNS)
def test_a_flip_in_a_file_is_found_there(column: str, tmp_path: Path) -> None:
    stored = SMALL.stored[4]
    path = SMALL.write(tmp_path / "ledger.db")
    conn = sqlite3.connect(path)
    conn.execute("DROP TRIGGER events_are_never_updated")
    table, name = ("events", column) if column in ("envelope", "leaf") else ("payloads", column)
    sql_name = "bytes" if name == "data" else name
    flipped = flip(stored, column, 7, 0x10)
    conn.execute(f"UPDATE {table} SET {sql_name} = ? WHERE seq = 4", (flipped,))
    conn.commit()
    conn.close()
    result = verify_file(path)
    rule = "log.leaf" if table == "events" else "payload.commitment"
    assert (rule, 4) in grave(result)
    assert result.exit_code == 1
    assert ("store.guard", None) in {(f.rule, f.seq) for f in result.findings}


def test_a_flip_deep_in_a_long_log_is_found() -> None:
    """Batches that are whole are skipped as a whole; one bit in one of them is not."""
    book = honest_book()
    rows = Rows.of(book)
    for stored in rows.stored[:: len(rows.stored) // 10]:
        if stored.data is None:
            continue
        flipped = flip(stored, "data", len(stored.data) // 2, 0x40)
        found = grave(rows.patch(stored.seq, data=flipped).verify())
        assert ("payload.commitment", stored.seq) in found


def damage(data: bytes) -> Iterator[bytes]:
    """A file with single bytes flipped all over it, cut at many places, and with pages mixed up."""
    for place in range(3, len(data), 331):
        yield data[:place] + bytes([data[place] ^ 0xA5]) + data[place + 1 :]
    for size in range(0, len(data), 1777):
        yield data[:size]
    for page in range(0, len(data), 4096):
        yield data[:page] + data[:4096] + data[page + 4096 :]
        yield data[:page] + b"\xff" * 4096 + data[page + 4096 :]


def test_a_damaged_file_gets_a_verdict_and_never_a_better_one(tmp_path: Path) -> None:
    """A verifier MUST NOT end in any other way than with a verdict, whatever bytes it is given."""
    path = SMALL.write(tmp_path / "ledger.db")
    whole = verify_file(path)
    assert whole.exit_code == 0
    seen = set()
    for data in damage(path.read_bytes()):
        path.write_bytes(data)
        result = verify_file(path)
        seen.add(result.verdict)
        # What still passes holds the same events: the damage was in pages of no weight.
        assert result.exit_code in (1, 3) or result.root == whole.root
    assert seen == {"tampered", "unverifiable", "unanchored"}
