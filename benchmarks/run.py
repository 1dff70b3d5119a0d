"""A whole run, everything recorded and every order rule judged, against the ideal time.

Run: python -m benchmarks.run [--calls 2000] [--concurrency 64] [--repeats 3]

A loopback server in its own process answers after 50 ms. Ideal: calls / concurrency x 50 ms. One
cell is one call, so that each call costs three events: attempt, call, prediction. Printed beside it
is the openai SDK's typed method alone, with nothing kept: what no runner on top of it can beat.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.calls import SERVER, Load, by_sdk, price_list
from forecasting.backtest import RunSetup, baseline_method, freeze_questions, make_plan
from forecasting.concurrency import AdaptiveLimit
from forecasting.context import Line, Resources
from forecasting.cost import Budget
from forecasting.journal import Journal
from forecasting.memory import Memory
from forecasting.providers.caller import World
from forecasting.providers.chat import ChatWire
from forecasting.providers.openai_sdk import OpenAIProvider
from forecasting.questions.question import ImportedSet, Question
from forecasting.retry import RetryPolicy
from forecasting.runner import Run, choose_jobs, prepare_method, run_jobs
from ledger.canonical import canonicalize
from ledger.clock import SteppingClock
from ledger.events.anchor import LedgerOpened
from ledger.events.card import LabelSealed, PrivateObject
from ledger.events.codec import draft_event
from ledger.events.plan import Plan, PlanPreregistered
from ledger.ids import SeededEntropy, format_uuid7
from ledger.session import Session
from ledger.store.sqlite import SqliteStore
from ledger.vault import seal_private

DELAY_S = 0.05
START = datetime(2026, 4, 1, tzinfo=UTC)
LOG_ID = format_uuid7(1_775_000_000_000, b"\x01" * 10)
SETUP = RunSetup(provider="openai", route="chat.completions", model="gpt-5.4")


def open_session(path: Path) -> Session:
    """Open the ledger; in the journal's thread."""
    store = SqliteStore(path, clock=SteppingClock(START), entropy=SeededEntropy("again"))
    return Session(store, clock=SteppingClock(START), actor="benchmark")


def make_ledger(path: Path, cards: int) -> None:
    """Cards of two thousand characters, sealed labels, a plan of one direct baseline."""
    opened = LedgerOpened(
        origin="example.com/benchmark", log_id=LOG_ID, format="forecast-ledger/1", verifier_keys=()
    )
    entropy = SeededEntropy("benchmark")
    SqliteStore.create(
        path,
        draft_event(opened, actor="benchmark"),
        log_id=LOG_ID,
        clock=SteppingClock(START),
        entropy=entropy,
    ).close()
    session = open_session(path)
    questions = tuple(make_question(number) for number in range(cards))
    labels = tuple(PrivateObject(card_id=q.question_id, resolution="no") for q in questions)
    frozen = freeze_questions(ImportedSet(questions, labels), entropy)
    session.commit(lambda _: frozen)
    sealed = [
        LabelSealed(card_id=label.card_id, seal=seal_private(label, entropy).seal, custodian="c")
        for label in labels
    ]
    session.commit(lambda _: sealed)
    ids = [q.question_id for q in questions]
    methods = [baseline_method("direct_json", SETUP)]
    fields = make_plan("benchmark", ids, methods, opens_at="2026-04-01T00:00:00.000000Z")
    plan = Plan.model_validate_json(canonicalize(fields))
    session.commit(lambda _: [PlanPreregistered(plan=plan, source_sha256="0" * 64)])
    session.store.close()


def make_question(number: int) -> Question:
    """A question of the size of a real one."""
    return Question(
        question_id=f"q{number}",
        origin="benchmark",
        kind="resolved",
        title=f"Question {number}",
        question=f"Will number {number} happen?",
        as_of="2025-06-30T12:00:00.000000Z",
        deadline="2025-12-31T23:59:59.999999Z",
        background="What everybody knew. " * 100,
    )


async def by_runner(path: Path, load: Load) -> tuple[float, float, int]:
    """Run all cells; return wall seconds, CPU milliseconds a call, and appends."""
    provider = OpenAIProvider(
        provider="openai",
        wire=ChatWire(),
        base_url=load.url,
        api_key="sk-benchmark-0000000000000000000000000000000000000000",
        monotonic_s=time.perf_counter,
        max_connections=load.concurrency,
    )
    async with Journal(lambda: open_session(path)) as journal:
        state = await journal.read(lambda session: session.state().copy())
        shared = Resources(
            journal=journal,
            memory=Memory(),
            budget=Budget(None),
            prices=price_list(),
            policy=RetryPolicy(),
            world=World(SteppingClock(START), asyncio.sleep, SeededEntropy("waits")),
            tools={},
            tool_limit=_limit(load.concurrency),
            log_id=LOG_ID,
        )
        line = Line(provider, ChatWire(), _limit(load.concurrency))
        methods = {
            spec.id: prepare_method(spec, {("openai", "chat.completions"): line})
            for spec in state.methods.values()
            if spec.source == "run"
        }
        # The SDK's imports and the first connections are not the runner's.
        (*warm, _) = jobs = choose_jobs(state)
        await run_jobs(Run(shared, methods, state, load.concurrency), warm[: load.concurrency])
        run = Run(shared, methods, state, load.concurrency)
        wall, cpu = time.perf_counter(), time.process_time()
        tally = await run_jobs(run, jobs[load.concurrency :])
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        size = await journal.read(lambda session: session.store.head().size)
        assert tally.frozen == load.calls, tally
        assert size == 2 + 2 * len(jobs) + 3 * len(jobs)
        appends = journal.appends
    await provider.close()
    return wall, cpu / load.calls * 1000, appends


def _limit(calls: int) -> AdaptiveLimit:
    return AdaptiveLimit(calls, monotonic_s=time.perf_counter, sleep=asyncio.sleep, start=calls)


def main() -> None:
    """Race and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    chosen = parser.parse_args()
    command = [sys.executable, str(SERVER), "--delay-s", str(DELAY_S)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        load = Load(chosen.calls, chosen.concurrency, server.stdout.readline().strip())
        sdk, runner = [], []
        for _ in range(chosen.repeats):
            sdk.append(asyncio.run(by_sdk(load)))
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "ledger.db"
                make_ledger(path, load.calls + load.concurrency)
                runner.append(asyncio.run(by_runner(path, load)))
        server.communicate("")
    print(f"{load.calls} calls, {load.concurrency} at once, ideal {load.ideal_s:.2f} s")
    for name, rounds in (("sdk", sdk), ("runner", [one[:2] for one in runner])):
        wall = statistics.median(one[0] for one in rounds)
        cpu = statistics.median(one[1] for one in rounds)
        print(
            f"{name:7} {wall:6.2f} s  {wall / load.ideal_s:5.2f} x ideal  {cpu:5.2f} ms CPU a call"
        )
    print(f"runner: {load.calls * 3} events in {runner[-1][2]} appends, each one an fsync")


if __name__ == "__main__":
    main()
