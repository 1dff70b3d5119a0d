"""`reported.yaml`: the figures that a publication prints, as text, to compare a replay against.

Digits are kept as printed and compared within half of the last one (ledger/printed.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from cards.fields import read_fields
from ledger.events.base import Count, Identifier, Name, Payload, Sentence
from ledger.printed import Printed
from ledger.strict_yaml import load_yaml


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
