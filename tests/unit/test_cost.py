"""Prices without a network, and a ceiling that calls in flight cannot break together."""

from __future__ import annotations

import asyncio
import importlib.util
import socket
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from provider_examples import START, request

from forecasting.cost import (
    Budget,
    ListPrices,
    most_it_can_cost,
    price_answer,
    spent_on,
    unknown,
    usd,
)
from forecasting.ports import CallFailure, FailureKind, ModelAnswer
from forecasting.providers.wire import request_record, unanswered
from ledger.decimals import parse_units
from ledger.errors import BadInputError, BugError
from ledger.events.base import Money
from ledger.events.call import TokenUsage

LATE = datetime(2026, 11, 21, tzinfo=UTC)
COUNTED = TokenUsage(input_tokens=13_454, output_tokens=3_215)


def listed() -> ListPrices:
    if importlib.util.find_spec("genai_prices") is None:
        pytest.skip("genai-prices is not installed")
    return ListPrices()


class FlatPrices:
    """One cent a token in, two a token out, for one model alone."""

    source = "flat"

    def price(self, provider: str, model: str, usage: TokenUsage, at: datetime) -> Money:
        del provider, at
        if model != "gpt-5.4" or usage.input_tokens is None:
            return unknown("not listed")
        return usd(Decimal(usage.input_tokens + 2 * (usage.output_tokens or 0)) / 100)


def answered(usage: TokenUsage = COUNTED, **changed: object) -> ModelAnswer:
    base = unanswered(b"{}", CallFailure("timeout", "x"), latency_ms=1)
    fields: dict[str, object] = {"failure": None, "text": "x", "raw_answer": request_record(b"{}")}
    return replace(base, usage=usage, **{**fields, **changed})  # type: ignore[arg-type]


def test_the_published_run_prices_as_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """genai-prices offline: no socket is opened."""
    prices = listed()
    monkeypatch.setattr(socket, "socket", None)
    for provider, model, total in (
        ("openai", "gpt-5.4-2026-03-05", "0.08186"),
        ("openai", "gpt-5-nano", "0.0019587"),
    ):
        assert prices.price(provider, model, COUNTED, LATE).amount == total
    assert prices.source.startswith("genai-prices ")


@given(
    st.sampled_from(
        [
            ("openai", "gpt-5.4"),
            ("openai", "gpt-5.5"),
            ("openai", "gpt-5-nano"),
            ("openai", "gpt-4o"),
            ("openai", "gpt-4o-audio-preview"),
            ("openrouter", "deepseek/deepseek-v4-flash"),
            ("openrouter", "anthropic/claude-sonnet-4.5"),
            ("deepseek", "deepseek-v4-flash"),
            ("perplexity", "sonar"),
        ]
    ),
    st.tuples(st.integers(0, 600_000), st.integers(0, 600_000), st.integers(0, 50_000)),
)
def test_the_short_way_prices_as_the_package_does(
    where: tuple[str, str], counts: tuple[int, int, int]
) -> None:
    """The second price of a model in a minute is ours, the first the package's: they are equal."""
    usage = TokenUsage(
        input_tokens=counts[0], cached_input_tokens=min(counts[:2]), output_tokens=counts[2]
    )
    long, short = listed(), listed()
    short.price(*where, COUNTED, LATE)
    assert short.price(*where, usage, LATE) == long.price(*where, usage, LATE)


def test_the_moment_decides_which_price_holds() -> None:
    prices = listed()
    then, later = (
        prices.price("deepseek", "deepseek-v4-flash", COUNTED, at).amount for at in (START, LATE)
    )
    assert then != later


@pytest.mark.parametrize(
    ("provider", "model", "usage"),
    [
        ("openai", "gpt-5.4-codex", COUNTED),
        ("compatible", "gpt-5.4", COUNTED),
        ("openai", "gpt-5.4", TokenUsage()),
        ("openai", "gpt-5.4", TokenUsage(input_tokens=5)),
        ("openai", "gpt-5.4", TokenUsage(input_tokens=5, output_tokens=1, cached_input_tokens=9)),
    ],
)
def test_an_unknown_price_is_null_with_the_reason(
    provider: str, model: str, usage: TokenUsage
) -> None:
    cost = listed().price(provider, model, usage, START)
    assert cost.amount is None
    assert cost.unknown_because


def test_without_the_package_the_reason_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr("forecasting.cost.import_module", missing)
    with pytest.raises(BadInputError, match="genai-prices"):
        ListPrices()


@given(st.decimals(0, 1_000, places=14))
def test_money_is_never_rounded_down(amount: Decimal) -> None:
    text = usd(amount).amount
    assert text is not None
    assert amount <= Decimal(text) < amount + Decimal("1e-9")
    assert parse_units(text) >= 0


