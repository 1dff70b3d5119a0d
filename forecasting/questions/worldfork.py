"""The WorldFork card bundle: public cards, private objects apart, and stress prompts; pure.

Three JSON-lines files. A public card has exactly the fields of its role, so that a private field
that slipped into it is refused. What the bundle lacks is not invented: it states no deadline, so
none is set (its private resolution dates would be a leak); dossier, calibration and stress cards
have no as-of date, so it must be given; a source dated `T-7 days` has no date and keeps these words
in its text. A dossier's gold checklist has no place in a private object and is noted, not carried.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from pydantic import Field

from forecasting.questions.question import (
    NOT_MASKED,
    ImportedSet,
    Question,
    make_question_id,
    read_as_of,
)
from forecasting.questions.reading import (
    ClosedRow,
    Filled,
    build,
    read_lines,
    read_row,
    refuse_twice,
)
from ledger.errors import BadInputError
from ledger.events.base import Answer, Date
from ledger.events.card import (
    CardKind,
    Endpoint,
    LeakageRisk,
    MaskedEntity,
    PrivateObject,
    ResolutionSource,
    SourceItem,
)

ROLES: Final[Mapping[str, CardKind]] = {
    "resolved_forecast": "resolved",
    "longform_dossier": "dossier",
    "adversarial_calibration": "adversarial",
}
"""Kinds of card by the bundle's `benchmark_role`."""

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class _Source(ClosedRow):
    source_type: Filled
    date: str
    text: Filled


class _Outcome(ClosedRow):
    id: Filled
    label: Filled


class _PublicCard(ClosedRow):
    case_id: Filled
    benchmark_role: Literal["resolved_forecast", "longform_dossier", "adversarial_calibration"]
    category: Filled
    difficulty: Filled
    as_of_date: Date | None = None
    forecast_horizon: Filled
    question: Filled
    prompt: Filled
    scenario_text: Filled
    source_packet: list[_Source]
    candidate_endpoints: list[_Outcome]
    expected_focus: list[str]
    leakage_mitigation: str | None = None
    required_forecast_output: dict[str, Any]
    rubric_location: str | None = None


class _Resolution(ClosedRow):
    title: Filled
    url: str | None = None
    source_type: str | None = None
    retrieved_on: Date | None = None


class _PrivateCard(ClosedRow):
    case_id: Filled
    benchmark_role: Filled
    canonical_case_name: str = ""
    resolution: Answer | None = None
    resolution_date: Date | None = None
    resolution_summary: str = ""
    entity_map: dict[str, str] = Field(default_factory=dict)
    resolution_sources: list[_Resolution] = Field(default_factory=list)
    leakage_risk: LeakageRisk | None = None
    gold_checklists: dict[str, Any] | None = None
    scoring: dict[str, Any] | None = None


class _StressPrompt(ClosedRow):
    case_id: Filled
    category: Filled
    difficulty: Filled
    expected_focus: list[str]
    prompt: Filled


def read_worldfork(
    public: bytes,
    *,
    private: bytes | None = None,
    stress: bytes | None = None,
    as_of: str | None = None,
) -> ImportedSet:
    """Read a bundle.

    Args:
        public: bytes of cards_public.jsonl.
        private: bytes of cards_private_eval.jsonl; None where somebody else keeps the labels.
        stress: bytes of stress_prompts.jsonl, if wanted.
        as_of: a day or moment for the cards that state none.

    Raises:
        BadInputError: a line that is no card (values of the private file are not shown), an id
            twice, a private object without its card or a resolved card without its object, or a
            card without an as-of date where none is given.
    """
    cards = [read_row(_PublicCard, v, where=at) for at, v in read_lines(public, where="public")]
    prompts = [
        read_row(_StressPrompt, v, where=at) for at, v in read_lines(stress or b"", where="stress")
    ]
    ids = [card.case_id for card in cards] + [prompt.case_id for prompt in prompts]
    refuse_twice(ids, where="public and stress")
    hidden = _read_private(private, cards)
    questions = [_to_question(card, hidden.get(card.case_id), as_of) for card in cards]
    questions += [_to_stress(prompt, as_of) for prompt in prompts]
    labels = [_to_label(item) for item in hidden.values() if item.resolution is not None]
    notes = [
        f"{item.case_id}: its gold checklist is not carried"
        for item in hidden.values()
        if item.gold_checklists is not None
    ]
    notes += [
        f"{question.question_id}: the bundle states no deadline"
        for question in questions
        if question.kind == "resolved"
    ]
    return ImportedSet(tuple(questions), tuple(labels), (), tuple(notes))


