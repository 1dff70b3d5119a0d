"""Projections: tables that anyone may browse and nobody needs.

A projection turns events into rows of one table. The table together with the head it was folded to
is its snapshot: a refresh goes on from there, and starts anew where the version changed or the log
is not the one it was folded from. Dropped and refreshed, a table comes back byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from sqlite_utils import Database

from ledger.events.codec import Event, read_event
from ledger.store.port import Record, Store

Row = dict[str, str | int | None]

SNAPSHOTS = "projection_snapshots"
_BATCH = 1_000


@dataclass(frozen=True, slots=True)
class Projection:
    """One table: its name, version, columns with their types, primary key, and the pure row rule.

    `rows` gives the rows to insert or replace for one event; `handles` the wire names it looks at
    (empty: all of them).
    """

    table: str
    version: int
    columns: dict[str, type]
    key: str | tuple[str, ...]
    handles: frozenset[str]
    rows: Callable[[Event, Record], Iterable[Row]]


def refresh_tables(database: Database, store: Store, projections: Sequence[Projection]) -> int:
    """Bring every table up to the present head; return how many events were read.

    Tables and snapshots change together in one transaction.
    """
    head = store.head()
    with database.atomic():
        _ensure_snapshots(database)
        start = min((_resume_at(database, store, p) for p in projections), default=head.size)
        for batch in _batches(store.read(start, head.size)):
            for projection in projections:
                _write_rows(database, projection, batch)
        for projection in projections:
            database.table(SNAPSHOTS).upsert(
                {
                    "projection": projection.table,
                    "version": projection.version,
                    "size": head.size,
                    "leaf": head.leaf,
                },
                pk="projection",
            )
    return head.size - start


def drop_tables(database: Database, projections: Sequence[Projection]) -> None:
    """Drop every projected table and its snapshot; the events are untouched."""
    with database.atomic():
        for projection in projections:
            database.table(projection.table).drop(ignore=True)
        database.table(SNAPSHOTS).drop(ignore=True)


def _ensure_snapshots(database: Database) -> None:
    database.table(SNAPSHOTS).create(
        {"projection": str, "version": int, "size": int, "leaf": bytes},
        pk="projection",
        if_not_exists=True,
    )


def _resume_at(database: Database, store: Store, projection: Projection) -> int:
    """Return the size a table was folded to, or make it anew and return 0."""
    stored = list(database.table(SNAPSHOTS).rows_where("projection = ?", [projection.table]))
    table = database.table(projection.table)
    if stored and table.exists() and stored[0]["version"] == projection.version:
        size = int(stored[0]["size"])
        last = list(store.read(size - 1, size)) if size else []
        if size == 0 or (last and last[0].leaf == stored[0]["leaf"]):
            return size
    table.drop(ignore=True)
    table.create(projection.columns, pk=projection.key)
    return 0


def _write_rows(
    database: Database, projection: Projection, batch: list[tuple[Record, Event]]
) -> None:
    rows = [
        row
        for record, event in batch
        if not projection.handles or event.type in projection.handles
        for row in projection.rows(event, record)
    ]
    if rows:
        database.table(projection.table).upsert_all(rows, pk=projection.key)


def _batches(records: Iterator[Record]) -> Iterator[list[tuple[Record, Event]]]:
    batch: list[tuple[Record, Event]] = []
    for record in records:
        batch.append((record, read_event(record)))
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
