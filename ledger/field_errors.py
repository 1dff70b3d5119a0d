"""Turn a validation error into one sentence: the field's path, what is wrong, what is expected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails


def describe_problem(error: ValidationError, model: type[BaseModel]) -> tuple[str, str]:
    """Describe the first problem of a validation.

    Returns:
        The field's path such as `methods[2].draws`, and a sentence such as
        `is missing; expected a whole number from 1 to 10000.`
    """
    details = error.errors(include_url=False)[0]
    location = [part for part in details["loc"] if isinstance(part, int) or part.isidentifier()]
    schema = model.model_json_schema()
    expected = _expected(_schema_at(schema, schema, location))
    return _path(location), f"{_problem(details)}; expected {expected}."


def _path(location: list[int | str]) -> str:
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.lstrip(".") or "the top level"


def _problem(details: ErrorDetails) -> str:
    if details["type"] == "missing":
        return "is missing"
    if details["type"] == "extra_forbidden":
        return "is not a field that exists here"
    return f"has the value {str(details['input'])[:60]!r}"


def _schema_at(
    root: Mapping[str, Any], schema: Mapping[str, Any], location: list[int | str]
) -> Mapping[str, Any]:
    """Walk a JSON schema; an unknown field leads to the object that refused it."""
    schema = _resolve(root, schema)
    if not location:
        return schema
    inner: Mapping[str, Any] | None
    if isinstance(location[0], int):
        inner = schema.get("items") or next(iter(schema.get("prefixItems", [])), {})
    else:
        inner = schema.get("properties", {}).get(location[0])
        if inner is None:
            inner = schema.get("additionalProperties")
        if not isinstance(inner, Mapping):
            return schema
    return _schema_at(root, inner, location[1:])


def _resolve(root: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a reference, and an `X | null` to X."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rsplit("/", 1)[-1]
        return _resolve(root, root["$defs"][name])
    options = [o for o in schema.get("anyOf", []) if o.get("type") != "null"]
    return _resolve(root, options[0]) if options else schema


def _expected(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    if "const" in schema:
        const = schema["const"]
        return str(const).lower() if isinstance(const, bool) else str(const)
    kind = schema.get("type")
    if kind == "object":
        fields = schema.get("properties")
        return f"a mapping with exactly {', '.join(fields)}" if fields else "a mapping of texts"
    if kind == "array":
        least = schema.get("minItems", 0)
        return f"a list of at least {least}" if least else "a list"
    if kind == "boolean":
        return "true or false"
    if kind == "integer":
        low = schema.get("minimum")
        high = schema.get("maximum")
        span = f" from {low}" if low is not None else ""
        return f"a whole number{span}" + (f" to {high}" if high is not None else "")
    return str(schema.get("description", "text"))
