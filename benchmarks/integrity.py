"""Integrity pass against a bare twin, side by side in one run.

The twin reads the same rows (`envelope, leaf, salt, bytes`, joined by seq) and takes two SHA-256 of
each; it checks nothing. The integrity pass also compares leaves, links and commitments and computes
the Merkle root. Prints the ratio of their rates, for one process and for two.

    python benchmarks/integrity.py [EVENTS]
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from time import perf_counter

from ledger.canonical import canonicalize_exact
from ledger.clock import SteppingClock
from ledger.ids import SeededEntropy, format_uuid7
from ledger.store.port import Draft
from ledger.store.sqlite import SqliteStore
from ledger.verify.check import verify_file
from ledger.verify.reading import open_ledger
from ledger.verify.workers import check_whole

ROUNDS = 7
"""The best round counts, as in timeit: what else the machine does only ever slows a round."""

TAG = b"forecast-ledger/payload/v1\x00"


def main() -> None:
    """Build a ledger, measure, print."""
    events = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    with tempfile.TemporaryDirectory() as folder:
        path = build(Path(folder) / "ledger.db", events)
        size_mb = path.stat().st_size / 1e6
        print(f"{events:,} events, {size_mb:.0f} MB, best of {ROUNDS} rounds")
        runs: dict[str, Callable[[], int]] = {
            "bare twin": lambda: twin(path),
            "integrity, 1 process": lambda: integrity(path, 1),
            "integrity, 2 processes": lambda: integrity(path, 2),
        }
        times: dict[str, list[float]] = {name: [] for name in runs}
        # Turn by turn, so that a busy moment of the machine hits all alike.
        for _ in range(ROUNDS):
            for name, run in runs.items():
                start = perf_counter()
                assert run() == events
                times[name].append(perf_counter() - start)
        base = min(times["bare twin"])
        for name, seconds in times.items():
            rate = events / min(seconds)
            print(f"{name:24} {rate:12,.0f} events/s   {base / min(seconds):5.2f} x twin")
        start = perf_counter()
        assert verify_file(path).size == events
        seconds_all = perf_counter() - start
        print(f"{'all passes':24} {events / seconds_all:12,.0f} events/s   {seconds_all:5.1f} s")


def build(path: Path, events: int) -> Path:
    """Write a ledger of predictions of 600 bytes each."""
    store = SqliteStore.create(
        path,
        draft("ledger.opened", "log", 0),
        log_id=format_uuid7(1_770_000_000_000, b"\x01" * 10),
        clock=SteppingClock(datetime(2026, 2, 1, tzinfo=UTC)),
        entropy=SeededEntropy("benchmark"),
    )
    store.append(predictions(events - 1))
    store.close()
    return path


def predictions(count: int) -> Iterator[Draft]:
    """Drafts of a hundred streams."""
    for index in range(count):
        yield draft("prediction.frozen", f"cell/{index % 100}", index)


def draft(kind: str, stream: str, index: int) -> Draft:
    """An event with a payload of a prediction's size."""
    payload = {
        "method": "method",
        "card_id": f"card-{index}",
        "draw": 1,
        "p_raw": "0.5",
        "p_yes": "0.5",
        "note": "x" * 500,
    }
    return Draft(kind, 1, stream, canonicalize_exact(payload), "benchmark")


def twin(path: Path) -> int:
    """Read the rows and hash them, nothing else."""
    conn = sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)
    rows = conn.execute(
        "SELECT e.envelope, e.leaf, p.salt, p.bytes FROM events e"
        " JOIN payloads p ON p.seq = e.seq ORDER BY e.seq"
    )
    count = 0
    for envelope, _, salt, data in rows:
        sha256(b"\x00" + envelope).digest()
        sha256(TAG + salt + data).digest()
        count += 1
    conn.close()
    return count


def integrity(path: Path, workers: int) -> int:
    """Run the integrity pass."""
    with open_ledger(path) as file:
        first, last = file.bounds() or (0, -1)
        result = check_whole(file, first, last, workers)
    assert not result.breaches
    return result.count


if __name__ == "__main__":
    main()
