"""Manual-context JSON: the texts of Metaculus questions, kept by hand because they are edited.

Two forms are accepted: a list of rows, or an object whose one key `questions` holds that list. A
row has `post_id`, `title`, `type` (binary), `description`, `resolution_criteria` and `fine_print`,
none blank, and may have `metadata`. A row with any other field is refused: a label in this file
would stand beside the text that a model sees.

The join with Metaculus by post id fails hard where a row is missing, where a question is not
resolved, and where its resolution is neither yes nor no; annulled and ambiguous questions are
exclusions with that reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from forecasting.questions.metaculus import MetaculusPost, SharedTexts, to_question_or_exclusion
from forecasting.questions.question import Exclusion, ImportedSet, Question
from forecasting.questions.reading import ClosedRow, Filled, read_json, read_row
from ledger.errors import BadInputError
from ledger.events.card import PrivateObject


class ContextRow(ClosedRow):
    """One row; `metadata` is for its author and goes nowhere."""

    post_id: int = Field(ge=1, description="the post's number")
    title: Filled
    type: Literal["binary"]
    description: Filled
    resolution_criteria: Filled
    fine_print: Filled
    metadata: dict[str, Any] | None = None


def read_manual_context(data: bytes, *, where: str = "context") -> dict[int, ContextRow]:
    """Read a context file.

    Args:
        data: its bytes.
        where: its name, which begins every message.

    Returns:
        Rows by post id, in the order of the file.

    Raises:
        BadInputError: neither of the two forms, a field missing, blank or unknown, a post twice, or
            no row at all.
    """
    document = read_json(data, where=where)
    rows = document
    if isinstance(document, dict) and set(document) == {"questions"}:
        rows = document["questions"]
    if not isinstance(rows, list) or not rows:
        raise BadInputError(
            "is neither a list of questions nor an object with the key questions alone",
            where=where,
            remedy="Give one or more rows in one of these forms.",
        )
    context: dict[int, ContextRow] = {}
    for index, value in enumerate(rows):
        place = f"{where}: questions[{index}]"
        row = read_row(ContextRow, value, where=place)
        if row.post_id in context:
            raise BadInputError(f"a second row for post {row.post_id}", where=place)
        context[row.post_id] = row
    return context


def join_context(
    context: Mapping[int, ContextRow],
    posts: Iterable[MetaculusPost],
    *,
    post_ids: Sequence[int],
    retrieved_at: str,
    as_of: str | None = None,
) -> ImportedSet:
    """Join texts kept by hand with resolutions pulled from Metaculus.

    Args:
        context: what `read_manual_context` gave.
        posts: what `read_post` gave.
        post_ids: the questions asked for, in the order of the result.
        retrieved_at: moment of the pull; its day stands in each label's source.
        as_of: a day or moment for all questions; each question's opening where None.

    Raises:
        BadInputError: a row or post is missing, or a question has no resolution that can be used.
    """
    by_id = {post.post_id: post for post in posts}
    questions: list[Question] = []
    labels: list[PrivateObject] = []
    exclusions: list[Exclusion] = []
    for post_id in post_ids:
        if post_id not in context:
            raise BadInputError(f"no context row for post {post_id}", remedy="Add its texts.")
        if post_id not in by_id:
            raise BadInputError(f"post {post_id} was not pulled", remedy="Pull it.")
        row = context[post_id]
        texts = SharedTexts(row.title, row.description, row.resolution_criteria, row.fine_print)
        made = to_question_or_exclusion(
            by_id[post_id], texts=texts, retrieved_at=retrieved_at, as_of=as_of
        )
        if isinstance(made, Exclusion):
            exclusions.append(made)
        else:
            questions.append(made[0])
            labels.append(made[1])
    return ImportedSet(tuple(questions), tuple(labels), tuple(exclusions))
