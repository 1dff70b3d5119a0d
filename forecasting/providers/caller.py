"""A question to a model, the whole way: limit, reservation, attempt, record, retry, repair.

    slot -> reserve -> one attempt -> price -> settle -> record -> (wait, again) -> answer
                                                    answer -> read -> (repair turn, again)

Each attempt is recorded before anything follows from it. A cancelled attempt is recorded too: the
provider may have answered and billed it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from decimal import Decimal

from forecasting.answer import AnswerForm, ReadProbability, read_probability, repair_request
from forecasting.concurrency import AdaptiveLimit
from forecasting.cost import Budget, Prices, most_it_can_cost, price_answer, spent_on
from forecasting.ports import CallFailure, ModelAnswer, ModelRequest, Provider
from forecasting.providers.record import CallAttempt
from forecasting.providers.wire import failed, unanswered
from forecasting.retry import RetryPolicy, Sleep, next_wait_ms
from ledger.clock import Clock
from ledger.errors import BadInputError
from ledger.events.base import Money
from ledger.ids import Entropy

RecordAttempt = Callable[[CallAttempt], Awaitable[None]]
"""Writes one attempt to the ledger; when it returns, the attempt is on record."""


@dataclass(frozen=True, slots=True)
class World:
    """What a call takes from outside: the wall clock (for prices), sleep, and jitter."""

    clock: Clock
    sleep: Sleep
    entropy: Entropy


@dataclass(frozen=True, slots=True)
class Asked:
    """How a question ended: a probability and the answer it came from, or why there is none.

    Exactly one of `probability` and `reason` is given. `turns` counts the repair turns used.
    """

    probability: ReadProbability | None
    reason: str | None
    answer: ModelAnswer
    turns: int


class Caller:
    """Calls one provider under one limit and one budget.

    Args:
        provider: who is asked.
        limit: calls in flight, shared by all callers of the same account.
        budget: the ceiling, shared by the whole run.
        prices: the price list.
        policy: when to try again.
        world: time and randomness.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        limit: AdaptiveLimit,
        budget: Budget,
        prices: Prices,
        policy: RetryPolicy,
        world: World,
    ) -> None:
        self._provider = provider
        self._limit = limit
        self._budget = budget
        self._prices = prices
        self._policy = policy
        self._world = world

    async def call(
        self, request: ModelRequest, record: RecordAttempt, *, turn: int = 0
    ) -> ModelAnswer:
        """Call until there is an answer, a final failure, or no try left; return the last attempt.

        An attempt that the ceiling forbids is not made and not recorded: its failure is
        `over_budget`.

        Raises:
            BadInputError: the request cannot be expressed on this route, or a ceiling is set and
                the most that the call can cost is not known. Nothing was sent.
        """
        planned = _Try(request, self._most(request), number=1, turn=turn)
        while True:
            answer = await self._attempt(planned, record)
            wait_ms = self._wait_ms(answer, planned.number)
            if wait_ms is None:
                return answer
            await self._world.sleep(wait_ms / 1000)
            planned = replace(planned, number=planned.number + 1)

    async def ask(
        self, request: ModelRequest, record: RecordAttempt, form: AnswerForm, *, repair_turns: int
    ) -> Asked:
        """Ask for a probability; where the answer has none, say why and ask again.

        Args:
            request: the question.
            record: writes each attempt.
            form: how the probability was asked for.
            repair_turns: how often to ask again at most (0 for never).
        """
        turn = 0
        while True:
            answer = await self.call(request, record, turn=turn)
            if answer.failure is not None:
                return Asked(None, f"{answer.failure.kind}: {answer.failure.detail}", answer, turn)
            said = answer.text or ""
            try:
                return Asked(read_probability(said, form), None, answer, turn)
            except BadInputError as problem:
                if turn >= repair_turns:
                    return Asked(None, f"no usable probability: {problem}", answer, turn)
                request = repair_request(request, said, problem, turn=turn + 1)
            turn += 1

    def _most(self, request: ModelRequest) -> Decimal:
        if not self._budget.has_ceiling:
            return Decimal(0)
        octets = len(self._provider.encode(request))
        name = self._provider.provider
        return most_it_can_cost(self._prices, name, request, octets, self._world.clock())

    def _wait_ms(self, answer: ModelAnswer, number: int) -> int | None:
        if answer.failure is None:
            return None
        return next_wait_ms(self._policy, answer.failure, number, self._world.entropy)

    async def _attempt(self, planned: _Try, record: RecordAttempt) -> ModelAnswer:
        interrupted: asyncio.CancelledError | None = None
        async with self._limit.slot() as slot:
            if not await self._budget.reserve(planned.most_usd):
                detail = f"a call that may cost {planned.most_usd} USD is more than is left"
                return self._unanswered(planned, failed("over_budget", detail))
            spent = planned.most_usd
            at = self._world.clock()
            try:
                try:
                    answer = await self._provider.call(planned.request)
                except asyncio.CancelledError as error:
                    interrupted = error
                    answer = self._unanswered(planned, _CANCELLED)
                except BadInputError:
                    spent = Decimal(0)  # nothing was sent
                    raise
                name = self._provider.provider
                cost = price_answer(self._prices, name, planned.request, answer, at)
                spent = spent_on(answer, cost, planned.most_usd)
            finally:
                self._budget.settle(planned.most_usd, spent)
            slot.failure = answer.failure
        # Outside the slot: the provider need not idle while the ledger reaches the disk.
        await _to_the_end(record(self._to_record(planned, answer, cost)))
        if interrupted is not None:
            raise interrupted
        return answer

    def _unanswered(self, planned: _Try, failure: CallFailure) -> ModelAnswer:
        return unanswered(self._provider.encode(planned.request), failure, latency_ms=0)

    def _to_record(self, planned: _Try, answer: ModelAnswer, cost: Money) -> CallAttempt:
        return CallAttempt(
            planned.request,
            answer,
            self._provider.provider,
            self._provider.route,
            cost,
            planned.number,
            planned.turn,
        )


@dataclass(frozen=True, slots=True)
class _Try:
    """An attempt that is about to be made, and the most that it can cost."""

    request: ModelRequest
    most_usd: Decimal
    number: int
    turn: int


async def _to_the_end(recording: Awaitable[None]) -> None:
    """Await a recording even if this task is cancelled meanwhile: the answer was paid for."""
    task = asyncio.ensure_future(recording)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


_CANCELLED = CallFailure("cancelled", "stopped before the answer came")
