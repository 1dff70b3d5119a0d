"""ForecastBench sets: horizons, market questions, moving labels, and what is left out."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from forecasting.questions.forecastbench import read_forecastbench
from forecasting.questions.question import ImportedSet, to_public_card
from ledger.errors import BadInputError
from ledger.ids import SeededEntropy

DUE = "2026-03-01"
DATASET: dict[str, Any] = {
    "id": "series",
    "source": "fred",
    "question": "Will it rise from {forecast_due_date} to {resolution_date}, {so} to say?",
    "resolution_criteria": "By the data of {resolution_date}.",
    "background": "N/A",
    "market_info_open_datetime": "N/A",
    "market_info_close_datetime": "N/A",
    "market_info_resolution_criteria": "N/A",
    "url": "https://example.org/series",
    "freeze_datetime": "2026-02-19T00:00:00+00:00",
    "freeze_datetime_value": "3.5",
    "freeze_datetime_value_explanation": "The value.",
    "source_intro": "A series.",
    "resolution_dates": ["2026-03-08", "2026-03-31"],
}
MARKET: dict[str, Any] = {
    **DATASET,
    "id": "market",
    "source": "manifold",
    "question": "Will the bridge open?",
    "market_info_close_datetime": "2026-12-31T23:59:00+00:00",
    "freeze_datetime_value": "0.28297104550941504",
    "resolution_dates": "N/A",
}


def row(
    question: dict[str, Any], day: str, value: object, *, resolved: bool = True
) -> dict[str, Any]:
    return {
        "id": question["id"],
        "source": question["source"],
        "direction": None,
        "resolution_date": day,
        "resolved_to": value,
        "resolved": resolved,
    }


def encode(key: str, rows: list[dict[str, Any]], **changes: object) -> bytes:
    whole = {"forecast_due_date": DUE, "question_set": f"{DUE}-llm.json", key: rows, **changes}
    return json.dumps({name: item for name, item in whole.items() if item is not ...}).encode()


def read(
    *rows: dict[str, Any], questions: tuple[dict[str, Any], ...] = (DATASET, MARKET)
) -> ImportedSet:
    return read_forecastbench(
        encode("questions", list(questions)), resolutions=encode("resolutions", list(rows))
    )


def test_each_resolution_date_is_a_question_of_its_own() -> None:
    found = read_forecastbench(encode("questions", [DATASET, MARKET]))
    assert [item.question_id for item in found.questions] == [
        "fb-2026-03-01-fred-series-2026-03-08",
        "fb-2026-03-01-fred-series-2026-03-31",
        "fb-2026-03-01-manifold-market",
    ]
    near, far, market = found.questions
    assert near.question == "Will it rise from 2026-03-01 to 2026-03-08, {so} to say?"
    assert near.resolution_criteria == "By the data of 2026-03-08."
    assert near.background == near.fine_print == ""
    assert far.deadline == "2026-03-31T23:59:59.999999Z"
    assert market.deadline == "2026-12-31T23:59:00.000000Z"
    assert {item.as_of for item in found.questions} == {"2026-03-01T00:00:00.000000Z"}
    assert near.market_prices == ()
    assert [(price.at[:10], price.p_yes) for price in market.market_prices] == [
        ("2026-02-19", "0.282971046")
    ]
    assert (found.labels, found.exclusions) == ((), ())
    for question in found.questions:
        to_public_card(question, pack="fb", private=None, entropy=SeededEntropy("f"))


def test_labels_name_the_version_that_they_are_from() -> None:
    """Settled labels move: score against a named label snapshot."""
    rows = [
        row(DATASET, "2026-03-08", 1.0),
        row(DATASET, "2026-03-31", 0),
        row(MARKET, "2026-05-01", 1),
    ]
    found = read(*rows)
    assert [label.resolution for label in found.labels] == ["yes", "no", "yes"]
    assert [label.resolved_on for label in found.labels] == [
        "2026-03-08",
        "2026-03-31",
        "2026-05-01",
    ]
    digest = hashlib.sha256(encode("resolutions", rows)).hexdigest()
    assert all(digest in label.summary for label in found.labels)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([], "unresolved"),
        ([row(MARKET, "2026-05-01", 0.31, resolved=False)], "unresolved"),
        ([row(MARKET, "2026-05-01", 1.0, resolved=False)], "unresolved"),
        ([row(MARKET, "2026-05-01", 0.5)], "ambiguous"),
        ([row(MARKET, "2026-05-01", None)], "annulled"),
        ([row(MARKET, "2026-03-01", 1.0)], "resolved_before_as_of"),
        ([row(DATASET, "2026-05-01", 1.0)], "unresolved"),
    ],
)
def test_what_is_not_settled_is_left_out_with_its_reason(
    rows: list[dict[str, Any]], reason: str
) -> None:
    found = read(*rows, questions=(MARKET,))
    assert (found.questions, found.labels) == ((), ())
    assert [item.reason for item in found.exclusions] == [reason]


def test_a_combination_is_left_out_with_its_reason() -> None:
    combined = {**MARKET, "id": ["market", "other"], "combination_of": []}
    found = read(row(combined, "2026-05-01", 1.0), questions=(combined,))
    assert [item.reason for item in found.exclusions] == ["combination"]


@pytest.mark.parametrize(
    ("change", "price"),
    [
        ({"freeze_datetime_value": "42%"}, 0),
        ({"freeze_datetime_value": "42"}, 0),
        ({"freeze_datetime": "2026-03-02T00:00:00+00:00"}, 0),
        ({"freeze_datetime": "N/A"}, 0),
        ({"freeze_datetime_value": "1"}, 1),
    ],
)
def test_only_a_price_of_before_as_of_is_a_price(change: dict[str, Any], price: int) -> None:
    [question] = read_forecastbench(encode("questions", [{**MARKET, **change}])).questions
    assert len(question.market_prices) == price


def test_the_human_file_spells_its_name_with_a_hyphen() -> None:
    data = encode("questions", [MARKET], question_set=..., **{"question-set": "x"})
    assert len(read_forecastbench(data).questions) == 1


def test_as_of_can_be_given() -> None:
    [question] = read_forecastbench(encode("questions", [MARKET]), as_of="2026-02-20").questions
    assert question.as_of == "2026-02-20T00:00:00.000000Z"


@pytest.mark.parametrize(
    ("questions", "resolutions", "message"),
    [
        (b"[]", None, "questions: the top level"),
        (encode("questions", [{**MARKET, "source": " "}]), None, r"questions\[0\]\.source"),
        (encode("questions", [{**MARKET, "resolution_dates": "soon"}]), None, "neither a list nor"),
        (
            encode("questions", [{**DATASET, "resolution_dates": ["soon"]}]),
            None,
            "resolution_dates",
        ),
        (encode("questions", [MARKET, MARKET]), None, "stands twice"),
        (
            encode("questions", [MARKET]),
            encode("resolutions", [], forecast_due_date="2026-03-15"),
            "is for 2026-03-15, the questions for 2026-03-01",
        ),
        (
            encode("questions", [MARKET]),
            encode("resolutions", [row(MARKET, "2026-05-01", "yes")]),
            "not shown",
        ),
        (
            encode("questions", [MARKET]),
            encode("resolutions", [row(MARKET, "2026-05-01", 1), row(MARKET, "2026-05-02", 0)]),
            "has two labels",
        ),
    ],
)
def test_a_wrong_set_is_one_sentence(
    questions: bytes, resolutions: bytes | None, message: str
) -> None:
    with pytest.raises(BadInputError, match=message) as caught:
        read_forecastbench(questions, resolutions=resolutions)
    assert "\n" not in str(caught.value)
