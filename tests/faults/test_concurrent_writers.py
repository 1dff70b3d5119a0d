"""Four processes append to one ledger at once: nothing lost, no fork, dense seqs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from child_process import in_child
from event_examples import CARD, OPENED, PLANNED, changed, plain
from store_examples import clock, draft, dump, make_sqlite, open_sqlite

from ledger.envelope import leaf_of, parse_envelope
from ledger.errors import HeadMovedError, IdempotencyError, LedgerFileError
from ledger.events.codec import draft_event
from ledger.ids import SeededEntropy
from ledger.session import Session
from ledger.store.port import Record
from ledger.store.sqlite import SqliteStore

WRITERS = 4
ROUNDS = 60


def race(work: Callable[[int], object]) -> None:
    """Run a work in each of four children at once; all must come to a good end."""
    gate, opener = os.pipe()

    def wait_and_work(writer: int) -> None:
        os.close(opener)
        os.read(gate, 1)
        work(writer)

    pids = [in_child(lambda writer=n: wait_and_work(writer)) for n in range(WRITERS)]  # type: ignore[misc]
    os.close(gate)
    os.close(opener)
    ends = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    assert ends == [0] * WRITERS


def check_chain(records: list[Record]) -> None:
    """Check that there is one chain, and that seqs and streams are dense."""
    prev, streams = "0" * 64, dict[str, int]()
    for seq, record in enumerate(records):
        fields = parse_envelope(record.envelope_bytes)
        assert (fields["seq"], fields["prev"]) == (seq, prev)
        assert fields["stream_seq"] == streams.get(fields["stream"], 0)
        streams[fields["stream"]] = fields["stream_seq"] + 1
        prev = leaf_of(record.envelope_bytes).hex()


def write_and_note(path: Path, notes: Path, writer: int) -> None:
    """Append singles, batches and contended keys; note which seq came back for what."""
    store = open_sqlite(path, seed=f"writer {writer}")
    got: dict[str, int | str] = {}
    for turn in range(ROUNDS):
        own = [draft(f"{writer}.{turn}.{i}", stream=f"w{writer}") for i in range(turn % 6 + 1)]
        for each, seq in zip(own, store.append(own), strict=True):
            got[each.payload.decode()] = seq
        (got[f"same {turn}"],) = store.append([draft(f"same {turn}", idem_key=f"same {turn}")])
        try:
            (seq,) = store.append([draft(f"{writer} won {turn}", idem_key=f"contended {turn}")])
            got[f"won {turn}"] = seq
        except IdempotencyError:
            got[f"lost {turn}"] = "to another"
    store.close()
    (notes / f"{writer}.json").write_text(json.dumps(got), encoding="utf-8")


def test_four_processes_append_at_once(tmp_path: Path) -> None:
    """event-log.md 13 and 14 hold between processes, each with its own connection."""
    path = tmp_path / "a.db"
    make_sqlite(path).close()
    race(lambda writer: write_and_note(path, tmp_path, writer))
    store = open_sqlite(path)
    records = dump(store)
    store.close()
    check_chain(records)
    noted = [json.loads((tmp_path / f"{w}.json").read_text()) for w in range(WRITERS)]
    text = {record.seq: (record.payload or b"").decode() for record in records}
    for writer, got in enumerate(noted):
        for what, seq in got.items():
            if what.startswith("won"):
                assert text[seq] == f"{writer} {what}"
            elif seq != "to another":
                assert text[seq] == what
    for turn in range(ROUNDS):
        assert len({got[f"same {turn}"] for got in noted}) == 1
        assert sum(f"won {turn}" in got for got in noted) == 1
    own = sum(turn % 6 + 1 for turn in range(ROUNDS))
    assert len(records) == 1 + WRITERS * own + 2 * ROUNDS


def test_expected_head_lets_one_writer_through(tmp_path: Path) -> None:
    """event-log.md 15: of four writers that decided on one head, one appends, none is lost."""
    path = tmp_path / "a.db"
    make_sqlite(path).close()

    def add_one(writer: int) -> None:
        store = open_sqlite(path, seed=f"writer {writer}")
        for turn in range(30):
            while True:
                head = store.head()
                try:
                    store.append([draft(f"{head.size} {writer} {turn}")], expected_head=head)
                    break
                except HeadMovedError:
                    continue
        store.close()

    race(add_one)
    store = open_sqlite(path)
    records = dump(store)
    store.close()
    check_chain(records)
    assert len(records) == 1 + 30 * WRITERS
    for record in records[1:]:
        assert (record.payload or b"").decode().split()[0] == str(record.seq)


def test_four_sessions_freeze_the_same_cards(tmp_path: Path) -> None:
    """Each decides on what is there: every card is frozen once, whoever was first."""
    path = tmp_path / "a.db"
    make_sqlite(path, draft_event(OPENED, actor="init")).close()
    cards = [changed(CARD, card=plain(CARD.card) | {"card_id": f"card-{i}"}) for i in range(25)]

    def freeze(writer: int) -> None:
        store = open_sqlite(path, seed=f"writer {writer}")
        session = Session(store, clock=clock(), actor=f"writer-{writer}")
        for card in cards:
            session.commit(lambda s, c=card: [c] if c.card.card_id not in s.cards else [])  # type: ignore[misc]
        session.commit(lambda s: [PLANNED] if s.plan is None else [])
        store.close()

    race(freeze)
    store = open_sqlite(path)
    records = dump(store)
    store.close()
    check_chain(records)
    assert [r.type for r in records] == [
        "ledger.opened",
        *["card.frozen"] * 25,
        "plan.preregistered",
    ]


def test_four_processes_create_at_one_path(tmp_path: Path) -> None:
    path = tmp_path / "a.db"

    def create(writer: int) -> None:
        try:
            make_sqlite(path, seed=f"writer {writer}").close()
            (tmp_path / f"won{writer}").touch()
        except LedgerFileError:
            (tmp_path / f"lost{writer}").touch()

    race(create)
    assert len(list(tmp_path.glob("won*"))) == 1
    assert len(list(tmp_path.glob("lost*"))) == WRITERS - 1
    assert len(list(tmp_path.iterdir())) == 1 + WRITERS
    store = open_sqlite(path)
    check_chain(dump(store))
    store.close()


def test_a_writer_that_waits_too_long_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ledger.store.sqlite.BUSY_TIMEOUT_S", 0)
    path = tmp_path / "a.db"
    make_sqlite(path).close()
    holder, waiter = open_sqlite(path), open_sqlite(path)
    holder.database.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerFileError, match="another writer"):
        waiter.append([draft("late")])
    holder.database.execute("ROLLBACK")
    waiter.append([draft("now")])
    assert len(dump(holder)) == 2
    holder.close()
    waiter.close()


def test_a_reader_sees_whole_appends_while_another_writes(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    make_sqlite(path).close()

    def write_or_read(number: int) -> None:
        store = SqliteStore(path, clock=clock(), entropy=SeededEntropy(f"{number}"))
        for _ in range(25):
            if number == 0:
                store.append(draft("x") for _ in range(20))
            else:
                assert (len(dump(store)) - 1) % 20 == 0
        store.close()

    race(write_or_read)
