"""Scoring rules: values by hand, and the properties every registered rule must have."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import BadInputError
from scoring import rules
from scoring.registry import RULES, Rule
from scoring.units import ONE

every_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
unit_values = st.integers(min_value=0, max_value=ONE)
cards = st.lists(st.tuples(unit_values, st.integers(0, 1)), min_size=1, max_size=30)


def split(rows: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    p = np.array([row[0] for row in rows], dtype=np.int64)
    return p, np.array([row[1] for row in rows], dtype=np.int8)


def expected(rule: Rule, forecast: int, truth: Fraction) -> float:
    """Return the expected score of one card forecast at `forecast` where yes has chance `truth`."""
    p = np.array([forecast], dtype=np.int64)
    yes, no = rule.function(p, [1]), rule.function(p, [0])
    assert yes is not None
    assert no is not None
    chance = float(truth)
    return (chance * yes if chance else 0.0) + ((1 - chance) * no if chance < 1 else 0.0)


def test_the_registry_names_each_rule_once_and_describes_it() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(rule.description.endswith(".") for rule in RULES)
    assert all(rule.version >= 1 for rule in RULES)


@every_rule
def test_no_cards_is_not_computable(rule: Rule) -> None:
    """No cards MUST give None, never 0."""
    assert rule.function([], []) is None


@every_rule
@given(rows=cards)
def test_range(rule: Rule, rows: list[tuple[int, int]]) -> None:
    score = rule.function(*split(rows))
    assert score is not None
    assert rule.lowest <= score <= rule.highest


@every_rule
@given(rows=cards, shuffle=st.randoms(use_true_random=False))
def test_order_of_cards_does_not_matter(
    rule: Rule, rows: list[tuple[int, int]], shuffle: object
) -> None:
    """A score MUST have the same bits in every order of cards."""
    mixed = list(rows)
    shuffle.shuffle(mixed)  # type: ignore[attr-defined]
    assert rule.function(*split(rows)) == rule.function(*split(mixed))


@every_rule
@given(rows=cards)
def test_yes_and_no_are_symmetric(rule: Rule, rows: list[tuple[int, int]]) -> None:
    p, y = split(rows)
    assert rule.function(p, y) == rule.function(ONE - p, 1 - y)


@pytest.mark.parametrize("rule", [r for r in RULES if r.proper], ids=lambda rule: rule.name)
@given(forecast=unit_values, truth=unit_values)
def test_no_forecast_beats_the_truth(rule: Rule, forecast: int, truth: int) -> None:
    """A proper rule MUST give its best expected score to the true probability."""
    chance = Fraction(truth, ONE)
    honest, other = expected(rule, truth, chance), expected(rule, forecast, chance)
    slack = 1e-12 * max(1.0, abs(honest))
    if rule.direction == "lower":
        assert honest <= other + slack
    else:
        assert honest >= other - slack


@pytest.mark.parametrize("rule", [r for r in RULES if not r.proper], ids=lambda rule: rule.name)
def test_a_rule_not_called_proper_is_beaten(rule: Rule) -> None:
    chance = Fraction(3, 4)
    assert expected(rule, ONE, chance) > expected(rule, 3 * ONE // 4, chance)


@given(rows=cards)
def test_brier_is_the_fraction_rounded_once(rows: list[tuple[int, int]]) -> None:
    """The Brier sum MUST be exact and divided once."""
    p, y = split(rows)
    exact = sum((Fraction(a, ONE) - b) ** 2 for a, b in rows) / len(rows)
    assert rules.brier_fraction(p, y) == exact
    assert rules.brier_score(p, y) == float(exact)
    assert rules.brier_losses(p, y).mean() == float(exact)
    assert rules.brier_units(p, y).tolist() == [(a - b * ONE) ** 2 for a, b in rows]


def test_brier_of_many_cards_does_not_overflow() -> None:
    """A Brier score of 10^7 cards MUST be exact."""
    n = 10_000_000
    assert rules.brier_score(np.zeros(n, np.int64), np.ones(n, np.int8)) == 1.0


def test_log_loss_by_hand() -> None:
    losses = rules.log_losses(["0", "0.01", "0.5", "1"], [1, 1, 0, 1])
    assert losses.tolist() == [-math.log(0.01), -math.log(0.01), math.log(2), -math.log(0.99)]
    assert rules.log_loss(["0.5", "0.5"], [0, 1]) == math.log(2)


@given(rows=cards)
def test_log_loss_agrees_with_the_library(rows: list[tuple[int, int]]) -> None:
    p, y = split(rows)
    clipped = np.clip(p / 1e9, 0.01, 0.99)
    want = -np.where(y == 1, np.log(clipped), np.log1p(-clipped)).mean()
    assert rules.log_loss(p, y) == pytest.approx(want, abs=1e-14)


def test_clipped_count_leaves_the_bounds_alone() -> None:
    """A probability on a clip bound MUST NOT count as clipped."""
    assert rules.clipped_count(["0.01", "0.009999999", "0.99", "0.990000001", "0.5"]) == 2


def test_unclipped_log_loss_counts_infinite_cards() -> None:
    """An unclipped loss of probability 0 MUST be inf, and such cards MUST be counted."""
    found = rules.unclipped_log_loss(["0", "1", "0.5"], [1, 1, 0])
    assert found == rules.UnclippedLogLoss(math.inf, 1, math.log(2) / 2, 3)
    everything = rules.unclipped_log_loss(["0"], [1])
    assert everything == rules.UnclippedLogLoss(math.inf, 1, None, 1)
    assert rules.unclipped_log_loss([], []) is None
    certain = rules.log_losses(["0", "1"], [0, 1], None)
    assert [math.copysign(1.0, loss) for loss in certain] == [1.0, 1.0]


@pytest.mark.parametrize("clip", [("0.6", "0.4"), ("-0.1", "0.9"), ("0.1", "x")])
def test_impossible_clips_are_refused(clip: tuple[str, str]) -> None:
    with pytest.raises(BadInputError, match="clip"):
        rules.log_loss(["0.5"], [1], clip)


def test_exact_log_losses_refuse_infinity() -> None:
    with pytest.raises(BadInputError, match=r"p\[1\]"):
        rules.log_losses_exact(["0.5", "0"], [1, 1], ("0", "1"))


def test_single_class_is_a_score_like_any_other() -> None:
    """A single class MUST leave Brier and log valid and skill against climatology None."""
    assert rules.brier_score(["0.9", "0.8"], [1, 1]) == 0.025
    assert rules.brier_skill_climatology(["0.9", "0.8"], [1, 1]) is None
    assert rules.brier_skill_climatology([], []) is None
    assert rules.brier_skill_climatology(["0.5", "0.5"], [0, 1]) == 0.0


def test_peer_scores() -> None:
    """The peer score of a single method MUST be None."""
    p, q, y = ["0.9", "0.2"], ["0.6", "0.4"], [1, 0]
    assert rules.peer_scores([p], y) is None
    assert rules.peer_scores([], y) is None
    assert rules.peer_scores([[], []], []) is None
    found = rules.peer_scores([p, q], y)
    assert found is not None
    want = 100 * (math.log(0.9 / 0.6) + math.log(0.8 / 0.6)) / 2
    assert found == pytest.approx((want, -want), abs=1e-12)
    assert rules.peer_brier([], y) is None
    assert rules.peer_brier([p, q], y) == (0.0675, -0.0675)
