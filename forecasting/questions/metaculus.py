"""Metaculus posts, as `/api/posts/ID/` and `/api2/questions/ID/` give them; pure.

Both addresses take the id of the post, which is not the id of its question. The older form never
holds the three texts; the newer one does, as they stand today and not as they stood at as-of.
`status` says resolved as soon as the resolution time is past, even without a resolution, so both
are needed. As-of is the opening unless it is given. The deadline is the scheduled close: actual
times are part of the label.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

from pydantic import Field

from forecasting.questions.question import (
    Exclusion,
    MarketPrice,
    Question,
    make_question_id,
    read_as_of,
    read_moment,
)
from forecasting.questions.reading import Filled, ForeignRow, read_json, read_row
from ledger.clock import format_moment
from ledger.decimals import round_probability
from ledger.errors import BadInputError
from ledger.events.base import Answer
from ledger.events.card import PrivateObject, ResolutionSource

SITE = "https://www.metaculus.com/questions"


class _QuestionRow(ForeignRow):
    id: int
    type: str
    status: str | None = None
    resolution: str | None = None
    open_time: str | None = None
    cp_reveal_time: str | None = None
    scheduled_close_time: str | None = None
    scheduled_resolve_time: str | None = None
    actual_resolve_time: str | None = None
    resolution_set_time: str | None = None
    description: str | None = None
    resolution_criteria: str | None = None
    fine_print: str | None = None
    aggregations: dict[str, Any] | None = None


class _PostRow(ForeignRow):
    id: int = Field(ge=1)
    title: Filled
    question: _QuestionRow


@dataclass(frozen=True, slots=True)
class SharedTexts:
    """The texts of a question that a model may see."""

    title: str
    description: str
    resolution_criteria: str
    fine_print: str


@dataclass(frozen=True, slots=True, repr=False)
class MetaculusPost:
    """A post as it was pulled, label included; the repr shows its id alone.

    `texts` is None where the form holds none; times are the service's own text.
    """

    post_id: int
    texts: SharedTexts | None
    row: _QuestionRow

    def __repr__(self) -> str:
        """Show the id: a label must not reach a log or a traceback."""
        return f"MetaculusPost({self.post_id})"


def read_post(data: bytes, *, post_id: int, where: str = "post") -> MetaculusPost:
    """Read the answer of either address.

    Args:
        data: its bytes.
        post_id: the post that was asked for.
        where: begins every message.

    Raises:
        BadInputError: no JSON, a field missing or of another type (no value is shown), a post
            without a question of its own, or another post than was asked for.
    """
    document = read_json(data, where=where)
    if isinstance(document, dict) and not isinstance(document.get("question"), dict):
        raise BadInputError(
            "the post has no question of its own", where=where, remedy="Name a binary question."
        )
    row = read_row(_PostRow, document, where=where, show_values=False)
    if row.id != post_id:
        raise BadInputError(f"the answer is post {row.id}, not {post_id}", where=where)
    question = row.question
    texts = (question.description, question.resolution_criteria, question.fine_print)
    if all(text is None for text in texts):
        return MetaculusPost(row.id, None, question)
    shown = SharedTexts(row.title, texts[0] or "", texts[1] or "", texts[2] or "")
    return MetaculusPost(row.id, shown, question)


def to_question_or_exclusion(
    post: MetaculusPost,
    *,
    texts: SharedTexts | None,
    retrieved_at: str,
    as_of: str | None = None,
) -> tuple[Question, PrivateObject] | Exclusion:
    """Turn a resolved post into a question and its label, or say why it is left out.

    Args:
        post: what `read_post` gave.
        texts: texts kept by hand; the post's own where None.
        retrieved_at: moment of the pull.
        as_of: a day or moment; the question's opening where None.

    Raises:
        BadInputError: not resolved, a resolution that is neither yes nor no, no text, or a time
            that is missing or cannot be read.
    """
    where = f"post {post.post_id}"
    question_id = make_question_id("metaculus", str(post.post_id))
    row = post.row
    if row.type != "binary":
        return Exclusion(question_id, "not_binary", f"it is of type {row.type[:40]}")
    if row.status != "resolved" or row.resolution is None:
        raise BadInputError("is not resolved", where=where, remedy="Leave it out until it is.")
    if row.resolution == "annulled":
        return Exclusion(question_id, "annulled", "Metaculus annulled the question")
    if row.resolution == "ambiguous":
        return Exclusion(question_id, "ambiguous", "Metaculus resolved the question as ambiguous")
    if row.resolution not in {"yes", "no"}:
        raise BadInputError("its resolution is neither yes nor no", where=where)
    shown = texts if texts is not None else post.texts
    if shown is None:
        raise BadInputError(
            "has no texts", where=where, remedy="Pull the posts form or give a context file."
        )
    question = _make_question(post, question_id, shown, as_of)
    resolved = read_moment(
        row.actual_resolve_time or "", where=f"{where}: actual_resolve_time", show_value=False
    )
    if resolved <= question.as_of:
        return Exclusion(question_id, "resolved_before_as_of", "its outcome was known at as-of")
    return question, _make_label(post, question, resolved, retrieved_at)


def _make_question(
    post: MetaculusPost, question_id: str, texts: SharedTexts, as_of: str | None
) -> Question:
    where, row = f"post {post.post_id}", post.row
    opened = read_moment(row.open_time or "", where=f"{where}: open_time")
    moment = opened if as_of is None else read_as_of(as_of, where="as-of")
    closing = row.scheduled_close_time or row.scheduled_resolve_time
    return Question(
        question_id=question_id,
        origin="metaculus",
        kind="resolved",
        title=texts.title,
        question=texts.title,
        as_of=moment,
        deadline=None if closing is None else read_moment(closing, where=f"{where}: closing"),
        background=texts.description,
        resolution_criteria=texts.resolution_criteria,
        fine_print=texts.fine_print,
        url=f"{SITE}/{post.post_id}/",
        market_prices=_read_crowd(row, moment),
    )


def _make_label(
    post: MetaculusPost, question: Question, resolved: str, retrieved_at: str
) -> PrivateObject:
    row = post.row
    source = ResolutionSource(
        title=f"Metaculus question {row.id} of post {post.post_id}",
        url=question.url,
        source_type="metaculus",
        retrieved_on=retrieved_at[:10],
    )
    return PrivateObject(
        card_id=question.question_id,
        resolution=cast("Answer", row.resolution),
        resolved_on=resolved[:10],
        summary=(
            f"Resolved as of {row.actual_resolve_time}, set at"
            f" {row.resolution_set_time or 'an unknown time'}, pulled at {retrieved_at}."
        ),
        sources=(source,),
    )


def _read_crowd(row: _QuestionRow, as_of: str) -> tuple[MarketPrice, ...]:
    """Read the last crowd median that was visible at as-of; whatever is odd counts as none."""
    reveal = row.cp_reveal_time
    if reveal is not None and read_moment(reveal, where="cp_reveal_time") > as_of:
        return ()
    weighted = (row.aggregations or {}).get("recency_weighted")
    history = weighted.get("history") if isinstance(weighted, dict) else None
    prices = [_read_point(point) for point in history or () if isinstance(point, dict)]
    visible = [price for price in prices if price is not None and price.at <= as_of]
    return (max(visible, key=lambda price: price.at),) if visible else ()


def _read_point(point: dict[str, Any]) -> MarketPrice | None:
    start, centers = point.get("start_time"), point.get("centers")
    if not isinstance(start, int | float) or not isinstance(centers, list) or len(centers) != 1:
        return None
    try:
        at = format_moment(datetime.fromtimestamp(start, UTC))
        return MarketPrice("metaculus recency_weighted", at, round_probability(str(centers[0])))
    except (ValueError, OverflowError, OSError):
        return None