def split_names(text: str) -> list[str]:
    """Split an entity map's value that lists several names by commas and semicolons."""
    return [name for part in re.split(r"[;,]", text) if (name := part.strip())]


def _read_private(private: bytes | None, cards: Iterable[_PublicCard]) -> dict[str, _PrivateCard]:
    if private is None:
        return {}
    rows = [
        read_row(_PrivateCard, value, where=at, show_values=False)
        for at, value in read_lines(private, where="private")
    ]
    refuse_twice([row.case_id for row in rows], where="private")
    hidden = {row.case_id: row for row in rows}
    roles = {card.case_id: card.benchmark_role for card in cards}
    if orphans := sorted(hidden.keys() - roles.keys()):
        raise BadInputError("has no public card", where=f"private: {orphans[0]}")
    for case_id, role in roles.items():
        row = hidden.get(case_id)
        if role == "resolved_forecast" and (row is None or row.resolution is None):
            raise BadInputError("has no resolution", where=f"private: {case_id}")
    return hidden


def _to_question(card: _PublicCard, hidden: _PrivateCard | None, as_of: str | None) -> Question:
    shown = "\n".join([card.question, card.scenario_text, *(s.text for s in card.source_packet)])
    # A stand-in that the card never uses would tell what the private map holds.
    tokens = [token for token in (hidden.entity_map if hidden else {}) if token in shown]
    where = f"public: {card.case_id}"
    return Question(
        question_id=make_question_id(card.case_id),
        origin="worldfork",
        kind=ROLES[card.benchmark_role],
        title=card.question,
        question=card.question,
        as_of=_find_as_of(card.case_id, card.as_of_date, as_of),
        deadline=None,
        background=card.scenario_text,
        resolution_criteria=f"Horizon: {card.forecast_horizon}",
        endpoints=tuple(
            build(Endpoint, {"id": item.id, "wording": item.label}, where=where)
            for item in card.candidate_endpoints
        ),
        source_packet=tuple(_to_source(source, where) for source in card.source_packet),
        domain=card.category,
        leakage_risk=None if hidden is None else hidden.leakage_risk,
        masking_rule=card.leakage_mitigation or NOT_MASKED,
        masks=tuple(
            build(MaskedEntity, {"token": token, "kind": "entity"}, where=where) for token in tokens
        ),
    )


def _to_stress(prompt: _StressPrompt, as_of: str | None) -> Question:
    return Question(
        question_id=make_question_id(prompt.case_id),
        origin="worldfork",
        kind="stress",
        title=f"Stress prompt {prompt.case_id}",
        question=prompt.prompt,
        as_of=_find_as_of(prompt.case_id, None, as_of),
        deadline=None,
        endpoints=(),
        domain=prompt.category,
    )


def _to_source(source: _Source, where: str) -> SourceItem:
    dated = source.date if _DAY.fullmatch(source.date) else None
    text = source.text if dated else f"[{source.date}] {source.text}"
    fields = {"source_type": source.source_type, "dated": dated, "text": text}
    return build(SourceItem, fields, where=where)


def _to_label(row: _PrivateCard) -> PrivateObject:
    where = f"private: {row.case_id}"
    names = {token: split_names(text) for token, text in row.entity_map.items()}
    fields = {
        "card_id": make_question_id(row.case_id),
        "resolution": row.resolution,
        "resolved_on": row.resolution_date,
        "summary": row.resolution_summary,
        "sources": tuple(
            build(ResolutionSource, item.model_dump(), where=where, show_values=False)
            for item in row.resolution_sources
        ),
        "entity_map": {token: parts[0] for token, parts in names.items() if parts},
        "forbidden": tuple(name for parts in names.values() for name in parts[1:]),
        "leakage_risk": row.leakage_risk,
    }
    return build(PrivateObject, fields, where=where, show_values=False)


def _find_as_of(case_id: str, stated: str | None, given: str | None) -> str:
    chosen = stated or given
    if chosen is None:
        raise BadInputError(
            "states no as-of date", where=f"public: {case_id}", remedy="Give one for such cards."
        )
    return read_as_of(chosen, where="as-of")
