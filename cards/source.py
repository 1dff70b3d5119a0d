"""A card as its author writes it, and the pure step from there to the public card.

The public part is one YAML file a card (`CardSource`). The private part, what the seal hides, never
stands in it: it is a `PrivateObject` of the pack's `private/labels.yaml`. Normative page:
docs/spec/cards.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from cards.fields import read_fields
from cards.folding import digest_forbidden, forbidden_strings
from ledger.clock import parse_date, parse_moment
from ledger.errors import BadInputError
from ledger.events.base import Identifier, Name, Payload, Sentence, Text
from ledger.events.card import (
    CardKind,
    Endpoint,
    LeakageRisk,
    MaskedEntity,
    PrivateObject,
    PublicCard,
    SourceItem,
)
from ledger.ids import Entropy
from ledger.strict_yaml import load_yaml

ANSWERS = ("yes", "no")
"""Ids of the scored endpoints of every binary card."""

_DAY_LENGTH = len("2025-09-15")


def _day_or_moment(text: str) -> str:
    if len(text) == _DAY_LENGTH:
        parse_date(text)
    else:
        parse_moment(text)
    return text


DayOrMoment = Annotated[
    str,
    AfterValidator(_day_or_moment),
    Field(description="a day like 2025-09-15, or a UTC time like 2025-09-15T12:00:00.000000Z"),
]
"""`YYYY-MM-DD`, or a moment as in `ledger.clock`."""


class CardSource(Payload):
    """One card file. `provenance` stays in the pack: it is for readers, never for a method.

    `as_of` as a day means 00:00:00.000000Z of it; `deadline` as a day means 23:59:59.999999Z of it.
    """

    id: Identifier
    kind: CardKind
    title: Sentence
    question: Sentence
    as_of: DayOrMoment
    deadline: DayOrMoment | None = None
    scheduled: bool | None = None
    domain: Name | None = None
    source_class: Name | None = None
    leakage_risk: LeakageRisk | None = None
    public_context: Annotated[Text, Field(min_length=1, description="text, not empty")]
    source_packet: tuple[SourceItem, ...] = ()
    endpoints: tuple[Endpoint, ...] = ()
    auxiliary_endpoints: tuple[Endpoint, ...] = ()
    masking_rule: Sentence
    masks: tuple[MaskedEntity, ...] = ()
    provenance: Sentence

    @model_validator(mode="after")
    def _check_whole(self) -> CardSource:
        endpoints = [item.id for item in self.endpoints]
        _refuse_twice("endpoints", [*endpoints, *(item.id for item in self.auxiliary_endpoints)])
        _refuse_twice("masks", [mask.token for mask in self.masks])
        if self.deadline is not None and last_instant(self.deadline) <= first_instant(self.as_of):
            raise BadInputError(
                f"{self.deadline} is not after as_of {self.as_of}.",
                where="deadline",
                remedy="A deadline comes after the as-of date.",
            )
        if self.kind == "resolved":
            _check_resolved(endpoints, self.deadline)
        return self


def first_instant(text: str) -> str:
    """The moment that an `as_of` means: a day is its first microsecond, UTC."""
    return f"{text}T00:00:00.000000Z" if len(text) == _DAY_LENGTH else text


def last_instant(text: str) -> str:
    """The moment that a `deadline` means: a day is its last microsecond, UTC."""
    return f"{text}T23:59:59.999999Z" if len(text) == _DAY_LENGTH else text


def read_card(path: Path) -> CardSource:
    """Read one card file.

    Raises:
        BadInputError: one sentence with the file, the field path and what is expected there.
    """
    return read_fields(CardSource, load_yaml(path), where=str(path))


def to_public_card(
    source: CardSource, *, pack: str, private: PrivateObject | None, entropy: Entropy
) -> PublicCard:
    """Make the public card: instants written out, forbidden strings only as salted digests.

    Args:
        source: the card file.
        pack: id of the pack that the card belongs to.
        private: the card's private object; a resolved card must have one.
        entropy: gives the 32 bytes of each salt; nothing else here is random.

    Raises:
        BadInputError: the private object is missing or belongs to another card, or a forbidden
            string cannot be looked for.
    """
    check_pair(source, private)
    return PublicCard(
        card_id=source.id,
        kind=source.kind,
        pack=pack,
        title=source.title,
        question=source.question,
        as_of=first_instant(source.as_of),
        deadline=None if source.deadline is None else last_instant(source.deadline),
        scheduled=source.scheduled,
        domain=source.domain,
        source_class=source.source_class,
        leakage_risk=source.leakage_risk,
        public_context=source.public_context,
        source_packet=source.source_packet,
        endpoints=source.endpoints,
        auxiliary_endpoints=source.auxiliary_endpoints,
        masking_rule=source.masking_rule,
        masks=source.masks,
        forbidden=digest_forbidden(forbidden_strings(private), entropy),
    )


def check_pair(source: CardSource, private: PrivateObject | None) -> None:
    """Refuse a card and a private object that do not belong together.

    Raises:
        BadInputError: a resolved card without a private object, a private object of another card,
            or one whose yes or no answers a card without those two endpoints.
    """
    if private is None:
        if source.kind == "resolved":
            raise BadInputError(
                f"the resolved card {source.id!r} has no private object.",
                remedy="Add its label to private/labels.yaml.",
            )
        return
    if private.card_id != source.id:
        raise BadInputError(
            f"the private object of {private.card_id!r} was given for the card {source.id!r}.",
            remedy="Give the card its own private object.",
        )
    if {item.id for item in source.endpoints} != set(ANSWERS):
        raise BadInputError(
            f"the card {source.id!r} has a label but not the endpoints yes and no.",
            remedy="Give it these two endpoints, or remove its label.",
        )


def _check_resolved(endpoints: list[str], deadline: str | None) -> None:
    if sorted(endpoints) != sorted(ANSWERS):
        raise BadInputError(
            f"a resolved card has exactly the endpoints yes and no, not {endpoints}.",
            where="endpoints",
            remedy="Put other outcomes under auxiliary_endpoints.",
        )
    if deadline is None:
        raise BadInputError(
            "a resolved card has a deadline.",
            where="deadline",
            remedy="Give the last day that counts.",
        )


def _refuse_twice(field: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise BadInputError(
                f"{name!r} stands twice.", where=field, remedy="Give each its own name."
            )
        seen.add(name)
