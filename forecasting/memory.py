"""What the ledger already answers: for resuming a killed attempt, and for the response cache.

Two kinds of hit, kept apart. A call that the open attempt itself holds is *resumed*: it is used
without a new event, since its event stands there already. An answer from elsewhere in the ledger
is *cached*: it is recorded as a call of its own that cites the seq it came from. The key is the
SHA-256 of provider, route, the exact octets of the request, as-of and draw: two questions with
different as-of times share nothing, and two draws are two answers. Answers that could not be used
are not kept: asking again is then the point.

The index holds 32-byte keys and seqs; the answers stay in the ledger until they are asked for.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from forecasting.ports import ToolRequest
from forecasting.providers.wire import from_raw
from forecasting.timebox import format_cache_key
from ledger.errors import DamagedLedgerError, WithheldError
from ledger.events.base import Payload
from ledger.events.call import AttemptFailed, AttemptStarted, ModelCalled, ToolCalled
from ledger.events.codec import read_event
from ledger.events.prediction import PredictionFrozen
from ledger.protocol.state import Cell
from ledger.store.port import Record, Store

Key = bytes

UNUSABLE: Final = frozenset({"unusable_answer", "refused"})
"""Reasons of a failed attempt after which its answers are not used again."""

_NOTED: Final = frozenset(
    {"attempt.started", "attempt.failed", "model.called", "tool.called", "prediction.frozen"}
)


@dataclass(frozen=True, slots=True)
class Hit:
    """Where an answer stands, and whether this very attempt put it there."""

    seq: int
    is_own: bool


@dataclass(slots=True)
class Memory:
    """The index of what is answered.

    Args:
        use_cache: False leaves answers from elsewhere alone; what an open attempt holds is used
            all the same, since it is that attempt.
    """

    use_cache: bool = True
    spent_usd: Decimal = Decimal(0)
    """What the recorded calls cost, where that is known."""
    _answered: dict[Key, int] = field(default_factory=dict)
    _current: dict[Cell, list[tuple[Key, int]]] = field(default_factory=dict)
    _own: dict[Cell, dict[Key, deque[int]]] = field(default_factory=dict)

    def take(self, cell: Cell, key: Key) -> Hit | None:
        """Find an answer for a cell; one of its own interrupted attempt is given out once."""
        waiting = self._own.get(cell, {}).get(key)
        if waiting:
            return Hit(waiting.popleft(), is_own=True)
        seq = self._answered.get(key) if self.use_cache else None
        return None if seq is None else Hit(seq, is_own=False)

    def note(self, cell: Cell, key: Key, seq: int) -> None:
        """Remember an answer that was just recorded."""
        self._answered.setdefault(key, seq)
        self._current.setdefault(cell, []).append((key, seq))

    def begin(self, cell: Cell) -> None:
        """A new attempt of a cell begins."""
        self._current[cell] = []

    def end(self, cell: Cell, reason: str | None = None) -> None:
        """The attempt ended: with a prediction (no reason), or as `attempt.failed` says."""
        for key, seq in self._current.pop(cell, []):
            if reason in UNUSABLE and self._answered.get(key) == seq:
                del self._answered[key]
        self._own.pop(cell, None)

    def resume(self) -> None:
        """Turn what open attempts hold into answers of their own; call it once, after reading."""
        for cell, calls in self._current.items():
            own: dict[Key, deque[int]] = {}
            for key, seq in calls:
                own.setdefault(key, deque()).append(seq)
            self._own[cell] = own


def read_memory(store: Store, *, use_cache: bool = True) -> Memory:
    """Fold a ledger into its memory; about 0.1 ms a call."""
    memory = Memory(use_cache)
    for record in store.read():
        if record.type in _NOTED and record.payload is not None:
            _note_event(memory, record.seq, read_event(record).payload)
    memory.resume()
    return memory


def _note_event(memory: Memory, seq: int, payload: Payload | None) -> None:
    if isinstance(payload, AttemptStarted):
        memory.begin(Cell(payload.method, payload.card_id, payload.draw))
    elif isinstance(payload, AttemptFailed):
        memory.end(Cell(payload.method, payload.card_id, payload.draw), payload.reason)
    elif isinstance(payload, PredictionFrozen):
        memory.end(Cell(payload.method, payload.card_id, payload.draw))
    elif isinstance(payload, ModelCalled | ToolCalled):
        memory.spent_usd += Decimal(payload.cost.amount or 0)
        if payload.outcome == "answered" and payload.raw_answer is not None:
            cell = Cell(payload.method, payload.card_id, payload.draw)
            memory.note(cell, key_of_event(payload), seq)


def key_of_event(event: ModelCalled | ToolCalled) -> Key:
    """Return the key under which a recorded call is found."""
    if isinstance(event, ToolCalled):
        request = ToolRequest(event.arguments, event.as_of, event.as_of)
        return tool_key(event.tool, request, event.draw)
    route = event.model_route
    return model_key(
        (route.provider or "", route.route or ""),
        from_raw(event.raw_request),
        as_of=event.as_of,
        draw=event.draw,
    )


def model_key(route: tuple[str, str], body: bytes, *, as_of: str, draw: int) -> Key:
    """Digest what an answer of a model may depend on: provider and route, octets, as-of, draw."""
    return _digest(("model", *route, hashlib.sha256(body).hexdigest(), as_of, str(draw)))


def tool_key(tool: str, request: ToolRequest, draw: int) -> Key:
    """Digest what an answer of a tool may depend on: tool, arguments, as-of, draw."""
    return _digest(("tool", format_cache_key(tool, request), str(draw)))


def read_call(record: Record) -> ModelCalled | ToolCalled:
    """Read a remembered call back.

    Raises:
        WithheldError: it was redacted meanwhile.
        DamagedLedgerError: the event is no call.
    """
    payload = read_event(record).payload
    if payload is None:
        raise WithheldError(f"the call of event {record.seq} is redacted")
    if not isinstance(payload, ModelCalled | ToolCalled):
        raise DamagedLedgerError(f"event {record.seq} is no call. Run `ledger verify`.")
    return payload


def _digest(parts: Iterable[str]) -> Key:
    # No part holds a line feed, so that two different lists never join to one text.
    return hashlib.sha256("\n".join(parts).encode()).digest()
