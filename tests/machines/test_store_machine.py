"""A machine drives the SQLite store, the memory store and a plain list; they always agree.

All three get the same drafts. Clock and entropy begin anew with each step, so that the two stores
must agree to the byte, also after a refusal in the middle of a batch. The list knows nothing of
hashes: it says which seqs come back, what is stored, and what may be refused with which error.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from store_examples import FIRST, LOG_ID, START, draft, dump

from ledger.errors import (
    BadInputError,
    HeadMovedError,
    IdempotencyError,
    LedgerError,
    WithheldError,
)
from ledger.ids import SeededEntropy
from ledger.store.memory import MemoryStore
from ledger.store.port import Draft, Head, Store
from ledger.store.sqlite import SqliteStore

DRAFTS = st.builds(
    draft,
    st.sampled_from(["a", "b", "c" * 700]),
    stream=st.sampled_from(["s", "s/1", "s/2"]),
    idem_key=st.none() | st.sampled_from(["k1", "k2", "k3", "k4"]),
    type=st.sampled_from(["test.noted", "test.noted", "test.other"]),
    actor=st.sampled_from([*["tester"] * 30, "unfit \n"]),
)


@dataclass
class Event:
    """What the list remembers of an event."""

    draft: Draft
    redacted: bool = False


class Outside:
    """Clock and entropy of one store, set anew for each step."""

    def __init__(self) -> None:
        self.step(0)

    def step(self, number: int) -> None:
        self._now = START + timedelta(seconds=number)
        self._entropy = SeededEntropy(f"step {number}")

    def clock(self) -> datetime:
        return self._now

    def entropy(self, count: int) -> bytes:
        return self._entropy(count)


class Stores(RuleBasedStateMachine):
    """The three stores and what is done to them."""

    @initialize()
    def create(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "a.db"
        self.events = [Event(FIRST)]
        self.old_heads: list[Head] = []
        self.steps = 0
        self.outside = {"sqlite": Outside(), "memory": Outside()}
        one, other = self.outside["sqlite"], self.outside["memory"]
        self.sqlite = SqliteStore.create(
            self.path, FIRST, log_id=LOG_ID, clock=one.clock, entropy=one.entropy
        )
        self.memory = MemoryStore(log_id=LOG_ID, clock=other.clock, entropy=other.entropy)
        self.memory.append([FIRST])

    def teardown(self) -> None:
        if hasattr(self, "sqlite"):
            self.sqlite.close()
            shutil.rmtree(self.folder)

    def each(self) -> tuple[Store, Store]:
        self.steps += 1
        for source in self.outside.values():
            source.step(self.steps)
        return self.sqlite, self.memory

    def stored(self, key: str | None) -> int | None:
        hits = [i for i, e in enumerate(self.events) if key is not None and e.draft.idem_key == key]
        return hits[0] if hits else None

    def expected(self, batch: list[Draft]) -> tuple[list[int], set[type[LedgerError]]]:
        """Say which seqs come back, or which errors the batch gives reason for."""
        seqs, errors, size = [], set[type[LedgerError]](), len(self.events)
        keys = [d.idem_key for d in batch if d.idem_key is not None]
        if len(set(keys)) < len(keys):
            errors.add(BadInputError)
        for each in batch:
            at = self.stored(each.idem_key)
            if at is None:
                seqs.append(size)
                size += 1
                if "\n" in each.actor:
                    errors.add(BadInputError)
                continue
            first = self.events[at]
            here = (each.type, each.stream, each.payload)
            if first.redacted:
                errors.add(WithheldError)
            elif here != (first.draft.type, first.draft.stream, first.draft.payload):
                errors.add(IdempotencyError)
            seqs.append(at)
        return seqs, errors

    def attempt(self, batch: list[Draft], head: Head | None) -> None:
        seqs, errors = self.expected(batch)
        if head is not None and head != self.memory.head():
            errors = {HeadMovedError}
        for store in self.each():
            if errors:
                with pytest.raises(tuple(errors)):
                    store.append(iter(batch), expected_head=head)
            else:
                assert list(store.append(iter(batch), expected_head=head)) == seqs
        if not errors:
            self.old_heads.append(Head(len(self.events), dump(self.memory)[-1].leaf))
            size = len(self.events)
            self.events += [Event(d) for d, s in zip(batch, seqs, strict=True) if s >= size]

    @rule(one=DRAFTS)
    def append_one(self, one: Draft) -> None:
        self.attempt([one], None)

    @rule(batch=st.lists(DRAFTS, max_size=8))
    def append_many(self, batch: list[Draft]) -> None:
        self.attempt(batch, self.memory.head())

    @rule(one=DRAFTS, copies=st.integers(500, 1_600))
    def append_bulk(self, one: Draft, copies: int) -> None:
        """Longer than every chunk; the key stands at both ends, or nowhere."""
        middle = [draft(str(i), stream="bulk") for i in range(copies)]
        self.attempt([one, *middle, one], None)

    @precondition(lambda self: self.old_heads)
    @rule(one=DRAFTS, data=st.data())
    def append_behind_another_head(self, one: Draft, data: st.DataObject) -> None:
        self.attempt([one], data.draw(st.sampled_from(self.old_heads)))

    @rule(data=st.data())
    def redact(self, data: st.DataObject) -> None:
        target = data.draw(st.integers(0, min(len(self.events), 40)))
        is_there = 0 < target < len(self.events) and not self.events[target].redacted
        why = draft("why", type="payload.redacted")
        for store in self.each():
            if is_there:
                assert store.redact(target, why) == len(self.events)
            else:
                with pytest.raises(BadInputError):
                    store.redact(target, why)
        if is_there:
            self.events[target].redacted = True
            self.events.append(Event(why))

    @rule()
    def reopen(self) -> None:
        self.sqlite.close()
        source = self.outside["sqlite"]
        self.sqlite = SqliteStore(self.path, clock=source.clock, entropy=source.entropy)

    @rule(start=st.integers(-2, 60), length=st.none() | st.integers(-2, 60))
    def read_back(self, start: int, length: int | None) -> None:
        stop = None if length is None else start + length
        found = list(self.sqlite.read(start, stop))
        assert found == list(self.memory.read(start, stop))
        last = len(self.events) if stop is None else stop
        want = range(len(self.events))[max(start, 0) : max(last, 0)]
        assert [record.seq for record in found] == list(want)

    @invariant()
    def all_agree(self) -> None:
        if not hasattr(self, "sqlite"):
            return
        records = dump(self.sqlite)
        assert records == dump(self.memory)
        assert self.sqlite.head() == self.memory.head() == Head(len(records), records[-1].leaf)
        streams: dict[str, int] = {}
        for record, event in zip(records, self.events, strict=True):
            said = (record.type, record.fields["stream"], record.fields["idem_key"])
            assert said == (event.draft.type, event.draft.stream, event.draft.idem_key)
            assert record.payload == (None if event.redacted else event.draft.payload)
            place = streams.get(event.draft.stream, 0)
            assert record.fields["stream_seq"] == place
            streams[event.draft.stream] = place + 1


TestStores = Stores.TestCase
TestStores.settings = settings(max_examples=25, stateful_step_count=20)
