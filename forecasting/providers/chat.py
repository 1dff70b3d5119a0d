"""The Chat Completions wire format, as OpenAI and every compatible endpoint speak it.

Verified against the openai SDK 3.54: the same request through its typed method has the same body
(tests/conformance/test_providers.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from forecasting.ports import (
    CallFailure,
    FailureKind,
    JsonObject,
    Message,
    ModelRequest,
    OutputSchema,
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

COMPLETE = frozenset({"stop", "tool_calls", "function_call"})
"""Finish reasons of a whole answer."""

CUT_SHORT: Mapping[str, FailureKind] = {
    "length": "truncated",
    "content_filter": "refused",
    "error": "server_error",
    "insufficient_system_resource": "server_error",
}
"""Other finish reasons: OpenAI's, OpenRouter's `error`, DeepSeek's lack of resources."""


@dataclass(frozen=True, slots=True)
class ChatWire:
    """Chat Completions in one endpoint's dialect.

    Args:
        max_tokens_key: `max_completion_tokens` at OpenAI, `max_tokens` at older servers.
        schema_as: `json_object` for endpoints that know no schema; the prompt then has to say it.
        extra: members that every body of this endpoint has.
    """

    max_tokens_key: Literal["max_completion_tokens", "max_tokens"] = "max_completion_tokens"
    schema_as: Literal["json_schema", "json_object"] = "json_schema"
    extra: Mapping[str, Any] = field(default_factory=dict)
    route: str = "chat.completions"
    path: str = "/chat/completions"

    def encode(self, request: ModelRequest) -> bytes:
        """Write the request body (see Wire.encode)."""
        body: dict[str, Any] = {
            "model": request.model,
            "messages": [_message(message) for message in request.messages],
        }
        place_parameters(body, request.parameters, "chat")
        if self.max_tokens_key == "max_tokens" and "max_completion_tokens" in body:
            body["max_tokens"] = body.pop("max_completion_tokens")
        if request.output is not None:
            body["response_format"] = self._response_format(request.output)
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {
                        "name": tool.name,
                        "description": tool.description,
                        "parameters": tool.parameters,
                    },
                }
                for tool in request.tools
            ]
        return encode_body({**body, **self.extra})

    def decode(self, body: bytes) -> WireAnswer:
        """Read the body of a 200 (see Wire.decode)."""
        document = read_body(body)
        if isinstance(document, CallFailure):
            return WireAnswer(failure=document)
        text, calls, failure = _read_choice(document)
        usage = member(document, "usage")
        return WireAnswer(
            text=None if failure else text,
            tool_calls=() if failure else calls,
            failure=failure,
            resolved_model=short_name(document.get("model")),
            response_id=short_name(document.get("id")),
            fingerprint=short_name(document.get("system_fingerprint")),
            usage=TokenUsage(
                input_tokens=count(usage.get("prompt_tokens")),
                output_tokens=count(usage.get("completion_tokens")),
                cached_input_tokens=count(
                    member(usage, "prompt_tokens_details").get("cached_tokens")
                ),
                reasoning_tokens=count(
                    member(usage, "completion_tokens_details").get("reasoning_tokens")
                ),
            ),
        )

    def _response_format(self, output: OutputSchema) -> JsonObject:
        if self.schema_as == "json_object":
            return {"type": "json_object"}
        return {
            "type": "json_schema",
            "json_schema": {"name": output.name, "strict": True, "schema": output.schema},
        }


def _message(message: Message) -> JsonObject:
    body: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        body["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments_json},
            }
            for call in message.tool_calls
        ]
    if message.call_id is not None:
        body["tool_call_id"] = message.call_id
    return body


_Choice = tuple[str | None, tuple[ToolCallRequest, ...], CallFailure | None]


def _read_choice(document: JsonObject) -> _Choice:
    """Read the one choice; a second one would be a hidden best-of-N and is refused."""
    choices = elements(document, "choices")
    if len(choices) != 1:
        return None, (), _without_one_choice(document, len(choices))
    message = member(choices[0], "message")
    reason = choices[0].get("finish_reason") if isinstance(choices[0], dict) else None
    if refusal := message.get("refusal"):
        return None, (), failed("refused", f"the model refused: {refusal}")
    if not isinstance(reason, str) or reason not in COMPLETE:
        kind = CUT_SHORT.get(reason, "unreadable") if isinstance(reason, str) else "unreadable"
        return None, (), failed(kind, f"the answer ended with finish reason {reason!r}")
    calls = tuple(_tool_call(item) for item in elements(message, "tool_calls"))
    known = tuple(call for call in calls if call is not None)
    if len(known) != len(calls):
        return None, (), failed("unreadable", "a tool call without id, name or arguments")
    text = message.get("content")
    if known and (text is None or isinstance(text, str)):
        return text or None, known, None
    if not isinstance(text, str) or not text:
        return None, (), failed("unreadable", "the answer has no text")
    return text, (), None


def _without_one_choice(document: JsonObject, found: int) -> CallFailure:
    # OpenRouter and some gateways answer 200 with an error object.
    if error := member(document, "error"):
        return failed("server_error", f"an error in a 200: {error.get('message')}")
    return failed("unreadable", f"the answer has {found} choices where one was asked for")


def _tool_call(item: object) -> ToolCallRequest | None:
    function = member(item, "function")
    call_id = item.get("id") if isinstance(item, dict) else None
    name, arguments = function.get("name"), function.get("arguments")
    if isinstance(call_id, str) and isinstance(name, str) and isinstance(arguments, str):
        return ToolCallRequest(call_id, name, arguments)
    return None
