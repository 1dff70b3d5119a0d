"""Give drafts their place in the log: pure, and the same for every store.

Time, ids and salts come in as arguments. Cost: about 8 us an event, most of it formatting and two
SHA-256 hashes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from ledger.canonical import MAX_INTEGER
from ledger.clock import Clock, format_moment
from ledger.commitment import PAYLOAD_TAG, SALT_BYTES, commit
from ledger.envelope import (
    FIRST_PREV,
    MAX_ENVELOPE_BYTES,
    check_token,
    encode_fields,
    leaf_of,
)
from ledger.errors import BadInputError, IdempotencyError, WithheldError
from ledger.ids import RANDOM_BYTES, Entropy, format_uuid7
from ledger.store.port import Draft, Head, Record

MAX_PAYLOAD_BYTES = 64 * 1024 * 1024
"""Longest payload that a verifier reads (docs/spec/verification.md, `payload.size`)."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Stamp:
    """What an append takes from outside: one moment for the whole batch, and randomness."""

    recorded_at: str
    unix_ms: int
    entropy: Entropy

    @classmethod
    def take(cls, clock: Clock, entropy: Entropy) -> Stamp:
        """Ask the clock once; the milliseconds are those of the text, rounded down."""
        moment = clock()
        return cls(format_moment(moment), (moment - _EPOCH) // _MILLISECOND, entropy)


class Placed(NamedTuple):
    """An event with its place: the columns of `events`, then salt and payload bytes."""

    seq: int
    envelope: bytes
    leaf: bytes
    prev: bytes
    type: str
    stream: str
    stream_seq: int
    idem_key: str | None
    salt: bytes
    payload: bytes


def place_drafts(
    drafts: Iterable[Draft],
    *,
    log: str,
    head: Head,
    stamp: Stamp,
    stream_size: Callable[[str], int],
    checked: set[str],
) -> Iterator[Placed]:
    """Yield the drafts with their places, chained from `head`.

    `stream_size` says how many events a stream holds before this batch; it is asked once a stream.
    `checked` holds the tokens that were found fit for an envelope, and gains those of this batch.

    Raises:
        BadInputError: a token or version unfit for an envelope, an envelope over 16 KiB, or a
            payload over 64 MiB.
    """
    seq = head.size
    prev = head.leaf if head.size else bytes.fromhex(FIRST_PREV)
    sizes: dict[str, int] = {}
    for draft in drafts:
        stream_seq = sizes.get(draft.stream)
        if stream_seq is None:
            stream_seq = stream_size(draft.stream)
        _check_draft(draft, checked)
        random_bytes = stamp.entropy(RANDOM_BYTES + SALT_BYTES)
        salt = random_bytes[RANDOM_BYTES:]
        data = encode_fields(
            log=log,
            seq=seq,
            event_id=format_uuid7(stamp.unix_ms, random_bytes[:RANDOM_BYTES]),
            event_type=draft.type,
            type_v=draft.type_v,
            stream=draft.stream,
            stream_seq=stream_seq,
            actor=draft.actor,
            recorded_at=stamp.recorded_at,
            idem_key=draft.idem_key,
            causation=draft.causation,
            correlation=draft.correlation,
            prev=prev.hex(),
            commitment=commit(PAYLOAD_TAG, salt, draft.payload),
            length=len(draft.payload),
            media=draft.media,
        )
        if len(data) > MAX_ENVELOPE_BYTES:
            raise BadInputError(f"an envelope of {len(data)} bytes is over {MAX_ENVELOPE_BYTES}")
        leaf = leaf_of(data)
        yield Placed(
            seq,
            data,
            leaf,
            prev,
            draft.type,
            draft.stream,
            stream_seq,
            draft.idem_key,
            salt,
            draft.payload,
        )
        sizes[draft.stream] = stream_seq + 1
        seq += 1
        prev = leaf


def _check_draft(draft: Draft, checked: set[str]) -> None:
    """Check each distinct token once; a million equal actors cost one match."""
    if type(draft.type_v) is not int or not 0 <= draft.type_v <= MAX_INTEGER:
        raise BadInputError(f"the version {draft.type_v!r} of an event type is no whole number")
    if len(draft.payload) > MAX_PAYLOAD_BYTES:
        raise BadInputError(
            f"a payload of {len(draft.payload)} bytes is over {MAX_PAYLOAD_BYTES}",
            remedy="Keep large files outside and record their SHA-256.",
        )
    # Keys are distinct by nature: remembering them would only cost memory.
    if draft.idem_key is not None:
        check_token(draft.idem_key, "idempotency key")
    if checked.issuperset((draft.stream, draft.type, draft.actor, draft.media)) and (
        draft.causation is None and draft.correlation is None
    ):
        return
    for text, what in (
        (draft.type, "event type"),
        (draft.stream, "stream"),
        (draft.actor, "actor"),
        (draft.media, "media type"),
        (draft.causation, "causation"),
        (draft.correlation, "correlation"),
    ):
        if text is not None and text not in checked:
            checked.add(check_token(text, what))


def twice_in_one_append(key: str | None) -> BadInputError:
    """Return the refusal of a key that two drafts of one append share."""
    named = "an idempotency key" if key is None else f"the idempotency key {key!r}"
    return BadInputError(
        f"{named} stands twice in one append",
        remedy="Nothing was written; give each event its own key.",
    )


def check_same_body(first: Record, draft: Draft) -> None:
    """Let a draft pass whose key is stored, if it says the same as the stored event.

    Raises:
        IdempotencyError: another type, stream, medium or payload under the same key.
        WithheldError: the stored payload is redacted, so that nobody can tell.
    """
    key = draft.idem_key
    if first.salt is None:
        raise WithheldError(
            f"event {first.seq} under the key {key!r} is redacted; it cannot be compared."
            " Use another key."
        )
    stored = first.fields
    here = (draft.type, draft.type_v, draft.stream, draft.media)
    there = (stored["type"], stored["type_v"], stored["stream"], stored["payload"]["media"])
    if here != there or first.payload != draft.payload:
        raise IdempotencyError(
            f"the key {key!r} was used by event {first.seq} with another body."
            " Nothing was written; choose another key or correct the input."
        )


def check_target(target: Record | None, target_seq: int) -> None:
    """Refuse to redact what cannot be: event 0, no event, or a payload that is gone.

    Raises:
        BadInputError: with the reason (docs/spec/commitments.md, rule 4).
    """
    if target is None:
        raise BadInputError(f"there is no event {target_seq} to redact")
    if target_seq == 0:
        raise BadInputError("event 0 is never redacted: without it nobody can read the log")
    if target.salt is None:
        raise BadInputError(f"the payload of event {target_seq} is redacted already")
