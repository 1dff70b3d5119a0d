"""The store port: what every ledger store promises, and the records that cross it.

A store keeps envelopes and payloads in order and knows nothing of their meaning. The promises are
run on every adapter by one conformance suite (tests/conformance/test_store.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from ledger.envelope import JSON_MEDIA, Envelope, EnvelopeFields


@dataclass(frozen=True, slots=True)
class Draft:
    """An event before the store gives it its place: no seq, no time, no hash."""

    type: str
    type_v: int
    stream: str
    payload: bytes
    actor: str
    media: str = JSON_MEDIA
    idem_key: str | None = None
    causation: str | None = None
    correlation: str | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """An event as stored. `salt` and `payload` are None once redacted.

    `fields` are the envelope's JSON fields; `envelope` builds the typed view when it is asked for,
    since a replay of a million events looks at three of the fields.
    """

    envelope_bytes: bytes
    leaf: bytes
    salt: bytes | None
    payload: bytes | None
    fields: EnvelopeFields

    @property
    def seq(self) -> int:
        """Position in the log and leaf index, from 0."""
        return self.fields["seq"]

    @property
    def type(self) -> str:
        """Wire name."""
        return self.fields["type"]

    @property
    def envelope(self) -> Envelope:
        """The whole envelope."""
        return Envelope.from_fields(self.fields)


@dataclass(frozen=True, slots=True)
class Head:
    """The last event: `size` = its seq + 1."""

    size: int
    leaf: bytes


EMPTY_HEAD = Head(size=0, leaf=b"\x00" * 32)


class Store(Protocol):
    """An append-only log of envelopes with payloads beside it."""

    def head(self) -> Head:
        """Return the present head, EMPTY_HEAD where nothing is stored."""

    def append(
        self, drafts: Iterable[Draft], *, expected_head: Head | None = None
    ) -> Sequence[int]:
        """Append all drafts or none, and return the seq of each.

        A draft whose idempotency key is stored with the same body (type, version, stream, medium
        and payload) returns the first event's seq.

        Raises:
            HeadMovedError: `expected_head` was given and is not the head any more.
            IdempotencyError: a key is stored with another body.
            WithheldError: the payload stored under a key is redacted and cannot be compared.
            BadInputError: a key twice in one append, or a draft that fits no envelope.
            LedgerFileError: the store is closed, or another writer holds the file for too long.
        """

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[Record]:
        """Yield the records with start <= seq < stop, in order, without loading them all.

        Seqs beyond either end are no error. What is appended meanwhile is not read.

        Raises:
            DamagedLedgerError: a gap, or bytes that do not match leaf, link or commitment.
            LedgerFileError: the store is closed.
        """

    def redact(self, target_seq: int, draft: Draft, *, expected_head: Head | None = None) -> int:
        """Append `draft` and delete salt and bytes of the target, both or neither.

        Raises:
            BadInputError: event 0, no such event, a payload that is gone already, or a draft whose
                idempotency key is stored already.
            HeadMovedError, LedgerFileError: as `append`.
        """

    def close(self) -> None:
        """Release the file; a closed store refuses everything."""
