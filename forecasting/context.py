"""What a strategy may do for one cell: read the card, ask a model, search; all of it on record.

A context belongs to one attempt of one method, card and draw. As-of comes from the card and goes
into every request; a strategy cannot name another. Each provider attempt and each tool attempt is
an event before anything follows from it, and what the ledger answers already is not asked again.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Final, Literal

from forecasting.answer import ReadProbability
from forecasting.concurrency import AdaptiveLimit
from forecasting.cost import Budget, Prices, unknown, usd
from forecasting.journal import Journal
from forecasting.memory import (
    Hit,
    Key,
    Memory,
    key_of_event,
    model_key,
    read_call,
    tool_key,
)
from forecasting.ports import (
    FailureKind,
    Message,
    ModelAnswer,
    ModelRequest,
    OutputSchema,
    Provider,
    SearchTool,
    ToolAnswer,
    ToolRequest,
    ToolSpec,
)
from forecasting.prompt_text import Prompt
from forecasting.providers.caller import Caller, RecordAttempt, World
from forecasting.providers.record import CallAttempt, CallCell, format_failure, to_model_called
from forecasting.providers.replay import RecordedCall, ReplayProvider
from forecasting.providers.wire import Wire
from forecasting.retry import RetryPolicy, next_wait_ms
from forecasting.strategies.settings import Settings
from forecasting.timebox import Choice, Judged, Timebox, format_evidence, format_today, judge_all
from forecasting.tools.recorded import read_recorded
from ledger.clock import format_moment
from ledger.errors import BadInputError, LedgerError, WithheldError
from ledger.events.base import Money
from ledger.events.call import ModelCalled, ToolCalled
from ledger.events.card import PublicCard
from ledger.events.plan import MethodSpec
from ledger.protocol.state import Cell
from ledger.session import Session

Reason = Literal["refused", "timeout", "provider_error", "unusable_answer", "budget", "stopped"]
"""Why an attempt failed, as `attempt.failed` has it."""

_REASONS: Final[Mapping[FailureKind, Reason]] = {
    "refused": "refused",
    "timeout": "timeout",
    "over_budget": "budget",
    "truncated": "unusable_answer",
    "unreadable": "unusable_answer",
    "cancelled": "stopped",
}


class NoForecastError(LedgerError):
    """An attempt ends without a probability; `reason` and the message go into `attempt.failed`."""

    def __init__(self, reason: Reason, detail: str) -> None:
        self.reason: Reason = reason
        super().__init__(detail)


@dataclass(frozen=True, slots=True)
class Line:
    """One route to models, shared by every cell of a run: adapter, wire format, calls in flight."""

    provider: Provider
    wire: Wire
    limit: AdaptiveLimit


@dataclass(frozen=True, slots=True)
class Resources:
    """What all cells of a run share.

    `tools` are by name; `tool_limit` bounds the searches in flight.
    """

    journal: Journal
    memory: Memory
    budget: Budget
    prices: Prices
    policy: RetryPolicy
    world: World
    tools: Mapping[str, SearchTool]
    tool_limit: AdaptiveLimit
    log_id: str
    undated: Choice = "drop"


@dataclass(frozen=True, slots=True)
class Forecast:
    """A probability, and the answer and prompt it came from; no answer where no model spoke."""

    probability: ReadProbability
    answer: ModelAnswer | None
    prompt: Prompt | None


@dataclass(frozen=True, slots=True)
class Searched:
    """What a search came to: judged evidence, or why there is none."""

    judged: tuple[Judged, ...]
    problem: str | None = None

    def format(self, as_of: str) -> str:
        """Write what was kept, or the problem, for a prompt."""
        if self.problem is not None:
            return f"The search failed: {self.problem}"
        return format_evidence(self.judged, as_of=as_of)


@dataclass(slots=True)
class Spent:
    """What one attempt did, for the progress line."""

    calls: int = 0
    reused: int = 0


@dataclass(frozen=True, slots=True)
class Context:
    """One attempt at one cell.

    `sources` collects the seqs of the calls that the prediction rests on.
    """

    cell: Cell
    attempt: int
    card: PublicCard
    method: MethodSpec
    settings: Settings
    line: Line | None
    shared: Resources
    sources: list[int] = field(default_factory=list)
    spent: Spent = field(default_factory=Spent)
    _asked: Counter[Key] = field(default_factory=Counter)

    @property
    def as_of(self) -> str:
        """The moment after which nothing is known."""
        return self.card.as_of

    @property
    def today(self) -> str:
        """The day that prompts call today."""
        return format_today(self.card.as_of)

    def prompt(self, stage: str) -> Prompt:
        """Return the registered prompt of a stage.

        Raises:
            BadInputError: the plan registers none.
        """
        prompt = self.settings.prompts.get(stage)
        if prompt is None:
            raise BadInputError(
                f"method {self.method.id} registers no prompt for {stage}",
                remedy="Register its version and digest in the plan.",
            )
        return prompt

    async def ask(
        self,
        role: str,
        prompt: Prompt,
        messages: tuple[Message, ...],
        output: OutputSchema,
    ) -> Forecast:
        """Ask for a probability, with repair turns as registered.

        Raises:
            NoForecastError: no usable answer came.
        """
        caller, record = self._caller(role)
        asked = await caller.ask(
            self._request(prompt, messages, output=output),
            record,
            self.settings.form,
            repair_turns=self.settings.repair_turns,
        )
        if asked.probability is None:
            raise _no_forecast(asked.answer, asked.reason or "")
        return Forecast(asked.probability, asked.answer, prompt)

    async def call(
        self,
        role: str,
        prompt: Prompt,
        messages: tuple[Message, ...],
        tools: tuple[ToolSpec, ...],
    ) -> ModelAnswer:
        """Let a model speak or ask for tools, in free form.

        Raises:
            NoForecastError: no answer came.
        """
        caller, record = self._caller(role)
        answer = await caller.call(self._request(prompt, messages, tools=tools), record)
        if answer.failure is not None:
            raise _no_forecast(answer, format_failure(answer.failure))
        return answer

    async def search(self, tool: str, arguments: Mapping[str, str]) -> Searched:
        """Search once, trying again what may pass; the timebox decides what is kept.

        A tool that fails gives a problem and no evidence: a forecast without evidence is still a
        forecast, and the log says why there was none.
        """
        request = ToolRequest(dict(arguments), self.as_of, self._now())
        key = tool_key(tool, request, self.cell.draw)
        remembered = await self._recall_search(tool, request, key)
        if remembered is not None:
            return remembered
        number = 1
        while True:
            async with self.shared.tool_limit.slot() as slot:
                answer = await self.shared.tools[tool].search(request)
                slot.failure = answer.failure
            judged = judge_all(answer.found, self._timebox(), retrieved_at=request.now)
            await self._record_search(tool, request, key, answer, judged=judged)
            if answer.failure is None:
                return Searched(judged)
            policy, entropy = self.shared.policy, self.shared.world.entropy
            wait_ms = next_wait_ms(policy, answer.failure, number, entropy)
            if wait_ms is None:
                return Searched((), answer.failure.detail)
            await self.shared.world.sleep(wait_ms / 1000)
            number += 1
            request = replace(request, now=self._now())

    def _request(
        self,
        prompt: Prompt,
        messages: tuple[Message, ...],
        *,
        output: OutputSchema | None = None,
        tools: tuple[ToolSpec, ...] = (),
    ) -> ModelRequest:
        return ModelRequest(
            model=self.method.model_route.requested_model or "",
            messages=messages,
            as_of=self.as_of,
            prompt_version=prompt.version,
            prompt_digest=prompt.digest,
            parameters=self.settings.for_draw(self.cell.draw),
            output=output,
            tools=tools,
            timeout_s=float(self.settings.timeout_s),
        )

    def _caller(self, role: str) -> tuple[_RecallingCaller, RecordAttempt]:
        if self.line is None:
            raise BadInputError(
                f"method {self.method.id} registers no provider",
                remedy="Register its model_route in the plan.",
            )
        who = CallCell(self.cell.method, self.cell.card_id, self.cell.draw, role)

        async def record(attempt: CallAttempt) -> None:
            await self._record_call(attempt, who)

        return _RecallingCaller(self, self.line, who), record

    async def _record_call(self, attempt: CallAttempt, who: CallCell) -> None:
        event = to_model_called(attempt, who)
        seq = await self.shared.journal.write(lambda _: event)
        self.sources.append(seq)
        self.spent.calls += 1
        if event.outcome == "answered" and event.raw_answer is not None:
            self.shared.memory.note(self.cell, key_of_event(event), seq)

    async def _record_search(
        self,
        tool: str,
        request: ToolRequest,
        key: Key,
        answer: ToolAnswer,
        *,
        judged: tuple[Judged, ...],
        hit: Hit | None = None,
    ) -> None:
        event = ToolCalled(
            method=self.cell.method,
            card_id=self.cell.card_id,
            draw=self.cell.draw,
            tool=tool,
            arguments=dict(request.arguments),
            as_of=request.as_of,
            limits_sent=dict(answer.limits_sent),
            outcome="answered" if answer.failure is None else "failed",
            error=None if answer.failure is None else format_failure(answer.failure),
            evidence=tuple(item.evidence for item in judged),
            cost=_tool_cost(answer),
            latency_ms=answer.latency_ms,
            cached_from_seq=None if hit is None else hit.seq,
            raw_answer=answer.raw_answer,
        )
        if event.cost.amount is not None:
            self.shared.budget.settle(Decimal(0), Decimal(event.cost.amount))
        seq = await self.shared.journal.write(lambda _: event)
        self.sources.append(seq)
        if event.outcome == "answered" and event.raw_answer is not None:
            self.shared.memory.note(self.cell, key, seq)

    async def _recall_search(self, tool: str, request: ToolRequest, key: Key) -> Searched | None:
        hit = self.shared.memory.take(self.cell, key)
        event = None if hit is None else await self.recall(hit)
        if hit is None or not isinstance(event, ToolCalled) or event.raw_answer is None:
            return None
        found = read_recorded(tool, event.raw_answer)
        # Evidence keeps the moment at which it was fetched, not the one at which it is remembered.
        at = event.evidence[0].retrieved_at if event.evidence else request.now
        judged = judge_all(found, self._timebox(), retrieved_at=at)
        self.spent.reused += 1
        if hit.is_own:
            self.sources.append(hit.seq)
            return Searched(judged)
        answer = ToolAnswer(found, None, event.limits_sent, "0", event.raw_answer, 0)
        await self._record_search(tool, request, key, answer, judged=judged, hit=hit)
        return Searched(judged)

    async def recall(self, hit: Hit) -> ModelCalled | ToolCalled | None:
        """Read a remembered call; None where it was redacted meanwhile."""

        def look(session: Session) -> ModelCalled | ToolCalled:
            return read_call(next(iter(session.store.read(hit.seq, hit.seq + 1))))

        try:
            return await self.shared.journal.read(look)
        except WithheldError:
            return None

    def name_call(self, request: ModelRequest, key: Key) -> ModelRequest:
        """Give a call its idempotency key: the same after a kill, another for another call."""
        parts = (self.shared.log_id, *map(str, self.cell), str(self.attempt), key.hex())
        self._asked[key] += 1
        text = "\n".join((*parts, str(self._asked[key])))
        return replace(request, idem_key=hashlib.sha256(text.encode()).hexdigest()[:32])

    def _timebox(self) -> Timebox:
        return Timebox(self.as_of, undated=self.shared.undated)

    def _now(self) -> str:
        return format_moment(self.shared.world.clock())


class _RecallingCaller(Caller):
    """A caller that looks into the ledger first."""

    def __init__(self, context: Context, line: Line, who: CallCell) -> None:
        shared = context.shared
        super().__init__(
            line.provider,
            limit=line.limit,
            budget=shared.budget,
            prices=shared.prices,
            policy=shared.policy,
            world=shared.world,
        )
        self._context = context
        self._line = line
        self._who = who

    async def call(
        self, request: ModelRequest, record: RecordAttempt, *, turn: int = 0
    ) -> ModelAnswer:
        """Return the remembered answer, else call (see Caller.call)."""
        context = self._context
        provider = self._line.provider
        key = model_key(
            (provider.provider, provider.route),
            provider.encode(request),
            as_of=request.as_of,
            draw=context.cell.draw,
        )
        hit = context.shared.memory.take(context.cell, key)
        event = None if hit is None else await context.recall(hit)
        if hit is None or not isinstance(event, ModelCalled):
            return await super().call(context.name_call(request, key), record, turn=turn)
        answer = await self._answer_again(request, hit, event)
        context.spent.reused += 1
        if hit.is_own:
            context.sources.append(hit.seq)
        else:
            # Nothing was paid for it here: the price stands at the seq it cites.
            free = usd(Decimal(0))
            await record(
                CallAttempt(request, answer, provider.provider, provider.route, free, 1, turn)
            )
        return answer

    async def _answer_again(
        self, request: ModelRequest, hit: Hit, event: ModelCalled
    ) -> ModelAnswer:
        recorded = ReplayProvider(
            provider=self._line.provider.provider,
            wire=self._line.wire,
            calls=[RecordedCall(hit.seq, event)],
        )
        answer = await recorded.call(request)
        return replace(answer, latency_ms=0)


def _no_forecast(answer: ModelAnswer, why: str) -> NoForecastError:
    if answer.failure is None:
        return NoForecastError("unusable_answer", why)
    return NoForecastError(_REASONS.get(answer.failure.kind, "provider_error"), why)


def _tool_cost(answer: ToolAnswer) -> Money:
    if answer.cost_usd is None:
        return unknown("the tool reports no cost")
    return usd(Decimal(answer.cost_usd))
