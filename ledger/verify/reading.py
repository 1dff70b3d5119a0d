"""Reading a ledger file without leaving a trace on it (docs/spec/verification.md, pass 1).

SQLite's `mode=ro` is not enough: on a file in WAL mode it creates `-wal` and `-shm` beside it and
leaves them there. So a file with nothing beside it is opened as immutable, its state compared
afterwards (`file_state`). Where a living writer holds a write-ahead log with content (there is a
`-shm`), `mode=ro` joins in. Where content was left by a dead one, file and log are copied away
first, because recovery writes.
"""

from __future__ import annotations

import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from ledger.verify.text import show

APPLICATION_ID = 0x464C4447
MAX_READ_BYTES = 64 << 20
"""Longest value that is read at all (docs/spec/verification.md, `payload.size`)."""

MAX_SEQ = 2**63 - 1
"""Largest number of a row."""

_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What the driver raises: a message of SQLite's own may quote bytes that are no UTF-8."""

_APPLICATION = APPLICATION_ID.to_bytes(4, "big")
_MAGIC = b"SQLite format 3\x00"
_BUSY_TIMEOUT_S = 10

Value: TypeAlias = bytes | int | float | None
"""A stored value; TEXT comes as its bytes, for a ledger may hold text that is no UTF-8."""

_ENVELOPE = (
    f"CASE WHEN length(e.envelope) > {MAX_READ_BYTES} THEN length(e.envelope) ELSE e.envelope END"
)
_BYTES = f"CASE WHEN length(p.bytes) > {MAX_READ_BYTES} THEN length(p.bytes) ELSE p.bytes END"
_JOIN = "FROM events e NOT INDEXED LEFT JOIN payloads p ON p.seq = e.seq"
_RANGE = "WHERE e.seq BETWEEN ? AND ? ORDER BY e.seq"
_HASHED = f"SELECT e.seq, e.envelope, e.leaf, p.salt, p.bytes {_JOIN} {_RANGE}"
_HASHED_GUARDED = f"SELECT e.seq, {_ENVELOPE}, e.leaf, p.salt, {_BYTES} {_JOIN} {_RANGE}"
_ROWS = (
    f"SELECT e.seq, {_ENVELOPE}, e.prev, e.type, e.stream, e.stream_seq, e.idem_key,"
    f" p.salt, {_BYTES}, p.seq {_JOIN} ORDER BY e.seq"
)


class UnreadableError(Exception):
    """There is no ledger that could be judged: the file is missing, foreign or not to be read."""


class DamagedError(Exception):
    """The file is a ledger, and SQLite cannot read some of its pages."""


class TooLongError(Exception):
    """A value is longer than 64 MiB; read the range again, where it will come as an int."""


class HashRow(NamedTuple):
    """What the integrity pass reads of an event. An int stands for a value that is too long."""

    seq: int
    envelope: Value
    leaf: Value
    salt: Value
    data: Value


RawHashRow: TypeAlias = tuple[int, Value, Value, Value, Value]
"""A HashRow as SQLite gives it: naming the fields of a million rows would cost a third more."""


class Row(NamedTuple):
    """What the structure pass reads of an event: envelope, index columns, payload row."""

    seq: int
    envelope: Value
    prev: Value
    type: Value
    stream: Value
    stream_seq: Value
    idem_key: Value
    salt: Value
    data: Value
    payload_seq: Value


class Place(NamedTuple):
    """How to open the same bytes once more, in another process."""

    path: Path
    immutable: bool


