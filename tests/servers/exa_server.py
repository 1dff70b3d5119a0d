"""Exa's search interface on loopback: the wire format of its service, and one page to search."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from servers.loopback import Loopback, Reply, serve

PATH = "/search"
KEY = "exa-key-0123456789abcdef"


def result(**changes: object) -> dict[str, Any]:
    """One search result as the service writes it, with some fields replaced (`...` removes)."""
    whole: dict[str, object] = {
        "id": "https://example.org/a",
        "url": "https://example.org/a",
        "title": "A title",
        "score": 0.7,
        "publishedDate": "2025-06-01T08:00:00.000Z",
        "crawlDate": "2025-06-02T03:04:05Z",
        "snapshotAt": "2025-06-02T03:04:05Z",
        "author": "A. Writer",
        "text": "What was known.",
        "highlights": ["known"],
        **changes,
    }
    return {key: item for key, item in whole.items() if item is not ...}


def page(*results: object, **changes: object) -> dict[str, Any]:
    """A whole answer."""
    return {
        "requestId": "request-1",
        "resolvedSearchType": "neural",
        "results": list(results),
        "costDollars": {"total": 0.005},
        "searchTime": 12.5,
        **changes,
    }


@contextmanager
def serve_exa(*replies: Reply) -> Iterator[Loopback]:
    """Serve the replies, one a search."""
    with serve() as loopback:
        loopback.reply(PATH, *replies)
        yield loopback
