"""Strict reading of foreign question files: JSON and JSON lines into models, one-sentence errors.

Foreign numbers may be floats, which the ledger's own reader refuses; unknown fields are the model's
choice. A value of a private file never stands in a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from ledger.canonical import canonicalize, parse_strict
from ledger.errors import BadInputError
from ledger.field_errors import describe_problem

Model = TypeVar("Model", bound=BaseModel)

Filled = Annotated[
    str, StringConstraints(pattern=r"\S"), Field(description="text that is not blank")
]
"""Text with at least one character that is not white space."""


class ForeignRow(BaseModel):
    """Base of rows whose source may grow fields: unknown ones are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class ClosedRow(BaseModel):
    """Base of rows that have exactly their fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def read_json(data: bytes, *, where: str) -> Any:  # noqa: ANN401 - JSON is any of seven types
    """Read one JSON document; raises BadInputError that begins with `where`."""
    try:
        return parse_strict(data)
    except BadInputError as error:
        raise BadInputError(error.what, where=where, remedy=error.remedy) from error


def read_lines(data: bytes, *, where: str) -> Iterator[tuple[str, Any]]:
    """Read JSON lines, blank ones passed over; yields the place `where:LINE` and the value."""
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.strip():
            place = f"{where}:{number}"
            yield place, read_json(line, where=place)


def read_row(model: type[Model], value: object, *, where: str, show_values: bool = True) -> Model:
    """Check a JSON value against a model.

    Args:
        model: a strict model; JSON lists become its tuples.
        value: as `read_json` gave it.
        where: begins the message.
        show_values: False keeps every value out of the message (labels).

    Raises:
        BadInputError: the first wrong field, with its path and what is expected there.
    """
    try:
        return model.model_validate_json(canonicalize(value))
    except ValidationError as error:
        # The cause would show the values in a traceback, so it is not chained.
        raise _explain(error, model, where, show_values=show_values) from None


def build(
    model: type[Model], fields: Mapping[str, object], *, where: str, show_values: bool = True
) -> Model:
    """Build one of the ledger's own models from foreign values, which may not fit it.

    Raises:
        BadInputError: as `read_row`; a text that is too long for its field, say.
    """
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise _explain(error, model, where, show_values=show_values) from None


def _explain(
    error: ValidationError, model: type[BaseModel], where: str, *, show_values: bool
) -> BadInputError:
    path, sentence = describe_problem(error, model)
    kind = error.errors(include_url=False)[0]["type"]
    if not show_values and kind not in {"missing", "extra_forbidden"}:
        expected = sentence.rpartition("; expected")[2]
        sentence = f"has a value that is not shown; expected{expected}"
    return BadInputError(sentence, where=f"{where}: {path}", remedy="Correct it.")


def refuse_twice(names: Iterable[str], *, where: str) -> None:
    """Raise BadInputError where a name stands twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise BadInputError(f"{name[:80]!r} stands twice.", where=where, remedy="Keep one.")
        seen.add(name)
