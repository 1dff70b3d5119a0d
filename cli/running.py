"""A run from the command line: open routes, tools and prices, run the cells, show how far it is."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path

import httpx
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from cli.rendering import say
from cli.system import system_actor, system_clock, system_entropy
from cli.wiring import open_store
from forecasting.concurrency import AdaptiveLimit
from forecasting.context import Line, Resources
from forecasting.cost import Budget, ListPrices, Prices, unknown
from forecasting.journal import Journal
from forecasting.memory import read_memory
from forecasting.ports import SearchTool
from forecasting.providers.caller import World
from forecasting.providers.endpoints import find_endpoint, find_wire, open_provider
from forecasting.providers.scripted import ScriptedProvider, ScriptedWire, digest_forecast
from forecasting.questions.question import MarketPrice
from forecasting.retry import RetryPolicy
from forecasting.runner import Run, Tally, Watch, choose_jobs, prepare_method, routes_of, run_jobs
from forecasting.tools import market
from forecasting.tools.asknews import AskNewsTool
from forecasting.tools.corpus import Corpus, CorpusTool
from forecasting.tools.exa import ExaTool
from ledger.errors import BadInputError
from ledger.events.base import Money
from ledger.events.call import TokenUsage
from ledger.protocol.state import ProtocolState
from ledger.session import Session

SCRIPTED = "scripted"
LINE_EVERY_S = 5.0

Environment = Mapping[str, str]
PricesByCard = Mapping[str, Sequence[MarketPrice]]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What a command line says about a run.

    Attributes:
        methods, cards: ids to run; all that the plan registers where empty.
        concurrency: cells at once, and calls in flight at most a provider.
        max_cost: ceiling in USD over all runs of the ledger; None for none.
        use_cache: take answers from elsewhere in the ledger.
        retry_failed: try failed cells again.
        corpus: the open corpus, if there is one.
        market_prices: dated prices by card.
    """

    methods: tuple[str, ...] = ()
    cards: tuple[str, ...] = ()
    concurrency: int = 1
    max_cost: Decimal | None = None
    use_cache: bool = True
    retry_failed: bool = False
    corpus: Corpus | None = None
    market_prices: PricesByCard = field(default_factory=dict)


class NoPrices:
    """The price list of an installation without one: every price is unknown, with that reason."""

    source = "none"

    def price(self, provider: str, model: str, usage: TokenUsage, at: datetime) -> Money:
        """Say why nothing is known (see Prices.price)."""
        del provider, model, usage, at
        return unknown("the package genai-prices is not installed")


def read_environment(folder: Path) -> dict[str, str]:
    """Return the environment, with what a `.env` in a folder adds to it.

    Raises:
        BadInputError: a line of `.env` that is no NAME=VALUE. No value is shown.
    """
    file = folder / ".env"
    found: dict[str, str] = {}
    if file.is_file():
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
            text = line.strip().removeprefix("export ").strip()
            if not text or text.startswith("#"):
                continue
            name, equals, value = text.partition("=")
            if not equals or not name.strip().isidentifier():
                raise BadInputError("is not NAME=VALUE", where=f"{file}:{number}")
            found[name.strip()] = value.strip().strip("\"'")
    return {**found, **os.environ}


def read_max_cost(text: str | None) -> Decimal | None:
    """Read `--max-cost`.

    Raises:
        BadInputError: no amount from 0.
    """
    try:
        amount = None if text is None else Decimal(text)
    except InvalidOperation:
        amount = Decimal(-1)
    if amount is not None and not (amount.is_finite() and amount >= 0):
        raise BadInputError(
            f"{text!r} is not an amount in USD", where="--max-cost", remedy="Write it like 2.50."
        )
    return amount


def run_ledger(ledger: Path, options: RunOptions, environment: Environment) -> Tally:
    """Run the cells of a registered plan that are left; return what was done.

    Raises:
        LedgerError: whatever makes a run impossible; cells that fail are rows, not errors.
    """
    return asyncio.run(_run(ledger, options, environment))