@pytest.mark.parametrize("provider", ["local", "scripted", "replay"])
def test_nobody_bills_a_model_on_this_machine(provider: str) -> None:
    assert price_answer(FlatPrices(), provider, request(), answered(), START).amount == "0"
    assert most_it_can_cost(FlatPrices(), provider, request(), 10, START) == 0


@pytest.mark.parametrize(
    ("answer", "amount"),
    [
        (answered(resolved_model="gpt-5.4"), "198.84"),
        (answered(resolved_model="gpt-5.4-2026-03-05"), "198.84"),
        (answered(resolved_model=None), "198.84"),
        (answered(cached_from_seq=4), "0"),
        (answered(raw_answer=None), None),
        (answered(usage=TokenUsage()), None),
    ],
)
def test_the_price_of_an_attempt(answer: ModelAnswer, amount: str | None) -> None:
    cost = price_answer(FlatPrices(), "openai", request(), answer, START)
    assert cost.amount == amount
    assert (cost.unknown_because is None) == (amount is not None)


def test_a_tier_without_a_list_price_is_unknown() -> None:
    asked = request(parameters={"service_tier": "flex"})
    assert price_answer(FlatPrices(), "openai", asked, answered(), START).amount is None


def test_the_most_that_a_call_can_cost() -> None:
    """Tokens in are bounded by the octets of the request, tokens out by the parameter."""
    asked = request(parameters={"max_output_tokens": "50"})
    assert most_it_can_cost(FlatPrices(), "openai", asked, 100, START) == 2
    for unbounded in (request(parameters={}), request(parameters={"max_output_tokens": "0"})):
        with pytest.raises(BadInputError, match="max_output_tokens"):
            most_it_can_cost(FlatPrices(), "openai", unbounded, 100, START)
    with pytest.raises(BadInputError, match="not listed"):
        most_it_can_cost(FlatPrices(), "openai", request(model="other"), 100, START)


@pytest.mark.parametrize(
    ("kind", "spent"),
    [
        ("rate_limited", "0"),
        ("bad_request", "0"),
        ("not_authorized", "0"),
        ("timeout", "3"),
        ("connection", "3"),
        ("server_error", "3"),
        ("cancelled", "3"),
    ],
)
def test_what_an_unknown_cost_counts(kind: FailureKind, spent: str) -> None:
    """A call that timed out may have been billed; one that was turned away was not."""
    answer = unanswered(b"{}", CallFailure(kind, "x"), latency_ms=1)
    assert spent_on(answer, unknown("x"), Decimal(3)) == Decimal(spent)
    assert spent_on(answer, usd(Decimal(1)), Decimal(3)) == 1


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=40),
    st.integers(0, 100),
)
def test_the_ceiling_holds_at_every_moment(calls: list[tuple[int, int]], ceiling: int) -> None:
    """Spent and reserved together never pass the ceiling while costs stay within reservations."""

    async def go() -> None:
        budget = Budget(Decimal(ceiling))
        refused = 0

        async def one(most: int, cost: int) -> None:
            nonlocal refused
            if not await budget.reserve(Decimal(most)):
                assert budget.spent_usd + most > ceiling
                refused += 1
                return
            assert budget.spent_usd + budget.reserved_usd <= ceiling
            await asyncio.sleep(0)
            budget.settle(Decimal(most), Decimal(min(cost, most)))

        await asyncio.wait_for(asyncio.gather(*(one(*call) for call in calls)), 5)
        assert budget.reserved_usd == 0
        if sum(most for most, _ in calls) <= ceiling:
            assert refused == 0

    asyncio.run(go())


@given(st.lists(st.integers(0, 9), max_size=12))
def test_cancelled_reservations_are_given_back(cancelled: list[int]) -> None:
    async def go() -> None:
        budget = Budget(Decimal(3))

        async def one() -> None:
            if await budget.reserve(Decimal(2)):
                try:
                    await asyncio.sleep(0)
                finally:
                    budget.settle(Decimal(2), Decimal(0))

        tasks = [asyncio.create_task(one()) for _ in range(10)]
        for victim in cancelled:
            await asyncio.sleep(0)
            tasks[victim].cancel()
        await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)
        assert budget.reserved_usd == 0
        assert await budget.reserve(Decimal(3))

    asyncio.run(go())


def test_no_ceiling_only_sums() -> None:
    async def go() -> None:
        budget = Budget(None, spent_usd=Decimal(5))
        assert await budget.reserve(Decimal(10**9))
        budget.settle(Decimal(10**9), Decimal(1))
        assert budget.spent_usd == 6
        assert not budget.has_ceiling
        with pytest.raises(BugError):
            budget.settle(Decimal(1), Decimal(0))

    asyncio.run(go())
    with pytest.raises(BadInputError):
        Budget(Decimal(-1))
