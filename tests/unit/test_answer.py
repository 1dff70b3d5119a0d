"""Reading a probability: what is asked is what is read, and nothing is guessed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from provider_examples import request

from forecasting.answer import (
    FORMS,
    PERCENT,
    PROBABILITY,
    AnswerForm,
    forecast_schema,
    read_probability,
    repair_request,
)
from ledger.decimals import parse_probability
from ledger.errors import BadInputError


@pytest.mark.parametrize(
    ("text", "p_raw", "p_yes"),
    [
        ('{"p_yes":0.35}', "0.35", "0.35"),
        ('{"p_yes":0}', "0", "0"),
        ('{"p_yes":1}', "1", "1"),
        ('{"p_yes":1.0}', "1.0", "1"),
        ('{"p_yes":3.5e-1}', "3.5e-1", "0.35"),
        ('{"p_yes":0.12345678949}', "0.12345678949", "0.123456789"),
        ('{"p_yes":0.1,"p_no":0.9}', "0.1", "0.1"),
        ('{"p_yes":0.30000000000000004}', "0.30000000000000004", "0.3"),
        ('  {"rationale":"x","p_yes":0.5}\n', "0.5", "0.5"),
        ('```json\n{"p_yes":0.35}\n```', "0.35", "0.35"),
        ('```\n{"p_yes":0.35}```\n', "0.35", "0.35"),
    ],
)
def test_a_probability(text: str, p_raw: str, p_yes: str) -> None:
    found = read_probability(text, PROBABILITY)
    assert (found.p_raw, found.p_yes) == (p_raw, p_yes)


@pytest.mark.parametrize(
    "text",
    [
        '{"p_yes":45}',
        '{"p_yes":1.0000000001}',
        '{"p_yes":-0.1}',
        '{"p_yes":"0.35"}',
        '{"p_yes":"35%"}',
        '{"p_yes":35%}',
        '{"p_yes":null}',
        '{"p_yes":true}',
        '{"p_yes":[0.35]}',
        '{"p_yes":NaN}',
        '{"p_yes":1e999}',
        '{"p_yes":0.' + "3" * 200 + "}",
        '{"p_yes":0.2,"p_yes":0.8}',
        '{"p_yes":0.2,"p_no":0.7}',
        '{"p_yes":0.2,"p_no":"0.8"}',
        '{"p_yes":0.2,"p_no":80}',
        '{"p_yes_pct":35}',
        '{"probability":0.35}',
        '{"P_YES":0.35}',
        "{}",
        "[0.35]",
        "0.35",
        "",
        "I would say 35%.",
        'Here: {"p_yes":0.35}',
        '{"p_yes":0.35} Good luck!',
        '```json\n{"p_yes":0.35}\n```\n```json\n{"p_yes":0.65}\n```',
        '{"p_yes":0.3',
        '{"p_yes":0.35,"x":"\\ud800"}',
        " " * 100_001,
    ],
)
def test_no_probability(text: str) -> None:
    """A percentage where a probability was asked for is refused, not guessed; never 0.5."""
    with pytest.raises(BadInputError):
        read_probability(text, PROBABILITY)


def test_a_percentage_is_named_in_the_refusal() -> None:
    with pytest.raises(BadInputError, match="a percentage is not guessed at"):
        read_probability('{"p_yes":45}', PROBABILITY)


@given(st.integers(0, 100))
def test_whole_percents(percent: int) -> None:
    found = read_probability(f'{{"p_yes_pct":{percent}}}', PERCENT)
    assert parse_probability(found.p_yes) == percent * 10_000_000
    assert found.p_raw == str(percent)


@pytest.mark.parametrize(
    "value", ["101", "-1", "-0", "35.0", "0.35", "3e1", '"35"', "null", "true"]
)
def test_other_percents(value: str) -> None:
    with pytest.raises(BadInputError):
        read_probability(f'{{"p_yes_pct":{value}}}', PERCENT)


@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda data: data.decode("latin-1")))
def test_any_text_is_read_or_refused(text: str) -> None:
    for form in FORMS:
        try:
            found = read_probability(text, form)
        except BadInputError:
            continue
        assert 0 <= parse_probability(found.p_yes) <= 10**9


@given(st.decimals(0, 1, places=9))
def test_nine_places_are_exact(value: object) -> None:
    text = f"{value:f}"
    found = read_probability(json.dumps({"p_yes": 0}).replace("0}", f"{text}}}"), PROBABILITY)
    assert parse_probability(found.p_yes) == int(text.replace(".", ""))


@pytest.mark.parametrize("form", FORMS)
def test_the_probability_comes_last_and_everything_is_required(form: AnswerForm) -> None:
    schema = forecast_schema(form, {"rationale": {"type": "string"}}).schema
    assert list(schema["properties"]) == ["rationale", form.name]
    assert schema["required"] == ["rationale", form.name]
    assert schema["additionalProperties"] is False


def test_a_repair_turn_says_what_was_wrong() -> None:
    problem = BadInputError("p_yes is 45", remedy="Give a number from 0 to 1.")
    asked = repair_request(request(idem_key="k"), '{"p_yes":45}', problem, turn=1)
    assert [turn.role for turn in asked.messages] == ["system", "user", "assistant", "user"]
    assert asked.messages[2].content == '{"p_yes":45}'
    assert "p_yes is 45. Give a number from 0 to 1." in asked.messages[3].content
    assert asked.idem_key == "k.repair-1"
    assert repair_request(request(), "x", problem, turn=2).idem_key is None
