"""Bootstrap: the stream against numpy, sums against brute force, intervals against scipy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import bootstrap as scipy_bootstrap

from ledger.errors import BadInputError
from scoring import bootstrap
from scoring.exact import ExactArray, from_floats
from scoring.index_stream import LARGEST, IndexStream
from scoring.levels import acceleration, bca_levels, linear_quantile, parse_tail

UNIT = Fraction(1, 10**8)
losses = st.lists(st.integers(-(10**8), 10**8), min_size=1, max_size=30)


def exact(values: list[int], step: Fraction = UNIT) -> ExactArray:
    return ExactArray(np.array(values, dtype=np.int64), step)


@given(
    st.integers(0, 2**64),
    st.lists(st.tuples(st.integers(1, LARGEST), st.integers(0, 40)), min_size=1, max_size=6),
)
def test_indices_are_those_of_todays_numpy(seed: int, calls: list[tuple[int, int]]) -> None:
    """The stream MUST reproduce Generator(PCG64(seed)).integers bit for bit, call after call."""
    stream, generator = IndexStream(seed), np.random.Generator(np.random.PCG64(seed))
    for n, count in calls:
        assert stream.indices(n, count).tolist() == generator.integers(0, n, count).tolist()


def test_rejections_follow_lemire() -> None:
    """Where 2^32 mod n is large half of all draws are rejected; the stream must still agree."""
    n = 2**30 + 2**29 + 1
    generator = np.random.Generator(np.random.PCG64(3))
    want = generator.integers(0, n, size=(50, 401))
    assert np.array_equal(IndexStream(3).indices(n, 50 * 401).reshape(50, 401), want)


def test_a_product_on_the_threshold_is_kept() -> None:
    """Below 3 * 2^28 one product in sixteen has its low half exactly on the threshold."""
    n = 3 << 28
    want = np.random.Generator(np.random.PCG64(4)).integers(0, n, size=500)
    assert np.array_equal(IndexStream(4).indices(n, 500), want)


def test_uniforms_are_those_of_todays_numpy() -> None:
    want = np.random.Generator(np.random.PCG64(5)).random(1000)
    assert np.array_equal(IndexStream(5).uniforms(1000), want)


def test_signs_are_the_bits_of_the_words() -> None:
    words = IndexStream(11).words(4).tolist()
    rows = IndexStream(11).signs(2, 70).tolist()
    for row, low, high in zip(rows, words[::2], words[1::2], strict=True):
        bits = low | high << 64
        assert row == [1 if bits >> j & 1 else -1 for j in range(70)]


@pytest.mark.parametrize("n", [0, -1, LARGEST + 1])
def test_bounds_outside_the_stream_are_refused(n: int) -> None:
    with pytest.raises(BadInputError, match="cannot draw"):
        IndexStream(0).indices(n, 1)


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(BadInputError, match="seed"):
        IndexStream(-1)


@settings(max_examples=40)
@given(
    st.lists(
        st.lists(st.integers(-(10**18), 10**18), min_size=7, max_size=7), min_size=1, max_size=3
    ),
    st.integers(0, 5000),
    st.integers(0, 1),
)
def test_sums_are_exact_and_indices_are_shared(
    table: list[list[int]], resamples: int, small: int
) -> None:
    """Resampled sums MUST be exact integers of shared indices, on both numeric paths."""
    divisor = 10**9 if small else 10
    rows = [[value // divisor for value in row] for row in table]
    drawn = bootstrap.resample([exact(row) for row in rows], seed=1, resamples=resamples + 1)
    assert drawn is not None
    generator = np.random.Generator(np.random.PCG64(1))
    indices = generator.integers(0, 7, size=(resamples + 1, 7))
    factor = int(drawn.step / UNIT) if drawn.step >= UNIT else 1
    for row, sums in zip(rows, drawn.sums, strict=True):
        want = np.array(row, dtype=np.int64)[indices].sum(axis=1)
        assert np.array_equal(sums * factor, want)


@given(losses, st.sampled_from(["0.5", "0.9", "0.95"]))
@settings(max_examples=25)
def test_percentile_is_numpys_linear_quantile(values: list[int], level: str) -> None:
    drawn = bootstrap.resample([exact(values)], seed=2, resamples=501)
    assert drawn is not None
    found = bootstrap.interval(drawn, level=level)
    means = drawn.sums[0] * float(drawn.step) / len(values)
    tail = (1 - float(level)) / 2
    want = np.quantile(means, [tail, 1 - tail])
    assert [found.low, found.high] == pytest.approx(want.tolist(), abs=1e-14)


def test_bca_is_scipys() -> None:
    x = np.random.Generator(np.random.PCG64(9)).exponential(size=40)
    rng = np.random.Generator(np.random.PCG64(4))
    want = scipy_bootstrap((x,), np.mean, n_resamples=2000, method="BCa", rng=rng)
    found = bootstrap.bootstrap_interval(from_floats(x), seed=4, resamples=2000, method="bca")
    assert found is not None
    assert (found.low, found.high) == pytest.approx(tuple(want.confidence_interval), abs=1e-12)
    assert not found.fell_back
    assert found.rounded


def test_bca_counts_half_of_the_means_that_tie() -> None:
    """Resampled means equal to the mean MUST count one half in the bias of BCa."""
    x = np.array([0.0, 1.0, 1.0, 2.0, 6.0])
    rng = np.random.Generator(np.random.PCG64(4))
    want = scipy_bootstrap((x,), np.mean, n_resamples=500, method="BCa", rng=rng)
    found = bootstrap.bootstrap_interval(from_floats(x), seed=4, resamples=500, method="bca")
    assert found is not None
    assert (found.low, found.high) == pytest.approx(tuple(want.confidence_interval), abs=1e-12)


def test_bca_of_equal_values_falls_back() -> None:
    """BCa of equal values MUST fall back to the percentile interval and say so."""
    found = bootstrap.bootstrap_interval(exact([5, 5, 5]), seed=0, resamples=50, method="bca")
    assert found is not None
    assert (found.low, found.high, found.fell_back) == (5e-8, 5e-8, True)
    assert found.method == "bca"


def test_bca_levels_that_do_not_exist() -> None:
    assert bca_levels(0.0, 0.1, 0.025) is None
    assert bca_levels(1.0, 0.1, 0.025) is None
    assert bca_levels(0.5, None, 0.025) is None
    assert bca_levels(0.5, 0.6, 0.025) is None
    assert bca_levels(0.5, 0.0, 0.025) == pytest.approx((0.025, 0.975), abs=1e-15)
    assert acceleration(exact([])) is None


def test_no_cards_is_not_computable() -> None:
    """No cards MUST give None, never 0."""
    empty = exact([])
    assert bootstrap.resample([empty], seed=0) is None
    assert bootstrap.bootstrap_interval(empty, seed=0) is None
    assert bootstrap.cluster_interval(empty, [], seed=0) is None
    assert bootstrap.stratified_interval(empty, [], [], seed=0) is None


def test_one_card_is_its_own_interval() -> None:
    found = bootstrap.bootstrap_interval(exact([7]), seed=0, resamples=10)
    assert found is not None
    assert (found.low, found.high) == (7e-8, 7e-8)


def test_bad_arguments_are_refused() -> None:
    values = exact([1, 2])
    with pytest.raises(BadInputError, match="resamples"):
        bootstrap.resample([values], seed=0, resamples=0)
    with pytest.raises(BadInputError, match="clusters"):
        bootstrap.cluster_interval(values, ["a"], seed=0)
    with pytest.raises(BadInputError, match="strata"):
        bootstrap.stratified_interval(values, ["a"], ["a"], seed=0)
    with pytest.raises(BadInputError, match="order"):
        bootstrap.stratified_interval(values, ["a", "b"], ["a"], seed=0)
    for level in ("0", "1", "x", "1/0", "-0.5"):
        with pytest.raises(BadInputError, match="level"):
            parse_tail(level)


def test_every_card_its_own_cluster_is_the_plain_bootstrap() -> None:
    values = [3, -14, 15, 92, -65, 35]
    names = [f"c{k}" for k in range(6)]
    plain = bootstrap.bootstrap_interval(exact(values), seed=6, resamples=300)
    clustered = bootstrap.cluster_interval(exact(values), names, seed=6, resamples=300)
    assert plain is not None
    assert clustered is not None
    assert (clustered.low, clustered.high) == pytest.approx((plain.low, plain.high), abs=1e-22)


def test_clusters_of_large_losses_do_not_overflow() -> None:
    values = ExactArray(np.full(40, 10**18), Fraction(1, 10**18))
    found = bootstrap.cluster_interval(values, ["a"] * 39 + ["b"], seed=0, resamples=20)
    assert found is not None
    assert (found.low, found.high) == (1.0, 1.0)


def test_strata_keep_their_size() -> None:
    values = exact([0, 0, 0, 10])
    found = bootstrap.stratified_interval(values, [0, 0, 0, 1], [1, 0], seed=0, resamples=50)
    assert found is not None
    assert (found.low, found.high) == (2.5e-8, 2.5e-8)


def test_ranks() -> None:
    best, same, worst = exact([1, 2, 3]), exact([1, 2, 3]), exact([7, 8, 9])
    drawn = bootstrap.resample([worst, best, same], seed=0, resamples=100)
    assert drawn is not None
    ranks = bootstrap.bootstrap_ranks(drawn)
    assert ranks[0] == bootstrap.RankSummary(0.0, 3.0, 3.0, 3.0)
    assert ranks[1] == ranks[2] == bootstrap.RankSummary(0.5, 1.5, 1.5, 1.5)


@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=30), st.integers(0, 100))
def test_linear_quantile_is_numpys(values: list[int], percent: int) -> None:
    found = linear_quantile(np.array(values), Fraction(percent, 100))
    assert float(found) == pytest.approx(np.quantile(values, percent / 100), abs=1e-9)
