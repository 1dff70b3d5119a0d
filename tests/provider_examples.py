"""Requests, adapters and small fakes for the tests of providers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from servers.openai_server import OpenAIServer, serve_openai

from forecasting.answer import PROBABILITY, forecast_schema
from forecasting.ports import Message, ModelRequest, Provider
from forecasting.providers.endpoints import ENDPOINTS, Endpoint, open_provider
from forecasting.providers.record import CallAttempt, CallCell, to_model_called
from forecasting.providers.replay import RecordedCall, ReplayProvider
from forecasting.providers.scripted import ScriptedProvider, ScriptedWire
from forecasting.providers.wire import Wire
from ledger.events.base import Money

KEY = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJ"
START = datetime(2026, 4, 1, tzinfo=UTC)
CELL = CallCell("direct", "card-001", 1, "forecaster")
FREE = Money(amount="0", currency="USD")
ANSWER = '{"rationale":"base rates","p_yes":0.35}'


def request(**changed: object) -> ModelRequest:
    """A small request; `changed` replaces fields."""
    fields: dict[str, Any] = {
        "model": "gpt-5.4",
        "messages": (Message("system", "Forecast."), Message("user", "Will it? Zürich.")),
        "as_of": "2026-04-01T00:00:00.000000Z",
        "prompt_version": "direct/1",
        "prompt_digest": "0" * 64,
        "parameters": {"temperature": "0.2", "max_output_tokens": "64"},
        "output": forecast_schema(PROBABILITY, {"rationale": {"type": "string"}}),
        "timeout_s": 5.0,
        **changed,
    }
    return ModelRequest(**fields)


@dataclass(frozen=True)
class Adapter:
    """One way to a provider: its name, and a context that gives one which answers `ANSWER`."""

    name: str
    open: Callable[[], AbstractContextManager[Provider]]


def environment(endpoint: Endpoint, url: str) -> dict[str, str]:
    """The variables that point an endpoint to a loopback server."""
    found = {endpoint.base_url_variable: url}
    if endpoint.key_variable:
        found[endpoint.key_variable] = KEY
    return found


def open_at(server: OpenAIServer, name: str = "openai", route: str | None = None) -> Provider:
    """Open an endpoint at a loopback server."""
    endpoint = next(one for one in ENDPOINTS if one.name == name)
    return open_provider(
        name,
        route,
        environment(endpoint, server.url),
        monotonic_s=time.perf_counter,
        max_connections=8,
    )


def _endpoint_adapter(endpoint: Endpoint, wire: Wire) -> Adapter:
    @contextmanager
    def opened() -> Iterator[Provider]:
        with serve_openai() as server:
            yield open_at(server, endpoint.name, wire.route)

    return Adapter(f"{endpoint.name}:{wire.route}", opened)


@contextmanager
def _scripted() -> Iterator[Provider]:
    yield ScriptedProvider(lambda _: ANSWER)


@contextmanager
def _replay() -> Iterator[Provider]:
    original = ScriptedProvider(lambda _: ANSWER)
    answer = asyncio.run(original.call(request()))
    attempt = CallAttempt(request(), answer, "scripted", "scripted", FREE, 1)
    event = to_model_called(attempt, CELL)
    calls = [RecordedCall(seq, event) for seq in (7, 8, 9)]
    yield ReplayProvider(provider="scripted", wire=ScriptedWire(), calls=calls)


ADAPTERS = (
    *(_endpoint_adapter(endpoint, wire) for endpoint in ENDPOINTS for wire in endpoint.wires),
    Adapter("scripted", _scripted),
    Adapter("replay", _replay),
)
"""Every adapter of the port; a new endpoint is in it by its row."""


class FakeTime:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.slept: list[float] = []

    def monotonic_s(self) -> float:
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds
        await asyncio.sleep(0)
