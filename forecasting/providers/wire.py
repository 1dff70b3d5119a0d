"""What the wire formats share: reading foreign JSON field by field, and writing a request body.

Reading is strict where an answer hangs on it (choices, text, finish reason) and forgiving where
only the record does: an id or a token count of the wrong type is null, *not recorded*, and the raw
answer still holds it. A paid answer is not thrown away over a malformed counter.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from forecasting.ports import (
    CallFailure,
    FailureKind,
    JsonObject,
    ModelAnswer,
    ModelRequest,
    ToolCallRequest,
)
from ledger.canonical import MAX_INTEGER, parse_strict
from ledger.errors import BadInputError
from ledger.events.base import RawBytes
from ledger.events.call import TokenUsage

MAX_NAME = 200
"""Longest id that an event holds (`ledger.events.base.Name`)."""

MAX_RAW = 1_000_000
"""Longest raw text, in characters, that an event holds (`ledger.events.base.Text`)."""

NO_USAGE = TokenUsage()
"""No counts are known."""

_MAX_DETAIL = 500
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class WireAnswer:
    """What one answer body says; `failure` is given where it holds no usable answer."""

    text: str | None = None
    tool_calls: tuple[ToolCallRequest, ...] = ()
    failure: CallFailure | None = None
    resolved_model: str | None = None
    response_id: str | None = None
    fingerprint: str | None = None
    usage: TokenUsage = NO_USAGE


class Wire(Protocol):
    """A wire format: both directions, pure."""

    @property
    def route(self) -> str:
        """The route's name in the ledger, such as `chat.completions`."""

    @property
    def path(self) -> str:
        """The path below the base URL, such as `/chat/completions`."""

    def encode(self, request: ModelRequest) -> bytes:
        """Write the request body; raises BadInputError for what the format cannot say."""

    def decode(self, body: bytes) -> WireAnswer:
        """Read the body of a 200; what is not in the format is a failure, never an exception."""


def encode_body(body: JsonObject) -> bytes:
    """Write a request body as compact JSON, keys in the order given.

    Not canonical on purpose: a model that answers by a schema writes its fields in the order of the
    schema's properties, so sorting them would change the answer.

    Raises:
        BadInputError: NaN, a lone surrogate, or a value that is not JSON.
    """
    try:
        return _encode(body).encode("utf-8")
    except (TypeError, ValueError) as error:
        raise BadInputError(f"the request has no JSON form: {error}", where="request") from error


def read_body(body: bytes) -> JsonObject | CallFailure:
    """Read an answer body as one JSON object, or say why it is none."""
    try:
        document = parse_strict(body)
    except BadInputError as error:
        return failed("unreadable", f"the answer is not JSON: {error}")
    if not isinstance(document, dict):
        return failed("unreadable", "the answer is not a JSON object")
    return document


def failed(kind: FailureKind, detail: str, *, status: int | None = None) -> CallFailure:
    """Make a failure whose detail is one line of bounded length."""
    line = " ".join(detail.split())
    return CallFailure(
        kind, line if len(line) <= _MAX_DETAIL else f"{line[:_MAX_DETAIL]}...", status
    )


def member(document: object, name: str) -> JsonObject:
    """Return a member that is an object, else an empty one."""
    value = document.get(name) if isinstance(document, dict) else None
    return value if isinstance(value, dict) else {}


def elements(document: object, name: str) -> list[Any]:
    """Return a member that is a list, else an empty one."""
    value = document.get(name) if isinstance(document, dict) else None
    return value if isinstance(value, list) else []


def short_name(value: object) -> str | None:
    """Return an id as an event can hold it: null where it is missing, empty or too long.

    An id that was cut would be another id; the raw answer holds the whole one.
    """
    return value if isinstance(value, str) and 0 < len(value) <= MAX_NAME else None


def count(value: object) -> int | None:
    """Return a token count; null where it is missing or not a whole number from 0."""
    if type(value) is int and 0 <= value <= MAX_INTEGER:
        return value
    return None


def to_raw(data: bytes, media: str = "application/json") -> RawBytes | None:
    """Keep octets as sent or received: as text where they are UTF-8, else as base64.

    Null where they are longer than an event can hold; the caller records that as a failure.
    """
    encoding: Literal["utf-8", "base64"] = "utf-8"
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = base64.b64encode(data).decode("ascii")
        encoding = "base64"
    if len(text) > MAX_RAW:
        return None
    # Checked here: construction without validation saves 5 us of the 2 ms that a call may cost.
    return RawBytes.model_construct(media=media[:MAX_NAME] or "?", encoding=encoding, data=text)


def from_raw(raw: RawBytes) -> bytes:
    """Return the octets of `to_raw`."""
    return raw.data.encode() if raw.encoding == "utf-8" else base64.b64decode(raw.data)


def request_record(body: bytes) -> RawBytes:
    """Keep a request body.

    Raises:
        BadInputError: it is longer than an event can hold, so it must not be sent.
    """
    raw = to_raw(body)
    if raw is None:
        raise BadInputError(
            f"a request of {len(body)} bytes is longer than the ledger can record",
            remedy=f"Keep it below {MAX_RAW} characters.",
        )
    return raw


def unanswered(request_body: bytes, failure: CallFailure, *, latency_ms: int) -> ModelAnswer:
    """Make the record of an attempt to which no answer came."""
    return ModelAnswer(
        text=None,
        tool_calls=(),
        failure=failure,
        resolved_model=None,
        response_id=None,
        request_id=None,
        fingerprint=None,
        usage=NO_USAGE,
        raw_request=request_record(request_body),
        raw_answer=None,
        latency_ms=latency_ms,
    )
