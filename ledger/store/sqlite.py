"""The store in one SQLite file, through sqlite-utils; any SQLite browser opens it.

The append path holds an explicit BEGIN IMMEDIATE (a deferred one loses appends to "database is
locked" as soon as two processes write: half of them, measured). WAL with synchronous=FULL: a
returned append has been fsynced. UNIQUE guards make a fork impossible even for a buggy writer, and
triggers refuse UPDATE and DELETE on `events`: they stop accidents, the hash chain shows the rest.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from sqlite_utils import Database

from ledger.clock import Clock
from ledger.commitment import PAYLOAD_TAG, check_commitment
from ledger.envelope import check_log_id, leaf_of, read_envelope
from ledger.errors import (
    BadInputError,
    BugError,
    DamagedLedgerError,
    HeadMovedError,
    LedgerError,
    LedgerFileError,
)
from ledger.ids import Entropy
from ledger.store.port import EMPTY_HEAD, Draft, Head, Record
from ledger.store.sequence import (
    Placed,
    Stamp,
    check_same_body,
    check_target,
    place_drafts,
    twice_in_one_append,
)

APPLICATION_ID = 0x464C4447
"""'FLDG' in the SQLite header: `file` and the verifier know a ledger by it."""

_MOST_REMEMBERED = 10_000
BUSY_TIMEOUT_S = 60
PROJECTION_SNAPSHOTS = "projection_snapshots"
"""The table that names every projected table (ledger/projections/port.py)."""

_WRITE_CHUNK = 1_000
_READ_CHUNK = 250
_KEYS_A_QUERY = 500

SCHEMA = """
CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    envelope BLOB NOT NULL,
    leaf BLOB NOT NULL,
    prev BLOB NOT NULL UNIQUE,
    type TEXT NOT NULL,
    stream TEXT NOT NULL,
    stream_seq INTEGER NOT NULL,
    idem_key TEXT UNIQUE,
    UNIQUE (stream, stream_seq)
) STRICT;
CREATE TABLE payloads (
    seq INTEGER PRIMARY KEY,
    salt BLOB,
    bytes BLOB
) STRICT;
CREATE TRIGGER events_are_never_updated BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER events_are_never_deleted BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
"""

_LOOK = (
    "SELECT seq, leaf, (SELECT seq FROM events WHERE idem_key = ?),"
    " (SELECT MAX(stream_seq) FROM events WHERE stream = ?)"
    " FROM events ORDER BY seq DESC LIMIT 1"
)
_INSERT_EVENT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_PAYLOAD = "INSERT INTO payloads VALUES (?, ?, ?)"
_SELECT = (
    "SELECT e.seq, e.envelope, e.leaf, p.salt, p.bytes, p.seq FROM events e"
    " LEFT JOIN payloads p ON p.seq = e.seq WHERE e.seq >= ? AND e.seq < ? ORDER BY e.seq"
)


class SqliteStore:
    """A ledger file behind the store port; one connection, used by one thread."""

    def __init__(self, path: Path, *, clock: Clock, entropy: Entropy) -> None:
        """Open an existing ledger file for reading and appending.

        Raises:
            LedgerFileError: missing, not SQLite, not a ledger, or without a first event.
            DamagedLedgerError: the first event cannot be read.
        """
        if not path.is_file():
            raise LedgerFileError(
                f"there is no ledger at {path}. Create one with `ledger init`, or name another"
                " with --ledger."
            )
        self._use(_connect(path), clock=clock, entropy=entropy)
        try:
            first = next(self.read(0, 1), None)
            if first is None:
                raise LedgerFileError(f"{path} holds no events. Run `ledger verify {path}`.")
        except LedgerError:
            self.close()
            raise
        self._log = first.fields["log"]

    @classmethod
    def create(
        cls, path: Path, first: Draft, *, log_id: str, clock: Clock, entropy: Entropy
    ) -> SqliteStore:
        """Create a ledger file whose event 0 is `first`; it appears whole or not at all.

        Raises:
            LedgerFileError: something is already there, or the folder cannot be written.
            BadInputError: a log id or a first event that fits no envelope.
        """
        check_log_id(log_id)
        if path.exists():
            raise LedgerFileError(f"{path} exists already. Choose another path; none is replaced.")
        try:
            # A folder of its own: what a kill leaves behind is never taken for a later attempt's.
            with tempfile.TemporaryDirectory(
                prefix=f".{path.name}.", suffix=".new", dir=path.parent
            ) as folder:
                new = Path(folder) / path.name
                store = cls.__new__(cls)
                store._use(_make_file(new), clock=clock, entropy=entropy)  # noqa: SLF001 - ours
                store._log = log_id  # noqa: SLF001
                try:
                    store.append([first])
                finally:
                    store.close()
                # link() fails if the name was taken meanwhile; rename() would replace it.
                os.link(new, path)
            _sync_folder(path.parent)
        except FileExistsError as error:
            raise LedgerFileError(f"{path} exists already. Choose another path.") from error
        except (OSError, sqlite3.Error) as error:
            raise LedgerFileError(f"cannot create a ledger in {path.parent}: {error}.") from error
        return cls(path, clock=clock, entropy=entropy)

    def _use(self, conn: sqlite3.Connection, *, clock: Clock, entropy: Entropy) -> None:
        # Transactions are ours alone: the driver must not begin or end any.
        conn.isolation_level = None
        self._conn = conn
        self._clock = clock
        self._entropy = entropy
        self._checked: set[str] = set()

    @property
    def database(self) -> Database:
        """The same connection as a sqlite-utils database, for projections and browsing."""
        return Database(self._conn, execute_plugins=False)

    def head(self) -> Head:
        """Return the present head."""
        rows = self._query("SELECT seq, leaf FROM events ORDER BY seq DESC LIMIT 1")
        return Head(rows[0][0] + 1, rows[0][1]) if rows else EMPTY_HEAD

    def append(
        self, drafts: Iterable[Draft], *, expected_head: Head | None = None
    ) -> Sequence[int]:
        """Append all drafts or none (see Store.append)."""
        with _Immediate(self._conn):
            return self._append(drafts, expected_head)

    def _append(self, drafts: Iterable[Draft], expected_head: Head | None) -> Sequence[int]:
        source = iter(drafts)
        first = next(source, None)
        look = self._look(first, expected_head)
        head, known = look.head, dict[int, int]()
        if first is None:
            return range(head.size, head.size)
        if len(self._checked) > _MOST_REMEMBERED:
            self._checked.clear()
        placed = place_drafts(
            self._fresh(first, source, look, known),
            log=self._log,
            head=head,
            stamp=Stamp.take(self._clock, self._entropy),
            stream_size=lambda name: (
                look.stream_size if name == first.stream else self._stream_size(name)
            ),
            checked=self._checked,
        )
        size = head.size
        while chunk := list(islice(placed, _WRITE_CHUNK)):
            self._insert(chunk)
            size += len(chunk)
        if not known:
            return range(head.size, size)
        fresh = iter(range(head.size, size))
        return [
            known[i] if i in known else next(fresh) for i in range(size - head.size + len(known))
        ]

    def _look(self, first: Draft | None, expected: Head | None) -> _Look:
        """Read all that a single append needs in one statement: three would cost 5 us more."""
        key, stream = (None, None) if first is None else (first.idem_key, first.stream)
        rows = self._query(_LOOK, (key, stream))
        seq, leaf, key_seq, last = rows[0] if rows else (-1, EMPTY_HEAD.leaf, None, None)
        head = Head(seq + 1, leaf) if rows else EMPTY_HEAD
        if expected is not None and expected != head:
            raise HeadMovedError("another writer appended first. Read the log again and retry.")
        return _Look(head, key_seq, 0 if last is None else last + 1)

    def _fresh(
        self, first: Draft, rest: Iterator[Draft], look: _Look, known: dict[int, int]
    ) -> Iterator[Draft]:
        """Yield the drafts whose key is new; note the seqs of the others by their place.

        A new key that comes twice is refused by UNIQUE within a chunk, and here beyond it: keys of
        a million drafts need not be remembered.
        """
        index = 0
        reused: set[str | None] = set()
        chunk, stored = [first], {first.idem_key: look.key_seq}
        while chunk:
            for draft in chunk:
                seq = stored.get(draft.idem_key)
                if seq is None:
                    yield draft
                else:
                    if seq >= look.head.size or draft.idem_key in reused:
                        raise twice_in_one_append(draft.idem_key)
                    reused.add(draft.idem_key)
                    check_same_body(next(self.read(seq, seq + 1)), draft)
                    known[index] = seq
                index += 1
            chunk = list(islice(rest, _KEYS_A_QUERY))
            stored = self._stored_keys([d.idem_key for d in chunk if d.idem_key is not None])

    def _stored_keys(self, keys: list[str]) -> dict[str | None, int | None]:
        if not keys:
            return {}
        places = ",".join("?" * len(keys))
        sql = f"SELECT idem_key, seq FROM events WHERE idem_key IN ({places})"
        return dict(self._query(sql, keys))

    def _insert(self, placed: list[Placed]) -> None:
        try:
            self._conn.executemany(_INSERT_EVENT, [event[:8] for event in placed])
            self._conn.executemany(_INSERT_PAYLOAD, [(e[0], e[8], e[9]) for e in placed])
        except sqlite3.IntegrityError as error:
            if "events.idem_key" in str(error):
                raise twice_in_one_append(_first_repeated(placed)) from error
            raise BugError(f"the store refused its own sequence: {error}") from error

    def _stream_size(self, stream: str) -> int:
        ((last,),) = self._query("SELECT MAX(stream_seq) FROM events WHERE stream = ?", (stream,))
        return 0 if last is None else int(last) + 1

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[Record]:
        """Yield the records with start <= seq < stop (see Store.read), a chunk a query.

        No query stays open between two records: one would hold back the write-ahead log.
        """
        size = self.head().size
        last = size if stop is None else min(stop, size)
        seq, prev = max(start, 0), None
        while seq < last:
            rows = self._query(_SELECT, (seq, min(seq + _READ_CHUNK, last)))
            if not rows:
                raise _damaged(seq, "is missing")
            for row in rows:
                record = _record(seq, row)
                if prev is not None and record.fields["prev"] != prev:
                    raise _damaged(seq, "does not follow the event before it")
                yield record
                seq, prev = seq + 1, record.leaf.hex()

    def redact(self, target_seq: int, draft: Draft, *, expected_head: Head | None = None) -> int:
        """Append `draft` and delete salt and bytes of the target (see Store.redact).

        Projected tables may hold what is deleted: they are dropped with it, and the next refresh
        makes them anew. The file is then rewritten: what another program deleted from it without
        `secure_delete`, a copy of the payload perhaps, still stands in free pages. Cost: the size
        of the file.

        Raises:
            LedgerFileError: also where the redaction is written but another connection reads an
                older state, so that its bytes cannot be scrubbed yet.
        """
        with _Immediate(self._conn):
            head = self._look(draft, expected_head).head
            check_target(next(self.read(target_seq, target_seq + 1), None), target_seq)
            (seq,) = self._append([draft], head)
            if seq != head.size:
                raise BadInputError(f"the key {draft.idem_key!r} of a redaction is used already")
            self._conn.execute(
                "UPDATE payloads SET salt = NULL, bytes = NULL WHERE seq = ?", (target_seq,)
            )
            self._drop_projections()
        self._scrub(seq)
        return seq

    def _drop_projections(self) -> None:
        database = self.database
        snapshots = database.table(PROJECTION_SNAPSHOTS)
        if not snapshots.exists():
            return
        for row in list(snapshots.rows):
            database.table(str(row["projection"])).drop(ignore=True)
        snapshots.drop()

    def _scrub(self, seq: int) -> None:
        """Rewrite the file without slack, fold the write-ahead log into it and cut the log."""
        try:
            self._conn.execute("VACUUM")
            busy = self._query("PRAGMA wal_checkpoint(TRUNCATE)")[0][0]
        except sqlite3.Error as error:
            raise _unscrubbed(seq, str(error)) from error
        if busy:
            raise _unscrubbed(seq, "another process reads an older state")

    def close(self) -> None:
        """Release the file; everything is refused from here on."""
        self._conn.close()

    def _query(self, sql: str, parameters: Sequence[object] = ()) -> list[Any]:
        try:
            return self._conn.execute(sql, parameters).fetchall()
        except sqlite3.ProgrammingError as error:
            raise LedgerFileError(f"this ledger is closed ({error}) Open it again.") from error
        except sqlite3.OperationalError as error:
            raise LedgerFileError(f"the ledger cannot be read: {error}.") from error
        except sqlite3.Error as error:
            raise DamagedLedgerError(
                f"the ledger file is damaged: {error}. Run `ledger verify`."
            ) from error


@dataclass(frozen=True, slots=True)
class _Look:
    """What one statement tells before an append: head, the first draft's key and stream."""

    head: Head
    key_seq: int | None
    stream_size: int


