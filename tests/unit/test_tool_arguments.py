"""Reading a model's arguments of a search tool."""

from __future__ import annotations

import pytest

from forecasting.tools.arguments import SearchArguments, check_arguments, parse_arguments
from ledger.errors import BadInputError

AS_OF = "2025-06-30T12:00:00.000000Z"


def test_texts_are_read_and_null_is_absent() -> None:
    assert parse_arguments('{"query": "a b", "since": null}') == {"query": "a b"}


@pytest.mark.parametrize(
    "text",
    ["", "query", "[]", "null", '{"query": 7}', '{"query": ["a"]}', '{"query": "a", "query": "b"}'],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(BadInputError):
        parse_arguments(text)


def test_arguments_are_trimmed_and_bounded_by_as_of() -> None:
    checked = check_arguments({"query": " bridge ", "since": "2025-06-30"}, as_of=AS_OF)
    assert checked == SearchArguments("bridge", "2025-06-30")
    assert check_arguments({"query": "x", "since": ""}, as_of=AS_OF).since is None
    with pytest.raises(BadInputError, match="since 2025-07-01 is after 2025-06-30"):
        check_arguments({"query": "x", "since": "2025-07-01"}, as_of=AS_OF)
    with pytest.raises(BadInputError, match="'end' does not exist"):
        check_arguments({"query": "x", "end": "2025-07-01"}, as_of=AS_OF)
