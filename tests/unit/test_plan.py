"""The plan: the page names every field, its example is valid, each rule between fields bites."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

import pytest
from pydantic import BaseModel
from replay_ledgers import blend, constant, make_plan, method, plan_fields

from ledger.errors import BadInputError, PlanFieldError
from ledger.events.plan import Plan
from scoring.examples import EXAMPLE_RULES
from scoring.failure_tags import FAILURE_RULES
from scoring.plan import amend_plan, load_plan

PAGE = Path(__file__).parents[2] / "docs" / "spec" / "preregistration.md"
PILOT = Path(__file__).parents[2] / "cards" / "packs" / "worldfork_pilot" / "plan.yaml"


def models(model: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield every path of a field and its model, lists as `name[]`."""
    for name, field in model.model_fields.items():
        yield from _inside(name, field.annotation)


def _inside(path: str, annotation: Any) -> Iterator[tuple[str, type[BaseModel]]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield path, annotation
        for inner, found in models(annotation):
            yield f"{path}.{inner}", found
    elif get_origin(annotation) is tuple:
        yield from _inside(f"{path}[]", get_args(annotation)[0])
    elif get_origin(annotation) in {UnionType, Union}:
        for option in get_args(annotation):
            yield from _inside(path, option)
    elif hasattr(annotation, "__metadata__"):
        yield from _inside(path, get_args(annotation)[0])


def fields() -> set[str]:
    found = set(Plan.model_fields)
    for path, model in models(Plan):
        found |= {f"{path}.{name}" for name in model.model_fields}
    return found


def test_the_page_has_a_row_for_every_field_and_for_nothing_else() -> None:
    rows = re.findall(r"^\| `([a-z_\[\].0-9]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == len(set(rows))
    assert set(rows) == fields()


def test_the_page_names_every_rule_of_tags_and_examples() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name in (*FAILURE_RULES, *EXAMPLE_RULES):
        assert f"`{name}`" in text
    for rule in FAILURE_RULES.values():
        for parameter in rule.parameters:
            assert f"`{parameter}`" in text


def example(tmp_path: Path) -> Path:
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    path = tmp_path / "plan.yaml"
    path.write_text(block, encoding="utf-8")
    return path


def test_the_pages_example_is_a_valid_plan(tmp_path: Path) -> None:
    plan = load_plan(example(tmp_path)).plan
    assert plan.plan_id == "minimal"


def test_the_pilots_plan_is_valid() -> None:
    assert load_plan(PILOT).plan.plan_id == "worldfork_pilot"


def base() -> dict[str, Any]:
    mix = blend("mix", {"a": "0.5", "b": "0.5"}, source="imported", rounding="0.01")
    return plan_fields(["c1", "c2"], [method("a"), method("b"), constant(), mix])


def changed(path: str, value: object) -> dict[str, Any]:
    found = copy.deepcopy(base())
    place: Any = found
    *steps, last = path.split(".")
    for step in steps:
        place = place[int(step) if step.isdigit() else step]
    place[int(last) if last.isdigit() else last] = value
    return found


PAIR = {"a": "a", "b": "b", "primary": True}
INTERVAL = {"source": "A paper", "a": "a", "b": "b", "level": "0.95", "low": "-0.1", "high": "0.20"}


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        ("methods.1.id", "a", "methods"),
        ("card_set.cards", ["c1", "c1"], "card_set.cards"),
        ("baselines", ["nobody"], "baselines"),
        ("baselines", ["a", "a"], "baselines"),
        ("secondary_metrics", ["brier"], "secondary_metrics"),
        ("secondary_metrics", ["log", "log"], "secondary_metrics"),
        ("strata", ["domain", "domain"], "strata"),
        ("comparisons", [PAIR | {"b": "nobody"}], "comparisons[0]"),
        ("comparisons", [PAIR | {"b": "a"}], "comparisons[0]"),
        ("comparisons", [PAIR | {"primary": False}], "comparisons"),
        ("comparisons", [PAIR, {"a": "a", "b": "mix", "primary": True}], "comparisons"),
        ("comparisons", [PAIR, {"a": "b", "b": "a", "primary": False}], "comparisons"),
        ("published_intervals", [INTERVAL | {"a": "b", "b": "a"}], "published_intervals[0]"),
        ("published_intervals", [INTERVAL | {"low": "0.3"}], "published_intervals[0]"),
        ("published_intervals", [INTERVAL | {"level": "1"}], "published_intervals[0].level"),
        ("methods.0.draws", 2, "methods[0].aggregate"),
        ("methods.0.aggregate", "mean", "methods[0].aggregate"),
        ("methods.0.extraction_rule", "blend/1", "methods[0].blend"),
        ("methods.0.extraction_rule", "uniform/1", "methods[0].source"),
        ("methods.0.source", "constant", "methods[0].source"),
        ("methods.0.source", "computed", "methods[0].source"),
        ("methods.0.branch_policy", "nobody", "methods[0].branch_policy"),
        ("methods.3.blend.parts.0.method", "mix", "methods[3].blend.parts"),
        ("methods.3.blend.parts.0.method", "b", "methods[3].blend.parts"),
        ("methods.3.blend.parts.0.weight", "0.6", "methods[3].blend.parts"),
        ("methods.3.blend.rounding", "0", "methods[3].blend.rounding"),
        ("methods.3.blend.rounding", "0.2", "methods[3].blend.rounding"),
        ("methods.3.source", "computed", "methods[3].blend.rounding"),
        ("extraction_rule", "path-ledger/1", "extraction_rule"),
        ("clip.low", "0", "clip"),
        ("clip.high", "1", "clip"),
        ("clip.low", "0.99", "clip"),
        ("primary_tie_threshold", "0.1", "primary_tie_threshold"),
        ("tie_thresholds", ["0", "0"], "tie_thresholds"),
        ("tie_thresholds", ["-0.1", "0"], "tie_thresholds"),
        ("missing_predictions.value", "0.5", "missing_predictions.value"),
        ("missing_predictions.policy", "impute", "missing_predictions.value"),
        ("statistical_test.level", "1", "statistical_test.level"),
        ("statistical_test.bootstrap.level", "0", "statistical_test.bootstrap.level"),
        (
            "statistical_test.permutation.resamples",
            0,
            "statistical_test.permutation.resamples",
        ),
        ("statistical_test.primary", "wilcoxon", "multiplicity.tests"),
        ("multiplicity.tests", ["sign", "sign"], "multiplicity.tests"),
        ("exclusions.reasons", ["annulled", "annulled"], "exclusions.reasons"),
        ("stopping_rule.cards", 3, "stopping_rule.cards"),
        ("failure_tags", [{"id": "x", "rule": "no/1", "parameters": {}}], "failure_tags[0].rule"),
        (
            "failure_tags",
            [{"id": "x", "rule": "near-tie/1", "parameters": {}}],
            "failure_tags[0].parameters",
        ),
        ("example_selection.rule", "best/1", "example_selection.rule"),
    ],
)
def test_each_rule_between_fields_refuses(path: str, value: object, where: str) -> None:
    with pytest.raises(PlanFieldError) as caught:
        make_plan(changed(path, value))
    assert caught.value.where == where


