"""A provider whose answers are written beforehand: for tests, worked examples and the demo.

It is a function of the request alone, so that answers do not depend on which of several calls in
flight comes first. `in_order` gives a list of answers one after the other, for tests of one caller.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

from forecasting.ports import CallFailure, ModelAnswer, ModelRequest, ToolCallRequest
from forecasting.providers.wire import (
    WireAnswer,
    elements,
    failed,
    member,
    read_body,
    request_record,
    short_name,
    to_raw,
    unanswered,
)
from ledger.canonical import canonicalize
from ledger.decimals import format_units
from ledger.errors import BadInputError

ScriptedTurn = str | CallFailure | tuple[ToolCallRequest, ...]
"""What a script says: a text, a failure, or calls of tools."""

Script = Callable[[ModelRequest], ScriptedTurn]

RESOLVED = "scripted/1"


@dataclass(frozen=True, slots=True)
class ScriptedWire:
    """The scripted provider's own format: canonical JSON both ways."""

    route: str = "scripted"
    path: str = ""

    def encode(self, request: ModelRequest) -> bytes:
        """Write all that the answer may depend on."""
        return canonicalize(
            {
                "model": request.model,
                "messages": [_plain(asdict(message)) for message in request.messages],
                "as_of": request.as_of,
                "parameters": dict(request.parameters),
                "output": _plain(asdict(request.output)) if request.output else None,
                "tools": [_plain(asdict(tool)) for tool in request.tools],
            }
        )

    def decode(self, body: bytes) -> WireAnswer:
        """Read an answer that `ScriptedProvider` wrote."""
        document = read_body(body)
        if isinstance(document, CallFailure):
            return WireAnswer(failure=document)
        calls = tuple(_read_call(item) for item in elements(document, "tool_calls"))
        text = document.get("text")
        known = isinstance(text, str) or bool(calls)
        return WireAnswer(
            text=text if isinstance(text, str) else None,
            tool_calls=calls,
            failure=None if known else failed("unreadable", "the answer has no text"),
            resolved_model=RESOLVED,
            response_id=short_name(document.get("id")),
        )


class ScriptedProvider:
    """Answers by a script, at once.

    Args:
        script: from a request to what is said.
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self._wire = ScriptedWire()

    @property
    def provider(self) -> str:
        """Who is asked."""
        return "scripted"

    @property
    def route(self) -> str:
        """By which interface."""
        return self._wire.route

    def encode(self, request: ModelRequest) -> bytes:
        """Return the octets that stand for the request."""
        return self._wire.encode(request)

    async def call(self, request: ModelRequest) -> ModelAnswer:
        """Answer by the script (see Provider.call)."""
        body = self.encode(request)
        turn = self._script(request)
        if isinstance(turn, CallFailure):
            return unanswered(body, turn, latency_ms=0)
        answer_id = f"scripted-{hashlib.sha256(body).hexdigest()[:16]}"
        calls = [] if isinstance(turn, str) else [_plain(asdict(call)) for call in turn]
        text = turn if isinstance(turn, str) else None
        raw = canonicalize({"id": answer_id, "text": text, "tool_calls": calls})
        said = self._wire.decode(raw)
        return ModelAnswer(
            text=said.text,
            tool_calls=said.tool_calls,
            failure=said.failure,
            resolved_model=said.resolved_model,
            response_id=said.response_id,
            request_id=None,
            fingerprint=None,
            usage=said.usage,
            raw_request=request_record(body),
            raw_answer=to_raw(raw),
            latency_ms=0,
        )

    async def close(self) -> None:
        """Nothing to release."""


def _read_call(item: object) -> ToolCallRequest:
    fields = item if isinstance(item, dict) else {}
    call_id, name, arguments = (
        str(fields.get(key, "")) for key in ("call_id", "name", "arguments_json")
    )
    return ToolCallRequest(call_id, name, arguments)


def in_order(turns: Iterable[ScriptedTurn]) -> Script:
    """Return a script that says one turn after the other.

    Raises:
        BadInputError: when called more often than there are turns.
    """
    coming = iter(turns)

    def say(request: ModelRequest) -> ScriptedTurn:
        for turn in coming:
            return turn
        raise BadInputError(f"the script has no more answers for {request.model}")

    return say


def digest_forecast(request: ModelRequest) -> ScriptedTurn:
    """Return a forecast that is a digest of the request: reproducible, and worth nothing.

    Percent points from 1 to 99, uniform over requests, as `p_yes` and `p_yes_pct` alike.
    """
    digest = hashlib.sha256(ScriptedWire().encode(request)).digest()
    percent = 1 + int.from_bytes(digest[:8], "big") % 99
    fields = member(request.output.schema, "properties") if request.output else {}
    if "p_yes_pct" in fields:
        return f'{{"rationale":"a digest, not a forecast","p_yes_pct":{percent}}}'
    p_yes = format_units(percent * 10_000_000)
    return f'{{"rationale":"a digest, not a forecast","p_yes":{p_yes}}}'


def _plain(value: object) -> object:
    """Turn mappings and tuples into the dicts and lists that the canonical form takes."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
