"""Projections: tables that anyone may browse and nobody needs.

A projection turns events into rows of one table. The table together with the head it was folded to
is its snapshot: a refresh goes on from there, and starts anew where the version changed, the log is
not the one it was folded from, or a payload was redacted since: what is withheld may stand in no
table. Dropped and refreshed, a table comes back byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby

from sqlite_utils import Database

from ledger.events.codec import Event, read_event
from ledger.store.port import Head, Record, Store
from ledger.store.sqlite import PROJECTION_SNAPSHOTS

Row = dict[str, str | int | None]

_BATCH = 1_000
_REDACTED = "payload.redacted"


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """One table: its name, version, columns with their types, primary key, and the pure row rule.

    `rows` gives the rows to insert for one event, or the columns to change of a row with the same
    key; `handles` the wire names it looks at (empty: all of them).
    """

    table: str
    version: int
    columns: dict[str, type]
    key: str | tuple[str, ...]
    handles: frozenset[str]
    rows: Callable[[Event, Record], Iterable[Row]]


def refresh_tables(database: Database, store: Store, projections: Sequence[Projection]) -> int:
    """Bring every table up to the present head; return how many events were read.

    Tables and snapshots change together in one transaction. It begins IMMEDIATE: one that reads
    first is refused as soon as another process appends before it writes.

    Raises:
        DamagedLedgerError: the log cannot be read.
    """
    with _immediate(database):
        _ensure_snapshots(database)
        head = store.head()
        sizes = [_folded_size(database, store, p) for p in projections]
        start = min(sizes, default=head.size)
        if not _fold(database, store, dict(zip(projections, sizes, strict=True)), head):
            start = 0
            _fold(database, store, dict.fromkeys(projections, 0), head)
        for projection in projections:
            _write_snapshot(database, projection, head)
    return head.size - start


def _fold(database: Database, store: Store, sizes: dict[Projection, int], head: Head) -> bool:
    """Fold what each table lacks; False where a redaction makes a folded table out of date."""
    for projection, size in sizes.items():
        if size == 0:
            database.table(projection.table).drop(ignore=True)
            database.table(projection.table).create(projection.columns, pk=projection.key)
    for batch in _batches(store.read(min(sizes.values(), default=head.size), head.size)):
        if any(sizes.values()) and any(record.type == _REDACTED for record, _ in batch):
            return False
        for projection, size in sizes.items():
            _write_rows(database, projection, [pair for pair in batch if pair[0].seq >= size])
    return True


def drop_tables(database: Database, projections: Sequence[Projection]) -> None:
    """Drop every projected table and its snapshot; the events are untouched."""
    with _immediate(database):
        for projection in projections:
            database.table(projection.table).drop(ignore=True)
        database.table(PROJECTION_SNAPSHOTS).drop(ignore=True)


@contextmanager
def _immediate(database: Database) -> Iterator[None]:
    database.conn.execute("BEGIN IMMEDIATE")
    try:
        yield
        database.conn.execute("COMMIT")
    except BaseException:
        if database.conn.in_transaction:
            database.conn.execute("ROLLBACK")
        raise


def _ensure_snapshots(database: Database) -> None:
    database.table(PROJECTION_SNAPSHOTS).create(
        {"projection": str, "version": int, "size": int, "leaf": bytes},
        pk="projection",
        if_not_exists=True,
    )


def _folded_size(database: Database, store: Store, projection: Projection) -> int:
    """Return the size of this log that a table was folded to; 0 where it must be made anew."""
    snapshots = database.table(PROJECTION_SNAPSHOTS)
    stored = list(snapshots.rows_where("projection = ?", [projection.table]))
    if not stored or not database.table(projection.table).exists():
        return 0
    size = int(stored[0]["size"])
    last = next(iter(store.read(size - 1, size)), None)
    is_same = last is not None and last.leaf == stored[0]["leaf"]
    return size if is_same and stored[0]["version"] == projection.version else 0


def _write_rows(
    database: Database, projection: Projection, batch: list[tuple[Record, Event]]
) -> None:
    rows = (
        row
        for record, event in batch
        if not projection.handles or event.type in projection.handles
        for row in projection.rows(event, record)
    )
    # Rows with other columns are other statements: a column that a row lacks keeps its value.
    for columns, group in groupby(rows, key=tuple):
        database.conn.executemany(_upsert(projection, columns), group)


def _upsert(projection: Projection, columns: tuple[str, ...]) -> str:
    key = (projection.key,) if isinstance(projection.key, str) else projection.key
    changes = ", ".join(f"{name} = excluded.{name}" for name in columns if name not in key)
    return (
        f"INSERT INTO {projection.table} ({', '.join(columns)})"
        f" VALUES ({', '.join(f':{name}' for name in columns)})"
        f" ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changes}"
    )


def _write_snapshot(database: Database, projection: Projection, head: Head) -> None:
    row = {
        "projection": projection.table,
        "version": projection.version,
        "size": head.size,
        "leaf": head.leaf,
    }
    database.table(PROJECTION_SNAPSHOTS).upsert(row, pk="projection")


def _batches(records: Iterator[Record]) -> Iterator[list[tuple[Record, Event]]]:
    batch: list[tuple[Record, Event]] = []
    for record in records:
        batch.append((record, read_event(record)))
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
