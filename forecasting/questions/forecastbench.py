"""ForecastBench question sets and resolution sets; pure.

A dataset question asks for several dates: each date is a question of its own here. A market
question is one. Combinations (an id that is a list) are exclusions, as is whatever the resolution
set does not settle to 0 or 1. As-of is the first instant of the forecast due date. Settled labels
move in these files from version to version, so each label names the digest of the resolution set
that it is from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from pydantic import AliasChoices, Field

from cards.source import first_instant, last_instant
from forecasting.questions.question import (
    Exclusion,
    ImportedSet,
    MarketPrice,
    Question,
    make_question_id,
    read_as_of,
    read_deadline,
)
from forecasting.questions.reading import (
    Filled,
    ForeignRow,
    build,
    read_json,
    read_row,
    refuse_twice,
)
from forecasting.timebox import read_claimed_time
from ledger.decimals import round_probability
from ledger.errors import BadInputError
from ledger.events.base import Answer, Date
from ledger.events.card import PrivateObject, ResolutionSource

NOT_GIVEN: Final = "N/A"
_LABELS: Final[dict[float, Answer]] = {1.0: "yes", 0.0: "no"}


class _QuestionRow(ForeignRow):
    id: str | list[str]
    source: Filled
    question: Filled
    resolution_criteria: str
    background: str
    market_info_close_datetime: str = NOT_GIVEN
    market_info_resolution_criteria: str = NOT_GIVEN
    url: str = NOT_GIVEN
    freeze_datetime: str = NOT_GIVEN
    freeze_datetime_value: str = NOT_GIVEN
    resolution_dates: str | list[Date]


class _QuestionSet(ForeignRow):
    forecast_due_date: Date
    question_set: str = Field(validation_alias=AliasChoices("question_set", "question-set"))
    questions: list[_QuestionRow]


class _ResolutionRow(ForeignRow):
    id: str | list[str]
    source: Filled
    resolution_date: Date
    resolved_to: float | None
    resolved: bool


class _ResolutionSet(ForeignRow):
    forecast_due_date: Date
    resolutions: list[_ResolutionRow]


@dataclass(frozen=True, slots=True)
class _Labels:
    """Rows of one resolution set by source and id, and the note that each label carries."""

    rows: dict[tuple[str, str], list[_ResolutionRow]]
    note: str
    title: str


def read_forecastbench(
    questions: bytes,
    *,
    resolutions: bytes | None = None,
    as_of: str | None = None,
    retrieved_on: str | None = None,
) -> ImportedSet:
    """Read a question set and, if given, its resolution set.

    Args:
        questions: bytes of the question set.
        resolutions: bytes of the resolution set; without it no question has a label and none is
            left out as unresolved.
        as_of: a day or moment instead of the due date.
        retrieved_on: the day on which the resolution set was fetched.

    Raises:
        BadInputError: a field that is missing or of another type (values of the resolution set are
            not shown), sets of two due dates, a question twice, or two labels for one question.
    """
    due = read_row(_QuestionSet, read_json(questions, where="questions"), where="questions")
    labels = None if resolutions is None else _read_labels(resolutions, due)
    moment = read_as_of(as_of or due.forecast_due_date, where="as-of")
    made = [item for row in due.questions for item in _to_questions(row, due, moment)]
    refuse_twice([question.question_id for _, _, question in made], where="questions")
    exclusions = [_combination(row) for row in due.questions if isinstance(row.id, list)]
    kept: list[Question] = []
    private: list[PrivateObject] = []
    for row, day, question in made:
        if labels is None:
            kept.append(question)
            continue
        label = _find_label(labels, row, day, question, retrieved_on)
        if isinstance(label, Exclusion):
            exclusions.append(label)
        else:
            kept.append(question)
            private.append(label)
    return ImportedSet(tuple(kept), tuple(private), tuple(exclusions))


def _read_labels(data: bytes, due: _QuestionSet) -> _Labels:
    document = read_json(data, where="resolutions")
    found = read_row(_ResolutionSet, document, where="resolutions", show_values=False)
    if found.forecast_due_date != due.forecast_due_date:
        raise BadInputError(
            f"is for {found.forecast_due_date}, the questions for {due.forecast_due_date}",
            where="resolutions",
            remedy="Give the sets of one due date.",
        )
    rows: dict[tuple[str, str], list[_ResolutionRow]] = {}
    for row in found.resolutions:
        if isinstance(row.id, str):
            rows.setdefault((row.source, row.id), []).append(row)
    digest = hashlib.sha256(data).hexdigest()
    return _Labels(
        rows,
        f"From the resolution set with SHA-256 {digest}.",
        f"ForecastBench resolution set {found.forecast_due_date}",
    )


def _to_questions(
    row: _QuestionRow, due: _QuestionSet, as_of: str
) -> Iterator[tuple[_QuestionRow, str | None, Question]]:
    """Make one question a resolution date; a market question has none and is one."""
    if isinstance(row.id, list):
        return
    where = f"questions: {row.source} {row.id[:60]}"
    if isinstance(row.resolution_dates, str):
        if row.resolution_dates != NOT_GIVEN:
            raise BadInputError("resolution_dates is neither a list nor N/A", where=where)
        yield row, None, _market_question(row, due, as_of, where)
        return
    for day in row.resolution_dates:
        yield row, day, _dataset_question(row, due, as_of, day)


def _market_question(row: _QuestionRow, due: _QuestionSet, as_of: str, where: str) -> Question:
    closing = _given(row.market_info_close_datetime)
    deadline = read_deadline(closing, where=f"{where}: closing") if closing else None
    question = replace(_question(row, due, as_of, None), market_prices=_market_price(row, as_of))
    return replace(question, deadline=deadline)


def _dataset_question(row: _QuestionRow, due: _QuestionSet, as_of: str, day: str) -> Question:
    return replace(_question(row, due, as_of, day), deadline=last_instant(day))


def _question(row: _QuestionRow, due: _QuestionSet, as_of: str, day: str | None) -> Question:
    parts = ["fb", due.forecast_due_date, row.source, str(row.id)]
    text = _fill(row.question, due, day)
    return Question(
        question_id=make_question_id(*parts, *([] if day is None else [day])),
        origin="forecastbench",
        kind="resolved",
        title=text,
        question=text,
        as_of=as_of,
        deadline=None,
        background=_fill(_given(row.background), due, day),
        resolution_criteria=_fill(_given(row.resolution_criteria), due, day),
        fine_print=_fill(_given(row.market_info_resolution_criteria), due, day),
        domain=row.source,
        url=_given(row.url) or None,
    )


def _market_price(row: _QuestionRow, as_of: str) -> tuple[MarketPrice, ...]:
    """Read the frozen market price; whatever is no probability of a time before as-of is none."""
    at = read_claimed_time(row.freeze_datetime)
    if at is None or at > as_of:
        return ()
    try:
        price = round_probability(row.freeze_datetime_value)
    except BadInputError:
        return ()
    return (MarketPrice(row.source, at, price),)


def _find_label(
    labels: _Labels,
    row: _QuestionRow,
    day: str | None,
    question: Question,
    retrieved_on: str | None,
) -> PrivateObject | Exclusion:
    candidates = labels.rows.get((row.source, str(row.id)), [])
    rows = [item for item in candidates if day is None or item.resolution_date == day]
    settled = [item for item in rows if item.resolved]
    question_id = question.question_id
    if not settled:
        return Exclusion(question_id, "unresolved", "the resolution set does not settle it")
    if len({item.resolved_to for item in settled}) > 1:
        raise BadInputError("has two labels", where=f"resolutions: {question_id}")
    value, resolved_on = settled[0].resolved_to, settled[0].resolution_date
    if value is None:
        return Exclusion(question_id, "annulled", "it is resolved without a value")
    if value not in _LABELS:
        return Exclusion(question_id, "ambiguous", "it is resolved to neither 0 nor 1")
    if first_instant(resolved_on) <= question.as_of:
        return Exclusion(question_id, "resolved_before_as_of", "its outcome was known at as-of")
    source = build(
        ResolutionSource,
        {"title": labels.title, "source_type": row.source, "retrieved_on": retrieved_on},
        where=f"resolutions: {question_id}",
    )
    return PrivateObject(
        card_id=question_id,
        resolution=_LABELS[value],
        resolved_on=resolved_on,
        summary=labels.note,
        sources=(source,),
    )


def _combination(row: _QuestionRow) -> Exclusion:
    parts: Iterable[str] = row.id if isinstance(row.id, list) else (row.id,)
    question_id = make_question_id("fb", row.source, *parts)
    return Exclusion(question_id, "combination", "it joins several questions")


def _fill(text: str, due: _QuestionSet, day: str | None) -> str:
    # The published texts hold these two places literally; str.format would trip over other braces.
    text = text.replace("{forecast_due_date}", due.forecast_due_date)
    return text if day is None else text.replace("{resolution_date}", day)


def _given(text: str) -> str:
    return "" if text == NOT_GIVEN else text
