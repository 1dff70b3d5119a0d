"""The vault: private at birth, added to and never replaced, and silent about what it holds."""

from __future__ import annotations

import os
import sqlite3
import stat
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from event_examples import ENTRY, OPENED, PLANTED_LABEL, PRIVATE, SEALED, STORY
from store_examples import clock, make_sqlite

from ledger.canonical import is_canonical
from ledger.commitment import LABEL_TAG, check_commitment
from ledger.errors import LedgerError, LedgerFileError
from ledger.events.codec import draft_event
from ledger.ids import SeededEntropy
from ledger.projections.port import refresh_tables
from ledger.projections.registry import PROJECTIONS
from ledger.session import Session
from ledger.vault import VaultEntry, read_vault, seal_private, write_vault

OTHER = replace(ENTRY, card_id="other")
HIDDEN = (PLANTED_LABEL, ENTRY.salt.hex(), repr(ENTRY.salt)[2:-1], '"resolution"', "Åsnes")


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o277, 0o777])
def test_the_file_is_private_whatever_the_umask(tmp_path: Path, mask: int) -> None:
    """commitments.md 5: kept in a vault file of mode 0600."""
    path = tmp_path / "vault.db"
    with umask(mask):
        write_vault(path, [ENTRY])
        assert mode(path) == 0o600
        write_vault(path, [OTHER])
    assert mode(path) == 0o600
    assert read_vault(path) == {"bridge": ENTRY, "other": OTHER}
    assert [p.name for p in tmp_path.iterdir()] == ["vault.db"]


def test_the_journal_is_private_too(tmp_path: Path) -> None:
    path = tmp_path / "vault.db"
    with umask(0):
        write_vault(path, [ENTRY])
        conn = sqlite3.connect(path)
        conn.execute("INSERT INTO labels VALUES ('x', x'00', x'00')")
        assert mode(tmp_path / "vault.db-journal") == 0o600
        conn.rollback()
        conn.close()


@pytest.mark.parametrize("bits", [0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o644])
def test_a_file_that_others_can_touch_is_refused(tmp_path: Path, bits: int) -> None:
    path = tmp_path / "vault.db"
    write_vault(path, [ENTRY])
    path.chmod(bits)
    for action in (lambda: read_vault(path), lambda: write_vault(path, [OTHER])):
        with pytest.raises(LedgerFileError, match="chmod 600"):
            action()
    path.chmod(0o600)
    assert read_vault(path) == {"bridge": ENTRY}


def test_an_entry_is_never_replaced_and_nothing_is_half_written(tmp_path: Path) -> None:
    path = tmp_path / "vault.db"
    write_vault(path, [ENTRY])
    second = replace(ENTRY, salt=bytes(32))
    for entries in ([second], [OTHER, second], [OTHER, OTHER]):
        with pytest.raises(LedgerFileError, match="already holds"):
            write_vault(path, entries)
        assert read_vault(path) == {"bridge": ENTRY}


def test_what_is_no_vault_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "vault.db"
    with pytest.raises(LedgerFileError, match="no vault at"):
        read_vault(path)
    with pytest.raises(LedgerFileError, match="cannot make"):
        write_vault(tmp_path / "missing" / "vault.db", [ENTRY])
    with pytest.raises(LedgerFileError):
        write_vault(tmp_path, [ENTRY])
    make_sqlite(path).close()
    path.chmod(0o600)
    for data in (None, b"not a database, and long enough to be read as one" * 20):
        if data is not None:
            path.write_bytes(data)
        before = path.read_bytes()
        for action in (lambda: read_vault(path), lambda: write_vault(path, [ENTRY])):
            with pytest.raises(LedgerFileError):
                action()
        assert path.read_bytes() == before


def test_an_empty_file_is_no_vault_to_read_and_one_to_write(tmp_path: Path) -> None:
    """A kill right after the file is made leaves such a file."""
    path = tmp_path / "vault.db"
    path.touch(mode=0o600)
    with pytest.raises(LedgerFileError):
        read_vault(path)
    assert path.read_bytes() == b""
    write_vault(path, [ENTRY])
    assert read_vault(path) == {"bridge": ENTRY}


