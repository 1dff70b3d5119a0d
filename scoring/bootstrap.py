"""Bootstrap intervals of a mean: shared indices, exact sums, a generator that is written down.

Cards are drawn with replacement by `IndexStream`; one draw of indices serves all methods and all
differences, so that they stay paired. Every resampled sum is an exact integer; order statistics are
picked among integers and interpolated as rationals, so an interval has the same bits everywhere.
Sources: Efron 1979 (percentile), Efron 1987 (BCa), docs/spec/scoring.md.

Cost: resampling is a sparse matrix of ones, 32,768 indices at a time, times the table of losses.
A block of indices stays in the cache; benchmarks/bootstrap.py compares it with scipy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.stats import rankdata

from ledger.errors import BadInputError
from scoring.exact import ExactArray, align, fit_units
from scoring.index_stream import GENERATOR, IndexStream
from scoring.levels import acceleration, bca_levels, linear_quantile, parse_tail

RESAMPLES = 10_000
Method = Literal["percentile", "bca"]
_BLOCK = 1 << 15


@dataclass(frozen=True, slots=True, eq=False)
class ResampledSums:
    """Sums over resampled cards, exact, and what they were made from.

    Attributes:
        sums: int64, shape (m, B), in units of `step`.
        step: the worth of one unit.
        values: the m arrays.
        seed: of the index stream.
        rounded: True where values had to be rounded to fit (see `align`).
    """

    sums: NDArray[np.int64]
    step: Fraction
    values: tuple[ExactArray, ...]
    seed: int
    rounded: bool

    @property
    def resamples(self) -> int:
        """Return B."""
        return int(self.sums.shape[1])


@dataclass(frozen=True, slots=True)
class Interval:
    """A bootstrap interval and everything needed to compute it again.

    Attributes:
        low: lower end.
        high: upper end.
        level: nominal coverage, as written.
        method: "percentile" or "bca", the one asked for.
        fell_back: True where BCa did not exist and the percentile interval stands in.
        resamples: B.
        seed: of the index stream.
        rounded: True where inputs were floats off the exact grid.
        generator: name and version of the index stream.
    """

    low: float
    high: float
    level: str
    method: Method
    fell_back: bool
    resamples: int
    seed: int
    rounded: bool
    generator: str = GENERATOR


def _sum_resamples(
    stream: IndexStream, table: NDArray[np.int64], resamples: int
) -> NDArray[np.int64]:
    """Return exact sums (m, B) of n draws with replacement from the n columns of an (m, n) table.

    The caller guarantees n * max|table| < 2^62. Below 2^53 doubles carry the sums, also exactly.
    """
    n = int(table.shape[1])
    bound = n * int(np.abs(table).max(initial=0))
    kind = np.dtype(np.float64) if bound < 1 << 53 else np.dtype(np.int64)
    losses = np.ascontiguousarray(table.T, dtype=kind)
    rows = min(resamples, max(2, _BLOCK // n // 2 * 2))
    starts = np.arange(0, (rows + 1) * n, n, dtype=np.int32)
    draws = csr_array(
        (np.ones(rows * n, kind), np.zeros(rows * n, np.int32), starts), shape=(rows, n)
    )
    sums = np.empty((table.shape[0], resamples), dtype=np.int64)
    for first in range(0, resamples, rows):
        count = min(rows, resamples - first)
        if count < rows:
            draws = draws[:count]
        draws.indices[:] = stream.indices(n, n * count)
        sums[:, first : first + count] = (draws @ losses).T
    return sums


def _check_resamples(resamples: int) -> None:
    if resamples < 1:
        raise BadInputError(f"{resamples} resamples; need at least 1", where="resamples")


def resample(
    values: Sequence[ExactArray], *, seed: int, resamples: int = RESAMPLES
) -> ResampledSums | None:
    """Resample the cards of m paired arrays with shared indices; None for no cards.

    Args:
        values: m arrays over the same n cards, in the same order.
        seed: 0 or more.
        resamples: B.

    Raises:
        BadInputError: arrays of different lengths, none at all, B below 1, or a negative seed.
    """
    _check_resamples(resamples)
    table = align(values)
    if not len(values[0]):
        return None
    sums = _sum_resamples(IndexStream(seed), table.units, resamples)
    return ResampledSums(sums, table.step, tuple(values), seed, table.rounded)


def interval(
    drawn: ResampledSums, *, which: int = 0, level: str = "0.95", method: Method = "percentile"
) -> Interval:
    """Return the interval of the mean of array `which`.

    BCa does not exist where all values are equal, where all resampled means lie on one side of the
    mean, or where the acceleration is too large; the percentile interval then stands in and
    `fell_back` is True.

    Raises:
        BadInputError: a level outside (0, 1).
    """
    tail = parse_tail(level)
    sums, values = drawn.sums[which], drawn.values[which]
    levels: tuple[Fraction, Fraction] | None = (tail, 1 - tail)
    if method == "bca":
        levels = _bca(sums, drawn.step, values, tail)
    fell_back = levels is None
    low, high = (
        float(linear_quantile(sums, alpha) * drawn.step / len(values))
        for alpha in levels or (tail, 1 - tail)
    )
    return Interval(low, high, level, method, fell_back, drawn.resamples, drawn.seed, drawn.rounded)


def _bca(
    sums: NDArray[np.int64], step: Fraction, values: ExactArray, tail: Fraction
) -> tuple[Fraction, Fraction] | None:
    observed = values.total() / step
    least = math.floor(observed)
    twice = int(np.count_nonzero(sums <= least)) * 2
    if least == observed:
        twice -= int(np.count_nonzero(sums == least))
    found = bca_levels(twice / (2 * sums.size), acceleration(values), float(tail))
    return found and (Fraction(found[0]), Fraction(found[1]))


def bootstrap_interval(
    values: ExactArray,
    *,
    seed: int,
    resamples: int = RESAMPLES,
    level: str = "0.95",
    method: Method = "percentile",
) -> Interval | None:
    """Return the interval of one mean; None for no cards. See `resample` and `interval`."""
    drawn = resample([values], seed=seed, resamples=resamples)
    return None if drawn is None else interval(drawn, level=level, method=method)


def _plain_interval(
    ends: tuple[float, float], level: str, resamples: int, seed: int, *, rounded: bool
) -> Interval:
    return Interval(
        *ends, level, "percentile", fell_back=False, resamples=resamples, seed=seed, rounded=rounded
    )


def cluster_interval(
    values: ExactArray,
    clusters: Sequence[str],
    *,
    seed: int,
    resamples: int = RESAMPLES,
    level: str = "0.95",
) -> Interval | None:
    """Return the percentile interval when whole clusters are drawn; None for no cards.

    The K distinct labels are sorted, K clusters are drawn with replacement, and the statistic is
    the sum over the number of cards drawn. Use it where cards of one event family resolve together.

    Raises:
        BadInputError: not one label a card, B below 1, or a level outside (0, 1).
    """
    tail = parse_tail(level)
    _check_resamples(resamples)
    if len(clusters) != len(values):
        raise BadInputError(f"{len(clusters)} clusters for {len(values)} cards", where="clusters")
    if not len(values):
        return None
    names = sorted(set(clusters))
    sizes = dict.fromkeys(names, 0)
    totals = dict.fromkeys(names, 0)
    for name, unit in zip(clusters, values.units.tolist(), strict=True):
        sizes[name] += 1
        totals[name] += unit
    by_cluster = np.array([[totals[name] for name in names]], dtype=object)
    table = fit_units(by_cluster, values.step, len(names), rounded=values.rounded)
    counts = np.array([[sizes[name] for name in names]], dtype=np.int64)
    both = np.concatenate([table.units, counts])
    sums, drawn = _sum_resamples(IndexStream(seed), both, resamples)
    means = sorted((sums / drawn).tolist())
    low, high = (_between(means, alpha) * float(table.step) for alpha in (tail, 1 - tail))
    return _plain_interval((low, high), level, resamples, seed, rounded=table.rounded)


def _between(ordered: list[float], alpha: Fraction) -> float:
    position = (len(ordered) - 1) * alpha
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * float(position - below)


def stratified_interval(
    values: ExactArray,
    strata: Sequence[object],
    order: Sequence[object],
    *,
    seed: int,
    resamples: int = RESAMPLES,
    level: str = "0.95",
) -> Interval | None:
    """Return the percentile interval when each stratum keeps its number of cards; None for none.

    Args:
        values: n values.
        strata: the stratum of each card.
        order: every stratum once; all B draws of the first come first from one stream.
        seed: 0 or more.
        resamples: B.
        level: nominal coverage.

    Raises:
        BadInputError: `order` is not the set of strata, lengths differ, or as for `resample`.
    """
    tail = parse_tail(level)
    _check_resamples(resamples)
    if len(strata) != len(values):
        raise BadInputError(f"{len(strata)} strata for {len(values)} cards", where="strata")
    if len(set(order)) != len(order) or set(order) != set(strata):
        raise BadInputError("order must name every stratum once", where="order")
    if not len(values):
        return None
    table = align([values])
    stream = IndexStream(seed)
    sums = np.zeros(resamples, dtype=np.int64)
    for stratum in order:
        members = np.flatnonzero([mine == stratum for mine in strata])
        sums += _sum_resamples(stream, table.units[:, members], resamples)[0]
    low, high = (
        float(linear_quantile(sums, alpha) * table.step / len(values)) for alpha in (tail, 1 - tail)
    )
    return _plain_interval((low, high), level, resamples, seed, rounded=table.rounded)


@dataclass(frozen=True, slots=True)
class RankSummary:
    """Where one method ranks over the resamples; rank 1 is the lowest mean loss.

    Attributes:
        first: share of resamples in which it is first, a tie shared equally.
        mean_rank: mean of the rank, ties averaged.
        low: lower end of the interval of the rank (an order statistic).
        high: upper end.
    """

    first: float
    mean_rank: float
    low: float
    high: float


def bootstrap_ranks(drawn: ResampledSums, *, level: str = "0.95") -> tuple[RankSummary, ...]:
    """Return the rank summary of each array of `drawn`, losses where lower is better.

    Raises:
        BadInputError: a level outside (0, 1).
    """
    tail = parse_tail(level)
    ranks = rankdata(drawn.sums, axis=0)
    leaders = ranks == ranks.min(axis=0)
    shares = (leaders / leaders.sum(axis=0)).mean(axis=1)
    # The inverse-CDF quantile: the least rank whose share reaches alpha.
    places = [
        max(0, -(-alpha.numerator * drawn.resamples // alpha.denominator) - 1)
        for alpha in (tail, 1 - tail)
    ]
    ordered = np.sort(ranks, axis=1)
    return tuple(
        RankSummary(float(share), float(row.mean()), float(row[places[0]]), float(row[places[1]]))
        for share, row in zip(shares, ordered, strict=True)
    )
