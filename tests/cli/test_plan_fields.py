"""A plan that lacks a field: the field's path and what is expected, for every field there is.

The cases are made from the pilot's plan: each key of each mapping is deleted in turn, then each
value is replaced by one of another type. They run inside this process, through the entry point of
the console script: 400 starts of Python would take minutes.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from console import PILOT, Stage, contents, is_one_sentence

from cli.main import run
from ledger.strict_yaml import load_yaml

PLAN = load_yaml(PILOT / "plan.yaml")
Place = tuple[str | int, ...]
WRONG_EVERYWHERE: object = [[]]
"""A list that holds a list: no field of a plan takes it."""
FREE_MAPPINGS = {"parameters"}
"""Mappings whose keys the plan's author chooses; a key less is another plan, not a broken one."""


@pytest.fixture
def refuse(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Any]:
    """Register a plan that must be refused; return the sentence. Nothing may have changed."""
    folder = stage("sealed")
    monkeypatch.chdir(folder)
    monkeypatch.delenv("LEDGER", raising=False)
    file = folder.parent / "plan.yaml"
    before = contents(folder)

    def register(plan: object) -> str:
        # JSON is YAML: every key and text comes quoted, every number bare.
        text = plan if isinstance(plan, str) else json.dumps(plan)
        file.write_text(text, encoding="utf-8")
        code = run(["preregister", str(file)])
        out, err = capsys.readouterr()
        assert (code, out) == (2, ""), err
        assert is_one_sentence(err), err
        return err

    yield register
    assert contents(folder) == before


def places(value: object, at: Place = ()) -> Iterator[Place]:
    """Yield the place of every key of every mapping, outside first."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield (*at, key)
            if key not in FREE_MAPPINGS:
                yield from places(item, (*at, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, (*at, index))


def without(place: Place) -> Any:
    plan = copy.deepcopy(PLAN)
    del parent(plan, place)[place[-1]]
    return plan


def replaced(place: Place, value: object) -> Any:
    plan = copy.deepcopy(PLAN)
    parent(plan, place)[place[-1]] = value
    return plan


def parent(plan: Any, place: Place) -> Any:
    for key in place[:-1]:
        plan = plan[key]
    return plan


def path_of(place: Place) -> str:
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in place)
    return text.lstrip(".")


def test_a_plan_that_lacks_any_field_is_refused_by_its_path(refuse: Any) -> None:
    found = list(places(PLAN))
    assert len(found) > 200
    for place in found:
        err = refuse(without(place))
        assert f": {path_of(place)}: is missing; expected " in err, (place, err)


def test_a_plan_with_any_value_of_another_type_is_refused_by_its_path(refuse: Any) -> None:
    # One method stands for all: they have one form, and each refusal parses the whole file.
    for place in places(PLAN):
        if place[0] == "methods" and place[1:2] not in {(), (6,)}:
            continue
        err = refuse(replaced(place, WRONG_EVERYWHERE))
        assert path_of(place) in err, (place, err)
        assert "; expected " in err, (place, err)


def test_a_field_that_does_not_exist_is_refused_by_its_path(refuse: Any) -> None:
    mappings = [()] + [p for p in places(PLAN) if isinstance(parent_value(p), dict)]
    for place in mappings:
        if place and place[-1] in FREE_MAPPINGS:
            continue
        err = refuse(replaced((*place, "colour"), "blue"))
        assert path_of((*place, "colour")) in err, (place, err)
        assert "is not a field that exists here" in err


def parent_value(place: Place) -> object:
    return parent(PLAN, place)[place[-1]]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ((("methods", 1, "id"), "uniform"), "methods"),
        ((("methods", 1, "draws"), 0), "methods[1].draws"),
        ((("methods", 1, "draws"), 3), "methods[1].aggregate"),
        ((("methods", 1, "draws"), True), "methods[1].draws"),
        ((("comparisons", 0, "a"), "nobody"), "comparisons[0]"),
        ((("comparisons", 0, "primary"), False), "comparisons"),
        ((("card_set", "cards"), []), "card_set.cards"),
        ((("card_set", "cards", 0), "024"), "card_set.cards"),
        ((("card_set", "cards", 0), "unknown"), "card_set.cards"),
        ((("stopping_rule", "cards"), 23), "stopping_rule.cards"),
        ((("primary_tie_threshold",), "0.5"), "primary_tie_threshold"),
        ((("clip", "low"), "0.995"), "clip"),
        ((("clip", "low"), "1e-2"), "clip.low"),
        ((("clip", "low"), "0.010"), "clip.low"),
        ((("statistical_test", "level"), "1"), "statistical_test.level"),
        ((("statistical_test", "bootstrap", "resamples"), 10), "bootstrap.resamples"),
        ((("labels_open_not_before",), "tomorrow"), "labels_open_not_before"),
        ((("primary_metric",), "accuracy"), "primary_metric"),
        ((("extraction_rule",), "path-ledger"), "extraction_rule"),
    ],
    ids=lambda value: f"{path_of(value[0])} {value[1]}" if isinstance(value, tuple) else "",
)
def test_values_that_do_not_fit_together(refuse: Any, change: Any, path: str) -> None:
    assert path in refuse(replaced(*change))


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("plan_id: a\nplan_id: b\n", "plan.yaml:2:1: the key 'plan_id' stands twice"),
        ("plan_id: &a x\n", "anchors"),
        ("plan_id: !!str x\n", "tags"),
        ("{plan_id: x", "plan.yaml:1:"),
        ("plan_id: x\n---\nplan_id: y\n", "plan.yaml:2:1"),
        ("- a\n- b\n", "top level"),
        ("just a text\n", "top level"),
        ("", "top level"),
        ("plan_id: \x07\n", "plan.yaml"),
        ("a: " + "[" * 500, "plan.yaml"),
    ],
    ids=[
        "key twice",
        "anchor",
        "tag",
        "open brace",
        "two documents",
        "list",
        "text",
        "empty",
        "control character",
        "deep",
    ],
)
def test_a_plan_that_is_not_strict_yaml(refuse: Any, text: str, phrase: str) -> None:
    assert phrase in refuse(text)


def test_an_unreadable_encoding_is_named(refuse: Any, tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes("title: caf\xe9\n".encode("latin-1"))
    assert "is missing" in refuse("plan_id: x\n")
    assert run(["preregister", str(tmp_path / "latin.yaml")]) == 2
