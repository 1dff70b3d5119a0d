"""Calibration summaries: edges, ties, empty bins, and what is not computable."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import BadInputError
from scoring import calibration
from scoring.grouping import Closed, equal_width, quantile_bins
from scoring.units import ONE

EDGES = [f"0.{k}" for k in range(1, 10)]
tenths = st.integers(0, 1000).map(lambda k: k * 1_000_000)
cards = st.lists(st.tuples(tenths, st.integers(0, 1)), min_size=1, max_size=40)


def split(rows: list[tuple[int, int]]) -> tuple[np.ndarray, list[int]]:
    return np.array([row[0] for row in rows], dtype=np.int64), [row[1] for row in rows]


def test_forecasts_on_edges() -> None:
    """Bin edges MUST be compared exactly: 0.3 is in [0.3, 0.4) and in (0.2, 0.3]."""
    left = calibration.calibration_error(["0", *EDGES, "1"], [0] * 11, closed="left")
    right = calibration.calibration_error(["0", *EDGES, "1"], [0] * 11, closed="right")
    assert left is not None
    assert right is not None
    assert [b.n for b in left.bins] == [1, 1, 1, 1, 1, 1, 1, 1, 1, 2]
    assert [b.n for b in right.bins] == [2, 1, 1, 1, 1, 1, 1, 1, 1, 1]


def test_hundredths_that_doubles_misplace() -> None:
    """0.29 * 100 is 28.999999999999996 in doubles; the card belongs to bin 29."""
    units = np.array([290_000_000, 570_000_000, 580_000_000])
    assert equal_width(units, 100, "left").tolist() == [29, 57, 58]
    assert equal_width(units, 100, "right").tolist() == [28, 56, 57]


def test_a_forecast_on_a_quantile_edge_is_below_it() -> None:
    """A card on a quantile edge MUST go to the lower bin."""
    assert quantile_bins(np.array([3, 1, 2]), 2).tolist() == [1, 0, 0]
    assert quantile_bins(np.array([5, 5, 5, 9]), 4).tolist() == [0, 0, 0, 3]


def test_the_convention_is_in_the_result() -> None:
    """A calibration error MUST name its bin convention."""
    names = [
        found.convention
        for found in (
            calibration.calibration_error(["0.5"], [1]),
            calibration.calibration_error(["0.5"], [1], bins=7, closed="right"),
            calibration.adaptive_calibration_error(["0.5"], [1]),
        )
        if found
    ]
    assert names == [
        "equal-width-10-left-closed/1",
        "equal-width-7-right-closed/1",
        "quantile-5-right-closed/1",
    ]


def test_empty_bins_have_no_numbers() -> None:
    """An empty bin MUST show None and take no part in ECE or MCE."""
    found = calibration.calibration_error(["0.25", "0.25"], [1, 0])
    assert found is not None
    assert found.bins[0] == calibration.Bin(0, 0, None, None, None)
    assert found.bins[2] == calibration.Bin(2, 2, 0.25, 0.5, 0.25)
    assert (found.ece, found.mce) == (0.25, 0.25)


@given(cards, st.sampled_from(get_args(Closed)), st.integers(1, 20))
def test_ece_by_definition(rows: list[tuple[int, int]], closed: Closed, bins: int) -> None:
    p, y = split(rows)
    found = calibration.calibration_error(p, y, bins=bins, closed=closed)
    assert found is not None
    total, worst = Fraction(0), Fraction(0)
    for k in range(bins):
        low, high = Fraction(k, bins), Fraction(k + 1, bins)
        members = []
        for units, label in rows:
            q = Fraction(units, ONE)
            if closed == "left":
                inside = low <= q < high or (k == bins - 1 and q == 1)
            else:
                inside = low < q <= high or (k == 0 and q == 0)
            if inside:
                members.append((q, label))
        assert found.bins[k].n == len(members)
        gap = abs(sum((q - label for q, label in members), Fraction(0)))
        total += gap
        worst = max(worst, gap / len(members)) if members else worst
    assert found.ece == float(total / len(rows))
    assert found.mce == float(worst)


@given(cards, st.integers(1, 9))
def test_quantile_bins_keep_ties_together(rows: list[tuple[int, int]], bins: int) -> None:
    """Equal forecasts MUST share a quantile bin, and bins MUST rise with the forecast."""
    p, _ = split(rows)
    found = quantile_bins(p, bins)
    edges = [np.quantile(p, k / bins) for k in range(1, bins)]
    for units, place in zip(p.tolist(), found.tolist(), strict=True):
        assert set(found[p == units].tolist()) == {place}
        away = [e for e in edges if abs(e - units) > 1e-3]
        assert place - sum(e < units for e in away) in range(len(edges) - len(away) + 1)


def test_bad_bin_counts_are_refused() -> None:
    for bins in (0, 1001):
        with pytest.raises(BadInputError, match="bins"):
            equal_width(np.zeros(1, np.int64), bins, "left")
        with pytest.raises(BadInputError, match="bins"):
            quantile_bins(np.zeros(1, np.int64), bins)


def test_no_cards_is_not_computable() -> None:
    """No cards MUST give None, never 0."""
    assert calibration.calibration_error([], []) is None
    assert calibration.adaptive_calibration_error([], []) is None
    assert calibration.squared_calibration_error([], []) is None
    assert calibration.sharpness([]) is None
    assert calibration.calibration_in_the_large([], []) is None
    assert calibration.spiegelhalter([], []) is None
    assert calibration.cox_line([], []) is None


@given(cards)
def test_symmetry(rows: list[tuple[int, int]]) -> None:
    """Swapping yes and no mirrors bins and turns left-closed into right-closed."""
    p, y = split(rows)
    mirrored = [1 - label for label in y]
    left = calibration.calibration_error(p, y, closed="left")
    right = calibration.calibration_error(ONE - p, mirrored, closed="right")
    assert left is not None
    assert right is not None
    assert (left.ece, left.mce) == (right.ece, right.mce)
    sharp, mirror = calibration.sharpness(p), calibration.sharpness(ONE - p)
    assert sharp is not None
    assert mirror is not None
    assert (sharp.variance, sharp.mean_distance) == (mirror.variance, mirror.mean_distance)
    large = calibration.calibration_in_the_large(p, y)
    assert large is not None
    assert calibration.calibration_in_the_large(ONE - p, mirrored) == -large


def test_spiegelhalter_has_no_variance_at_zero_half_and_one() -> None:
    """Spiegelhalter's z MUST be None where its variance is 0."""
    assert calibration.spiegelhalter(["0", "0.5", "1"], [0, 1, 1]) is None
    found = calibration.spiegelhalter(["0.25"], [1])
    assert found is not None
    assert found.z == pytest.approx(0.75 * 0.5 / math.sqrt(0.25 * 0.25 * 0.75), abs=1e-15)


@pytest.mark.parametrize(
    ("p", "y"),
    [
        (["0.5", "0.5"], [0, 1]),
        (["0.2", "0.8"], [0, 1]),
        (["0.2", "0.8"], [1, 0]),
        (["0.2", "0.5", "0.5", "0.8"], [0, 0, 1, 1]),
        (["0.2", "0.8"], [1, 1]),
    ],
)
def test_cox_line_without_a_finite_fit(p: list[str], y: list[int]) -> None:
    """Cox's line MUST be None for one forecast, one class or perfect separation."""
    assert calibration.cox_line(p, y) is None


def test_cox_line_of_calibrated_cards_is_the_identity() -> None:
    p = ["0.2"] * 5 + ["0.8"] * 5
    y = [1, 0, 0, 0, 0, 0, 1, 1, 1, 1]
    found = calibration.cox_line(p, y)
    assert found is not None
    assert (found.intercept, found.slope) == pytest.approx((0.0, 1.0), abs=1e-12)
    assert calibration.cox_line(p, y, ("0", "1")) is None
