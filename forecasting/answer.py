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
from typing import Literal

from forecasting.ports import JsonObject, Message, ModelRequest, OutputSchema
from ledger.canonical import parse_strict
from ledger.decimals import UNITS, format_units, parse_probability, round_probability
from ledger.errors import BadInputError

_FENCED = re.compile(r"\s*```(?:json)?[ \t]*\n(.*?)\n?[ \t]*```\s*", re.DOTALL)
_PERCENT = re.compile(r"0|[1-9][0-9]?|100")
_MAX_ANSWER = 100_000
_MAX_DIGITS = 100


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


def forecast_schema(
    form: AnswerForm, extra: Mapping[str, JsonObject] | None = None
) -> OutputSchema:
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
    body = _unfenced(text)
    # The strict reader refuses duplicate keys, NaN and lone surrogates; the second reading keeps
    # each number as it was written, which a float would not.
    document = parse_strict(body)
    if not isinstance(document, dict):
        raise BadInputError("the answer is not a JSON object", remedy=f"Give {form.wording}.")
    written: dict[str, object] = json.loads(body, parse_float=_Literal, parse_int=_Literal)
    if written.get(form.name) is None:
        raise BadInputError(f"the answer has no {form.name}", remedy=f"Give {form.wording}.")
    raw = _number(written, form.name, form.wording)
    if form.name == "p_yes_pct":
        return ReadProbability(raw, _read_percent(raw), document)
    p_yes = round_probability(raw)
    if written.get("p_no") is not None:
        _check_counterpart(p_yes, round_probability(_number(written, "p_no", "1 - p_yes")))
    return ReadProbability(raw, p_yes, document)


def repair_request(
    request: ModelRequest, said: str, problem: BadInputError, *, turn: int
) -> ModelRequest:
    """Return the next turn: the unusable answer, and the sentence that says why it is unusable.

    Args:
        request: what was asked.
        said: the unusable answer.
        problem: why it is unusable.
        turn: the repair turn's number, from 1; it makes the idempotency key another one.
    """
    key = request.idem_key
    turns = (
        Message("assistant", said),
        Message("user", f"That answer cannot be used: {problem} Answer again with JSON alone."),
    )
    return replace(
        request,
        messages=request.messages + turns,
        idem_key=None if key is None else f"{key}.repair-{turn}",
    )


def _unfenced(text: str) -> str:
    if len(text) > _MAX_ANSWER:
        raise BadInputError(f"the answer has more than {_MAX_ANSWER} characters")
    fenced = _FENCED.fullmatch(text)
    return fenced[1] if fenced else text


def _number(written: Mapping[str, object], name: str, wording: str) -> str:
    value = written[name]
    if not isinstance(value, _Literal):
        shown = json.dumps(value, ensure_ascii=False)[:40]
        raise BadInputError(f"{name} is {shown}, not a number", remedy=f"Give {wording}.")
    if len(value) > _MAX_DIGITS:
        raise BadInputError(f"{name} is a number of {len(value)} characters")
    return str(value)


def _read_percent(raw: str) -> str:
    if not _PERCENT.fullmatch(raw):
        raise BadInputError(
            f"p_yes_pct is {raw}, not a whole number from 0 to 100",
            remedy=f"Give {PERCENT.wording}.",
        )
    return format_units(int(raw) * (UNITS // 100))


def _check_counterpart(p_yes: str, p_no: str) -> None:
    if parse_probability(p_yes) + parse_probability(p_no) != UNITS:
        raise BadInputError(
            f"p_yes {p_yes} and p_no {p_no} do not sum to 1", remedy="Give two that do."
        )
