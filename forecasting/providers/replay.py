"""A provider that answers from a ledger: the same run again, without a network.

A request is found by the octets it would send, so that a changed prompt, parameter or schema finds
nothing instead of somebody else's answer. Octets that were sent several times (draws, retries)
answer in the order in which they were recorded. One instance replays one cell: give it the calls of
that cell, then the order is that of the run whatever the concurrency.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from forecasting.ports import CallFailure, ModelAnswer, ModelRequest
from forecasting.providers.record import parse_failure
from forecasting.providers.wire import Wire, WireAnswer, failed, from_raw, unanswered
from ledger.events.call import ModelCalled


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A `model.called` event and its place in the log."""

    seq: int
    event: ModelCalled


class ReplayProvider:
    """Answers with what was recorded, failures included; each record once.

    Args:
        provider: who was asked, as recorded; calls of others are left out.
        wire: the wire format of the recorded route.
        calls: the recorded calls in log order.
    """

    def __init__(self, *, provider: str, wire: Wire, calls: Iterable[RecordedCall]) -> None:
        self._provider = provider
        self._wire = wire
        self._calls: dict[tuple[bytes, str], deque[RecordedCall]] = {}
        for call in calls:
            route = call.event.model_route
            if route.provider == provider and route.route == wire.route:
                key = _key(from_raw(call.event.raw_request), call.event.as_of)
                self._calls.setdefault(key, deque()).append(call)

    @property
    def provider(self) -> str:
        """Who was asked: the recorded provider, so that the registered route still holds."""
        return self._provider

    @property
    def route(self) -> str:
        """By which interface."""
        return self._wire.route

    def encode(self, request: ModelRequest) -> bytes:
        """Return the octets by which the answer is found."""
        return self._wire.encode(request)

    async def call(self, request: ModelRequest) -> ModelAnswer:
        """Return the next recorded answer to these octets (see Provider.call)."""
        body = self._wire.encode(request)
        waiting = self._calls.get(_key(body, request.as_of))
        if not waiting:
            detail = "the ledger holds no answer to this request, or all were used"
            return unanswered(body, failed("bad_request", detail), latency_ms=0)
        return self._replayed(waiting.popleft())

    async def close(self) -> None:
        """Nothing to release."""

    def _replayed(self, call: RecordedCall) -> ModelAnswer:
        event = call.event
        said = WireAnswer()
        failure: CallFailure | None = None
        if event.outcome == "failed":
            failure = parse_failure(event.error or "")
        elif event.raw_answer is None:
            failure = failed("unreadable", "the recorded call has no raw answer")
        else:
            said = self._wire.decode(from_raw(event.raw_answer))
            failure = said.failure
        return ModelAnswer(
            text=said.text,
            tool_calls=said.tool_calls,
            failure=failure,
            resolved_model=event.model_route.resolved_model,
            response_id=event.response_id,
            request_id=event.request_id,
            fingerprint=event.fingerprint,
            usage=event.usage,
            raw_request=event.raw_request,
            raw_answer=event.raw_answer,
            latency_ms=event.latency_ms or 0,
            cached_from_seq=call.seq,
        )


def _key(body: bytes, as_of: str) -> tuple[bytes, str]:
    return hashlib.sha256(body).digest(), as_of
