"""Stores with a fixed clock and seeded entropy, and drafts to put into them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ledger.clock import SteppingClock
from ledger.ids import SeededEntropy
from ledger.store.memory import MemoryStore
from ledger.store.port import Draft, Record, Store
from ledger.store.sqlite import SqliteStore

LOG_ID = "019b7663-1c00-7000-8000-00000000f1a5"
START = datetime(2026, 3, 25, tzinfo=UTC)


def draft(text: str = "{}", **changes: Any) -> Draft:
    """Return a draft of a type that no vocabulary knows."""
    fields: dict[str, Any] = {
        "type": "test.noted",
        "type_v": 1,
        "stream": "test",
        "payload": text.encode(),
        "actor": "tester",
    }
    return Draft(**(fields | changes))


FIRST = draft("{}", type="ledger.opened", stream="ledger")


def clock() -> SteppingClock:
    """Return a clock that makes one step of 1 ms a call."""
    return SteppingClock(START, timedelta(milliseconds=1))


def make_sqlite(path: Path, first: Draft = FIRST, seed: str = "store") -> SqliteStore:
    """Create a ledger file of one event."""
    return SqliteStore.create(
        path, first, log_id=LOG_ID, clock=clock(), entropy=SeededEntropy(seed)
    )


def open_sqlite(path: Path, seed: str = "again") -> SqliteStore:
    """Open a ledger file."""
    return SqliteStore(path, clock=clock(), entropy=SeededEntropy(seed))


def make_memory(first: Draft = FIRST, seed: str = "store") -> MemoryStore:
    """Make a store in memory of one event."""
    store = MemoryStore(log_id=LOG_ID, clock=clock(), entropy=SeededEntropy(seed))
    store.append([first])
    return store


def dump(store: Store) -> list[Record]:
    """Read a whole store."""
    return list(store.read())
