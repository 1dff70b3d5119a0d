"""The envelope: what is hashed, chained and never changed (docs/spec/event-log.md).

Every string in an envelope is printable ASCII without quote and backslash, so that its canonical
JSON can be written by one format string; `parse_envelope` re-encodes what it read and compares.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any, TypedDict, cast

from pydantic_core import from_json

from ledger.canonical import MAX_INTEGER, parse_strict
from ledger.clock import parse_moment
from ledger.errors import BadInputError

VERSION = 1
MAX_ENVELOPE_BYTES = 16 * 1024
FIRST_PREV = "0" * 64
JSON_MEDIA = "application/json"

_TOKEN = re.compile(r"[ !#-\[\]-~]{1,300}\Z")
_HEX = re.compile(r"[0-9a-f]{64}\Z")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\Z")


class PayloadFields(TypedDict):
    """The payload reference inside an envelope."""

    commitment: str
    length: int
    media: str


class EnvelopeFields(TypedDict):
    """An envelope's JSON object; the keys of docs/spec/event-log.md."""

    v: int
    log: str
    seq: int
    id: str
    type: str
    type_v: int
    stream: str
    stream_seq: int
    actor: str
    recorded_at: str
    idem_key: str | None
    causation: str | None
    correlation: str | None
    prev: str
    payload: PayloadFields


_KEYS = frozenset(EnvelopeFields.__annotations__)
_PAYLOAD_KEYS = frozenset(PayloadFields.__annotations__)


@dataclass(frozen=True, slots=True)
class Envelope:
    """One event without its payload.

    `seq` counts from 0 and is the leaf index of the Merkle tree; `prev` is the leaf hash of the
    event before, 64 zeros for the first. `causation` is the id of the event that led to this one,
    `correlation` any token shared by the events of one run.
    """

    log: str
    seq: int
    id: str
    type: str
    type_v: int
    stream: str
    stream_seq: int
    actor: str
    recorded_at: str
    idem_key: str | None
    causation: str | None
    correlation: str | None
    prev: str
    commitment: str
    length: int
    media: str

    @classmethod
    def from_fields(cls, fields: EnvelopeFields) -> Envelope:
        """Build the typed view of an envelope's fields."""
        rest: dict[str, Any] = {k: v for k, v in fields.items() if k not in {"v", "payload"}}
        return cls(**rest, **fields["payload"])


def encode_envelope(e: Envelope) -> bytes:
    """Write the canonical bytes of an envelope whose tokens were checked (`check_token`)."""
    return encode_fields(
        log=e.log,
        seq=e.seq,
        event_id=e.id,
        event_type=e.type,
        type_v=e.type_v,
        stream=e.stream,
        stream_seq=e.stream_seq,
        actor=e.actor,
        recorded_at=e.recorded_at,
        idem_key=e.idem_key,
        causation=e.causation,
        correlation=e.correlation,
        prev=e.prev,
        commitment=e.commitment,
        length=e.length,
        media=e.media,
    )


def encode_fields(
    *,
    log: str,
    seq: int,
    event_id: str,
    event_type: str,
    type_v: int,
    stream: str,
    stream_seq: int,
    actor: str,
    recorded_at: str,
    idem_key: str | None,
    causation: str | None,
    correlation: str | None,
    prev: str,
    commitment: str,
    length: int,
    media: str,
) -> bytes:
    """Write canonical bytes without an Envelope in between: 2 us instead of 5 in bulk appends."""
    cause = f'"{causation}"' if causation is not None else "null"
    correl = f'"{correlation}"' if correlation is not None else "null"
    key = f'"{idem_key}"' if idem_key is not None else "null"
    return (
        f'{{"actor":"{actor}","causation":{cause},"correlation":{correl},'
        f'"id":"{event_id}","idem_key":{key},"log":"{log}",'
        f'"payload":{{"commitment":"{commitment}","length":{length},"media":"{media}"}},'
        f'"prev":"{prev}","recorded_at":"{recorded_at}","seq":{seq},'
        f'"stream":"{stream}","stream_seq":{stream_seq},'
        f'"type":"{event_type}","type_v":{type_v},"v":{VERSION}}}'
    ).encode("ascii")


