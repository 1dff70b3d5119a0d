"""Strict reading of an author's YAML into a model, and the one sentence when a field is wrong."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ledger.canonical import canonicalize_exact
from ledger.errors import BadInputError

Model = TypeVar("Model", bound=BaseModel)

_WANTED = {
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping of names to texts",
    "model_type": "a mapping of fields",
    "int_type": "a whole number without quotes",
    "bool_type": "true or false",
}


def read_fields(model: type[Model], data: object, *, where: str, show_values: bool = True) -> Model:
    """Check the values of a YAML document against a model.

    Args:
        model: a strict model; YAML lists become its tuples.
        data: JSON values, as `ledger.strict_yaml` gives them.
        where: the file, which begins every message.
        show_values: False keeps the offending value out of the message (private files).

    Raises:
        BadInputError: the first wrong field, with its path and what is expected there.
    """
    try:
        # In JSON mode a strict model takes a list for a tuple and still converts nothing else.
        return model.model_validate_json(canonicalize_exact(data))
    except ValidationError as error:
        raise _explain(error.errors(include_url=False), where, show_values=show_values) from error
    except BadInputError as error:
        raise BadInputError(error.what, where=where, remedy=error.remedy) from error


def format_path(parts: tuple[int | str, ...]) -> str:
    """Write a field path: ('source_packet', 0, 'dated') becomes `source_packet[0].dated`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return text.removeprefix(".")


def _explain(details: list[ErrorDetails], where: str, *, show_values: bool) -> BadInputError:
    first = details[0]
    path = format_path(first["loc"])
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, BadInputError):
        path = ".".join(part for part in (path, cause.where) if part)
        what, remedy = cause.what, cause.remedy
    else:
        what, remedy = _describe(first, show_values=show_values)
    if cause is not None and not show_values:
        what = what.replace(repr(first["input"]), "the value")
    more = f" ({len(details) - 1} more after it)" if len(details) > 1 else ""
    place = f"{where}: {path}" if path else where
    return BadInputError(f"{what}{more}", where=place, remedy=remedy)


def _describe(detail: ErrorDetails, *, show_values: bool) -> tuple[str, str]:
    kind, context = detail["type"], detail.get("ctx", {})
    shown = repr(detail["input"])[:60] if show_values else "the value"
    if kind == "missing":
        return "is missing", "Add the field."
    if kind == "extra_forbidden":
        return "is not a field of this file", "Remove it or correct its spelling."
    if kind == "literal_error":
        return f"{shown} is not one of {context['expected']}", "Write one of them."
    if kind == "string_type":
        return f"{shown} is not text", "Write text, in quotes where it looks like a number."
    if kind == "string_pattern_mismatch":
        return f"{shown} has not the form {context['pattern']}", "Write it in that form."
    if kind in _WANTED:
        return f"{shown} is not {_WANTED[kind]}", f"Write {_WANTED[kind]}."
    return f"{shown} is refused: {detail['msg']}", "Correct the field."
