"""Calibration summaries: binned errors with the convention in the result, sharpness, tests.

ECE depends on where a forecast on an edge goes, so each result names its convention, and a table
must print it. Never rank by ECE: the constant forecast 1/2 scores 0 on balanced cards.
Sources: Naeini et al. 2015 (ECE, MCE); Spiegelhalter 1986 (z); Cox 1958 (slope, intercept);
Kumar et al. 2019 (debiased squared error).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from scoring.elementary_log import natural_log
from scoring.exact import exact_sum, exact_sum_of_squares
from scoring.grouping import Closed, Groups, equal_width, group_cards, quantile_bins
from scoring.rules import CLIP, clip_bounds
from scoring.units import ONE, Labels, Outcomes, Probabilities, Units, as_cards, as_units


@dataclass(frozen=True, slots=True)
class Bin:
    """One bin of a reliability table.

    Attributes:
        index: 0 for the lowest.
        n: cards in it.
        mean_p: mean forecast; None when empty.
        observed: share of yes; None when empty.
        gap: |mean_p - observed|; None when empty.
    """

    index: int
    n: int
    mean_p: float | None
    observed: float | None
    gap: float | None


@dataclass(frozen=True, slots=True)
class CalibrationError:
    """Expected and maximum calibration error under one named convention.

    Attributes:
        convention: e.g. "equal-width-10-left-closed/1"; two values compare only under one name.
        ece: sum over bins of n_b/n * gap.
        mce: largest gap of a non-empty bin.
        bins: all bins, empty ones included.
    """

    convention: str
    ece: float
    mce: float
    bins: tuple[Bin, ...]


def calibration_error(
    p: Probabilities, y: Outcomes, *, bins: int = 10, closed: Closed = "left"
) -> CalibrationError | None:
    """Return ECE and MCE over equal-width bins; None for no cards.

    Edges k/bins are compared exactly. closed="left" puts 0.3 in [0.3, 0.4) and 1 in the last
    bin; closed="right" puts 0.3 in (0.2, 0.3] and 0 in the first.
    """
    units, labels = as_cards(p, y)
    name = f"equal-width-{bins}-{closed}-closed/1"
    return _binned(name, bins, group_cards(units, labels, equal_width(units, bins, closed)))


def adaptive_calibration_error(
    p: Probabilities, y: Outcomes, *, bins: int = 5
) -> CalibrationError | None:
    """Return ECE and MCE over quantile bins, right-closed, ties together; None for no cards."""
    units, labels = as_cards(p, y)
    name = f"quantile-{bins}-right-closed/1"
    return _binned(name, bins, group_cards(units, labels, quantile_bins(units, bins)))


def _binned(convention: str, count: int, groups: Groups) -> CalibrationError | None:
    n = int(groups.n.sum())
    if n == 0:
        return None
    table = {i: Bin(i, 0, None, None, None) for i in range(count)}
    worst, excess = Fraction(0), 0
    columns = (groups.index, groups.n, groups.yes, groups.p_sum)
    for index, size, yes, p_sum in zip(*(column.tolist() for column in columns), strict=True):
        gap = Fraction(abs(p_sum - ONE * yes), size * ONE)
        worst, excess = max(worst, gap), excess + abs(p_sum - ONE * yes)
        table[index] = Bin(index, size, p_sum / (size * ONE), yes / size, float(gap))
    return CalibrationError(convention, excess / (n * ONE), float(worst), tuple(table.values()))


@dataclass(frozen=True, slots=True)
class SquaredCalibrationError:
    """Squared calibration error over ten left-closed bins.

    Attributes:
        plugin: sum of n_b/n * gap^2, biased upward.
        debiased: minus the sampling variance o(1-o)/(n_b-1), over bins of two cards or more; it
            can be negative.
    """

    plugin: float
    debiased: float


def squared_calibration_error(p: Probabilities, y: Outcomes) -> SquaredCalibrationError | None:
    """Return the plug-in and the debiased squared calibration error; None for no cards."""
    units, labels = as_cards(p, y)
    if not units.size:
        return None
    groups = group_cards(units, labels, equal_width(units, 10, "left"))
    plugin = debiased = Fraction(0)
    columns = zip(groups.n.tolist(), groups.yes.tolist(), groups.p_sum.tolist(), strict=True)
    for size, yes, p_sum in columns:
        share = Fraction((p_sum - ONE * yes) ** 2, size * units.size * ONE * ONE)
        plugin += share
        if size > 1:
            debiased += share - Fraction(yes * (size - yes), size * (size - 1) * units.size)
    return SquaredCalibrationError(float(plugin), float(debiased))


@dataclass(frozen=True, slots=True)
class Sharpness:
    """How far forecasts are spread, labels not looked at.

    Attributes:
        mean_p: mean forecast.
        variance: population variance of p, in [0, 0.25].
        mean_distance: mean |p - 1/2|, in [0, 0.5].
    """

    mean_p: float
    variance: float
    mean_distance: float


def sharpness(p: Probabilities) -> Sharpness | None:
    """Return mean, variance and mean distance from one half, each rounded once; None for none."""
    units = as_units(p)
    n = int(units.size)
    if n == 0:
        return None
    total, squares = exact_sum(units), exact_sum_of_squares(units)
    away = exact_sum(np.abs(2 * units - ONE))
    variance = (n * squares - total * total) / (n * n * ONE * ONE)
    return Sharpness(total / (n * ONE), variance, away / (2 * n * ONE))


def calibration_in_the_large(p: Probabilities, y: Outcomes) -> float | None:
    """Return mean p minus the yes rate, in [-1, 1]; None for no cards."""
    units, labels = as_cards(p, y)
    if not units.size:
        return None
    excess = exact_sum(units) - ONE * int(np.count_nonzero(labels))
    return float(Fraction(excess, units.size * ONE))


@dataclass(frozen=True, slots=True)
class Spiegelhalter:
    """Spiegelhalter's calibration test.

    Attributes:
        z: standard normal when every p is the true probability; positive where the Brier loss is
            larger than calibrated forecasts would have.
        p_value: two-sided.
    """

    z: float
    p_value: float


def spiegelhalter(p: Probabilities, y: Outcomes) -> Spiegelhalter | None:
    """Return z = sum (y-p)(1-2p) / sqrt(sum (1-2p)^2 p(1-p)).

    None where the variance is 0: no cards, or every p is 0, 1/2 or 1.
    """
    units, labels = as_cards(p, y)
    slope = ONE - 2 * units
    top = exact_sum((labels.astype(np.int64) * ONE - units) * slope) / ONE**2
    tilt, chance = slope / float(ONE), units / float(ONE)
    variance = math.fsum((tilt * tilt * chance * (1.0 - chance)).tolist())
    if variance == 0.0:
        return None
    z = top / math.sqrt(variance)
    return Spiegelhalter(z, math.erfc(abs(z) / math.sqrt(2.0)))


@dataclass(frozen=True, slots=True)
class CoxLine:
    """Cox's recalibration logit P(yes) = intercept + slope * logit p; calibrated is (0, 1).

    Attributes:
        intercept: above 0 where forecasts are too low.
        slope: below 1 where forecasts are too extreme.
    """

    intercept: float
    slope: float


def cox_line(p: Probabilities, y: Outcomes, clip: tuple[str, str] = CLIP) -> CoxLine | None:
    """Fit Cox's line by maximum likelihood (Newton); p is clipped first.

    Returns:
        The fit to about 1e-12, or None where there is no finite one: fewer than two distinct
        forecasts, one class, or perfect separation.
    """
    units, labels = as_cards(p, y)
    low, high = clip_bounds(clip)
    clipped = np.clip(units, low, high)
    if _separated(clipped, labels) or low == 0 or high == ONE:
        return None
    x = natural_log(clipped / float(ONE)) - natural_log((ONE - clipped) / float(ONE))
    return _newton(x, labels.astype(np.float64))


def _separated(units: Units, labels: Labels) -> bool:
    """Say whether some threshold on p splits the classes, ties on it allowed."""
    yes, no = units[labels == 1], units[labels == 0]
    if not (yes.size and no.size) or units.min() == units.max():
        return True
    return bool(yes.min() >= no.max() or no.min() >= yes.max())


def _newton(x: NDArray[np.float64], y: NDArray[np.float64]) -> CoxLine | None:
    design = np.stack([np.ones_like(x), x])
    beta = np.zeros(2)
    for _ in range(100):
        mean = 1.0 / (1.0 + np.exp(-(beta @ design)))
        weight = mean * (1.0 - mean)
        step = np.linalg.solve((design * weight) @ design.T, design @ (y - mean))
        size = float(np.abs(step).max())
        beta = beta + step * min(1.0, 2.0 / max(size, 1e-300))
        if size < 1e-13 * max(1.0, float(np.abs(beta).max())):
            return CoxLine(float(beta[0]), float(beta[1]))
    return None
