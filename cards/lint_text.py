"""Reading a card's text for the lint: its public fields, runs of words, pairs of content words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from cards.folding import fold, folded_words
from cards.source import CardSource
from ledger.events.card import PrivateObject

QUOTE_CHARS = 120
"""Longest quotation of a finding."""

MIN_PART_LETTERS = 4
"""Shortest word of a masked name that is looked for by itself."""

# Words that carry no event by themselves; a pair with one of them is no evidence of copying.
_FUNCTION_TEXT = """
a about after all also an and any are as at be because been before being between both but by
can did do does each either for from had has have if in into is it its may more most no nor
not of on one only or other out over own same shall so than that the their them then there
these they this those to two under until up was were what when where whether which while who
will with within without would yes
"""
_FUNCTION_WORDS = frozenset(_FUNCTION_TEXT.split())

_ANSWERED = re.compile(
    r" (?:resolv|settl|count|scor|answer)(?:e|es|ed|s|ing)?(?: it| the card| the question)?"
    r"(?: is| to| as| for| in favour of)? (yes|no)(?= )"
)

_SENTENCE_END = re.compile(r"[.;!?]\s")

_SETTLING = ("endpoint", "resolution", "settlement", "rule")


def public_texts(source: CardSource) -> Iterator[tuple[str, str]]:
    """Every text of a card that a method or a reader of the public card sees, with its path."""
    for field in ("title", "question", "public_context", "masking_rule", "domain", "source_class"):
        text = getattr(source, field)
        if text is not None:
            yield field, text
    for index, item in enumerate(source.source_packet):
        place = f"source_packet[{index}]"
        yield f"{place}.source_type", item.source_type
        yield f"{place}.text", item.text
        if item.url is not None:
            yield f"{place}.url", item.url
    for name in ("endpoints", "auxiliary_endpoints"):
        for index, endpoint in enumerate(getattr(source, name)):
            yield f"{name}[{index}].id", endpoint.id
            yield f"{name}[{index}].wording", endpoint.wording
    for index, mask in enumerate(source.masks):
        yield f"masks[{index}].token", mask.token
        yield f"masks[{index}].kind", mask.kind


def question_texts(source: CardSource) -> tuple[str, str, str]:
    """Title, question and context: what a settlement text may repeat without telling anything."""
    return source.title, source.question, source.public_context


def settling_texts(source: CardSource) -> Iterator[tuple[str, str]]:
    """The scored endpoints, and the notes whose type says that they settle something."""
    for index, endpoint in enumerate(source.endpoints):
        yield f"endpoints[{index}].wording", endpoint.wording
    for index, item in enumerate(source.source_packet):
        if any(word in fold(item.source_type) for word in _SETTLING):
            yield f"source_packet[{index}].text", item.text


def name_parts(private: PrivateObject | None) -> tuple[str, ...]:
    """Capitalised words of four letters or more of the real names, each once, in order.

    Words of the name's own stand-in are left out: `Party L` may stand for a party.
    """
    parts: dict[str, None] = {}
    for token, name in private.entity_map.items() if private else ():
        own = set(fold(token).split())
        for word in folded_words(name):
            part = name[word.start : word.end]
            if len(part) >= MIN_PART_LETTERS and part[0].isupper() and word.word not in own:
                parts[part] = None
    return tuple(parts)


def content_pairs(texts: Iterable[str], source: CardSource) -> frozenset[tuple[str, str]]:
    """Pairs of neighbouring folded words that are neither function words nor words of a mask."""
    masks = {word for mask in source.masks for word in fold(mask.token).split()}
    empty = _FUNCTION_WORDS | masks
    pairs: set[tuple[str, str]] = set()
    for text in texts:
        words = fold(text).split()
        pairs.update(
            (left, right)
            for left, right in pairwise(words)
            if left not in empty and right not in empty
        )
    return frozenset(pairs)


def overlap_share(left: str, right: str) -> float:
    """Jaccard share of the content words of two texts, 0 to 1; 0 where neither has any."""
    one = set(fold(left).split()) - _FUNCTION_WORDS
    two = set(fold(right).split()) - _FUNCTION_WORDS
    return len(one & two) / len(one | two) if one | two else 0.0


def find_runs(text: str, other: str, least: int, *, known: Sequence[str]) -> Iterator[str]:
    """Longest runs of at least `least` folded words that two texts share, and `known` lacks."""
    words = fold(text).split()
    wanted = _word_runs(other, least) - {run for item in known for run in _word_runs(item, least)}
    start = 0
    while start + least <= len(words):
        end = start
        while tuple(words[end : end + least]) in wanted:
            end += 1
        if end > start:
            yield " ".join(words[start : end + least - 1])
        start = end + 1


def named_answers(text: str) -> set[str]:
    """Which of yes and no a text says that something resolves, settles or counts to.

    A sentence with `only` is left out: it defines an answer and tells no case of it.
    """
    sentences = (f" {fold(part)} " for part in _SENTENCE_END.split(text))
    return {
        answer
        for sentence in sentences
        if " only " not in sentence
        for answer in _ANSWERED.findall(sentence)
    }


def odd_characters(text: str) -> tuple[str, ...]:
    """Control and format characters but line feed and tab, each once, as `U+200B`."""
    odd = {c for c in text if c not in "\n\t" and unicodedata.category(c) in {"Cc", "Cf"}}
    return tuple(f"U+{ord(char):04X}" for char in sorted(odd))


def excerpt(text: str, wanted: str) -> str:
    """The part of a text around the first place where `wanted` stands after folding."""
    words = folded_words(text)
    target = fold(wanted).split()
    for first in range(len(words) - len(target) + 1):
        run = words[first : first + len(target)]
        if run and [item.word for item in run] == target:
            spare = max(0, QUOTE_CHARS - (run[-1].end - run[0].start)) // 2
            return text[max(0, run[0].start - spare) : run[-1].end + spare].strip()[:QUOTE_CHARS]
    return text[:QUOTE_CHARS]


def _word_runs(text: str, length: int) -> set[tuple[str, ...]]:
    words = fold(text).split()
    return {tuple(words[i : i + length]) for i in range(len(words) - length + 1)}
