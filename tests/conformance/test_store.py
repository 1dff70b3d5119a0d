"""What every store promises, run on each adapter (docs/spec/event-log.md, Append)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from store_examples import LOG_ID, clock, draft, dump, make_memory, make_sqlite

from ledger.clock import format_moment
from ledger.commitment import PAYLOAD_TAG, check_commitment
from ledger.envelope import MAX_ENVELOPE_BYTES, parse_envelope
from ledger.errors import (
    BadInputError,
    HeadMovedError,
    IdempotencyError,
    LedgerError,
    LedgerFileError,
    WithheldError,
)
from ledger.ids import SeededEntropy
from ledger.store import sequence
from ledger.store.memory import MemoryStore
from ledger.store.port import EMPTY_HEAD, Draft, Head, Record, Store
from ledger.store.sqlite import SqliteStore

Make = Callable[[], Store]


@pytest.fixture(params=["sqlite", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made: Store = make_sqlite(tmp_path / "a.db") if request.param == "sqlite" else make_memory()
    yield made
    made.close()


def refuse(store: Store, error: type[LedgerError], action: Callable[[], object]) -> str:
    """Run an action that must be refused without a trace; return the message."""
    before = dump(store)
    with pytest.raises(error) as caught:
        action()
    assert dump(store) == before
    assert store.head() == Head(len(before), before[-1].leaf)
    store.append([draft("after the refusal")])
    assert len(dump(store)) == len(before) + 1
    return str(caught.value)


def check_chain(records: list[Record]) -> None:
    """Check every promise about bytes with hashlib and the strict parser alone."""
    streams: dict[str, int] = {}
    prev = "0" * 64
    for seq, record in enumerate(records):
        fields = parse_envelope(record.envelope_bytes)
        assert fields == record.fields
        assert (fields["seq"], fields["log"], fields["prev"]) == (seq, LOG_ID, prev)
        assert fields["stream_seq"] == streams.get(fields["stream"], 0)
        streams[fields["stream"]] = fields["stream_seq"] + 1
        assert hashlib.sha256(b"\x00" + record.envelope_bytes).digest() == record.leaf
        prev = record.leaf.hex()
        if record.payload is not None and record.salt is not None:
            assert fields["payload"]["length"] == len(record.payload)
            commitment = fields["payload"]["commitment"]
            assert check_commitment(PAYLOAD_TAG, record.salt, record.payload, commitment)
    assert len({record.fields["id"] for record in records}) == len(records)


def test_envelopes_say_what_the_draft_said(store: Store) -> None:
    seqs = store.append(
        [
            draft("[1]", stream="x", idem_key="k", causation="c", correlation="run 1"),
            draft("text", stream="x", media="text/plain", type_v=7, actor="bob"),
        ]
    )
    assert list(seqs) == [1, 2]
    records = dump(store)
    check_chain(records)
    one, two = records[1].envelope, records[2].envelope
    assert (one.idem_key, one.causation, one.correlation) == ("k", "c", "run 1")
    assert (two.media, two.type_v, two.actor, two.stream_seq) == ("text/plain", 7, "bob", 1)
    assert records[2].payload == b"text"
    assert records[1].type == "test.noted"


def test_one_append_has_one_moment_and_each_event_its_own_id(store: Store) -> None:
    store.append(draft(str(i)) for i in range(50))
    records = dump(store)[1:]
    assert len({record.fields["recorded_at"] for record in records}) == 1
    at = clock()
    at()
    assert records[0].fields["recorded_at"] == format_moment(at())
    assert len({record.fields["id"] for record in records}) == 50
    assert len({record.salt for record in records}) == 50


def test_seq_prev_and_streams_are_dense(store: Store) -> None:
    """event-log.md 1: seq is dense, stream_seq dense in its stream; 7: prev is the leaf before."""
    for turn in range(7):
        store.append(draft(str(i), stream=f"s{i % 3}") for i in range(turn * 5))
    check_chain(dump(store))
    assert store.head().size == 1 + 5 * 21


def test_an_empty_append_writes_nothing(store: Store) -> None:
    before = store.head()
    assert list(store.append([])) == []
    assert store.head() == before


def test_a_batch_longer_than_every_chunk(store: Store) -> None:
    seqs = store.append(draft(str(i), idem_key=f"k{i}") for i in range(2_345))
    assert list(seqs) == list(range(1, 2_346))
    records = dump(store)
    check_chain(records)
    assert [r.payload for r in records[1:]] == [str(i).encode() for i in range(2_345)]


def test_expected_head(store: Store) -> None:
    """event-log.md 15: an expected_head that is not the head any more MUST be refused."""
    head = store.head()
    store.append([draft("1")], expected_head=head)
    for stale in (head, EMPTY_HEAD, Head(2, head.leaf), Head(1, store.head().leaf)):
        action = partial(store.append, [draft("2")], expected_head=stale)
        refuse(store, HeadMovedError, action)
    store.append([draft("3")], expected_head=store.head())
    check_chain(dump(store))


def test_an_empty_store_has_the_empty_head() -> None:
    empty = MemoryStore(log_id=LOG_ID, clock=clock(), entropy=SeededEntropy("e"))
    assert empty.head() == EMPTY_HEAD
    assert dump(empty) == []


def test_the_same_key_and_body_returns_the_first_event(store: Store) -> None:
    """event-log.md 14: the same idempotency key with the same body MUST return the first event."""
    store.append([draft("a", idem_key="k1"), draft("b", idem_key="k2")])
    before = dump(store)
    assert list(store.append([draft("a", idem_key="k1")])) == [1]
    # Who says it, and in which run, is no part of the body.
    again = draft("b", idem_key="k2", actor="other", causation="x", correlation="y")
    assert list(store.append([again])) == [2]
    assert dump(store) == before
    mixed = [draft("n"), draft("b", idem_key="k2"), draft("m"), draft("a", idem_key="k1")]
    assert list(store.append(mixed)) == [3, 2, 4, 1]
    check_chain(dump(store))


def test_keys_are_found_across_chunks(store: Store) -> None:
    store.append(draft(str(i), idem_key=f"k{i}") for i in range(0, 3_000, 3))
    seqs = store.append(draft(str(i), idem_key=f"k{i}") for i in range(3_000))
    fresh = iter(range(1_001, 3_001))
    assert list(seqs) == [1 + i // 3 if i % 3 == 0 else next(fresh) for i in range(3_000)]
    check_chain(dump(store))


@pytest.mark.parametrize(
    "changes",
    [
        {"text": "other"},
        {"type": "test.other"},
        {"type_v": 2},
        {"stream": "other"},
        {"media": "text/plain"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_the_same_key_with_another_body_is_refused(
    store: Store, changes: dict[str, object]
) -> None:
    """event-log.md 14: with another body it MUST be refused."""
    store.append([draft("a", idem_key="k")])
    wrong = draft(**{"text": "a", "idem_key": "k"} | changes)  # type: ignore[arg-type]
    message = refuse(store, IdempotencyError, lambda: store.append([draft("x"), wrong]))
    assert "'k'" in message
    assert "event 1" in message


@pytest.mark.parametrize("gap", [0, 1, 498, 499, 500, 998, 999, 1_000, 1_500, 2_600])
def test_the_same_new_key_twice_in_one_append_is_refused(store: Store, gap: int) -> None:
    """event-log.md 14: the same key twice in one append MUST be refused."""
    batch = [draft("a", idem_key="k"), *(draft(str(i)) for i in range(gap))]
    refuse(store, BadInputError, lambda: store.append([*batch, draft("a", idem_key="k")]))


@pytest.mark.parametrize("gap", [0, 700])
def test_the_same_stored_key_twice_in_one_append_is_refused(store: Store, gap: int) -> None:
    store.append([draft("a", idem_key="k")])
    batch = [draft("a", idem_key="k"), *(draft(str(i)) for i in range(gap))]
    refuse(store, BadInputError, lambda: store.append([*batch, draft("a", idem_key="k")]))


def test_a_repeated_key_behind_many_stored_ones(store: Store) -> None:
    """The second of two equal new keys is looked up before the first is written."""
    store.append(draft(str(i), idem_key=f"s{i}") for i in range(400))
    batch = [draft(str(i), idem_key=f"s{i}") for i in range(400)]
    batch += [draft(f"n{i}", idem_key=f"n{i}") for i in range(1_300)]
    message = refuse(
        store, BadInputError, lambda: store.append([*batch, draft("n1", idem_key="n1")])
    )
    assert "twice in one append" in message


def test_a_key_whose_first_event_is_redacted_is_refused(store: Store) -> None:
    store.append([draft("a", idem_key="k")])
    store.redact(1, draft("gone", type="payload.redacted"))
    refuse(store, WithheldError, lambda: store.append([draft("a", idem_key="k")]))


BAD_TOKENS = ["", "ä", 'a"b', "a\\b", "a\nb", "a\x00", "\x7f", "a" * 301, "a\u2028", "trailing\n"]


@pytest.mark.parametrize(
    "field", ["type", "stream", "actor", "media", "idem_key", "causation", "correlation"]
)
def test_strings_that_fit_no_envelope_are_refused(store: Store, field: str) -> None:
    """event-log.md 2: every string MUST be 1 to 300 printable ASCII characters.

    Without `"` and backslash.
    """
    for bad in BAD_TOKENS:
        wrong = draft("x", **{field: bad})
        refuse(store, BadInputError, partial(store.append, [draft("y"), wrong]))
    widest = "".join(chr(c) for c in range(32, 127) if chr(c) not in '"\\') + "x" * 207
    assert len(widest) == 300
    store.append([draft("x", **{field: widest})])
    check_chain(dump(store))


@pytest.mark.parametrize("version", [-1, 2**53, True, 1.0, "1"])
def test_versions_that_fit_no_envelope_are_refused(store: Store, version: object) -> None:
    """event-log.md 3: numbers MUST be integers from 0 to 2^53-1."""
    refuse(store, BadInputError, lambda: store.append([draft("y"), draft("x", type_v=version)]))
    store.append([draft("x", type_v=2**53 - 1), draft("x", type_v=0)])
    check_chain(dump(store))


def test_an_envelope_over_16_kib_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """event-log.md 4: an envelope MUST NOT be longer than 16,384 bytes."""
    assert MAX_ENVELOPE_BYTES == 16_384
    # Seven tokens of 300 cannot reach it: it stands against tokens that one day are longer.
    size = len(dump(store)[0].envelope_bytes)
    monkeypatch.setattr(sequence, "MAX_ENVELOPE_BYTES", size + 80)
    wrong = draft("x", correlation="c" * 90)
    refuse(store, BadInputError, lambda: store.append([draft("y"), wrong]))


def test_a_payload_over_64_mib_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """verification.md: a payload has at most 67,108,864 bytes."""
    assert sequence.MAX_PAYLOAD_BYTES == 67_108_864
    monkeypatch.setattr(sequence, "MAX_PAYLOAD_BYTES", 100)
    store.append([draft("x" * 100)])
    refuse(store, BadInputError, lambda: store.append([draft("y"), draft("x" * 101)]))


@pytest.mark.parametrize("after", [0, 1, 999, 1_500])
def test_drafts_that_raise_half_way_leave_nothing(store: Store, after: int) -> None:
    """event-log.md 13: an append is all or nothing."""

    def drafts() -> Iterator[Draft]:
        for i in range(after):
            yield draft(str(i))
        raise KeyError("half-way")

    before = dump(store)
    with pytest.raises(KeyError):
        store.append(drafts())
    assert dump(store) == before
    store.append([draft("goes on")])
    check_chain(dump(store))


def test_read_ranges(store: Store) -> None:
    store.append(draft(str(i)) for i in range(1_100))
    everything = dump(store)
    size = len(everything)
    for start, stop in [
        (0, 0),
        (0, 1),
        (1, size),
        (249, 251),
        (250, 750),
        (size - 1, size),
        (size, size + 1),
        (size + 5, None),
        (7, 3),
        (-5, 3),
        (-5, -1),
        (0, 10**30),
        (10**30, 10**31),
        (3, None),
    ]:
        ends = range(max(start, 0), size if stop is None else min(stop, size))
        assert [r.seq for r in store.read(start, stop)] == list(ends), (start, stop)
        assert list(store.read(start, stop)) == [everything[i] for i in ends]


def test_what_is_appended_meanwhile_is_not_read(store: Store) -> None:
    store.append(draft(str(i)) for i in range(600))
    seen = []
    for record in store.read():
        seen.append(record.seq)
        if record.seq % 100 == 0:
            store.append([draft("meanwhile")])
    assert seen == list(range(601))


def test_redaction(store: Store) -> None:
    """commitments.md 4: salt and bytes are NULL, `payload.redacted` stands, the chain holds."""
    store.append([draft("keep"), draft("secret"), draft("keep too")])
    before = dump(store)
    assert store.redact(2, draft("why", type="payload.redacted"), expected_head=store.head()) == 4
    after = dump(store)
    check_chain(after)
    assert (after[2].salt, after[2].payload) == (None, None)
    assert after[2].envelope_bytes == before[2].envelope_bytes
    assert [after[i] for i in (0, 1, 3)] == [before[i] for i in (0, 1, 3)]
    assert after[4].type == "payload.redacted"


@pytest.mark.parametrize("target", [0, -1, 3, 4, 10**30])
def test_what_cannot_be_redacted(store: Store, target: int) -> None:
    """commitments.md 4: `ledger.opened` MUST NOT be redacted; nor what is gone or not there."""
    store.append([draft("a"), draft("b")])
    refuse(store, BadInputError, lambda: store.redact(target, draft("why")))


def test_a_payload_is_redacted_once(store: Store) -> None:
    store.append([draft("a")])
    store.redact(1, draft("why"))
    refuse(store, BadInputError, lambda: store.redact(1, draft("why again")))


def test_a_redaction_that_is_refused_deletes_nothing(store: Store) -> None:
    """commitments.md 4: both in the same transaction."""
    store.append([draft("a"), draft("why", idem_key="k")])
    head = store.head()
    refuse(store, BadInputError, lambda: store.redact(1, draft("why", idem_key="k")))
    refuse(store, BadInputError, lambda: store.redact(1, draft("why", stream="ä")))
    refuse(store, HeadMovedError, lambda: store.redact(1, draft("why"), expected_head=head))
    assert dump(store)[1].payload == b"a"


def test_a_closed_store_refuses_everything(store: Store) -> None:
    store.close()
    store.close()
    for action in (
        store.head,
        lambda: store.append([draft("a")]),
        lambda: store.append([]),
        lambda: list(store.read()),
        lambda: store.redact(1, draft("why")),
    ):
        with pytest.raises(LedgerFileError):
            action()


@pytest.mark.parametrize(
    "log_id", ["", "x", LOG_ID.upper(), LOG_ID.replace("-7", "-4"), LOG_ID + " "]
)
def test_a_log_id_that_is_no_uuid7_makes_no_store(log_id: str, tmp_path: Path) -> None:
    """event-log.md 1: `log` is a UUIDv7."""
    entropy = SeededEntropy("e")
    with pytest.raises(BadInputError):
        MemoryStore(log_id=log_id, clock=clock(), entropy=entropy)
    with pytest.raises(BadInputError):
        SqliteStore.create(
            tmp_path / "a.db", draft(), log_id=log_id, clock=clock(), entropy=entropy
        )
    assert list(tmp_path.iterdir()) == []


def test_both_stores_write_the_same_bytes(tmp_path: Path) -> None:
    sqlite, memory = make_sqlite(tmp_path / "a.db", seed="s"), make_memory(seed="s")
    for store in (sqlite, memory):
        store.append(draft(str(i), idem_key=f"k{i}") for i in range(3))
        store.append([draft("2", idem_key="k2"), draft("new")])
        store.redact(2, draft("why"))
    # Reopening gave the SQLite store the clock and the entropy that create had used once.
    assert dump(sqlite) == dump(memory)
    sqlite.close()