@pytest.mark.parametrize(
    "change",
    ["salt = x'00'", "salt = 'text'", "private_json = x'ff'", "private_json = '{}'", "salt = NULL"],
)
def test_a_damaged_entry_is_refused_without_showing_it(tmp_path: Path, change: str) -> None:
    path = tmp_path / "vault.db"
    write_vault(path, [ENTRY])
    conn = sqlite3.connect(path)
    conn.execute(f"UPDATE labels SET {change}")
    conn.commit()
    conn.close()
    with pytest.raises(LedgerFileError, match="damaged") as caught:
        read_vault(path)
    assert silent(caught.value)


def silent(error: BaseException) -> bool:
    """Say that neither the error nor anything it carries along shows what is hidden."""
    text = "".join(traceback.format_exception(error)) + repr(error)
    return not any(secret in text for secret in HIDDEN)


def test_seals_open_and_salts_are_fresh() -> None:
    """commitments.md 1, 5: 32 fresh bytes a commitment; the bytes are canonical JSON."""
    entropy = SeededEntropy("seal")
    one, other = seal_private(PRIVATE, entropy), seal_private(PRIVATE, entropy)
    assert len(one.salt) == 32
    assert one.salt != other.salt
    assert one.seal != other.seal
    assert is_canonical(one.private_json)
    assert check_commitment(LABEL_TAG, one.salt, one.private_json, one.seal.commitment)


def test_reprs_show_the_card_alone() -> None:
    shown = [repr(ENTRY), str(ENTRY), f"{ENTRY}", repr([ENTRY]), repr({"a": ENTRY})]
    shown += [repr(PRIVATE), str(PRIVATE), f"{PRIVATE}", repr([PRIVATE])]
    for text in shown:
        assert "bridge" in text
        assert not any(secret in text for secret in HIDDEN)
        assert "no" not in text.replace("card_id", "")


def test_errors_show_neither_salt_nor_label(tmp_path: Path) -> None:
    path = tmp_path / "vault.db"
    write_vault(path, [ENTRY])
    odd = [
        VaultEntry("bridge", ENTRY.salt, ENTRY.private_json),
        VaultEntry("x", ENTRY.salt, PRIVATE),  # type: ignore[arg-type]
    ]
    for entry in odd:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - any error at all
            write_vault(path, [entry])
        assert silent(caught.value)
    session_file = make_sqlite(tmp_path / "a.db", draft_event(OPENED, actor="t"))
    session = Session(session_file, clock=clock(), actor="t")
    with pytest.raises(LedgerError) as refused:
        session.commit(lambda _: [SEALED])
    assert silent(refused.value)
    session_file.close()


def test_a_sealed_label_is_in_no_file_of_the_ledger(tmp_path: Path) -> None:
    """commitments.md 5: in a vault file beside the ledger and never in it."""
    write_vault(tmp_path / "vault.db", [ENTRY])
    store = make_sqlite(tmp_path / "a.db", draft_event(OPENED, actor="t"))
    session = Session(store, clock=clock(), actor="t")
    for payload in STORY[1:25]:
        session.commit(lambda _, p=payload: [p])  # type: ignore[misc]
    refresh_tables(store.database, store, PROJECTIONS)

    def leaks() -> set[str]:
        files = [p for p in tmp_path.iterdir() if p.name.startswith("a.db")]
        data = b"".join(p.read_bytes() for p in files)
        assert b"label.sealed" in data
        needles = (PLANTED_LABEL.encode(), ENTRY.salt, ENTRY.salt.hex().encode(), b"resolution")
        return {needle.hex() for needle in needles if needle in data}

    assert leaks() == set()
    store.close()
    assert leaks() == set()
    # The search can fail: once unsealed, the label is there for all to read.
    assert PLANTED_LABEL.encode() in (tmp_path / "vault.db").read_bytes()
