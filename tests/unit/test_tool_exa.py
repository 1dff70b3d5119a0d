"""The Exa tool on the wire: what is sent, what is read, and what never is."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest
from servers.exa_server import KEY, PATH, page, result, serve_exa
from servers.loopback import Loopback, Reply

from forecasting.ports import ToolAnswer, ToolRequest
from forecasting.tools.exa import BASE_URL, ExaTool
from ledger.errors import BadInputError

AS_OF = "2025-06-30T12:34:56.789999Z"
NOW = "2026-11-21T10:00:00.000000Z"
ROOT = Path(__file__).resolve().parents[2]


def search(
    server: Loopback, *, snapshots: bool = True, prefix: str = "", **arguments: str
) -> ToolAnswer:
    async def run() -> ToolAnswer:
        tool = ExaTool(
            KEY, timer=time.perf_counter, base_url=server.url + prefix, snapshots=snapshots
        )
        try:
            return await tool.search(ToolRequest({"query": "bridge", **arguments}, AS_OF, NOW))
        finally:
            await tool.close()

    return asyncio.run(run())


def test_every_limit_goes_out_and_is_recorded_as_it_went() -> None:
    """The provider-side limits exactly as they went out MUST be recorded."""
    with serve_exa(Reply(page(result()))) as server:
        answer = search(server, since="2025-01-31")
    [request] = server.seen
    assert (request.method, request.path) == ("POST", PATH)
    assert request.headers["x-api-key"] == KEY
    assert request.json() == {
        "query": "bridge",
        "type": "auto",
        "numResults": 8,
        "startPublishedDate": "2025-01-31T00:00:00.000Z",
        "endPublishedDate": "2025-06-30T12:34:56.789Z",
        "contents": {
            "text": {"maxCharacters": 4000},
            "maxAgeHours": -1,
            "snapshotAsOf": "2025-06-30T12:34:56.789Z",
        },
    }
    assert answer.limits_sent == {
        "type": "auto",
        "numResults": "8",
        "startPublishedDate": "2025-01-31T00:00:00.000Z",
        "endPublishedDate": "2025-06-30T12:34:56.789Z",
        "contents.maxAgeHours": "-1",
        "contents.snapshotAsOf": "2025-06-30T12:34:56.789Z",
    }


def test_snapshots_can_be_off_and_a_path_prefix_is_kept() -> None:
    with serve_exa(Reply(page())) as server:
        server.reply("/v9" + PATH, Reply(page(result())))
        answer = search(server, snapshots=False, prefix="/v9/")
    assert len(answer.found) == 1
    assert "contents.snapshotAsOf" not in answer.limits_sent
    assert answer.limits_sent["endPublishedDate"] == "2025-06-30T12:34:56.789Z"


def test_all_times_cost_and_remarks_are_read() -> None:
    remark = {"code": "IGNORED_FIELD", "path": "/endPublishedDate", "message": "ignored"}
    with serve_exa(Reply(page(result(), warnings=[remark, 7]))) as server:
        answer = search(server)
    [item] = answer.found
    assert item.published == "2025-06-01T08:00:00.000000Z"
    assert item.crawled == item.snapshot == "2025-06-02T03:04:05.000000Z"
    assert answer.cost_usd == "0.005"
    assert answer.notices == ("IGNORED_FIELD /endPublishedDate ignored",)
    assert answer.raw_answer is not None
    assert '"requestId": "request-1"' in answer.raw_answer.data


@pytest.mark.parametrize(
    ("cost", "read"),
    [
        ({"total": 0}, "0"),
        ({"total": 1e-10}, "0"),
        ({"total": 0.1234567891}, "0.123456789"),
        ({"total": -1}, None),
        ({"total": True}, None),
        ({"total": "0.1"}, None),
        ({"total": 1e300}, None),
        ({}, None),
        (None, None),
        (7, None),
    ],
)
def test_an_unknown_cost_is_null_never_zero(cost: object, read: str | None) -> None:
    with serve_exa(Reply(page(costDollars=cost))) as server:
        assert search(server).cost_usd == read


def test_the_answer_route_is_named_in_no_code_path() -> None:
    """The answer endpoint MUST NOT exist: no tool, no prompt and no code path names it."""
    texts = [path.read_text() for path in (ROOT / "forecasting").rglob("*.py")]
    texts += [path.read_text() for path in (ROOT / "forecasting" / "prompts").glob("*.txt")]
    assert len(texts) > 10
    for text in texts:
        assert ".answer(" not in text
        assert "stream_answer" not in text
        assert '"/answer"' not in text
        assert "exa_answer" not in text


def test_it_is_made_from_the_environment_and_shows_no_key() -> None:
    tool = ExaTool.from_environment({"EXA_API_KEY": KEY}, timer=time.perf_counter)
    assert KEY not in repr(tool)
    assert tool._exa.base_url == BASE_URL
    assert (
        ExaTool.from_environment(
            {"EXA_API_KEY": KEY, "EXA_BASE_URL": "http://127.0.0.1:9/"}, timer=time.perf_counter
        )._exa.base_url
        == "http://127.0.0.1:9"
    )
    with pytest.raises(BadInputError, match="Set EXA_API_KEY"):
        ExaTool.from_environment({}, timer=time.perf_counter)


def test_the_sdk_is_loaded_only_where_a_tool_is_made() -> None:
    code = "import forecasting.tools.exa, forecasting.tools.asknews, sys; print(*sys.modules)"
    run = [sys.executable, "-W", "error", "-c", code]
    loaded = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "exa_py" not in loaded.split()
    assert "asknews_sdk" not in loaded.split()
