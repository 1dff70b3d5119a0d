"""Metaculus: manual context, both forms of a post, the join, and the polite client."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest
from servers.loopback import Loopback, Reply
from servers.metaculus_server import TOKEN, path, post, serve_metaculus

from forecasting.questions.manual_context import join_context, read_manual_context
from forecasting.questions.metaculus import (
    MetaculusPost,
    SharedTexts,
    read_post,
    to_question_or_exclusion,
)
from forecasting.questions.metaculus_client import Form, MetaculusClient
from forecasting.questions.question import Exclusion, Question, to_public_card
from ledger.canonical import canonicalize_exact
from ledger.errors import BadInputError
from ledger.events.card import PrivateObject
from ledger.ids import SeededEntropy

NOW = "2026-11-21T10:00:00.000000Z"
ROW: dict[str, Any] = {
    "post_id": 101,
    "title": "Will the bridge open?",
    "type": "binary",
    "description": "About the bridge.",
    "resolution_criteria": "If cars use it.",
    "fine_print": "Only cars.",
}
TEXTS = SharedTexts("T", "D", "R", "F")


def context(*rows: dict[str, Any]) -> bytes:
    return json.dumps({"questions": rows}).encode()


def pulled(form: str = "posts", **question: Any) -> MetaculusPost:
    return read_post(json.dumps(post(form=form, **question)).encode(), post_id=101)


def made(**question: Any) -> tuple[Question, PrivateObject]:
    result = to_question_or_exclusion(pulled(**question), texts=TEXTS, retrieved_at=NOW)
    assert not isinstance(result, Exclusion)
    return result


def test_both_forms_of_a_context_file_are_read() -> None:
    one = read_manual_context(json.dumps([ROW]).encode())
    other = read_manual_context(context({**ROW, "metadata": {"source": "hand"}}))
    assert one[101].description == other[101].description == "About the bridge."


@pytest.mark.parametrize("field", list(ROW))
def test_every_field_is_mandatory_and_not_blank(field: str) -> None:
    row = {key: value for key, value in ROW.items() if key != field}
    with pytest.raises(BadInputError, match=rf"^f: questions\[1\]: {field}: is missing"):
        read_manual_context(context({**ROW, "post_id": 7}, row), where="f")
    blanks: tuple[Any, ...] = ("", "  \n", None, 0, [])
    for blank in blanks:
        with pytest.raises(BadInputError, match=rf"^f: questions\[0\]: {field}: has the value"):
            read_manual_context(context({**ROW, field: blank}), where="f")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[]", "neither a list of questions"),
        (b"{}", "neither a list of questions"),
        (b'{"questions": {}}', "neither a list of questions"),
        (b'{"questions": [], "x": 1}', "neither a list of questions"),
        (b"7", "neither a list of questions"),
        (b"{", "not JSON"),
        (context(ROW, ROW), "a second row for post 101"),
        (context({**ROW, "label": 1}), "label: is not a field that exists here"),
        (context({**ROW, "type": "numeric"}), "type: has the value 'numeric'; expected binary"),
        (context({**ROW, "post_id": "101"}), "post_id: has the value '101'"),
        (context({**ROW, "post_id": True}), "post_id: has the value 'True'"),
        (context({**ROW, "metadata": []}), "metadata: has the value"),
    ],
)
def test_a_wrong_context_file_is_one_sentence(data: bytes, message: str) -> None:
    with pytest.raises(BadInputError) as caught:
        read_manual_context(data, where="f")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("form", ["posts", "api2"])
def test_text_kept_by_hand_is_joined_with_the_pulled_label(form: str) -> None:
    joined = join_context(
        read_manual_context(context(ROW)), [pulled(form)], post_ids=[101], retrieved_at=NOW
    )
    [question], [label] = joined.questions, joined.labels
    assert question.question_id == label.card_id == "metaculus-101"
    assert question.background == "About the bridge."
    assert question.as_of == "2025-03-01T12:30:00.000000Z"
    assert question.deadline == "2025-06-30T23:59:00.000000Z"
    assert (label.resolution, label.resolved_on) == ("no", "2025-06-12")
    assert "2025-06-13T09:00:00Z" in label.summary
    assert label.sources[0].retrieved_on == "2026-11-21"


def test_nothing_of_the_label_is_in_the_card_or_a_repr() -> None:
    """The pulled resolution is a sealed label until predictions are closed."""
    question, label = made()
    card = to_public_card(question, pack="p", private=label, entropy=SeededEntropy("x"))
    text = canonicalize_exact(card.model_dump(mode="json")).decode()
    for secret in ("2025-06-12", "2025-06-13", "Resolved as of", '"resolution"'):
        assert secret not in text
        assert secret not in repr(question)
        assert secret not in repr(label)
    assert repr(pulled()) == "MetaculusPost(101)"
    assert card.public_context == "Background:\nD\n\nResolution criteria:\nR\n\nFine print:\nF"


def test_the_join_fails_hard_without_a_row_or_a_post() -> None:
    rows = read_manual_context(context(ROW))
    with pytest.raises(BadInputError, match="no context row for post 7"):
        join_context(rows, [pulled()], post_ids=[101, 7], retrieved_at=NOW)
    with pytest.raises(BadInputError, match="post 101 was not pulled"):
        join_context(rows, [], post_ids=[101], retrieved_at=NOW)


@pytest.mark.parametrize(
    "question",
    [
        {"status": "closed", "resolution": None},
        {"status": "open"},
        {"status": None},
        {"status": "resolved", "resolution": None},
        {"resolution": "maybe"},
        {"resolution": "Yes"},
        {"resolution": ""},
    ],
)
def test_a_question_that_is_not_resolved_yes_or_no_fails_hard(question: dict[str, Any]) -> None:
    with pytest.raises(BadInputError, match="post 101: ") as caught:
        made(**question)
    assert "maybe" not in str(caught.value)


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ({"resolution": "annulled"}, "annulled"),
        ({"resolution": "ambiguous"}, "ambiguous"),
        ({"type": "multiple_choice", "resolution": "Blue"}, "not_binary"),
        ({"actual_resolve_time": "2025-03-01T12:30:00Z"}, "resolved_before_as_of"),
    ],
)
def test_what_cannot_be_scored_is_an_exclusion_with_its_reason(
    question: dict[str, Any], reason: str
) -> None:
    """Annulled and ambiguous are exclusions with a reason."""
    joined = join_context(
        read_manual_context(context(ROW)), [pulled(**question)], post_ids=[101], retrieved_at=NOW
    )
    assert (joined.questions, joined.labels) == ((), ())
    assert [item.reason for item in joined.exclusions] == [reason]
    assert "Blue" not in repr(joined)


def test_as_of_can_be_given_and_brings_the_crowd_of_that_day() -> None:
    def crowd(as_of: str, **question: Any) -> list[tuple[str, str]]:
        result = to_question_or_exclusion(
            pulled(**question), texts=None, retrieved_at=NOW, as_of=as_of
        )
        assert not isinstance(result, Exclusion)
        return [(price.at[:10], price.p_yes) for price in result[0].market_prices]

    assert crowd("2025-03-10") == [("2025-03-05", "0.42")]
    assert crowd("2025-05-01") == [("2025-04-05", "0.2")]
    assert crowd("2025-03-02") == []
    assert crowd("2025-05-01", cp_reveal_time="2025-05-02T00:00:00Z") == []
    odd = {"recency_weighted": {"history": [7, {}, {"start_time": "x"}, {"start_time": 1e300}]}}
    for history in (odd, {"recency_weighted": 7}, None, {}):
        assert crowd("2025-05-01", aggregations=history) == []
    percent = {"recency_weighted": {"history": [{"start_time": 1e9, "centers": [42]}]}}
    assert crowd("2025-05-01", aggregations=percent) == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"[]", "expected a mapping"),
        (b"{}", "no question of its own"),
        (json.dumps({**post(), "question": None}).encode(), "no question of its own"),
        (json.dumps(post(102)).encode(), "the answer is post 102, not 101"),
        (json.dumps(post(resolution=1)).encode(), "not shown"),
        (json.dumps(post())[:-5].encode(), "not JSON"),
    ],
)
def test_an_answer_that_is_no_such_post_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(BadInputError, match=message):
        read_post(data, post_id=101)


def test_unreadable_times_of_the_label_are_not_shown() -> None:
    with pytest.raises(BadInputError, match="actual_resolve_time: the value is not") as caught:
        made(actual_resolve_time="12 June 2025")
    assert "June" not in str(caught.value)
    with pytest.raises(BadInputError, match="open_time: '' is not"):
        made(open_time=None)
    with pytest.raises(BadInputError, match="has no texts"):
        to_question_or_exclusion(pulled("api2"), texts=None, retrieved_at=NOW)


class FakeTime:
    """A timer and a sleep that agree."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def timer(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 3))
        self.now += seconds


