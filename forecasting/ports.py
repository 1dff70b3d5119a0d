"""What a provider and a search tool promise, and the records that cross those ports.

A provider makes one attempt and reports it, failure included: retries are the caller's, so that
every attempt is an event. A tool returns everything it was given with every time that was claimed;
the timebox decides what is kept. As-of is a field of every request, from question to cache key:
there is no ambient clock and no process-wide cut-off.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from ledger.events.base import RawBytes
from ledger.events.call import TokenUsage

JsonObject = Mapping[str, Any]

FailureKind = Literal[
    "rate_limited",
    "timeout",
    "connection",
    "server_error",
    "bad_request",
    "not_authorized",
    "out_of_quota",
    "over_budget",
    "refused",
    "unreadable",
    "truncated",
    "cancelled",
]
"""Why an attempt gave no answer.

`out_of_quota` is the provider's ceiling and `over_budget` our own; `unreadable` is an answer that
is not what the interface promises, such as a gateway's HTML page; `truncated` is one cut off at the
token limit; `refused` is the model's or the provider's refusal to answer.
"""

RETRYABLE: frozenset[FailureKind] = frozenset(
    {"rate_limited", "timeout", "connection", "server_error", "unreadable"}
)
"""What may pass if the same request is sent again."""


@dataclass(frozen=True, slots=True)
class ToolCallRequest:
    """A model's wish to call a tool: the provider's call id, the name, the arguments as text."""

    call_id: str
    name: str
    arguments_json: str


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation.

    `tool_calls` stand on an assistant's turn; `call_id` names the call that a tool's turn answers.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCallRequest, ...] = ()
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class OutputSchema:
    """The JSON schema that an answer must follow, and its name on the wire."""

    name: str
    schema: JsonObject


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it: no argument of it can name a time later than as-of."""

    name: str
    description: str
    parameters: JsonObject


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Everything that one call depends on; equal requests may share a cached answer.

    `as_of` is a moment in the ledger's text form. `parameters` are decimal text where they are
    numbers (`temperature`: "0.2", `max_output_tokens`: "4096", `seed`: "0"), as the plan registers
    them. `idem_key` goes out as the Idempotency-Key header, the same on every attempt of one call;
    it is no part of what is asked, so that equal questions of two draws compare equal. `timeout_s`
    bounds the whole attempt, not one read of the socket.
    """

    model: str
    messages: tuple[Message, ...]
    as_of: str
    prompt_version: str
    prompt_digest: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    output: OutputSchema | None = None
    tools: tuple[ToolSpec, ...] = ()
    timeout_s: float = 120.0
    idem_key: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class CallFailure:
    """Why an attempt failed; `retry_after_ms` is what the server asked for, if it did.

    `is_final`: the server itself said that the same request will not pass, by the header
    `x-should-retry: false`.
    """

    kind: FailureKind
    detail: str
    status: int | None = None
    retry_after_ms: int | None = None
    is_final: bool = False

    @property
    def is_retryable(self) -> bool:
        """Whether the same request may pass if it is sent again."""
        return self.kind in RETRYABLE and not self.is_final


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """One attempt as it happened. `text` is null where `failure` is given or only tools are asked.

    Nothing of the API key is in `raw_request` or in any message. `raw_answer` is null where nothing
    came. `cached_from_seq` is the seq of the `model.called` that an answer is replayed from.
    """

    text: str | None
    tool_calls: tuple[ToolCallRequest, ...]
    failure: CallFailure | None
    resolved_model: str | None
    response_id: str | None
    request_id: str | None
    fingerprint: str | None
    usage: TokenUsage
    raw_request: RawBytes
    raw_answer: RawBytes | None
    latency_ms: int
    cached_from_seq: int | None = None


class Provider(Protocol):
    """A route to models. One attempt a call; provider errors are answers, never exceptions.

    The one exception: `encode` and `call` raise BadInputError for a request that the route cannot
    express (a parameter it does not have). Nothing was sent then.
    """

    @property
    def provider(self) -> str:
        """Who is asked, such as `openai`."""

    @property
    def route(self) -> str:
        """By which interface, such as `responses` or `chat.completions`."""

    def encode(self, request: ModelRequest) -> bytes:
        """Return the octets that `call` sends: pure, and the same for equal requests."""

    async def call(self, request: ModelRequest) -> ModelAnswer:
        """Make one attempt. Cancellation passes through as asyncio.CancelledError."""

    async def close(self) -> None:
        """Release connections."""


@dataclass(frozen=True, slots=True)
class Found:
    """One piece of evidence as a tool returned it, with every time it claims.

    Times are moments in the ledger's text form, null where none is claimed or it cannot be read;
    `unreadable_times` keeps what could not be read. `text` is what would reach a prompt.
    """

    url: str | None
    title: str
    text: str
    published: str | None
    crawled: str | None
    snapshot: str | None
    unreadable_times: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A search: arguments as the model gave them, and the as-of that it cannot change."""

    arguments: Mapping[str, str]
    as_of: str
    now: str
    """The wall clock's moment, recorded and used to choose a lane; it is never shown to a model."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """One tool attempt as it happened, before the timebox.

    `limits_sent` are the provider-side cut-offs exactly as they went out. `cost_usd` is decimal
    text, null where unknown. `malformed` counts items that had no readable form at all: they were
    fetched and let nothing through. `notices` are the provider's own remarks about the request,
    such as a limit that it ignored. No credential is in any field.
    """

    found: tuple[Found, ...]
    failure: CallFailure | None
    limits_sent: Mapping[str, str]
    cost_usd: str | None
    raw_answer: RawBytes | None
    latency_ms: int
    malformed: int = 0
    notices: tuple[str, ...] = ()


class SearchTool(Protocol):
    """A source of dated evidence. Provider errors are answers, never exceptions."""

    @property
    def spec(self) -> ToolSpec:
        """How a model sees the tool."""

    async def search(self, request: ToolRequest) -> ToolAnswer:
        """Make one attempt with the provider-side cut-off always sent.

        Arguments that the spec does not name, or that reach past as-of, are refused unsent: a
        failure of kind `bad_request`. Cancellation passes through as asyncio.CancelledError.
        """

    async def close(self) -> None:
        """Release connections."""
