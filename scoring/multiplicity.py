"""Corrections for several tests at once.

A p-value of None means "not computable": it stays None and does not count in the family. Holm is
for the pre-registered family, Benjamini-Hochberg for exploratory tables, Westfall-Young uses the
dependence between comparisons on the same cards. Sources: Holm 1979; Benjamini and Hochberg 1995;
Benjamini and Yekutieli 2001; Westfall and Young 1993, algorithm 4.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ledger.errors import BadInputError
from scoring.exact import ExactArray, align
from scoring.index_stream import IndexStream
from scoring.permutation import SIGN_GENERATOR

PValues = Sequence[float | None]
_EXACT_FLIP_CARDS = 16
_BLOCK = 1 << 18
_TIE = 1e-12


def _adjust(p: PValues, adjust: Callable[[list[float]], list[float]]) -> tuple[float | None, ...]:
    """Adjust the known p-values in ascending order and put them back in place."""
    known: list[tuple[float, int]] = []
    for index, value in enumerate(p):
        if value is None:
            continue
        if not 0.0 <= value <= 1.0:
            raise BadInputError(f"{value} is not in [0, 1]", where=f"p[{index}]")
        known.append((value, index))
    known.sort()
    adjusted: list[float | None] = [None] * len(p)
    for (_, index), value in zip(known, adjust([v for v, _ in known]), strict=True):
        adjusted[index] = min(1.0, value)
    return tuple(adjusted)


def _running(values: list[float], pick: Callable[[float, float], float]) -> list[float]:
    result: list[float] = []
    for value in values:
        result.append(pick(result[-1], value) if result else value)
    return result


def bonferroni(p: PValues) -> tuple[float | None, ...]:
    """Return min(1, m p).

    Raises:
        BadInputError: a p-value outside [0, 1] or NaN.
    """
    return _adjust(p, lambda ordered: [len(ordered) * value for value in ordered])


def holm(p: PValues) -> tuple[float | None, ...]:
    """Return Holm's step-down p-values: the running maximum of (m - i) p_(i), i from 0.

    Raises:
        BadInputError: a p-value outside [0, 1] or NaN.
    """
    return _adjust(p, lambda o: _running([(len(o) - i) * value for i, value in enumerate(o)], max))


def benjamini_hochberg(p: PValues) -> tuple[float | None, ...]:
    """Return Benjamini-Hochberg p-values: the running minimum, from the largest, of m p_(i) / i.

    Raises:
        BadInputError: a p-value outside [0, 1] or NaN.
    """
    return _adjust(p, lambda ordered: _step_up(ordered, 1.0))


def benjamini_yekutieli(p: PValues) -> tuple[float | None, ...]:
    """Return Benjamini-Yekutieli p-values, valid under any dependence: BH times 1 + ... + 1/m.

    Raises:
        BadInputError: a p-value outside [0, 1] or NaN.
    """
    return _adjust(p, lambda o: _step_up(o, math.fsum(1.0 / (i + 1) for i in range(len(o)))))


def _step_up(ordered: list[float], factor: float) -> list[float]:
    m = len(ordered)
    scaled = [value * factor * m / (i + 1) for i, value in enumerate(ordered)]
    return _running(scaled[::-1], min)[::-1]


@dataclass(frozen=True, slots=True)
class MaxT:
    """Westfall-Young adjusted p-values by joint sign flips of cards.

    Attributes:
        statistics: |t| of each comparison; None where its differences have no spread.
        single_step: P(max over the family >= |t_j|); None where the statistic is.
        step_down: with comparisons above j removed, made monotone; None where the statistic is.
        method: "exact" to 16 cards, else "monte-carlo".
        resamples: sign vectors used.
        seed: of the Monte Carlo; None when exact.
        generator: of the Monte Carlo; None when exact.
    """

    statistics: tuple[float | None, ...]
    single_step: tuple[float | None, ...]
    step_down: tuple[float | None, ...]
    method: str
    resamples: int
    seed: int | None
    generator: str | None


def westfall_young(
    comparisons: Sequence[ExactArray], *, seed: int, resamples: int = 9999
) -> MaxT | None:
    """Adjust m paired comparisons over the same n cards jointly; None for fewer than two cards.

    One sign vector flips a card in all comparisons at once. Up to 16 cards all 2^n vectors are
    used and p is a share of them; beyond, p = (k + 1) / (B + 1). Statistics within a relative
    1e-12 count as equal, hence towards the p-value.

    Raises:
        BadInputError: differing lengths, none at all, resamples below 1 or a negative seed.
    """
    if resamples < 1:
        raise BadInputError(f"{resamples} resamples; need at least 1", where="resamples")
    table = align(comparisons)
    n = table.units.shape[1]
    if n < 2:
        return None
    scale = np.abs(table.units).max(axis=1, keepdims=True)
    values = table.units / np.where(scale == 0, 1, scale)
    squares = (values * values).sum(axis=1)
    observed = _studentise(values.sum(axis=1)[None, :], squares, n)[0]
    usable = [j for j in range(len(comparisons)) if np.ptp(table.units[j]) > 0]
    ranked = sorted(usable, key=lambda j: -observed[j])
    exact = n <= _EXACT_FLIP_CARDS
    blocks = _all_signs(n) if exact else _drawn_signs(n, seed, resamples)
    single, step = np.zeros(len(ranked)), np.zeros(len(ranked))
    total = 0
    for signs in blocks:
        flipped = _studentise(signs @ values[ranked].T, squares[ranked], n)
        reach = observed[ranked] * (1.0 - _TIE)
        tails = np.maximum.accumulate(flipped[:, ::-1], axis=1)[:, ::-1]
        step += (tails >= reach).sum(axis=0)
        single += (tails[:, :1] >= reach).sum(axis=0)
        total += signs.shape[0]
    extra = 0 if exact else 1
    single, step = (single + extra) / (total + extra), (step + extra) / (total + extra)
    step = np.maximum.accumulate(step)
    return MaxT(
        _spread([float(observed[j]) for j in ranked], ranked, len(comparisons)),
        _spread(single.tolist(), ranked, len(comparisons)),
        _spread(step.tolist(), ranked, len(comparisons)),
        "exact" if exact else "monte-carlo",
        total,
        None if exact else seed,
        None if exact else SIGN_GENERATOR,
    )


def _studentise(
    sums: NDArray[np.float64], squares: NDArray[np.float64], n: int
) -> NDArray[np.float64]:
    """Return |t| from sums; the sum of squares does not change under sign flips."""
    spread = (squares - sums * sums / n) / (n - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.abs(sums) / np.sqrt(np.maximum(spread, 0.0) * n))


def _all_signs(n: int) -> list[NDArray[np.float64]]:
    codes = np.arange(1 << n)[:, None] >> np.arange(n)
    return [np.asarray((codes & 1) * 2.0 - 1.0, dtype=np.float64)]


def _drawn_signs(n: int, seed: int, resamples: int) -> list[NDArray[np.float64]]:
    stream, rows = IndexStream(seed), max(1, _BLOCK // n)
    counts = [min(rows, resamples - first) for first in range(0, resamples, rows)]
    return [stream.signs(count, n).astype(np.float64) for count in counts]


def _spread(values: list[float], places: list[int], m: int) -> tuple[float | None, ...]:
    known = dict(zip(places, values, strict=True))
    return tuple(known.get(j) for j in range(m))
