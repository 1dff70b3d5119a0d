"""Put the parts together: which files belong to a ledger, and how a command opens them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from cli.system import system_actor, system_clock, system_entropy
from ledger.checkpoint import Checkpoint, sign_checkpoint
from ledger.errors import BadInputError, LedgerFileError
from ledger.events.anchor import LedgerOpened
from ledger.events.codec import read_event
from ledger.merkle import merkle_tree_hash
from ledger.projections.port import refresh_tables
from ledger.projections.registry import PROJECTIONS
from ledger.session import Session
from ledger.signed_note import (
    SignerKey,
    format_signer_key,
    format_verifier_key,
    parse_signer_key,
)
from ledger.store.sqlite import SqliteStore

LedgerOption = Annotated[
    Path,
    typer.Option("--ledger", envvar="LEDGER", help="The ledger file."),
]
VaultOption = Annotated[
    Path | None,
    typer.Option("--vault", help="The vault file. By default vault.db beside the ledger."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]

DEFAULT_LEDGER = Path("ledger.db")


def vault_path(ledger: Path, vault: Path | None) -> Path:
    """Return the vault that goes with a ledger."""
    return vault if vault is not None else ledger.parent / "vault.db"


def key_path(ledger: Path) -> Path:
    """Return the signing key that goes with a ledger."""
    return ledger.parent / f"{ledger.stem}.key"


def open_store(ledger: Path) -> SqliteStore:
    """Open an existing ledger with the system's clock and entropy."""
    return SqliteStore(ledger, clock=system_clock, entropy=system_entropy)


@contextmanager
def reading(ledger: Path) -> Iterator[SqliteStore]:
    """Open a ledger for a command that only reads."""
    store = open_store(ledger)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def writing(ledger: Path) -> Iterator[Session]:
    """Open a ledger for a command that appends; its tables are brought up to date afterwards."""
    store = open_store(ledger)
    try:
        yield Session(store, clock=system_clock, actor=system_actor())
        refresh_tables(store.database, store, PROJECTIONS)
    finally:
        store.close()


def write_key(path: Path, key: SignerKey) -> None:
    """Write a new signing key with mode 0600; an existing file is never replaced."""
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError as error:
        raise LedgerFileError(
            f"{path} exists already. Move it away or name another ledger."
        ) from error
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(format_signer_key(key) + "\n")


def read_key(path: Path) -> SignerKey:
    """Read a signing key.

    Raises:
        LedgerFileError: missing, or readable by others.
        BadInputError: the file holds no signing key.
    """
    if not path.is_file():
        raise LedgerFileError(f"there is no signing key at {path}. Name it with --key.")
    if path.stat().st_mode & 0o077:
        raise LedgerFileError(f"the key {path} can be read by others. Run `chmod 600 {path}`.")
    try:
        return parse_signer_key(path.read_text(encoding="utf-8").strip())
    except ValueError as error:
        raise BadInputError(
            "holds no signing key", where=str(path), remedy="Name the key with --key."
        ) from error


def signed_checkpoint(store: SqliteStore, key: SignerKey) -> tuple[Checkpoint, str]:
    """Sign the present head of a log; the checkpoint's origin is the key's name.

    Raises:
        BadInputError: the key is not one that the ledger names in its first event.
    """
    if format_verifier_key(key.verifier_key) not in verifier_keys(store):
        raise BadInputError(
            f"the key of {key.name} is not one of this ledger's keys",
            remedy="Name the key that `ledger init` wrote beside the ledger with --key.",
        )
    leaves = [record.leaf for record in store.read()]
    checkpoint = Checkpoint(origin=key.name, size=len(leaves), root=merkle_tree_hash(leaves))
    return checkpoint, sign_checkpoint(checkpoint, key)


def verifier_keys(store: SqliteStore) -> tuple[str, ...]:
    """Return the verifier keys that the ledger names in its first event."""
    opened = read_event(next(store.read(0, 1))).payload
    return opened.verifier_keys if isinstance(opened, LedgerOpened) else ()


def write_whole(path: Path, text: str) -> None:
    """Write a file so that it appears whole or not at all, replacing what was there."""
    draft = path.parent / f".{path.name}.{os.getpid()}.new"
    try:
        draft.write_text(text, encoding="utf-8", newline="\n")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
