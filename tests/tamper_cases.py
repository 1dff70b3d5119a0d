"""Attacks on small ledgers, one or more for each integrity rule: rule, seq, and how it is done."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from builders import LOG_ID, ORIGIN, SIGNER, Book
from evaluations import closed, honest_book, ready
from rows import Rows, Stored, forge

from ledger.checkpoint import Checkpoint, sign_checkpoint
from ledger.ids import format_uuid7
from ledger.merkle import EMPTY_ROOT, merkle_tree_hash
from ledger.signed_note import SignerKey
from ledger.verify.check import verify_file
from ledger.verify.report import Verification

Attack = Callable[[Path], Verification]
"""Gets an empty folder, builds and attacks a ledger there, and verifies it."""

STRANGER = SignerKey(ORIGIN, b"\x07" * 32)
BIG_BYTES = (64 << 20) + 10_000


def evaluation() -> Rows:
    """Opened, card, seal, plan, prediction, closing, label: a whole evaluation in seven events."""
    book = closed()
    book.unseal("a")
    return Rows.of(book)


def held(rows: Rows, size: int | None = None, signer: SignerKey = SIGNER) -> str:
    """A checkpoint of the rows, as an auditor kept it."""
    leaves = [s.leaf for s in rows.stored][:size]
    root = merkle_tree_hash(leaves)
    return sign_checkpoint(Checkpoint(signer.name, len(leaves), root), signer)


def with_sql(rows: Rows, folder: Path, *statements: str, **question: Any) -> Verification:
    """Write the rows, run statements with the triggers dropped, and verify."""
    path = rows.write(folder / "ledger.db")
    conn = sqlite3.connect(path, isolation_level=None)
    conn.execute("DROP TRIGGER events_are_never_updated")
    conn.execute("DROP TRIGGER events_are_never_deleted")
    for statement in statements:
        conn.execute(statement)
    conn.close()
    return verify_file(path, **question)


def sql(*statements: str) -> Attack:
    """An evaluation, attacked by SQL."""
    return lambda folder: with_sql(evaluation(), folder, *statements)


def forged(**how: Any) -> Attack:
    """An evaluation that its operator rewrote, every hash computed anew."""
    return lambda folder: verify_file(forge(evaluation().stored, **how).write(folder / "ledger.db"))


def forged_in_memory(**how: Any) -> Attack:
    """As `forged`, for what the unique indexes of a file would refuse."""
    return lambda folder: forge(evaluation().stored, **how).verify()


def compared(
    change: Callable[[Rows], Rows], text: Callable[[Rows], str], **question: Any
) -> Attack:
    """A changed evaluation, compared with a checkpoint that an auditor kept of the first."""

    def attack(folder: Path) -> Verification:
        rows = evaluation()
        path = change(rows).write(folder / "ledger.db")
        return verify_file(path, checkpoint_text=text(rows), **question)

    return attack


def only_at(seq: int, old: bytes, new: bytes) -> Callable[[int, bytes], bytes]:
    """Replace a part of the bytes of one event."""

    def change(at: int, data: bytes) -> bytes:
        return data.replace(old, new, 1) if at == seq else data

    return change


def set_field(seq: int, key: str, value: object) -> Callable[[dict[str, Any]], None]:
    """Set a field of one envelope."""

    def change(envelope: dict[str, Any]) -> None:
        if envelope["seq"] == seq:
            envelope[key] = value

    return change


def set_length(envelope: dict[str, Any]) -> None:
    """Let one envelope lie about its payload's length."""
    if envelope["seq"] == 3:
        envelope["payload"]["length"] += 1


def same_id(envelope: dict[str, Any]) -> None:
    """Give two events the id of one."""
    if envelope["seq"] in (2, 4):
        envelope["id"] = format_uuid7(5, b"\x03" * 10)


def same_key(envelope: dict[str, Any]) -> None:
    """Give two events one idempotency key."""
    if envelope["seq"] in (2, 4):
        envelope["idem_key"] = "key"


def other_log_id(seq: int, data: bytes) -> bytes:
    """Let `ledger.opened` name another log than its envelope."""
    return data.replace(LOG_ID.encode(), LOG_ID.replace("0", "1").encode()) if seq == 0 else data


def envelope_and_leaf(folder: Path) -> Verification:
    """Change one envelope and its leaf together, and no event after it."""
    rows = evaluation()
    changed = forge(rows.stored, fields=set_field(3, "actor", "somebody")).stored[3]
    return rows.patch(3, envelope=changed.envelope, leaf=changed.leaf).verify()


def short_salt(folder: Path) -> Verification:
    """A salt of 31 bytes, from the start."""
    rows = evaluation()
    return forge(rows.patch(4, salt=b"s" * 31).stored).verify()


