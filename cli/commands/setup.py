"""`ledger init` and `ledger doctor`."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from cards.pack import list_packs
from cli.rendering import print_json, say
from cli.system import system_actor, system_clock, system_entropy
from cli.wiring import DEFAULT_LEDGER, JsonOption, LedgerOption, key_path, write_key
from ledger.errors import LedgerFileError
from ledger.events.anchor import LedgerOpened
from ledger.events.codec import draft_event
from ledger.ids import format_uuid7
from ledger.signed_note import SignerKey, format_verifier_key
from ledger.store.sqlite import SqliteStore

_SEED_BYTES = 32
_KEYS = ("OPENAI_API_KEY", "EXA_API_KEY", "ASKNEWS_CLIENT_ID", "METACULUS_TOKEN")


def init(
    ledger: LedgerOption = DEFAULT_LEDGER,
    origin: Annotated[
        str,
        typer.Option(help="The log's public name, such as example.org/my-benchmark."),
    ] = "forecast-ledger.local/evaluation",
) -> None:
    """Create a ledger: its first event, and a signing key beside it (mode 0600)."""
    key = create_ledger(ledger, origin)
    say(f"created {ledger} for {origin}")
    say(f"signing key in {key_path(ledger)}, mode 0600: keep it; whoever has it can sign for you")
    say(f"verifier key to publish: {format_verifier_key(key.verifier_key)}")


def create_ledger(ledger: Path, origin: str) -> SignerKey:
    """Create a ledger file and its signing key; neither replaces anything.

    Raises:
        LedgerFileError: one of the files is there already.
    """
    key = SignerKey(name=origin, seed=system_entropy(_SEED_BYTES))
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
    except LedgerFileError:
        key_path(ledger).unlink()
        raise
    return key


def doctor(json: JsonOption = False) -> None:
    """Say what this installation has: versions, packs, keys in the environment."""
    report = {
        "python": sys.version.split()[0],
        "versions": {
            name: importlib.metadata.version(name)
            for name in ("forecast-ledger", "sqlite-utils", "pydantic", "numpy", "cryptography")
        },
        "packs": [pack.header.id for pack in list_packs()],
        "keys": {name: name in os.environ for name in _KEYS},
    }
    if json:
        print_json(report)
        return
    say(f"Python {report['python']}")
    for name, version in report["versions"].items():  # type: ignore[union-attr, attr-defined]
        say(f"{name} {version}")
    say(f"packs: {', '.join(pack.header.id for pack in list_packs())}")
    for name in _KEYS:
        say(f"{name}: {'set' if name in os.environ else 'not set (needed only for live runs)'}")
