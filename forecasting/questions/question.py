"""A question as every importer gives it, its label apart, and the pure step to a public card.

An importer returns an `ImportedSet`: questions without labels, private objects without questions,
and what was left out with its reason. The two meet only where a card is frozen and its label
sealed. Market prices and crowd medians stay on the question and never reach a card: a strategy that
shows one to a model has to say so.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final, Literal

from cards.folding import digest_forbidden, forbidden_strings
from cards.source import first_instant, last_instant
from forecasting.questions.reading import build
from forecasting.timebox import read_claimed_time
from ledger.clock import parse_date, parse_moment
from ledger.errors import BadInputError
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

YES_NO: Final = (
    Endpoint(id="yes", wording="The question resolves yes under its resolution criteria."),
    Endpoint(id="no", wording="The question resolves no under its resolution criteria."),
)
"""Scored endpoints of a question that words none of its own."""

NOT_MASKED: Final = "Nothing is masked."

ExclusionReason = Literal[
    "annulled", "ambiguous", "unresolved", "not_binary", "combination", "resolved_before_as_of"
]

_MAX_ID = 64
_DIGEST_DIGITS = 16
_DAY_LENGTH = len("2025-06-30")
_SECTIONS = (
    ("Background", "background"),
    ("Resolution criteria", "resolution_criteria"),
    ("Fine print", "fine_print"),
)


@dataclass(frozen=True, slots=True)
class MarketPrice:
    """What a market or crowd gave for yes: who, when (a moment), and decimal text in [0, 1]."""

    source: str
    at: str
    p_yes: str


@dataclass(frozen=True, slots=True)
class Question:
    """A binary question, or a dossier or stress case without a label.

    Attributes:
        question_id: an identifier; the card's id.
        origin: where it comes from, such as `metaculus`.
        as_of, deadline: moments; a deadline is null where the source gives none that was public.
        market_prices: none later than `as_of`.
    """

    question_id: str
    origin: str
    kind: CardKind
    title: str
    question: str
    as_of: str
    deadline: str | None
    background: str = ""
    resolution_criteria: str = ""
    fine_print: str = ""
    endpoints: tuple[Endpoint, ...] = YES_NO
    source_packet: tuple[SourceItem, ...] = ()
    domain: str | None = None
    url: str | None = None
    leakage_risk: LeakageRisk | None = None
    masking_rule: str = NOT_MASKED
    masks: tuple[MaskedEntity, ...] = ()
    market_prices: tuple[MarketPrice, ...] = ()


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A question that was read and left out, and why: it never silently leaves a denominator."""

    question_id: str
    reason: ExclusionReason
    detail: str


@dataclass(frozen=True, slots=True)
class ImportedSet:
    """What an importer read; questions and labels in the order of the source.

    `labels` hold at most one private object a question. `notes` say in one sentence each what the
    source holds and this cannot carry.
    """

    questions: tuple[Question, ...]
    labels: tuple[PrivateObject, ...]
    exclusions: tuple[Exclusion, ...] = ()
    notes: tuple[str, ...] = ()


def to_public_card(
    question: Question, *, pack: str, private: PrivateObject | None, entropy: Entropy
) -> PublicCard:
    """Make the public card of a question.

    Args:
        question: what was imported.
        pack: identifier of the card set.
        private: its label, of which only salted digests of forbidden strings become public; None
            for a question whose label somebody else keeps.
        entropy: gives the 32 bytes of each salt.

    Raises:
        BadInputError: the private object of another question, a label for a question without the
            endpoints yes and no, a deadline that is not after as-of, a source dated after it, a
            text that is too long, or a forbidden string that cannot be looked for.
    """
    _check(question, private)
    fields = {
        "card_id": question.question_id,
        "kind": question.kind,
        "pack": pack,
        "title": question.title,
        "question": question.question,
        "as_of": question.as_of,
        "deadline": question.deadline,
        "domain": question.domain,
        "source_class": question.origin,
        "leakage_risk": question.leakage_risk,
        "public_context": format_context(question),
        "source_packet": question.source_packet,
        "endpoints": question.endpoints,
        "masking_rule": question.masking_rule,
        "masks": question.masks,
        "forbidden": digest_forbidden(forbidden_strings(private), entropy),
    }
    return build(PublicCard, fields, where=question.question_id)


def format_context(question: Question) -> str:
    """Write background, criteria and fine print as one text, each under its heading."""
    texts = [(heading, getattr(question, field).strip()) for heading, field in _SECTIONS]
    return "\n\n".join(f"{heading}:\n{text}" for heading, text in texts if text)


def make_question_id(*parts: str) -> str:
    """Join parts to an identifier; where that changes or cuts them, a digest keeps it unique.

    `("metaculus", "39523")` gives `metaculus-39523`; anything with other characters or beyond 64
    gives a readable start and the first 16 hexadecimal digits of the SHA-256 of the parts.
    """
    joined = "-".join(parts)
    plain = re.sub(r"[^A-Za-z0-9_.\-]", "-", joined).lstrip("-_.")
    if plain == joined and plain and len(plain) <= _MAX_ID:
        return plain
    digest = hashlib.sha256("\0".join(parts).encode("utf-8")).hexdigest()[:_DIGEST_DIGITS]
    start = plain[: _MAX_ID - _DIGEST_DIGITS - 1]
    return f"{start}-{digest}" if start else digest


def read_moment(text: str, *, where: str, show_value: bool = True) -> str:
    """Read a foreign time as a moment; a day is its first instant.

    Args:
        text: as the source wrote it.
        where: begins the message.
        show_value: False keeps the text out of the message (a time of a label).

    Raises:
        BadInputError: no time with a zone, and no day.
    """
    moment = read_claimed_time(text)
    if moment is None:
        raise BadInputError(
            f"{repr(text[:40]) if show_value else 'the value'} is not a time with a zone",
            where=where,
            remedy="Give it like 2025-06-30T12:00:00Z.",
        )
    return moment


def read_deadline(text: str, *, where: str) -> str:
    """Read a foreign deadline as a moment; a day is its last instant."""
    moment = read_moment(text, where=where)
    return last_instant(moment[:10]) if len(text.strip()) == _DAY_LENGTH else moment


def read_as_of(text: str, *, where: str) -> str:
    """Read an as-of that a person gave, as a day or in the ledger's text form."""
    try:
        parse_date(text) if len(text) == _DAY_LENGTH else parse_moment(text)
    except BadInputError as error:
        raise BadInputError(error.what, where=where, remedy=error.remedy) from error
    return first_instant(text)


def _check(question: Question, private: PrivateObject | None) -> None:
    where = question.question_id
    if question.deadline is not None and question.deadline <= question.as_of:
        raise BadInputError(
            f"the deadline {question.deadline} is not after as-of {question.as_of}",
            where=where,
            remedy="Give an earlier as-of.",
        )
    for source in question.source_packet:
        if source.dated is not None and source.dated > question.as_of[:10]:
            raise BadInputError(
                f"a source is dated {source.dated}, after as-of {question.as_of[:10]}",
                where=where,
                remedy="Remove the source or give a later as-of.",
            )
    if private is None:
        return
    if private.card_id != question.question_id:
        raise BadInputError(f"was given the label of {private.card_id!r}", where=where)
    if {item.id for item in question.endpoints} != {"yes", "no"}:
        raise BadInputError("has a label but not the endpoints yes and no", where=where)
