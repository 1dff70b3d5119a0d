"""Small evaluations that are ready to run: cards, seals, a plan made from strategies, a server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from store_examples import LOG_ID, clock

from forecasting.backtest import PlanFields, RunSetup, freeze_questions, make_plan
from forecasting.concurrency import AdaptiveLimit
from forecasting.context import Line, Resources
from forecasting.cost import Budget
from forecasting.journal import Journal
from forecasting.memory import read_memory
from forecasting.ports import (
    CallFailure,
    Found,
    Provider,
    SearchTool,
    ToolAnswer,
    ToolRequest,
    ToolSpec,
)
from forecasting.providers.caller import World
from forecasting.providers.chat import ChatWire
from forecasting.providers.openai_sdk import OpenAIProvider
from forecasting.providers.scripted import Script, ScriptedProvider, ScriptedWire, digest_forecast
from forecasting.providers.wire import Wire, to_raw
from forecasting.questions.question import ImportedSet, MarketPrice, Question
from forecasting.retry import RetryPolicy
from forecasting.runner import (
    Run,
    Tally,
    Unwatched,
    Watch,
    choose_jobs,
    prepare_method,
    run_jobs,
)
from forecasting.strategies.config import Strategy
from forecasting.tools.arguments import check_arguments
from forecasting.tools.corpus import SPEC as CORPUS_SPEC
from forecasting.tools.market import NAME, MarketTool
from ledger.canonical import canonicalize
from ledger.errors import BadInputError
from ledger.events.anchor import LedgerOpened
from ledger.events.base import Money
from ledger.events.card import LabelSealed, PrivateObject
from ledger.events.codec import read_event
from ledger.events.plan import Plan, PlanPreregistered
from ledger.ids import SeededEntropy
from ledger.session import Session
from ledger.store.memory import MemoryStore
from ledger.store.port import Store
from ledger.vault import seal_private

AS_OF = "2025-06-30T12:00:00.000000Z"
OPENS = "2026-01-01T00:00:00.000000Z"
SCRIPTED = RunSetup(provider="scripted", model="scripted-1")
NO_AGENT = Strategy(id="plain", enabled=True, final_forecast_use_agent=False)
AGENT = Strategy(
    id="agent",
    enabled=True,
    outside_view_enabled=False,
    inside_view_enabled=False,
)


def question(name: str, **changed: Any) -> Question:
    """A resolved question; `changed` replaces fields."""
    fields: dict[str, Any] = {
        "question_id": name,
        "origin": "test",
        "kind": "resolved",
        "title": f"Question {name}",
        "question": f"Will the bridge {name} open?",
        "as_of": AS_OF,
        "deadline": "2025-12-31T23:59:59.999999Z",
        "background": f"The bridge {name} is being built.",
        "resolution_criteria": "Yes if it opens.",
        **changed,
    }
    return Question(**fields)


def imported(questions: Iterable[Question]) -> ImportedSet:
    """The questions with their labels, by turns yes and no."""
    listed = tuple(questions)
    labels = tuple(
        PrivateObject(card_id=q.question_id, resolution="yes" if index % 2 else "no")
        for index, q in enumerate(listed)
    )
    return ImportedSet(listed, labels)


def prepare(store: Store, questions: Sequence[Question], methods: Sequence[PlanFields]) -> Session:
    """Freeze, seal and register in a store that holds `ledger.opened` or nothing."""
    session = Session(store, clock=clock(), actor="tester")
    entropy = SeededEntropy("prepare")
    if store.head().size == 0:
        session.commit(lambda _: [opened()])
    given = imported(questions)
    frozen = freeze_questions(given, entropy)
    session.commit(lambda _: frozen)
    sealed = [
        LabelSealed(card_id=label.card_id, seal=seal_private(label, entropy).seal, custodian="c")
        for label in given.labels
    ]
    session.commit(lambda _: sealed)
    cards = [q.question_id for q in questions]
    fields = make_plan("test-run", cards, methods, opens_at=OPENS)
    plan = Plan.model_validate_json(canonicalize(fields))
    session.commit(lambda _: [PlanPreregistered(plan=plan, source_sha256="0" * 64)])
    return session


def opened() -> LedgerOpened:
    """Event 0."""
    return LedgerOpened(
        origin="example.com/run", log_id=LOG_ID, format="forecast-ledger/1", verifier_keys=()
    )


def memory_store() -> MemoryStore:
    """An empty store."""
    return MemoryStore(log_id=LOG_ID, clock=clock(), entropy=SeededEntropy("run"))


async def no_wait(_seconds: float) -> None:
    """Let others go on, and do not wait."""
    await asyncio.sleep(0)


class CentACall:
    """Every answered call costs a cent, at most two."""

    source = "test"

    def price(self, provider: str, model: str, usage: Any, at: object) -> Money:
        del provider, model, at
        return Money(amount="0.02" if usage.output_tokens == 4096 else "0.01", currency="USD")


@dataclass
class Setting:
    """What a run in a test takes from outside; change a field to change the run."""

    provider: Provider
    wire: Wire
    tools: Mapping[str, SearchTool] = field(default_factory=dict)
    prices: Mapping[str, Sequence[MarketPrice]] = field(default_factory=dict)
    concurrency: int = 1
    max_cost: Decimal | None = None
    use_cache: bool = True
    retry_failed: bool = False
    tries: int = 3
    watch: Watch = field(default_factory=Unwatched)


def scripted(script: Script = digest_forecast, **changed: Any) -> Setting:
    """A setting with the scripted provider."""
    return Setting(ScriptedProvider(script), ScriptedWire(), **changed)


def over_http(url: str, *, key: str | None = None, **changed: Any) -> Setting:
    """A setting with the real SDK against a server of the tests."""
    provider = OpenAIProvider(
        provider="openai",
        wire=ChatWire(),
        base_url=url,
        api_key=key,
        monotonic_s=time.perf_counter,
    )
    return Setting(provider, ChatWire(), **changed)


def limit(calls: int) -> AdaptiveLimit:
    """A limit that starts at its ceiling."""
    return AdaptiveLimit(calls, monotonic_s=time.perf_counter, sleep=no_wait, start=calls)


async def run_all(open_session: Callable[[], Session], setting: Setting) -> Tally:
    """Run what is left of a prepared evaluation."""
    async with Journal(open_session) as journal:
        state = await journal.read(lambda session: session.state().copy())
        memory = await journal.read(
            lambda session: read_memory(session.store, use_cache=setting.use_cache)
        )
        jobs = choose_jobs(state, retry_failed=setting.retry_failed)
        shared = Resources(
            journal=journal,
            memory=memory,
            budget=Budget(setting.max_cost, spent_usd=memory.spent_usd),
            prices=CentACall(),
            policy=RetryPolicy(tries=setting.tries, first_wait_ms=1, longest_wait_ms=1),
            world=World(clock(), no_wait, SeededEntropy("waits")),
            tools={NAME: MarketTool(setting.prices), **setting.tools},
            tool_limit=limit(setting.concurrency),
            log_id=LOG_ID,
        )
        line = Line(setting.provider, setting.wire, limit(setting.concurrency))
        lines = {(setting.provider.provider, route): line for route in ("", setting.wire.route)}
        methods = {
            name: prepare_method(spec, lines)
            for name, spec in state.methods.items()
            if spec.source == "run"
        }
        run = Run(shared, methods, state, setting.concurrency, setting.watch)
        try:
            return await run_jobs(run, jobs)
        finally:
            await setting.provider.close()


def run_in_memory(
    questions: Sequence[Question], methods: Sequence[PlanFields], setting: Setting
) -> tuple[MemoryStore, Tally]:
    """Prepare and run; return the store and what was done."""
    store = memory_store()
    prepare(store, questions, methods)
    tally = again(store, setting)
    return store, tally


def again(store: MemoryStore, setting: Setting) -> Tally:
    """Run what is left in a store."""
    return asyncio.run(
        run_all(lambda: Session(Unclosed(store), clock=clock(), actor="tester"), setting)
    )


class Unclosed:
    """A store that outlives the journal that closes it."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def close(self) -> None:
        """Leave the store open for the test."""


