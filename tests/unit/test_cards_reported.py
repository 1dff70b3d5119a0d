"""Printed figures: read as text, compared within half a unit of the last digit."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from cards.pack import load_pack
from cards.reported import read_reported
from ledger.errors import BadInputError
from ledger.printed import agrees_with_printed


@pytest.mark.parametrize(
    ("value", "printed", "agrees"),
    [
        ("0.2359430192", "0.236", True),
        ("0.2355", "0.236", True),
        ("0.23549", "0.236", False),
        ("0.25", "0.250", True),
        ("0.2506", "0.250", False),
        ("-0.0651", "-0.065", True),
        ("0.0651", "-0.065", False),
        ("17.4", "17", True),
    ],
)
def test_agreement_is_half_a_unit_of_the_last_digit(
    value: str, printed: str, *, agrees: bool
) -> None:
    assert agrees_with_printed(Fraction(value), printed) is agrees


@pytest.mark.parametrize("bad", ["1e-3", ".5", "+0.1", "0.1\n", "nan", "00.1"])
def test_a_figure_that_is_no_plain_decimal_is_refused(tmp_path: Path, bad: str) -> None:
    reported = load_pack("worldfork_pilot").reported
    assert reported is not None
    text = reported.read_text().replace('"0.0679"', repr(bad).replace("'", '"'))
    (tmp_path / "reported.yaml").write_text(text)
    with pytest.raises(BadInputError, match=r"reported\.yaml: paired\.mean_brier_difference: "):
        read_reported(tmp_path / "reported.yaml")
