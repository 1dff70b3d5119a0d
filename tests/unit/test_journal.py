"""The journal: one fsync for many writers, each told its own fate; and Session.commit_each."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from event_examples import CARD, DOSSIER, OPENED, PLANNED, SEALED, STARTED, changed
from store_examples import LOG_ID, clock, dump, open_sqlite

from forecasting.journal import Journal
from ledger.errors import BugError, HeadMovedError, LedgerFileError, OrderError
from ledger.events.anchor import PayloadRedacted
from ledger.events.base import Payload
from ledger.events.call import AttemptStarted
from ledger.events.codec import draft_event
from ledger.ids import SeededEntropy
from ledger.protocol.state import ProtocolState
from ledger.session import DecideOne, Session
from ledger.store.memory import MemoryStore
from ledger.store.port import Draft, Head
from ledger.store.sqlite import SqliteStore

OTHER = STARTED


def planned() -> Session:
    """A session whose plan is registered."""
    store = MemoryStore(log_id=LOG_ID, clock=clock(), entropy=SeededEntropy("j"))
    session = Session(store, clock=clock(), actor="tester")
    for payload in (OPENED, CARD, DOSSIER, SEALED, PLANNED):
        session.commit(lambda _, p=payload: [p])  # type: ignore[misc]
    return session


def says(payload: Payload) -> DecideOne:
    return lambda _: payload


def started(draw: int, attempt: int = 1) -> Payload:
    """The beginning of an attempt of a method with two draws."""
    return changed(STARTED, method="file", draw=draw, attempt=attempt)


def test_each_decide_is_one_event_and_a_refused_one_disturbs_no_other() -> None:
    session = planned()
    size = session.state().size
    outcomes = session.commit_each(
        [says(started(1)), says(started(1)), says(started(1, 7)), says(started(2))]
    )
    first, twice, odd, other = outcomes
    assert (first, other) == (size, size + 1)
    assert isinstance(twice, OrderError)
    assert isinstance(odd, OrderError)
    assert twice.rule == "order.attempt-open"
    assert [record.type for record in session.store.read(size)] == ["attempt.started"] * 2
    assert session.state().started == 2


def test_each_decide_sees_what_the_one_before_it_decided() -> None:
    session = planned()
    seen: list[int] = []

    def look(state: ProtocolState) -> Payload:
        seen.append(state.started)
        return started(len(seen))

    session.commit_each([look, look])
    assert seen == [0, 1]


def test_nothing_is_written_and_the_state_is_as_before_where_the_store_refuses() -> None:
    session = planned()
    before = session.state().copy()

    def refuse(*_: object, **__: object) -> object:
        raise LedgerFileError("the disk is full.")

    session.store.append = refuse  # type: ignore[method-assign, assignment]
    with pytest.raises(LedgerFileError):
        session.commit_each([says(started(1))])
    assert session.state() == before


def test_another_writer_makes_it_decide_anew() -> None:
    session = planned()
    rival = Session(session.store, clock=clock(), actor="rival")
    real = session.store.append
    calls = []

    def late(*arguments: object, **named: object) -> object:
        calls.append(1)
        if len(calls) == 1:
            session.store.append = real  # type: ignore[method-assign]
            rival.commit(lambda _: [started(1)])
            raise HeadMovedError("moved")
        return real(*arguments, **named)  # type: ignore[arg-type]

    session.store.append = late  # type: ignore[method-assign, assignment]
    mine, other = session.commit_each([says(started(1)), says(started(2))])
    assert isinstance(mine, OrderError)
    assert isinstance(other, int)


def test_a_redaction_is_no_event_of_a_group() -> None:
    session = planned()
    redaction = PayloadRedacted(target_seq=1, commitment="0" * 64, reason="r", authority="a")
    with pytest.raises(BugError):
        session.commit_each([says(redaction)])


class SlowStore(MemoryStore):
    """A store that outlives its journal, waits for a gate before it appends, and counts."""

    def __init__(self) -> None:
        super().__init__(log_id=LOG_ID, clock=clock(), entropy=SeededEntropy("slow"))
        self.gate = threading.Event()
        self.appends = 0
        drafts = [draft_event(p, actor="t") for p in (OPENED, CARD, DOSSIER, SEALED, PLANNED)]
        super().append(drafts)

    def append(
        self, drafts: Iterable[Draft], *, expected_head: Head | None = None
    ) -> Sequence[int]:
        self.gate.wait(5)
        self.appends += 1
        return super().append(drafts, expected_head=expected_head)

    def close(self) -> None:
        """Stay open for the test."""


def test_what_arrives_during_an_append_goes_out_together() -> None:
    store = SlowStore()
    base = store.head().size

    async def write() -> list[int]:
        async with Journal(lambda: Session(store, clock=clock(), actor="t")) as journal:
            first = asyncio.create_task(journal.write(says(started(1))))
            await asyncio.sleep(0.05)
            rest = [asyncio.create_task(journal.write(says(p))) for p in (started(2), OTHER)]
            await asyncio.sleep(0.05)
            assert not first.done()
            store.gate.set()
            return [await first, *[await task for task in rest]]

    assert asyncio.run(write()) == [base, base + 1, base + 2]
    assert store.appends == 2


def test_a_cancelled_writer_still_gets_its_event_written() -> None:
    store = SlowStore()
    base = store.head().size

    async def write() -> None:
        async with Journal(lambda: Session(store, clock=clock(), actor="t")) as journal:
            task = asyncio.create_task(journal.write(says(started(1))))
            await asyncio.sleep(0.05)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            store.gate.set()

    asyncio.run(write())
    assert [record.type for record in dump(store)[base:]] == ["attempt.started"]


def test_each_writer_hears_its_own_refusal() -> None:
    async def write() -> list[object]:
        async with Journal(planned) as journal:
            tasks = [journal.write(says(started(1))) for _ in range(2)]
            return await asyncio.gather(*tasks, return_exceptions=True)

    done, refused = asyncio.run(write())
    assert isinstance(done, int)
    assert isinstance(refused, OrderError)


def test_a_broken_store_tells_every_writer() -> None:
    def broken() -> Session:
        session = planned()

        def refuse(*_: object, **__: object) -> object:
            raise LedgerFileError("the disk is full.")

        session.store.append = refuse  # type: ignore[method-assign, assignment]
        return session

    async def write() -> list[object]:
        async with Journal(broken) as journal:
            tasks = [journal.write(says(started(d))) for d in (1, 2)]
            return await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(error) for error in asyncio.run(write())] == [LedgerFileError] * 2


def test_a_file_is_opened_and_closed_in_the_one_thread(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    SqliteStore.create(
        path,
        draft_event(OPENED, actor="t"),
        log_id=LOG_ID,
        clock=clock(),
        entropy=SeededEntropy("file"),
    ).close()

    async def write() -> int:
        open_session = lambda: Session(open_sqlite(path), clock=clock(), actor="t")  # noqa: E731
        async with Journal(open_session) as journal:
            seq = await journal.write(says(CARD))
            assert journal.appends == 1
            return seq

    assert asyncio.run(write()) == 1
    store = open_sqlite(path)
    assert store.head().size == 2
    store.close()


def test_a_ledger_that_cannot_be_opened_is_said(tmp_path: Path) -> None:
    async def write() -> None:
        missing = lambda: Session(open_sqlite(tmp_path / "no.db"), clock=clock(), actor="t")  # noqa: E731
        async with Journal(missing):
            pass

    with pytest.raises(LedgerFileError):
        asyncio.run(write())


def test_an_example_is_what_it_says() -> None:
    assert isinstance(started(2), AttemptStarted)
