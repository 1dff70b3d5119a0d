"""From an attempt at a call to its `model.called` event, and its failure sentence back again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from forecasting.ports import CallFailure, FailureKind, ModelAnswer, ModelRequest
from ledger.errors import BadInputError
from ledger.events.base import ModelRoute, Money
from ledger.events.call import ModelCalled

_KINDS: tuple[str, ...] = get_args(FailureKind)


@dataclass(frozen=True, slots=True)
class CallAttempt:
    """One attempt of one call, as it is to be recorded.

    `number` counts the attempts of one request from 1, `turn` the repair turns of one question from
    0.
    """

    request: ModelRequest
    answer: ModelAnswer
    provider: str
    route: str
    cost: Money
    number: int
    turn: int = 0


@dataclass(frozen=True, slots=True)
class CallCell:
    """Whose call it is: method, card, draw, and the role it plays in the method."""

    method: str
    card_id: str
    draw: int
    role: str


def to_model_called(attempt: CallAttempt, cell: CallCell) -> ModelCalled:
    """Make the event of an attempt, failed ones included."""
    request, answer = attempt.request, attempt.answer
    return ModelCalled(
        method=cell.method,
        card_id=cell.card_id,
        draw=cell.draw,
        role=cell.role,
        model_route=ModelRoute(
            provider=attempt.provider,
            route=attempt.route,
            requested_model=request.model,
            resolved_model=answer.resolved_model,
        ),
        prompt_version=request.prompt_version,
        prompt_digest=request.prompt_digest,
        parameters=dict(request.parameters),
        as_of=request.as_of,
        outcome="answered" if answer.failure is None else "failed",
        error=None if answer.failure is None else format_failure(answer.failure),
        response_id=answer.response_id,
        request_id=answer.request_id,
        fingerprint=answer.fingerprint,
        usage=answer.usage,
        cost=attempt.cost,
        latency_ms=answer.latency_ms,
        cached_from_seq=answer.cached_from_seq,
        raw_request=answer.raw_request,
        raw_answer=answer.raw_answer,
    )


def format_failure(failure: CallFailure) -> str:
    """Write a failure as the event's sentence: `rate_limited: HTTP 429: slow down`."""
    return f"{failure.kind}: {failure.detail}"


def parse_failure(text: str) -> CallFailure:
    """Read kind and detail back; status and waiting time are not in the sentence.

    Raises:
        BadInputError: the sentence does not begin with a kind.
    """
    for kind in get_args(FailureKind):
        if text.startswith(f"{kind}: "):
            return CallFailure(kind, text.removeprefix(f"{kind}: "))
    raise BadInputError(f"{text[:40]!r} does not begin with one of {', '.join(_KINDS)}")
