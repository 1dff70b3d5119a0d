"""Exact numbers as text: one spelling, no float on the way, nothing guessed."""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.decimals import (
    UNITS,
    format_units,
    normalize_decimal,
    parse_probability,
    parse_units,
    round_probability,
)
from ledger.errors import BadInputError

LIMIT = 10**27


@given(st.integers(-LIMIT + 1, LIMIT - 1))
def test_units_come_back(units: int) -> None:
    text = format_units(units)
    assert parse_units(text) == units
    assert Fraction(text) == Fraction(units, UNITS)
    assert normalize_decimal(text) == text


@pytest.mark.parametrize(
    ("units", "text"),
    [
        (0, "0"),
        (1, "0.000000001"),
        (-1, "-0.000000001"),
        (103_500_000, "0.1035"),
        (UNITS, "1"),
        (10 * UNITS, "10"),
        (-25 * UNITS // 10, "-2.5"),
    ],
)
def test_the_one_form(units: int, text: str) -> None:
    assert format_units(units) == text
    assert parse_units(text) == units


OTHER_FORMS = [
    *("", " ", "0.0", "0.10", "00", "01", "1.", ".5", "+1", "-0", "-0.0", "1e-3", "1E3", "0,5"),
    *(
        "0.0000000001",
        "0.1234567890",
        "1_000",
        "\u0660.\u0665",
        "\uff11",
        " 1",
        "1 ",
        "1\n",
        "NaN",
        "inf",
    ),
    *("-inf", "0x1", "1/2", "50%", "--1", "1.2.3", "1" * 19, "0." + "1" * 19),
]


@pytest.mark.parametrize("text", OTHER_FORMS, ids=range(len(OTHER_FORMS)))
def test_other_forms_are_refused(text: str) -> None:
    """event-log.md 3: at most nine places, without exponent and without trailing zeros."""
    with pytest.raises(BadInputError):
        parse_units(text)


@given(st.text(alphabet="0123456789.-+eE_ ", max_size=24))
def test_what_parses_is_spelt_in_one_way(text: str) -> None:
    try:
        units = parse_units(text)
    except BadInputError:
        return
    assert format_units(units) == text


@given(st.integers(-UNITS, 2 * UNITS))
def test_probabilities_lie_in_the_unit_interval(units: int) -> None:
    text = format_units(units)
    if 0 <= units <= UNITS:
        assert parse_probability(text) == units
    else:
        with pytest.raises(BadInputError, match="outside"):
            parse_probability(text)


FOREIGN = st.one_of(
    st.decimals(0, 1, allow_nan=False, places=30).map(str),
    st.floats(0, 1).map(repr),
    st.builds(lambda n, e: f"{n}e-{e}", st.integers(0, 99), st.integers(2, 400)),
)


@given(FOREIGN)
def test_rounding_is_exact_and_half_to_even(text: str) -> None:
    """events.md, prediction.frozen: p_yes is rounded to nine places, half to even."""
    assert parse_probability(round_probability(text)) == round(Fraction(text) * UNITS)


@pytest.mark.parametrize(
    ("text", "rounded"),
    [
        ("0.0000000005", "0"),
        ("0.0000000015", "0.000000002"),
        ("0.0000000025", "0.000000002"),
        ("0.00000000250000000000000000000000000000000000000000000000001", "0.000000003"),
        ("0.9999999995", "1"),
        ("5e-1", "0.5"),
        (".50", "0.5"),
        ("1.", "1"),
        ("+0.3", "0.3"),
        ("-0.0", "0"),
        ("1e-999", "0"),
        ("0" * 40 + "." + "3" * 60, "0.333333333"),
    ],
)
def test_foreign_spellings(text: str, rounded: str) -> None:
    assert round_probability(text) == rounded


NOT_PROBABILITIES = [
    *(
        "",
        "45",
        "1.0000000001",
        "-0.1",
        "-1e-30",
        "50%",
        "nan",
        "inf",
        "0,5",
        "one",
        "0.5 ",
        " 0.5",
    ),
    *(
        "0.5\n",
        "1e9999",
        "1e5",
        "\u0660.\u0665",
        "0_1",
        "0x1",
        "0.5.5",
        "e5",
        ".",
        "+",
        "0" * 41,
        "0." + "1" * 61,
    ),
]


@pytest.mark.parametrize("text", NOT_PROBABILITIES, ids=range(len(NOT_PROBABILITIES)))
def test_what_is_no_probability_is_not_guessed_at(text: str) -> None:
    with pytest.raises(BadInputError):
        round_probability(text)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("0.50", "0.5"),
        ("5e-3", "0.005"),
        ("+1", "1"),
        ("-0", "0"),
        ("-2.50", "-2.5"),
        ("1e17", "100000000000000000"),
        (".5", "0.5"),
        ("0.000000001000", "0.000000001"),
        ("1000e-3", "1"),
    ],
)
def test_what_people_write(text: str, normal: str) -> None:
    assert normalize_decimal(text) == normal


NOT_DECIMALS = [
    *(
        "",
        "x",
        "nan",
        "inf",
        "1_000",
        "\u0661",
        " 1",
        "1\n",
        "1e-10",
        "0.0000000001",
        "1e18",
        "1e999",
    ),
    *("1e999999", "1e-999", "-1e18", "1" * 28, "1000000000000000000000.0000000001"),
    *("0.12345678912345678912345678901234567",),
]


@pytest.mark.parametrize("text", NOT_DECIMALS, ids=range(len(NOT_DECIMALS)))
def test_what_has_no_exact_form_is_refused(text: str) -> None:
    """Nothing is rounded into a threshold, and no exponent makes a billion digits."""
    with pytest.raises(BadInputError):
        normalize_decimal(text)


@given(st.text(alphabet="0123456789.-+eE", max_size=30))
def test_normalizing_keeps_the_value(text: str) -> None:
    try:
        normal = normalize_decimal(text)
    except BadInputError:
        return
    assert Fraction(normal) == Fraction(Decimal(text))
    assert format_units(parse_units(normal)) == normal


def test_the_callers_decimal_context_changes_nothing() -> None:
    with decimal.localcontext() as context:
        context.prec = 3
        context.rounding = decimal.ROUND_UP
        context.traps[decimal.Inexact] = True
        assert round_probability("0.12345678949") == "0.123456789"
        assert normalize_decimal("0.123456789") == "0.123456789"
