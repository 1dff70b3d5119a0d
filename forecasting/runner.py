"""The runner: every registered cell, once, with everything recorded; safe to kill at any instant.

    cell -> attempt.started -> strategy -> prediction.frozen
                                  `------> attempt.failed

Cells run side by side; how many calls are in flight is the adaptive limit's affair, up to the
question concurrency. A killed or interrupted run leaves its attempts open: `--resume` goes on with
them, and what they had been answered is not asked again. An error is a recorded row, never a lost
one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, Protocol

from forecasting.answer import forecast_schema
from forecasting.context import Context, Forecast, Line, NoForecastError, Resources
from forecasting.cost import most_it_can_cost
from forecasting.ports import Message, ModelRequest
from forecasting.strategies.registry import StrategyKind, find_strategy
from forecasting.strategies.settings import Settings, read_settings
from ledger.errors import BadInputError, BugError, OrderError
from ledger.events.base import ModelRoute, Payload
from ledger.events.call import AttemptFailed, AttemptStarted
from ledger.events.plan import MethodSpec
from ledger.events.prediction import Origin, PredictionFrozen
from ledger.protocol.state import Cell, ProtocolState

DIRECT_RULE: Final = "direct/1"
_MAX_DETAIL: Final = 4_000
_AS_OF_OF_PROBES: Final = "2000-01-01T00:00:00.000000Z"

ALWAYS_AGAIN: Final = ("budget: ", "stopped: ")
"""Failures that a resumed run tries again by itself: the method was not to blame."""


@dataclass(frozen=True, slots=True)
class Job:
    """A cell to run, and the attempt that is open already, if one is: its number and seq."""

    cell: Cell
    open_attempt: tuple[int, int] | None = None


@dataclass(slots=True)
class Tally:
    """What a run did; `stopped_by_budget` says that cells were left for a later run."""

    total: int = 0
    frozen: int = 0
    failed: int = 0
    calls: int = 0
    reused: int = 0
    stopped_by_budget: bool = False
    spent_usd: Decimal = Decimal(0)

    @property
    def done(self) -> int:
        """Cells that ended."""
        return self.frozen + self.failed


class Watch(Protocol):
    """Somebody who is told how far a run is."""

    def update(self, tally: Tally) -> None:
        """A cell ended."""


class Unwatched:
    """Nobody looks."""

    def update(self, tally: Tally) -> None:
        """Say nothing."""


@dataclass(frozen=True, slots=True)
class Method:
    """A registered method, ready to run."""

    spec: MethodSpec
    kind: StrategyKind
    settings: Settings
    line: Line | None


@dataclass(frozen=True, slots=True)
class Run:
    """What a run needs beside its jobs.

    Args:
        shared: what all cells share.
        methods: by id, as `prepare_method` gave them.
        state: the protocol state when the run began; cards and plan do not change meanwhile.
        concurrency: calls in flight at most; as many cells again may wait for the ledger.
    """

    shared: Resources
    methods: Mapping[str, Method]
    state: ProtocolState
    concurrency: int = 1
    watch: Watch = field(default_factory=Unwatched)


def choose_jobs(
    state: ProtocolState,
    *,
    methods: Sequence[str] = (),
    cards: Sequence[str] = (),
    retry_failed: bool = False,
) -> list[Job]:
    """Return what is left to run, in the plan's order.

    Cells that are frozen are done. Cells whose last attempt failed are done too, unless they failed
    for money or were stopped, or `retry_failed` is set.

    Args:
        state: the present state.
        methods: ids to run; all methods of source `run` where empty.
        cards: card ids to run; all where empty.
        retry_failed: also try failed cells again, as attempts of their own.

    Raises:
        BadInputError: a method or card that is not registered, or a method that is not run here.
    """
    _check_names(state, methods, cards)
    return list(_jobs(state, frozenset(methods), frozenset(cards), retry_failed=retry_failed))


def _jobs(
    state: ProtocolState, methods: frozenset[str], cards: frozenset[str], *, retry_failed: bool
) -> Iterator[Job]:
    for cell in state.registered_cells():
        is_chosen = cell.method in methods if methods else True
        if not is_chosen or state.methods[cell.method].source != "run" or cell in state.cells:
            continue
        if cards and cell.card_id not in cards:
            continue
        attempt = state.attempts.get(cell)
        if attempt is not None and attempt.open_seq is not None:
            yield Job(cell, (attempt.number, attempt.open_seq))
        elif _is_due(state.last_failure.get(cell), retry_failed=retry_failed):
            yield Job(cell)


def _is_due(failure: str | None, *, retry_failed: bool) -> bool:
    return failure is None or retry_failed or failure.startswith(ALWAYS_AGAIN)


def _check_names(state: ProtocolState, methods: Sequence[str], cards: Sequence[str]) -> None:
    if state.plan is None:
        raise OrderError(
            "order.plan-before-use",
            "no plan says what to run",
            remedy="Register one with `ledger preregister PLAN.yaml` first.",
        )
    for name in methods:
        method = state.methods.get(name)
        if method is None or method.source != "run":
            able = [m.id for m in state.methods.values() if m.source == "run"]
            raise BadInputError(
                f"method {name!r} is not one that the plan lets run",
                where="--method",
                remedy=f"Registered with source run: {', '.join(able) or 'none'}.",
            )
    for card_id in cards:
        if card_id not in state.planned_cards:
            raise BadInputError(f"card {card_id!r} is not in the plan's card set", where="--cards")


def prepare_method(spec: MethodSpec, lines: Mapping[tuple[str, str], Line]) -> Method:
    """Read a registered method and find its route.

    Args:
        spec: as registered.
        lines: open routes by provider and route; a registered route of None means the usual one.

    Raises:
        BadInputError: an unknown strategy or parameter, a changed prompt, or no such route.
    """
    kind = find_strategy(spec.strategy)
    if kind.forecast is None:
        raise BadInputError(
            f"strategy {kind.name} makes no calls",
            where=f"method {spec.id}",
            remedy="Register it with source constant.",
        )
    if spec.extraction_rule != DIRECT_RULE:
        raise BadInputError(
            f"strategy {kind.name} is extracted by {DIRECT_RULE}, not {spec.extraction_rule}",
            where=f"method {spec.id}",
        )
    settings = read_settings(spec)
    route = (spec.model_route.provider or "", spec.model_route.route or "")
    line = lines.get(route)
    if kind.asks_model and line is None:
        raise BadInputError(f"no route {route} is open", where=f"method {spec.id}")
    return Method(spec, kind, settings, line if kind.asks_model else None)


def check_method(method: Method, shared: Resources) -> None:
    """Find out before the first call whether a method's requests can be made at all.

    Raises:
        BadInputError: a parameter that the route does not have, a tool that is not open, or a
            ceiling that cannot be kept because the most that a call costs is not known.
    """
    for tool in method.settings.tools:
        if tool not in shared.tools:
            raise BadInputError(
                f"the tool {tool} is registered and not open",
                where=f"method {method.spec.id}",
                remedy="Give its key or its corpus.",
            )
    if method.line is None:
        return
    if not method.spec.model_route.requested_model:
        raise BadInputError("no model is registered", where=f"method {method.spec.id}")
    probe = ModelRequest(
        model=method.spec.model_route.requested_model,
        messages=(Message("user", "?"),),
        as_of=_AS_OF_OF_PROBES,
        prompt_version="probe",
        prompt_digest="0" * 64,
        parameters=method.settings.request,
        output=forecast_schema(method.settings.form),
    )
    body = method.line.provider.encode(probe)
    if shared.budget.has_ceiling:
        name, at = method.line.provider.provider, shared.world.clock()
        most_it_can_cost(shared.prices, name, probe, len(body), at)


async def run_jobs(run: Run, jobs: Sequence[Job]) -> Tally:
    """Run cells until all have ended or the ceiling is reached; return what was done.

    Cancellation leaves open what is open; whatever was paid for is on record.

    Raises:
        OrderError: the evaluation was closed meanwhile.
        LedgerFileError: the ledger cannot be written.
    """
    tally = Tally(total=len(jobs))
    for method in {job.cell.method for job in jobs}:
        check_method(run.methods[method], run.shared)
    waiting = iter(jobs)
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(_open_cells(run.concurrency), len(jobs))):
                group.create_task(_work(run, waiting, tally))
    except BaseExceptionGroup as errors:
        # The first error stopped the others; one sentence is about one thing.
        raise errors.exceptions[0] from None
    return tally


def _open_cells(concurrency: int) -> int:
    """Return how many cells to have open: twice the calls in flight, one where calls go singly.

    A cell writes three events one after the other. While one of them reaches the disk its call's
    place would stand empty; the limit on calls in flight is the adaptive limit's, not this one.
    """
    return 1 if concurrency == 1 else 2 * concurrency


async def _work(run: Run, waiting: Iterator[Job], tally: Tally) -> None:
    for job in waiting:
        await _run_cell(run, job, tally)
        tally.spent_usd = run.shared.budget.spent_usd
        run.watch.update(tally)
        if tally.stopped_by_budget:
            return


async def _run_cell(run: Run, job: Job, tally: Tally) -> None:
    cell, method = job.cell, run.methods[job.cell.method]
    number, seq = job.open_attempt or await _begin(run.shared, cell)
    context = Context(
        cell=cell,
        attempt=number,
        card=run.state.cards[cell.card_id].card,
        method=method.spec,
        settings=method.settings,
        line=method.line,
        shared=run.shared,
    )
    try:
        forecast = await _forecast(method, context)
        await _end(run.shared, cell, _frozen(context, forecast), None)
        tally.frozen += 1
    except NoForecastError as error:
        failed = AttemptFailed(
            method=cell.method,
            card_id=cell.card_id,
            draw=cell.draw,
            attempt=number,
            started_seq=seq,
            reason=error.reason,
            detail=str(error)[:_MAX_DETAIL] or error.reason,
        )
        await _end(run.shared, cell, failed, error.reason)
        tally.failed += 1
        tally.stopped_by_budget |= error.reason == "budget"
    finally:
        tally.calls += context.spent.calls
        tally.reused += context.spent.reused


async def _forecast(method: Method, context: Context) -> Forecast:
    """Run the strategy; what the ledger or a route refuses of it is its failure, with the rule."""
    if method.kind.forecast is None:
        raise BugError(f"strategy {method.kind.name} has no function")
    try:
        return await method.kind.forecast(context)
    except OrderError as refusal:
        if refusal.rule in {"order.late-prediction", "order.post-label"}:
            raise
        raise NoForecastError("provider_error", str(refusal)) from refusal
    except BadInputError as refusal:
        raise NoForecastError("provider_error", str(refusal)) from refusal


async def _begin(shared: Resources, cell: Cell) -> tuple[int, int]:
    started: list[AttemptStarted] = []

    def decide(state: ProtocolState) -> Payload:
        last = state.attempts.get(cell)
        number = last.number + 1 if last else 1
        payload = AttemptStarted(
            method=cell.method, card_id=cell.card_id, draw=cell.draw, attempt=number
        )
        started.append(payload)
        return payload

    seq = await shared.journal.write(decide)
    shared.memory.begin(cell)
    # Decided anew where another writer was faster: the last decision is the one that stands.
    return started[-1].attempt, seq


async def _end(shared: Resources, cell: Cell, payload: Payload, reason: str | None) -> None:
    await shared.journal.write(lambda _: payload)
    shared.memory.end(cell, reason)


def _frozen(context: Context, forecast: Forecast) -> PredictionFrozen:
    answer, prompt = forecast.answer, forecast.prompt
    provider = context.line.provider if context.line is not None and answer is not None else None
    return PredictionFrozen(
        method=context.cell.method,
        card_id=context.cell.card_id,
        draw=context.cell.draw,
        attempt=context.attempt,
        p_raw=forecast.probability.p_raw,
        p_yes=forecast.probability.p_yes,
        extraction_rule=DIRECT_RULE,
        model_route=ModelRoute(
            provider=provider.provider if provider else None,
            route=provider.route if provider else None,
            requested_model=context.method.model_route.requested_model if provider else None,
            resolved_model=answer.resolved_model if answer else None,
        ),
        prompt_version=prompt.version if prompt else None,
        prompt_digest=prompt.digest if prompt else None,
        response_id=answer.response_id if answer else None,
        sources=tuple(context.sources),
        origin=Origin(kind="run"),
    )


def routes_of(methods: Iterable[MethodSpec]) -> list[tuple[str, str | None]]:
    """Return the routes that methods of source `run` need, each once, in order."""
    routes = (
        (method.model_route.provider or "", method.model_route.route)
        for method in methods
        if method.source == "run" and find_strategy(method.strategy).asks_model
    )
    return list(dict.fromkeys(routes))
