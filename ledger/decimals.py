"""Exact numbers as text: probabilities, money and thresholds never pass through a float.

The one text form has no exponent, no sign on zero, no leading zero beyond the units digit and no
trailing zero: `0.1035`, `1`, `0`. A probability has at most nine places, one place a unit of 1e-9.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext

from ledger.errors import BadInputError

PLACES = 9
UNITS: int = 10**PLACES
"""Units in a probability of one; also the path mass of a root timeline."""

_PLAIN = re.compile(r"(-?)(0|[1-9][0-9]{0,17})(?:\.([0-9]{1,18}))?")
_FOREIGN = re.compile(
    r"[+-]?[0-9]{1,40}(?:\.[0-9]{0,60})?(?:[eE][+-]?[0-9]{1,3})?|[+-]?\.[0-9]{1,60}"
)


def format_units(units: int) -> str:
    """Write a whole number of 1e-9 units as a decimal string: 103500000 -> '0.1035'."""
    sign = "-" if units < 0 else ""
    whole, part = divmod(abs(units), UNITS)
    return f"{sign}{whole}.{part:09d}".rstrip("0").rstrip(".") if part else f"{sign}{whole}"


def parse_units(text: str) -> int:
    """Read a decimal string of at most nine places, in its one form, as 1e-9 units.

    Raises:
        BadInputError: more places, or any other spelling of the number.
    """
    units = _read_units(text)
    if units is None or format_units(units) != text:
        raise BadInputError(
            f"{text!r} is not a plain decimal of at most {PLACES} places",
            remedy="Write it like 0.1035, without exponent, sign of zero or trailing zeros.",
        )
    return units


def parse_probability(text: str) -> int:
    """Read a probability in its one text form as 1e-9 units in 0..1,000,000,000."""
    units = parse_units(text)
    if not 0 <= units <= UNITS:
        raise BadInputError(f"{text!r} is outside [0, 1]")
    return units


def round_probability(text: str) -> str:
    """Round a probability as somebody else wrote it to nine places, half to even.

    Accepts exponents, a leading plus and trailing zeros; refuses percent signs, NaN, infinities and
    whatever lies outside [0, 1]: 45 is not 0.45 (docs/spec/events.md, `prediction.frozen`).

    Raises:
        BadInputError: not a number, or outside [0, 1].
    """
    if not _FOREIGN.fullmatch(text):
        raise BadInputError(
            f"{text[:40]!r} is not a probability", remedy="Give a number from 0 to 1."
        )
    # 100 digits at most come in, and nine more: nothing is rounded before the last step.
    with localcontext(Context(prec=120)):
        value = Decimal(text)
        if not 0 <= value <= 1:
            raise BadInputError(
                f"the probability {text[:40]} is outside [0, 1]",
                remedy="Give a number from 0 to 1; a percentage is not guessed at.",
            )
        return format_units(int((value * UNITS).to_integral_value(ROUND_HALF_EVEN)))


def normalize_decimal(text: str) -> str:
    """Bring a decimal that a person wrote ('0.50', '5e-3', '+1') into the one text form.

    Raises:
        BadInputError: not a number, more than nine places, or more than 18 digits before the point.
    """
    if not _FOREIGN.fullmatch(text):
        raise BadInputError(f"{text[:40]!r} is not a decimal number")
    # Context(): 1e999 and 100 digits stay exact, whatever the caller's context would round.
    with localcontext(Context(prec=1_200)):
        units = Decimal(text) * UNITS
        if units != units.to_integral_value() or abs(units) >= 10 ** (18 + PLACES):
            raise BadInputError(
                f"{text[:40]!r} is not a decimal of at most {PLACES} places and 18 digits before"
            )
        return format_units(int(units))


def _read_units(text: str) -> int | None:
    match = _PLAIN.fullmatch(text)
    if match is None or len(match[3] or "") > PLACES:
        return None
    sign, whole, part = match[1], match[2], match[3] or ""
    units = int(whole) * UNITS + int(part.ljust(PLACES, "0"))
    return -units if sign else units
