"""The AskNews tool on the wire: lanes, the SDK's defaults, tokens, and what is read."""

from __future__ import annotations

import asyncio
import time

import pytest
from servers.asknews_server import (
    CLIENT_ID,
    PATH,
    SECRET,
    TOKEN,
    TOKEN_PATH,
    article,
    page,
    serve_asknews,
    token_reply,
)
from servers.loopback import Loopback, Reply

from forecasting.ports import ToolAnswer, ToolRequest
from forecasting.timebox import KEPT, Timebox, judge
from forecasting.tools.arguments import SearchArguments
from forecasting.tools.asknews import BASE_URL, TOKEN_URL, AskNewsTool, Lane, plan_limits
from ledger.errors import BadInputError

AS_OF = "2025-06-30T12:34:56.789000Z"
NOW = "2026-11-21T10:00:00.000000Z"
END = 1751286896


def make(server: Loopback, lane: Lane = "archive") -> AskNewsTool:
    return AskNewsTool(
        CLIENT_ID, SECRET, lane=lane, timer=time.perf_counter, base_url=server.url, timeout_s=5.0
    )


def search(
    server: Loopback, *, lane: Lane = "archive", now: str = NOW, times: int = 1, **arguments: str
) -> list[ToolAnswer]:
    async def run() -> list[ToolAnswer]:
        tool = make(server, lane)
        request = ToolRequest({"query": "bridge", **arguments}, AS_OF, now)
        try:
            return await asyncio.gather(*(tool.search(request) for _ in range(times)))
        finally:
            await tool.close()

    return asyncio.run(run())


def sent(server: Loopback) -> dict[str, str]:
    [request] = server.at(PATH)
    return {name: values[0] for name, values in request.query.items()}


@pytest.mark.parametrize("lane", ["latest", "archive"])
def test_every_default_that_leaks_is_set(lane: Lane) -> None:
    """AskNews MUST NOT be sent hours_back, crawl_date or return_type string."""
    with serve_asknews(Reply(page(article()))) as server:
        [answer] = search(server, lane=lane)
    query = sent(server)
    assert query["time_filter"] == "pub_date"
    assert query["end_timestamp"] == str(END)
    assert query["return_type"] == "dicts"
    assert query["historical"] == "True"
    assert query["strategy"] == "default"
    assert "hours_back" not in query
    assert "try_cache" not in query
    assert query.get("start_timestamp") == (str(END - 48 * 3600) if lane == "latest" else None)
    assert answer.limits_sent == {
        name: query[name]
        for name in (
            "start_timestamp",
            "end_timestamp",
            "time_filter",
            "historical",
            "n_articles",
            "strategy",
            "method",
        )
        if name in query
    }


@pytest.mark.parametrize(
    ("lane", "now", "historical"),
    [
        ("latest", "2025-06-30T13:00:00.000000Z", False),
        ("latest", "2025-07-02T12:34:56.789000Z", False),
        ("latest", "2025-07-02T12:34:56.789001Z", True),
        ("latest", "2026-11-21T10:00:00.000000Z", True),
        ("latest", "2025-06-29T12:00:00.000000Z", False),
        ("archive", "2025-06-30T13:00:00.000000Z", True),
    ],
)
def test_the_live_index_is_searched_only_near_now(lane: Lane, now: str, historical: bool) -> None:  # noqa: FBT001
    """`historical` false only where as-of is within 48 hours of now."""
    limits = plan_limits(lane, SearchArguments("q", None), as_of=AS_OF, now=now)
    assert limits["historical"] is historical
    assert limits["end_timestamp"] == END


def test_since_only_shortens_a_lane() -> None:
    early, late = SearchArguments("q", "2020-01-01"), SearchArguments("q", "2025-06-30")
    assert plan_limits("latest", early, as_of=AS_OF, now=NOW)["start_timestamp"] == END - 172_800
    assert plan_limits("latest", late, as_of=AS_OF, now=NOW)["start_timestamp"] == 1751241600
    assert plan_limits("archive", early, as_of=AS_OF, now=NOW)["start_timestamp"] == 1577836800


def test_an_as_of_before_1970_is_still_rounded_down() -> None:
    limits = plan_limits(
        "archive", SearchArguments("q", None), as_of="1969-12-31T23:59:59.500000Z", now=NOW
    )
    assert limits["end_timestamp"] == -1


