"""What calls cost: list prices without the network, and a ceiling that no call can break.

A price that is not listed is null with its reason, never 0. Under a ceiling, the most that a call
can cost is set aside before it goes out: tokens in are bounded by the octets of the request, since
a token is at least one octet, and tokens out by the registered `max_output_tokens`. So calls in
flight at the same time cannot break the ceiling together, which a sum over finished calls would
allow.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from datetime import datetime
from decimal import ROUND_CEILING, Context, Decimal
from importlib import import_module
from importlib.metadata import version
from typing import Any, Protocol

from forecasting.ports import FailureKind, ModelAnswer, ModelRequest
from forecasting.providers.parameters import max_output_tokens
from ledger.decimals import UNITS, format_units
from ledger.errors import BadInputError, BugError
from ledger.events.base import Money
from ledger.events.call import TokenUsage

UNBILLED = frozenset({"local", "scripted", "replay"})
"""Providers that nobody sends a bill for: their calls cost 0, which is known, not missing."""

NOT_BILLED: frozenset[FailureKind] = frozenset(
    {"rate_limited", "bad_request", "not_authorized", "out_of_quota", "over_budget"}
)
"""Failures that a provider turns away before any work; after others the reservation counts."""

_STANDARD_TIERS = frozenset({"auto", "default", "standard"})
_TOKEN_PRICES = ("input_mtok", "cache_read_mtok", "output_mtok")
_MONEY = Context(prec=50)


class Prices(Protocol):
    """Where prices come from."""

    @property
    def source(self) -> str:
        """The list and its version, such as `genai-prices 0.2.3`."""

    def price(self, provider: str, model: str, usage: TokenUsage, at: datetime) -> Money:
        """Price a call in USD; null with the reason where it cannot be known."""


class ListPrices:
    """The list that comes inside the genai-prices package; it never opens a socket here.

    The package takes 80 us of CPU to price a call, a tenth of what the SDK needs to make it. Its
    unit prices are therefore asked for once a model and minute, and the one multiplication that
    they stand for is done here; whatever is not plain tokens in, cached and out goes to the package
    itself. A test compares both over the list. First use: 0.14 s.

    Raises:
        BadInputError: the package is not installed.
    """

    def __init__(self) -> None:
        try:
            # By name and late: 0.14 s that commands without calls do not pay.
            genai_prices = import_module("genai_prices")
        except ModuleNotFoundError as error:
            raise BadInputError(
                "prices need the package genai-prices, which is not installed",
                remedy="Install it, or run without a price list.",
            ) from error
        self._calculate = genai_prices.calc_price
        self._usage = genai_prices.Usage
        self._source = f"genai-prices {version('genai-prices')}"
        self._unit_prices: dict[tuple[str, str, datetime], dict[str, Any]] = {}

    @property
    def source(self) -> str:
        """The package and its version."""
        return self._source

    def price(self, provider: str, model: str, usage: TokenUsage, at: datetime) -> Money:
        """Price a call at the list price of its moment (see Prices.price)."""
        tokens_in, tokens_out = usage.input_tokens, usage.output_tokens
        if tokens_in is None or tokens_out is None:
            return unknown("the provider reported no token counts")
        key = (provider, model, at.replace(second=0, microsecond=0))
        cached = usage.cached_input_tokens or 0
        if key in self._unit_prices and cached <= tokens_in:
            total = _multiply(self._unit_prices[key], tokens_in, cached, tokens_out)
            if total is not None:
                return usd(total)
        try:
            counted = self._usage(
                input_tokens=tokens_in, output_tokens=tokens_out, cache_read_tokens=cached
            )
            found = self._calculate(
                counted, model_ref=model, provider_id=provider, genai_request_timestamp=at
            )
        except LookupError:
            return unknown(f"{self._source} lists no price for {model} at {provider}")
        except ValueError as error:
            return unknown(f"the reported token counts cannot be priced: {error}")
        self._unit_prices[key] = vars(found.model_price)
        return usd(found.total_price)


def _multiply(
    unit_prices: Mapping[str, Any], tokens_in: int, cached: int, tokens_out: int
) -> Decimal | None:
    """Return tokens times unit prices, in USD; null where the price has other parts."""
    if unit_prices.get("requests_kcount") is not None:
        return None
    total = Decimal(0)
    counts = (tokens_in - cached, cached, tokens_out)
    for name, count in zip(_TOKEN_PRICES, counts, strict=True):
        if not count:
            continue
        price: Any = unit_prices.get(name)
        if price is None:
            return None
        # A tier's price holds for all tokens, and begins above its start.
        for tier in getattr(price, "tiers", ()):
            price = tier.price if tokens_in > tier.start else price
        total += getattr(price, "base", price) * count
    return total / 1_000_000


def usd(amount: Decimal) -> Money:
    """Write an amount in USD with nine places, rounded up: a cost is never rounded down to 0."""
    units = (amount * UNITS).to_integral_value(ROUND_CEILING, _MONEY)
    return Money(amount=format_units(int(units)), currency="USD")


def unknown(reason: str) -> Money:
    """Write an amount that is not known, and why."""
    return Money(amount=None, currency="USD", unknown_because=reason)


def price_answer(
    prices: Prices, provider: str, request: ModelRequest, answer: ModelAnswer, at: datetime
) -> Money:
    """Price one attempt: by the resolved model, else by the requested one.

    Args:
        prices: the list.
        provider: who was asked.
        request: what was asked.
        answer: the attempt as it happened; a failed one may report tokens and cost.
        at: when it was made, since prices change.
    """
    if provider in UNBILLED:
        return usd(Decimal(0))
    if answer.cached_from_seq is not None:
        return usd(Decimal(0))
    if answer.raw_answer is None:
        return unknown("no answer came, so what was billed is not known")
    tier = request.parameters.get("service_tier", "default")
    if tier not in _STANDARD_TIERS:
        return unknown(f"no list price is known for service tier {tier}")
    if answer.resolved_model not in (None, request.model):
        cost = prices.price(provider, answer.resolved_model or "", answer.usage, at)
        if cost.amount is not None:
            return cost
    return prices.price(provider, request.model, answer.usage, at)


def most_it_can_cost(
    prices: Prices, provider: str, request: ModelRequest, octets: int, at: datetime
) -> Decimal:
    """Return the most that one attempt can cost, in USD, if its body has that many octets.

    Raises:
        BadInputError: no `max_output_tokens` or no price, so that no ceiling could be kept.
    """
    if provider in UNBILLED:
        return Decimal(0)
    tokens = max_output_tokens(request.parameters)
    if tokens is None:
        raise BadInputError(
            "a cost ceiling cannot be kept without max_output_tokens",
            where="parameters",
            remedy="Register max_output_tokens, or run without a ceiling.",
        )
    usage = TokenUsage(input_tokens=octets, output_tokens=tokens)
    cost = prices.price(provider, request.model, usage, at)
    if cost.amount is None:
        raise BadInputError(
            f"a cost ceiling cannot be kept: {cost.unknown_because}",
            remedy="Register a priced model, or run without a ceiling.",
        )
    return Decimal(cost.amount)


class Budget:
    """A ceiling on what a run spends, kept by reserving before each call. One event loop.

    Args:
        ceiling_usd: at most this much; None sets no ceiling, and sums are kept all the same.
        spent_usd: what earlier runs of the same ledger spent, when it goes on.
    """

    def __init__(self, ceiling_usd: Decimal | None, *, spent_usd: Decimal = Decimal(0)) -> None:
        if ceiling_usd is not None and not ceiling_usd >= 0:
            raise BadInputError(f"{ceiling_usd} is not a cost ceiling", where="max cost")
        self._ceiling = ceiling_usd
        self._spent = spent_usd
        self._reserved = Decimal(0)
        self._waiting: deque[tuple[Decimal, asyncio.Future[bool]]] = deque()

    @property
    def has_ceiling(self) -> bool:
        """Whether there is a ceiling to keep."""
        return self._ceiling is not None

    @property
    def spent_usd(self) -> Decimal:
        """What finished calls cost, unknown outcomes at their reservation."""
        return self._spent

    @property
    def reserved_usd(self) -> Decimal:
        """What calls in flight may cost."""
        return self._reserved

    async def reserve(self, amount_usd: Decimal) -> bool:
        """Set an amount aside; False where the ceiling forbids it.

        Where only calls in flight stand in the way, it waits, in order, until they are settled:
        they mostly cost less than was set aside for them.
        """
        verdict = self._judge(amount_usd) if not self._waiting else None
        if verdict is None:
            turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            entry = (amount_usd, turn)
            self._waiting.append(entry)
            try:
                return await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled() and turn.result():
                    self.settle(amount_usd, Decimal(0))
                elif entry in self._waiting:
                    self._waiting.remove(entry)
                    self._serve()
                raise
        if verdict:
            self._reserved += amount_usd
        return verdict

    def settle(self, reserved_usd: Decimal, spent_usd: Decimal) -> None:
        """Give a reservation back and count what was spent."""
        if reserved_usd > self._reserved:
            raise BugError("more was settled than was reserved")
        self._reserved -= reserved_usd
        self._spent += spent_usd
        self._serve()

    def _judge(self, amount: Decimal) -> bool | None:
        """True: may go out. False: never. None: not before others are settled."""
        if self._ceiling is None or self._spent + self._reserved + amount <= self._ceiling:
            return True
        return False if self._spent + amount > self._ceiling else None

    def _serve(self) -> None:
        while self._waiting:
            amount, turn = self._waiting[0]
            verdict = None if turn.done() else self._judge(amount)
            if verdict is None and not turn.done():
                return
            self._waiting.popleft()
            if verdict is not None:
                self._reserved += amount if verdict else 0
                turn.set_result(verdict)


def spent_on(answer: ModelAnswer, cost: Money, reserved_usd: Decimal) -> Decimal:
    """Return what a settled attempt counts against a ceiling.

    The known cost; 0 for a request that was turned away; else all that was reserved, since a call
    that timed out may well have been billed.
    """
    if cost.amount is not None:
        return Decimal(cost.amount)
    if answer.failure is not None and answer.failure.kind in NOT_BILLED:
        return Decimal(0)
    return reserved_usd
