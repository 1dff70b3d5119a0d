"""What a command prints: JSON for programs, short tables and sentences for people.

Text out of a ledger was written by somebody else: control characters and marks that change the
direction of writing are printed as escapes, so that no ledger can rewrite the terminal that shows
it. A reader that went away (`ledger log | head`) is not an error.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TextIO

from ledger.canonical import canonicalize, format_readable

_UNSAFE = (
    *range(0x20),
    *range(0x7F, 0xA0),
    0x061C,
    *range(0x200E, 0x2010),
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
)
_ESCAPES = {code: f"\\u{code:04x}" for code in _UNSAFE if code != 0x0A}


def prepare_streams() -> None:
    """Make output the same bytes on every system: UTF-8 where piped, bare line feeds."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            # Closed by the caller (`>&-`): nobody reads, and nothing else must get its number.
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
        elif isinstance(stream, io.TextIOWrapper):
            encoding = None if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace", newline="\n")


def finish_streams() -> None:
    """Flush standard output while an error can still be told.

    Raises:
        OSError: the output cannot be written, such as on a full disk.
    """
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _silence(sys.stdout)
    except OSError:
        _silence(sys.stdout)
        raise


def print_json(value: object) -> None:
    """Print a value as readable JSON on standard output."""
    _write(sys.stdout, format_readable(value).decode("utf-8").translate(_ESCAPES))


def print_json_rows(rows: Iterable[object]) -> None:
    """Print a list as JSON, one element a line, without holding it in memory."""
    _write(sys.stdout, "[")
    separator = "\n"
    for row in rows:
        text = canonicalize(row).decode("utf-8").translate(_ESCAPES)
        if not _write(sys.stdout, separator + text):
            return
        separator = ",\n"
    _write(sys.stdout, "\n]\n")


def say(text: str = "") -> bool:
    """Print a line for a person; return whether anybody still reads."""
    return _write(sys.stdout, text.translate(_ESCAPES) + "\n")


def complain(text: str) -> None:
    """Print a line to standard error."""
    _write(sys.stderr, text.translate(_ESCAPES).rstrip("\n") + "\n")


def print_table(head: Sequence[str], rows: Iterable[Sequence[object]], *, indent: str = "") -> None:
    """Print columns padded to their widest cell; numbers to the right, None as a dash."""
    table = [tuple(head), *(tuple(_cell(value) for value in row) for row in rows)]
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]
    numeric = [
        all(_is_number(row[i]) for row in table[1:]) and len(table) > 1 for i in range(len(head))
    ]
    for row in table:
        cells = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        )
        say((indent + "  ".join(cells)).rstrip())


def _write(stream: TextIO, text: str) -> bool:
    try:
        stream.write(text)
    except BrokenPipeError:
        _silence(stream)
        return False
    return True


def _silence(stream: TextIO) -> None:
    """Send what is still buffered nowhere, so that the exit code of the command stays its own."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _is_number(text: str) -> bool:
    return text == "-" or text.lstrip("-").replace(".", "", 1).isdigit()
