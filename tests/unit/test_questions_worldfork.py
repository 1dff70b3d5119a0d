"""The WorldFork bundle: made-up rows, and the published bundle where it is at hand."""

from __future__ import annotations

import json
from typing import Any

import pytest
from shared_data import shared_file

from cards.folding import check_forbidden, forbidden_strings
from forecasting.questions.question import ImportedSet, format_context, to_public_card
from forecasting.questions.worldfork import read_worldfork, split_names
from ledger.errors import BadInputError
from ledger.ids import SeededEntropy

CARD: dict[str, Any] = {
    "case_id": "case_1",
    "benchmark_role": "resolved_forecast",
    "category": "transport",
    "difficulty": "hard",
    "as_of_date": "2025-03-01",
    "forecast_horizon": "until midsummer",
    "question": "Will Town A open its bridge?",
    "prompt": "p",
    "scenario_text": "Town A builds.",
    "source_packet": [{"source_type": "note", "date": "2025-02-20", "text": "The deck is done."}],
    "candidate_endpoints": [{"id": "yes", "label": "It opens"}, {"id": "no", "label": "Not"}],
    "expected_focus": ["x"],
    "leakage_mitigation": "Names are masked.",
    "required_forecast_output": {"type": "t"},
}
HIDDEN: dict[str, Any] = {
    "case_id": "case_1",
    "benchmark_role": "resolved_forecast_private_eval",
    "canonical_case_name": "c",
    "resolution": "no",
    "resolution_date": "2025-06-12",
    "resolution_summary": "It cracked.",
    "entity_map": {"Town A": "Åsnes; Kløften, Nes", "Firm B": "Brokonsult"},
    "resolution_sources": [
        {"title": "s", "url": "https://e.org", "source_type": "o", "retrieved_on": "2026-01-01"}
    ],
    "leakage_risk": "low",
    "scoring": {},
}
DOSSIER: dict[str, Any] = {
    **{key: item for key, item in CARD.items() if key not in {"as_of_date", "leakage_mitigation"}},
    "case_id": "dossier_1",
    "benchmark_role": "longform_dossier",
    "source_packet": [{"source_type": "note", "date": "T-7 days", "text": "A rumour."}],
    "candidate_endpoints": [{"id": "launch", "label": "It starts"}],
    "rubric_location": "private",
}
CHECKLIST = {
    "case_id": "dossier_1",
    "benchmark_role": "longform_dossier_private_eval",
    "gold_checklists": {"must_include_actors": ["SECRET"]},
    "scoring": {},
}
STRESS = {
    "case_id": "s_1",
    "category": "c",
    "difficulty": "d",
    "expected_focus": [],
    "prompt": "Go",
}


def lines(*rows: object) -> bytes:
    return b"\n".join(json.dumps(row).encode() for row in rows)


def read(
    *cards: object, private: list[object] | None = None, as_of: str | None = None
) -> ImportedSet:
    hidden = None if private is None else lines(*private)
    return read_worldfork(lines(*cards), private=hidden, as_of=as_of)


def test_a_resolved_card_and_its_label_come_apart() -> None:
    found = read(CARD, private=[HIDDEN])
    [question], [label] = found.questions, found.labels
    assert (question.kind, question.as_of) == ("resolved", "2025-03-01T00:00:00.000000Z")
    assert question.deadline is None
    assert found.notes == ("case_1: the bundle states no deadline",)
    assert [mask.token for mask in question.masks] == ["Town A"]
    assert question.masking_rule == "Names are masked."
    assert label.entity_map == {"Town A": "Åsnes", "Firm B": "Brokonsult"}
    assert label.forbidden == ("Kløften", "Nes")
    assert (label.resolution, label.resolved_on) == ("no", "2025-06-12")
    card = to_public_card(question, pack="w", private=label, entropy=SeededEntropy("w"))
    for secret in ("snes", "Firm B", "cracked", "2025-06-12"):
        assert secret not in card.model_dump_json()


def test_cards_without_a_date_take_the_given_one() -> None:
    found = read_worldfork(
        lines(DOSSIER), private=lines(CHECKLIST), stress=lines(STRESS), as_of="2026-01-01"
    )
    dossier, stress = found.questions
    assert [item.kind for item in found.questions] == ["dossier", "stress"]
    assert dossier.source_packet[0].dated is None
    assert dossier.source_packet[0].text == "[T-7 days] A rumour."
    assert stress.question == "Go"
    assert found.labels == ()
    assert found.notes == ("dossier_1: its gold checklist is not carried",)
    assert "SECRET" not in repr(found)
    with pytest.raises(BadInputError, match="dossier_1: states no as-of date"):
        read(DOSSIER)


def test_lists_of_names_are_split() -> None:
    assert split_names("a b; C, D ,") == ["a b", "C", "D"]


@pytest.mark.parametrize(
    ("cards", "private", "message"),
    [
        ([{**CARD, "resolution": "no"}], None, "public:1: resolution: is not a field"),
        ([{**CARD, "source_packet": [{}]}], None, r"source_packet\[0\].source_type: is missing"),
        ([CARD, CARD], None, "'case_1' stands twice"),
        ([CARD], [], "private: case_1: has no resolution"),
        ([CARD], [{**HIDDEN, "resolution": None}], "private: case_1: has no resolution"),
        ([CARD], [HIDDEN, CHECKLIST], "private: dossier_1: has no public card"),
        ([CARD], [{**HIDDEN, "resolution": "SECRET"}], "resolution: has a value that is not shown"),
        ([CARD], [HIDDEN, HIDDEN], "stands twice"),
        (
            [{**CARD, "candidate_endpoints": [{"id": "a b", "label": "x"}]}],
            None,
            "public: case_1: id",
        ),
        ([{**CARD, "benchmark_role": "other"}], None, "benchmark_role: has the value 'other'"),
        (["x"], None, "public:1: the top level"),
    ],
)
def test_a_wrong_bundle_is_one_sentence(
    cards: list[object], private: list[object] | None, message: str
) -> None:
    with pytest.raises(BadInputError, match=message) as caught:
        read(*cards, private=private)
    assert "SECRET" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_published_bundle_is_read_whole() -> None:
    folder = shared_file("data/worldfork")
    found = read_worldfork(
        (folder / "cards_public.jsonl").read_bytes(),
        private=(folder / "cards_private_eval.jsonl").read_bytes(),
        stress=(folder / "stress_prompts.jsonl").read_bytes(),
        as_of="2026-01-01",
    )
    kinds = [question.kind for question in found.questions]
    counts = {kind: kinds.count(kind) for kind in kinds}
    assert counts == {"resolved": 12, "dossier": 2, "adversarial": 1, "stress": 12}
    assert len(found.labels) == 12
    labels = {label.card_id: label for label in found.labels}
    leaking = []
    for question in found.questions:
        private = labels.get(question.question_id)
        card = to_public_card(question, pack="w", private=private, entropy=SeededEntropy("w"))
        assert len(card.forbidden) == len(forbidden_strings(private))
        text = f"{question.question}\n{format_context(question)}"
        text += "\n".join(source.text for source in question.source_packet)
        if check_forbidden(text, card):
            leaking.append(card.card_id)
    # The bundle's own leak: this card prints the value that it masks.
    assert leaking == ["resolved_002"]
