"""The vault: salts and private objects of sealed labels, in a file that never travels.

A SQLite file of mode 0600 beside the ledger. Whoever holds it can open the labels, so it is written
before the seals are appended, is never read by replay or verification, and can be handed to a
custodian who is not the operator.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlite_utils import Database

from ledger.canonical import canonicalize_exact, is_canonical
from ledger.commitment import LABEL_TAG, SALT_BYTES, commit
from ledger.errors import LedgerFileError
from ledger.events.card import PrivateObject, Seal
from ledger.ids import Entropy

APPLICATION_ID = 0x464C5654
"""'FLVT' in the SQLite header."""


@dataclass(frozen=True, slots=True)
class VaultEntry:
    """Salt and canonical bytes of one private object; its repr shows neither."""

    card_id: str
    salt: bytes
    private_json: bytes

    def __repr__(self) -> str:
        """Name the card alone: a label must not reach a log or a traceback."""
        return f"VaultEntry(card_id={self.card_id!r})"

    @property
    def seal(self) -> Seal:
        """The public commitment to this entry."""
        return Seal(
            scheme="forecast-ledger/label/v1",
            commitment=commit(LABEL_TAG, self.salt, self.private_json),
        )


def seal_private(private: PrivateObject, entropy: Entropy) -> VaultEntry:
    """Make a private object's entry with a fresh salt."""
    data = canonicalize_exact(private.model_dump(mode="python"))
    return VaultEntry(private.card_id, entropy(SALT_BYTES), data)


def write_vault(path: Path, entries: Iterable[VaultEntry]) -> None:
    """Add entries to the vault, creating it with mode 0600; a card's entry is never replaced.

    Raises:
        LedgerFileError: the file cannot be used, is readable by others, or holds the card already.
    """
    if not path.exists():
        _make_private_file(path)
    with _opened(path, may_create=True) as database:
        try:
            with database.atomic():
                database.table("labels").insert_all(
                    {"card": e.card_id, "salt": e.salt, "private_json": e.private_json}
                    for e in entries
                )
        except sqlite3.IntegrityError as error:
            raise LedgerFileError(
                f"{path} already holds the label of one of these cards. Nothing was written;"
                " use another vault with --vault."
            ) from error


def read_vault(path: Path) -> dict[str, VaultEntry]:
    """Read all entries by card id.

    Raises:
        LedgerFileError: missing, not a vault, readable by others, or an entry of another form.
    """
    if not path.is_file():
        raise LedgerFileError(f"there is no vault at {path}. Name it with --vault.")
    with _opened(path, may_create=False) as database:
        rows = list(database.table("labels").rows)
    return {str(row["card"]): _entry(path, row) for row in rows}


def _entry(path: Path, row: dict[str, Any]) -> VaultEntry:
    card, salt, data = row["card"], row["salt"], row["private_json"]
    is_whole = isinstance(salt, bytes) and len(salt) == SALT_BYTES and isinstance(data, bytes)
    if not is_whole or not is_canonical(data):
        raise LedgerFileError(
            f"the entry of card {str(card)[:40]!r} in {path} is damaged. Restore a copy of the"
            " vault, and name it with --vault."
        )
    return VaultEntry(str(card), salt, data)


def _make_private_file(path: Path) -> None:
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except OSError as error:
        raise LedgerFileError(f"cannot make a vault at {path}: {error.strerror}.") from error
    try:
        # A umask may take more away, and then the owner could not write.
        os.fchmod(handle, 0o600)
    finally:
        os.close(handle)


@contextmanager
def _opened(path: Path, *, may_create: bool) -> Iterator[Database]:
    if path.stat().st_mode & 0o077:
        raise LedgerFileError(
            f"the vault {path} can be read by others. Run `chmod 600 {path}` and think about who"
            " may have read it."
        )
    try:
        connection = sqlite3.connect(path)
    except sqlite3.Error as error:
        raise LedgerFileError(f"{path} cannot be used as a vault: {error}.") from error
    try:
        database = Database(connection, execute_plugins=False)
        known = database.execute("PRAGMA application_id").fetchone()[0]
        if may_create and known == 0 and not database.table_names():
            _make_table(database)
        elif known != APPLICATION_ID:
            raise LedgerFileError(f"{path} is not a vault. Name another file with --vault.")
        yield database
    except sqlite3.DatabaseError as error:
        raise LedgerFileError(f"{path} cannot be used as a vault: {error}.") from error
    finally:
        connection.close()


def _make_table(database: Database) -> None:
    # Both or neither: a kill in between must leave a file that the next call still takes.
    with database.atomic():
        database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        database.table("labels").create(
            {"card": str, "salt": bytes, "private_json": bytes}, pk="card"
        )
