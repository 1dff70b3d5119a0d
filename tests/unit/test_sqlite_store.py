"""What only a file can do: be somebody else's, be damaged, and keep bytes that were deleted."""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from event_examples import CARD, DOSSIER, OPENED, SEALED, STORY, changed, plain
from store_examples import FIRST, LOG_ID, clock, draft, dump, make_sqlite, open_sqlite

from ledger.errors import BadInputError, BugError, DamagedLedgerError, LedgerError, LedgerFileError
from ledger.events.codec import draft_event
from ledger.ids import SeededEntropy
from ledger.projections.port import refresh_tables
from ledger.projections.registry import PROJECTIONS
from ledger.session import Session
from ledger.store.port import Draft, Head
from ledger.store.sqlite import APPLICATION_ID, SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger of 601 events."""
    made = make_sqlite(tmp_path / "a.db")
    made.append(draft(f"text {i}", stream=f"s{i % 2}") for i in range(600))
    made.close()
    return tmp_path / "a.db"


def pragma(path: Path, name: str) -> object:
    conn = sqlite3.connect(path)
    try:
        return conn.execute(f"PRAGMA {name}").fetchone()[0]
    finally:
        conn.close()


def test_the_file_is_what_the_page_says(path: Path) -> None:
    """event-log.md 10: a SQLite database with application_id 0x464C4447 and the tables."""
    assert pragma(path, "application_id") == APPLICATION_ID == 0x464C4447
    assert pragma(path, "journal_mode") == "wal"
    page = Path(__file__).parents[2] / "docs" / "spec" / "event-log.md"
    listed = page.read_text(encoding="utf-8").split("```sql")[1].split("```")[0]
    conn = sqlite3.connect(":memory:")
    for declaration in re.split(r"\n(?=\s*payloads)", listed):
        conn.execute(f"CREATE TABLE {declaration}")
    file = sqlite3.connect(path)
    for table in ("events", "payloads"):
        query = f"PRAGMA table_info({table})"
        assert file.execute(query).fetchall() == conn.execute(query).fetchall()

        def unique(db: sqlite3.Connection, table: str = table) -> set[tuple[str, ...]]:
            indexes = db.execute(f"PRAGMA index_list({table})").fetchall()
            return {
                tuple(c[2] for c in db.execute(f"PRAGMA index_info({index[1]})"))
                for index in indexes
                if index[2]
            }

        assert unique(file) == unique(conn)
    conn.close()
    file.close()


def test_a_store_is_durable(path: Path) -> None:
    """event-log.md 13: synchronous=FULL (2), and deleted content is overwritten."""
    store = open_sqlite(path)
    for name, value in (("synchronous", 2), ("secure_delete", 1), ("journal_mode", "wal")):
        assert store.database.execute(f"PRAGMA {name}").fetchone()[0] == value
    statements: list[str] = []
    store.database.conn.set_trace_callback(statements.append)
    store.append([draft("x")])
    assert statements[1] == "BEGIN IMMEDIATE" or statements[0] == "BEGIN IMMEDIATE"
    assert statements[-1] == "COMMIT"
    store.close()


def test_events_are_never_updated_or_deleted(path: Path) -> None:
    conn = sqlite3.connect(path)
    for sql in (
        "UPDATE events SET leaf = x'00' WHERE seq = 3",
        "DELETE FROM events WHERE seq = 3",
        "DELETE FROM events",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            conn.execute(sql)
    conn.close()


def test_what_is_no_ledger_is_refused(tmp_path: Path, path: Path) -> None:
    empty, text, foreign = (tmp_path / name for name in ("empty.db", "text.db", "foreign.db"))
    empty.touch()
    text.write_text("not a database at all, " * 100, encoding="utf-8")
    conn = sqlite3.connect(foreign)
    conn.execute("CREATE TABLE t (a)")
    conn.close()
    marked = tmp_path / "marked.db"
    shutil.copyfile(foreign, marked)
    conn = sqlite3.connect(marked)
    conn.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    conn.close()
    emptied = tmp_path / "emptied.db"
    shutil.copyfile(path, emptied)
    tamper(emptied, "DELETE FROM events")
    for odd in (tmp_path / "missing.db", tmp_path, empty, text, foreign, marked, emptied):
        with pytest.raises(LedgerFileError) as caught:
            open_sqlite(odd)
        assert str(odd) in str(caught.value) or "cannot be read" in str(caught.value)


def test_create_replaces_nothing(tmp_path: Path, path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(LedgerFileError, match="exists already"):
        make_sqlite(path)
    (tmp_path / "dangling.db").symlink_to(tmp_path / "nowhere")
    with pytest.raises(LedgerFileError, match="exists already"):
        make_sqlite(tmp_path / "dangling.db")
    with pytest.raises(LedgerFileError, match="cannot create"):
        make_sqlite(tmp_path / "no-folder" / "a.db")
    with pytest.raises(BadInputError):
        make_sqlite(tmp_path / "b.db", draft(stream="ä"))
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.db", "dangling.db"]


def test_left_overs_of_a_kill_do_not_disturb(tmp_path: Path) -> None:
    for name in (".a.db.1.new", ".a.db.x.new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.db").write_bytes(b"half")
        (tmp_path / name / "a.db-journal").write_bytes(b"half")
    make_sqlite(tmp_path / "a.db").close()
    assert len(dump(open_sqlite(tmp_path / "a.db"))) == 1


def tamper(path: Path, *statements: str) -> None:
    """Change a ledger as somebody with a SQLite shell would."""
    conn = sqlite3.connect(path)
    for trigger in ("events_are_never_updated", "events_are_never_deleted"):
        conn.execute(f"DROP TRIGGER IF EXISTS {trigger}")
    for statement in statements:
        conn.execute(statement)
    conn.commit()
    conn.close()


SWAP = (
    "UPDATE {0} SET seq = -1 WHERE seq = 300",
    "UPDATE {0} SET seq = 300 WHERE seq = 301",
    "UPDATE {0} SET seq = 301 WHERE seq = -1",
)


@pytest.mark.parametrize(
    ("statements", "event"),
    [
        (["DELETE FROM events WHERE seq = 300"], 300),
        (["DELETE FROM events WHERE seq BETWEEN 250 AND 550"], 250),
        (["DELETE FROM payloads WHERE seq = 300"], 300),
        (["UPDATE payloads SET bytes = x'00' WHERE seq = 300"], 300),
        (["UPDATE payloads SET bytes = NULL WHERE seq = 300"], 300),
        (["UPDATE payloads SET salt = NULL WHERE seq = 300"], 300),
        (["UPDATE payloads SET salt = x'00' WHERE seq = 300"], 300),
        (["UPDATE events SET leaf = zeroblob(32) WHERE seq = 300"], 300),
        (["UPDATE events SET envelope = x'7b7d' WHERE seq = 300"], 300),
        ([s.format(t) for t in ("events", "payloads") for s in SWAP], 300),
        (["UPDATE events SET seq = 9000 WHERE seq = 300"], 300),
    ],
    ids=range(11),
)
def test_damage_is_named_by_event_and_never_read_over(
    path: Path, statements: list[str], event: int
) -> None:
    tamper(path, *statements)
    store = open_sqlite(path)
    read: list[int] = []
    with pytest.raises(DamagedLedgerError, match=f"event {event} "):
        read.extend(record.seq for record in store.read())
    assert list(store.read(0, event)) != []
    for length in (1, 2):
        with pytest.raises(DamagedLedgerError, match=f"event {event} "):
            list(store.read(event, event + length))
    store.close()


def rewrite(path: Path, seq: int, envelope: Callable[[bytes], bytes]) -> None:
    """Change an envelope together with its leaf."""
    conn = sqlite3.connect(path)
    conn.execute("DROP TRIGGER events_are_never_updated")
    conn.create_function(
        "leaf", 1, lambda data: __import__("hashlib").sha256(b"\x00" + data).digest()
    )
    (data,) = conn.execute("SELECT envelope FROM events WHERE seq = ?", (seq,)).fetchone()
    new = envelope(data)
    conn.execute("UPDATE events SET envelope = ?1, leaf = leaf(?1) WHERE seq = ?2", (new, seq))
    conn.commit()
    conn.close()


@pytest.mark.parametrize(
    ("change", "event"),
    [
        (lambda data: data.replace(b'"tester"', b'"forger"'), 301),
        (lambda data: data.replace(b'"seq":300', b'"seq":299'), 300),
        (lambda _: b"{}", 300),
        (lambda _: b"[1]", 300),
        (lambda _: b"\xff", 300),
        (lambda data: data.replace(b'"payload":{', b'"payload":{"x":1,'), 300),
        (
            lambda data: data.replace(b'"payload":{"commitment":"', b'"payload":{"commitment":"0'),
            300,
        ),
        (
            lambda data: (
                data[: data.index(b'"payload"')] + b'"payload":7' + data[data.index(b',"prev"') :]
            ),
            300,
        ),
    ],
    ids=range(8),
)
def test_an_envelope_changed_with_its_leaf(
    path: Path, change: Callable[[bytes], bytes], event: int
) -> None:
    """Seen at the latest by the `prev` of the event behind it."""
    rewrite(path, 300, change)
    store = open_sqlite(path)
    with pytest.raises(DamagedLedgerError, match=f"event {event} "):
        list(store.read())
    store.close()


def test_a_damaged_first_event_does_not_open(path: Path) -> None:
    tamper(path, "UPDATE events SET envelope = x'7b7d' WHERE seq = 0")
    with pytest.raises(DamagedLedgerError, match="event 0"):
        open_sqlite(path)


def test_a_torn_file_is_reported_as_damage_or_refused(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(LedgerError):
        dump(open_sqlite(path))
    path.write_bytes(data[:8192] + bytes(len(data) - 8192))
    with pytest.raises(LedgerError):
        dump(open_sqlite(path))


def test_a_store_refuses_its_own_impossible_sequence(path: Path) -> None:
    """UNIQUE guards stop a fork even where the code that places events is wrong."""
    tamper(path, "UPDATE events SET prev = (SELECT leaf FROM events WHERE seq = 600) WHERE seq = 7")
    store = open_sqlite(path)
    before = store.head()
    with pytest.raises(BugError, match="prev"):
        store.append([draft("x")])
    assert store.head() == before
    store.close()


SECRET = b"SECRET-octets-that-must-go-"


def secret(number: int) -> bytes:
    """Return a payload of its own length, small, over a page, or over several."""
    return (SECRET + b"%05d" % number) * (1, 3, 60, 400)[number % 4]


def bytes_of(path: Path) -> bytes:
    return b"".join(p.read_bytes() for p in sorted(path.parent.iterdir()) if p.is_file())


def test_a_redaction_leaves_no_bytes(tmp_path: Path) -> None:
    """commitments.md 4: salt and bytes are gone from the file and from what stands beside it."""
    path = tmp_path / "a.db"
    store = make_sqlite(path)
    store.append(
        Draft("test.noted", 1, "s", secret(i), "t", media="text/plain") for i in range(1, 121)
    )
    order = sorted(range(1, 121), key=lambda i: SeededEntropy(f"order {i}")(8))
    for done, target in enumerate(order[:60]):
        (salt,) = [record.salt for record in store.read(target, target + 1)]
        assert salt is not None
        assert salt in bytes_of(path)
        store.redact(target, draft("why", type="payload.redacted"))
        left = bytes_of(path)
        assert salt not in left
        gone = [n for n in order[: done + 1] if b"%s%05d" % (SECRET, n) in left]
        assert gone == []
    assert b"%s%05d" % (SECRET, order[60]) in bytes_of(path)
    store.close()
    assert [n for n in order[:60] if b"%s%05d" % (SECRET, n) in bytes_of(path)] == []
    again = open_sqlite(path)
    assert len(dump(again)) == 181
    again.close()


def test_a_redaction_leaves_no_bytes_in_the_tables(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    store = make_sqlite(path, draft_event(OPENED, actor="t"))
    store.append([draft_event(payload, actor="t") for payload in (CARD, DOSSIER, SEALED)])
    told = changed(CARD, card=plain(CARD.card) | {"card_id": "told", "title": SECRET.decode()})
    store.append([draft_event(told, actor="t")])
    refresh_tables(store.database, store, PROJECTIONS)
    assert bytes_of(path).count(SECRET) >= 2
    Session(store, clock=clock(), actor="t").redact(4, reason="Terms.", authority="counsel")
    assert SECRET not in bytes_of(path)
    refresh_tables(store.database, store, PROJECTIONS)
    assert SECRET not in bytes_of(path)
    assert store.database.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    store.close()


def test_copies_that_another_program_deleted_go_too(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    store = make_sqlite(path)
    store.append([draft(secret(3).decode())])
    shell = sqlite3.connect(path)
    shell.execute("PRAGMA secure_delete = OFF")
    shell.execute("CREATE TABLE copies AS SELECT bytes FROM payloads")
    shell.execute("DROP TABLE copies")
    shell.commit()
    shell.close()
    store.redact(1, draft("why"))
    assert SECRET not in bytes_of(path)
    store.close()


def test_a_table_of_the_users_own_stays(tmp_path: Path) -> None:
    store = make_sqlite(tmp_path / "a.db", draft_event(OPENED, actor="t"))
    store.append([draft_event(payload, actor="t") for payload in STORY[1:4]])
    store.database.table("notes").insert({"text": "mine"})
    refresh_tables(store.database, store, PROJECTIONS)
    store.redact(1, draft("why"))
    names = {"events", "payloads", "notes"}
    assert {n for n in store.database.table_names() if not n.startswith("sqlite")} == names
    store.close()


def test_a_reader_that_holds_old_bytes_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ledger.store.sqlite.BUSY_TIMEOUT_S", 0)
    path = tmp_path / "a.db"
    store = make_sqlite(path)
    store.append([draft(secret(2).decode())])
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM payloads").fetchone()
    with pytest.raises(LedgerFileError, match="written as event 2") as caught:
        store.redact(1, draft("why", type="payload.redacted"))
    assert "Close every program" in str(caught.value)
    assert dump(store)[1].payload is None
    assert SECRET in bytes_of(path)
    reader.close()
    store.close()
    assert SECRET not in bytes_of(path)


def test_a_head_is_of_its_own_log(path: Path) -> None:
    store = open_sqlite(path)
    record = dump(store)[-1]
    assert store.head() == Head(601, record.leaf)
    assert record.fields["log"] == LOG_ID
    assert FIRST.type == dump(store)[0].type
    store.close()
    with pytest.raises(LedgerFileError, match="closed"):
        SqliteStore.head(store)
