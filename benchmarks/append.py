"""Appending to a ledger against plain SQLite that is handed the finished rows.

Run: python -m benchmarks.append [--rounds 5] [--folder DIR]

Ours makes ids, salts, commitments, envelopes and leaves, chains them and stores them. The twin gets
exactly those rows, made beforehand, and writes them into the same two tables under the same pragmas
and guards: what it does is the least that any store can do. Both work on new files in one folder,
by turns; of each round the ratio twin/ours is taken (1 is as fast as plain SQLite), and the median
and the range of the ratios are printed. A round whose two files differ in rows stops the benchmark.

A single append costs the processor some 20 us more than the bare insert, and both wait for one
fsync: the ratio says as much about the disk as about the code, so the fsync is printed too.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any

from cli.system import system_clock, system_entropy
from ledger.store.port import Draft
from ledger.store.sqlite import SqliteStore

BULK = (50_000, 200_000)
SINGLES = 1_000
PAYLOAD_BYTES = 300
STREAMS = 144

INSERT_EVENT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
INSERT_PAYLOAD = "INSERT INTO payloads VALUES (?, ?, ?)"
LOG_ID = "019b7663-1c00-7000-8000-00000000f1a5"


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of both tables behind event 0, as they stand in a file."""

    events: list[tuple[Any, ...]]
    payloads: list[tuple[Any, ...]]


def make_drafts(count: int) -> list[Draft]:
    """Return drafts like frozen predictions: a key each, and one of 144 streams."""
    filler = "x" * PAYLOAD_BYTES
    return [
        Draft(
            type="prediction.frozen",
            type_v=1,
            stream=f"prediction/{i % STREAMS}",
            payload=f'{{"n":{i},"text":"{filler}"}}'[-PAYLOAD_BYTES:].encode(),
            actor="operator",
            idem_key=f"prediction/method/card/{i}",
        )
        for i in range(count)
    ]


def make_store(path: Path) -> SqliteStore:
    """Create a ledger of one event with the system's clock and entropy."""
    first = Draft("ledger.opened", 1, "ledger", b"{}", "operator")
    return SqliteStore.create(
        path, first, log_id=LOG_ID, clock=system_clock, entropy=system_entropy
    )


def rows_of(conn: sqlite3.Connection) -> Rows:
    """Read back all rows but those of event 0."""
    return Rows(
        conn.execute("SELECT * FROM events WHERE seq > 0 ORDER BY seq").fetchall(),
        conn.execute("SELECT * FROM payloads WHERE seq > 0 ORDER BY seq").fetchall(),
    )


def timed(work: Callable[[], object]) -> float:
    """Return the seconds of a piece of work."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def bulk_twin(conn: sqlite3.Connection, rows: Rows) -> None:
    """Insert all rows in one transaction."""
    conn.execute("BEGIN IMMEDIATE")
    conn.executemany(INSERT_EVENT, rows.events)
    conn.executemany(INSERT_PAYLOAD, rows.payloads)
    conn.execute("COMMIT")


def race_singles(folder: Path, drafts: list[Draft], rounds: int) -> list[tuple[float, float]]:
    """Return the median seconds of one durable append, ours and the twin's, round by round.

    The two take turns event by event: the time of an fsync drifts by a factor of ten while others
    use the disk, and only neighbours in time can be compared.
    """
    with tempfile.TemporaryDirectory(dir=folder) as name:
        store = make_store(Path(name) / "rows.db")
        store.append(drafts)
        made = rows_of(store.database.conn)
        store.close()
    out: list[tuple[float, float]] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory(dir=folder) as name:
            a, b = make_store(Path(name) / "a.db"), make_store(Path(name) / "b.db")
            conn = b.database.conn
            ours: list[float] = []
            twin: list[float] = []
            for draft, event, payload in zip(drafts, made.events, made.payloads, strict=True):
                start = time.perf_counter()
                a.append([draft])
                middle = time.perf_counter()
                conn.execute("BEGIN IMMEDIATE")
                conn.execute(INSERT_EVENT, event)
                conn.execute(INSERT_PAYLOAD, payload)
                conn.execute("COMMIT")
                twin.append(time.perf_counter() - middle)
                ours.append(middle - start)
            out.append((statistics.median(ours), statistics.median(twin)))
            a.close()
            b.close()
    return out


def race_bulk(folder: Path, drafts: list[Draft], rounds: int) -> list[tuple[float, float]]:
    """Return the seconds an event, ours and the twin's, round by round; who begins alternates."""
    out: list[tuple[float, float]] = []
    made: Rows | None = None
    for turn in range(rounds + 1):
        with tempfile.TemporaryDirectory(dir=folder) as name:
            a, b = make_store(Path(name) / "a.db"), make_store(Path(name) / "b.db")
            conn = b.database.conn
            seconds = {"ours": 0.0, "twin": 0.0}
            # The first turn has no rows for the twin: it warms up and makes them.
            for who in ("twin", "ours") if turn % 2 else ("ours", "twin"):
                if who == "ours":
                    seconds[who] = timed(lambda store=a: store.append(drafts))  # type: ignore[misc]
                elif made is not None:
                    seconds[who] = timed(lambda c=conn, rows=made: bulk_twin(c, rows))  # type: ignore[misc]
            rows = rows_of(a.database.conn)
            if made is not None:
                if len(rows_of(conn).events) != len(rows.events):
                    raise SystemExit("the two files differ")
                out.append((seconds["ours"] / len(drafts), seconds["twin"] / len(drafts)))
            made = rows
            a.close()
            b.close()
    return out


def report(what: str, count: int, measured: list[tuple[float, float]], aim: float) -> bool:
    """Print one line; return whether the median ratio reaches the aim."""
    ratios = [twin / ours for ours, twin in measured]
    ours, twin = (statistics.median(column) for column in zip(*measured, strict=True))
    median = statistics.median(ratios)
    print(
        f"{what:<22}{count:>8} events  ours {ours * 1e6:7.1f} us"
        f"  twin {twin * 1e6:7.1f} us"
        f"  ratio {median:.2f} ({min(ratios):.2f} to {max(ratios):.2f}), aim {aim}"
    )
    return median >= aim


def fsync_us(folder: Path) -> float:
    """Return the median microseconds of an fsynced write of 4 KiB in the folder."""
    with tempfile.NamedTemporaryFile(dir=folder, buffering=0) as file:

        def write() -> None:
            file.write(bytes(4096))
            os.fsync(file.fileno())

        return statistics.median(timed(write) for _ in repeat(None, 200)) * 1e6


def main() -> int:
    """Race bulk and single appends; exit 1 where a median misses its aim."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    given = parser.parse_args()
    print(f"python {sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}")
    print(f"fsync of 4 KiB in {given.folder}: {fsync_us(given.folder):.0f} us")
    reached = []
    for count in BULK:
        measured = race_bulk(given.folder, make_drafts(count), given.rounds)
        reached.append(report("bulk, one transaction", count, measured, aim=0.5))
    measured = race_singles(given.folder, make_drafts(SINGLES), given.rounds)
    reached.append(report("single, durable", SINGLES, measured, aim=0.8))
    return 0 if all(reached) else 1


if __name__ == "__main__":
    raise SystemExit(main())
