"""ai-prophet forecasting tasks: JSON lines with the outcome in the row, taken apart here; pure.

Only tasks with the outcomes Yes and No are read; others are exclusions. `predict_by` is the last
moment for a forecast: it is as-of, unless an earlier as-of is given, and then it is the deadline.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field

from forecasting.questions.question import (
    Exclusion,
    ImportedSet,
    Question,
    make_question_id,
    read_as_of,
    read_deadline,
    read_moment,
)
from forecasting.questions.reading import (
    Filled,
    ForeignRow,
    build,
    read_lines,
    read_row,
    refuse_twice,
)
from ledger.errors import BadInputError
from ledger.events.base import Answer
from ledger.events.card import PrivateObject, ResolutionSource

_ANSWERS: dict[str, Answer] = {"yes": "yes", "no": "no"}


class _Outcome(ForeignRow):
    value: list[Any]
    resolved_at: str | None = None
    source: str | None = None


class _TaskRow(ForeignRow):
    task_id: Filled
    title: Filled
    outcomes: list[str]
    predict_by: Filled
    source: str | None = None
    context: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)


class _ResolvedRow(ForeignRow):
    resolved_outcome: _Outcome | None = None


def read_ai_prophet(
    tasks: bytes, *, as_of: str | None = None, with_labels: bool = True, where: str = "tasks"
) -> ImportedSet:
    """Read tasks.

    Args:
        tasks: bytes of a JSON-lines file.
        as_of: a day or moment for all tasks; each task's `predict_by` where None.
        with_labels: False reads no outcome at all and leaves no task out as unresolved.
        where: the file's name, which begins every message.

    Raises:
        BadInputError: a field that is missing or of another type, an outcome that is none of Yes
            and No (its value is not shown), a task twice, or no task.
    """
    questions: list[Question] = []
    labels: list[PrivateObject] = []
    exclusions: list[Exclusion] = []
    for place, value in read_lines(tasks, where=where):
        made = _read_task(value, place, as_of, with_labels=with_labels)
        if isinstance(made, Exclusion):
            exclusions.append(made)
            continue
        question, label = made
        questions.append(question)
        labels += [] if label is None else [label]
    ids = [question.question_id for question in questions]
    ids += [exclusion.question_id for exclusion in exclusions]
    refuse_twice(ids, where=where)
    if not ids:
        raise BadInputError("holds no task", where=where)
    return ImportedSet(tuple(questions), tuple(labels), tuple(exclusions))


def _read_task(
    value: object, where: str, as_of: str | None, *, with_labels: bool
) -> tuple[Question, PrivateObject | None] | Exclusion:
    row = read_row(_TaskRow, value, where=where)
    question_id = make_question_id("prophet", row.task_id)
    if sorted(outcome.casefold() for outcome in row.outcomes) != ["no", "yes"]:
        return Exclusion(question_id, "not_binary", "its outcomes are not Yes and No")
    question = _to_question(row, question_id, where, as_of)
    if not with_labels:
        return question, None
    outcome = read_row(_ResolvedRow, value, where=where, show_values=False).resolved_outcome
    if outcome is None:
        return Exclusion(question_id, "unresolved", "it has no outcome yet")
    if len(outcome.value) != 1:
        return Exclusion(question_id, "ambiguous", f"it has {len(outcome.value)} outcomes at once")
    return question, _to_label(question, outcome, where)


def _to_question(row: _TaskRow, question_id: str, where: str, as_of: str | None) -> Question:
    place = f"{where}: predict_by"
    category = row.metadata.get("category")
    return Question(
        question_id=question_id,
        origin="ai-prophet",
        kind="resolved",
        title=row.title,
        question=row.title,
        as_of=read_moment(row.predict_by, where=place)
        if as_of is None
        else read_as_of(as_of, where="as-of"),
        deadline=None if as_of is None else read_deadline(row.predict_by, where=place),
        background=row.context or "",
        domain=category if isinstance(category, str) and category else None,
    )


def _to_label(question: Question, outcome: _Outcome, where: str) -> PrivateObject:
    said = outcome.value[0]
    # A number could be a label or a position among the outcomes; it is not guessed at.
    answer = _ANSWERS.get(said.casefold()) if isinstance(said, str) else None
    if answer is None:
        raise BadInputError(
            "the outcome is neither Yes nor No", where=f"{where}: resolved_outcome.value[0]"
        )
    resolved_on = None
    if outcome.resolved_at:
        place = f"{where}: resolved_outcome.resolved_at"
        resolved_on = read_moment(outcome.resolved_at, where=place, show_value=False)[:10]
    source = build(
        ResolutionSource,
        {"title": "ai-prophet task", "source_type": outcome.source or None},
        where=where,
        show_values=False,
    )
    return PrivateObject(
        card_id=question.question_id,
        resolution=answer,
        resolved_on=resolved_on,
        sources=(source,),
    )
