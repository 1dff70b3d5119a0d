"""The Responses wire format of OpenAI.

It has no `seed` and no `system_fingerprint`: a plan that registers a seed on this route is refused,
and the fingerprint is null, *not recorded*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from forecasting.ports import (
    CallFailure,
    FailureKind,
    JsonObject,
    Message,
    ModelRequest,
    ToolCallRequest,
)
from forecasting.providers.parameters import place_parameters
from forecasting.providers.wire import (
    WireAnswer,
    count,
    elements,
    encode_body,
    failed,
    member,
    read_body,
    short_name,
)
from ledger.events.call import TokenUsage

INCOMPLETE: Mapping[str, FailureKind] = {
    "max_output_tokens": "truncated",
    "content_filter": "refused",
}
"""Reasons of status `incomplete`."""

ERRORS: Mapping[str, FailureKind] = {
    "rate_limit_exceeded": "rate_limited",
    "server_error": "server_error",
    "invalid_prompt": "bad_request",
}
"""Error codes of status `failed`."""


@dataclass(frozen=True, slots=True)
class ResponsesWire:
    """The Responses interface."""

    route: str = "responses"
    path: str = "/responses"

    def encode(self, request: ModelRequest) -> bytes:
        """Write the request body; a leading system turn becomes `instructions`."""
        turns = list(request.messages)
        body: dict[str, Any] = {"model": request.model}
        if turns and turns[0].role == "system":
            body["instructions"] = turns.pop(0).content
        body["input"] = [item for turn in turns for item in _items(turn)]
        if request.output is not None:
            body["text"] = {
                "format": {
                    "type": "json_schema",
                    "name": request.output.name,
                    "strict": True,
                    "schema": request.output.schema,
                }
            }
        place_parameters(body, request.parameters, "responses")
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                    "strict": False,
                }
                for tool in request.tools
            ]
        return encode_body(body)

    def decode(self, body: bytes) -> WireAnswer:
        """Read the body of a 200 (see Wire.decode)."""
        document = read_body(body)
        if isinstance(document, CallFailure):
            return WireAnswer(failure=document)
        failure = _status_failure(document)
        text, calls, failure = (None, (), failure) if failure else _read_output(document)
        usage = member(document, "usage")
        return WireAnswer(
            text=text,
            tool_calls=calls,
            failure=failure,
            resolved_model=short_name(document.get("model")),
            response_id=short_name(document.get("id")),
            usage=TokenUsage(
                input_tokens=count(usage.get("input_tokens")),
                output_tokens=count(usage.get("output_tokens")),
                cached_input_tokens=count(
                    member(usage, "input_tokens_details").get("cached_tokens")
                ),
                reasoning_tokens=count(
                    member(usage, "output_tokens_details").get("reasoning_tokens")
                ),
            ),
        )


def _items(turn: Message) -> list[JsonObject]:
    if turn.role == "tool":
        return [{"type": "function_call_output", "call_id": turn.call_id, "output": turn.content}]
    items: list[JsonObject] = []
    if turn.content or not turn.tool_calls:
        items.append({"role": turn.role, "content": turn.content})
    # Without item ids: an id would demand the hidden reasoning item that went before it.
    items += [
        {
            "type": "function_call",
            "call_id": call.call_id,
            "name": call.name,
            "arguments": call.arguments_json,
        }
        for call in turn.tool_calls
    ]
    return items


def _status_failure(document: JsonObject) -> CallFailure | None:
    status = document.get("status")
    if status == "completed":
        return None
    if status == "incomplete":
        reason = member(document, "incomplete_details").get("reason")
        kind = INCOMPLETE.get(reason, "unreadable") if isinstance(reason, str) else "unreadable"
        return failed(kind, f"the answer is incomplete: {reason!r}")
    if status == "failed":
        error = member(document, "error")
        code = error.get("code")
        kind = ERRORS.get(code, "server_error") if isinstance(code, str) else "server_error"
        return failed(kind, f"the provider failed: {code!r}: {error.get('message')}")
    return failed("unreadable", f"the answer has status {status!r}")


_Output = tuple[str | None, tuple[ToolCallRequest, ...], CallFailure | None]


def _read_output(document: JsonObject) -> _Output:
    texts: list[str] = []
    calls: list[ToolCallRequest] = []
    for item in elements(document, "output"):
        kind = item.get("type") if isinstance(item, dict) else None
        if kind == "function_call":
            call = _tool_call(item)
            if call is None:
                return None, (), failed("unreadable", "a tool call without id, name or arguments")
            calls.append(call)
        elif kind == "message":
            for part in elements(item, "content"):
                problem = _read_part(part, texts)
                if problem is not None:
                    return None, (), problem
    if not calls and not any(texts):
        return None, (), failed("unreadable", "the answer has no text")
    return "".join(texts) or None, tuple(calls), None


def _read_part(part: object, texts: list[str]) -> CallFailure | None:
    if not isinstance(part, dict):
        return failed("unreadable", "a part of the answer is not an object")
    if part.get("type") == "refusal":
        return failed("refused", f"the model refused: {part.get('refusal')}")
    if part.get("type") == "output_text":
        text = part.get("text")
        if not isinstance(text, str):
            return failed("unreadable", "a text part of the answer has no text")
        texts.append(text)
    return None


def _tool_call(item: JsonObject) -> ToolCallRequest | None:
    call_id, name, arguments = item.get("call_id"), item.get("name"), item.get("arguments")
    if isinstance(call_id, str) and isinstance(name, str) and isinstance(arguments, str):
        return ToolCallRequest(call_id, name, arguments)
    return None