async def _run(ledger: Path, options: RunOptions, environment: Environment) -> Tally:
    def open_session() -> Session:
        return Session(open_store(ledger), clock=system_clock, actor=system_actor())

    async with Journal(open_session) as journal:
        state = await journal.read(lambda session: session.state().copy())
        memory = await journal.read(
            lambda session: read_memory(session.store, use_cache=options.use_cache)
        )
        jobs = choose_jobs(
            state,
            methods=options.methods,
            cards=options.cards,
            retry_failed=options.retry_failed,
        )
        must_hold_corpus(state, options.corpus)
        chosen = {job.cell.method: state.methods[job.cell.method] for job in jobs}
        async with (
            open_lines(routes_of(chosen.values()), environment, options.concurrency) as lines,
            open_tools(state, environment, options) as tools,
        ):
            shared = Resources(
                journal=journal,
                memory=memory,
                budget=Budget(options.max_cost, spent_usd=memory.spent_usd),
                prices=open_prices(),
                policy=RetryPolicy(),
                world=World(system_clock, asyncio.sleep, system_entropy),
                tools=tools,
                tool_limit=_limit(options.concurrency),
                log_id=state.opened.log_id if state.opened else "",
                undated=state.plan.undated_evidence if state.plan else "drop",
            )
            methods = {name: prepare_method(spec, lines) for name, spec in chosen.items()}
            with watching(len(jobs)) as watch:
                run = Run(shared, methods, state, options.concurrency, watch)
                return await run_jobs(run, jobs)


def open_prices() -> Prices:
    """Return the price list that is installed, or one that knows nothing."""
    try:
        return ListPrices()
    except BadInputError:
        return NoPrices()


@asynccontextmanager
async def open_lines(
    routes: Sequence[tuple[str, str | None]], environment: Environment, concurrency: int
) -> AsyncIterator[dict[tuple[str, str], Line]]:
    """Open the registered routes, by provider and route as registered, and close them."""
    lines: dict[tuple[str, str], Line] = {}
    try:
        for name, route in routes:
            lines[name, route or ""] = open_line(name, route, environment, concurrency)
        yield lines
    finally:
        for line in lines.values():
            await line.provider.close()


def open_line(name: str, route: str | None, environment: Environment, concurrency: int) -> Line:
    """Open one route.

    Raises:
        BadInputError: an unknown provider or route, or no key for it.
    """
    if name == SCRIPTED:
        scripted = ScriptedProvider(digest_forecast)
        return Line(scripted, ScriptedWire(), _limit(concurrency))
    provider = open_provider(
        name, route, environment, monotonic_s=time.perf_counter, max_connections=concurrency
    )
    return Line(provider, find_wire(find_endpoint(name), route), _limit(concurrency))


def _limit(concurrency: int) -> AdaptiveLimit:
    return AdaptiveLimit(concurrency, monotonic_s=time.perf_counter, sleep=asyncio.sleep)


@asynccontextmanager
async def open_tools(
    state: ProtocolState, environment: Environment, options: RunOptions
) -> AsyncIterator[dict[str, SearchTool]]:
    """Open the tools that the plan's methods register, and close them."""
    wanted = _registered_tools(state)
    tools: dict[str, SearchTool] = {market.NAME: market.MarketTool(options.market_prices)}
    try:
        for name in wanted:
            tools[name] = _open_tool(name, environment, options)
        yield tools
    finally:
        for tool in tools.values():
            await tool.close()


def _registered_tools(state: ProtocolState) -> list[str]:
    texts = [
        method.parameters.get("tools", "")
        for method in state.methods.values()
        if method.source == "run"
    ]
    return list(dict.fromkeys(name for text in texts for name in text.split(",") if name))


def _open_tool(name: str, environment: Environment, options: RunOptions) -> SearchTool:
    if name == "corpus_search":
        if options.corpus is None:
            raise BadInputError("the plan registers a corpus", remedy="Name it with --corpus.")
        return CorpusTool(options.corpus, timer=time.perf_counter)
    if name == "exa_search":
        return ExaTool.from_environment(environment, timer=time.perf_counter)
    if name == "asknews_latest":
        return AskNewsTool.from_environment(environment, lane="latest", timer=time.perf_counter)
    if name == "asknews_archive":
        return AskNewsTool.from_environment(environment, lane="archive", timer=time.perf_counter)
    raise BadInputError(f"there is no tool {name!r}", where="parameters.tools")


