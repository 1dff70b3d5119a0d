"""Recorded tool answers back to what was found, without the service: for resuming and replay.

To add a tool: one row.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from forecasting.ports import Found, ToolAnswer, ToolRequest, ToolSpec
from forecasting.providers.record import parse_failure
from forecasting.providers.wire import failed
from forecasting.timebox import format_cache_key
from forecasting.tools import asknews, corpus, exa, market
from ledger.errors import BadInputError
from ledger.events.base import RawBytes
from ledger.events.call import ToolCalled

Reader = Callable[[RawBytes], tuple[Found, ...]]

KNOWN: Final[tuple[tuple[ToolSpec, Reader], ...]] = (
    (exa.SPEC, exa.read_recorded),
    (asknews.SPECS["latest"], asknews.read_recorded),
    (asknews.SPECS["archive"], asknews.read_recorded),
    (corpus.SPEC, corpus.read_recorded),
    (market.SPEC, market.read_recorded),
)
"""Each tool as a model sees it, and how its recorded answers are read."""


def read_recorded(tool: str, raw: RawBytes) -> tuple[Found, ...]:
    """Read what a recorded call of a tool found.

    Raises:
        BadInputError: no such tool, or octets that are no answer of it.
    """
    _, reader = find_tool(tool)
    return reader(raw)


def find_tool(name: str) -> tuple[ToolSpec, Reader]:
    """Return a tool's description and the reader of its recorded answers.

    Raises:
        BadInputError: there is no such tool.
    """
    for spec, reader in KNOWN:
        if spec.name == name:
            return spec, reader
    known = ", ".join(spec.name for spec, _ in KNOWN)
    raise BadInputError(f"there is no tool {name!r}", remedy=f"Known: {known}.")


class RecordedTool:
    """A tool that answers from a ledger: the same run again, without a network.

    Equal requests are answered in the order in which they were recorded, each once.

    Args:
        name: of the tool.
        calls: recorded calls of one cell, in log order; those of other tools are left out.
    """

    def __init__(self, name: str, calls: Iterable[ToolCalled]) -> None:
        self._spec, self._read = find_tool(name)
        self._calls: dict[str, deque[ToolCalled]] = {}
        for call in calls:
            if call.tool == name:
                request = ToolRequest(call.arguments, call.as_of, call.as_of)
                self._calls.setdefault(format_cache_key(name, request), deque()).append(call)

    @property
    def spec(self) -> ToolSpec:
        """How a model sees the tool."""
        return self._spec

    async def search(self, request: ToolRequest) -> ToolAnswer:
        """Return the next recorded answer to this request (see SearchTool.search)."""
        waiting = self._calls.get(format_cache_key(self._spec.name, request))
        if not waiting:
            unknown = failed("bad_request", "the ledger holds no answer to this search")
            return ToolAnswer((), unknown, {}, None, None, 0)
        call = waiting.popleft()
        failure = None if call.error is None else parse_failure(call.error)
        found: tuple[Found, ...] = ()
        if failure is None and call.raw_answer is not None:
            found = self._read(call.raw_answer)
        cost, latency = call.cost.amount, call.latency_ms or 0
        return ToolAnswer(found, failure, call.limits_sent, cost, call.raw_answer, latency)

    async def close(self) -> None:
        """Nothing to release."""
