"""The integrity pass: leaf, link and payload commitment of each event, and the Merkle root.

One tight loop does the work. In canonical form commitment, length, media type, link and the start
of the time stand side by side in an envelope, and no string of it can hold a quote; so finding the
one byte string that they must form says that all of them are right. Only an event that does not
pass is looked at closely.

Cost: three SHA-256 hashes an event, and half as much again; benchmarks/integrity.py measures it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from typing import NamedTuple, Protocol

from ledger.verify.envelope import JSON_MEDIA, Envelope, read_envelope
from ledger.verify.reading import HashRow, RawHashRow, Value
from ledger.verify.text import plural
from ledger.verify.tree import CHUNK, leaf_of, root_of

PAYLOAD_TAG = b"forecast-ledger/payload/v1\x00"
SALT_BYTES = 32
FIRST_PREV = b"\x00" * 32

_PREV = re.compile(rb'"prev":"([0-9a-f]{64})"')


class HashSource(Protocol):
    """Where the integrity pass reads from: a file, or rows in memory."""

    def hashed(self, start: int, stop: int) -> Iterator[RawHashRow]:
        """Yield rows with start <= seq < stop, in order of seq."""

    def envelope(self, seq: int) -> Value:
        """Return one envelope of at most 64 MiB, None where there is none."""


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
    rows = iter(source.hashed(start, stop))
    while True:
        whole = len(chunk)
        odd = _check_run(islice(rows, CHUNK - whole), prev, chunk)
        result.payloads += len(chunk) - whole
        prev = chunk[-1] if chunk else prev
        if odd is not None:
            prev = _check_one(source, HashRow._make(odd), prev, result)
            chunk.append(prev)
        elif len(chunk) < CHUNK:
            break
        if len(chunk) == CHUNK:
            result.count += CHUNK
            result.chunk_roots.append(root_of(chunk))
            chunk.clear()
    if chunk:
        result.count += len(chunk)
        result.chunk_roots.append(root_of(chunk))
    return result


def hash_range(source: HashSource, start: int, stop: int) -> list[bytes]:
    """Return the computed leaf hashes of the events with start <= seq < stop."""
    return [
        leaf_of(_whole_envelope(source, HashRow._make(row))) for row in source.hashed(start, stop)
    ]


def is_opened_by(commitment: str, salt: bytes, data: bytes, tag: bytes = PAYLOAD_TAG) -> bool:
    """Say whether salt and bytes open a commitment (docs/spec/commitments.md, rule 1)."""
    return len(salt) == SALT_BYTES and sha256(tag + salt + data).hexdigest() == commitment


def _check_run(rows: Iterable[RawHashRow], prev: bytes, leaves: list[bytes]) -> RawHashRow | None:
    """Append the leaves of rows without fault to `leaves`, up to the first other row.

    Returns:
        The row that did not pass, None where all did.
    """
    row: RawHashRow | None = None
    place = 0
    append = leaves.append
    try:
        for row in rows:
            _, envelope, leaf, salt, data = row
            opened = sha256(PAYLOAD_TAG + salt + data).hexdigest()  # type: ignore[operator]
            needle = (
                f'"payload":{{"commitment":"{opened}","length":{len(data)},'  # type: ignore[arg-type]
                f'"media":"application/json"}},"prev":"{prev.hex()}","recorded_at":"'
            ).encode()
            # It mostly stands where it stood in the event before.
            if not envelope.startswith(needle, place):  # type: ignore[union-attr]
                place = envelope.find(needle)  # type: ignore[union-attr]
                if place < 0:
                    return row
            prev = sha256(b"\x00" + envelope).digest()  # type: ignore[operator]
            if prev != leaf:
                return row
            append(prev)
    except (TypeError, AttributeError):
        return row  # A value is missing, too long to be read at once, or of a wrong type.
    return None


def _check_one(source: HashSource, row: HashRow, prev: bytes, result: RangeResult) -> bytes:
    """Look closely at one event, and return its computed leaf."""
    envelope = _whole_envelope(source, row)
    leaf = leaf_of(envelope)
    if row.leaf != leaf:
        result.breaches.append(_changed_leaf(source, row, leaf))
    result.breaches += _check_link(row.seq, envelope, prev)
    fields, _ = read_envelope(envelope)
    if fields is not None:
        breaches = list(_check_payload(row, fields))
        result.breaches += breaches
        result.payloads += not breaches and isinstance(row.data, bytes)
    return leaf


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


def _check_payload(row: HashRow, envelope: Envelope) -> Iterable[Breach]:
    salt, data = row.salt, row.data
    if isinstance(data, int):
        # Too long to be read: its commitment is not checked, which is `payload.size`.
        if data != envelope.length:
            yield _wrong_length(row.seq, data, envelope)
        return
    if not isinstance(salt, bytes) or not isinstance(data, bytes):
        return  # Lost or redacted: the structure pass tells which.
    if len(data) != envelope.length:
        yield _wrong_length(row.seq, len(data), envelope)
    if not is_opened_by(envelope.commitment, salt, data):
        kind = "payload" if envelope.media == JSON_MEDIA else f"{envelope.media} payload"
        yield Breach(
            "payload.commitment",
            row.seq,
            f"salt and bytes of the {kind} do not open the envelope's commitment",
        )


def _wrong_length(seq: int, length: int, envelope: Envelope) -> Breach:
    what = f"the payload has {plural(length, 'byte')}, not {envelope.length:,}"
    return Breach("payload.length", seq, what)
