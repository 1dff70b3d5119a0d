"""Read a probability from a model's answer: strictly, or not at all.

Two forms are asked for. `p_yes`: a JSON number from 0 to 1. `p_yes_pct`: a whole number from 0 to
100, for local models, whose grammars bound integers but not decimals. What was asked is what is
read: 45 where a probability was asked for is refused, as are "0.45", "45%" and a missing field.
Nothing is rescaled, clamped or replaced by 0.5. An unusable answer can be asked for again with the
reason, a bounded number of times; then it is a failure on record.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from forecasting.ports import JsonObject, Message, ModelRequest, OutputSchema
from ledger.canonical import parse_strict
from ledger.decimals import UNITS, format_units, round_probability
from ledger.errors import BadInputError

_FENCED = re.compile(r"\s*```(?:json)?[ \t]*\n(.*?)\n?[ \t]*```\s*", re.DOTALL)
_MAX_ANSWER = 100_000
_UNITS_PER_PERCENT = UNITS // 100


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """A way to ask for a probability: the field, its JSON schema, and how to name it in a prompt.

    Args:
        name: the field, `p_yes` or `p_yes_pct`.
        schema: JSON schema of the field.
        wording: what a prompt says about the field.
    """

    name: Literal["p_yes", "p_yes_pct"]
    schema: JsonObject
    wording: str


PROBABILITY = AnswerForm(
    "p_yes",
    {"type": "number", "minimum": 0, "maximum": 1},
    "p_yes, the probability of YES as a number from 0 to 1",
)
PERCENT = AnswerForm(
    "p_yes_pct",
    {"type": "integer", "minimum": 0, "maximum": 100},
    "p_yes_pct, the chance of YES in percent as a whole number from 0 to 100",
)
FORMS = (PROBABILITY, PERCENT)


@dataclass(frozen=True, slots=True)
class ReadProbability:
    """A probability as it arrived (`p_raw`) and in the one text form, nine places (`p_yes`).

    `document` is the whole answer, for strategies that asked for more fields.
    """

    p_raw: str
    p_yes: str
    document: JsonObject


class _Literal(str):
    """A JSON number exactly as it was written."""

    __slots__ = ()


def forecast_schema(form: AnswerForm, extra: Mapping[str, JsonObject] | None = None) -> OutputSchema:
    """Return the JSON schema of an answer: first the extra fields in order, then the probability.

    A model writes the fields in this order, so a rationale that comes first is reasoning and one
    that comes last is an excuse.
    """
    fields: dict[str, JsonObject] = {**(extra or {}), form.name: form.schema}
    return OutputSchema(
        name="forecast",
        schema={
            "type": "object",
            "properties": fields,
            "required": list(fields),
            "additionalProperties": False,
        },
    )


def read_probability(text: str, form: AnswerForm) -> ReadProbability:
    """Read the probability out of an answer.

    The answer is one JSON object, bare or as the whole of one Markdown code fence. If it has a
    `p_no` beside `p_yes`, the two must sum to 1 exactly: otherwise which one is meant is a guess.

    Raises:
        BadInputError: there is no usable probability; the sentence says why and can be shown to the
            model.
    """
    document = _read_document(text)
    value = document.get(form.name)
    if value is None:
        raise BadInputError(f"the answer has no {form.name}", remedy=f"Give {form.wording}.")
    if form.name == "p_yes_pct":
        units, raw = _read_percent(value), str(value)
    else:
        if not isinstance(value, _Literal):
            raise BadInputError(
                f"p_yes is {_shown(value)}, not a number", remedy=f"Give {form.wording}."
            )
        units, raw = 0, str(value)
    p_yes = format_units(units) if form.name == "p_yes_pct" else _read_number(raw, form.name)
    _check_counterpart(document, p_yes)
    return ReadProbability(raw, p_yes, document)


def repair_request(request: ModelRequest, said: str, problem: BadInputError) -> ModelRequest:
    """Return the next turn: the unusable answer, and the sentence that says why it is unusable."""
    turns = (
        Message("assistant", said),
        Message("user", f"That answer cannot be used: {problem} Answer again with JSON alone."),
    )
    return replace(request, messages=request.messages + turns)


def _read_document(text: str) -> dict[str, Any]:
    if len(text) > _MAX_ANSWER:
        raise BadInputError(f"the answer has more than {_MAX_ANSWER} characters")
    fenced = _FENCED.fullmatch(text)
    body = fenced[1] if fenced else text
    # The strict reader refuses duplicate keys, NaN and lone surrogates; the second reading keeps
    # each number as it was written, which a float would not.
    if not isinstance(parse_strict(body), dict):
        raise BadInputError("the answer is not a JSON object")
    document: dict[str, Any] = json.loads(body, parse_float=_Literal, parse_int=_Literal)
    return document


def _read_number(raw: str, name: str) -> str:
    if len(raw) > 100:
        raise BadInputError(f"{name} is a number of {len(raw)} characters")
    return round_probability(raw)


def _read_percent(value: object) -> int:
    if not isinstance(value, _Literal) or not re.fullmatch(r"0|[1-9][0-9]?|100", value):
        raise BadInputError(
            f"p_yes_pct is {_shown(value)}, not a whole number from 0 to 100",
            remedy=f"Give {PERCENT.wording}.",
        )
    return int(value) * _UNITS_PER_PERCENT


def _check_counterpart(document: JsonObject, p_yes: str) -> None:
    p_no = document.get("p_no")
    if p_no is None:
        return
    if not isinstance(p_no, _Literal):
        raise BadInputError(f"p_no is {_shown(p_no)}, not a number")
    other = _read_number(p_no, "p_no")
    if _units(p_yes) + _units(other) != UNITS:
        raise BadInputError(
            f"p_yes {p_yes} and p_no {other} do not sum to 1", remedy="Give two that do."
        )


def _units(text: str) -> int:
    from ledger.decimals import parse_units  # noqa: PLC0415
    return parse_units(text)


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)[:40]
