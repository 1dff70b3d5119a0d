"""Probabilities and labels at the door: what is taken, what it becomes, what is refused where."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import BadInputError
from scoring.exact import (
    ExactArray,
    align,
    exact_sum,
    exact_sum_of_squares,
    fit_units,
    from_floats,
)
from scoring.units import ONE, as_cards, as_labels, as_units

unit_values = st.integers(min_value=0, max_value=ONE)


def test_the_three_forms_mean_the_same() -> None:
    want = [0, 1, 559_100_000, ONE]
    assert as_units(["0", "0.000000001", "0.5591", "1.0000"]).tolist() == want
    assert as_units([0.0, 1e-9, 0.5591, 1.0]).tolist() == want
    assert as_units(np.array([0.0, 1e-9, 0.5591, 1.0])).tolist() == want
    assert as_units([Decimal(0), Decimal("1E-9"), Decimal("0.55910"), Decimal(1)]).tolist() == want
    assert as_units(np.array(want)).tolist() == want
    assert as_units(["0.5591", 0.5591, Decimal("0.5591")]).tolist() == [559_100_000] * 3
    assert as_units(np.array(["0.25", "0.5"])).tolist() == [250_000_000, 500_000_000]
    assert as_units([]).dtype == np.int64


@given(unit_values)
def test_every_unit_survives_every_form(units: int) -> None:
    text = f"{units // ONE}.{units % ONE:09d}"
    assert as_units([text]).tolist() == [units]
    assert as_units([units / ONE]).tolist() == [units]


@given(st.lists(st.floats(min_value=0.0, max_value=1.0), min_size=1, max_size=20))
def test_a_float_is_its_shortest_repr_rounded_half_even(values: list[float]) -> None:
    """A float MUST be taken by its shortest repr and rounded half-even to 9 places."""
    want = [
        int((Decimal(repr(x)) * ONE).to_integral_value(rounding=ROUND_HALF_EVEN)) for x in values
    ]
    assert as_units(values).tolist() == want


def test_floats_on_the_half() -> None:
    assert as_units([0.0000000005, 0.0000000015, 0.1234567885]).tolist() == [0, 2, 123456788]
    assert as_units(np.array([0.1, 0.3], dtype=np.float32)).tolist() == [100_000_000, 300_000_000]


@pytest.mark.parametrize(
    ("values", "where"),
    [
        (["0.1", "0.1234567891"], "p[1]"),
        (["1.1"], "p[0]"),
        (["-0.1"], "p[0]"),
        ([".5"], "p[0]"),
        (["1e-3"], "p[0]"),
        (["0.5 "], "p[0]"),
        (["\u0660.5"], "p[0]"),
        (["nan"], "p[0]"),
        ([0.5, float("nan")], "p[1]"),
        ([0.5, 1.0000001], "p[1]"),
        ([-1e-12], "p[0]"),
        ([float("inf")], "p[0]"),
        (["0.5", float("nan")], "p[1]"),
        ([Decimal("0.0000000001")], "p[0]"),
        ([Decimal("NaN")], "p[0]"),
        ([Decimal(2)], "p[0]"),
        ([1, "0.5"], "p[0]"),
        ([True, False], "p[0]"),
        ([None], "p[0]"),
        ("0.5", "p"),
        (np.array([[0.5]]), "p"),
        (np.array([5, ONE + 1]), "p[1]"),
        (np.array([-1]), "p[0]"),
        (np.array([True]), "p[0]"),
    ],
)
def test_what_is_no_probability_is_refused_with_its_index(values: Any, where: str) -> None:
    """A value that is no probability MUST be refused, naming its index."""
    with pytest.raises(BadInputError) as caught:
        as_units(values)
    assert caught.value.where == where


@pytest.mark.parametrize(
    ("values", "where"),
    [
        ([0, 1, 2], "y[2]"),
        ([0.5], "y[0]"),
        ([float("nan")], "y[0]"),
        (["1"], "y"),
        (np.zeros((2, 2)), "y"),
    ],
)
def test_what_is_no_label_is_refused_with_its_index(values: Any, where: str) -> None:
    with pytest.raises(BadInputError) as caught:
        as_labels(values)
    assert caught.value.where == where


def test_labels() -> None:
    assert as_labels([True, 0, 1.0]).tolist() == [1, 0, 1]
    assert as_labels([]).dtype == np.int8


def test_lengths_must_agree() -> None:
    with pytest.raises(BadInputError, match="2 probabilities but 1 labels"):
        as_cards(["0.5", "0.5"], [1])


@given(st.lists(st.integers(min_value=-(2**63), max_value=2**63 - 1), max_size=50))
def test_sums_are_exact(values: list[int]) -> None:
    array = np.array(values, dtype=np.int64)
    assert exact_sum(array) == sum(values)
    small = array >> 33
    assert exact_sum_of_squares(small) == sum(int(v) ** 2 for v in small)


def test_sum_of_ten_million_losses_does_not_overflow() -> None:
    """A sum of 10^7 losses MUST be exact: 10^25 units do not fit in 64 bits."""
    n = 10_000_000
    assert exact_sum(np.full(n, 10**18, dtype=np.int64)) == n * 10**18


@given(st.lists(st.floats(min_value=-1e6, max_value=1e6), min_size=1, max_size=30))
def test_floats_land_on_a_grid_finer_than_doubles_need(values: list[float]) -> None:
    exact = from_floats(values)
    largest = max(abs(x) for x in values)
    for unit, x in zip(exact.units.tolist(), values, strict=True):
        moved = abs(unit * exact.step - Fraction(x))
        assert moved <= max(Fraction(largest) / 2**50, Fraction(1, 10**9) * Fraction(1, 2**20))
    if not exact.rounded and exact.step != Fraction(1, 10**9):
        assert [unit * exact.step for unit in exact.units.tolist()] == [Fraction(x) for x in values]


def test_decimal_floats_keep_their_decimals() -> None:
    exact = from_floats([10, 12.5, 0.1])
    assert exact.units.tolist() == [10 * 10**9, 12_500_000_000, 100_000_000]
    assert exact.mean() == pytest.approx(22.6 / 3, abs=1e-15)
    assert not exact.rounded
    with pytest.raises(BadInputError, match=r"values\[1\]"):
        from_floats([0.0, float("inf")])


def test_align_finds_the_coarsest_common_unit() -> None:
    thirds = ExactArray(np.array([2, 4]), Fraction(1, 10))
    sixths = ExactArray(np.array([20, 60]), Fraction(1, 100))
    table = align([thirds, sixths])
    assert table.units.tolist() == [[1, 2], [1, 3]]
    assert table.step == Fraction(1, 5)
    assert not table.rounded


def test_align_refuses_what_does_not_belong_together() -> None:
    two, three = (
        ExactArray(np.zeros(2, np.int64), Fraction(1)),
        ExactArray(np.zeros(3, np.int64), Fraction(1)),
    )
    with pytest.raises(BadInputError, match="one length"):
        align([two, three])
    with pytest.raises(BadInputError, match="one length"):
        align([])
    with pytest.raises(BadInputError, match="no common unit"):
        align([two, ExactArray(np.zeros(2, np.int64), Fraction(3, 2))])


@given(st.lists(st.integers(-(10**18), 10**18), min_size=1, max_size=9), st.integers(1, 10**7))
def test_units_that_do_not_fit_are_rounded_and_say_so(values: list[int], n: int) -> None:
    """Where n * max|units| exceeds 62 bits, units MUST be rounded and the result MUST say so."""
    table = fit_units(np.array([values]), Fraction(1), n, rounded=False)
    back = [unit * table.step for unit in table.units[0].tolist()]
    largest = max(abs(v) for v in values)
    assert n * int(np.abs(table.units).max()) < 2**63
    assert all(abs(b - v) <= table.step / 2 for b, v in zip(back, values, strict=True))
    if table.rounded:
        assert table.step <= Fraction(n * largest, 2**60)
    else:
        assert back == values


@given(st.integers(-(10**6), 10**6), st.integers(1, 6))
def test_coarsening_rounds_half_even(unit: int, bits: int) -> None:
    """A unit halfway between two coarse ones MUST go to the even one."""
    largest = 2 ** (62 + bits) - 1
    table = fit_units(np.array([[unit, largest, 1]], dtype=object), Fraction(1), 1, rounded=False)
    assert table.step == 2**bits
    assert table.units[0][0] == round(Fraction(unit, 2**bits))
