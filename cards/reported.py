"""`reported.yaml`: the figures that a publication prints, as text, to compare a replay against.

A printed figure says as much as its digits: 0.236 stands for everything that rounds to it. So the
digits are kept as printed (0.250 is not 0.25) and compared as an interval.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from cards.fields import read_fields
from ledger.errors import BadInputError
from ledger.events.base import Count, Identifier, Name, Payload, Sentence
from ledger.strict_yaml import load_yaml

_PRINTED = re.compile(r"-?(0|[1-9][0-9]{0,8})(\.[0-9]{1,18})?")


def _check_printed(text: str) -> str:
    if not _PRINTED.fullmatch(text):
        raise BadInputError(
            f"{text[:40]!r} is not a plain decimal", remedy="Write it like -0.065, as printed."
        )
    return text


Printed = Annotated[str, AfterValidator(_check_printed)]
"""A plain decimal with the digits that were printed, trailing zeros included."""


class ReportedScore(Payload):
    """One row of the score table."""

    method: Identifier
    brier: Printed
    log: Printed
    role: Name


class ReportedInterval(Payload):
    """An interval for the mean difference loss(b) - loss(a)."""

    level: Printed
    low: Printed
    high: Printed


class ReportedTie(Payload):
    """The sign test at one practical-tie threshold: a tie is |difference| <= epsilon."""

    epsilon: Printed
    a_lower: Count
    b_lower: Count
    ties: Count
    sign_test_p: Printed


class ReportedLoss(Payload):
    """A card on which b has the lower loss, with loss(b) - loss(a), negative."""

    card: Identifier
    difference: Printed


class ReportedPair(Payload):
    """The paired comparison; differences are loss(b) - loss(a), so positive favours a."""

    a: Identifier
    b: Identifier
    mean_brier_difference: Printed
    relative_reduction: Printed
    sign_test_p: Printed
    interval: ReportedInterval
    tie_table: Annotated[tuple[ReportedTie, ...], Field(min_length=1)]
    b_lower_cards: tuple[ReportedLoss, ...]


class Reported(Payload):
    """Everything of a publication that a replay of the pack can be held against."""

    source: Sentence
    n: Count
    scores: tuple[ReportedScore, ...]
    paired: ReportedPair


def read_reported(path: Path) -> Reported:
    """Read a pack's reported.yaml.

    Raises:
        BadInputError: one sentence with file, field and what is expected.
    """
    return read_fields(Reported, load_yaml(path), where=str(path))


def agrees_with_printed(value: Fraction, printed: str) -> bool:
    """Say whether a value could have been printed so: within half a unit of the last digit.

    Both ends count, because a publication does not say how it rounds halves.
    """
    exponent = Decimal(printed).as_tuple().exponent
    places = -exponent if isinstance(exponent, int) else 0
    distance = abs(value - Fraction(printed))
    return distance <= Fraction(1, 2 * 10**places)
