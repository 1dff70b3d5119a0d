"""Attempts and the calls inside them: every model answer and every piece of evidence, dated."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ledger.events.base import (
    Count,
    Digest,
    Draw,
    Identifier,
    ModelRoute,
    Moment,
    Money,
    Name,
    Payload,
    RawBytes,
    Sentence,
    Seq,
    Text,
)

Attempt = Annotated[int, Field(ge=1, le=1_000_000)]


class AttemptStarted(Payload):
    """`attempt.started`: the ledger assigns the number, so there is no hidden best-of-N."""

    method: Identifier
    card_id: Identifier
    draw: Draw
    attempt: Attempt


class AttemptFailed(Payload):
    """`attempt.failed`: why no probability came of it; the cell may be tried again."""

    method: Identifier
    card_id: Identifier
    draw: Draw
    attempt: Attempt
    started_seq: Seq
    reason: Literal["refused", "timeout", "provider_error", "unusable_answer", "budget", "stopped"]
    detail: Sentence


class TokenUsage(Payload):
    """Tokens as the provider counted them; null where it does not say."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cached_input_tokens: Count | None = None
    reasoning_tokens: Count | None = None


class ModelCalled(Payload):
    """`model.called`: one attempt of one call, failed ones included; SDK retries are off."""

    method: Identifier
    card_id: Identifier
    draw: Draw
    role: Name
    model_route: ModelRoute
    prompt_version: Name
    prompt_digest: Digest
    parameters: dict[str, str]
    as_of: Moment
    outcome: Literal["answered", "failed"]
    error: Sentence | None = None
    response_id: Name | None = None
    request_id: Name | None = None
    fingerprint: Name | None = None
    usage: TokenUsage
    cost: Money
    latency_ms: Count | None
    cached_from_seq: Seq | None = None
    raw_request: RawBytes
    raw_answer: RawBytes | None


class Evidence(Payload):
    """One piece of evidence, every time it claims, and the verdict of the timebox."""

    url: Name | None
    title: Text = ""
    published: Moment | None = None
    crawled: Moment | None = None
    snapshot: Moment | None = None
    retrieved_at: Moment
    content_sha256: Digest
    kept: bool
    rule: Name


class ToolCalled(Payload):
    """`tool.called`: arguments, the limits sent to the provider, and each piece of evidence."""

    method: Identifier
    card_id: Identifier
    draw: Draw
    tool: Name
    arguments: dict[str, str]
    as_of: Moment
    limits_sent: dict[str, str]
    outcome: Literal["answered", "failed"]
    error: Sentence | None = None
    evidence: tuple[Evidence, ...] = ()
    cost: Money
    latency_ms: Count | None
    cached_from_seq: Seq | None = None
    raw_answer: RawBytes | None
