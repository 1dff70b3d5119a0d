"""Cards put into groups: exact counts and sums per group, and the three ways to form groups.

Groups are equal-width bins, quantile bins, or one group per distinct forecast. Bin edges are
compared in exact units; a float edge such as 0.1 * 3 never decides where a card goes.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ledger.errors import BadInputError
from scoring.units import ONE, Labels, Units

Closed = Literal["left", "right"]


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Exact totals of the non-empty groups, in ascending order of group.

    Attributes:
        index: int64, shape (k,), the group's number.
        n: int64, cards per group, each above 0.
        yes: int64, cards with y = 1.
        p_sum: int64, sum of p in units of 1e-9.
    """

    index: NDArray[np.int64]
    n: NDArray[np.int64]
    yes: NDArray[np.int64]
    p_sum: NDArray[np.int64]


def group_cards(units: Units, labels: Labels, group: NDArray[np.int64]) -> Groups:
    """Total cards by group number. O(n log n); exact up to 9e9 cards."""
    order = np.argsort(group, kind="stable")
    ordered = group[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if group.size else group[:0]
    ends = np.r_[starts[1:], group.size] if group.size else starts
    if not group.size:
        return Groups(starts, starts, starts, starts)
    return Groups(
        ordered[starts],
        (ends - starts).astype(np.int64),
        np.add.reduceat(labels[order].astype(np.int64), starts),
        np.add.reduceat(units[order], starts),
    )


def equal_width(units: Units, bins: int, closed: Closed) -> NDArray[np.int64]:
    """Return the bin 0..bins-1 of each card.

    closed="left": [k/bins, (k+1)/bins), the last bin also holds 1.
    closed="right": (k/bins, (k+1)/bins], the first bin also holds 0.

    Raises:
        BadInputError: bins outside 1..1000.
    """
    if not 1 <= bins <= 1000:
        raise BadInputError(f"{bins} bins; 1 to 1000 are allowed", where="bins")
    if closed == "left":
        return np.asarray(np.minimum(units * bins // ONE, bins - 1), dtype=np.int64)
    return np.asarray(np.maximum(-(-units * bins // ONE) - 1, 0), dtype=np.int64)


def quantile_bins(units: Units, bins: int) -> NDArray[np.int64]:
    """Return the bin of each card by quantile edges; equal forecasts share a bin.

    Edge k is the k/bins quantile of p (linear between order statistics, as numpy's default), a
    card belongs to the number of edges strictly below it. Edges are held multiplied by `bins`,
    which makes them integers. Bins may be empty when forecasts tie.
    """
    if not 1 <= bins <= 1000:
        raise BadInputError(f"{bins} bins; 1 to 1000 are allowed", where="bins")
    if not units.size:
        return units
    ordered = np.sort(units)
    position = (units.size - 1) * np.arange(1, bins, dtype=np.int64)
    below, part = position // bins, position % bins
    above = np.minimum(below + 1, units.size - 1)
    edges = ordered[below] * (bins - part) + ordered[above] * part
    return np.searchsorted(edges, units * bins, side="left").astype(np.int64)


def sum_of_ratios(numerators: list[int], denominators: list[int]) -> Fraction:
    """Sum integer ratios exactly.

    Numerators over the same denominator are added first: group sizes of n cards take at most
    sqrt(2n) distinct values, so that the exact sum stays affordable for a million groups.
    """
    totals: dict[int, int] = {}
    for numerator, denominator in zip(numerators, denominators, strict=True):
        totals[denominator] = totals.get(denominator, 0) + numerator
    return sum((Fraction(top, bottom) for bottom, top in sorted(totals.items())), Fraction(0))
