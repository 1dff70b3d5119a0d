"""The integrity pass: leaf, link and payload commitment of each event, and the Merkle root.

Batches are checked whole. In canonical form commitment, length, media type, link and the start of
the time stand side by side in an envelope, and no string of it can hold a quote; so finding the one
byte string that they must form says that all of them are right. Only a batch in which anything is
wrong is looked at event by event.

Cost: three SHA-256 hashes an event, and little else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple, Protocol

from ledger.verify.envelope import JSON_MEDIA, Envelope, read_envelope
from ledger.verify.reading import MAX_READ_BYTES, HashRow, RawHashRow, Value
from ledger.verify.text import plural
from ledger.verify.tree import CHUNK, leaf_of, root_of

PAYLOAD_TAG = b"forecast-ledger/payload/v1\x00"
SALT_BYTES = 32
FIRST_PREV = b"\x00" * 32

_PREV = re.compile(rb'"prev":"([0-9a-f]{64})"')


class HashSource(Protocol):
    """Where the integrity pass reads from: a file, or rows in memory."""

    def hashed(self, start: int, stop: int) -> Iterator[list[RawHashRow]]:
        """Yield batches of rows with start <= seq < stop, in order of seq."""

    def envelope(self, seq: int) -> Value:
        """Return one envelope, however long."""

    def data(self, seq: int) -> Value:
        """Return one payload, however long."""


class Breach(NamedTuple):
    """A rule, the event that breaks it, and one sentence."""

    rule: str
    seq: int
    message: str


@dataclass(slots=True)
class RangeResult:
    """What was found in a range of events.

    Attributes:
        count: rows seen.
        chunk_roots: roots of the subtrees of 4096 leaves, the last possibly of fewer.
        breaches: what is wrong.
        payloads: payloads whose commitment was opened.
    """

    count: int = 0
    chunk_roots: list[bytes] = field(default_factory=list)
    breaches: list[Breach] = field(default_factory=list)
    payloads: int = 0


def check_range(source: HashSource, start: int, stop: int) -> RangeResult:
    """Check the events with start <= seq < stop; `start` is 0 or a multiple of 4096 in a whole log.

    The first link is compared with the hash of the envelope before, which is read once more.
    """
    result = RangeResult()
    before = source.envelope(start - 1) if start > 0 else None
    prev = leaf_of(before) if isinstance(before, bytes) else FIRST_PREV
    chunk: list[bytes] = []
    for batch in source.hashed(start, stop):
        leaves = _check_whole(batch, prev)
        if leaves is None:
            leaves = _check_each(source, batch, prev, result)
        else:
            result.payloads += len(batch)
        prev = leaves[-1]
        result.count += len(batch)
        chunk += leaves
        while len(chunk) >= CHUNK:
            result.chunk_roots.append(root_of(chunk[:CHUNK]))
            del chunk[:CHUNK]
    if chunk:
        result.chunk_roots.append(root_of(chunk))
    return result


def hash_range(source: HashSource, start: int, stop: int) -> list[bytes]:
    """Return the computed leaf hashes of the events with start <= seq < stop."""
    return [
        leaf_of(_whole_envelope(source, HashRow._make(row)))
        for batch in source.hashed(start, stop)
        for row in batch
    ]


def is_opened_by(commitment: str, salt: bytes, data: bytes, tag: bytes = PAYLOAD_TAG) -> bool:
    """Say whether salt and bytes open a commitment (docs/spec/commitments.md, rule 1)."""
    return len(salt) == SALT_BYTES and sha256(tag + salt + data).hexdigest() == commitment


def _check_whole(batch: Sequence[RawHashRow], prev: bytes) -> list[bytes] | None:
    """Return the leaves of a batch without any fault, None for any other."""
    try:
        leaves = [sha256(b"\x00" + row[1]).digest() for row in batch]  # type: ignore[operator]
        if leaves != [row[2] for row in batch]:
            return None
        links = [prev, *leaves]
        for (_, envelope, _, salt, data), link in zip(batch, links, strict=False):
            opened = sha256(PAYLOAD_TAG + salt + data).hexdigest()  # type: ignore[operator]
            needle = (
                f'"payload":{{"commitment":"{opened}","length":{len(data)},'  # type: ignore[arg-type]
                f'"media":"application/json"}},"prev":"{link.hex()}","recorded_at":"'
            )
            if needle.encode() not in envelope:  # type: ignore[operator]
                return None
    except TypeError:
        return None  # A value is missing, too long for the batch, or of a wrong type.
    return leaves


def _check_each(
    source: HashSource, batch: Sequence[RawHashRow], prev: bytes, result: RangeResult
) -> list[bytes]:
    leaves = []
    for row in map(HashRow._make, batch):
        envelope = _whole_envelope(source, row)
        leaf = leaf_of(envelope)
        if row.leaf != leaf:
            result.breaches.append(_changed_leaf(source, row, leaf))
        result.breaches += _check_link(row.seq, envelope, prev)
        fields, _ = read_envelope(envelope)
        if fields is not None:
            breaches = list(_check_payload(source, row, fields))
            result.breaches += breaches
            result.payloads += not breaches and row.data is not None
        leaves.append(leaf)
        prev = leaf
    return leaves


def _whole_envelope(source: HashSource, row: HashRow) -> bytes:
    if isinstance(row.envelope, bytes):
        return row.envelope
    value = source.envelope(row.seq)
    return value if isinstance(value, bytes) else b""


def _changed_leaf(source: HashSource, row: HashRow, leaf: bytes) -> Breach:
    """Name what was changed by the link of the next event (docs/spec/verification.md)."""
    after = source.envelope(row.seq + 1)
    match = _PREV.search(after) if isinstance(after, bytes) else None
    link = bytes.fromhex(match[1].decode()) if match else None
    if link == leaf:
        what = "the stored leaf was changed; the envelope is what the next event links to"
    elif link is not None and link == row.leaf:
        what = "the envelope was changed; the next event links to what it was"
    else:
        what = "the stored leaf is not the hash of the stored envelope"
    return Breach("log.leaf", row.seq, what)


def _check_link(seq: int, envelope: bytes, prev: bytes) -> Iterable[Breach]:
    match = _PREV.search(envelope)
    if match is None or bytes.fromhex(match[1].decode()) != prev:
        what = "64 zeros" if prev == FIRST_PREV else "the hash of the envelope before"
        yield Breach("log.prev", seq, f"the envelope's prev is not {what}")


def _check_payload(source: HashSource, row: HashRow, envelope: Envelope) -> Iterable[Breach]:
    salt, data = row.salt, row.data
    if isinstance(data, int):
        if data > MAX_READ_BYTES:
            return  # The structure pass reports it as payload.size.
        data = source.data(row.seq)
    if not isinstance(salt, bytes) or not isinstance(data, bytes):
        return  # Lost or redacted: the structure pass tells which.
    if len(data) != envelope.length:
        stored, said = plural(len(data), "byte"), f"{envelope.length:,}"
        yield Breach("payload.length", row.seq, f"the payload has {stored}, not {said}")
    if not is_opened_by(envelope.commitment, salt, data):
        kind = "payload" if envelope.media == JSON_MEDIA else f"{envelope.media} payload"
        yield Breach(
            "payload.commitment",
            row.seq,
            f"salt and bytes of the {kind} do not open the envelope's commitment",
        )
