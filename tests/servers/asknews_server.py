"""AskNews on loopback: the token endpoint and the news search, as the service writes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from servers.loopback import Loopback, Reply, serve

PATH = "/v1/news/search"
TOKEN_PATH = "/oauth2/token"  # noqa: S105 - an address
CLIENT_ID = "client-0123456789"
SECRET = "asknews-secret-0123456789"  # noqa: S105 - made up
TOKEN = "access-token-abcdef0123456789"  # noqa: S105 - made up


def article(**changes: object) -> dict[str, Any]:
    """One article with every field that the SDK requires, some replaced (`...` removes)."""
    whole: dict[str, object] = {
        "article_url": "https://example.org/news",
        "article_id": "7f1f9a5e-0000-4000-8000-000000000001",
        "classification": ["Politics"],
        "country": "NO",
        "source_id": "example",
        "page_rank": 1,
        "domain_url": "example.org",
        "eng_title": "A headline",
        "entities": {},
        "keywords": ["k"],
        "language": "en",
        "pub_date": "2025-06-29T12:00:00+00:00",
        "crawl_date": "2025-06-29T13:00:00+00:00",
        "summary": "What was known.",
        "title": "En overskrift",
        "sentiment": 0,
        "as_string_key": "1",
        **changes,
    }
    return {key: item for key, item in whole.items() if item is not ...}


def page(*articles: object) -> dict[str, Any]:
    """A whole answer."""
    return {
        "as_dicts": list(articles),
        "as_string": None,
        "offset": 10,
        "usage": {"credits": 1},
    }


def token_reply(**changes: Any) -> Reply:
    """A granted token."""
    granted = {"access_token": TOKEN, "scope": "news", "token_type": "bearer", "expires_in": 3600}
    return Reply({**granted, **changes})


@contextmanager
def serve_asknews(*replies: Reply, token: Reply | None = None) -> Iterator[Loopback]:
    """Serve the replies, one a search, and tokens."""
    with serve() as loopback:
        loopback.reply(TOKEN_PATH, token or token_reply())
        loopback.reply(PATH, *replies)
        yield loopback
