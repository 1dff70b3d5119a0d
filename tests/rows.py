"""Logs as rows: in memory, to be patched and verified without a file, and written to one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from builders import Book

from ledger.canonical import canonicalize_exact, parse_strict
from ledger.commitment import PAYLOAD_TAG
from ledger.store.port import Record
from ledger.store.sqlite import APPLICATION_ID, SCHEMA
from ledger.verify.check import Question, inspect_rows
from ledger.verify.integrity import check_range
from ledger.verify.reading import RawHashRow, Row, Value
from ledger.verify.report import Findings, Verification


@dataclass(frozen=True)
class Stored:
    """One event as it stands in the two tables."""

    seq: int
    envelope: bytes
    leaf: bytes
    prev: bytes
    type: str
    stream: str
    stream_seq: int
    idem_key: str | None
    salt: bytes | None
    data: bytes | None

    def row(self) -> Row:
        """As the structure pass reads it."""
        key = None if self.idem_key is None else self.idem_key.encode()
        return Row(
            self.seq,
            self.envelope,
            self.prev,
            self.type.encode(),
            self.stream.encode(),
            self.stream_seq,
            key,
            self.salt,
            self.data,
            self.seq,
        )


class Rows:
    """A log in memory, as the verifier's passes read it."""

    def __init__(self, stored: Iterable[Stored]) -> None:
        self.stored = list(stored)

    @classmethod
    def of(cls, book: Book) -> Rows:
        """The rows of a book."""
        return cls(stored_of(record) for record in book.records)

    def patch(self, seq: int, **columns: Any) -> Rows:
        """The same log with some columns of one event changed."""
        return Rows(replace(s, **columns) if s.seq == seq else s for s in self.stored)

    def hashed(self, start: int, stop: int) -> Iterator[RawHashRow]:
        """Yield rows as the integrity pass reads them."""
        for s in self.stored:
            if start <= s.seq < stop:
                yield s.seq, s.envelope, s.leaf, s.salt, s.data

    def rows(self) -> Iterator[Row]:
        """Yield rows as the structure pass reads them."""
        yield from (s.row() for s in self.stored)

    def envelope(self, seq: int) -> Value:
        """Return one envelope."""
        return next((s.envelope for s in self.stored if s.seq == seq), None)

    def verify(self, **question: Any) -> Verification:
        """Run the passes over the rows."""
        hashes = check_range(self, 0, len(self.stored) + 1)
        return inspect_rows(self, hashes, Findings(), Question(**question))

    def write(self, path: Path) -> Path:
        """Write a ledger file as the store does, without its checks."""
        conn = sqlite3.connect(path)
        conn.executescript(f"PRAGMA application_id = {APPLICATION_ID}; {SCHEMA}")
        with conn:
            for s in self.stored:
                columns = (s.seq, s.envelope, s.leaf, s.prev, s.type, s.stream, s.stream_seq)
                conn.execute(
                    "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (*columns, s.idem_key)
                )
                conn.execute("INSERT INTO payloads VALUES (?, ?, ?)", (s.seq, s.salt, s.data))
        conn.close()
        return path


def stored_of(record: Record) -> Stored:
    """The rows of one record."""
    e = record.envelope
    return Stored(
        e.seq,
        record.envelope_bytes,
        record.leaf,
        bytes.fromhex(e.prev),
        e.type,
        e.stream,
        e.stream_seq,
        e.idem_key,
        record.salt,
        record.payload,
    )


def forge(
    stored: Iterable[Stored],
    *,
    fields: Callable[[dict[str, Any]], None] | None = None,
    payload: Callable[[int, bytes], bytes] | None = None,
    spell: Callable[[int, bytes], bytes] | None = None,
) -> Rows:
    """Rewrite a log as its operator could: change it, and compute every hash anew.

    Args:
        stored: the events, possibly fewer or in another order; they are numbered anew.
        fields: changes an envelope's fields.
        payload: changes a payload's bytes.
        spell: changes an envelope's bytes after its fields are final, and before it is hashed.
    """
    out: list[Stored] = []
    prev = b"\x00" * 32
    for seq, old in enumerate(stored):
        data = old.data
        if payload is not None and data is not None:
            data = payload(seq, data)
        e = parse_strict(old.envelope)
        e |= {"seq": seq, "prev": prev.hex()}
        if data is not None and old.salt is not None:
            opened = sha256(PAYLOAD_TAG + old.salt + data).hexdigest()
            e["payload"] |= {"commitment": opened, "length": len(data)}
        if fields is not None:
            fields(e)
        envelope = canonicalize_exact(e)
        if spell is not None:
            envelope = spell(seq, envelope)
        leaf = sha256(b"\x00" + envelope).digest()
        out.append(
            replace(
                old,
                seq=seq,
                envelope=envelope,
                leaf=leaf,
                prev=prev,
                type=e["type"],
                stream=e["stream"],
                stream_seq=e["stream_seq"],
                idem_key=e["idem_key"],
                data=data,
            )
        )
        prev = leaf
    return Rows(out)


def breaches(result: Verification) -> set[str]:
    """Rules of the findings that make a log tampered or deviated."""
    grave = ("tampered", "deviated")
    return {finding.rule for finding in result.findings if finding.severity in grave}
