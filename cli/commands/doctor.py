"""`ledger doctor`: does this installation work, and what does it lack for live runs."""

from __future__ import annotations

import importlib.metadata
import os
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import typer

from cards.lint import lint_pack
from cards.pack import list_packs, load_pack
from cli import exit_codes
from cli.commands.setup import create_ledger
from cli.rendering import print_json, say
from cli.wiring import JsonOption, key_path, read_key, reading, signed_checkpoint
from ledger.errors import LedgerError
from ledger.verify.check import verify_file

DEPENDENCIES = ("numpy", "scipy", "pydantic", "sqlite-utils", "rfc8785", "cryptography", "typer")
PROVIDER_KEYS = ("OPENAI_API_KEY", "EXA_API_KEY", "ASKNEWS_CLIENT_ID", "METACULUS_TOKEN")

_OLDEST_PYTHON = (3, 11)
# STRICT tables came with this version.
_OLDEST_SQLITE = (3, 37, 0)


def doctor(json: JsonOption = False) -> None:
    """Check this installation, offline.

    Interpreter, libraries, packs, and a ledger made and verified in a private folder. Exit code 1
    if a check fails. Keys for live runs are looked for, never shown.
    """
    checks = [_run_check(name, check) for name, check in CHECKS]
    keys = {name: name in os.environ for name in PROVIDER_KEYS}
    if json:
        print_json(
            {
                "ok": all(check["ok"] for check in checks),
                "python": sys.version.split()[0],
                "versions": _versions(),
                "packs": [pack.header.id for pack in list_packs()],
                "checks": checks,
                "keys": keys,
            }
        )
    else:
        for check in checks:
            say(f"{'ok  ' if check['ok'] else 'FAIL'}  {check['check']}: {check['detail']}")
        for name, known in keys.items():
            say(f"      {name}: {'set' if known else 'not set, needed only for live runs'}")
    if not all(check["ok"] for check in checks):
        raise typer.Exit(exit_codes.FOUND)


def _run_check(name: str, check: Callable[[], str]) -> dict[str, str | bool]:
    try:
        return {"check": name, "ok": True, "detail": check()}
    except (LedgerError, OSError, importlib.metadata.PackageNotFoundError) as error:
        return {"check": name, "ok": False, "detail": str(error)}


def _python() -> str:
    if sys.version_info < _OLDEST_PYTHON:
        raise LedgerError(f"{sys.version.split()[0]} is older than 3.11. Install a newer one.")
    return sys.version.split()[0]


def _sqlite() -> str:
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise LedgerError(f"{sqlite3.sqlite_version} is older than 3.37. Install a newer Python.")
    return sqlite3.sqlite_version


def _libraries() -> str:
    return ", ".join(f"{name} {version}" for name, version in _versions().items())


def _versions() -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in ("forecast-ledger", *DEPENDENCIES)}


def _packs() -> str:
    names = []
    for summary in list_packs():
        pack = load_pack(summary.root)
        for finding in lint_pack(pack):
            if finding.severity == "error" and not finding.accepted_because:
                raise LedgerError(f"{pack.id}: [{finding.rule}] {finding.message}")
        names.append(f"{pack.id} ({len(pack.cards)} cards)")
    return ", ".join(names)


def _round_trip() -> str:
    """Make a ledger in a private folder, sign its head and verify it against that checkpoint."""
    with tempfile.TemporaryDirectory(prefix="forecast-ledger-doctor-") as folder:
        ledger = Path(folder) / "ledger.db"
        create_ledger(ledger, "forecast-ledger.local/doctor")
        with reading(ledger) as store:
            _, text = signed_checkpoint(store, read_key(key_path(ledger)))
        result = verify_file(ledger, checkpoint_text=text)
    if result.verdict != "sound":
        raise LedgerError(f"a ledger made here verifies as {result.verdict}")
    return "made, signed and verified: sound"


CHECKS: tuple[tuple[str, Callable[[], str]], ...] = (
    ("Python", _python),
    ("SQLite", _sqlite),
    ("libraries", _libraries),
    ("packs", _packs),
    ("a ledger", _round_trip),
)
