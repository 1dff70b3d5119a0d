"""A validation error as one sentence: the path, what is wrong, what is expected."""

from __future__ import annotations

import json
from typing import Any

import pytest
from event_examples import PLAN, plain
from pydantic import ValidationError

from ledger.events.card import PrivateObject
from ledger.events.plan import Plan
from ledger.field_errors import describe_problem


def described(value: Any, model: type[Plan | PrivateObject] = Plan) -> tuple[str, str]:
    with pytest.raises(ValidationError) as caught:
        model.model_validate_json(json.dumps(value))
    return describe_problem(caught.value, model)


def with_changed(path: list[Any], new: Any) -> Any:
    value = json.loads(json.dumps(plain(PLAN)))
    target = value
    for step in path[:-1]:
        target = target[step]
    if new is ...:
        del target[path[-1]]
    else:
        target[path[-1]] = new
    return value


@pytest.mark.parametrize(
    ("path", "new", "where", "sentence"),
    [
        (["title"], ..., "title", "is missing; expected a sentence."),
        (
            ["methods", 2, "draws"],
            ...,
            "methods[2].draws",
            "is missing; expected a whole number from 1 to 10000.",
        ),
        (
            ["methods", 1, "draws"],
            0,
            "methods[1].draws",
            "has the value '0'; expected a whole number from 1 to 10000.",
        ),
        (
            ["primary_metric"],
            "accuracy",
            "primary_metric",
            "has the value 'accuracy'; expected one of brier, log.",
        ),
        (
            ["clip", "low"],
            0.001,
            "clip.low",
            "has the value '0.001'; expected a probability as decimal text, like 0.05.",
        ),
        (
            ["clip", "low"],
            "0.0010",
            "clip.low",
            "has the value '0.0010'; expected a probability as decimal text, like 0.05.",
        ),
        (
            ["statistical_test", "two_sided"],
            False,
            "statistical_test.two_sided",
            "has the value 'False'; expected true.",
        ),
        (
            ["statistical_test", "bootstrap", "generator"],
            "mt19937",
            "statistical_test.bootstrap.generator",
            "has the value 'mt19937'; expected pcg64-lemire32/1.",
        ),
        (
            ["clip", "middle"],
            "0.5",
            "clip.middle",
            "is not a field that exists here; expected a mapping with exactly low, high.",
        ),
        (["methods"], [], "methods", "has the value '[]'; expected a list of at least 1."),
        (
            ["methods"],
            {"a": 1},
            "methods",
            "has the value \"{'a': 1}\"; expected a list of at least 1.",
        ),
        (
            ["methods", 0, "parameters"],
            7,
            "methods[0].parameters",
            "has the value '7'; expected a mapping of texts.",
        ),
        (
            ["methods", 0, "exposure", "retrieval"],
            "no",
            "methods[0].exposure.retrieval",
            "has the value 'no'; expected true or false.",
        ),
        (
            ["methods", 3, "blend", "parts", 1, "weight"],
            "x",
            "methods[3].blend.parts[1].weight",
            "has the value 'x'; expected a decimal of at most nine places, like 0.001.",
        ),
        (
            ["trigger_rule"],
            "x",
            "trigger_rule",
            "has the value 'x'; expected a mapping with exactly rule, parameters.",
        ),
        (
            ["card_set", "cards", 1],
            "a b",
            "card_set.cards[1]",
            "has the value 'a b'; expected an id of at most 64 letters, digits and _ . -.",
        ),
        (
            ["labels_open_not_before"],
            "soon",
            "labels_open_not_before",
            "has the value 'soon'; expected a UTC time like 2026-04-01T00:00:00.000000Z.",
        ),
        (
            ["branch_policies", 0, "min_runway_ticks"],
            -1,
            "branch_policies[0].min_runway_ticks",
            f"has the value '-1'; expected a whole number from 0 to {2**53 - 1}.",
        ),
        (
            ["blend_policy"],
            "x" * 5_000,
            "blend_policy",
            f"has the value '{'x' * 60}'; expected a sentence.",
        ),
    ],
    ids=range(19),
)
def test_the_sentence(path: list[Any], new: Any, where: str, sentence: str) -> None:
    assert described(with_changed(path, new)) == (where, sentence)


def test_the_top_level() -> None:
    where, sentence = described([])
    assert where == "the top level"
    assert sentence.startswith("has the value '[]'; expected a mapping with exactly plan_id, title")


def test_a_key_of_a_mapping_is_not_shown() -> None:
    """The keys of a private object's entity map are stand-ins; the path ends at the map."""
    value = {"card_id": "a", "resolution": "no", "entity_map": {"Town A": 7}}
    where, sentence = described(value, PrivateObject)
    assert where == "entity_map"
    assert sentence == "has the value '7'; expected a mapping of texts."
