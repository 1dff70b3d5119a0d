"""What every payload is made of: one strict base class and the field types of the vocabulary.

No float exists in a payload. A probability is a decimal string, a mass an integer of 1e-9 units,
a moment a 27-character UTC string, a digest 64 lower-case hexadecimal digits.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from ledger.clock import parse_date, parse_moment
from ledger.decimals import UNITS, parse_probability, parse_units


def _checked(check: Callable[[str], object]) -> AfterValidator:
    """Turn a strict parser into a validator that returns the text itself."""

    def validate(text: str) -> str:
        check(text)
        return text

    return AfterValidator(validate)


class Payload(BaseModel):
    """Base of every payload and every part of one: frozen, strict, no unknown keys.

    Null fields are written out: *not recorded* differs from *not known to this version*.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_default=True)


Identifier = Annotated[
    str,
    StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}$", max_length=64),
    Field(description="an id of at most 64 letters, digits and _ . -"),
]
"""A card, method, plan, actor or timeline id: ASCII letters, digits and `_ . -`, at most 64."""

Name = Annotated[
    str, StringConstraints(min_length=1, max_length=200), Field(description="a short text")
]
Text = Annotated[str, StringConstraints(max_length=1_000_000), Field(description="text")]
Sentence = Annotated[
    str, StringConstraints(min_length=1, max_length=4_000), Field(description="a sentence")
]
Digest = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9a-f]{64}$"),
    Field(description="64 lower-case hexadecimal digits"),
]
Moment = Annotated[
    str, _checked(parse_moment), Field(description="a UTC time like 2026-04-01T00:00:00.000000Z")
]
Date = Annotated[str, _checked(parse_date), Field(description="a date like 2026-04-01")]
Probability = Annotated[
    str, _checked(parse_probability), Field(description="a probability as decimal text, like 0.05")
]
Decimal9 = Annotated[
    str, _checked(parse_units), Field(description="a decimal of at most nine places, like 0.001")
]
MassUnits = Annotated[int, Field(ge=0, le=UNITS)]
Seq = Annotated[int, Field(ge=0, le=2**53 - 1)]
Count = Annotated[int, Field(ge=0, le=2**53 - 1)]
Draw = Annotated[int, Field(ge=1, le=1_000_000)]
Answer = Literal["yes", "no"]
RuleName = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,48}/[1-9][0-9]{0,3}$"),
    Field(description="a rule and its version, like path-ledger/1"),
]
"""A named and versioned pure function, such as `candidate-status/1`."""


class Money(Payload):
    """An amount in a currency; an unknown amount is null with its reason, never 0."""

    amount: Decimal9 | None
    currency: Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")]
    unknown_because: Sentence | None = None


class RawBytes(Payload):
    """Octets exactly as sent or received: as text where they are UTF-8, else as base64."""

    media: Name
    encoding: Literal["utf-8", "base64"]
    data: Text


class ModelRoute(Payload):
    """Who answers: each part null where the record does not say."""

    provider: Name | None = None
    route: Name | None = None
    requested_model: Name | None = None
    resolved_model: Name | None = None


def safe_stream(*parts: str) -> str:
    """Join the parts of a stream name; the parts are identifiers and hold no slash."""
    return "/".join(re.sub(r"[^A-Za-z0-9_.\-]", "-", part) for part in parts)