class _Immediate:
    """BEGIN IMMEDIATE to COMMIT or ROLLBACK; a class, since a generator costs 2 us more."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn

    def __enter__(self) -> None:
        try:
            self._conn.execute("BEGIN IMMEDIATE")
        except sqlite3.ProgrammingError as error:
            raise LedgerFileError(f"this ledger is closed ({error}) Open it again.") from error
        except sqlite3.Error as error:
            raise LedgerFileError(
                f"the ledger cannot be written: {error}. Is another writer holding it?"
            ) from error

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            try:
                self._conn.execute("COMMIT")
            except sqlite3.Error as failure:
                self._undo()
                raise _undone(failure) from failure
            except BaseException:
                self._undo()
                raise
            return
        self._undo()
        if isinstance(error, sqlite3.Error):
            raise _undone(error) from error

    def _undo(self) -> None:
        if self._conn.in_transaction:
            self._conn.execute("ROLLBACK")


def _undone(error: sqlite3.Error) -> LedgerFileError:
    return LedgerFileError(f"the append failed and was undone: {error}.")


def _connect(path: Path) -> sqlite3.Connection:
    conn = None
    try:
        conn = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S)
        found = conn.execute("PRAGMA application_id").fetchone()[0]
        if found == APPLICATION_ID:
            conn.execute("PRAGMA journal_mode = WAL")
            _set_pragmas(conn)
            return conn
    except sqlite3.Error as error:
        if conn is not None:
            conn.close()
        raise LedgerFileError(
            f"{path} cannot be opened as a ledger: {error}. Run `ledger verify {path}`."
        ) from error
    conn.close()
    raise LedgerFileError(f"{path} is not a forecast-ledger file. Name another one.")


def _make_file(path: Path) -> sqlite3.Connection:
    conn = sqlite3.connect(path)
    # In the file from its first page on: two openers that switch a file to WAL lock each other out.
    conn.execute("PRAGMA journal_mode = WAL")
    _set_pragmas(conn)
    conn.executescript(
        f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 1; {SCHEMA}"
    )
    return conn


def _set_pragmas(conn: sqlite3.Connection) -> None:
    conn.execute("PRAGMA synchronous = FULL")
    conn.execute("PRAGMA secure_delete = ON")


def _sync_folder(folder: Path) -> None:
    """Make a new name durable: fsync of the file does not cover its folder's entry."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _first_repeated(placed: list[Placed]) -> str | None:
    seen: set[str] = set()
    for event in placed:
        if event.idem_key in seen:
            return event.idem_key
        if event.idem_key is not None:
            seen.add(event.idem_key)
    # The first of the two went in with an earlier chunk of this append.
    return None


