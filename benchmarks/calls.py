"""Model calls with everything recorded, against the ideal and against the bare openai SDK.

Run: python -m benchmarks.calls [--calls 2000] [--concurrency 64] [--repeats 3]

A loopback server in its own process answers after 50 ms. Ideal: calls / concurrency x 50 ms. In
each round every contestant makes the same calls, one after the other; medians are printed.

- `sdk`: the openai SDK's typed method as its manual shows it; nothing is kept.
- `provider`: OpenAIProvider.call alone.
- `caller`: limit, reservation, price and the whole attempt, recorded in memory.
- `ledger`: the same, each attempt appended to a SQLite ledger (group commit in a thread,
  synchronous=FULL) before its caller goes on. Order rules are not judged here.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import openai

from forecasting.answer import PROBABILITY, forecast_schema
from forecasting.concurrency import AdaptiveLimit
from forecasting.cost import Budget, Prices, usd
from forecasting.ports import Message, ModelRequest
from forecasting.providers.caller import Caller, RecordAttempt, World
from forecasting.providers.chat import ChatWire
from forecasting.providers.openai_sdk import OpenAIProvider
from forecasting.providers.record import CallAttempt, CallCell, to_model_called
from forecasting.retry import RetryPolicy
from ledger.clock import SteppingClock
from ledger.events.anchor import LedgerOpened
from ledger.events.base import Money
from ledger.events.call import TokenUsage
from ledger.events.codec import draft_event
from ledger.ids import SeededEntropy, format_uuid7
from ledger.store.port import Draft
from ledger.store.sqlite import SqliteStore

SERVER = Path(__file__).parent.parent / "tests/servers/openai_server.py"
DELAY_S = 0.05
START = datetime(2026, 4, 1, tzinfo=UTC)
CELL = CallCell("direct", "card-001", 1, "forecaster")
REQUEST = ModelRequest(
    model="gpt-5.4",
    messages=(Message("system", "Forecast. " * 150), Message("user", "Will it happen? " * 125)),
    as_of="2026-04-01T00:00:00.000000Z",
    prompt_version="direct/1",
    prompt_digest="0" * 64,
    parameters={"temperature": "0.2", "seed": "0", "max_output_tokens": "4096"},
    output=forecast_schema(PROBABILITY, {"rationale": {"type": "string"}}),
)


@dataclass(frozen=True)
class Load:
    """How many calls, how many at once, to which server."""

    calls: int
    concurrency: int
    url: str

    @property
    def ideal_s(self) -> float:
        """The time that no client can beat."""
        return self.calls / self.concurrency * DELAY_S


Call = Callable[[], Awaitable[object]]


class TokenPrices:
    """The genai-prices list where it is installed, else one price: the arithmetic is the same."""

    source = "the benchmark's own"

    def price(self, provider: str, model: str, usage: TokenUsage, at: datetime) -> Money:
        """Price by tokens alone."""
        del provider, model, at
        return usd(Decimal(usage.input_tokens or 0) * Decimal("0.0000025"))


def price_list() -> Prices:
    """Return the real list if it is there."""
    from forecasting.cost import ListPrices  # noqa: PLC0415 - optional
    from ledger.errors import BadInputError  # noqa: PLC0415

    try:
        return ListPrices()
    except BadInputError:
        return TokenPrices()


class GroupCommit:
    """Appends attempts to a ledger in groups, in a thread of its own.

    Whoever waits while a group reaches the disk makes up the next one: one fsync for all, and the
    event loop goes on meanwhile (an fsync in the loop costs as much wall time as the calls' CPU).
    """

    def __init__(self, store: SqliteStore, thread: Executor) -> None:
        self._store = store
        self._thread = thread
        self._waiting: list[tuple[Draft, asyncio.Future[None]]] = []
        self._flush: asyncio.Task[None] | None = None

    async def record(self, attempt: CallAttempt) -> None:
        """Return when the attempt is on disk."""
        loop = asyncio.get_running_loop()
        draft = draft_event(to_model_called(attempt, CELL), actor="benchmark")
        done = loop.create_future()
        self._waiting.append((draft, done))
        if self._flush is None or self._flush.done():
            self._flush = loop.create_task(self._write_groups())
        await done

    async def _write_groups(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting, []
            drafts = [draft for draft, _ in group]
            await asyncio.get_running_loop().run_in_executor(
                self._thread, self._store.append, drafts
            )
            for _, done in group:
                done.set_result(None)


async def hammer(load: Load, call: Call, workers: int) -> tuple[float, float]:
    """Make all calls; return wall seconds and CPU milliseconds a call."""
    await asyncio.gather(*(call() for _ in range(load.concurrency)))
    left = iter(range(load.calls))

    async def worker() -> None:
        for _ in left:
            await call()

    wall, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(worker() for _ in range(workers)))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return wall, cpu / load.calls * 1000


async def by_sdk(load: Load) -> tuple[float, float]:
    """The typed method of the SDK."""
    async with openai.AsyncOpenAI(api_key="k", base_url=load.url, max_retries=0) as client:
        schema = REQUEST.output.schema if REQUEST.output else {}

        async def call() -> object:
            return await client.chat.completions.create(
                model=REQUEST.model,
                messages=[
                    {"role": "system", "content": REQUEST.messages[0].content},
                    {"role": "user", "content": REQUEST.messages[1].content},
                ],
                temperature=0.2,
                seed=0,
                max_completion_tokens=4096,
                response_format={
                    "type": "json_schema",
                    "json_schema": {"name": "forecast", "strict": True, "schema": dict(schema)},
                },
            )

        return await hammer(load, call, load.concurrency)


def open_provider(load: Load) -> OpenAIProvider:
    """Return the provider under test."""
    return OpenAIProvider(
        provider="openai",
        wire=ChatWire(),
        base_url=load.url,
        api_key="sk-benchmark-0000000000000000000000000000000000000000",
        monotonic_s=time.perf_counter,
        max_connections=load.concurrency,
    )


async def by_provider(load: Load) -> tuple[float, float]:
    """One attempt, no limit and no record."""
    provider = open_provider(load)
    result = await hammer(load, lambda: provider.call(REQUEST), load.concurrency)
    await provider.close()
    return result


async def by_caller(load: Load, record: RecordAttempt) -> tuple[float, float]:
    """The whole way."""
    provider = open_provider(load)
    caller = Caller(
        provider,
        limit=AdaptiveLimit(load.concurrency, monotonic_s=time.perf_counter, sleep=asyncio.sleep),
        budget=Budget(Decimal(1_000_000)),
        prices=price_list(),
        policy=RetryPolicy(),
        world=World(SteppingClock(START), asyncio.sleep, SeededEntropy("benchmark")),
    )
    # The limit keeps 64 calls in flight; twice as many tasks keep it full while others record.
    result = await hammer(
        load,
        lambda: caller.ask(REQUEST, record, PROBABILITY, repair_turns=0),
        2 * load.concurrency,
    )
    await provider.close()
    return result


async def in_memory(load: Load) -> tuple[float, float]:
    """Record into a list."""
    kept: list[CallAttempt] = []

    async def record(attempt: CallAttempt) -> None:
        kept.append(attempt)

    return await by_caller(load, record)


async def in_ledger(load: Load) -> tuple[float, float]:
    """Record into a SQLite ledger, and count what is in it afterwards."""
    log_id = format_uuid7(1_775_000_000_000, b"\x01" * 10)
    opened = LedgerOpened(
        origin="example.com/benchmark", log_id=log_id, format="forecast-ledger/1", verifier_keys=()
    )
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(max_workers=1) as thread:
        # SQLite connections belong to one thread: it is made, used and closed there.
        store = thread.submit(
            lambda: SqliteStore.create(
                Path(folder) / "ledger.db",
                draft_event(opened, actor="benchmark"),
                log_id=log_id,
                clock=SteppingClock(START),
                entropy=SeededEntropy("ledger"),
            )
        ).result()
        try:
            result = await by_caller(load, GroupCommit(store, thread).record)
            # The warm-up round is recorded too.
            assert thread.submit(store.head).result().size == 1 + load.calls + load.concurrency
        finally:
            thread.submit(store.close).result()
    return result


CONTESTANTS = {
    "sdk": by_sdk,
    "provider": by_provider,
    "caller": in_memory,
    "ledger": in_ledger,
}


def main() -> None:
    """Race and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args()
    # As a long run should: what is loaded by now is not garbage, and need not be looked at again.
    gc.collect()
    gc.freeze()
    command = [sys.executable, str(SERVER), "--delay-s", str(DELAY_S)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        load = Load(chosen.calls, chosen.concurrency, server.stdout.readline().strip())
        rounds = [
            {name: asyncio.run(race(load)) for name, race in CONTESTANTS.items()}
            for _ in range(chosen.repeats)
        ]
        server.communicate("")
    print(f"{load.calls} calls, {load.concurrency} at once, ideal {load.ideal_s:.2f} s")
    for name in CONTESTANTS:
        wall = statistics.median(one[name][0] for one in rounds)
        cpu = statistics.median(one[name][1] for one in rounds)
        ratio = wall / load.ideal_s
        print(f"{name:9} {wall:6.2f} s  {ratio:5.2f} x ideal  {cpu:5.2f} ms CPU a call")


if __name__ == "__main__":
    main()