def fetch(server: Loopback, fake: FakeTime, *ids: int, form: Form = "posts") -> list[bytes]:
    async def run() -> list[bytes]:
        client = MetaculusClient(
            TOKEN,
            sleep=fake.sleep,
            timer=fake.timer,
            entropy=bytes,
            form=form,
            base_url=server.url,
            timeout_s=5.0,
        )
        try:
            return await asyncio.gather(*(client.fetch_post(post_id) for post_id in ids))
        finally:
            await client.close()

    return asyncio.run(run())


@pytest.mark.parametrize("form", ["posts", "api2"])
def test_a_post_is_fetched_with_the_token(form: Form) -> None:
    with serve_metaculus(101, Reply(post(form=form)), form=form) as server:
        [data] = fetch(server, FakeTime(), 101, form=form)
        [request] = server.seen
    assert (request.path, request.headers["authorization"]) == (path(101, form), f"Token {TOKEN}")
    assert read_post(data, post_id=101).row.resolution == "no"


def test_requests_keep_their_distance_however_many_ask() -> None:
    with serve_metaculus(101, Reply(post())) as server:
        server.reply(path(102), Reply(post(102)))
        server.reply(path(103), Reply(post(103)))
        fake = FakeTime()
        assert len(fetch(server, fake, 101, 102, 103)) == 3
    assert fake.slept == [3.5, 3.5]


