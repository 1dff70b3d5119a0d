"""Sign-flip permutation test of a mean difference: exact by meet in the middle, else Monte Carlo.

Under the null each difference could as well have the other sign. The p-value is the share of the
2^n sign vectors with |sum s_i d_i| >= |sum d_i| (Fisher 1935). Zero differences cancel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ledger.errors import BadInputError
from scoring.exact import ExactArray, align
from scoring.index_stream import IndexStream

EXACT_CARDS = 40
SIGN_GENERATOR = "pcg64-signs/1"
_BLOCK = 1 << 18


@dataclass(frozen=True, slots=True)
class PermutationTest:
    """Result of the sign-flip test.

    Attributes:
        p_value: two-sided; 1 for no cards.
        p_exact: count / 2^n, None for Monte Carlo.
        method: "exact" or "monte-carlo".
        resamples: B of the Monte Carlo; None when exact.
        seed: of the Monte Carlo; None when exact.
        generator: of the Monte Carlo; None when exact.
    """

    p_value: float
    p_exact: Fraction | None
    method: str
    resamples: int | None
    seed: int | None
    generator: str | None


def sign_flip_test(d: ExactArray, *, seed: int, resamples: int = 9999) -> PermutationTest:
    """Test that the mean difference is 0; exact up to 40 non-zero differences.

    Beyond 40, p = (k + 1) / (B + 1) with k of B random sign vectors at least as extreme, from
    `seed`. Cost of the exact test: O(2^(n/2)), about 0.1 s at 40, and
    about 2 s where the common unit is so fine that the sum of |d| needs more than 63 bits.

    Raises:
        BadInputError: resamples below 1 or a negative seed.
    """
    if resamples < 1:
        raise BadInputError(f"{resamples} resamples; need at least 1", where="resamples")
    if int(np.count_nonzero(d.units)) <= EXACT_CARDS:
        exact = sign_flip_exact(d)
        return PermutationTest(float(exact), exact, "exact", None, None, None)
    p_value = _monte_carlo(d, seed, resamples)
    return PermutationTest(p_value, None, "monte-carlo", resamples, seed, SIGN_GENERATOR)


def sign_flip_exact(d: ExactArray) -> Fraction:
    """Return the exact two-sided p-value of up to 40 non-zero differences.

    With D = sum |d_i| and U the sum of a subset of the |d_i|, |sum s_i d_i| = |2U - D|; the upper
    tail is U >= (D + |T|) / 2 and the lower one mirrors it. Subset sums of the two halves are
    sorted and matched.

    Raises:
        BadInputError: more than 40 non-zero differences.
    """
    sizes = [abs(unit) for unit in d.units.tolist() if unit]
    if len(sizes) > EXACT_CARDS:
        raise BadInputError(f"{len(sizes)} differences; exact to {EXACT_CARDS}", where="d")
    observed = abs(sum(d.units.tolist()))
    if observed == 0:
        return Fraction(1)
    common = math.gcd(*sizes)
    sizes = [size // common for size in sizes]
    need = (sum(sizes) + observed // common) // 2
    # Python integers where 64 bits do not hold the total: slow, and needed only at 9 places.
    kind: type = np.int64 if sum(sizes) < 1 << 63 else object
    left = _subset_sums(sizes[::2], kind)
    right = _subset_sums(sizes[1::2], kind)
    found = np.searchsorted(right, need - left[::-1], side="left")
    upper = int((right.size - found).sum())
    return Fraction(2 * upper, 1 << len(sizes))


def _subset_sums(sizes: list[int], kind: type) -> NDArray[Any]:
    """Return all 2^k subset sums in ascending order."""
    sums: NDArray[Any] = np.zeros(1, dtype=kind)
    for size in sizes:
        sums = np.concatenate([sums, sums + size])
    return np.sort(sums)


def _monte_carlo(d: ExactArray, seed: int, resamples: int) -> float:
    units = align([d]).units[0]
    stream = IndexStream(seed)
    observed = abs(int(units.sum()))
    rows = max(1, _BLOCK // units.size)
    extreme = 0
    for first in range(0, resamples, rows):
        count = min(rows, resamples - first)
        sums = (stream.signs(count, units.size) * units).sum(axis=1)
        extreme += int(np.count_nonzero(np.abs(sums) >= observed))
    return (extreme + 1) / (resamples + 1)
