"""CSV for machines that people open in a spreadsheet: RFC 4180, bare line feeds, no formulas.

Free text from outside (labels, model names, response ids, reasons) may begin with `=`, `+`, `-`,
`@`, a tab or a carriage return, and a spreadsheet would run it. Such a cell gets one apostrophe in
front, which a spreadsheet shows as text; a plain number keeps its sign. The JSON lines beside the
table hold the text unchanged (docs/spec/preregistration.md, "What replay writes").
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_ROWS_A_PIECE = 2_000


def format_csv(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """Yield a header and rows in pieces; None is empty, floats by shortest repr, UTF-8."""
    lines = _Lines()
    # A writer that ends lines with a bare line feed leaves a carriage return unquoted (until 3.13).
    writer = csv.writer(lines, lineterminator="\r\n")
    writer.writerow(columns)
    source = iter(rows)
    while chunk := list(islice(source, _ROWS_A_PIECE)):
        writer.writerows([guard_cell(row[name]) for name in columns] for row in chunk)
        yield lines.take()
    yield lines.take()


def guard_cell(value: object) -> object:
    """Return a cell that no spreadsheet runs: text that looks like a formula gets an apostrophe."""
    if isinstance(value, str) and value.startswith(_FORMULA) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


class _Lines:
    """What csv.writer writes into: text until it is taken as bytes."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    def write(self, text: str) -> int:
        """Keep a line, ended by a bare line feed."""
        self._parts.append(f"{text[:-2]}\n")
        return len(text)

    def take(self) -> bytes:
        """Return what was written since the last time."""
        data = "".join(self._parts).encode()
        self._parts.clear()
        return data
