"""The effect loop: reads each event once, writes all or nothing, and survives every refusal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from event_examples import (
    CALLED,
    CARD,
    DOSSIER,
    FILE_FROZEN,
    OPENED,
    PLANNED,
    SEALED,
    STARTED,
    STORY,
    changed,
    plain,
)
from store_examples import LOG_ID, clock, dump, make_sqlite

from ledger.commitment import PAYLOAD_TAG
from ledger.errors import BugError, HeadMovedError, LedgerFileError, OrderError, WithheldError
from ledger.events.anchor import PayloadRedacted
from ledger.events.base import Payload
from ledger.events.card import CardFrozen
from ledger.events.codec import draft_event, read_event
from ledger.ids import SeededEntropy
from ledger.protocol.state import ProtocolState, apply
from ledger.session import Session
from ledger.store.memory import MemoryStore
from ledger.store.port import Record


class CountingStore(MemoryStore):
    """A store that counts how often each record is read."""

    def __init__(self) -> None:
        super().__init__(log_id=LOG_ID, clock=clock(), entropy=SeededEntropy("count"))
        self.reads: Counter[int] = Counter()

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[Record]:
        for record in super().read(start, stop):
            self.reads[record.seq] += 1
            yield record


def new_session(actor: str = "tester") -> Session:
    return Session(CountingStore(), clock=clock(), actor=actor)


def write(session: Session, *payloads: Payload) -> None:
    for payload in payloads:
        session.commit(lambda _, p=payload: [p])  # type: ignore[misc]


def folded(session: Session) -> ProtocolState:
    state = ProtocolState()
    for record in session.store.read():
        state = apply(state, read_event(record))
    return state


def another_card(name: str) -> CardFrozen:
    return changed(CARD, card=plain(CARD.card) | {"card_id": name, "kind": "stress"})


def test_commit_returns_the_seqs_and_writes_actor_and_correlation() -> None:
    session = new_session("alice")
    assert list(session.commit(lambda _: STORY[:4], correlation="run 7")) == [0, 1, 2, 3]
    assert list(session.commit(lambda _: [PLANNED])) == [4]
    envelopes = [record.envelope for record in dump(session.store)]
    assert [e.actor for e in envelopes] == ["alice"] * 5
    assert [e.correlation for e in envelopes] == ["run 7"] * 4 + [None]


def test_nothing_decided_writes_nothing() -> None:
    session = new_session()
    assert list(session.commit(lambda _: [])) == []
    assert list(session.commit(lambda _: iter(()))) == []
    assert session.state().size == 0


@pytest.mark.parametrize("as_batch", [True, False])
def test_the_state_is_the_fold_of_the_log(as_batch: bool) -> None:  # noqa: FBT001
    session = new_session()
    if as_batch:
        session.commit(lambda _: iter(STORY))
    else:
        write(session, *STORY)
    assert session.state() == folded(session)


def test_each_event_is_folded_once() -> None:
    """Neither its own events nor those before a refusal or a lost race are read again."""
    store = CountingStore()
    one, other = (Session(store, clock=clock(), actor=name) for name in ("one", "other"))
    write(one, *STORY[:6])
    assert store.reads == Counter()
    write(other, STARTED)
    assert set(store.reads.values()) == {1}
    for decided in ([STARTED], [another_card("x"), STARTED]):
        with pytest.raises(OrderError):
            other.commit(lambda _, d=decided: d)  # type: ignore[misc]
    write(other, *STORY[7:15])
    one.state()
    assert set(store.reads) == set(range(15))
    assert set(store.reads.values()) == {1}


def test_after_a_refusal_nothing_is_written_and_the_session_goes_on() -> None:
    session = new_session()
    write(session, *STORY[:6])
    before, state = dump(session.store), folded(session)
    for decided in ([SEALED], [another_card("x"), SEALED], [STARTED, CALLED, STARTED]):
        with pytest.raises(OrderError):
            session.commit(lambda _, d=decided: d)  # type: ignore[misc]
        assert dump(session.store) == before
        assert session.state() == state
    write(session, *STORY[6:])
    assert session.state() == folded(session)


def test_a_refused_batch_leaves_nothing_in_any_part_of_the_state() -> None:
    session = new_session()
    write(session, OPENED)
    with pytest.raises(OrderError, match="card-once"):
        session.commit(lambda _: iter([*STORY[1:], CARD]))
    assert session.state() == folded(session)
    assert session.state().size == 1
    # The same behind a part of the story: the inner values are not shared either.
    write(session, *STORY[1:12])
    with pytest.raises(OrderError, match="card-once"):
        session.commit(lambda _: iter([*STORY[12:], CARD]))
    assert session.state() == folded(session)


class Odd(Exception):  # noqa: N818 - not one of ours
    """An error that no ledger raises."""


@pytest.mark.parametrize("error", [Odd(), KeyboardInterrupt(), ValueError("x")], ids=repr)
def test_a_decide_that_raises_half_way_leaves_no_trace(error: BaseException) -> None:
    session = new_session()
    write(session, *STORY[:6])
    before, state = dump(session.store), folded(session)

    def decide(_: ProtocolState) -> Iterator[Payload]:
        yield another_card("x")
        yield STARTED
        raise error

    with pytest.raises(type(error)):
        session.commit(decide)
    assert dump(session.store) == before
    assert session.state() == state
    write(session, STARTED)


def test_a_decide_sees_what_it_has_yielded() -> None:
    """A closing counts the blends that the same command decides just before it."""
    session = new_session()
    write(session, OPENED)
    sizes = []

    def decide(state: ProtocolState) -> Iterator[Payload]:
        sizes.append(state.size)
        yield CARD
        sizes.append(state.size)
        assert "bridge" in state.cards
        yield SEALED
        assert state.cards["bridge"].sealed_seq == 2

    assert list(session.commit(decide)) == [1, 2]
    assert sizes == [1, 2]


def test_an_append_that_fails_leaves_the_state_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    session = new_session()
    write(session, *STORY[:6])
    state = folded(session)

    def fail(*_args: object, **_kwargs: object) -> None:
        raise LedgerFileError("the disk is full")

    for decided in ([STARTED], [another_card("x"), STARTED]):
        with monkeypatch.context() as patch:
            patch.setattr(session.store, "append", fail)
            with pytest.raises(LedgerFileError):
                session.commit(lambda _, d=decided: d)  # type: ignore[misc]
        assert session.state() == state
    write(session, STARTED)


def test_a_store_that_places_events_elsewhere_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    session = new_session()
    write(session, OPENED)
    monkeypatch.setattr(session.store, "append", lambda *_a, **_k: [7])
    with pytest.raises(BugError):
        session.commit(lambda _: [CARD])


def test_two_sessions_interleaved_decide_again() -> None:
    """The slower one reads what the faster wrote, decides anew and appends behind it."""
    store = CountingStore()
    slow, fast = (Session(store, clock=clock(), actor=name) for name in ("slow", "fast"))
    write(slow, OPENED)
    decisions: list[list[str]] = []

    def decide(state: ProtocolState) -> list[Payload]:
        if not decisions:
            write(fast, CARD)
        decisions.append(sorted(state.cards))
        return [DOSSIER] if "tunnel" not in state.cards else []

    assert list(slow.commit(decide)) == [2]
    assert decisions == [[], ["bridge"]]
    assert store.reads[1] == 1
    # The same card by both: the slower finds it frozen and has nothing left to decide.
    third = another_card("third")

    def decide_third(state: ProtocolState) -> Iterator[Payload]:
        if "third" not in state.cards:
            if len(state.cards) == 2 and fast.state().size == 3:
                write(fast, third)
            yield third

    assert list(slow.commit(decide_third)) == []
    assert slow.state() == fast.state() == folded(slow)


def test_an_order_rule_may_refuse_the_second_decision() -> None:
    store = CountingStore()
    slow, fast = (Session(store, clock=clock(), actor=name) for name in ("slow", "fast"))
    write(slow, OPENED)

    def decide(state: ProtocolState) -> list[Payload]:
        if state.size == 1:
            write(fast, CARD)
        return [CARD]

    with pytest.raises(OrderError, match="card-once"):
        slow.commit(decide)
    assert store.head().size == 2


def test_a_race_lost_a_hundred_times_is_reported() -> None:
    store = CountingStore()
    slow, fast = (Session(store, clock=clock(), actor=name) for name in ("slow", "fast"))
    write(slow, *STORY[:3])

    def decide(state: ProtocolState) -> list[Payload]:
        write(fast, another_card(f"n{state.size}"))
        return [SEALED]

    with pytest.raises(HeadMovedError, match="too busy"):
        slow.commit(decide)
    assert store.head().size == 103
    assert set(store.reads.values()) == {1}


def test_redaction() -> None:
    """events.md, order.redaction: an earlier event other than 0 and its commitment, once."""
    session = new_session()
    write(session, *STORY[:10])
    commitment = dump(session.store)[9].fields["payload"]["commitment"]
    assert session.redact(9, reason="Terms.", authority="counsel") == 10
    event = read_event(dump(session.store)[10])
    assert isinstance(event.payload, PayloadRedacted)
    assert (event.payload.target_seq, event.payload.commitment) == (9, commitment)
    assert dump(session.store)[9].payload is None
    before = dump(session.store)
    for target in (0, 9, 11, -1, 10**9):
        with pytest.raises((OrderError, ValueError)) as caught:
            session.redact(target, reason="Terms.", authority="counsel")
        if target >= 0:
            assert isinstance(caught.value, OrderError)
            assert (caught.value.rule, caught.value.seq) == ("order.redaction", target)
        assert dump(session.store) == before
    write(session, STORY[10])


def test_what_was_redacted_weighs_no_more_here_than_elsewhere() -> None:
    session = new_session()
    write(session, *STORY[:22])
    session.redact(20, reason="Terms.", authority="counsel")
    assert session.state() == folded(session)
    with pytest.raises(WithheldError):
        write(session, FILE_FROZEN)


def test_two_sessions_cannot_redact_one_event_twice() -> None:
    store = CountingStore()
    slow, fast = (Session(store, clock=clock(), actor=name) for name in ("slow", "fast"))
    write(slow, *STORY[:4])
    fast.state()
    slow.state()
    real = store.redact

    def race(target: int, draft: object, **kwargs: object) -> int:
        store.redact = real  # type: ignore[method-assign]
        fast.redact(target, reason="First.", authority="counsel")
        return real(target, draft, **kwargs)  # type: ignore[arg-type]

    store.redact = race  # type: ignore[method-assign,assignment]
    with pytest.raises(OrderError, match="redaction"):
        slow.redact(2, reason="Second.", authority="counsel")
    assert store.head().size == 5


def test_the_same_on_a_file(tmp_path: Path) -> None:
    store = make_sqlite(tmp_path / "a.db", draft_event(OPENED, actor="tester"))
    session = Session(store, clock=clock(), actor="tester")
    write(session, *STORY[1:])
    memory = new_session()
    write(memory, *STORY)
    on_file = [(r.type, r.payload) for r in dump(store)]
    assert on_file == [(r.type, r.payload) for r in dump(memory.store)]
    assert session.state() == memory.state()
    assert PAYLOAD_TAG.endswith(b"\x00")
    store.close()
