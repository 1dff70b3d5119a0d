"""Paired comparison: each test against brute force or the library, and every edge rule."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, nct, ttest_rel
from scipy.stats import wilcoxon as scipy_wilcoxon

from ledger.errors import BadInputError
from scoring import comparison, permutation, power
from scoring.exact import ExactArray

UNIT = Fraction(1, 10**8)
small = st.lists(st.integers(-5, 5), max_size=10)


def exact(values: list[int], step: Fraction = UNIT) -> ExactArray:
    return ExactArray(np.array(values, dtype=np.int64), step)


def test_positive_favours_the_first_named() -> None:
    """D MUST be loss(b) - loss(a): positive favours a."""
    d = comparison.brier_differences(["0.9", "0.5"], ["0.6", "0.5"], [1, 0])
    assert [unit * d.step for unit in d.units.tolist()] == [Fraction(15, 100), 0]
    logs = comparison.log_differences(["0.9", "0.5"], ["0.6", "0.5"], [1, 0])
    assert logs.units.tolist()[0] > 0
    assert logs.units.tolist()[1] == 0
    assert logs.rounded


def test_differences_need_the_same_cards_and_units() -> None:
    with pytest.raises(BadInputError, match="cards against"):
        comparison.differences(exact([1]), exact([1, 2]))
    with pytest.raises(BadInputError, match="units"):
        comparison.differences(exact([1]), exact([1], Fraction(1, 7)))


@given(small, st.integers(0, 5))
def test_sign_test_by_definition(values: list[int], epsilon: int) -> None:
    """A card MUST be a tie where |d| <= epsilon, compared exactly."""
    found = comparison.sign_test(exact(values), f"{epsilon / 1e8:.8f}")
    plus, minus = sum(v > epsilon for v in values), sum(v < -epsilon for v in values)
    n = plus + minus
    assert (found.a_better, found.b_better, found.ties) == (plus, minus, len(values) - n)
    tail = sum(comb(n, k) for k in range(min(plus, minus) + 1))
    want = min(Fraction(1), Fraction(2 * tail, 2**n)) if n else Fraction(1)
    assert found.p_exact == want
    assert found.p_value == float(want)
    assert found.rate == (plus / n if n else None)


def test_ties_at_the_threshold_are_exact() -> None:
    """0.0001 has no exact double; a difference of exactly 0.0001 MUST still be a tie."""
    d = comparison.brier_differences(["0.99", "0.98"], ["1", "1"], [1, 1])
    assert comparison.sign_test(d, "0.0001").ties == 1
    assert comparison.sign_test(d, "0.00009999").ties == 0
    assert comparison.sign_test(d, "0.0004").ties == 2


def test_sign_test_without_non_ties() -> None:
    """Without a non-tied card p MUST be 1 and the rate and its intervals None."""
    for d in (exact([]), exact([0, 0]), exact([3, -3])):
        found = comparison.sign_test(d, "1")
        assert found.p_value == 1.0
        assert found.p_exact == Fraction(1)
        assert (found.rate, found.clopper_pearson, found.wilson) == (None, None, None)


def test_sign_test_of_many_cards() -> None:
    found = comparison.sign_test(exact([1] * 1600 + [-1] * 1500))
    assert found.p_exact is None
    assert found.p_value == pytest.approx(binomtest(1600, 3100).pvalue, rel=1e-9)


@pytest.mark.parametrize("epsilon", ["-0.1", "x", "1/0"])
def test_a_bad_threshold_is_refused(epsilon: str) -> None:
    with pytest.raises(BadInputError, match="epsilon"):
        comparison.sign_test(exact([1]), epsilon)


@given(small)
def test_sign_flip_by_brute_force(values: list[int]) -> None:
    """The exact p MUST be the share of 2^n sign vectors at least as extreme."""
    observed = abs(sum(values))
    hits = sum(
        abs(sum(s * v for s, v in zip(signs, values, strict=True))) >= observed
        for signs in product((1, -1), repeat=len(values))
    )
    found = permutation.sign_flip_test(exact(values), seed=0)
    assert found.p_exact == Fraction(hits, 2 ** len(values))
    assert (found.method, found.seed, found.resamples, found.generator) == ("exact", *[None] * 3)


def test_sign_flip_of_huge_units_is_exact_too() -> None:
    values = [10**18, -(10**18) + 7, 10**18 - 1, 999, -(10**17), 10**18, 10**18, 10**18] * 2
    plain = permutation.sign_flip_exact(exact([v // 10**9 * 10**9 for v in values]))
    scaled = permutation.sign_flip_exact(exact([v // 10**9 for v in values]))
    assert plain == scaled
    assert sum(abs(v) for v in values) > 2**63
    assert 0 < permutation.sign_flip_exact(exact(values)) < 1


def test_sign_flip_at_its_limit() -> None:
    """All 40 on one side: only the two sign vectors themselves are as extreme."""
    assert permutation.sign_flip_exact(exact([1] * 40)) == Fraction(2, 2**40)
    with pytest.raises(BadInputError, match="exact to 40"):
        permutation.sign_flip_exact(exact([1] * 41))


def test_monte_carlo_beyond_forty() -> None:
    """Beyond 40 cards p MUST be (k + 1) / (B + 1), with its seed and generator named."""
    strong = permutation.sign_flip_test(exact([5] * 45), seed=3, resamples=199)
    assert strong == permutation.PermutationTest(
        0.005, None, "monte-carlo", 199, 3, "pcg64-signs/1"
    )
    none = permutation.sign_flip_test(exact([5, -5] * 30), seed=3, resamples=199)
    assert none.p_value == 1.0
    values = np.random.Generator(np.random.PCG64(1)).integers(-100, 130, 60).tolist()
    close = permutation.sign_flip_test(exact(values), seed=3, resamples=20000).p_value
    assert close == pytest.approx(ttest_rel(values, np.zeros(60)).pvalue, abs=0.02)
    with pytest.raises(BadInputError, match="resamples"):
        permutation.sign_flip_test(exact([1]), seed=0, resamples=0)


@given(st.lists(st.integers(-(10**8), 10**8), min_size=2, max_size=30))
def test_paired_t_is_scipys(values: list[int]) -> None:
    found = comparison.paired_t(exact(values))
    assert found is not None
    if len(set(values)) == 1:
        assert (found.t, found.p_value, found.sd) == (None, None, 0.0)
        return
    want = ttest_rel(values, [0] * len(values))
    assert found.t == pytest.approx(want.statistic, rel=1e-9, abs=1e-12)
    assert found.p_value == pytest.approx(want.pvalue, rel=1e-9)
    interval = want.confidence_interval()
    ends = [interval.low / 1e8, interval.high / 1e8]
    assert list(found.interval) == pytest.approx(ends, rel=1e-9, abs=1e-12)


def test_too_few_cards_are_not_computable() -> None:
    """Fewer than two cards MUST give None."""
    for d in (exact([]), exact([4])):
        assert comparison.paired_t(d) is None
        assert comparison.diebold_mariano(d) is None
        assert comparison.equivalence_test(d, 0.1) is None
    assert comparison.signed_rank_test(exact([])) is None
    assert comparison.signed_rank_test(exact([0, 0])) is None
    assert comparison.diebold_mariano(exact([3, 3, 3])) is None
    assert comparison.equivalence_test(exact([3, 3]), 0.1) is None


@given(st.lists(st.integers(-6, 6), min_size=1, max_size=20).filter(any))
@settings(max_examples=50)
def test_signed_ranks_are_scipys(values: list[int]) -> None:
    found = comparison.signed_rank_test(exact(values))
    assert found is not None
    kept = [v for v in values if v]
    ties = len({abs(v) for v in kept}) < len(kept)
    method = "asymptotic" if ties else "exact"
    want = scipy_wilcoxon(kept, method=method, correction=False)
    assert (found.method, found.n) == (method, len(kept))
    assert (found.statistic, found.p_value) == (want.statistic, want.pvalue)


def test_diebold_mariano_uses_autocovariances() -> None:
    values = [3, 4, 1, -2, 0, 5, 6, 2]
    found = comparison.diebold_mariano(exact(values), horizon=2)
    assert found is not None
    u = np.array(values) - np.mean(values)
    variance = (u @ u + 2 * (u[1:] @ u[:-1])) / 8
    assert found.dm == pytest.approx(np.mean(values) / np.sqrt(variance / 8), rel=1e-12)
    assert found.hln == pytest.approx(found.dm * np.sqrt((9 - 4 + 2 / 8) / 8), rel=1e-12)
    one, t = comparison.diebold_mariano(exact(values)), comparison.paired_t(exact(values))
    assert one is not None
    assert t is not None
    assert one.hln == pytest.approx(t.t, rel=1e-12)
    assert comparison.diebold_mariano(exact([1, -1, 1, -1, 1, -1]), horizon=2) is None
    with pytest.raises(BadInputError, match="horizon"):
        comparison.diebold_mariano(exact(values), horizon=0)
    with pytest.raises(BadInputError, match="margin"):
        comparison.equivalence_test(exact(values), 0.0)


@pytest.mark.parametrize(
    ("n", "effect"), [(2, 0.5), (5, 1.0), (24, 0.209), (500, 0.1), (10**5, 0.01)]
)
def test_power_of_the_t_test_is_the_noncentral_t(n: int, effect: float) -> None:
    critical = -float(nct.ppf(0.025, n - 1, 0.0))
    law = nct(n - 1, effect * n**0.5)
    want = law.sf(critical) + law.cdf(-critical)
    assert power.t_power(n, effect) == pytest.approx(want, abs=1e-10)
    assert power.t_power(n, 0.0) == pytest.approx(0.05, abs=1e-12)


def test_cards_needed_is_the_least() -> None:
    n = power.cards_needed(0.05, 0.3)
    assert n is not None
    assert power.t_power(n, 0.05 / 0.3) >= 0.8 > power.t_power(n - 1, 0.05 / 0.3)
    assert power.cards_needed(1e-9, 1.0) is None
    assert power.cards_needed(100.0, 1.0) == 2
    again = power.detectable_difference(n, 0.3)
    assert power.t_power(n, again / 0.3) == pytest.approx(0.8, abs=1e-12)
    assert power.detectable_difference(2, 1.0, power=0.99) > 1.0


@given(st.integers(1, 60), st.integers(0, 20))
def test_sign_power_by_definition(n: int, twentieths: int) -> None:
    rate = twentieths / 20
    want = sum(
        comb(n, k) * rate**k * (1 - rate) ** (n - k)
        for k in range(n + 1)
        if binomtest(k, n).pvalue <= 0.05 * (1 + 1e-12)
    )
    assert power.sign_power(n, rate) == pytest.approx(want, abs=1e-12)


def test_sign_cards_needed_stays_powerful() -> None:
    n = power.sign_cards_needed(0.75)
    assert n is not None
    assert power.sign_power(n - 1, 0.75) < 0.8
    assert all(power.sign_power(more, 0.75) >= 0.8 for more in range(n, 3 * n))
    assert power.sign_cards_needed(0.5001) is None
    assert power.sign_cards_needed(0.25) == n


def test_power_refuses_impossible_arguments() -> None:
    for call in (
        lambda: power.t_power(1, 0.5),
        lambda: power.t_power(5, -0.5),
        lambda: power.t_power(5, 0.5, alpha=0.0),
        lambda: power.cards_needed(0.0, 1.0),
        lambda: power.cards_needed(0.1, 1.0, power=1.0),
        lambda: power.detectable_difference(1, 1.0),
        lambda: power.detectable_difference(5, 1.0, power=0.04),
        lambda: power.sign_power(0, 0.5),
        lambda: power.sign_cards_needed(0.5),
        lambda: power.sign_cards_needed(1.5),
    ):
        with pytest.raises(BadInputError):
            call()
