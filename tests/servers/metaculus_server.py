"""Metaculus on loopback: both forms of a post, as the service writes them; all content made up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from servers.loopback import Loopback, Reply, serve

TOKEN = "metaculus-token-0123456789"  # noqa: S105 - made up


def path(post_id: int, form: str = "posts") -> str:
    """Address of a post in one of its two forms."""
    return f"/api/posts/{post_id}/" if form == "posts" else f"/api2/questions/{post_id}/"


def post(post_id: int = 101, *, form: str = "posts", **question: Any) -> dict[str, Any]:
    """One resolved post, some fields of its question replaced; `api2` holds no texts."""
    texts = {"description": "About.", "resolution_criteria": "If so.", "fine_print": "Only so."}
    return {
        "id": post_id,
        "title": "Will the bridge open?",
        "slug": "bridge",
        "status": "resolved",
        "resolved": True,
        "open_time": "2025-03-01T12:30:00Z",
        "nr_forecasters": 12,
        "projects": {},
        "question": {
            "id": post_id + 9_000,
            "post_id": post_id,
            "type": "binary",
            "status": "resolved",
            "resolution": "no",
            "open_time": "2025-03-01T12:30:00Z",
            "cp_reveal_time": "2025-03-04T12:30:00Z",
            "scheduled_close_time": "2025-06-30T23:59:00Z",
            "scheduled_resolve_time": "2025-07-01T12:00:00Z",
            "actual_close_time": "2025-06-12T08:00:00Z",
            "actual_resolve_time": "2025-06-12T08:00:00Z",
            "resolution_set_time": "2025-06-13T09:00:00Z",
            "options": None,
            "scaling": {"range_min": None, "range_max": None, "zero_point": None},
            "aggregations": {
                "recency_weighted": {
                    "history": [
                        {"start_time": 1741132800.0, "end_time": 1743811200.0, "centers": [0.42]},
                        {"start_time": 1743811200.0, "end_time": None, "centers": [0.2]},
                    ]
                }
            },
            "my_forecasts": {"history": []},
            **(texts if form == "posts" else dict.fromkeys(texts)),
            **question,
        },
    }


@contextmanager
def serve_metaculus(post_id: int, *replies: Reply, form: str = "posts") -> Iterator[Loopback]:
    """Serve the replies for one post, one a request."""
    with serve() as loopback:
        loopback.reply(path(post_id, form), *replies)
        yield loopback
