"""The bootstrap without its noise: the law that B resampled means tend to as B grows.

The mean of n draws with replacement from n values has one exact law, the n-fold convolution of
the empirical law. Its quantiles are what a percentile or BCa interval converges to; no seed and no
generator enter. A quantile is inf{x : F(x) >= alpha}. Four ways, picked by the data:

- "lattice": the values lie on a grid on which the sum of n draws has at most 2^16 points within
  reach, or 2^18 where the series below leaves an error above 1e-6. The probabilities come from the
  n-th power of a discrete Fourier transform, right to about 1e-12; an end is an exact point.
- "counts": few distinct values off such a grid (at most 100,000 ways to draw them). Every
  multinomial outcome is listed, right to about 1e-12; an end is an exact point.
- "fourier": the characteristic function phi(t)^n of the standardised mean at t_k = 2 pi k / L gives
  F as a Fourier series of period L (Davies 1973; Abate and Whitt 1992); quantiles by Newton steps
  inside a bracket.
- "grid": where the series leaves an error above 1e-4, because F is a coarse staircase. Values are
  moved to a grid of at most 2^18 points within reach and treated as a lattice. No value moves by
  more than half a grid step, so no mean and no quantile does: the tolerance is proved.

What is proved for "fourier" and what is not. Aliasing is bounded: L is such that Chernoff's bound
leaves less than 1e-15 outside on each side, or L covers the whole range. Truncation at K terms is
estimated, not bounded: phi of a finite sample is almost periodic and keeps rising again further
out, because F is really a staircase with very fine steps. The remainder is taken as terms of random
phase, `error` = 4 rms / (pi sqrt(K)). rms is the largest root mean square over the last three
doublings of k, or, if larger, its value in the long run for values without further relations: the
root of the chance that two resamples draw every distinct value equally often, about
2 sqrt(pi n) prod exp(-2c) I0(2c) over the multiplicities c. K doubles while the error exceeds 1e-6,
and much further while it exceeds 1e-4. A `tolerance` is the error over the density, plus half a
step of the lattice on which the mean lives. On all pairs of the pilot (n = 24) it is 1e-9 to 1e-5
and covers what 32 times as many terms change; for 100 and more generic values it is below 1e-12.
Sine and exponential are the C library's, so the last digits may differ between machines: print no
more digits than the tolerance carries.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import gammaln, ive, ndtri

from ledger.errors import BadInputError
from scoring.bootstrap import Method
from scoring.exact import ExactArray, align, exact_sum
from scoring.levels import acceleration, bca_levels, parse_tail

Floats = NDArray[np.float64]

_LATTICE_POINTS = 1 << 16
_MOST_COUNTS = 100_000
_OUTSIDE = 1e-15
_GRID_POINTS = 1 << 18
_GOOD_ENOUGH = 1e-6
_COARSE = 1e-4
_MOST_TERMS = 1 << 14
_MOST_WORK = 1 << 22
_HEAD = 64
_ROUNDING = 1e-12
# Trial exponents of Chernoff's bound, in units of 1 / standard deviation of the mean.
_TILTS = np.geomspace(0.5, 40.0, 16)
_CHUNK = 1 << 15


class MeanLaw(Protocol):
    """The law of the mean of n draws."""

    @property
    def path(self) -> str:
        """Return how it was computed."""

    def at_most(self, t: Fraction) -> float:
        """Return P(mean <= t)."""

    def below_mean(self) -> float:
        """Return P(mean of the draws < mean of the values) + P(equal) / 2."""

    def quantiles(self, alphas: list[float]) -> list[tuple[float, float]]:
        """Return (quantile, tolerance) for each alpha."""


@dataclass(frozen=True, slots=True, eq=False)
class DiscreteLaw:
    """The law of the mean as a list of points.

    Attributes:
        path: "point", "lattice", "counts" or "grid".
        sums: int64, ascending, the sum of n draws in units of `step`, shifted by `origin`.
        cdf: P(sum <= sums[i]).
        origin: sum of n draws of the least value, in the same units.
        middle: the shifted sum that equals the sample's own.
        step: the worth of one unit of the mean.
        moved: how far the law's values may lie from the true ones, in values of the mean.
    """

    path: str
    sums: NDArray[np.int64]
    cdf: Floats
    origin: int
    middle: int
    step: Fraction
    moved: float = 0.0

    def at_most(self, t: Fraction) -> float:
        """Return P(mean <= t); t is compared exactly."""
        bound = math.floor(t / self.step) - self.origin
        return self._cdf_at(max(-1, min(bound, int(self.sums[-1]))))

    def _cdf_at(self, bound: int) -> float:
        place = int(np.searchsorted(self.sums, bound, side="right")) - 1
        return float(self.cdf[place]) if place >= 0 else 0.0

    def below_mean(self) -> float:
        """Return P(< sample mean) + P(= sample mean) / 2."""
        return (self._cdf_at(self.middle) + self._cdf_at(self.middle - 1)) / 2.0

    def quantiles(self, alphas: list[float]) -> list[tuple[float, float]]:
        """Return inf{x : F(x) >= alpha}, F within 1e-12 of alpha counting as equal.

        The tolerance is `moved`, plus the gap to the next point where such an equality decided.
        """
        found = []
        for alpha in alphas:
            place = int(np.searchsorted(self.cdf, alpha - _ROUNDING, side="left"))
            place = min(place, self.sums.size - 1)
            close = abs(float(self.cdf[place]) - alpha) <= 2.0 * _ROUNDING
            following = min(place + 1, self.sums.size - 1)
            gap = int(self.sums[following] - self.sums[place]) if close else 0
            value = (int(self.sums[place]) + self.origin) * self.step
            found.append((float(value), float(gap * self.step) + self.moved))
        return found


@dataclass(frozen=True, slots=True, eq=False)
class FourierLaw:
    """The law of the standardised mean as a Fourier series; see the module's text.

    Attributes:
        mean: of the values.
        sd: standard deviation of the mean of n draws.
        start: lower end of the period, in standard deviations.
        period: L, in standard deviations.
        frequencies: the t_k kept.
        weights: i phi(t_k)^n / (pi k), complex.
        error: estimated error of F.
        blur: half a step of the lattice of the mean, in its own unit.
        path: "fourier".
    """

    mean: float
    sd: float
    start: float
    period: float
    frequencies: Floats
    weights: NDArray[np.complex128]
    error: float
    blur: float
    path: str = "fourier"

    def _cdf(self, x: Floats, terms: int | None = None) -> tuple[Floats, Floats]:
        """Return F and its density at x standard deviations, by the first `terms` terms."""
        frequencies, weights = self.frequencies[:terms], self.weights[:terms]
        waves = np.exp(-1j * np.multiply.outer(x, frequencies))
        first = np.exp(-1j * self.start * frequencies)
        value = (x - self.start) / self.period + (waves @ weights - first @ weights).real
        slope = 1.0 / self.period + (waves @ (-1j * frequencies * weights)).real
        return value, slope

    def at_most(self, t: Fraction) -> float:
        """Return P(mean <= t); at a jump of F the middle of the jump."""
        x = (float(t) - self.mean) / self.sd
        if x <= self.start:
            return 0.0
        if x >= self.start + self.period:
            return 1.0
        return float(min(1.0, max(0.0, self._cdf(np.array([x]))[0][0])))

    def below_mean(self) -> float:
        """Return F at the mean; the series gives the middle of a jump by itself."""
        return float(self._cdf(np.zeros(1))[0][0])

    def quantiles(self, alphas: list[float]) -> list[tuple[float, float]]:
        """Return quantiles; the tolerance is `error` over the density, plus `blur`.

        The first terms carry the shape and locate the quantile; the many small ones that follow
        can move F by no more than the sum of their sizes, which brackets the final search.
        """
        targets = np.clip(np.array(alphas), 1e-14, 1.0 - 1e-14)
        low = np.full(targets.size, self.start)
        high = low + self.period
        x = self._solve(targets, low, high, np.clip(ndtri(targets), low, high), _HEAD)
        slope = np.maximum(self._cdf(x, _HEAD)[1], 1e-6)
        rest = 2.0 * float(np.abs(self.weights[_HEAD:]).sum())
        if rest > _OUTSIDE:
            room = 4.0 * rest / slope + 1e-12
            x = self._solve(targets, np.maximum(low, x - room), np.minimum(high, x + room), x, None)
        values = self.mean + x * self.sd
        reach = np.minimum(self.error / slope, self.period) * self.sd + self.blur
        return list(zip(values.tolist(), reach.tolist(), strict=True))

    def _solve(
        self, targets: Floats, low: Floats, high: Floats, x: Floats, terms: int | None
    ) -> Floats:
        """Solve F(x) = target for all targets at once: Newton, or bisection where it leaves."""
        for _ in range(80):
            value, slope = self._cdf(x, terms)
            above = value >= targets
            high, low = np.where(above, x, high), np.where(above, low, x)
            with np.errstate(divide="ignore", invalid="ignore"):
                newton = x - (value - targets) / slope
            inside = (newton > low) & (newton < high) & (slope > 0.0)
            following = np.where(inside, newton, (low + high) / 2.0)
            if float(np.abs(following - x).max()) < 1e-12:
                return np.asarray(following)
            x = np.asarray(following)
        return x


def mean_law(values: ExactArray) -> MeanLaw | None:
    """Return the law of the mean of n draws with replacement from n values; None for no cards.

    Cost: 24 generic values about 1 ms, 1000 about 1 ms; memory O(n).
    """
    n = len(values)
    if n == 0:
        return None
    table = align([values])
    units, step = table.units[0], table.step / n
    least = int(units.min())
    shifted = units - least
    grid = int(np.gcd.reduce(shifted))
    origin, middle = n * least, int(shifted.sum())
    if grid == 0:
        return DiscreteLaw("point", np.zeros(1, np.int64), np.ones(1), origin, 0, step)
    points = shifted // grid
    low, size = _window(points, n)
    if size <= _LATTICE_POINTS:
        sums, cdf = _lattice(points, n, low, size)
        return DiscreteLaw("lattice", sums * grid, cdf, origin, middle, step)
    distinct, counts = np.unique(points, return_counts=True)
    if _has_few_counts(n, distinct.size):
        sums, cdf = _counts(distinct, counts, n)
        return DiscreteLaw("counts", sums * grid, cdf, origin, middle, step)
    law = _fourier(values, float(grid * step / 2), counts)
    if law.error <= (_COARSE if size > _GRID_POINTS else _GOOD_ENOUGH):
        return law
    shift, sums, cdf, centre = _coarsened(points, n)
    path, wide = "grid" if shift else "lattice", grid << shift
    moved = float(n * (wide // 2) * step) if shift else 0.0
    return DiscreteLaw(path, sums * wide, cdf, origin, centre * wide, step, moved)


def _has_few_counts(n: int, kinds: int) -> bool:
    """Say whether n draws from so many values have at most _MOST_COUNTS count vectors.

    Stops as soon as it is over: the whole binomial of 100,000 cards takes 0.4 s.
    """
    ways = 1
    for i in range(1, min(n, kinds - 1) + 1):
        ways = ways * (n + kinds - i) // i
        if ways > _MOST_COUNTS:
            return False
    return True


def _coarsened(points: NDArray[np.int64], n: int) -> tuple[int, NDArray[np.int64], Floats, int]:
    """Move points to multiples of the least 2^shift that fits.

    Returns:
        shift, the sums and their CDF in units of 2^shift, and the sample's own moved sum.
    """
    shift = 0
    while _window(points >> shift, n)[1] > _GRID_POINTS:
        shift += 1
    moved = (points + (1 << shift >> 1)) >> shift
    low, size = _window(moved, n)
    sums, cdf = _lattice(moved, n, low, size)
    return shift, sums, cdf, int(moved.sum())


def _window(points: NDArray[np.int64], n: int) -> tuple[int, int]:
    """Return the first grid point and the number of points that hold all but 2e-15."""
    whole = n * int(points.max()) + 1
    centre = int(points.sum())
    w, unit = _standardise(points)
    low = max(0, centre - math.ceil(_reach(-w) * unit))
    high = min(whole - 1, centre + math.ceil(_reach(w) * unit))
    return low, high - low + 1


def _standardise(units: NDArray[np.int64]) -> tuple[Floats, float]:
    """Return (x - mean) / s and s, the standard deviation of a sum of n draws."""
    n = units.size
    d = units - float(Fraction(exact_sum(units), n))
    scale = float(np.abs(d).max())
    spread = math.sqrt(math.fsum(((d / scale) ** 2).tolist())) * scale
    return np.asarray(d / spread, dtype=np.float64), spread


def _lattice(
    points: NDArray[np.int64], n: int, low: int, size: int
) -> tuple[NDArray[np.int64], Floats]:
    """Return the sums of positive probability in the window and their CDF.

    The transform has the length of the window and not of the range: what lies outside, less than
    2e-15, wraps around.
    """
    fast = next_fast_len(size, real=True)
    transform = rfft(np.bincount(points % fast, minlength=fast) / n)
    mass = np.roll(irfft(_power(transform, n), fast), -(low % fast))[:size]
    # Rounding leaves about 1e-17 on points that cannot be reached; they carry no jump.
    kept = np.flatnonzero(mass > 1e-16)
    cdf = np.cumsum(mass[kept])
    return low + kept.astype(np.int64), np.asarray(np.minimum(cdf / cdf[-1], 1.0))


def _power(base: NDArray[np.complex128], n: int) -> NDArray[np.complex128]:
    """Return base^n by squaring; for |base| <= 1 the error is about n ulps of |base|^n."""
    result = np.ones_like(base)
    while n:
        if n & 1:
            result = result * base
        n >>= 1
        if n:
            base = base * base
    return result


def _counts(
    distinct: NDArray[np.int64], counts: NDArray[np.int64], n: int
) -> tuple[NDArray[np.int64], Floats]:
    """List every multinomial outcome: its sum, its probability."""
    left = np.array([n], dtype=np.int64)
    sums, logs = np.zeros(1, dtype=np.int64), np.array([float(gammaln(n + 1))])
    for place, (value, count) in enumerate(zip(distinct.tolist(), counts.tolist(), strict=True)):
        last = place == distinct.size - 1
        choices = np.ones_like(left) if last else left + 1
        row = np.repeat(np.arange(left.size), choices)
        taken = (
            left if last else np.arange(row.size) - np.repeat(np.cumsum(choices) - choices, choices)
        )
        sums = sums[row] + taken * value
        logs = logs[row] + taken * math.log(count / n) - gammaln(taken + 1)
        left = left[row] - taken
    support, place_of = np.unique(sums, return_inverse=True)
    cdf = np.cumsum(np.bincount(place_of, weights=np.exp(logs)))
    return support, np.asarray(np.minimum(cdf / cdf[-1], 1.0))


def _fourier(values: ExactArray, blur: float, counts: NDArray[np.int64]) -> FourierLaw:
    n = len(values)
    match = 2.0 * math.sqrt(math.pi * n) * float(np.prod(ive(0, 2.0 * counts)))
    w, unit = _standardise(values.units)
    below, above = _reach(-w), _reach(w)
    period = below + above
    terms, remainder = _terms(w, 2.0 * math.pi / period, math.sqrt(min(1.0, match)))
    k = np.arange(1, terms.size + 1)
    weights = 1j * terms / (math.pi * k)
    # The series is cut after the last term that matters; nothing inside is left out.
    last = int(np.flatnonzero(np.abs(weights) > 1e-18)[-1]) + 1
    return FourierLaw(
        mean=float(values.total() / n),
        sd=unit * float(values.step) / n,
        start=-below,
        period=period,
        frequencies=np.asarray((2.0 * math.pi / period) * k[:last]),
        weights=weights[:last],
        error=remainder + 4.0 * _OUTSIDE + n * 2.0**-52,
        blur=blur,
    )


def _reach(w: Floats) -> float:
    """Return a with P(sum of n draws of w > a) < 1e-15: Chernoff's bound or the whole range."""
    n, largest = w.size, float(w.max())
    growth = np.log(np.array([float(np.exp(tilt * (w - largest)).mean()) for tilt in _TILTS]))
    bounds = n * (growth + _TILTS * largest) - math.log(_OUTSIDE)
    # A little beyond the range, so that its last point is not on the seam of the period.
    return min(float((bounds / _TILTS).min()), 1.02 * n * largest)


