"""A writer is killed at any instant; the log is a prefix of what was intended.

A child is forked, writes, and dies by SIGKILL: at random instants for appends (the seed is printed
where it fails), and at every single line of the store for creation and redaction.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from child_process import in_child
from store_examples import FIRST, clock, draft, dump, make_sqlite, open_sqlite

import ledger.store.sqlite
from ledger.commitment import PAYLOAD_TAG, check_commitment
from ledger.envelope import leaf_of, parse_envelope
from ledger.ids import SeededEntropy
from ledger.store.port import Draft, Head, Record
from ledger.store.sqlite import SqliteStore

LEDGERS = 4
KILLS_EACH = 50
LONGEST_LIFE_MS = 40
SECRET = "SECRET-" + "octets-of-a-payload-" * 40


def batch(seed: str, number: int) -> list[Draft]:
    """Return the intended batch: 1 to 50 events that say where they belong."""
    size = SeededEntropy(f"{seed}/{number}")(1)[0] % 50 + 1
    where = [{"batch": number, "index": i, "of": size} for i in range(size)]
    return [draft(json.dumps(w), idem_key=f"{number}.{i}") for i, w in enumerate(where)]


def append_until_killed(path: Path, seed: str, number: int, acknowledge: int) -> None:
    """Append one batch after the other; say each time that it is durable."""
    store = open_sqlite(path, seed=f"{seed}/{number}")
    for n in count(number):
        store.append(batch(seed, n))
        os.write(acknowledge, n.to_bytes(4, "big"))


def check_new(records: list[Record], head: Head, seed: str, number: int) -> int:
    """Check that records are whole batches from `number` on; return the next batch's number."""
    prev, left = head.leaf.hex(), list(records)
    for record in records:
        fields = parse_envelope(record.envelope_bytes)
        assert leaf_of(record.envelope_bytes) == record.leaf
        assert fields["prev"] == prev
        prev = record.leaf.hex()
        assert record.salt is not None
        assert record.payload is not None
        commitment = fields["payload"]["commitment"]
        assert check_commitment(PAYLOAD_TAG, record.salt, record.payload, commitment)
    while left:
        intended = [d.payload for d in batch(seed, number)]
        assert [r.payload for r in left[: len(intended)]] == intended
        del left[: len(intended)]
        number += 1
    return number


def kill_once(path: Path, seed: str, number: int, wait_ms: float) -> int:
    """Let a child append and kill it; return the last batch that it said was durable."""
    reading, writing = os.pipe()
    pid = in_child(lambda: append_until_killed(path, seed, number, writing))
    os.close(writing)
    time.sleep(wait_ms / 1000)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), "the child died by itself"
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    return int.from_bytes(said[-4:], "big") if said else number - 1


@pytest.mark.parametrize("ledger", range(LEDGERS))
def test_killed_at_random_instants(ledger: int, tmp_path: Path) -> None:
    """event-log.md 13: after a kill the log MUST be a prefix of what was intended."""
    seed = f"crash {ledger}"
    path = tmp_path / "a.db"
    made = make_sqlite(path)
    head, number = made.head(), 1
    made.close()
    dice = SeededEntropy(seed)
    for kill in range(KILLS_EACH):
        wait_ms = int.from_bytes(dice(2), "big") / 65_536 * LONGEST_LIFE_MS
        print(
            f"ledger {ledger}, kill {kill}, seed {seed!r}, batch {number}, after {wait_ms:.2f} ms"
        )
        durable = kill_once(path, seed, number, wait_ms)
        store = open_sqlite(path)
        number = check_new(list(store.read(head.size)), head, seed, number)
        assert number > durable, "an append that had returned is lost"
        head = store.head()
        store.close()
    store = open_sqlite(path)
    records = dump(store)
    assert check_new(records[1:], Head(1, records[0].leaf), seed, 1) == number
    # How much gets done in a life depends on the machine; that something does keeps this a test.
    assert number > 1, "the children got nothing done"
    store.close()


def dying_at_line(number: int, work: Callable[[], object]) -> Callable[[], None]:
    """Return work that kills its own process before the given line of the store's code."""
    left = number

    def trace(frame: FrameType, event: str, _arg: Any) -> Any:
        nonlocal left
        if frame.f_code.co_filename != ledger.store.sqlite.__file__:
            return None
        if event == "line":
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    def run() -> None:
        sys.settrace(trace)
        work()
        sys.settrace(None)

    return run


def survives(number: int, work: Callable[[], object]) -> bool:
    """Run work in a child that dies before a line; say whether it came to its end before."""
    _, status = os.waitpid(in_child(dying_at_line(number, work)), 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the child died by itself"
    return not os.WIFSIGNALED(status)


def create(path: Path) -> None:
    make_sqlite(path).close()


def test_killed_at_every_line_of_create(tmp_path: Path) -> None:
    """event-log.md 13: nothing half-made stands at the path, and the next attempt succeeds."""
    path, seen = tmp_path / "a.db", {True: 0, False: 0}
    for line in count(1):
        if survives(line, lambda: create(path)):
            break
        seen[path.exists()] += 1
        if not path.exists():
            create(path)
        store = open_sqlite(path)
        assert [record.type for record in dump(store)] == [FIRST.type]
        store.append([draft("goes on")])
        store.close()
        path.unlink()
    assert seen[True] > 10
    assert seen[False] > 40


def redact(path: Path) -> None:
    store = SqliteStore(path, clock=clock(), entropy=SeededEntropy("redact"))
    store.redact(3, draft("why", type="payload.redacted"))
    store.close()


def test_killed_at_every_line_of_redact(tmp_path: Path) -> None:
    """commitments.md 4: salt and bytes go in the same transaction in which the event comes."""
    whole = tmp_path / "whole.db"
    made = make_sqlite(whole)
    made.append(draft(SECRET if i == 3 else f"text {i}") for i in range(1, 30))
    before = dump(made)
    made.close()
    seen = {True: 0, False: 0}
    for line in count(1):
        path = tmp_path / f"{line}.db"
        shutil.copyfile(whole, path)
        if survives(line, lambda path=path: redact(path)):  # type: ignore[misc]
            break
        store = open_sqlite(path)
        after = dump(store)
        store.close()
        is_redacted = len(after) > len(before)
        seen[is_redacted] += 1
        if is_redacted:
            assert after[30].type == "payload.redacted"
            assert (after[3].salt, after[3].payload) == (None, None)
            assert b"octets-of-a-payload" not in path.read_bytes()
        else:
            assert after == before
        assert [p.name for p in tmp_path.glob(f"{line}.db-*")] == []
    assert seen[True] > 3
    assert seen[False] > 40
