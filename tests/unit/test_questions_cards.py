"""The step from a question to its public card, and the ids of questions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecasting.questions.question import (
    Question,
    make_question_id,
    read_as_of,
    read_deadline,
    read_moment,
    to_public_card,
)
from ledger.errors import BadInputError
from ledger.events.card import Endpoint, PrivateObject, SourceItem
from ledger.ids import SeededEntropy

QUESTION = Question(
    question_id="q-1",
    origin="test",
    kind="resolved",
    title="T",
    question="Will it?",
    as_of="2025-03-01T00:00:00.000000Z",
    deadline="2025-06-30T23:59:59.999999Z",
    background="B",
    fine_print="F",
)
LABEL = PrivateObject(card_id="q-1", resolution="yes", entity_map={"Town A": "Åsnes"})


def refusal(question: Question, private: PrivateObject | None = None) -> str:
    with pytest.raises(BadInputError) as caught:
        to_public_card(question, pack="p", private=private, entropy=SeededEntropy("s"))
    return str(caught.value)


def test_a_question_becomes_a_card_with_salted_digests_alone() -> None:
    card = to_public_card(QUESTION, pack="p", private=LABEL, entropy=SeededEntropy("s"))
    assert card.public_context == "Background:\nB\n\nFine print:\nF"
    assert [item.id for item in card.endpoints] == ["yes", "no"]
    assert len(card.forbidden) == 1
    assert "snes" not in card.model_dump_json()
    assert (
        to_public_card(QUESTION, pack="p", private=None, entropy=SeededEntropy("s")).forbidden == ()
    )


def test_what_does_not_fit_is_one_sentence_that_names_the_question() -> None:
    late = SourceItem(source_type="note", dated="2025-03-02", text="x")
    assert "q-1: a source is dated 2025-03-02" in refusal(replace(QUESTION, source_packet=(late,)))
    assert "is not after as-of" in refusal(replace(QUESTION, deadline=QUESTION.as_of))
    other = LABEL.model_copy(update={"card_id": "q-2"})
    assert "was given the label of 'q-2'" in refusal(QUESTION, other)
    one = replace(QUESTION, endpoints=(Endpoint(id="yes", wording="w"),))
    assert "not the endpoints yes and no" in refusal(one, LABEL)
    assert refusal(replace(QUESTION, title="t" * 5_000)).startswith("q-1: title: has the value")
    blank = LABEL.model_copy(update={"forbidden": ("...",)})
    assert "a forbidden string has 0 folded words" in refusal(QUESTION, blank)


def test_ids_are_readable_and_unique() -> None:
    assert make_question_id("metaculus", "39523") == "metaculus-39523"
    slash, colon = make_question_id("a/b"), make_question_id("a:b")
    assert slash.startswith("a-b-")
    assert slash != colon
    assert len(make_question_id("fb", "0x" + "f" * 64)) == 64
    assert make_question_id("a", "b-c") == make_question_id("a-b", "c")


@given(st.lists(st.text(max_size=80), min_size=1, max_size=3))
def test_every_id_is_an_identifier(parts: list[str]) -> None:
    made = make_question_id(*parts)
    assert Endpoint(id=made, wording="w").id == made


def test_times_are_read_as_instants() -> None:
    assert read_moment("2025-06-30", where="w") == "2025-06-30T00:00:00.000000Z"
    assert read_deadline("2025-06-30", where="w") == "2025-06-30T23:59:59.999999Z"
    assert read_deadline("2025-06-30T12:00:00Z", where="w") == "2025-06-30T12:00:00.000000Z"
    assert read_as_of("2025-06-30", where="w") == "2025-06-30T00:00:00.000000Z"
    for wrong in ("2025-06-30T12:00Z", "June", ""):
        with pytest.raises(BadInputError, match=r"^w: "):
            read_as_of(wrong, where="w")
    with pytest.raises(BadInputError, match=r"^w: 'soon' is not a time with a zone"):
        read_moment("soon", where="w")