def without(rows: Rows, *seqs: int) -> list[Stored]:
    """The events but for some."""
    return [s for s in rows.stored if s.seq not in seqs]


def dropped(folder: Path) -> Verification:
    """An event dropped and the rest numbered anew, hashes left as they were."""
    rows = without(evaluation(), 3)
    return Rows(replace(s, seq=i) for i, s in enumerate(rows)).verify()


def swapped(folder: Path) -> Verification:
    """Two events in each other's rows."""
    rows = evaluation().stored
    order = [0, 1, 3, 2, 4, 5, 6]
    return Rows(replace(rows[old], seq=new) for new, old in enumerate(order)).verify()


def duplicated(folder: Path) -> Verification:
    """An event stored twice."""
    rows = evaluation().stored
    return Rows(replace(s, seq=i) for i, s in enumerate([*rows[:4], rows[3], *rows[4:]])).verify()


def text_envelope(folder: Path) -> Verification:
    """The right bytes in a column of the wrong type."""
    return with_sql(
        evaluation(),
        folder,
        "CREATE TABLE e2 (seq INTEGER PRIMARY KEY, envelope BLOB NOT NULL, leaf BLOB NOT NULL,"
        " prev BLOB NOT NULL UNIQUE, type TEXT NOT NULL, stream TEXT NOT NULL,"
        " stream_seq INTEGER NOT NULL, idem_key TEXT UNIQUE, UNIQUE (stream, stream_seq))",
        "INSERT INTO e2 SELECT * FROM events",
        "UPDATE e2 SET envelope = CAST(envelope AS TEXT) WHERE seq = 2",
        "DROP TABLE events",
        "ALTER TABLE e2 RENAME TO events",
    )


def odd_key(columns: str) -> Attack:
    """The payloads in a table whose key may hold anything."""
    options = "" if "DESC," in columns else " WITHOUT ROWID"
    return sql(
        f"CREATE TABLE p2 ({columns}){options}",
        "INSERT INTO p2 SELECT * FROM payloads",
        "UPDATE p2 SET seq = 'seven' WHERE seq = 6",
        "DROP TABLE payloads",
        "ALTER TABLE p2 RENAME TO payloads",
    )


def foreign_database(folder: Path) -> Verification:
    """An SQLite database of something else."""
    conn = sqlite3.connect(folder / "other.db")
    conn.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY)")
    conn.close()
    return verify_file(folder / "other.db")


def file_of(data: bytes) -> Attack:
    """A file that holds these bytes."""

    def attack(folder: Path) -> Verification:
        (folder / "file").write_bytes(data)
        return verify_file(folder / "file")

    return attack


def overwritten(folder: Path) -> Verification:
    """A page of the file overwritten."""
    path = Rows.of(honest_book()).write(folder / "ledger.db")
    data = bytearray(path.read_bytes())
    data[4096 * 12 : 4096 * 13] = b"\xff" * 4096
    path.write_bytes(data)
    return verify_file(path)


def cut(folder: Path) -> Verification:
    """A file cut in half."""
    path = Rows.of(honest_book()).write(folder / "ledger.db")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 8192 * 4096])
    return verify_file(path)


def redacted(folder: Path) -> Verification:
    """A payload redacted as it should be."""
    book = ready()
    book.redact(1)
    return Rows.of(book).verify()


def still_sealed(folder: Path) -> Verification:
    """A label that nobody opened."""
    return Rows.of(closed()).verify()


def book_with_anchor(signer: SignerKey, **other: Any) -> Book:
    """A book with a checkpoint inside, signed by some key of its origin."""
    book = closed()
    book.anchor(held(Rows.of(book), signer=signer), **other)
    book.unseal("a")
    return book


def badly_signed_inside(folder: Path) -> Verification:
    """A checkpoint inside the log whose signature is another's."""
    text = held(Rows.of(closed()), 3)
    book = closed()
    note, _, _ = held(Rows.of(book)).rpartition("\n\n")
    book.anchor(f"{note}\n\n{text.rpartition(chr(10) * 2)[2]}")
    book.unseal("a")
    return Rows.of(book).verify()


def with_token(folder: Path) -> Verification:
    """A checkpoint inside the log with an outside proof."""
    proof = {"kind": "manual", "issuer": "notary", "token_base64": ""}
    return Rows.of(book_with_anchor(SIGNER, proof=proof)).verify()


def same(rows: Rows) -> Rows:
    """No change at all."""
    return rows


def rewritten(rows: Rows) -> Rows:
    """Another probability from the start, every hash computed anew."""
    return forge(rows.stored, payload=only_at(4, b'yes":"0.7"', b'yes":"0.9"'))