def payloads(store: Store, name: str) -> list[Any]:
    """The payloads of one type, in order."""
    return [read_event(r).payload for r in store.read() if r.type == name]


def prompts(store: Store) -> list[str]:
    """Every prompt of a ledger, as it went out."""
    return [p.raw_request.data for p in payloads(store, "model.called")]


class FakeSearch:
    """A corpus tool that finds what it is told to; `is_strict` judges arguments as real ones do."""

    def __init__(
        self, find: Callable[[ToolRequest], tuple[Found, ...]], *, is_strict: bool = False
    ) -> None:
        self._find = find
        self._is_strict = is_strict
        self.requests: list[ToolRequest] = []

    @property
    def spec(self) -> ToolSpec:
        return CORPUS_SPEC

    async def search(self, request: ToolRequest) -> ToolAnswer:
        if self._is_strict:
            try:
                check_arguments(request.arguments, as_of=request.as_of)
            except BadInputError as error:
                failure = CallFailure("bad_request", str(error))
                return ToolAnswer((), failure, {}, None, None, 0)
        self.requests.append(request)
        await asyncio.sleep(0)
        found = self._find(request)
        rows = [
            {
                "url": f.url,
                "title": f.title,
                "text": f.text,
                "published": f.published,
                "crawled": f.crawled,
                "snapshot": f.snapshot,
                "unreadable_times": [*f.unreadable_times],
            }
            for f in found
        ]
        return ToolAnswer(found, None, {}, "0", to_raw(canonicalize(rows)), 1)

    async def close(self) -> None:
        """Nothing to release."""


def found(text: str, published: str | None, **changed: Any) -> Found:
    """A piece of evidence."""
    fields: dict[str, Any] = {"url": None, "crawled": None, "snapshot": None, **changed}
    return Found(title="A page", text=text, published=published, **fields)
