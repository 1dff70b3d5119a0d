"""Lint: what the text of a card gives away, and where its dates and masks do not add up.

Each rule is one pure function and one row of `CARD_RULES` or `PACK_RULES`. A rule reads text; it
reports a suspicion with the public words that raised it, and its docstring says what it is blind
to. A clean lint is no proof that a card does not leak.

Findings quote public text only, but *which* words are quoted tells what the label holds: lint
output belongs to the label's custodian until the label is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from cards.folding import contains_folded, fold, forbidden_strings
from cards.lint_text import (
    QUOTE_CHARS,
    content_pairs,
    excerpt,
    find_runs,
    name_parts,
    named_answers,
    odd_characters,
    overlap_share,
    public_texts,
    question_texts,
    settling_texts,
)
from cards.pack import Pack
from cards.source import CardSource, first_instant, last_instant
from ledger.events.card import PrivateObject

Severity = Literal["error", "warning", "note"]

SUMMARY_RUN_WORDS = 4
"""Shortest run of folded words that counts as overlap with the private summary."""

RESTATED_SHARE = 0.8
"""Share of content words from which an auxiliary endpoint restates a scored one."""

MIN_SOURCES = 2
"""Fewest notes of a resolved card's source packet."""


class Hit(NamedTuple):
    """What a rule found: the field's path, one sentence, and the public words."""

    field: str
    message: str
    quote: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One suspicion. `accepted_because` is the pack's recorded reason for keeping it, or None."""

    rule: str
    severity: Severity
    card_id: str
    field: str
    message: str
    quote: str
    accepted_because: str | None = None


class CardRule(NamedTuple):
    """A row: stable id, severity, and the function of the card and its private object."""

    id: str
    severity: Severity
    check: Callable[[CardSource, PrivateObject | None], Iterator[Hit]]


class PackRule(NamedTuple):
    """A row: stable id, severity, and the function of the pack; hits carry the card id first."""

    id: str
    severity: Severity
    check: Callable[[Pack], Iterator[tuple[str, Hit]]]


def lint_card(source: CardSource, private: PrivateObject | None) -> tuple[Finding, ...]:
    """Run every card rule, in the order of the table.

    Args:
        source: the card.
        private: its private object; without one the rules that need it find nothing.

    Cost: linear in the card's text times the number of private strings; about 1 ms a card.
    """
    return tuple(
        Finding(rule.id, rule.severity, source.id, *hit)
        for rule in CARD_RULES
        for hit in rule.check(source, private)
    )


def lint_pack(pack: Pack) -> tuple[Finding, ...]:
    """Run the card rules over all cards, then the pack rules, and mark what the pack accepts.

    An acceptance that no finding needs is itself a finding, `cards/stale-acceptance`.
    """
    found = [finding for card in pack.cards for finding in lint_card(card.source, card.private)]
    found += [
        Finding(rule.id, rule.severity, card_id, *hit)
        for rule in PACK_RULES
        for card_id, hit in rule.check(pack)
    ]
    reasons = {(item.rule, item.card_id, item.field): item.reason for item in pack.accepted}
    keys = {(item.rule, item.card_id, item.field) for item in found}
    stale = [
        Finding(STALE_ACCEPTANCE, "warning", key[1], key[2], f"accepts {key[0]}, not found", "")
        for key in reasons
        if key not in keys
    ]
    marked = [
        replace(item, accepted_because=reasons.get((item.rule, item.card_id, item.field)))
        for item in found
    ]
    return (*marked, *stale)


def masked_value(source: CardSource, private: PrivateObject | None) -> Iterator[Hit]:
    """A real name or other forbidden string stands in the public text, after folding.

    Blind to: nicknames, misspellings, translations, descriptions that single the entity out, and
    names that the private object does not list.
    """
    for secret in forbidden_strings(private):
        for field, text in public_texts(source):
            if contains_folded(text, secret):
                quote = excerpt(text, secret)
                yield Hit(field, "carries a string that the label keeps private", quote)


def masked_name_part(source: CardSource, private: PrivateObject | None) -> Iterator[Hit]:
    """A capitalised word of a masked name stands in the public text with its capital.

    Blind to: parts of fewer than four letters, lower-case uses, initials, words of the stand-in.
    Finds too much where a name holds an ordinary word that begins a sentence.
    """
    for part in name_parts(private):
        for field, text in public_texts(source):
            if part in text and contains_folded(text, part):
                yield Hit(field, "carries a part of a masked name", excerpt(text, part))


def missing_mask(source: CardSource, private: PrivateObject | None) -> Iterator[Hit]:
    """The label maps a stand-in that the card does not declare among its masks.

    Blind to: entities that neither file mentions.
    """
    declared = {mask.token for mask in source.masks}
    for token in private.entity_map if private else ():
        if token not in declared:
            yield Hit("masks", f"does not declare {token!r}, which the label maps", token)