def _unscrubbed(seq: int, why: str) -> LedgerFileError:
    return LedgerFileError(
        f"the redaction is written as event {seq}, but its old bytes may still stand in the file:"
        f" {why}. Close every program that has the ledger open: the last to close cuts them out."
    )


def _damaged(seq: int, what: str) -> DamagedLedgerError:
    return DamagedLedgerError(f"event {seq} {what}. Run `ledger verify`.")


def _record(
    expected_seq: int, row: tuple[int, bytes, bytes, bytes | None, bytes | None, int | None]
) -> Record:
    """Build a record, having checked its hashes: 9 us instead of 30 for the strict parser.

    Form and canonical order are the verifier's; what is read here was at least hashed as it stands.
    """
    seq, data, leaf, salt, payload, payload_seq = row
    if seq != expected_seq:
        raise _damaged(expected_seq, "is missing")
    if payload_seq is None:
        raise _damaged(seq, "has lost its payload row")
    if leaf_of(data) != leaf:
        raise _damaged(seq, "does not match its leaf hash")
    try:
        fields = read_envelope(data)
    except ValueError as error:
        raise _damaged(seq, "is no envelope") from error
    if fields["seq"] != seq:
        raise _damaged(seq, "stands in the place of another")
    if (salt is None) != (payload is None):
        raise _damaged(seq, "has lost half of its payload")
    if salt is None or payload is None:
        return Record(data, leaf, None, None, fields)
    if not check_commitment(PAYLOAD_TAG, salt, payload, fields["payload"]["commitment"]):
        raise _damaged(seq, "has a payload that does not match its commitment")
    return Record(data, leaf, salt, payload, fields)
