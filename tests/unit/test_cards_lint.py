"""Lint rules: every rule has a card that triggers it and a near miss that does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from card_examples import CARD, PRIVATE, make_card, make_private, write_pack

from cards.lint import (
    CARD_RULES,
    PACK_RULES,
    STALE_ACCEPTANCE,
    Finding,
    lint_card,
    lint_pack,
)
from cards.pack import load_pack

NOTE = {"source_type": "note", "dated": "2025-02-20", "text": "The deck is complete."}


def note(text: str, **changes: object) -> dict[str, Any]:
    return {"source_packet": [NOTE, {**NOTE, "text": text, **changes}]}


def scored(yes: str, no: str) -> dict[str, Any]:
    return {"endpoints": [{"id": "yes", "wording": yes}, {"id": "no", "wording": no}]}


def auxiliary(wording: str) -> dict[str, Any]:
    return {"auxiliary_endpoints": [{"id": "x", "wording": wording}]}


LONG_SUMMARY = {"summary": "Cracked bearings forced a stop."}
Changes = tuple[dict[str, Any], dict[str, Any]]
NONE: Changes = ({}, {})

# Rule id: changes of card and label that trigger it, those of a near miss, the field named.
EXAMPLES: dict[str, tuple[Changes, Changes, str]] = {
    "cards/masked-value-in-public-text": (
        (note("Traffic in ASNES KLØFTEN is light."), {}),
        (note("Traffic in Åsnes Kløftenheim is light."), {}),
        "source_packet[1].text",
    ),
    "cards/masked-name-part": (
        (note("The Kløften line is closed."), {}),
        (note("The kløften line is closed."), {}),
        "source_packet[1].text",
    ),
    "cards/missing-mask": (
        ({}, {"entity_map": {"Town A": "Åsnes Kløften", "Firm B": "Brobygg"}}),
        ({}, {"entity_map": {}}),
        "masks",
    ),
    "cards/unmapped-mask": (({}, {"entity_map": {}}), NONE, "masks[0].token"),
    "cards/unused-mask": (
        ({"masks": [*CARD["masks"], {"token": "Firm B", "kind": "firm"}]}, {}),
        (
            {
                "masks": [*CARD["masks"], {"token": "Firm B", "kind": "firm"}],
                **note("Firm-B's crew rests."),
            },
            {},
        ),
        "masks[1].token",
    ),
    "cards/outcome-in-endpoint-wording": (
        (scored("Cars use it.", "Cracked bearings or other faults keep cars away."), {}),
        (scored("Cars use it.", "Faults of the bearings, cracked or not, keep cars away."), {}),
        "endpoints[1].wording",
    ),
    "cards/auxiliary-resolution-adjacent": (
        (auxiliary("Engineers find cracked bearings."), {}),
        (
            {**auxiliary("Engineers find cracked bearings."), **note("Cracked bearings are rare.")},
            {},
        ),
        "auxiliary_endpoints[0].wording",
    ),
    "cards/summary-overlap": (
        (
            note("Old cracked bearings forced a closure."),
            LONG_SUMMARY,
        ),
        (note("Cracked bearings forced us out."), LONG_SUMMARY),
        "source_packet[1].text",
    ),
    "cards/one-sided-note": (
        (note("A stop for repairs resolves to no even if it is short."), {}),
        (note("A stop for repairs resolves no; a single lane counts as yes."), {}),
        "source_packet[1].text",
    ),
    "cards/source-after-as-of": (
        (note("Late.", dated="2025-03-02"), {}),
        (note("Same day.", dated="2025-03-01"), {}),
        "source_packet[1].dated",
    ),
    "cards/undated-source": (
        (note("Some day.", dated=None), {}),
        (note("That day."), {}),
        "source_packet[1].dated",
    ),
    "cards/few-sources": (
        ({"source_packet": [NOTE]}, {}),
        ({"source_packet": [NOTE], "kind": "stress"}, {}),
        "source_packet",
    ),
    "cards/deadline-is-private-date": (
        ({}, {"resolved_on": "2025-06-30"}),
        ({"scheduled": True}, {"resolved_on": "2025-06-30"}),
        "deadline",
    ),
    "cards/resolution-outside-window": (
        ({}, {"resolved_on": "2025-02-28"}),
        ({}, {"resolved_on": "2025-07-01"}),
        "as_of",
    ),
    "cards/risk-mismatch": (
        ({}, {"leakage_risk": "high"}),
        ({}, {"leakage_risk": "low"}),
        "leakage_risk",
    ),
    "cards/invisible-character": (
        (note("K\u00adløft"), {}),
        (note("One\n\ttwo"), {}),
        "source_packet[1].text",
    ),
}

OTHER = {**CARD, "id": "other", "question": "Will a road be closed?"}
OTHER_LABEL = {**PRIVATE, "card_id": "other", "entity_map": {"Town A": "Nes"}, "forbidden": []}
PACK_EXAMPLES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "cards/duplicate-question": ({"question": CARD["question"].upper()}, {}, "question"),
    "cards/name-on-other-card": (
        {"title": "The road to Klöften"},
        {"title": "The road to Nesodden"},
        "title",
    ),
}


def lint(changes: Changes) -> tuple[Finding, ...]:
    return lint_card(make_card(**changes[0]), make_private(**changes[1]))


def test_the_example_card_is_clean() -> None:
    assert lint(NONE) == ()


def test_every_rule_has_an_example_and_a_unique_id() -> None:
    """Each rule MUST have a stable id, an example that triggers it and one that does not."""
    assert [rule.id for rule in CARD_RULES] == list(EXAMPLES)
    assert [rule.id for rule in PACK_RULES] == list(PACK_EXAMPLES)
    ids = [*EXAMPLES, *PACK_EXAMPLES, STALE_ACCEPTANCE]
    assert len(set(ids)) == len(ids)


def test_every_rule_says_what_it_is_blind_to() -> None:
    checks = [rule.check for rule in CARD_RULES] + [rule.check for rule in PACK_RULES]
    assert [check for check in checks if "Blind to" not in (check.__doc__ or "")] == []


@pytest.mark.parametrize("rule", EXAMPLES)
def test_the_rule_finds_its_example(rule: str) -> None:
    found = [item for item in lint(EXAMPLES[rule][0]) if item.rule == rule]
    assert [item.field for item in found] == [EXAMPLES[rule][2]]
    assert found[0].severity == next(row.severity for row in CARD_RULES if row.id == rule)
    assert (found[0].card_id, found[0].accepted_because) == ("bridge", None)


@pytest.mark.parametrize("rule", EXAMPLES)
def test_the_rule_passes_its_near_miss(rule: str) -> None:
    assert rule not in {item.rule for item in lint(EXAMPLES[rule][1])}


@pytest.mark.parametrize("rule", EXAMPLES)
def test_quotes_are_public_text(rule: str) -> None:
    """A finding MUST quote public text only."""
    changes = EXAMPLES[rule][0]
    public = json.dumps(make_card(**changes[0]).model_dump(), ensure_ascii=False)
    for item in lint(changes):
        assert len(item.quote) <= 120
        if item.rule not in {"cards/missing-mask", "cards/invisible-character"}:
            assert json.dumps(item.quote, ensure_ascii=False)[1:-1] in public


@pytest.mark.parametrize("rule", PACK_EXAMPLES)
def test_pack_rules_find_their_example_and_pass_the_near_miss(rule: str, tmp_path: Path) -> None:
    trigger, miss, field = PACK_EXAMPLES[rule]
    labels = [PRIVATE, OTHER_LABEL]
    pack = load_pack(write_pack(tmp_path / "a", CARD, {**OTHER, **trigger}, labels=labels))
    found = [(item.card_id, item.field) for item in lint_pack(pack) if item.rule == rule]
    assert found == [("other", field)]
    pack = load_pack(write_pack(tmp_path / "b", CARD, {**OTHER, **miss}, labels=labels))
    assert rule not in {item.rule for item in lint_pack(pack)}


def test_a_late_yes_is_outside_the_window() -> None:
    found = lint(({}, {"resolution": "yes", "resolved_on": "2025-07-01"}))
    assert [(item.rule, item.field) for item in found] == [
        ("cards/resolution-outside-window", "deadline")
    ]


def test_an_auxiliary_endpoint_that_restates_a_scored_one_is_found() -> None:
    found = lint((auxiliary("The bridge: cars use it by the deadline."), {}))
    assert [item.rule for item in found] == ["cards/auxiliary-resolution-adjacent"]


def test_a_defining_sentence_is_not_one_sided() -> None:
    assert lint((note("It resolves no only if cars are kept out."), {})) == ()


def test_without_a_private_object_the_private_rules_are_silent() -> None:
    source = make_card(kind="stress", **note("Late.", dated="2025-03-02"))
    assert [item.rule for item in lint_card(source, None)] == ["cards/source-after-as-of"]


def test_accepted_findings_are_shown_with_their_reason(tmp_path: Path) -> None:
    """An accepted finding MUST stay in the output, with its reason."""
    accepted = {"rule": "cards/undated-source", "card_id": "bridge", "reason": "Oral."}
    rows = [{**accepted, "field": "source_packet[1].dated"}, {**accepted, "field": "title"}]
    card = {**CARD, **note("Some day.", dated=None)}
    found = lint_pack(load_pack(write_pack(tmp_path, card, accepted_findings=rows)))
    assert [(item.rule, item.field, item.accepted_because) for item in found] == [
        ("cards/undated-source", "source_packet[1].dated", "Oral."),
        (STALE_ACCEPTANCE, "title", None),
    ]


def test_findings_come_in_one_order() -> None:
    private = make_private(forbidden=["deck", "complete", "inspections", "cars"])
    quotes = [item.quote for item in lint_card(make_card(), private)]
    assert quotes == [item.quote for item in lint_card(make_card(), private)]
    assert "cars" in quotes[0]
    assert "inspections" in quotes[-1]


def test_an_answer_on_the_as_of_day_is_inside_the_window() -> None:
    assert lint(({}, {"resolved_on": "2025-03-01"})) == ()


def test_words_of_the_question_are_no_overlap_with_the_summary() -> None:
    summary = {"summary": "Its new bridge to cars by then stayed shut."}
    assert lint((note("They open its new bridge to cars by night."), summary)) == ()
    found = lint((note("Then by cars to bridge: new bridge to cars by then."), summary))
    assert [item.rule for item in found] == ["cards/summary-overlap"]


def test_restating_starts_at_four_fifths_of_the_content_words() -> None:
    wording = "The mayor, council, guests, press, choir, band, guards, drivers attend."
    source = scored(wording, "They do not.")
    for change, rules in (
        ("choir singers", ["cards/auxiliary-resolution-adjacent"]),
        ("pilots, singers, cooks", []),
    ):
        found = lint(({**source, **auxiliary(wording.replace("choir", change))}, {}))
        assert [item.rule for item in found] == rules


def test_a_masked_name_in_an_address_is_found() -> None:
    found = lint((note("See there.", url="https://example.org/asnes-kløften"), {}))
    assert [item.field for item in found] == ["source_packet[1].url"]


def test_words_of_a_stand_in_are_no_evidence_of_copying() -> None:
    masks = {"masks": [*CARD["masks"], {"token": "Firm Bravo", "kind": "firm"}]}
    entity_map = {**PRIVATE["entity_map"], "Firm Bravo": "Brobygg"}
    private = {"entity_map": entity_map, "summary": "Firm Bravo failed."}
    assert lint(({**masks, **scored("Cars use it.", "Firm Bravo gives up.")}, private)) == ()


def test_a_card_s_own_name_is_not_another_card_s(tmp_path: Path) -> None:
    card = {**CARD, **note("The Kløften line is closed.")}
    pack = load_pack(write_pack(tmp_path, card, labels=[{**PRIVATE, "forbidden": ["Kløften"]}]))
    assert "cards/name-on-other-card" not in {item.rule for item in lint_pack(pack)}


def test_words_of_the_question_are_no_outcome_in_an_endpoint() -> None:
    private = {"summary": "The new bridge stayed shut."}
    assert lint((scored("Cars use the new bridge.", "They do not."), private)) == ()