def unmapped_mask(source: CardSource, private: PrivateObject | None) -> Iterator[Hit]:
    """The card masks something and the label does not say what.

    Blind to: whether a mapping that stands there is right.
    """
    if private is None:
        return
    for index, mask in enumerate(source.masks):
        if mask.token not in private.entity_map:
            yield Hit(f"masks[{index}].token", "has no real name in the label", mask.token)


def unused_mask(source: CardSource, private: PrivateObject | None) -> Iterator[Hit]:  # noqa: ARG001
    """A declared stand-in appears nowhere but in the masking rule and the list of masks.

    Blind to: stand-ins that are used and not declared; they look like ordinary words.
    """
    text = " | ".join(text for field, text in public_texts(source) if "mask" not in field)
    for index, mask in enumerate(source.masks):
        if not contains_folded(text, mask.token):
            yield Hit(f"masks[{index}].token", "is used nowhere in the public text", mask.token)


def outcome_in_endpoint(source: CardSource, private: PrivateObject | None) -> Iterator[Hit]:
    """A scored endpoint or a settlement note shares two content words in a row with the summary.

    Words that the title, question or context already hold together do not count. Catches a no
    endpoint that describes the very way in which the question failed.
    Blind to: the same outcome in other words (a synonym, a score written out), and to outcomes
    that the summary does not describe.
    """
    if private is None:
        return
    known = content_pairs(question_texts(source), source)
    secret = content_pairs((private.summary,), source)
    for field, text in settling_texts(source):
        for pair in sorted((content_pairs((text,), source) & secret) - known):
            quote = excerpt(text, " ".join(pair))
            yield Hit(field, "words the settlement as the private summary does", quote)


def auxiliary_adjacent(source: CardSource, private: PrivateObject | None) -> Iterator[Hit]:
    """An auxiliary endpoint restates a scored one, or has words of the summary found nowhere else.

    Blind to: mechanisms that only hindsight would name, worded differently from the summary.
    """
    known = content_pairs((*question_texts(source), *_packet_texts(source)), source)
    secret = content_pairs((private.summary,), source) - known if private else frozenset()
    for index, item in enumerate(source.auxiliary_endpoints):
        field = f"auxiliary_endpoints[{index}].wording"
        for pair in sorted(content_pairs((item.wording,), source) & secret):
            quote = excerpt(item.wording, " ".join(pair))
            yield Hit(field, "has words of the private summary that the card lacks", quote)
        shares = [overlap_share(item.wording, scored.wording) for scored in source.endpoints]
        if max(shares, default=0.0) >= RESTATED_SHARE:
            yield Hit(field, "restates a scored endpoint", item.wording[:QUOTE_CHARS])


def summary_overlap(source: CardSource, private: PrivateObject | None) -> Iterator[Hit]:
    """Public text repeats a run of four or more folded words of the private summary.

    Runs that stand in the title or question are not counted: a summary names the event.
    Blind to: paraphrase, and runs of three words or fewer.
    """
    if private is None:
        return
    asked = (source.title, source.question)
    for field, text in public_texts(source):
        if field in {"title", "question"}:
            continue
        for run in find_runs(text, private.summary, SUMMARY_RUN_WORDS, known=asked):
            yield Hit(field, "repeats words of the private summary", excerpt(text, run))


def one_sided_note(source: CardSource, private: PrivateObject | None) -> Iterator[Hit]:
    """A note spells out how one answer comes about, only one, and it is the one that came.

    A card that explains `a loss in the last game resolves no` beside no such case for yes tells
    which case its author had in mind.
    Blind to: one-sidedness without an explicit `resolves/counts/settles ... yes/no`.
    """
    if private is None:
        return
    texts = [("public_context", source.public_context)]
    texts += [(f"source_packet[{i}].text", s.text) for i, s in enumerate(source.source_packet)]
    for field, text in texts:
        if named_answers(text) == {private.resolution}:
            message = "spells out only the answer that came"
            yield Hit(field, message, excerpt(text, private.resolution))


def source_after_as_of(source: CardSource, private: PrivateObject | None) -> Iterator[Hit]:  # noqa: ARG001
    """A note is dated later than the day of the as-of instant.

    Blind to: a note whose date is right and whose text was written or edited later.
    """
    day = _day(first_instant(source.as_of))
    for index, item in enumerate(source.source_packet):
        if item.dated is not None and item.dated > day:
            yield Hit(f"source_packet[{index}].dated", f"is later than as_of {day}", item.dated)


def undated_source(source: CardSource, private: PrivateObject | None) -> Iterator[Hit]:  # noqa: ARG001
    """A note has no date, so that nothing shows it was known at the as-of instant.

    Blind to: dates that are made up.
    """
    for index, item in enumerate(source.source_packet):
        if item.dated is None:
            yield Hit(f"source_packet[{index}].dated", "is not dated", item.text[:QUOTE_CHARS])


def few_sources(source: CardSource, private: PrivateObject | None) -> Iterator[Hit]:  # noqa: ARG001
    """A resolved card gives fewer than two notes.

    Blind to: whether the notes say different things.
    """
    count = len(source.source_packet)
    if source.kind == "resolved" and count < MIN_SOURCES:
        yield Hit("source_packet", f"holds {count} of at least {MIN_SOURCES} notes", "")