class LedgerFile:
    """One read-only connection to one ledger file, in one snapshot.

    Raises:
        UnreadableError: no ledger, or held by a writer.
        DamagedError: its header is a ledger's, and SQLite cannot read on.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self._is_guarded = False
        uri = f"{place.path.absolute().as_uri()}?mode=ro" + "&immutable=1" * place.immutable
        with _as_unreadable():
            self._conn = sqlite3.connect(uri, uri=True, timeout=_BUSY_TIMEOUT_S)
        try:
            self._begin(is_ledger=_read_head(place.path)[68:72] == _APPLICATION)
        except (UnreadableError, DamagedError, OSError):
            self.close()
            raise

    def _begin(self, *, is_ledger: bool) -> None:
        with _as_unreadable(is_ledger=is_ledger):
            self._conn.isolation_level = None
            self._conn.text_factory = bytes
            self._conn.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_READ_BYTES + 4096)
            self._conn.execute("PRAGMA trusted_schema = OFF")
            self._conn.execute("BEGIN")
            found = self._conn.execute("PRAGMA application_id").fetchone()[0]
        if found != APPLICATION_ID:
            raise UnreadableError(f"{show(str(self.place.path), 200)} is a database, but no ledger")

    def close(self) -> None:
        """Release the file."""
        self._conn.close()

    def hashed(self, start: int, stop: int) -> Iterator[RawHashRow]:
        """Yield rows with start <= seq < stop, in order of seq.

        Raises:
            TooLongError: a value cannot be read; from now on such values come as an int.
        """
        sql = _HASHED_GUARDED if self._is_guarded else _HASHED
        with _as_damaged():
            try:
                yield from self._conn.execute(sql, (start, stop - 1))
            except sqlite3.DataError as error:
                # Asking for each length beforehand would cost a twentieth of the whole pass.
                self._is_guarded = True
                raise TooLongError from error

    def rows(self) -> Iterator[Row]:
        """Yield all rows in order of seq."""
        with _as_damaged():
            for row in self._conn.execute(_ROWS):
                yield Row._make(row)

    def envelope(self, seq: int) -> Value:
        """Return one envelope of at most 64 MiB, None where there is none."""
        return self._one("SELECT envelope FROM events WHERE seq = ?", seq)

    def bounds(self) -> tuple[int, int] | None:
        """Return the first and the last seq, None for a file without events."""
        ends = [
            self._query(f"SELECT seq FROM events NOT INDEXED ORDER BY seq {way} LIMIT 1")
            for way in ("ASC", "DESC")
        ]
        if not all(ends):
            return None
        return ends[0][0][0], ends[1][0][0]

    def orphans(self, limit: int) -> list[int]:
        """Return the seqs of payload rows without an event."""
        rows = self._query(
            "SELECT p.seq FROM payloads p LEFT JOIN events e NOT INDEXED ON e.seq = p.seq"
            f" WHERE e.seq IS NULL ORDER BY p.seq LIMIT {int(limit)}"
        )
        return [row[0] for row in rows]

    def mistyped(self, limit: int) -> list[tuple[int, str]]:
        """Return seq and table of rows that hold a value of the wrong type."""
        events = (
            "typeof(envelope) <> 'blob' OR typeof(leaf) <> 'blob' OR typeof(prev) <> 'blob'"
            " OR typeof(type) <> 'text' OR typeof(stream) <> 'text'"
            " OR typeof(stream_seq) <> 'integer' OR typeof(idem_key) NOT IN ('text', 'null')"
        )
        payloads = "typeof(salt) NOT IN ('blob', 'null') OR typeof(bytes) NOT IN ('blob', 'null')"
        found = []
        for table, wrong in (("events", events), ("payloads", payloads)):
            rows = self._query(
                f"SELECT seq FROM {table} NOT INDEXED WHERE {wrong} LIMIT {int(limit)}"
            )
            found += [(row[0], table) for row in rows]
        return found

    def schema(self) -> list[tuple[str, str, str, int, str]]:
        """Return type, name, table, root page and SQL of all that the schema holds."""
        rows = self._query("SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master")
        return [
            (_text(kind), _text(name), _text(table), page or 0, _text(sql))
            for kind, name, table, page, sql in rows
        ]

    def columns(self, table: str) -> list[tuple[str, str, bool, bool]]:
        """Return name, declared type, whether part of the key and whether computed."""
        rows = self._query(f"PRAGMA table_xinfo({table})")
        return [(_text(row[1]), _text(row[2]).upper(), row[5] > 0, row[6] != 0) for row in rows]

    def is_numbered(self, table: str) -> bool:
        """Say whether `seq` is the number by which SQLite itself orders the rows."""
        try:
            odd = f"SELECT 1 FROM {table} NOT INDEXED WHERE seq IS NOT rowid LIMIT 1"
            return self._conn.execute(odd).fetchone() is None
        except sqlite3.OperationalError:
            return False  # A table WITHOUT ROWID.
        except _ERRORS as error:
            raise DamagedError(_say(error)) from error

    def unique_indexes(self, table: str) -> list[tuple[str, ...]]:
        """Return the columns of each whole unique index of a table, in order."""
        found = []
        for row in self._query(f"PRAGMA index_list({table})"):
            if row[2] and not row[4]:
                name = _text(row[1]).replace('"', '""')
                columns = self._query(f'PRAGMA index_info("{name}")')
                found.append(tuple(_text(column[2]) for column in columns))
        return found

    def _query(self, sql: str) -> list[tuple[Any, ...]]:
        with _as_damaged():
            return self._conn.execute(sql).fetchall()

    def _one(self, sql: str, seq: int) -> Value:
        if seq > MAX_SEQ:
            return None
        try:
            row: tuple[Value] | None = self._conn.execute(sql, (seq,)).fetchone()
        except sqlite3.DataError:
            return None  # Longer than the limit that was set on the connection.
        except _ERRORS as error:
            raise DamagedError(_say(error)) from error
        return None if row is None else row[0]


@contextmanager
def open_ledger(path: Path) -> Iterator[LedgerFile]:
    """Open a ledger file for reading and release it, leaving nothing behind.

    Raises:
        UnreadableError: missing, no file, no SQLite database, no ledger, or held by a writer.
        DamagedError: its header is a ledger's, and SQLite cannot read on.
    """
    _require_database(path)
    with tempfile.TemporaryDirectory(prefix="ledger-verify-") as folder:
        file = _open_beside(path, Path(folder))
        try:
            yield file
        finally:
            file.close()


def file_state(path: Path) -> tuple[object, ...]:
    """Return what changes when somebody writes to the ledger: inode, size and time of its files."""
    found: list[object] = []
    for each in (path, _beside(path, "-wal"), _beside(path, "-journal")):
        try:
            status = each.stat()
        except OSError:
            found.append(None)
        else:
            found.append((status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(found)


def _open_beside(path: Path, folder: Path) -> LedgerFile:
    has_log, has_journal = (_has_content(_beside(path, end)) for end in ("-wal", "-journal"))
    if not has_log and not has_journal:
        return LedgerFile(Place(path, immutable=True))
    if not has_journal and _beside(path, "-shm").exists():
        with suppress(UnreadableError):
            return LedgerFile(Place(path, immutable=False))
    return LedgerFile(Place(_recover_copy(path, folder), immutable=True))


def _recover_copy(path: Path, folder: Path) -> Path:
    """Copy the file with what stands beside it, and let SQLite recover the copy."""
    copy = folder / "copy.db"
    try:
        shutil.copyfile(path, copy)
        for end in ("-wal", "-journal"):
            if _has_content(_beside(path, end)):
                shutil.copyfile(_beside(path, end), _beside(copy, end))
    except OSError as error:
        raise UnreadableError(f"{show(str(path), 200)} cannot be copied: {error}") from error
    with _as_unreadable():
        conn = sqlite3.connect(copy)
        try:
            conn.execute("SELECT count(*) FROM sqlite_master").fetchone()
        finally:
            conn.close()
    return copy


def _require_database(path: Path) -> None:
    shown = show(str(path), 200)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise UnreadableError(f"{shown} is not a file")
        head = _read_head(path)
    except (OSError, ValueError) as error:
        raise UnreadableError(f"{shown} cannot be read: {error}") from error
    if head[: len(_MAGIC)] != _MAGIC:
        what = "is empty" if not head else "is not an SQLite database"
        raise UnreadableError(f"{shown} {what}, so no ledger")


def _read_head(path: Path) -> bytes:
    """Return the database header (https://www.sqlite.org/fileformat.html section 1.3)."""
    with path.open("rb") as stream:
        return stream.read(100)


def _beside(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def _has_content(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _say(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "its schema holds text that is no UTF-8"
    return show(str(error), 200)


def _text(value: bytes | str | None) -> str:
    # The schema comes through the same text_factory as the rows.
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value or ""


@contextmanager
def _as_unreadable(*, is_ledger: bool = False) -> Iterator[None]:
    try:
        yield
    except _ERRORS as error:
        if is_ledger and not isinstance(error, sqlite3.OperationalError):
            raise DamagedError(_say(error)) from error
        raise UnreadableError(f"the file cannot be opened as a database: {_say(error)}") from error


@contextmanager
def _as_damaged() -> Iterator[None]:
    try:
        yield
    except _ERRORS as error:
        raise DamagedError(_say(error)) from error
