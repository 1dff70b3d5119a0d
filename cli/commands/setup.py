"""`ledger init`: a new log and its signing key."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.rendering import say
from cli.system import system_actor, system_clock, system_entropy
from cli.wiring import DEFAULT_LEDGER, LedgerOption, key_path, write_key
from ledger.errors import LedgerFileError
from ledger.events.anchor import LedgerOpened
from ledger.events.codec import draft_event
from ledger.ids import format_uuid7
from ledger.signed_note import SignerKey, format_verifier_key
from ledger.store.sqlite import SqliteStore

_SEED_BYTES = 32


def init(
    ledger: LedgerOption = DEFAULT_LEDGER,
    origin: Annotated[
        str,
        typer.Option("--origin", help="The log's public name, such as example.org/my-benchmark."),
    ] = "forecast-ledger.local/evaluation",
) -> None:
    """Create a ledger and, beside it, its signing key.

    The key has mode 0600. Nothing that exists is replaced.
    """
    key = create_ledger(ledger, origin)
    say(f"created {ledger} for {origin}")
    say(f"signing key in {key_path(ledger)}, mode 0600: keep it; whoever has it can sign for you")
    say(f"verifier key to publish: {format_verifier_key(key.verifier_key)}")


def create_ledger(ledger: Path, origin: str) -> SignerKey:
    """Create a ledger file and its signing key; neither replaces anything.

    Raises:
        LedgerFileError: one of the files is there already, or their folder is not.
        BadInputError: the origin or the actor is not a name that fits.
    """
    key = SignerKey(name=origin, seed=system_entropy(_SEED_BYTES))
    if not ledger.parent.is_dir():
        raise LedgerFileError(f"there is no folder {ledger.parent}. Create it first.")
    if ledger.exists() or key_path(ledger).exists():
        taken = ledger if ledger.exists() else key_path(ledger)
        raise LedgerFileError(f"{taken} exists already. Choose another path; none is replaced.")
    log_id = format_uuid7(int(system_clock().timestamp() * 1000), system_entropy(10))
    opened = LedgerOpened(
        origin=origin,
        log_id=log_id,
        format="forecast-ledger/1",
        verifier_keys=(format_verifier_key(key.verifier_key),),
    )
    write_key(key_path(ledger), key)
    try:
        SqliteStore.create(
            ledger,
            draft_event(opened, actor=system_actor()),
            log_id=log_id,
            clock=system_clock,
            entropy=system_entropy,
        ).close()
    except BaseException:
        # Also when interrupted: a key without its ledger would be in the way of the next try.
        key_path(ledger).unlink()
        raise
    return key