def test_negative_weights_that_sum_to_one_are_refused() -> None:
    mix = blend("mix", {"a": "1.5", "b": "-0.5"}, rounding=None)
    with pytest.raises(PlanFieldError, match="each weight is above 0"):
        make_plan(plan_fields(["c1"], [method("a"), method("b"), mix]))


def test_a_published_interval_keeps_its_digits() -> None:
    plan = make_plan(changed("published_intervals", [INTERVAL]))
    assert plan.published_intervals[0].high == "0.20"


@pytest.mark.parametrize("field", sorted(Plan.model_fields))
def test_no_field_has_a_default(field: str, tmp_path: Path) -> None:
    text = example(tmp_path).read_text(encoding="utf-8")
    cut = re.sub(rf"^{field}:.*\n(?:[ -].*\n)*", "", text, flags=re.MULTILINE)
    assert cut != text
    (tmp_path / "cut.yaml").write_text(cut, encoding="utf-8")
    with pytest.raises(PlanFieldError, match=rf"cut\.yaml: {field}: is missing; expected "):
        load_plan(tmp_path / "cut.yaml")


def test_the_message_names_file_field_and_what_is_expected(tmp_path: Path) -> None:
    path = example(tmp_path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("draws: 1", "draws: many", 1), encoding="utf-8")
    with pytest.raises(PlanFieldError, match=r"methods\[0\]\.draws: .*a whole number from 1 to"):
        load_plan(path)
    path.write_text(text + "surprise: 1\n", encoding="utf-8")
    with pytest.raises(PlanFieldError, match=r"surprise: is not a field that exists here"):
        load_plan(path)


def test_an_amendment_needs_a_reason_of_ten_characters(tmp_path: Path) -> None:
    path = example(tmp_path)
    with pytest.raises(PlanFieldError) as caught:
        amend_plan(path, amends_seq=3, reason="short", authority="tests")
    assert caught.value.where == "reason"
    payload = amend_plan(path, amends_seq=3, reason="a typing error", authority="tests")
    assert payload.amends_seq == 3


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="cannot be read"):
        load_plan(tmp_path / "no.yaml")
