"""Figures as somebody printed them: kept digit for digit, and compared within half of the last one.

A printed figure says as much as its digits: 0.236 stands for everything that rounds to it. So the
digits are kept as printed (0.250 is not 0.25) and compared as an interval. Both the figures of a
card pack and the published intervals of a plan (docs/spec/preregistration.md) are of this type.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import Annotated

from pydantic import AfterValidator, Field

from ledger.errors import BadInputError

_PRINTED = re.compile(r"-?(0|[1-9][0-9]{0,8})(\.[0-9]{1,18})?")


def _check_printed(text: str) -> str:
    if not _PRINTED.fullmatch(text):
        raise BadInputError(
            f"{text[:40]!r} is not a plain decimal.", remedy="Write it like -0.065, as printed."
        )
    return text


Printed = Annotated[
    str,
    AfterValidator(_check_printed),
    Field(description="a plain decimal, like -0.065"),
]
"""A plain decimal with the digits that were printed, trailing zeros included."""


def agrees_with_printed(value: Fraction, printed: str) -> bool:
    """Say whether a value could have been printed so: within half a unit of the last digit.

    Both ends count, because a publication does not say how it rounds halves.
    """
    exponent = Decimal(printed).as_tuple().exponent
    places = -exponent if isinstance(exponent, int) else 0
    distance = abs(value - Fraction(printed))
    return distance <= Fraction(1, 2 * 10**places)
