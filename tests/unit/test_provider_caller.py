"""A call the whole way: every attempt on record, retries, repair turns, ceiling, cancellation."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from decimal import Decimal

import pytest
from provider_examples import ANSWER, CELL, START, FakeTime, open_at, request
from servers.openai_server import Reply, error_reply, serve_openai

from forecasting.answer import PROBABILITY
from forecasting.concurrency import AdaptiveLimit
from forecasting.cost import Budget, Prices, unknown, usd
from forecasting.ports import CallFailure, ModelAnswer, ModelRequest, Provider
from forecasting.providers.caller import Asked, Caller, World
from forecasting.providers.record import (
    CallAttempt,
    format_failure,
    parse_failure,
    to_model_called,
)
from forecasting.providers.scripted import ScriptedProvider, ScriptedTurn, in_order
from forecasting.retry import RetryPolicy
from ledger.clock import SteppingClock
from ledger.errors import BadInputError
from ledger.events.codec import draft_event
from ledger.ids import SeededEntropy

AGAIN = CallFailure("server_error", "HTTP 500: boom", 500)


class DollarATry:
    """Every answered attempt costs one dollar; the most is two."""

    source = "test"

    def price(self, provider: str, model: str, usage: object, at: object) -> object:
        del provider, model, at
        return usd(Decimal(2)) if getattr(usage, "input_tokens", None) else usd(Decimal(1))


@dataclass
class Bench:
    """A caller with a fake clock, and everything it recorded."""

    provider: Provider
    budget: Budget = field(default_factory=lambda: Budget(None))
    tries: int = 4
    concurrency: int = 4
    clock: FakeTime = field(default_factory=FakeTime)
    kept: list[CallAttempt] = field(default_factory=list)
    prices: Prices = field(default_factory=DollarATry)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.limit = AdaptiveLimit(
            self.concurrency, monotonic_s=self.clock.monotonic_s, sleep=self.clock.sleep
        )
        self.caller = Caller(
            self.provider,
            limit=self.limit,
            budget=self.budget,
            prices=self.prices,
            policy=RetryPolicy(tries=self.tries),
            world=World(SteppingClock(START), self.clock.sleep, SeededEntropy("jitter")),
        )

    async def record(self, attempt: CallAttempt) -> None:
        self.kept.append(attempt)

    def call(self, asked: ModelRequest | None = None) -> ModelAnswer:
        return asyncio.run(self.caller.call(asked or request(), self.record))

    def ask(self, repair_turns: int = 2) -> Asked:
        asked = request(idem_key="cell")
        return asyncio.run(
            self.caller.ask(asked, self.record, PROBABILITY, repair_turns=repair_turns)
        )


def scripted(*turns: ScriptedTurn) -> Bench:
    return Bench(ScriptedProvider(in_order(turns)))


def test_every_attempt_is_on_record() -> None:
    bench = scripted(AGAIN, AGAIN, ANSWER)
    assert bench.call().text == ANSWER
    assert [one.number for one in bench.kept] == [1, 2, 3]
    assert [one.answer.failure for one in bench.kept] == [AGAIN, AGAIN, None]
    assert len(bench.clock.slept) == 2
    for one in bench.kept:
        assert draft_event(to_model_called(one, CELL), actor="tester").type == "model.called"


def test_tries_are_bounded() -> None:
    bench = scripted(*[AGAIN] * 10)
    assert bench.call().failure == AGAIN
    assert len(bench.kept) == 4


def test_a_final_failure_is_not_tried_again() -> None:
    refused = CallFailure("refused", "no")
    bench = scripted(refused, ANSWER)
    assert bench.call().failure == refused
    assert len(bench.kept) == 1
    assert bench.clock.slept == []


def test_repair_turns_show_the_reason_and_are_bounded() -> None:
    """An answer without a usable probability is a failure after bounded repair turns, not 0.5."""
    bench = scripted('{"p_yes":45}', "about a third", '{"p_yes":0.35}', ANSWER)
    asked = bench.ask(repair_turns=2)
    assert asked.probability is not None
    assert asked.probability.p_yes == "0.35"
    assert asked.turns == 2
    assert [one.turn for one in bench.kept] == [0, 1, 2]
    assert [len(one.request.messages) for one in bench.kept] == [2, 4, 6]
    assert "45" in bench.kept[1].request.messages[-1].content
    assert [one.request.idem_key for one in bench.kept] == [
        "cell",
        "cell.repair-1",
        "cell.repair-1.repair-2",
    ]

    never = scripted(*['{"p_yes":45}'] * 9).ask(repair_turns=2)
    assert never.probability is None
    assert never.reason is not None
    assert "a percentage is not guessed at" in never.reason
    assert never.turns == 2


def test_a_truncated_answer_is_not_repaired() -> None:
    bench = scripted(CallFailure("truncated", "length"), ANSWER)
    asked = bench.ask()
    assert (asked.probability, asked.reason) == (None, "truncated: length")
    assert len(bench.kept) == 1


def test_the_ceiling_stops_before_a_call_goes_out() -> None:
    """A cost ceiling that reserves before each call."""

    class Billed(ScriptedProvider):
        provider = "openai"

    bench = Bench(Billed(lambda _: ANSWER), budget=Budget(Decimal("3.5")))
    asked = [bench.call() for _ in range(4)]
    assert [answer.failure and answer.failure.kind for answer in asked] == [
        None,
        None,
        "over_budget",
        "over_budget",
    ]
    assert len(bench.kept) == 2
    assert bench.budget.spent_usd == 2
    assert bench.budget.reserved_usd == 0


def test_a_ceiling_without_a_price_is_refused_before_anything_is_sent() -> None:
    class Billed(ScriptedProvider):
        provider = "openai"

    class Nothing:
        source = "none"

        def price(self, *_: object) -> object:
            return unknown("not listed")

    bench = Bench(
        Billed(in_order(())),
        budget=Budget(Decimal(1)),
        prices=Nothing(),  # type: ignore[arg-type]
    )
    with pytest.raises(BadInputError, match="ceiling"):
        bench.call()
    assert bench.kept == []


def test_a_cancelled_attempt_is_on_record_and_keeps_its_reservation() -> None:
    async def go() -> None:
        with serve_openai() as server:
            server.replies.append(Reply(hang=True))
            provider = open_at(server)
            bench = Bench(provider, budget=Budget(Decimal(10)))
            task = asyncio.create_task(bench.caller.call(request(timeout_s=60), bench.record))
            while not server.arrived:  # noqa: ASYNC110 - the server lives in another thread
                await asyncio.sleep(0.005)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await provider.close()
            (attempt,) = bench.kept
            assert attempt.answer.failure is not None
            assert attempt.answer.failure.kind == "cancelled"
            assert attempt.cost.amount is None
            assert bench.budget.spent_usd == 2
            assert bench.budget.reserved_usd == 0
            assert bench.limit.in_flight == 0

    asyncio.run(go())


def test_an_answer_that_came_is_recorded_even_if_the_run_stops_meanwhile() -> None:
    async def go() -> None:
        bench = scripted(ANSWER)
        writing, written = asyncio.Event(), asyncio.Event()

        async def slow_record(attempt: CallAttempt) -> None:
            writing.set()
            await written.wait()
            bench.kept.append(attempt)

        task = asyncio.create_task(bench.caller.call(request(), slow_record))
        await writing.wait()
        task.cancel()
        await asyncio.sleep(0)
        written.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [one.answer.text for one in bench.kept] == [ANSWER]

    asyncio.run(go())


def test_what_was_sent_is_what_is_recorded_through_a_storm() -> None:
    """A 429 storm: the limit falls, everybody is served, each attempt is exactly one event."""

    async def go() -> None:
        with serve_openai() as server:
            server.most_in_flight = 6
            server.delay_s = 0.01
            server.replies.extend(error_reply(500) for _ in range(5))
            provider = open_at(server)
            bench = Bench(provider, tries=60, concurrency=32)
            questions = [request(idem_key=f"q{number}") for number in range(120)]
            answers = await asyncio.gather(
                *(bench.caller.call(one, bench.record) for one in questions)
            )
            await provider.close()
            assert all(answer.failure is None for answer in answers)
            recorded: dict[str, int] = {}
            for attempt in bench.kept:
                key = attempt.request.idem_key or ""
                recorded[key] = recorded.get(key, 0) + 1
            assert recorded == dict(server.by_key)
            assert len(server.arrived) > 120
            assert bench.limit.limit < 32

    asyncio.run(go())


def test_a_bad_request_object_gives_its_slot_back() -> None:
    with serve_openai() as server:

        async def go() -> None:
            provider = open_at(server)
            bench = Bench(provider, concurrency=1)
            for _ in range(3):
                with pytest.raises(BadInputError):
                    await bench.caller.call(request(parameters={"seed": "1"}), bench.record)
            assert (await bench.caller.call(request(), bench.record)).text == ANSWER
            await provider.close()

        asyncio.run(go())


@pytest.mark.parametrize(
    "failure",
    [CallFailure("rate_limited", "HTTP 429: slow: down"), CallFailure("unreadable", "x: y")],
    ids=lambda failure: failure.kind,
)
def test_a_failure_is_a_sentence_and_back(failure: CallFailure) -> None:
    assert parse_failure(format_failure(failure)) == failure
    with pytest.raises(BadInputError):
        parse_failure("it broke")
