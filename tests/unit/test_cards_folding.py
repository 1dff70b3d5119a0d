"""Folding `fold/1` and the search for forbidden strings by salted digests."""

from __future__ import annotations

import hashlib
import sys
import unicodedata

import pytest
from card_examples import make_card, make_private
from hypothesis import given
from hypothesis import strategies as st

from cards.folding import (
    MAX_WORDS,
    check_forbidden,
    contains_folded,
    digest_forbidden,
    fold,
    folded_words,
    forbidden_strings,
)
from cards.source import to_public_card
from ledger.errors import BadInputError, BugError
from ledger.events.card import PublicCard
from ledger.ids import SeededEntropy

WORD = st.text(alphabet="abcdeé", min_size=1, max_size=4)


def public(*strings: str) -> PublicCard:
    private = make_private(entity_map={}, forbidden=strings)
    return to_public_card(make_card(), pack="tiny", private=private, entropy=SeededEntropy("f"))


def reference_fold(text: str) -> str:
    """The definition over the whole text at once, as docs/spec/cards.md words it."""
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    kept = (c for c in text if unicodedata.category(c)[0] != "M")
    return " ".join("".join(c if unicodedata.category(c)[0] in "LN" else " " for c in kept).split())


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("María Corina  MACHADO", "maria corina machado"),
        ("metal\u2013organic\nframeworks", "metal organic frameworks"),
        ("Straße ﬁn Ⅻ ½", "strasse fin xii 1 2"),
        ("3.50%\u20133.75%", "3 50 3 75"),
        ("ÅSNES a\u030asnes", "asnes asnes"),
        ("O'Brien's", "o brien s"),
        (" \t… ", ""),
        ("", ""),
        ("\U0001d401old İstanbul", "bold istanbul"),
    ],
)
def test_fold_examples(text: str, folded: str) -> None:
    assert fold(text) == folded


@given(st.text())
def test_fold_is_the_definition_and_idempotent(text: str) -> None:
    """Folding MUST be applied as defined; folding twice changes nothing."""
    assert fold(text) == reference_fold(text)
    assert fold(fold(text)) == fold(text)


def test_fold_of_every_character_is_stable() -> None:
    for start in range(0, sys.maxunicode + 1, 4096):
        folded = [fold(chr(code)) for code in range(start, start + 4096)]
        assert [fold(text) for text in folded] == folded


@given(st.text())
def test_folded_words_join_to_the_fold_and_stand_where_they_say(text: str) -> None:
    words = folded_words(text)
    assert " ".join(item.word for item in words) == fold(text)
    for item in words:
        assert 0 <= item.start < item.end <= len(text)
        assert item.word in fold(text[item.start : item.end]) or item.word.isnumeric()


def test_contains_folded_keeps_word_boundaries() -> None:
    assert contains_folded("Then CAFÉ-Noir opened", "cafe noir")
    assert not contains_folded("the cafeteria", "cafe")
    assert not contains_folded("anything", "…")


def test_forbidden_strings_are_folded_and_each_once() -> None:
    private = make_private(entity_map={"Town A": "Ab Cd"}, forbidden=["ab-cd", "Ef"])
    assert forbidden_strings(private) == ("ab cd", "ef")
    assert forbidden_strings(None) == ()


@pytest.mark.parametrize(("text", "count"), [("…", 0), ("a b c d e f g h i", 9)])
def test_a_forbidden_string_has_1_to_8_folded_words(text: str, count: int) -> None:
    """A forbidden string MUST fold to 1 to 8 words."""
    with pytest.raises(BadInputError, match=rf"forbidden\[0\].*{count} folded words") as caught:
        forbidden_strings(make_private(forbidden=[text]))
    assert text not in str(caught.value)


def test_digests_are_salted_and_ordered_by_digest() -> None:
    """A digest MUST be SHA-256(salt || folded string in UTF-8), and the list in digest order."""
    made = digest_forbidden(("æ one", "two"), SeededEntropy("x"))
    assert [item.digest for item in made] == sorted(item.digest for item in made)
    opened = {
        text: item
        for text in ("æ one", "two")
        for item in made
        if hashlib.sha256(bytes.fromhex(item.salt) + text.encode()).hexdigest() == item.digest
    }
    assert set(opened) == {"æ one", "two"}
    assert len({item.salt for item in made}) == 2


def test_a_short_salt_is_a_bug() -> None:
    with pytest.raises(BugError, match="31 bytes"):
        digest_forbidden(("one",), lambda _: bytes(31))


def test_check_forbidden_says_which_and_where() -> None:
    card = public("Åsnes Kløften", "mayor")
    text = "Word is that ÅSNES-Kløften's Mayor resigned; the mayoral office…"
    found = [(hit.run, text[hit.start : hit.end]) for hit in check_forbidden(text, card)]
    assert found == [("asnes kløften", "ÅSNES-Kløften"), ("mayor", "Mayor")]
    assert {hit.index for hit in check_forbidden(text, card)} == {0, 1}
    assert check_forbidden("", card) == ()


@given(st.lists(WORD, max_size=12), st.lists(WORD, min_size=1, max_size=MAX_WORDS))
def test_check_forbidden_agrees_with_contains_folded(text: list[str], needle: list[str]) -> None:
    """What the digests find MUST be what a search with the string itself finds."""
    joined, wanted = " ".join(text), " ".join(needle)
    hits = check_forbidden(joined, public(wanted))
    assert bool(hits) == contains_folded(joined, wanted)
    assert all(hit.run == fold(wanted) for hit in hits)


@given(st.lists(WORD, max_size=5), st.lists(WORD, min_size=1, max_size=8), st.lists(WORD))
def test_check_forbidden_finds_every_planted_run(
    before: list[str], needle: list[str], after: list[str]
) -> None:
    text = "/".join([*before, *needle, *after])
    assert check_forbidden(text, public(" ".join(needle)))