def deadline_is_private_date(source: CardSource, private: PrivateObject | None) -> Iterator[Hit]:
    """The deadline is the very day on which the question resolved, and no calendar fixed that day.

    A scheduled event (`scheduled: true`) is exempt: its day was public beforehand.
    Blind to: deadlines one day off, and to a card that calls itself scheduled wrongly.
    """
    if private is None or source.deadline is None or source.scheduled is True:
        return
    if private.resolved_on == _day(last_instant(source.deadline)):
        yield Hit("deadline", "is the day of the private resolution", source.deadline)


def resolution_outside_window(source: CardSource, private: PrivateObject | None) -> Iterator[Hit]:
    """The resolution date lies before the as-of day, or a yes came after the deadline.

    Blind to: an outcome that was common knowledge before its official date.
    """
    if private is None or private.resolved_on is None:
        return
    if private.resolved_on < _day(first_instant(source.as_of)):
        yield Hit("as_of", "is later than the day of the private resolution", source.as_of)
    late = source.deadline is not None and private.resolved_on > _day(last_instant(source.deadline))
    if late and private.resolution == "yes":
        yield Hit("deadline", "is earlier than the day on which yes came", source.deadline or "")


def risk_mismatch(source: CardSource, private: PrivateObject | None) -> Iterator[Hit]:
    """Card and label state different leakage risks.

    Blind to: whether either of them is right.
    """
    if private is None or private.leakage_risk is None:
        return
    if private.leakage_risk != source.leakage_risk:
        yield Hit("leakage_risk", "differs from the label's", source.leakage_risk or "null")


def invisible_character(source: CardSource, private: PrivateObject | None) -> Iterator[Hit]:  # noqa: ARG001
    """Public text holds an invisible or control character, which hides words from the search.

    Blind to: look-alike letters of other scripts.
    """
    for field, text in public_texts(source):
        for code in odd_characters(text):
            yield Hit(field, f"holds the invisible character {code}", code)


def duplicate_question(pack: Pack) -> Iterator[tuple[str, Hit]]:
    """Two cards of a pack ask the same question, so that one event counts twice.

    Blind to: the same question in other words.
    """
    seen: dict[str, str] = {}
    for card in pack.cards:
        source = card.source
        first = seen.setdefault(fold(source.question), source.id)
        if first != source.id:
            hit = Hit("question", f"is the question of {first!r}", source.question[:QUOTE_CHARS])
            yield source.id, hit


def name_on_other_card(pack: Pack) -> Iterator[tuple[str, Hit]]:
    """A name that one card masks stands openly on another card of the pack.

    Whoever sees both cards can put them together.
    Blind to: everything that `masked_value` is blind to.
    """
    secrets = {card.source.id: set(forbidden_strings(card.private)) for card in pack.cards}
    for card in pack.cards:
        texts = [(field, f" {fold(text)} ", text) for field, text in public_texts(card.source)]
        for owner, strings in secrets.items():
            for secret in sorted(strings) if owner != card.source.id else ():
                for field, folded, text in texts:
                    if f" {secret} " in folded:
                        message = f"carries a string that the card {owner!r} keeps private"
                        yield card.source.id, Hit(field, message, excerpt(text, secret))


CARD_RULES: tuple[CardRule, ...] = (
    CardRule("cards/masked-value-in-public-text", "error", masked_value),
    CardRule("cards/masked-name-part", "warning", masked_name_part),
    CardRule("cards/missing-mask", "error", missing_mask),
    CardRule("cards/unmapped-mask", "note", unmapped_mask),
    CardRule("cards/unused-mask", "warning", unused_mask),
    CardRule("cards/outcome-in-endpoint-wording", "error", outcome_in_endpoint),
    CardRule("cards/auxiliary-resolution-adjacent", "warning", auxiliary_adjacent),
    CardRule("cards/summary-overlap", "warning", summary_overlap),
    CardRule("cards/one-sided-note", "warning", one_sided_note),
    CardRule("cards/source-after-as-of", "error", source_after_as_of),
    CardRule("cards/undated-source", "warning", undated_source),
    CardRule("cards/few-sources", "warning", few_sources),
    CardRule("cards/deadline-is-private-date", "warning", deadline_is_private_date),
    CardRule("cards/resolution-outside-window", "error", resolution_outside_window),
    CardRule("cards/risk-mismatch", "error", risk_mismatch),
    CardRule("cards/invisible-character", "warning", invisible_character),
)

PACK_RULES: tuple[PackRule, ...] = (
    PackRule("cards/duplicate-question", "warning", duplicate_question),
    PackRule("cards/name-on-other-card", "warning", name_on_other_card),
)

STALE_ACCEPTANCE = "cards/stale-acceptance"
"""Given by `lint_pack` itself: an accepted finding that is no longer there."""


def _packet_texts(source: CardSource) -> tuple[str, ...]:
    return tuple(item.text for item in source.source_packet)


def _day(moment: str) -> str:
    return moment[:10]
