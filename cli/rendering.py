"""What a command prints: JSON for programs, short tables and sentences for people."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from ledger.canonical import format_readable


def print_json(value: object) -> None:
    """Print a value as readable JSON on standard output."""
    sys.stdout.write(format_readable(value).decode("utf-8"))


def say(text: str = "") -> None:
    """Print a line for a person."""
    sys.stdout.write(text + "\n")


def complain(text: str) -> None:
    """Print a line to standard error."""
    sys.stderr.write(text + "\n")


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


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def _is_number(text: str) -> bool:
    return text == "-" or text.lstrip("-").replace(".", "", 1).isdigit()
