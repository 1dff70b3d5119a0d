"""The parameters that a plan may register, and where each stands in a request of each route.

A plan writes every parameter as text, since no float exists in an event. A name that is not listed,
or that a route does not have, is refused before anything is sent: a parameter that is silently
dropped would make the registered configuration a lie.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ledger.canonical import MAX_INTEGER
from ledger.errors import BadInputError

Place = tuple[str, ...]
"""A path of keys in a request body."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: its name in a plan, the form of its text, its place in each route or None."""

    name: str
    form: Literal["number", "integer", "text", "flag", "list"]
    chat: Place | None
    responses: Place | None


PARAMETERS: tuple[Parameter, ...] = (
    Parameter("temperature", "number", ("temperature",), ("temperature",)),
    Parameter("top_p", "number", ("top_p",), ("top_p",)),
    Parameter("presence_penalty", "number", ("presence_penalty",), None),
    Parameter("frequency_penalty", "number", ("frequency_penalty",), None),
    Parameter("max_output_tokens", "integer", ("max_completion_tokens",), ("max_output_tokens",)),
    Parameter("seed", "integer", ("seed",), None),
    Parameter("reasoning_effort", "text", ("reasoning_effort",), ("reasoning", "effort")),
    Parameter("verbosity", "text", ("verbosity",), ("text", "verbosity")),
    Parameter("service_tier", "text", ("service_tier",), ("service_tier",)),
    Parameter("store", "flag", ("store",), ("store",)),
    # OpenRouter: which hosts may answer, in which order; without it a route is not reproducible.
    Parameter("provider_order", "list", ("provider", "order"), None),
    Parameter("provider_fallbacks", "flag", ("provider", "allow_fallbacks"), None),
)

_BY_NAME: Mapping[str, Parameter] = {parameter.name: parameter for parameter in PARAMETERS}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,9})?")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,15})")
_FLAGS = {"true": True, "false": False}


def place_parameters(
    body: dict[str, Any], parameters: Mapping[str, str], route: Literal["chat", "responses"]
) -> None:
    """Write the registered parameters into a request body, each in its place.

    Raises:
        BadInputError: an unknown name, one that the route does not have, or text of another form.
    """
    for name, text in parameters.items():
        parameter = _BY_NAME.get(name)
        if parameter is None:
            raise BadInputError(
                f"there is no parameter {name!r}",
                where="parameters",
                remedy=f"Known are {', '.join(_BY_NAME)}.",
            )
        place = parameter.chat if route == "chat" else parameter.responses
        if place is None:
            raise BadInputError(
                f"the {route} route has no parameter {name!r}",
                where="parameters",
                remedy="Leave it out of the plan or register another route.",
            )
        target = body
        for key in place[:-1]:
            target = target.setdefault(key, {})
        target[place[-1]] = parse_parameter(parameter, text)


def parse_parameter(parameter: Parameter, text: str) -> float | int | str | bool | list[str]:
    """Read the text of one parameter in its form.

    Raises:
        BadInputError: it has another form.
    """
    if parameter.form == "number" and _NUMBER.fullmatch(text):
        return float(text)
    if parameter.form == "integer" and _INTEGER.fullmatch(text) and abs(int(text)) <= MAX_INTEGER:
        return int(text)
    if parameter.form == "flag" and text in _FLAGS:
        return _FLAGS[text]
    if parameter.form == "text" and text:
        return text
    if parameter.form == "list" and all(parts := text.split(",")):
        return parts
    raise BadInputError(
        f"{text[:40]!r} is not a {parameter.form}", where=f"parameters.{parameter.name}"
    )


def max_output_tokens(parameters: Mapping[str, str]) -> int | None:
    """Return the registered bound on the tokens of an answer; null where there is none."""
    text = parameters.get("max_output_tokens")
    if text is None:
        return None
    value = parse_parameter(_BY_NAME["max_output_tokens"], text)
    return value if isinstance(value, int) and value >= 1 else None
