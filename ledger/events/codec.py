"""Payload classes to drafts, and stored bytes back to payloads: the only way in and out.

Old events stay as they are. A payload of an older version is upcast while it is read, never
rewritten; one of an unknown type is kept and reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError
from pydantic_core import from_json

from ledger.canonical import canonicalize_exact
from ledger.errors import BadInputError, BugError, DamagedLedgerError
from ledger.events.base import Payload
from ledger.events.registry import BY_MODEL, BY_NAME
from ledger.store.port import Draft, Record


@dataclass(frozen=True, slots=True)
class Event:
    """A stored event as projections see it.

    `payload` is None where `status` is `withheld` (redacted) or `unknown` (no such type here).
    """

    seq: int
    type: str
    recorded_at: str
    payload: Payload | None
    status: Literal["read", "withheld", "unknown"]


@dataclass(frozen=True, slots=True)
class Upcast:
    """How one version of a payload's JSON becomes the next: pure, and tried by a vector."""

    name: str
    from_version: int
    convert: Callable[[dict[str, Any]], dict[str, Any]]


UPCASTS: tuple[Upcast, ...] = ()
"""Every upcast of the vocabulary; all types are at version 1."""


def draft_event(
    payload: Payload,
    *,
    actor: str,
    correlation: str | None = None,
    causation: str | None = None,
) -> Draft:
    """Turn a payload into a draft in the stream, and with the key, of its type."""
    row = BY_MODEL.get(type(payload))
    if row is None:
        raise BugError(f"{type(payload).__name__} is not in the vocabulary")
    return Draft(
        type=row.name,
        type_v=row.version,
        stream=row.stream_of(payload),
        payload=canonicalize_exact(payload.model_dump(mode="python")),
        actor=actor,
        idem_key=row.key_of(payload),
        causation=causation,
        correlation=correlation,
    )


def read_event(record: Record, *, upcasts: Sequence[Upcast] = UPCASTS) -> Event:
    """Read a stored record back.

    Raises:
        DamagedLedgerError: a known type whose bytes are not a valid payload in canonical form.
    """
    fields = record.fields
    seq, name, recorded_at = fields["seq"], fields["type"], fields["recorded_at"]
    row = BY_NAME.get(name)
    if row is None or not 1 <= fields["type_v"] <= row.version:
        return Event(seq, name, recorded_at, None, "unknown")
    if record.payload is None:
        return Event(seq, name, recorded_at, None, "withheld")
    try:
        payload = _read_payload(record.payload, row.model, row.version, record, upcasts)
    except (ValidationError, ValueError) as error:
        raise DamagedLedgerError(
            f"the payload of event {seq} is not a valid {name}."
            " Run `ledger verify` to see what was changed."
        ) from error
    return Event(seq, name, recorded_at, payload, "read")


def _read_payload(
    data: bytes, model: type[Payload], version: int, record: Record, upcasts: Sequence[Upcast]
) -> Payload:
    # Canonical or refused: pydantic keeps the last of two equal keys, and says nothing.
    value = from_json(data)
    if canonicalize_exact(value) != data:
        raise BadInputError("a payload that is not in its canonical form")
    if record.fields["type_v"] == version:
        return model.model_validate_json(data)
    for at in range(record.fields["type_v"], version):
        step = next(
            (u for u in upcasts if u.name == record.fields["type"] and u.from_version == at), None
        )
        if step is None:
            raise BugError(f"no upcast for {record.fields['type']} version {at}")
        value = step.convert(value)
    return model.model_validate_json(canonicalize_exact(value))
