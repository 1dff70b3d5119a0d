"""Failure tags and examples: the paper's Table 7, edges in exact units, ties by id."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoring.examples import EXAMPLE_RULES, extremes, first_cards
from scoring.failure_tags import (
    FAILURE_RULES,
    ONE_UNITS,
    PairedCard,
    both_wrong_side,
    confident_correct_diluted,
    near_tie,
)

EPSILON = {"epsilon": 1_000_000}
WITHIN = {"confident_within": 100_000_000}


def card(no_branch: float, branch: float, y: int) -> PairedCard:
    return PairedCard(round(branch * ONE_UNITS), round(no_branch * ONE_UNITS), y)


@pytest.mark.parametrize(
    ("name", "y", "no_branch", "branch", "difference", "tag"),
    [
        ("006", 1, 0.9842, 0.4872, -0.263, "confident-correct-diluted/1"),
        ("012", 1, 0.9233, 0.2622, -0.538, "confident-correct-diluted/1"),
        ("015", 1, 0.2530, 0.1803, -0.114, "both-wrong-side/1"),
        ("016", 1, 1.0000, 0.0680, -0.869, "confident-correct-diluted/1"),
        ("020", 0, 0.0972, 0.4496, -0.193, "confident-correct-diluted/1"),
        ("022", 0, 0.0079, 0.0089, -1.68e-05, "near-tie/1"),
        ("024", 0, 0.0000, 0.0096, -9.22e-05, "near-tie/1"),
    ],
)
def test_the_papers_table_7(
    name: str, y: int, no_branch: float, branch: float, *, difference: float, tag: str
) -> None:
    pair = card(no_branch, branch, y)
    assert pair.difference / 1e18 == pytest.approx(difference, rel=5e-3)
    found = [
        rule
        for rule, spec in FAILURE_RULES.items()
        if spec.holds(pair, {name: {**EPSILON, **WITHIN}[name] for name in spec.parameters})
    ]
    assert found == [tag]


def test_a_difference_of_exactly_epsilon_is_a_tie() -> None:
    pair = PairedCard(a_units=0, b_units=31_622_776, y=0)
    within = {"epsilon": -(-pair.difference // ONE_UNITS)}
    assert near_tie(pair, within)
    assert not near_tie(pair, {"epsilon": within["epsilon"] - 1})


def test_confident_means_within_and_diluted_means_further_off() -> None:
    assert confident_correct_diluted(card(0.9, 0.89, 1), WITHIN)
    assert not confident_correct_diluted(card(0.9, 0.9, 1), WITHIN)
    assert not confident_correct_diluted(card(0.89, 0.5, 1), WITHIN)


def test_one_half_is_on_neither_side() -> None:
    assert not both_wrong_side(card(0.5, 0.4, 1), {})
    assert both_wrong_side(card(0.499999999, 0.4, 1), {})


@given(st.integers(0, ONE_UNITS), st.integers(0, ONE_UNITS), st.integers(0, 1))
def test_swapping_labels_and_forecasts_changes_no_tag(a: int, b: int, y: int) -> None:
    pair, mirror = PairedCard(a, b, y), PairedCard(ONE_UNITS - a, ONE_UNITS - b, 1 - y)
    for rule in FAILURE_RULES.values():
        numbers = {name: {**EPSILON, **WITHIN}[name] for name in rule.parameters}
        assert rule.holds(pair, numbers) == rule.holds(mirror, numbers)


def test_extremes_take_turns_and_ties_stand_by_id() -> None:
    d = {"c": 5, "a": 5, "b": -3, "d": 0, "e": -3}
    assert extremes(d, 5) == ("a", "e", "c", "b", "d")
    assert extremes(d, 2) == ("a", "e")
    assert extremes(d, 0) == ()
    assert extremes({}, 3) == ()
    assert extremes(d, 99) == extremes(d, 5)


def test_first_takes_ids_whatever_the_scores() -> None:
    assert first_cards({"b": 9, "a": -9, "c": 0}, 2) == ("a", "b")


@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(-9, 9)), st.integers(0, 9)
)
def test_examples_are_cards_each_once_in_any_order_of_input(d: dict[str, int], count: int) -> None:
    for rule in EXAMPLE_RULES.values():
        found = rule(d, count)
        assert len(found) == len(set(found)) == min(count, len(d))
        assert found == rule(dict(reversed(d.items())), count)
