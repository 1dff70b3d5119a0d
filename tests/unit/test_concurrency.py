"""The adaptive limit: growth, halving, closing, order, and slots that are never lost."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from provider_examples import FakeTime

from forecasting.concurrency import AdaptiveLimit
from forecasting.ports import CallFailure
from ledger.errors import BadInputError

TOO_MANY = CallFailure("rate_limited", "429")


def make(ceiling: int, start: int | None = None, clock: FakeTime | None = None) -> AdaptiveLimit:
    fake = clock or FakeTime()
    return AdaptiveLimit(ceiling, monotonic_s=fake.monotonic_s, sleep=fake.sleep, start=start)


def run(job: Coroutine[Any, Any, None]) -> None:
    asyncio.run(job)


async def round_of(limit: AdaptiveLimit, *failures: CallFailure | None) -> int:
    """Hold that many slots at once, then end all; return how many were in flight together."""
    peak = 0
    everybody_in = asyncio.Event()

    async def one(failure: CallFailure | None) -> None:
        nonlocal peak
        async with limit.slot() as slot:
            peak = max(peak, limit.in_flight)
            await everybody_in.wait()
            slot.failure = failure

    tasks = [asyncio.create_task(one(failure)) for failure in failures]
    for _ in range(5):
        await asyncio.sleep(0)
    everybody_in.set()
    await asyncio.gather(*tasks)
    assert limit.in_flight == 0
    return peak


def test_it_doubles_until_the_first_429_and_then_creeps() -> None:
    async def go() -> None:
        limit = make(64, start=4)
        await round_of(limit, *[None] * 8)
        assert limit.limit == 7
        await round_of(limit, *[None] * 200)
        assert limit.limit == 64
        await round_of(limit, *[TOO_MANY] * 64)
        assert limit.limit == 32
        for _ in range(3):
            await round_of(limit, *[None] * limit.limit)
        assert 33 <= limit.limit <= 35

    run(go())


def test_429s_of_one_burst_halve_once() -> None:
    """All calls that were in flight when it halved answer for the old limit."""

    async def go() -> None:
        limit = make(64, start=64)
        await round_of(limit, *[TOO_MANY] * 64)
        assert limit.limit == 32
        await round_of(limit, *[TOO_MANY] * 32)
        assert limit.limit == 16

    run(go())


def test_it_never_leaves_its_bounds() -> None:
    async def go() -> None:
        limit = make(3, start=3)
        for _ in range(9):
            await round_of(limit, TOO_MANY)
        assert limit.limit == 1
        for _ in range(40):
            await round_of(limit, None, None, None, None)
        assert limit.limit == 3

    run(go())


def test_a_limit_that_is_not_reached_does_not_grow() -> None:
    async def go() -> None:
        limit = make(64, start=8)
        for _ in range(20):
            await round_of(limit, None, None)
        assert limit.limit == 8

    run(go())


def test_other_failures_teach_nothing() -> None:
    async def go() -> None:
        limit = make(8, start=4)
        await round_of(limit, *[CallFailure("server_error", "500")] * 4)
        assert limit.limit == 4

    run(go())


def test_retry_after_closes_the_gate_for_everybody() -> None:
    """The quota is the account's: nobody calls before the moment that the server named."""

    async def go() -> None:
        clock = FakeTime()
        limit = make(8, start=8, clock=clock)
        await round_of(limit, CallFailure("rate_limited", "429", retry_after_ms=30_000))
        began: list[float] = []

        async def one() -> None:
            async with limit.slot():
                began.append(clock.now_s)

        await asyncio.gather(*(one() for _ in range(5)))
        assert len(began) == 5
        assert min(began) >= 30
        assert clock.slept == [30.0]

    run(go())


def test_first_come_first_served() -> None:
    async def go() -> None:
        limit = make(1)
        order: list[int] = []

        async def one(number: int) -> None:
            async with limit.slot():
                order.append(number)
                await asyncio.sleep(0)

        await asyncio.gather(*(one(number) for number in range(10)))
        assert order == list(range(10))

    run(go())


def test_a_slot_is_freed_by_an_exception() -> None:
    async def go() -> None:
        limit = make(1)
        with pytest.raises(ValueError, match="x"):
            async with limit.slot():
                raise ValueError("x")
        await asyncio.wait_for(round_of(limit, None), 1)

    run(go())


@given(st.lists(st.integers(0, 30), max_size=30), st.integers(1, 4))
def test_cancelled_waiters_lose_no_slot(cancelled: list[int], ceiling: int) -> None:
    """Whoever is cancelled, before, while or after a slot is given, every other call runs."""

    async def go() -> None:
        limit = make(ceiling)
        done: list[int] = []

        async def one(number: int) -> None:
            async with limit.slot():
                await asyncio.sleep(0)
                done.append(number)

        tasks = [asyncio.create_task(one(number)) for number in range(31)]
        for victim in cancelled:
            await asyncio.sleep(0)
            tasks[victim].cancel()
        results = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)
        assert limit.in_flight == 0
        finished = {n for n, result in enumerate(results) if result is None}
        assert set(done) == finished
        assert finished >= set(range(31)) - set(cancelled)

    run(go())


@pytest.mark.parametrize(("ceiling", "start"), [(0, None), (4, 5), (4, 0), (-1, None)])
def test_a_limit_that_is_none(ceiling: int, start: int | None) -> None:
    with pytest.raises(BadInputError):
        make(ceiling, start)
