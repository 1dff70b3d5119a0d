"""The limit of the bootstrap: against full enumeration, against each other path, and its edges."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, combinations, combinations_with_replacement
from math import factorial, prod

import numpy as np
import pytest
from golden_panel import METHODS, brier_pair
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.errors import BadInputError
from scoring import limit
from scoring.bootstrap import bootstrap_interval
from scoring.exact import ExactArray, from_floats

UNIT = Fraction(1, 10**8)
LEVELS = [0.005, 0.025, 0.1, 0.3, 0.5, 0.9, 0.975, 0.995]


def exact(values: list[int], step: Fraction = UNIT) -> ExactArray:
    return ExactArray(np.array(values, dtype=np.int64), step)


def enumerate_law(values: list[int]) -> list[tuple[Fraction, Fraction]]:
    """Return (mean, P(mean of the draws <= it)) from all n^n draws."""
    n, chance = len(values), Counter[int]()
    for draw in combinations_with_replacement(range(n), n):
        ways = factorial(n) // prod(factorial(c) for c in Counter(draw).values())
        chance[sum(values[i] for i in draw)] += ways
    points = sorted(chance)
    heights = accumulate(chance[point] for point in points)
    return [
        (Fraction(p, n) * UNIT, Fraction(h, n**n)) for p, h in zip(points, heights, strict=True)
    ]


def quantile(law: list[tuple[Fraction, Fraction]], alpha: float) -> Fraction:
    return next(point for point, height in law if height >= Fraction(alpha) - Fraction(1, 10**12))


@settings(max_examples=60)
@given(
    st.one_of(
        st.lists(st.integers(-3, 3), min_size=1, max_size=6),
        st.lists(st.integers(-(10**8), 10**8), min_size=1, max_size=6),
    )
)
def test_small_samples_by_full_enumeration(values: list[int]) -> None:
    """A quantile MUST be inf{x : F(x) >= alpha} of the law of the mean of n draws."""
    law, found = enumerate_law(values), limit.mean_law(exact(values))
    assert found is not None
    assert found.path in {"point", "lattice", "counts"}
    for alpha, (value, _) in zip(LEVELS, found.quantiles(LEVELS), strict=True):
        assert value == float(quantile(law, alpha))
    for point, height in law:
        assert found.at_most(point) == pytest.approx(float(height), abs=1e-12)
        before = next((h for p, h in reversed(law) if p < point), Fraction(0))
        assert found.at_most(point - UNIT / 1000) == pytest.approx(float(before), abs=1e-12)
    assert found.at_most(law[-1][0] + 10**30) == pytest.approx(1.0, abs=1e-12)
    assert found.at_most(law[0][0] - 10**30) == 0.0
    mean = Fraction(sum(values), len(values)) * UNIT
    below = sum(h for h in (found.at_most(mean), found.at_most(mean - UNIT / 1000))) / 2
    assert found.below_mean() == pytest.approx(below, abs=1e-12)


@pytest.mark.parametrize("n", [24, 60, 200])
def test_lattice_and_counts_agree(n: int) -> None:
    values = [(-1, 0, 2)[k % 3] for k in range(n)]
    points = np.array(values) + 1
    low, size = limit._window(points, n)
    sums, cdf = limit._lattice(points, n, low, size)
    distinct, counts = np.unique(points, return_counts=True)
    others, heights = limit._counts(distinct, counts, n)
    place = np.searchsorted(others, sums)
    assert np.array_equal(others[place], sums)
    assert np.abs(heights[place] - cdf).max() < 1e-12


@pytest.mark.parametrize(("n", "spread"), [(60, 40), (200, 100), (1000, 60)])
def test_fourier_and_lattice_agree(n: int, spread: int) -> None:
    """On a fine lattice the series MUST be within its tolerance, half a step, of the point."""
    draw = np.random.Generator(np.random.PCG64(n))
    values = exact(draw.integers(-spread, spread + 1, n).tolist(), Fraction(1, spread))
    exact_law = limit.mean_law(values)
    assert exact_law is not None
    assert exact_law.path == "lattice"
    series = fourier(values)
    step = 1.0 / (spread * n)
    pairs = zip(exact_law.quantiles(LEVELS), series.quantiles(LEVELS), strict=True)
    for (point, _), (x, tolerance) in pairs:
        assert abs(point - x) <= tolerance < 0.6 * step


@pytest.mark.parametrize("n", [12, 24, 100, 1000])
def test_fourier_tolerance_covers_what_more_terms_change(n: int) -> None:
    draw = np.random.Generator(np.random.PCG64(n))
    values = exact(draw.integers(-(10**8), 10**8, n).tolist())
    check_tolerance(values, fourier(values), 1 << 14)


def test_pilot_tolerances_cover_what_more_terms_change() -> None:
    for first, second in combinations(METHODS, 2):
        values = brier_pair(f"{first}|{second}")
        law = limit.mean_law(values)
        if isinstance(law, limit.FourierLaw):
            check_tolerance(values, law, 1 << 15)


def fourier(values: ExactArray) -> limit.FourierLaw:
    counts = np.unique(values.units, return_counts=True)[1]
    return limit._fourier(values, float(values.step / len(values) / 2), counts)


def check_tolerance(values: ExactArray, law: limit.FourierLaw, count: int) -> None:
    w, _ = limit._standardise(values.units)
    base = 2 * np.pi / law.period
    terms = limit._power(limit._characteristic(w, base, 1, count), len(values))
    k = np.arange(1, terms.size + 1)
    more = replace(law, frequencies=np.asarray(base * k), weights=1j * terms / (np.pi * k))
    for (x, tolerance), (y, _) in zip(law.quantiles(LEVELS), more.quantiles(LEVELS), strict=True):
        assert abs(x - y) <= tolerance + 1e-15


def test_fourier_inverts_itself() -> None:
    values = from_floats(np.random.Generator(np.random.PCG64(3)).exponential(size=150))
    law = limit.mean_law(values)
    assert law is not None
    assert law.path == "fourier"
    for alpha, (x, _) in zip(LEVELS, law.quantiles(LEVELS), strict=True):
        assert law.at_most(Fraction(x)) == pytest.approx(alpha, abs=1e-10)
    assert law.at_most(Fraction(-100)) == 0.0
    assert law.at_most(Fraction(100)) == 1.0
    assert 0.5 < law.below_mean() < 0.55


def test_a_heavy_tail_is_not_cut_off() -> None:
    """One card of 200 carries all the loss: the sum is Binomial(200, 1/200), far from normal."""
    values = from_floats([0.0] * 199 + [1.0])
    found = limit.limit_interval(values)
    assert found is not None
    assert found.path == "lattice"
    assert (found.low, found.high) == (0.0, 3 / 200)
    noisy = from_floats([1e-4 * np.sin(k) for k in range(199)] + [1.0])
    close = limit.limit_interval(noisy)
    assert close is not None
    assert close.high == pytest.approx(found.high, abs=2e-4)


@pytest.mark.parametrize("noise", [1e-3, 1e-5, 1e-8])
def test_near_ties_that_no_series_resolves(noise: float) -> None:
    """Two clusters of near-equal values: F is a staircase; the tolerance must cover the truth."""
    clusters = [0.0] * 30 + [1.0] * 30
    blurred = from_floats([x + noise * np.cos(k) for k, x in enumerate(clusters)])
    found, steps = limit.limit_interval(blurred), limit.limit_interval(from_floats(clusters))
    assert found is not None
    assert steps is not None
    assert abs(found.low - steps.low) <= noise + found.tolerance
    assert abs(found.high - steps.high) <= noise + found.tolerance
    assert found.tolerance < 1e-3


def test_the_grid_moves_nothing_further_than_it_says() -> None:
    draw = np.random.Generator(np.random.PCG64(6))
    values = exact(draw.integers(0, 10**8, 50).tolist(), UNIT)
    fine = limit.mean_law(values)
    assert fine is not None
    assert fine.path == "fourier"
    points = values.units - values.units.min()
    shift, sums, cdf, centre = limit._coarsened(points, 50)
    assert abs((centre << shift) - int(points.sum())) < 50 * (1 << shift >> 1) / 4
    bound = float(50 * (1 << shift >> 1) * UNIT / 50)
    origin = 50 * int(values.units.min())
    law = limit.DiscreteLaw("grid", sums << shift, cdf, origin, 0, UNIT / 50, bound)
    for (x, tolerance), (y, _) in zip(law.quantiles(LEVELS), fine.quantiles(LEVELS), strict=True):
        assert tolerance == bound > 0
        assert abs(x - y) <= bound


def test_large_bootstraps_approach_the_limit() -> None:
    """The limit MUST be what the percentile interval tends to."""
    values = from_floats(np.random.Generator(np.random.PCG64(8)).random(30) ** 2)
    drawn = bootstrap_interval(values, seed=1, resamples=200_000, method="bca")
    found = limit.limit_interval(values, method="bca")
    assert drawn is not None
    assert found is not None
    assert (found.low, found.high) == pytest.approx((drawn.low, drawn.high), abs=1e-3)


def test_equal_values_are_a_point() -> None:
    """Equal values MUST give that point, and BCa MUST fall back."""
    found = limit.limit_interval(exact([5, 5, 5]), method="bca")
    assert found is not None
    assert (found.low, found.high, found.tolerance) == (5e-8, 5e-8, 0.0)
    assert (found.method, found.fell_back, found.path) == ("bca", True, "point")
    assert limit.limit_at_most(exact([5]), "0.00000005") == 1.0
    assert limit.limit_at_most(exact([5]), "0.000000049") == 0.0


def test_no_cards_is_not_computable() -> None:
    """No cards MUST give None, never 0."""
    assert limit.mean_law(exact([])) is None
    assert limit.limit_interval(exact([])) is None
    assert limit.limit_at_most(exact([]), "0") is None


def test_an_equality_of_f_and_alpha_is_reported() -> None:
    """Where F equals alpha to 1e-12 the tolerance MUST be the gap to the next point."""
    found = limit.limit_interval(exact([0, 10**8]), level="0.5")
    assert found is not None
    assert (found.low, found.high, found.tolerance) == (0.0, 0.5, 0.5)


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(BadInputError, match="level"):
        limit.limit_interval(exact([1]), level="95")
    with pytest.raises(BadInputError, match="decimal"):
        limit.limit_at_most(exact([1]), "zero")


@pytest.mark.parametrize("n", [1, 2, 3, 17, 1000])
def test_power_by_squaring(n: int) -> None:
    base = np.exp(1j * np.linspace(0, 3, 7)) * 0.999
    assert limit._power(base, n) == pytest.approx(base**n, rel=1e-12)
