"""Confidence levels as exact decimals, quantiles of integers, and the BCa adjustment.

Shared by the resampled intervals (bootstrap.py) and by their limit (limit.py).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from ledger.errors import BadInputError
from scoring.exact import ExactArray


def parse_tail(level: str) -> Fraction:
    """Return (1 - level) / 2 for a level such as "0.95".

    Raises:
        BadInputError: no decimal strictly between 0 and 1.
    """
    try:
        value = Fraction(level)
    except (ValueError, ZeroDivisionError):
        value = Fraction(0)
    if not 0 < value < 1:
        raise BadInputError(f"level {level!r} is not a decimal inside (0, 1)", where="level")
    return (1 - value) / 2


def linear_quantile(values: NDArray[np.int64], alpha: Fraction) -> Fraction:
    """Return the alpha quantile of B > 0 integers, linear between order statistics.

    numpy's default (Hyndman and Fan 7): position (B - 1) alpha, exact here. O(B).
    """
    position = (values.size - 1) * alpha
    below = math.floor(position)
    above = min(below + 1, values.size - 1)
    ordered = np.partition(values, [below, above])
    low, high = int(ordered[below]), int(ordered[above])
    return low + (high - low) * (position - below)


def acceleration(values: ExactArray) -> float | None:
    """Return the jackknife acceleration of a mean, sum u^3 / (6 (sum u^2)^1.5), u = x - mean.

    None where all values are equal (Efron 1987, eq. 4.4).
    """
    if not len(values) or int(values.units.min()) == int(values.units.max()):
        return None
    u = values.units - float(values.total() / values.step / len(values))
    u = u / float(np.abs(u).max())
    cubes, squares = math.fsum((u * u * u).tolist()), math.fsum((u * u).tolist())
    return cubes / (6.0 * squares * math.sqrt(squares))


def bca_levels(below: float, accel: float | None, tail: float) -> tuple[float, float] | None:
    """Return the two BCa levels (Efron 1987), or None where they do not exist.

    Args:
        below: P(resampled mean < mean) + P(equal) / 2.
        accel: `acceleration`, None for equal values.
        tail: (1 - level) / 2.
    """
    if accel is None or not 0.0 < below < 1.0:
        return None
    z0 = float(ndtri(below))
    levels = []
    for z in (float(ndtri(tail)), -float(ndtri(tail))):
        room = 1.0 - accel * (z0 + z)
        if room <= 0.0:
            return None
        levels.append(float(ndtr(z0 + (z0 + z) / room)))
    return levels[0], levels[1]
