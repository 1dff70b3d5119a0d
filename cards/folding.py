"""Folding `fold/1`, and the search for forbidden strings by their salted digests alone.

Folding makes two spellings of a name compare equal: `María Corina Machado`, `MARIA CORINA MACHADO`
and `maria-corina_machado` all fold to `maria corina machado`. Each character is folded by itself:
NFKD, case folding, NFKD once more, marks (Unicode category M) dropped, letters and numbers (L, N)
kept, everything else a space; then runs of spaces become one and the ends are trimmed. Folding
twice changes nothing.

What it cannot see: a string split inside a word by a space, hyphen or invisible character, letters
of another script that look alike, inflected or translated forms, and words of scripts that are
written without spaces (a run there is one word). The tables are those of Python's `unicodedata`;
a character that a later Unicode version first assigns counts as a space before it.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ledger.errors import BadInputError, BugError
from ledger.events.card import ForbiddenDigest, PrivateObject, PublicCard
from ledger.ids import Entropy

MAX_WORDS = 8
"""Longest forbidden string in folded words: `check_forbidden` hashes runs of 1 to this many."""

SALT_BYTES = 32


@dataclass(frozen=True, slots=True)
class FoldedWord:
    """One folded word and the half-open span `[start, end)` of the original text it came from."""

    word: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ForbiddenHit:
    """A run of words whose digest is forbidden.

    Attributes:
        index: which of `card.forbidden`, from 0.
        run: the folded words.
        start: first character in the original text, from 0.
        end: one past the last character.
    """

    index: int
    run: str
    start: int
    end: int


class _FoldTable(dict[int, str]):
    """Folded form of each code point, worked out on first use (at most 1,114,112 entries)."""

    def __missing__(self, code: int) -> str:
        once = unicodedata.normalize("NFKD", chr(code)).casefold()
        folded = "".join(_keep(char) for char in unicodedata.normalize("NFKD", once))
        self[code] = folded
        return folded


def _keep(char: str) -> str:
    kind = unicodedata.category(char)[0]
    if kind in "LN":
        return char
    return "" if kind == "M" else " "


# A cache of a pure function: what it holds never changes an answer.
_TABLE = _FoldTable()


def fold(text: str) -> str:
    """Fold a text by `fold/1` into words separated by single spaces; may be empty.

    Cost: linear, one table look-up a character.
    """
    return " ".join(text.translate(_TABLE).split())


def contains_folded(text: str, needle: str) -> bool:
    """Say whether `needle` stands in `text` after folding, on word boundaries.

    A needle that folds to nothing is in no text. Cost: linear in the text.
    """
    folded = fold(needle)
    return bool(folded) and f" {folded} " in f" {fold(text)} "


def folded_words(text: str) -> tuple[FoldedWord, ...]:
    """Fold a text word by word and keep where each word stood; the words join to `fold(text)`."""
    words: list[FoldedWord] = []
    letters: list[str] = []
    start = end = 0
    for at, char in enumerate(text):
        for piece in _TABLE[ord(char)]:
            if piece != " ":
                start = start if letters else at
                letters.append(piece)
                end = at + 1
            elif letters:
                words.append(FoldedWord("".join(letters), start, end))
                letters = []
    if letters:
        words.append(FoldedWord("".join(letters), start, end))
    return tuple(words)


def forbidden_strings(private: PrivateObject | None) -> tuple[str, ...]:
    """Fold what no prompt may carry: the entity map's real names and the extra list, each once.

    Returns:
        Folded strings in text order, of 1 to `MAX_WORDS` words each.

    Raises:
        BadInputError: a string folds to nothing or to more than `MAX_WORDS` words. The message
            names the field and never shows the string.
    """
    if private is None:
        return ()
    named = [(f"entity_map.{token}", name) for token, name in private.entity_map.items()]
    listed = [(f"forbidden[{index}]", text) for index, text in enumerate(private.forbidden)]
    return tuple(sorted({_forbidden_string(field, text) for field, text in named + listed}))


def digest_forbidden(strings: Iterable[str], entropy: Entropy) -> tuple[ForbiddenDigest, ...]:
    """Commit to folded strings, each under its own 32-byte salt, in the order of their digests.

    The order says nothing about the strings; their number is public.

    Raises:
        BugError: `entropy` gave another number of bytes than asked for.
    """
    made = []
    for folded in strings:
        salt = entropy(SALT_BYTES)
        if len(salt) != SALT_BYTES:
            raise BugError(f"the entropy source gave {len(salt)} bytes instead of {SALT_BYTES}")
        digest = hashlib.sha256(salt + folded.encode("utf-8")).hexdigest()
        made.append(ForbiddenDigest(salt=salt.hex(), digest=digest))
    return tuple(sorted(made, key=lambda item: item.digest))


def check_forbidden(text: str, card: PublicCard) -> tuple[ForbiddenHit, ...]:
    """Find forbidden strings in a text, knowing only the salted digests of the public card.

    Every run of 1 to 8 folded words is hashed with every salt. Hits come in the order of the text,
    one for each place.

    Cost: 8 * W * F SHA-256 updates for W words and F digests, no memory beyond the words: about
    0.3 us each, so a prompt of 2,000 words against five digests takes some 25 ms.
    """
    words = folded_words(text)
    hits = [
        ForbiddenHit(index, run, words[first].start, words[last].end)
        for index, item in enumerate(card.forbidden)
        for first, last, run in _matching_runs(words, item)
    ]
    return tuple(sorted(hits, key=lambda hit: (hit.start, hit.end, hit.index)))


def _matching_runs(
    words: tuple[FoldedWord, ...], item: ForbiddenDigest
) -> Iterator[tuple[int, int, str]]:
    target = bytes.fromhex(item.digest)
    salted = hashlib.sha256(bytes.fromhex(item.salt))
    heads = [entry.word.encode("utf-8") for entry in words]
    tails = [b" " + head for head in heads]
    for first, head in enumerate(heads):
        # Longer runs reuse the state of shorter ones: one update a run instead of a new hash.
        state = salted.copy()
        state.update(head)
        last = first
        while True:
            if state.digest() == target:
                yield first, last, " ".join(word.word for word in words[first : last + 1])
            last += 1
            if last == len(words) or last - first == MAX_WORDS:
                break
            state.update(tails[last])


def _forbidden_string(field: str, text: str) -> str:
    folded = fold(text)
    count = len(folded.split())
    if not 1 <= count <= MAX_WORDS:
        raise BadInputError(
            f"a forbidden string has {count} folded words.",
            where=field,
            remedy=f"Give 1 to {MAX_WORDS} words; list further spellings under forbidden.",
        )
    return folded