def bad_signature(rows: Rows) -> str:
    """A checkpoint whose signature does not fit its text."""
    text, other = held(rows), held(rows, 3)
    return text.rpartition("\n\n")[0] + "\n\n" + other.rpartition("\n\n")[2]


def of_size_zero(rows: Rows) -> str:
    """A checkpoint of the empty log."""
    return sign_checkpoint(Checkpoint(ORIGIN, 0, EMPTY_ROOT), SIGNER)


def unsigned(rows: Rows) -> str:
    """The three lines alone."""
    return held(rows).rpartition("\n\n")[0] + "\n"


def elsewhere(rows: Rows) -> str:
    """A checkpoint of another log."""
    return held(rows, signer=SignerKey("example.com/other", SIGNER.seed))


TAMPERED: tuple[tuple[str, int | None, Attack], ...] = (
    ("store.unreadable", None, lambda folder: verify_file(folder / "none.db")),
    ("store.unreadable", None, verify_file),
    ("store.unreadable", None, file_of(b"")),
    ("store.unreadable", None, file_of(b"SQLite form")),
    ("store.unreadable", None, file_of(b"SQLite format 3\x00")),
    ("store.unreadable", None, file_of(b"SQLite format 3\x00" + b"\xa5" * 5000)),
    ("store.unreadable", None, file_of(b'{"seq":0}\n')),
    ("store.unreadable", None, foreign_database),
    ("store.damaged", None, overwritten),
    ("store.damaged", None, cut),
    ("store.table", None, sql("DROP TABLE payloads")),
    ("store.table", None, sql("ALTER TABLE events DROP COLUMN type")),
    ("store.table", None, sql("ALTER TABLE events ADD COLUMN more TEXT")),
    ("store.table", None, sql("ALTER TABLE events ADD COLUMN more TEXT AS (type)")),
    (
        "store.table",
        None,
        sql("ALTER TABLE events RENAME TO e2", "CREATE VIEW events AS SELECT * FROM e2"),
    ),
    ("store.table", None, odd_key("seq INTEGER, salt BLOB, bytes BLOB, PRIMARY KEY (seq DESC)")),
    ("store.table", None, odd_key("seq INTEGER PRIMARY KEY DESC, salt BLOB, bytes BLOB")),
    ("store.table", None, odd_key("seq TEXT PRIMARY KEY, salt BLOB, bytes BLOB")),
    ("store.table", 2, text_envelope),
    ("store.empty", None, sql("DELETE FROM events", "DELETE FROM payloads")),
    ("store.empty", None, sql("DELETE FROM events")),
    ("store.column", 2, sql("UPDATE events SET prev = zeroblob(31) WHERE seq = 2")),
    ("store.column", 2, sql("UPDATE events SET type = 'card.frozen' WHERE seq = 2")),
    ("store.column", 2, sql("UPDATE events SET type = CAST(x'ff' AS TEXT) WHERE seq = 2")),
    ("store.column", 2, sql("UPDATE events SET stream = 'x' WHERE seq = 2")),
    ("store.column", 2, sql("UPDATE events SET stream_seq = 9 WHERE seq = 2")),
    ("store.column", 2, sql("UPDATE events SET idem_key = 'x' WHERE seq = 2")),
    ("store.orphan", 99, sql("INSERT INTO payloads VALUES (99, NULL, NULL)")),
    ("log.seq", 3, sql("DELETE FROM events WHERE seq = 3", "DELETE FROM payloads WHERE seq = 3")),
    ("log.seq", 0, sql("DELETE FROM events WHERE seq = 0", "DELETE FROM payloads WHERE seq = 0")),
    ("log.seq", 0, sql("UPDATE events SET seq = -5 WHERE seq = 0")),
    ("log.seq", 6, sql("UPDATE events SET seq = 9223372036854775807 WHERE seq = 6")),
    ("log.seq", 3, dropped),
    ("log.seq", 2, swapped),
    ("log.seq", 4, duplicated),
    ("log.leaf", 3, sql("UPDATE events SET leaf = zeroblob(32) WHERE seq = 3")),
    ("log.leaf", 3, sql("UPDATE events SET leaf = zeroblob(0) WHERE seq = 3")),
    ("log.prev", 4, envelope_and_leaf),
    ("log.prev", 3, forged(fields=set_field(3, "prev", "0" * 64))),
    ("log.id", 4, forged(fields=same_id)),
    ("log.log", 3, forged(fields=set_field(3, "log", format_uuid7(9, b"\x09" * 10)))),
    ("log.log", 0, forged(payload=other_log_id)),
    ("log.stream", 3, forged(fields=set_field(3, "stream_seq", 4))),
    ("log.key", 4, forged_in_memory(fields=same_key)),
    ("envelope.json", 3, forged(spell=only_at(3, b'{"actor"', b'{"actor":"x","actor"'))),
    ("envelope.json", 3, forged(spell=only_at(3, b'"v":1', b'"v":1.0'))),
    ("envelope.form", 3, forged(fields=set_field(3, "more", 1))),
    ("envelope.form", 3, forged(fields=set_field(3, "type_v", "1"))),
    ("envelope.form", 3, forged(fields=set_field(3, "actor", "caf\u00e9"))),
    ("envelope.form", 3, forged(fields=set_field(3, "recorded_at", "2026-02-30T00:00:00.000000Z"))),
    ("envelope.canonical", 3, forged(spell=only_at(3, b'{"actor":', b'{"actor": '))),
    ("envelope.canonical", 3, forged(spell=only_at(3, b'"tester"', b'"t\\u0065ster"'))),
    ("envelope.size", 3, forged(spell=only_at(3, b'"v":1', b'"v":' + b" " * 20_000 + b"1"))),
    ("payload.lost", 3, sql("UPDATE payloads SET salt = NULL, bytes = NULL WHERE seq = 3")),
    ("payload.lost", 3, sql("UPDATE payloads SET salt = NULL WHERE seq = 3")),
    ("payload.lost", 3, sql("DELETE FROM payloads WHERE seq = 3")),
    ("payload.commitment", 4, sql("UPDATE payloads SET salt = zeroblob(32) WHERE seq = 4")),
    (
        "payload.commitment",
        4,
        sql(
            "UPDATE payloads SET salt = substr(salt, 1, 31),"
            " bytes = CAST(substr(salt, 32) || bytes AS BLOB) WHERE seq = 4"
        ),
    ),
    (
        "payload.length",
        4,
        sql("UPDATE payloads SET bytes = CAST(bytes || x'20' AS BLOB) WHERE seq = 4"),
    ),
    ("payload.commitment", 4, short_salt),
    ("payload.length", 3, forged(fields=set_length)),
    ("payload.length", 4, sql(f"UPDATE payloads SET bytes = zeroblob({BIG_BYTES}) WHERE seq = 4")),
    ("payload.json", 4, forged(payload=only_at(4, b'{"attempt"', b'{"draw":1,"attempt"'))),
    ("payload.json", 4, forged(payload=only_at(4, b'"draw":1', b'"draw":1.0'))),
    ("payload.json", 4, forged(payload=lambda seq, data: b"\xff" if seq == 4 else data)),
    ("payload.json", 4, forged(payload=lambda seq, data: b"[" * 99_999 if seq == 4 else data)),
    ("payload.canonical", 4, forged(payload=only_at(4, b":", b": "))),
    ("payload.form", 4, forged(payload=only_at(4, b'"draw":1,', b""))),
    ("payload.form", 4, forged(payload=only_at(4, b'yes":"0.7"', b'yes":"0.70"'))),
    ("payload.form", 4, forged(payload=lambda seq, data: b"[]" if seq == 4 else data)),
    ("payload.size", 4, forged(payload=lambda seq, data: bytes(BIG_BYTES) if seq == 4 else data)),
    ("payload.withheld", 1, redacted),
    ("label.sealed", None, still_sealed),
    ("checkpoint.form", None, compared(same, lambda rows: "")),
    ("checkpoint.form", None, compared(same, lambda rows: held(rows).replace("\n7\n", "\n07\n"))),
    ("checkpoint.form", None, compared(same, lambda rows: "\udcff")),
    ("checkpoint.origin", None, compared(same, elsewhere)),
    ("checkpoint.signature", None, compared(same, bad_signature)),
    ("checkpoint.signature", 6, badly_signed_inside),
    ("checkpoint.truncated", None, compared(lambda rows: Rows(rows.stored[:-1]), held)),
    ("checkpoint.truncated", None, compared(lambda rows: Rows(rows.stored[:3]), held)),
    ("checkpoint.fork", None, compared(rewritten, held)),
    ("checkpoint.fork", None, compared(rewritten, lambda rows: held(rows, 5))),
    ("checkpoint.unverifiable", None, compared(same, lambda rows: held(rows, signer=STRANGER))),
    ("checkpoint.unverifiable", None, compared(same, held, keys=("not a key",))),
    ("checkpoint.unsigned", None, compared(same, unsigned)),
    ("checkpoint.uncovered", 5, compared(same, lambda rows: held(rows, 5))),
    ("checkpoint.unchecked", 6, lambda folder: Rows.of(book_with_anchor(STRANGER)).verify()),
    ("checkpoint.token", 6, with_token),
)
"""Rule, the seq at which it has to be found, and the attack."""
