"""Recorded tool answers back to what was found, without the service: for resuming and replay.

To add a tool: one row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from forecasting.ports import Found
from forecasting.tools import asknews, corpus, exa, market
from ledger.errors import BadInputError
from ledger.events.base import RawBytes

READERS: Final[Mapping[str, Callable[[RawBytes], tuple[Found, ...]]]] = {
    "exa_search": exa.read_recorded,
    "asknews_latest": asknews.read_recorded,
    "asknews_archive": asknews.read_recorded,
    "corpus_search": corpus.read_recorded,
    market.NAME: market.read_recorded,
}


def read_recorded(tool: str, raw: RawBytes) -> tuple[Found, ...]:
    """Read what a recorded call of a tool found.

    Raises:
        BadInputError: no such tool, or octets that are no answer of it.
    """
    reader = READERS.get(tool)
    if reader is None:
        raise BadInputError(f"there is no tool {tool!r}", remedy=f"Known: {', '.join(READERS)}.")
    return reader(raw)