def available_tools(environment: Environment, corpus: Corpus | None) -> tuple[str, ...]:
    """Return the search tools for which there is a corpus or a key."""
    tools = ["corpus_search"] if corpus is not None else []
    if environment.get("EXA_API_KEY"):
        tools.append("exa_search")
    if environment.get("ASKNEWS_CLIENT_ID") and environment.get("ASKNEWS_SECRET"):
        tools += ["asknews_latest", "asknews_archive"]
    return tuple(tools)


def served_model(base_url: str) -> str:
    """Ask a local server which model it serves.

    Raises:
        BadInputError: no server, or none that lists a model.
    """
    try:
        with httpx.Client(trust_env=False, timeout=5.0) as client:
            document = client.get(f"{base_url.rstrip('/')}/models").json()
        return str(document["data"][0]["id"])
    except (httpx.HTTPError, ValueError, KeyError, IndexError, TypeError) as error:
        raise BadInputError(
            f"no local model answers at {base_url}",
            remedy="Start one with `ledger models serve`, or install the extra [local].",
        ) from error


class _Lines:
    """Progress as plain lines, at most one in five seconds and one at the end."""

    def __init__(self, total: int) -> None:
        self._began = self._last = time.perf_counter()
        self._total = total

    def update(self, tally: Tally) -> None:
        now = time.perf_counter()
        if tally.done < self._total and now - self._last < LINE_EVERY_S:
            return
        self._last = now
        say(f"{tally.done}/{tally.total} cells, {describe(tally, now - self._began)}")


class _Bar:
    """Progress as one line of a terminal."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress = progress
        self._began = time.perf_counter()
        self._task = progress.add_task("", total=total, said="")

    def update(self, tally: Tally) -> None:
        said = describe(tally, time.perf_counter() - self._began)
        self._progress.update(self._task, completed=tally.done, said=said)


def describe(tally: Tally, seconds: float) -> str:
    """Say what a run did and what it costs, and what is left at this rate."""
    rate = tally.done / seconds if seconds > 0 else 0.0
    left = f", {round((tally.total - tally.done) / rate)} s left" if rate else ""
    spent = f"{tally.spent_usd.normalize():f}"
    return (
        f"{tally.failed} failed, {tally.calls} calls, {tally.reused} reused, {spent} USD,"
        f" {rate:.2f} cells/s{left if tally.done < tally.total else ''}"
    )


@contextmanager
def watching(total: int) -> Iterator[Watch]:
    """Show progress: a bar on a terminal, plain lines where output is piped."""
    if not sys.stdout.isatty():
        yield _Lines(total)
        return
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[said]}"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(), transient=True) as progress:
        yield _Bar(progress, total)


def check_concurrency(value: int) -> int:
    """Return a concurrency.

    Raises:
        BadInputError: not from 1 to 1024.
    """
    if not 1 <= value <= 1024:
        raise BadInputError(f"{value} is not from 1 to 1024", where="--question-concurrency")
    return value


def must_hold_corpus(state: ProtocolState, corpus: Corpus | None) -> None:
    """Refuse a corpus that is not the registered one.

    Raises:
        BadInputError: a method registers another digest.
    """
    for method in state.methods.values():
        wanted = method.parameters.get("corpus_sha256")
        if wanted is not None and corpus is not None and corpus.digest != wanted:
            raise BadInputError(
                f"the corpus is not the one that method {method.id} registers",
                where="--corpus",
                remedy="Name the registered corpus.",
            )


def end_of_run(tally: Tally) -> str:
    """Say in one sentence how a run ended."""
    if tally.stopped_by_budget:
        return (
            f"stopped at the cost ceiling with {tally.total - tally.done} cells not run; raise"
            " --max-cost and go on with --resume"
        )
    return f"ran {tally.done} cells: {tally.frozen} frozen, {tally.failed} failed"
