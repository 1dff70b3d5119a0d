"""Card files: what is read, what is refused, and the step to the public card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from card_examples import CARD, make_card, make_private, write_yaml
from pydantic import ValidationError

from cards.fields import read_fields
from cards.source import CardSource, first_instant, last_instant, read_card, to_public_card
from ledger.canonical import canonicalize_exact
from ledger.errors import BadInputError
from ledger.ids import SeededEntropy


def refusal(tmp_path: Path, **changes: object) -> str:
    """Read the example card with some fields replaced (`...` removes one); give the message."""
    card = {key: item for key, item in {**CARD, **changes}.items() if item is not ...}
    write_yaml(tmp_path / "bridge.yaml", card)
    with pytest.raises(BadInputError) as caught:
        read_card(tmp_path / "bridge.yaml")
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'bridge.yaml'}: ")
    assert "\n" not in message
    return message.removeprefix(f"{tmp_path / 'bridge.yaml'}: ")


def test_a_good_card_is_read(tmp_path: Path) -> None:
    write_yaml(tmp_path / "bridge.yaml", CARD)
    assert read_card(tmp_path / "bridge.yaml") == make_card()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"title": ...}, "title: is missing; expected a sentence."),
        ({"colour": "red"}, "colour: is not a field that exists here"),
        (
            {"leakage_risk": "med"},
            "leakage_risk: has the value 'med'; expected one of low, medium, high.",
        ),
        (
            {"id": 7},
            "id: has the value '7'; expected an id of at most 64 letters",
        ),
        ({"id": "a/b"}, "id: has the value 'a/b'; expected an id"),
        ({"scheduled": "true"}, "scheduled: has the value 'true'; expected true or false."),
        ({"masks": "Town A"}, "masks: has the value 'Town A'; expected a list."),
        (
            {"as_of": "2025-02-30"},
            "as_of: has the value '2025-02-30'; expected a day like 2025-09-15, or",
        ),
        (
            {"as_of": "2025-03-01T00:00Z"},
            "as_of: has the value '2025-03-01T00:00Z'; expected a day",
        ),
        ({"deadline": "2025-02-28"}, "deadline: 2025-02-28 is not after as_of 2025-03-01"),
        (
            {"as_of": "2025-06-30T23:59:59.999999Z"},
            "deadline: 2025-06-30 is not after as_of 2025-06-30T23:59:59.999999Z",
        ),
        ({"deadline": None}, "deadline: a resolved card has a deadline."),
        ({"endpoints": CARD["endpoints"][:1]}, "endpoints: a resolved card has exactly"),
        ({"endpoints": CARD["endpoints"] * 2}, "endpoints: 'yes' stands twice"),
        ({"auxiliary_endpoints": CARD["endpoints"][:1]}, "endpoints: 'yes' stands twice"),
        ({"masks": CARD["masks"] * 2}, "masks: 'Town A' stands twice"),
        ({"public_context": ""}, "public_context: has the value ''; expected text, not empty."),
        (
            {"source_packet": [{"source_type": "note", "text": "x"}]},
            "source_packet[0].dated: is missing; expected a date",
        ),
        (
            {"source_packet": [{"source_type": "note", "dated": "today", "text": "x"}]},
            "source_packet[0].dated: has the value 'today'; expected a date",
        ),
        ({"source_packet": ["note"]}, "source_packet[0]: has the value 'note'; expected a mapping"),
    ],
)
def test_a_bad_field_is_one_sentence_with_its_path(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    """An error MUST name the file, the field path and what is expected there."""
    assert refusal(tmp_path, **changes).startswith(message)


def test_a_number_that_should_be_text_is_to_be_quoted(tmp_path: Path) -> None:
    assert refusal(tmp_path, title=7).endswith("Put it in quotes.")
    assert refusal(tmp_path, title=["x"]).endswith("Correct the field.")


def test_several_faults_are_counted(tmp_path: Path) -> None:
    assert "1 more after it." in refusal(tmp_path, title=..., question=...)


def test_a_card_that_is_no_mapping_is_refused(tmp_path: Path) -> None:
    write_yaml(tmp_path / "c.yaml", ["a"])
    with pytest.raises(BadInputError, match=r"c\.yaml: the top level: .*expected a mapping"):
        read_card(tmp_path / "c.yaml")


def test_private_values_stay_out_of_messages() -> None:
    for field, value in (("leakage_risk", "secret"), ("as_of", "secret"), ("masks", ["secret"])):
        with pytest.raises(BadInputError, match=f"^f: {field}.*not shown; expected ") as caught:
            read_fields(CardSource, {**CARD, field: value}, where="f", show_values=False)
        assert "secret" not in str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__
    with pytest.raises(BadInputError, match=r"^f: id: is missing; expected an id "):
        read_fields(CardSource, {}, where="f", show_values=False)


def test_a_value_without_a_json_form_names_the_file() -> None:
    with pytest.raises(BadInputError, match=r"^f: "):
        read_fields(CardSource, {**CARD, "title": "\ud800"}, where="f")


def test_yaml_words_and_ids_stay_text(tmp_path: Path) -> None:
    file = tmp_path / "001.yaml"
    file.write_text(
        "id: 001\nkind: stress\ntitle: t\nquestion: q\nas_of: 2025-01-01\npublic_context: c\n"
        "endpoints:\n  - {id: no, wording: w}\nmasking_rule: none\nprovenance: p\n"
    )
    card = read_card(file)
    assert (card.id, card.endpoints[0].id, card.as_of) == ("001", "no", "2025-01-01")


@pytest.mark.parametrize("kind", ["dossier", "adversarial", "stress"])
def test_other_kinds_need_no_deadline_endpoints_or_label(kind: str) -> None:
    """Only a resolved card MUST have a deadline, the endpoints yes and no, and a label."""
    source = make_card(kind=kind, deadline=None, endpoints=[])
    card = to_public_card(source, pack="tiny", private=None, entropy=SeededEntropy("k"))
    assert (card.deadline, card.endpoints, card.forbidden) == (None, (), ())


def test_a_card_is_frozen() -> None:
    with pytest.raises(ValidationError):
        make_card().title = "other"  # type: ignore[misc]


def test_days_become_instants() -> None:
    """`as_of` as a day MUST mean 00:00:00.000000Z, `deadline` as a day 23:59:59.999999Z."""
    card = to_public_card(
        make_card(), pack="tiny", private=make_private(), entropy=SeededEntropy("d")
    )
    assert card.as_of == "2025-03-01T00:00:00.000000Z"
    assert card.deadline == "2025-06-30T23:59:59.999999Z"
    moment = "2025-03-01T09:30:00.000000Z"
    assert first_instant(moment) == last_instant(moment) == moment


def test_a_card_may_ask_about_its_own_day() -> None:
    assert make_card(as_of="2025-06-30").deadline == "2025-06-30"


def test_the_public_card_holds_no_private_string_and_no_provenance() -> None:
    """Private strings MUST become public only as salted digests."""
    card = to_public_card(
        make_card(), pack="tiny", private=make_private(), entropy=SeededEntropy("p")
    )
    text = canonicalize_exact(card.model_dump(mode="json")).decode()
    assert len(card.forbidden) == 2
    for secret in ("snes", "Kl", "Cracked", "2025-06-12", "Made up"):
        assert secret not in text


def test_the_public_card_depends_on_entropy_alone() -> None:
    def make(seed: str) -> object:
        return to_public_card(
            make_card(), pack="tiny", private=make_private(), entropy=SeededEntropy(seed)
        )

    assert make("a") == make("a")
    assert make("a") != make("b")


@pytest.mark.parametrize(
    ("source", "private", "message"),
    [
        (make_card(), None, "the resolved card 'bridge' has no private object"),
        (make_card(), make_private(card_id="other"), "the private object of 'other' was given"),
        (make_card(kind="dossier", endpoints=[]), make_private(), "not the endpoints yes and no"),
    ],
)
def test_a_wrong_pair_is_refused(source: CardSource, private: Any, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        to_public_card(source, pack="tiny", private=private, entropy=SeededEntropy("w"))
