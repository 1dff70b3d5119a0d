"""The project's logarithm: below one ulp against 60-digit decimals, and pinned bits."""

from __future__ import annotations

import math
from decimal import Context, Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import BadInputError
from scoring.elementary_log import natural_log

EXACT = Context(prec=60)


def ulps(x: float, found: float) -> float:
    true = Decimal(x).ln(EXACT)
    if true == 0:
        return 0.0 if found == 0.0 else math.inf
    return float(abs(Decimal(found) - true) / Decimal(math.ulp(float(true))))


@given(st.floats(min_value=5e-324, allow_infinity=False, allow_nan=False))
def test_error_is_below_one_ulp_everywhere(x: float) -> None:
    """The logarithm MUST be within 1 ulp of the true value."""
    assert ulps(x, float(natural_log(np.array([x]))[0])) < 1.0


@given(st.integers(min_value=1, max_value=10**9))
def test_error_is_below_one_ulp_on_probabilities(units: int) -> None:
    x = units / 1e9
    assert ulps(x, float(natural_log(np.array([x]))[0])) < 1.0


@given(st.floats(min_value=-1e-5, max_value=1e-5))
def test_error_is_below_one_ulp_near_one(offset: float) -> None:
    assert ulps(1.0 + offset, float(natural_log(np.array([1.0 + offset]))[0])) < 1.0


def test_an_array_gives_what_its_elements_give() -> None:
    x = np.geomspace(1e-300, 1e300, 20_011)
    whole = natural_log(x)
    assert [natural_log(x[i : i + 1])[0] for i in range(0, x.size, 97)] == whole[::97].tolist()
    reference = np.log(x)
    assert (np.abs(whole - reference) <= np.spacing(np.abs(reference))).all()


def test_bits_are_pinned() -> None:
    """The logarithm MUST have the same bits on every machine: these are of fdlibm's C code."""
    x = np.array([0.01, 0.99, 0.5, 2.0, 0.1, 0.7071067811865476, 1e-310])
    assert [value.hex() for value in natural_log(x).tolist()] == [
        "-0x1.26bb1bbb55515p+2",
        "-0x1.495453e6fd4bcp-7",
        "-0x1.62e42fefa39efp-1",
        "0x1.62e42fefa39efp-1",
        "-0x1.26bb1bbb55515p+1",
        "-0x1.62e42fefa39eep-2",
        "-0x1.64e69394d9508p+9",
    ]


def test_tiny_and_huge_values_share_an_array() -> None:
    x = np.array([5e-324, 1.7976931348623157e308])
    assert natural_log(x).tolist() == pytest.approx([math.log(v) for v in x.tolist()], rel=3e-16)


def test_edges() -> None:
    found = natural_log(np.array([0.0, 1.0, math.inf])).tolist()
    assert found == [-math.inf, 0.0, math.inf]
    assert math.copysign(1.0, found[1]) == 1.0
    assert natural_log(np.empty(0)).size == 0


@pytest.mark.parametrize("bad", [-1.0, -0.5, math.nan])
def test_what_has_no_logarithm_is_refused(bad: float) -> None:
    with pytest.raises(BadInputError, match=r"x\[1\]"):
        natural_log(np.array([1.0, bad]))