def _terms(w: Floats, base: float, long_run: float) -> tuple[NDArray[np.complex128], float]:
    """Return phi(k base)^n for k = 1..K and the estimated error of F from stopping at K.

    Args:
        w: standardised values.
        base: t_1.
        long_run: root mean square of phi(t)^n over all t, for values without relations.
    """
    n = w.size
    count = min(1024, max(_HEAD, 1 << max(0, (_CHUNK // n).bit_length() - 1)))
    terms = _power(_characteristic(w, base, 1, count), n)
    while (error := _remainder(terms, long_run)) > _GOOD_ENOUGH:
        budget = _MOST_WORK if error > _COARSE else 4 * _CHUNK
        if 2 * count * n > budget or 2 * count > _MOST_TERMS:
            break
        more = _power(_characteristic(w, base, count + 1, count), n)
        terms, count = np.concatenate([terms, more]), 2 * count
    return terms, error


def _remainder(terms: NDArray[np.complex128], long_run: float) -> float:
    """Return 4 rms / (pi sqrt(K)), rms the largest of the last three doublings or `long_run`."""
    count = terms.size
    octaves = [terms[count >> (j + 1) : count >> j] for j in range(3 if count > _HEAD else 1)]
    rms = [math.sqrt(float((np.abs(octave) ** 2).mean())) for octave in octaves]
    return 4.0 * max(*rms, long_run) / (math.pi * math.sqrt(count))


def _characteristic(w: Floats, base: float, first: int, count: int) -> NDArray[np.complex128]:
    """Return mean exp(i k base w) for k = first .. first + count - 1, count a power of two.

    Powers are built by doubling, a few cards at a time: one exponential a card, not one a term.
    """
    total = np.zeros(count, dtype=np.complex128)
    cards = max(1, _CHUNK // count)
    for start in range(0, w.size, cards):
        angle = base * w[start : start + cards]
        powers = np.empty((count, angle.size), dtype=np.complex128)
        powers[0] = np.exp(1j * first * angle)
        filled = 1
        while filled < count:
            powers[filled : 2 * filled] = powers[:filled] * np.exp(1j * filled * angle)
            filled *= 2
        total += powers.sum(axis=1)
    return total / w.size


@dataclass(frozen=True, slots=True)
class LimitInterval:
    """The limit of a bootstrap interval as B grows.

    Attributes:
        low: lower end.
        high: upper end.
        level: nominal coverage, as written.
        method: "percentile" or "bca", the one asked for.
        fell_back: True where BCa does not exist and the percentile limit stands in.
        path: "point", "lattice", "counts", "fourier" or "grid".
        tolerance: numerical error of an end; see the module's text for what backs it.
    """

    low: float
    high: float
    level: str
    method: Method
    fell_back: bool
    path: str
    tolerance: float


def limit_interval(
    values: ExactArray, *, level: str = "0.95", method: Method = "percentile"
) -> LimitInterval | None:
    """Return the limit of the bootstrap interval of the mean; None for no cards.

    All values equal give that point. BCa takes P(< mean) + P(= mean) / 2 for its bias; where it
    does not exist the percentile limit stands in and `fell_back` is True.

    Raises:
        BadInputError: a level outside (0, 1).
    """
    tail = parse_tail(level)
    law = mean_law(values)
    if law is None:
        return None
    plain = (float(tail), float(1 - tail))
    levels: tuple[float, float] | None = plain
    if method == "bca":
        levels = bca_levels(law.below_mean(), acceleration(values), float(tail))
    (low, low_error), (high, high_error) = law.quantiles(list(levels or plain))
    tolerance = max(low_error, high_error)
    return LimitInterval(low, high, level, method, levels is None, law.path, tolerance)


def limit_at_most(values: ExactArray, t: str) -> float | None:
    """Return P(resampled mean <= t) in the limit, t a decimal string; None for no cards.

    Raises:
        BadInputError: t is no decimal.
    """
    try:
        at = Fraction(t)
    except (ValueError, ZeroDivisionError) as error:
        raise BadInputError(f"{t!r} is not a decimal", where="t") from error
    law = mean_law(values)
    return None if law is None else law.at_most(at)
