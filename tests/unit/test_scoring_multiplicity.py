"""Corrections for several tests: definitions, order, None, and joint sign flips."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from ledger.errors import BadInputError
from scoring import multiplicity
from scoring.exact import ExactArray

METHODS = (
    multiplicity.bonferroni,
    multiplicity.holm,
    multiplicity.benjamini_hochberg,
    multiplicity.benjamini_yekutieli,
)
p_values = st.lists(st.floats(0.0, 1.0), max_size=12)


@pytest.mark.parametrize("adjust", METHODS)
@given(p=st.lists(st.one_of(st.none(), st.floats(0.0, 1.0)), max_size=12))
def test_none_stays_and_does_not_count(adjust: object, p: list[float | None]) -> None:
    """A p-value of None MUST stay None and MUST NOT count in the family."""
    found = adjust(p)  # type: ignore[operator]
    assert [f is None for f in found] == [v is None for v in p]
    known = [v for v in p if v is not None]
    assert tuple(f for f in found if f is not None) == adjust(known)  # type: ignore[operator]


@pytest.mark.parametrize("adjust", METHODS)
@given(p=p_values, shuffle=st.randoms(use_true_random=False))
def test_adjusted_values_keep_their_place_and_order(
    adjust: object, p: list[float], shuffle: object
) -> None:
    places = list(range(len(p)))
    shuffle.shuffle(places)  # type: ignore[attr-defined]
    found = adjust(p)  # type: ignore[operator]
    assert adjust([p[i] for i in places]) == tuple(found[i] for i in places)  # type: ignore[operator]
    assert all(v <= f + 1e-15 <= 1.0 + 1e-15 for v, f in zip(p, found, strict=True))
    ranked = [f for _, f in sorted(zip(p, found, strict=True))]
    assert ranked == sorted(ranked)


@given(p_values)
def test_step_up_is_scipys(p: list[float]) -> None:
    if p:
        for ours, name in (
            (multiplicity.benjamini_hochberg, "bh"),
            (multiplicity.benjamini_yekutieli, "by"),
        ):
            want = false_discovery_control(p, method=name)
            assert list(ours(p)) == pytest.approx(want.tolist(), abs=1e-12)


def test_holm_by_hand() -> None:
    assert multiplicity.holm([0.04, 0.01, 0.03]) == (0.06, 0.03, 0.06)
    assert multiplicity.bonferroni([0.5, 0.01]) == (1.0, 0.02)
    assert multiplicity.holm([]) == ()


@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan")])
def test_what_is_no_p_value_is_refused(bad: float) -> None:
    with pytest.raises(BadInputError, match=r"p\[1\]"):
        multiplicity.holm([0.5, bad])


def exact(values: list[int]) -> ExactArray:
    return ExactArray(np.array(values, dtype=np.int64), Fraction(1, 1000))


def t_statistic(values: np.ndarray) -> float:
    return float(abs(values.mean()) / (values.std(ddof=1) / np.sqrt(values.size)))


def test_max_t_by_brute_force() -> None:
    table = [[3, 1, 4, 1, -5, 9, 2], [-2, 7, 1, 8, 2, 8, 1], [1, -6, 1, 8, 0, 3, 4]]
    arrays = [np.array(row, dtype=float) for row in table]
    observed = [t_statistic(row) for row in arrays]
    order = sorted(range(3), key=lambda j: -observed[j])
    single, step = np.zeros(3), np.zeros(3)
    for signs in product((1.0, -1.0), repeat=7):
        flipped = [t_statistic(row * np.array(signs)) for row in arrays]
        for place, j in enumerate(order):
            single[j] += max(flipped) >= observed[j] - 1e-9
            step[j] += max(flipped[i] for i in order[place:]) >= observed[j] - 1e-9
    adjusted, running = {}, 0.0
    for j in order:
        running = max(running, step[j] / 128)
        adjusted[j] = running
    found = multiplicity.westfall_young([exact(row) for row in table], seed=0)
    assert found is not None
    assert (found.method, found.resamples, found.seed) == ("exact", 128, None)
    assert found.statistics == pytest.approx(observed, abs=1e-12)
    assert found.single_step == pytest.approx(single / 128, abs=1e-15)
    assert found.step_down == pytest.approx([adjusted[j] for j in range(3)], abs=1e-15)


def test_max_t_of_one_comparison_is_its_permutation_test() -> None:
    values = np.random.Generator(np.random.PCG64(2)).integers(-50, 90, 30).tolist()
    found = multiplicity.westfall_young([exact(values)], seed=5, resamples=4000)
    assert found is not None
    assert (found.method, found.generator, found.seed) == ("monte-carlo", "pcg64-signs/1", 5)
    assert found.single_step == found.step_down
    assert found.single_step[0] is not None
    assert found.single_step[0] * 4001 == pytest.approx(round(found.single_step[0] * 4001))


def test_a_comparison_without_spread_is_not_computable() -> None:
    """Differences without spread MUST give None and not count."""
    found = multiplicity.westfall_young([exact([2, 2, 2]), exact([1, 2, 4])], seed=0)
    alone = multiplicity.westfall_young([exact([1, 2, 4])], seed=0)
    assert found is not None
    assert alone is not None
    assert (found.statistics[0], found.single_step[0], found.step_down[0]) == (None, None, None)
    assert found.step_down[1] == alone.step_down[0]
    assert multiplicity.westfall_young([exact([1])], seed=0) is None
    with pytest.raises(BadInputError, match="resamples"):
        multiplicity.westfall_young([exact([1, 2])], seed=0, resamples=0)
