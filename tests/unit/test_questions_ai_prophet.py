"""ai-prophet tasks: as-of, labels taken apart, and what is left out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from forecasting.questions.ai_prophet import read_ai_prophet
from ledger.errors import BadInputError

TASK: dict[str, Any] = {
    "task_id": "bridge-1",
    "title": "Will the bridge open?",
    "outcomes": ["Yes", "No"],
    "predict_by": "2026-03-01T00:00:00Z",
    "source": "kalshi",
    "context": "It is built.",
    "metadata": {"category": "Transport"},
    "resolved_outcome": {"value": ["No"], "resolved_at": "2026-04-01T10:00:00Z", "source": "k"},
}


def lines(*tasks: dict[str, Any]) -> bytes:
    return b"\n\n".join(json.dumps(task).encode() for task in tasks)


def outcome(value: object) -> dict[str, Any]:
    return {**TASK, "resolved_outcome": {"value": value, "resolved_at": None}}


def test_a_task_is_taken_apart() -> None:
    found = read_ai_prophet(lines(TASK))
    [question], [label] = found.questions, found.labels
    assert question.question_id == label.card_id == "prophet-bridge-1"
    assert (question.as_of, question.deadline) == ("2026-03-01T00:00:00.000000Z", None)
    assert (question.background, question.domain) == ("It is built.", "Transport")
    assert (label.resolution, label.resolved_on) == ("no", "2026-04-01")
    assert "2026-04-01" not in repr(question)


def test_an_earlier_as_of_makes_predict_by_the_deadline() -> None:
    [question] = read_ai_prophet(
        lines({**TASK, "predict_by": "2026-03-01"}), as_of="2026-02-01"
    ).questions
    assert question.as_of == "2026-02-01T00:00:00.000000Z"
    assert question.deadline == "2026-03-01T23:59:59.999999Z"


def test_outcomes_need_not_be_read() -> None:
    found = read_ai_prophet(
        lines(outcome(["?"]), {**TASK, "task_id": "b", "resolved_outcome": None}), with_labels=False
    )
    assert (len(found.questions), found.labels, found.exclusions) == (2, (), ())


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        ({**TASK, "resolved_outcome": None}, "unresolved"),
        (outcome([]), "ambiguous"),
        (outcome(["Yes", "No"]), "ambiguous"),
        ({**TASK, "outcomes": ["A", "B", "C"]}, "not_binary"),
        ({**TASK, "outcomes": ["Yes"]}, "not_binary"),
    ],
)
def test_what_cannot_be_scored_is_left_out_with_its_reason(
    task: dict[str, Any], reason: str
) -> None:
    found = read_ai_prophet(lines(task))
    assert found.questions == ()
    assert [item.reason for item in found.exclusions] == [reason]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (lines(outcome([1])), "t:1: resolved_outcome.value.0.: the outcome is neither Yes nor No"),
        (lines(outcome(["Maybe"])), "neither Yes nor No"),
        (lines(outcome("Yes")), "resolved_outcome.value: has a value that is not shown"),
        (lines(TASK, TASK), "'prophet-bridge-1' stands twice"),
        (lines(TASK, {**TASK, "title": ""}), "t:3: title: has the value ''"),
        (lines({**TASK, "predict_by": "soon"}), "t:1: predict_by: 'soon' is not a time"),
        (b"{", "t:1: not JSON"),
        (b"\n", "t: holds no task"),
    ],
)
def test_a_wrong_file_is_one_sentence(data: bytes, message: str) -> None:
    with pytest.raises(BadInputError, match=message) as caught:
        read_ai_prophet(data, where="t")
    assert "Maybe" not in str(caught.value)
    assert "\n" not in str(caught.value)