def parse_envelope(data: bytes) -> EnvelopeFields:
    """Read an envelope strictly; whatever does not re-encode to the same bytes is refused.

    Raises:
        BadInputError: too large, not strict JSON, a wrong key, type or form, or not canonical.
    """
    if len(data) > MAX_ENVELOPE_BYTES:
        raise BadInputError(f"an envelope of {len(data)} bytes is over {MAX_ENVELOPE_BYTES}")
    value = parse_strict(data)
    if not isinstance(value, dict) or value.keys() != _KEYS:
        raise BadInputError("an envelope has exactly the 15 keys of docs/spec/event-log.md")
    payload = value["payload"]
    if not isinstance(payload, dict) or payload.keys() != _PAYLOAD_KEYS:
        raise BadInputError("an envelope's payload has exactly commitment, length and media")
    if value["v"] != VERSION:
        raise BadInputError("an envelope of an unknown format version")
    _check_fields(value, payload)
    fields = cast("EnvelopeFields", value)
    if encode_envelope(Envelope.from_fields(fields)) != data:
        raise BadInputError("an envelope that is not in its canonical form")
    return fields


def read_envelope(data: bytes) -> EnvelopeFields:
    """Read an envelope whose hash was checked, without judging its form; about 2 us.

    Raises:
        ValueError: not an envelope at all.
    """
    fields = from_json(data)
    if not isinstance(fields, dict) or fields.keys() != _KEYS:
        raise ValueError("not an envelope")
    payload = fields["payload"]
    if not isinstance(payload, dict) or payload.keys() != _PAYLOAD_KEYS:
        raise ValueError("not an envelope")
    return cast("EnvelopeFields", fields)


def leaf_of(envelope: bytes) -> bytes:
    """Leaf hash and chain link in one: SHA-256(0x00 || envelope) (RFC 9162 section 2.1.1)."""
    return hashlib.sha256(b"\x00" + envelope).digest()


def check_token(text: str, what: str) -> str:
    """Return a string fit for an envelope, or raise BadInputError naming `what`."""
    if not _TOKEN.match(text):
        raise BadInputError(
            f"the {what} {text[:40]!r} is not 1 to 300 printable ASCII characters",
            remedy="Leave out quotes, backslashes and letters beyond ASCII.",
        )
    return text


def check_log_id(text: str) -> str:
    """Return a log id fit for an envelope, a UUIDv7 in lower case, or raise BadInputError."""
    if not _UUID.match(text):
        raise BadInputError(f"the log id {text[:40]!r} is not a UUIDv7 in lower case")
    return text


def _check_fields(value: dict[str, object], payload: dict[str, object]) -> None:
    for key in ("seq", "type_v", "stream_seq"):
        _check_integer(value[key], key)
    _check_integer(payload["length"], "length")
    for key in ("log", "id"):
        _check_form(value[key], _UUID, key)
    _check_form(value["prev"], _HEX, "prev")
    _check_form(payload["commitment"], _HEX, "commitment")
    for key in ("type", "stream", "actor"):
        _check_form(value[key], _TOKEN, key)
    _check_form(payload["media"], _TOKEN, "media")
    for key in ("idem_key", "causation", "correlation"):
        if value[key] is not None:
            _check_form(value[key], _TOKEN, key)
    if not isinstance(value["recorded_at"], str):
        raise BadInputError("an envelope's recorded_at is not a string")
    parse_moment(value["recorded_at"])


def _check_integer(value: object, key: str) -> None:
    if type(value) is not int or not 0 <= value <= MAX_INTEGER:
        raise BadInputError(f"an envelope's {key} is not a whole number from 0")


def _check_form(value: object, form: re.Pattern[str], key: str) -> None:
    if not isinstance(value, str) or not form.match(value):
        raise BadInputError(f"an envelope's {key} has the wrong form")
