"""Murphy's decomposition of the Brier loss, with within-bin terms and bias correction.

    B = REL - RES + UNC + WBV - WBC

Binned forecasts need the two within-bin terms (Stephenson, Coelho and Jolliffe 2008) for the
identity; with one group per distinct forecast both are 0 (Murphy 1973). Everything is exact
rational arithmetic, rounded once at the end. Bias correction: Broecker 2012, Ferro and Fricker
2012. Murphy diagram: Ehm, Gneiting, Jordan and Krueger 2016.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from scoring.exact import exact_sum_of_squares
from scoring.grouping import Closed, Groups, equal_width, group_cards, sum_of_ratios
from scoring.units import ONE, Labels, Outcomes, Probabilities, Units, as_cards, parse_probability


@dataclass(frozen=True, slots=True)
class BiasCorrected:
    """Murphy terms with the finite-sample bias subtracted. REL and RES can be negative.

    Attributes:
        reliability: REL - C with C = sum n_k o_k (1 - o_k) / (n (n_k - 1)).
        resolution: RES - C + UNC / (n - 1).
        uncertainty: UNC n / (n - 1).
        singletons: groups of one card; their variance cannot be estimated, they add nothing to C.
    """

    reliability: float
    resolution: float
    uncertainty: float
    singletons: int


@dataclass(frozen=True, slots=True)
class Murphy:
    """Exact Murphy terms; `float()` of each is rounded once.

    Attributes:
        grouping: how groups were formed.
        reliability: mean squared gap between a group's mean forecast and its yes rate.
        resolution: spread of the groups' yes rates.
        uncertainty: r (1 - r) with r the yes rate.
        within_variance: WBV, variance of forecasts within groups.
        within_covariance: WBC, twice the covariance of forecasts and labels within groups.
        corrected: bias-corrected terms; None for a single card.
    """

    grouping: str
    reliability: Fraction
    resolution: Fraction
    uncertainty: Fraction
    within_variance: Fraction
    within_covariance: Fraction
    corrected: BiasCorrected | None

    @property
    def brier(self) -> Fraction:
        """Return REL - RES + UNC + WBV - WBC, which is the mean Brier loss exactly."""
        within = self.within_variance - self.within_covariance
        return self.reliability - self.resolution + self.uncertainty + within


def murphy_binned(
    p: Probabilities, y: Outcomes, *, bins: int = 10, closed: Closed = "left"
) -> Murphy | None:
    """Decompose over equal-width bins; None for no cards."""
    units, labels = as_cards(p, y)
    name = f"equal-width-{bins}-{closed}-closed/1"
    return _murphy(name, units, labels, equal_width(units, bins, closed))


def murphy_distinct(p: Probabilities, y: Outcomes) -> Murphy | None:
    """Decompose with one group per distinct forecast; None for no cards."""
    units, labels = as_cards(p, y)
    return _murphy("distinct-p/1", units, labels, units)


def _murphy(name: str, units: Units, labels: Labels, group: NDArray[np.int64]) -> Murphy | None:
    n = int(units.size)
    if n == 0:
        return None
    groups = group_cards(units, labels, group)
    sizes, yes, p_sum = groups.n.tolist(), groups.yes.tolist(), groups.p_sum.tolist()
    rows = list(zip(yes, p_sum, strict=True))
    total_yes = sum(yes)
    scale = n * ONE
    squared_means = sum_of_ratios([q * q for q in p_sum], sizes)
    cross_means = sum_of_ratios([s * q for s, q in rows], sizes)
    uncertainty = Fraction(total_yes * (n - total_yes), n * n)
    yes_p = int(sum(units[labels == 1].tolist()))
    parts = Murphy(
        grouping=name,
        reliability=sum_of_ratios([(q - ONE * s) ** 2 for s, q in rows], sizes) / (scale * ONE),
        resolution=sum_of_ratios([s * s for s in yes], sizes) / n - Fraction(total_yes, n) ** 2,
        uncertainty=uncertainty,
        within_variance=(exact_sum_of_squares(units) - squared_means) / (scale * ONE),
        within_covariance=2 * (yes_p - cross_means) / scale,
        corrected=None,
    )
    return parts if n == 1 else _with_correction(parts, groups, n)


def _with_correction(parts: Murphy, groups: Groups, n: int) -> Murphy:
    several = groups.n > 1
    sizes, yes = groups.n[several].tolist(), groups.yes[several].tolist()
    rows = list(zip(yes, sizes, strict=True))
    bias = sum_of_ratios([s * (k - s) for s, k in rows], [k * (k - 1) for k in sizes]) / n
    corrected = BiasCorrected(
        reliability=float(parts.reliability - bias),
        resolution=float(parts.resolution - bias + parts.uncertainty / (n - 1)),
        uncertainty=float(parts.uncertainty * n / (n - 1)),
        singletons=int(np.count_nonzero(~several)),
    )
    return Murphy(
        parts.grouping,
        parts.reliability,
        parts.resolution,
        parts.uncertainty,
        parts.within_variance,
        parts.within_covariance,
        corrected,
    )


def murphy_curve(
    p: Probabilities, y: Outcomes, thresholds: Sequence[str]
) -> tuple[float, ...] | None:
    """Return the mean elementary score at each threshold t; the area under it is the Brier loss.

    A card costs 2(1 - t) where y = 1 and p <= t, and 2t where y = 0 and p > t. This is twice the
    elementary score of Ehm et al. Thresholds are decimal strings; None for no cards.
    """
    units, labels = as_cards(p, y)
    n = int(units.size)
    if n == 0:
        return None
    yes, no = np.sort(units[labels == 1]), np.sort(units[labels == 0])
    curve = []
    for text in thresholds:
        at = parse_probability(text, where="thresholds")
        missed = int(np.searchsorted(yes, at, side="right"))
        alarms = int(no.size) - int(np.searchsorted(no, at, side="right"))
        curve.append((2 * (ONE - at) * missed + 2 * at * alarms) / (n * ONE))
    return tuple(curve)
