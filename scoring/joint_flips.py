"""Monte Carlo sign flips of many comparisons at once, with the signs of each one alone.

The signs of `pcg64-signs/1` depend on seed and number of cards and on nothing else, so one pass
over them serves every pair of methods: the p-values are bit for bit those of `sign_flip_test`. What
is saved is drawing and unpacking the signs anew for each pair (benchmarks/replay.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scoring.exact import ExactArray, align, exact_sum
from scoring.index_stream import IndexStream
from scoring.permutation import EXACT_CARDS, SIGN_GENERATOR, PermutationTest, sign_flip_test

_BLOCK = 1 << 21
# Sums of a limb over all cards stay below this, where doubles are exact integers.
_DOUBLE_BITS = 53


@dataclass(frozen=True, slots=True, eq=False)
class _Limbs:
    """Integers of up to 62 bits as columns of doubles: value = sum of limb k times 2^(k width)."""

    columns: NDArray[np.float64]
    width: int
    count: int

    def sums(self, signs: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return signs @ values, shape (rows, m), exact."""
        parts = (signs @ self.columns).astype(np.int64).reshape(signs.shape[0], -1, self.count)
        shifts = np.arange(self.count, dtype=np.int64) * self.width
        return np.asarray((parts << shifts).sum(axis=2), dtype=np.int64)


def sign_flip_tests(
    differences: Sequence[ExactArray], *, seed: int, resamples: int
) -> list[PermutationTest]:
    """Test each mean difference against 0, as `sign_flip_test` would one by one.

    Args:
        differences: arrays over the same cards, in the same order.
        seed: 0 or more.
        resamples: B of a Monte Carlo test; up to 40 non-zero differences are tested exactly.

    Raises:
        BadInputError: resamples below 1 or a negative seed.
    """
    large = [d for d in differences if int(np.count_nonzero(d.units)) > EXACT_CARDS]
    if len(large) < 2:
        return [sign_flip_test(d, seed=seed, resamples=resamples) for d in differences]
    extreme = iter(_count_extreme(large, seed, resamples))
    return [
        PermutationTest(
            (next(extreme) + 1) / (resamples + 1),
            None,
            "monte-carlo",
            resamples,
            seed,
            SIGN_GENERATOR,
        )
        if int(np.count_nonzero(d.units)) > EXACT_CARDS
        else sign_flip_test(d, seed=seed, resamples=resamples)
        for d in differences
    ]


def _count_extreme(differences: Sequence[ExactArray], seed: int, resamples: int) -> list[int]:
    """Return for each array how many of B sign vectors are at least as extreme as its own sum."""
    units = np.stack([align([d]).units[0] for d in differences])
    observed = np.array([abs(exact_sum(row)) for row in units], dtype=np.int64)
    cards = units.shape[1]
    limbs = _split(units)
    stream = IndexStream(seed)
    rows = max(1, _BLOCK // cards)
    extreme = np.zeros(len(differences), dtype=np.int64)
    for first in range(0, resamples, rows):
        signs = stream.signs(min(rows, resamples - first), cards).astype(np.float64)
        extreme += (np.abs(limbs.sums(signs)) >= observed).sum(axis=0)
    return [int(count) for count in extreme]


def _split(units: NDArray[np.int64]) -> _Limbs:
    """Split (m, n) integers into limbs whose sums over n cards stay below 2^53."""
    width = _DOUBLE_BITS - 1 - int(units.shape[1]).bit_length()
    limbs = [units]
    while int(np.abs(limbs[-1]).max(initial=0)) >> width:
        top = limbs.pop()
        limbs += [top & ((1 << width) - 1), top >> width]
    stacked = np.stack(limbs, axis=1).reshape(-1, units.shape[1])
    return _Limbs(np.ascontiguousarray(stacked.T, dtype=np.float64), width, len(limbs))
