"""What a model may ask of a search tool: a query, and a day from which on. Nothing else exists.

The schema names no argument that could carry a time after as-of, and an argument that it does not
name is refused unsent, so that neither a model nor an article that instructs it can widen the
timebox.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from forecasting.ports import JsonObject
from ledger.canonical import canonicalize, parse_strict
from ledger.clock import parse_date
from ledger.errors import BadInputError

MAX_QUERY = 400
"""Longest query in characters."""

SEARCH_PARAMETERS: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "query": {
            "type": "string",
            "description": f"What to search for, at most {MAX_QUERY} characters.",
        },
        "since": {
            "type": "string",
            "description": "Optional first day of publication, as YYYY-MM-DD.",
        },
    },
    "required": ["query"],
    "additionalProperties": False,
}
"""JSON schema of the arguments of every search tool."""


@dataclass(frozen=True, slots=True)
class SearchArguments:
    """Checked arguments: a query that is not blank, and a day not after as-of, or None."""

    query: str
    since: str | None


def parse_arguments(arguments_json: str) -> dict[str, str]:
    """Read a model's arguments, which must be an object of texts; null counts as absent.

    Raises:
        BadInputError: no strict JSON, no object, or a value that is no text.
    """
    value = parse_strict(arguments_json)
    if not isinstance(value, dict):
        raise BadInputError("the arguments are not an object", remedy="Give a JSON object.")
    for name, item in value.items():
        if item is not None and not isinstance(item, str):
            raise BadInputError(f"the argument {name[:60]!r} is not text", remedy="Give text.")
    return {name: item for name, item in value.items() if item is not None}


def check_arguments(arguments: Mapping[str, str], *, as_of: str) -> SearchArguments:
    """Check arguments against the schema and against as-of.

    Raises:
        BadInputError: an argument that does not exist, a query that is missing, blank, too long or
            not Unicode, or a `since` that is no day or lies after as-of.
    """
    if unknown := sorted(arguments.keys() - {"query", "since"}):
        raise BadInputError(
            f"the argument {unknown[0][:60]!r} does not exist", remedy="Give query, and since."
        )
    query = arguments.get("query", "").strip()
    if not query or len(query) > MAX_QUERY:
        raise BadInputError(
            f"the query has {len(query)} characters", remedy=f"Give 1 to {MAX_QUERY}."
        )
    canonicalize(query)
    since = arguments.get("since") or None
    if since is not None and parse_date(since).isoformat() > as_of[:10]:
        raise BadInputError(f"since {since} is after {as_of[:10]}", remedy="Give an earlier day.")
    return SearchArguments(query, since)