def test_a_storm_is_waited_out_as_the_server_asks() -> None:
    storm = [Reply({}, 429, (("retry-after", "30"),))] * 2
    with serve_metaculus(101, *storm, Reply({}, 503), Reply(post())) as server:
        fake = FakeTime()
        assert len(fetch(server, fake, 101)) == 1
    assert fake.slept[:2] == [30.0, 30.0]
    assert len(server.seen) == 4


@pytest.mark.parametrize(
    ("reply", "tries", "message"),
    [
        (Reply({"detail": f"{TOKEN} yes"}, 401), 1, "refuses the token"),
        (Reply({"detail": f"{TOKEN} yes"}, 403), 1, "refuses the token"),
        (Reply({"detail": f"{TOKEN} yes"}, 404), 1, "no such post"),
        (Reply({"detail": f"{TOKEN} yes"}, 500), 5, r"in 5 tries \(server_error, HTTP 500\)"),
        (Reply(drop=True), 5, r"in 5 tries \(connection\)"),
        (Reply({}, 302, (("location", "http://127.0.0.1:9/"),)), 1, r"bad_request, HTTP 302"),
    ],
)
def test_what_does_not_pass_is_one_sentence_without_the_answer(
    reply: Reply, tries: int, message: str
) -> None:
    with serve_metaculus(101, reply) as server:
        with pytest.raises(BadInputError, match=f"^post 101: .*{message}") as caught:
            fetch(server, FakeTime(), 101)
        assert len(server.seen) == tries
    for secret in (TOKEN, "yes"):
        assert secret not in str(caught.value)


def test_the_client_is_made_from_the_environment() -> None:
    fake = FakeTime()

    def client(**environment: str) -> MetaculusClient:
        return MetaculusClient.from_environment(
            environment, sleep=fake.sleep, timer=time.perf_counter, entropy=SeededEntropy("m")
        )

    assert TOKEN not in repr(client(METACULUS_TOKEN=TOKEN))
    near = client(METACULUS_TOKEN=TOKEN, METACULUS_BASE_URL="http://127.0.0.1:9/")
    assert near._base_url == "http://127.0.0.1:9"
    with pytest.raises(BadInputError, match="Set METACULUS_TOKEN"):
        client()
