"""The entry point: what an error looks like to a person, and which exit code goes with it.

The commands are imported inside `main`, so that an interrupted or broken start also ends in one
sentence.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import traceback
from collections.abc import Sequence
from pathlib import PurePath

from pydantic import ValidationError
from typer.exceptions import TyperException

from cli import exit_codes
from cli.rendering import complain, finish_streams, prepare_streams
from ledger.errors import BadInputError, BugError, DamagedLedgerError, LedgerError


def main() -> None:
    """Run the command line; a refusal is one sentence on standard error and exit code 2."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command; return its exit code. No exception leaves but those asked for.

    $LEDGER_TRACEBACK set to anything lets a fault of ours through as a traceback.
    """
    prepare_streams()
    try:
        code = _run_command(arguments)
        finish_streams()
    except KeyboardInterrupt:
        code = exit_codes.INTERRUPTED
    except Exception as error:
        if os.environ.get("LEDGER_TRACEBACK"):
            raise
        code, sentence = describe_error(error)
        complain(sentence)
    if code == exit_codes.INTERRUPTED:
        complain("ledger: interrupted; nothing was half-written.")
    return code


def describe_error(error: Exception) -> tuple[int, str]:
    """Return the exit code of an error, and the sentence that a person reads."""
    if isinstance(error, TyperException):
        return exit_codes.USAGE, _usage(error)
    if isinstance(error, DamagedLedgerError):
        return exit_codes.FOUND, f"ledger: {_one_line(error)}"
    if isinstance(error, BadInputError):
        return exit_codes.USAGE, f"ledger: {_input(error)}"
    if isinstance(error, LedgerError) and not isinstance(error, BugError):
        return exit_codes.USAGE, f"ledger: {_one_line(error)}"
    if isinstance(error, sqlite3.Error):
        return exit_codes.USAGE, f"ledger: the file cannot be used: {error}. Run `ledger verify`."
    if isinstance(error, OSError):
        name = f"{error.filename}: " if error.filename else ""
        what = error.strerror or error
        return exit_codes.USAGE, f"ledger: {name}{what}. Check the path and its permissions."
    if isinstance(error, (MemoryError, RecursionError)):
        return exit_codes.USAGE, "ledger: the input is too large. Split it and try again."
    if isinstance(error, ValidationError):
        return exit_codes.USAGE, f"ledger: {_field(error)}"
    return exit_codes.BUG, _bug(error)


def _run_command(arguments: Sequence[str]) -> int:
    from cli.app import app  # noqa: PLC0415 - see the top of the file

    code = app(list(arguments), prog_name="ledger", standalone_mode=False)
    return code if isinstance(code, int) else exit_codes.DONE


def _usage(error: TyperException) -> str:
    message = error.format_message()
    if message.startswith("Usage:"):
        return message
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "ledger"
    return f"ledger: {message.rstrip('.')}. Run `{command} --help`."


def _input(error: BadInputError) -> str:
    place = f"{error.where}: " if error.where else ""
    return _one_line(f"{place}{error.what.rstrip('.')}. {error.remedy}")


def _field(error: ValidationError) -> str:
    """Name the option behind a payload's field that was refused: they share their names."""
    first = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    return _one_line(f"{place}: {first['msg'].rstrip('.')}. Correct it and try again.")


def _one_line(text: object) -> str:
    return " ".join(str(text).split())


def _bug(error: Exception) -> str:
    place = traceback.extract_tb(error.__traceback__)[-1]
    name = PurePath(place.filename).name
    return (
        "ledger: this is a fault of forecast-ledger, please report it:"
        f" {type(error).__name__} at {name}:{place.lineno}: {_one_line(error)}"
    )
