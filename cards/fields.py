"""Strict reading of an author's YAML into a model, and the one sentence when a field is wrong."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ledger.canonical import canonicalize_exact
from ledger.errors import BadInputError
from ledger.field_errors import describe_problem

Model = TypeVar("Model", bound=BaseModel)


def read_fields(model: type[Model], data: object, *, where: str, show_values: bool = True) -> Model:
    """Check the values of a YAML document against a model.

    Args:
        model: a strict model; YAML lists become its tuples.
        data: JSON values, as `ledger.strict_yaml` gives them.
        where: the file, which begins every message.
        show_values: False keeps every value out of the message (private files).

    Raises:
        BadInputError: the first wrong field, with its path and what is expected there.
    """
    try:
        # In JSON mode a strict model takes a list for a tuple and still converts nothing else.
        return model.model_validate_json(canonicalize_exact(data))
    except ValidationError as error:
        # The cause would show the values in a traceback, so it is not chained.
        raise _explain(error, model, where, show_values=show_values) from None
    except BadInputError as error:
        raise BadInputError(error.what, where=where, remedy=error.remedy) from error


def _explain(
    error: ValidationError, model: type[BaseModel], where: str, *, show_values: bool
) -> BadInputError:
    details = error.errors(include_url=False)
    path, sentence = describe_problem(error, model)
    cause = details[0].get("ctx", {}).get("error")
    more = f"{len(details) - 1} more after it." if len(details) > 1 else ""
    if isinstance(cause, BadInputError) and cause.where:
        # A rule between fields names its own field; it belongs to the model at `loc`.
        remedy = f"{cause.remedy} {more}".strip()
        return BadInputError(cause.what, where=f"{where}: {cause.where}", remedy=remedy)
    if not show_values and details[0]["type"] not in {"missing", "extra_forbidden"}:
        sentence = f"has a value that is not shown; expected{sentence.partition('; expected')[2]}"
    advice = "Put it in quotes." if _looks_like_text(details[0]) else "Correct the field."
    return BadInputError(sentence, where=f"{where}: {path}", remedy=f"{advice} {more}".strip())


def _looks_like_text(detail: ErrorDetails) -> bool:
    # The strict YAML reader makes 7 an integer and true a truth value unless they are quoted.
    return detail["type"] == "string_type" and isinstance(detail["input"], int)
