"""The accounts of a run, folded from its log: what was asked, what it cost, what evidence was seen.

Nothing here is kept beside the log: the same events give the same accounts. An unknown cost is
counted apart and never taken for 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from forecasting.timebox import IRRELEVANT
from ledger.events.call import Evidence, ModelCalled, ToolCalled
from ledger.events.codec import read_event
from ledger.protocol.state import Cell
from ledger.store.port import Store

JsonDict = dict[str, Any]
Grouping = Literal["method", "stage", "model"]

EVIDENCE_COLUMNS = (
    "seq",
    "card",
    "method",
    "draw",
    "tool",
    "query",
    "as_of",
    "published",
    "crawled",
    "snapshot",
    "retrieved_at",
    "kept",
    "rule",
    "url",
    "title",
    "content_sha256",
    "cached_from_seq",
)
ACCOUNT_COLUMNS = (
    "calls",
    "failed",
    "cached",
    "input_tokens",
    "output_tokens",
    "cost_usd",
    "calls_without_cost",
    "latency_ms",
)


@dataclass(slots=True)
class Account:
    """Sums over calls; `cost_usd` is of the calls whose cost is known."""

    calls: int = 0
    failed: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal = Decimal(0)
    calls_without_cost: int = 0
    latency_ms: int = 0

    def add(self, event: ModelCalled | ToolCalled) -> None:
        """Count one call."""
        self.calls += 1
        self.failed += event.outcome == "failed"
        self.cached += event.cached_from_seq is not None
        self.latency_ms += event.latency_ms or 0
        if event.cost.amount is None:
            self.calls_without_cost += 1
        else:
            self.cost_usd += Decimal(event.cost.amount)
        if isinstance(event, ModelCalled) and event.cached_from_seq is None:
            self.input_tokens += event.usage.input_tokens or 0
            self.output_tokens += event.usage.output_tokens or 0

    def to_row(self) -> JsonDict:
        """Return the sums as JSON values; money as decimal text."""
        row = {name: getattr(self, name) for name in ACCOUNT_COLUMNS}
        return row | {"cost_usd": f"{self.cost_usd.normalize():f}"}


@dataclass(slots=True)
class CellAccount:
    """What one cell did: its model calls, its tool calls, and what became of the evidence."""

    models: Account = field(default_factory=Account)
    tools: Account = field(default_factory=Account)
    kept: int = 0
    timeboxed_out: int = 0
    relevance_removed: int = 0

    def add(self, event: ModelCalled | ToolCalled) -> None:
        """Count one call."""
        if isinstance(event, ModelCalled):
            self.models.add(event)
            return
        self.tools.add(event)
        for item in event.evidence:
            self.kept += item.kept
            self.relevance_removed += item.rule == IRRELEVANT
            self.timeboxed_out += not item.kept and item.rule != IRRELEVANT


@dataclass(frozen=True, slots=True)
class Called:
    """A call and its place in the log."""

    seq: int
    event: ModelCalled | ToolCalled

    @property
    def cell(self) -> Cell:
        """Whose call it is."""
        return Cell(self.event.method, self.event.card_id, self.event.draw)

    def group(self, by: Grouping) -> str:
        """Return the name under which the call is counted."""
        if by == "method":
            return self.event.method
        if isinstance(self.event, ToolCalled):
            return self.event.tool
        if by == "stage":
            return self.event.role
        route = self.event.model_route
        return f"{route.provider}: {route.resolved_model or route.requested_model}"


def read_calls(store: Store) -> Iterator[Called]:
    """Yield every call of a log that is not redacted, in order."""
    for record in store.read():
        if record.type in {"model.called", "tool.called"} and record.payload is not None:
            payload = read_event(record).payload
            if isinstance(payload, ModelCalled | ToolCalled):
                yield Called(record.seq, payload)


def count_by(calls: Iterable[Called], by: Grouping) -> dict[str, Account]:
    """Sum calls by method, stage or model, in order of first appearance."""
    accounts: dict[str, Account] = {}
    for call in calls:
        accounts.setdefault(call.group(by), Account()).add(call.event)
    return accounts


def count_by_cell(calls: Iterable[Called]) -> dict[Cell, CellAccount]:
    """Sum calls by cell, attempts that failed included: they were paid for too."""
    accounts: dict[Cell, CellAccount] = {}
    for call in calls:
        accounts.setdefault(call.cell, CellAccount()).add(call.event)
    return accounts


def evidence_rows(calls: Iterable[Called], *, card: str | None = None) -> Iterator[JsonDict]:
    """Yield one row a piece of evidence with every time it claims and the timebox's verdict.

    Args:
        calls: in log order.
        card: rows of this card alone; of all where None.
    """
    for call in calls:
        event = call.event
        if isinstance(event, ToolCalled) and card in (None, event.card_id):
            for item in event.evidence:
                yield _evidence_row(call.seq, event, item)


def _evidence_row(seq: int, event: ToolCalled, item: Evidence) -> JsonDict:
    return {
        "seq": seq,
        "card": event.card_id,
        "method": event.method,
        "draw": event.draw,
        "tool": event.tool,
        "query": event.arguments.get("query"),
        "as_of": event.as_of,
        "published": item.published,
        "crawled": item.crawled,
        "snapshot": item.snapshot,
        "retrieved_at": item.retrieved_at,
        "kept": item.kept,
        "rule": item.rule,
        "url": item.url,
        "title": item.title,
        "content_sha256": item.content_sha256,
        "cached_from_seq": event.cached_from_seq,
    }