def test_an_article_that_the_sdk_refuses_is_read() -> None:
    """One odd item MUST NOT lose a page."""
    odd = article(bias="New label", article_id="no uuid", sentiment=0.3, entities=...)
    with serve_asknews(Reply(page(odd, article(pub_date=None), article(eng_title=None)))) as server:
        [answer] = search(server)
    assert answer.failure is None
    assert answer.malformed == 0
    first, undated, untranslated = answer.found
    assert judge(first, Timebox(AS_OF), retrieved_at=NOW).evidence.rule == KEPT
    assert undated.published is None
    assert untranslated.title == "En overskrift"
    assert (first.title, first.text) == ("A headline", "What was known.")


def test_an_empty_page_and_a_cached_page() -> None:
    body = {"as_dicts": None, "as_string": "", "offset": 0}
    with serve_asknews(Reply(body, headers=(("x-cache", "HIT"),))) as server:
        [answer] = search(server)
    assert answer.failure is None
    assert answer.found == ()
    assert answer.notices == ("x-cache: hit",)
    assert answer.cost_usd is None


def test_searches_that_start_together_ask_for_one_token() -> None:
    with serve_asknews(Reply(page(article()))) as server:
        answers = search(server, times=12)
    assert [answer.failure for answer in answers] == [None] * 12
    assert len(server.at(TOKEN_PATH)) == 1
    assert {request.headers["authorization"] for request in server.at(PATH)} == {f"Bearer {TOKEN}"}


@pytest.mark.parametrize(
    ("token", "kind"),
    [
        (Reply({"error": SECRET}, 401), "not_authorized"),
        (Reply({"error": SECRET}, 429, (("retry-after", "3"),)), "rate_limited"),
        (Reply(b"<html>", 503), "server_error"),
        (Reply({}, hang_s=9), "timeout"),
        (Reply(drop=True), "connection"),
        (Reply(b"not json"), "bad_request"),
        (Reply({"scope": "news"}), "bad_request"),
    ],
)
def test_a_token_that_is_not_granted_is_an_answer_and_nothing_is_searched(
    token: Reply, kind: str
) -> None:
    with serve_asknews(Reply(page(article())), token=token) as server:
        tool = AskNewsTool(
            CLIENT_ID,
            SECRET,
            lane="archive",
            timer=time.perf_counter,
            base_url=server.url,
            timeout_s=0.5,
        )

        async def run() -> ToolAnswer:
            try:
                return await tool.search(ToolRequest({"query": "q"}, AS_OF, NOW))
            finally:
                await tool.close()

        answer = asyncio.run(run())
        assert server.at(PATH) == []
    assert answer.failure is not None
    assert answer.failure.kind == kind
    assert answer.failure.retry_after_ms == (3_000 if kind == "rate_limited" else None)
    assert answer.raw_answer is None
    assert SECRET not in repr(answer)


def test_the_token_is_in_no_record() -> None:
    with serve_asknews(Reply(page(article())), token=token_reply(note=SECRET)) as server:
        [answer] = search(server)
    assert TOKEN not in repr(answer)
    assert SECRET not in repr(answer)


def test_it_is_made_from_the_environment() -> None:
    keys = {"ASKNEWS_CLIENT_ID": CLIENT_ID, "ASKNEWS_SECRET": SECRET}
    tool = AskNewsTool.from_environment(keys, lane="latest", timer=time.perf_counter)
    assert (tool._sdk.client.base_url, tool._auth.token_url) == (BASE_URL, TOKEN_URL)
    near = {**keys, "ASKNEWS_BASE_URL": "http://127.0.0.1:9/"}
    tool = AskNewsTool.from_environment(near, lane="latest", timer=time.perf_counter)
    assert tool._auth.token_url == f"http://127.0.0.1:9{TOKEN_PATH}"
    assert SECRET not in repr(tool)
    with pytest.raises(BadInputError, match="ASKNEWS_CLIENT_ID and ASKNEWS_SECRET"):
        AskNewsTool.from_environment({}, lane="latest", timer=time.perf_counter)
    far = {**keys, "ASKNEWS_BASE_URL": "http://127.0.0.1:9/v9"}
    with pytest.raises(BadInputError, match="has a path"):
        AskNewsTool.from_environment(far, lane="latest", timer=time.perf_counter)
