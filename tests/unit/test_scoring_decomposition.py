"""Decompositions: identities that hold exactly, ties, single classes; and the AUC."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import BadInputError
from scoring import corp, decomposition, rules
from scoring.discrimination import auc
from scoring.grouping import sum_of_ratios
from scoring.units import ONE

few_values = st.integers(0, 20).map(lambda k: k * 50_000_000)
cards = st.lists(st.tuples(few_values, st.integers(0, 1)), min_size=1, max_size=40)


def split(rows: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    p = np.array([row[0] for row in rows], dtype=np.int64)
    return p, np.array([row[1] for row in rows], dtype=np.int8)


@given(cards)
def test_murphy_identity_is_exact(rows: list[tuple[int, int]]) -> None:
    """REL - RES + UNC + WBV - WBC MUST equal the Brier score exactly."""
    p, y = split(rows)
    for found in (
        decomposition.murphy_binned(p, y),
        decomposition.murphy_binned(p, y, bins=3, closed="right"),
        decomposition.murphy_distinct(p, y),
    ):
        assert found is not None
        assert found.brier == rules.brier_fraction(p, y)
        assert found.reliability >= 0
        assert 0 <= found.resolution <= found.uncertainty
    distinct = decomposition.murphy_distinct(p, y)
    assert distinct is not None
    assert distinct.within_variance == 0
    assert distinct.within_covariance == 0


def test_bias_correction_ignores_singletons() -> None:
    """A group of one card MUST add nothing to the bias correction."""
    found = decomposition.murphy_distinct(["0.2", "0.2", "0.8"], [0, 1, 1])
    assert found is not None
    assert found.corrected is not None
    assert found.corrected.singletons == 1
    bias = Fraction(2, 3) * Fraction(1, 4) / 1
    assert found.corrected.reliability == float(found.reliability - bias)
    assert found.corrected.resolution == float(found.resolution - bias + found.uncertainty / 2)
    assert found.corrected.uncertainty == float(found.uncertainty * 3 / 2)


def test_one_card_has_no_bias_correction() -> None:
    found = decomposition.murphy_binned(["0.4"], [1])
    assert found is not None
    assert found.corrected is None


def test_no_cards_is_not_computable() -> None:
    """No cards MUST give None, never 0."""
    assert decomposition.murphy_binned([], []) is None
    assert decomposition.murphy_distinct([], []) is None
    assert decomposition.murphy_curve([], [], ["0.5"]) is None
    assert corp.corp_brier([], []) is None
    assert corp.corp_log([], []) is None
    assert corp.corp_miscalibration_test([], [], seed=0) is None
    assert auc([], []) is None


@given(cards)
def test_area_under_the_murphy_curve_is_the_brier_score(rows: list[tuple[int, int]]) -> None:
    """The Murphy curve integrates to the Brier score: exact on steps, here by trapezoids."""
    p, y = split(rows)
    edges = sorted({0, ONE, *p.tolist()})
    area = 0.0
    for low, high in pairwise(edges):
        ends = [f"{at // ONE}.{at % ONE:09d}" for at in (low, high - 1)]
        curve = decomposition.murphy_curve(p, y, ends)
        assert curve is not None
        area += (curve[0] + curve[1]) / 2 * (high - low) / ONE
    assert area == pytest.approx(rules.brier_score(p, y), abs=1e-7)


def recalibrate_by_definition(p: np.ndarray, y: np.ndarray) -> list[Fraction]:
    """Isotonic regression by the max-min formula over pooled forecasts."""
    values = sorted(set(p.tolist()))
    yes = [int(y[p == v].sum()) for v in values]
    size = [int((p == v).sum()) for v in values]
    k = len(values)

    def mean(i: int, j: int) -> Fraction:
        return Fraction(sum(yes[i : j + 1]), sum(size[i : j + 1]))

    fit = [max(min(mean(i, j) for j in range(t, k)) for i in range(t + 1)) for t in range(k)]
    return [fit[values.index(v)] for v in p.tolist()]


@given(cards)
def test_corp_by_definition(rows: list[tuple[int, int]]) -> None:
    p, y = split(rows)
    found = corp.corp_brier(p, y)
    rates = recalibrate_by_definition(p, y)
    assert found is not None
    assert found.recalibrated == tuple(float(rate) for rate in rates)
    n, share = len(rows), Fraction(int(y.sum()), len(rows))
    score = rules.brier_fraction(p, y)
    after = sum((r - int(label)) ** 2 for r, label in zip(rates, y, strict=True)) / n
    assert score is not None
    assert found.miscalibration == float(score - after) >= 0
    assert found.discrimination == float(share * (1 - share) - after) >= 0
    assert found.uncertainty == float(share * (1 - share))


@given(cards, st.randoms(use_true_random=False))
def test_corp_pools_ties_first(rows: list[tuple[int, int]], shuffle: object) -> None:
    """Equal forecasts MUST be pooled first: the order of cards MUST NOT matter."""
    mixed = list(rows)
    shuffle.shuffle(mixed)  # type: ignore[attr-defined]
    one, two = corp.corp_brier(*split(rows)), corp.corp_brier(*split(mixed))
    assert one is not None
    assert two is not None
    assert (one.miscalibration, one.discrimination) == (two.miscalibration, two.discrimination)


@given(cards)
def test_corp_of_log_loss_adds_up(rows: list[tuple[int, int]]) -> None:
    p, y = split(rows)
    found = corp.corp_log(p, y)
    assert found is not None
    total = found.miscalibration - found.discrimination + found.uncertainty
    assert total == pytest.approx(found.score, abs=1e-12)
    assert found.miscalibration >= -1e-12
    assert found.discrimination >= -1e-12
    unclipped = corp.corp_log(p, y, None)
    assert unclipped is not None
    assert (unclipped.miscalibration == math.inf) == (unclipped.score == math.inf)


def test_a_single_class_has_no_uncertainty() -> None:
    """A single class MUST have UNC 0 and AUC None."""
    for found in (corp.corp_brier(["0.2", "0.9"], [1, 1]), corp.corp_log(["0.2", "0.9"], [1, 1])):
        assert found is not None
        assert (found.uncertainty, found.discrimination) == (0.0, 0.0)
    assert auc(["0.2", "0.9"], [1, 1]) is None


def test_corp_monte_carlo() -> None:
    certain = corp.corp_miscalibration_test(["0.9"] * 30, [0] * 30, seed=7, resamples=99)
    assert certain is not None
    assert certain.p_value == 0.01
    fair = corp.corp_miscalibration_test(["0.5"] * 4, [0, 1, 0, 1], seed=7, resamples=99)
    assert fair is not None
    assert (fair.p_value, fair.seed, fair.resamples) == (1.0, 7, 99)
    with pytest.raises(BadInputError, match="resamples"):
        corp.corp_miscalibration_test(["0.5"], [1], seed=0, resamples=0)


@given(cards)
def test_auc_by_definition(rows: list[tuple[int, int]]) -> None:
    """AUC MUST be the exact share of pairs in order, ties one half."""
    wins = [
        Fraction(int(a[0] > b[0]) * 2 + int(a[0] == b[0]), 2)
        for a in rows
        for b in rows
        if a[1] > b[1]
    ]
    assert auc(*split(rows)) == (sum(wins) / len(wins) if wins else None)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 9)), max_size=20))
def test_sum_of_ratios(parts: list[tuple[int, int]]) -> None:
    tops, bottoms = [a for a, _ in parts], [b for _, b in parts]
    assert sum_of_ratios(tops, bottoms) == sum(Fraction(a, b) for a, b in parts)
