"""The provider port: one suite on every adapter, and every fault on every one that has a server."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import openai
import pytest
from provider_examples import ADAPTERS, ANSWER, CELL, FREE, KEY, Adapter, open_at, request
from servers.openai_server import (
    OpenAIServer,
    Reply,
    chat_document,
    error_reply,
    responses_document,
    serve_openai,
)

from forecasting.ports import FailureKind, Message, ModelAnswer, ToolCallRequest, ToolSpec
from forecasting.providers.endpoints import ENDPOINTS
from forecasting.providers.record import CallAttempt, to_model_called
from forecasting.providers.wire import from_raw
from ledger.errors import BadInputError
from ledger.events.codec import draft_event

ROUTES = ("chat.completions", "responses")


@pytest.fixture(params=ADAPTERS, ids=lambda adapter: adapter.name)
def adapter(request: pytest.FixtureRequest) -> Adapter:
    found = request.param
    assert isinstance(found, Adapter)
    return found


def call_once(server: OpenAIServer, route: str, **changed: object) -> ModelAnswer:
    async def go() -> ModelAnswer:
        provider = open_at(server, "openai", route)
        try:
            return await provider.call(request(**changed))
        finally:
            await provider.close()

    return asyncio.run(go())


def test_an_answer_is_whole(adapter: Adapter) -> None:
    """Each call records route, resolved snapshot, response id, usage, raw request and answer."""
    # The replay adapter runs a loop of its own while it opens, so the context opens outside.
    with adapter.open() as provider:

        async def whole() -> None:
            answer = await provider.call(request())
            assert answer.failure is None
            assert answer.text == ANSWER
            assert answer.resolved_model
            assert answer.response_id
            assert answer.latency_ms >= 0
            assert from_raw(answer.raw_request) == provider.encode(request())
            assert answer.raw_answer is not None
            assert "p_yes" in answer.raw_answer.data
            event = to_model_called(
                CallAttempt(request(), answer, provider.provider, provider.route, FREE, 1), CELL
            )
            assert draft_event(event, actor="tester").payload
            await provider.close()

        asyncio.run(whole())


def test_octets_depend_on_the_question_alone(adapter: Adapter) -> None:
    """Equal questions of two draws have equal octets; another parameter has others."""
    with adapter.open() as provider:
        first = provider.encode(request(idem_key="draw-1"))
        assert provider.encode(request(idem_key="draw-2")) == first
        assert provider.encode(request(parameters={"temperature": "0.3"})) != first
        assert request(idem_key="draw-1") == request(idem_key="draw-2")
        asyncio.run(provider.close())


def test_a_call_that_gives_no_answer_does_not_raise(adapter: Adapter) -> None:
    """Provider errors are answers, never exceptions."""
    with adapter.open() as provider:

        async def twice() -> list[ModelAnswer]:
            asked = [request(messages=(Message("user", f"{n}"),), timeout_s=5) for n in range(2)]
            answers = [await provider.call(one) for one in asked]
            await provider.close()
            return answers

        for answer in asyncio.run(twice()):
            assert (answer.text is None) == (answer.failure is not None)


def test_every_endpoint_is_in_the_suite() -> None:
    names = {adapter.name for adapter in ADAPTERS}
    wires = {f"{endpoint.name}:{wire.route}" for endpoint in ENDPOINTS for wire in endpoint.wires}
    assert names == wires | {"scripted", "replay"}


# --- what only a server can do wrong


def errors(status: int, **other: Any) -> Reply:
    return error_reply(status, **other)


FAULTS: dict[str, tuple[Reply, FailureKind]] = {
    "429 with Retry-After": (errors(429, retry_after="7"), "rate_limited"),
    "429 without quota": (errors(429, code="insufficient_quota"), "out_of_quota"),
    "402": (errors(402), "out_of_quota"),
    "500": (errors(500), "server_error"),
    "502 html": (Reply(502, b"<html>bad gateway</html>", media="text/html"), "server_error"),
    "529": (errors(529), "server_error"),
    "408": (errors(408), "timeout"),
    "409": (errors(409), "server_error"),
    "400": (errors(400), "bad_request"),
    "401": (errors(401), "not_authorized"),
    "403": (errors(403), "not_authorized"),
    "404": (errors(404), "bad_request"),
    "413": (errors(413), "bad_request"),
    "redirect": (Reply(302, b"", {"location": "https://example.com/"}), "bad_request"),
    "error body is not an object": (Reply(500, b"[1,2]"), "server_error"),
    "error body is not text": (Reply(500, b"\xff\xfe"), "server_error"),
    "html 200": (Reply(200, b"<html>hi</html>", media="text/html"), "unreadable"),
    "empty 200": (Reply(200, b""), "unreadable"),
    "truncated JSON": (Reply(200, b'{"id":"x","choi'), "unreadable"),
    "duplicate keys": (Reply(200, b'{"id":1,"id":2}'), "unreadable"),
    "NaN": (Reply(200, b'{"id":NaN}'), "unreadable"),
    "not UTF-8": (Reply(200, b'{"id":"\xff"}'), "unreadable"),
    "a list": (Reply(200, b"[]"), "unreadable"),
    "an empty object": (Reply(200, b"{}"), "unreadable"),
    "bad gzip": (Reply(200, b"nonsense", {"content-encoding": "gzip"}), "connection"),
    "too long": (Reply(200, b'"' + b"x" * 1_000_001 + b'"'), "unreadable"),
    "cut in the body": (Reply(200, b'{"id":"chatcmpl"}' * 9, cut=20), "connection"),
    "drop": (Reply(drop=True), "connection"),
    "hang": (Reply(hang=True), "timeout"),
    "slow": (Reply(200, b"{}", delay_s=3.0), "timeout"),
    "drip": (Reply(200, b"x" * 1000, drip=True), "timeout"),
}


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("name", FAULTS)
def test_faults(name: str, route: str) -> None:
    """Each fault is one attempt with one kind of failure; nothing is retried behind our back."""
    reply, kind = FAULTS[name]
    with serve_openai() as server:
        server.replies.append(reply)
        answer = call_once(server, route, timeout_s=0.4)
        assert answer.failure is not None
        assert answer.failure.kind == kind
        assert answer.text is None
        assert len(server.arrived) == 1
        assert "\n" not in answer.failure.detail
    kept = answer.raw_answer
    whole = reply.status != 200 or kind == "unreadable"
    if name != "too long":
        assert (kept is not None) == whole
    if kept is not None:
        assert from_raw(kept) == reply.body


CHAT_ODDITIES: dict[str, tuple[dict[str, Any], FailureKind]] = {
    "length": (chat_document(finish_reason="length"), "truncated"),
    "content filter": (chat_document(finish_reason="content_filter"), "refused"),
    "gateway error": (chat_document(finish_reason="error"), "server_error"),
    "unknown reason": (chat_document(finish_reason="abort"), "unreadable"),
    "no reason": (chat_document(finish_reason=None), "unreadable"),
    "reason of another type": (chat_document(finish_reason=["stop"]), "unreadable"),
    "refusal": (chat_document(message={"content": None, "refusal": "I will not"}), "refused"),
    "no text": (chat_document(message={"content": None}), "unreadable"),
    "empty text": (chat_document(""), "unreadable"),
    "text of another type": (chat_document(message={"content": [1]}), "unreadable"),
    "message of another type": (chat_document(message=[]), "unreadable"),
    "no choice": ({"id": "x", "choices": []}, "unreadable"),
    "choice of another type": ({"id": "x", "choices": ["x"]}, "unreadable"),
    "two choices": ({"id": "x", "choices": chat_document()["choices"] * 2}, "unreadable"),
    "error in a 200": ({"error": {"message": "upstream", "code": 502}}, "server_error"),
    "half a tool call": (
        chat_document(message={"content": None, "tool_calls": [{"id": "c"}]}),
        "unreadable",
    ),
}


@pytest.mark.parametrize("name", CHAT_ODDITIES)
def test_chat_oddities(name: str) -> None:
    document, kind = CHAT_ODDITIES[name]
    with serve_openai() as server:
        server.replies.append(document)
        answer = call_once(server, "chat.completions")
    assert answer.failure is not None
    assert answer.failure.kind == kind
    assert answer.raw_answer is not None
    if "usage" in document:
        assert answer.usage.output_tokens == 100  # a failed answer was paid for all the same


def _part(**part: Any) -> dict[str, Any]:
    return responses_document(output=[{"type": "message", "content": [part]}])


RESPONSES_ODDITIES: dict[str, tuple[dict[str, Any], FailureKind]] = {
    "too long": (
        responses_document(status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
        "truncated",
    ),
    "filter": (
        responses_document(status="incomplete", incomplete_details={"reason": "content_filter"}),
        "refused",
    ),
    "incomplete": (responses_document(status="incomplete"), "unreadable"),
    "failed": (
        responses_document(status="failed", error={"code": "server_error", "message": "m"}),
        "server_error",
    ),
    "failed by rate": (
        responses_document(status="failed", error={"code": "rate_limit_exceeded"}),
        "rate_limited",
    ),
    "failed by nothing": (responses_document(status="failed", error=None), "server_error"),
    "queued": (responses_document(status="queued"), "unreadable"),
    "no status": ({"output": []}, "unreadable"),
    "no output": (responses_document(output=[]), "unreadable"),
    "reasoning alone": (responses_document(output=[{"type": "reasoning"}]), "unreadable"),
    "refusal": (_part(type="refusal", refusal="no"), "refused"),
    "text of another type": (_part(type="output_text", text=3), "unreadable"),
    "part of another type": (
        responses_document(output=[{"type": "message", "content": ["x"]}]),
        "unreadable",
    ),
    "half a tool call": (responses_document(output=[{"type": "function_call"}]), "unreadable"),
}


@pytest.mark.parametrize("name", RESPONSES_ODDITIES)
def test_responses_oddities(name: str) -> None:
    document, kind = RESPONSES_ODDITIES[name]
    with serve_openai() as server:
        server.replies.append(document)
        answer = call_once(server, "responses")
    assert answer.failure is not None
    assert answer.failure.kind == kind


def test_malformed_counters_do_not_cost_the_answer() -> None:
    document = {**chat_document(), "usage": {"prompt_tokens": "12", "completion_tokens": -1}}
    document |= {"id": 7, "model": "m" * 201, "system_fingerprint": ""}
    with serve_openai() as server:
        server.replies.append(document)
        answer = call_once(server, "chat.completions")
    assert answer.text == ANSWER
    assert answer.usage.input_tokens is answer.usage.output_tokens is None
    assert answer.response_id is answer.resolved_model is answer.fingerprint is None


def test_what_a_good_answer_records() -> None:
    with serve_openai() as server:
        chat = call_once(server, "chat.completions")
        response = call_once(server, "responses")
    assert chat.resolved_model == response.resolved_model == "gpt-5.4-2026-03-05"
    assert chat.request_id == response.request_id == "req_123"
    assert (chat.response_id, response.response_id) == ("chatcmpl-1", "resp_1")
    assert (chat.fingerprint, response.fingerprint) == ("fp_abc", None)
    for usage in (chat.usage, response.usage):
        assert (usage.input_tokens, usage.output_tokens) == (1000, 100)
        assert (usage.cached_input_tokens, usage.reasoning_tokens) == (200, 40)


def test_the_wait_a_server_asks_for() -> None:
    replies = [
        error_reply(429, retry_after_ms="1500", retry_after="9"),
        error_reply(503, retry_after="2.5"),
        error_reply(500, x_should_retry="false"),
    ]
    with serve_openai() as server:
        server.replies.extend(replies)
        found = [call_once(server, "responses").failure for _ in replies]
    assert [failure and failure.retry_after_ms for failure in found] == [1500, 2500, None]
    assert [failure and failure.is_retryable for failure in found] == [True, True, False]


@pytest.mark.parametrize("route", ROUTES)
def test_our_body_is_the_body_of_the_typed_method(route: str) -> None:
    """The SDK's typed methods write the same members, so a new SDK that renames one shows here."""
    asked = request(
        parameters={
            "temperature": "0.2",
            "top_p": "0.9",
            "max_output_tokens": "64",
            "reasoning_effort": "low",
            "verbosity": "low",
            "service_tier": "flex",
            "store": "false",
        },
        tools=(ToolSpec("search", "Search.", {"type": "object", "properties": {}}),),
    )
    with serve_openai() as server:
        asyncio.run(_typed(server.url, route))
        answer = asyncio.run(_call_and_close(server, route, asked))
        typed, ours = (arrived.document() for arrived in server.arrived)
    assert answer.failure is None
    assert ours == typed


async def _call_and_close(server: OpenAIServer, route: str, asked: Any) -> ModelAnswer:
    provider = open_at(server, "openai", route)
    answer = await provider.call(asked)
    await provider.close()
    return answer


async def _typed(url: str, route: str) -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "rationale": {"type": "string"},
            "p_yes": {"type": "number", "minimum": 0, "maximum": 1},
        },
        "required": ["rationale", "p_yes"],
        "additionalProperties": False,
    }
    described = {"name": "forecast", "strict": True, "schema": schema}
    tool: dict[str, Any] = {
        "name": "search",
        "description": "Search.",
        "parameters": {"type": "object", "properties": {}},
    }
    shared: dict[str, Any] = {"model": "gpt-5.4", "temperature": 0.2, "top_p": 0.9, "store": False}
    shared["service_tier"] = "flex"
    user = {"role": "user", "content": "Will it? Zürich."}
    client: Any = openai.AsyncOpenAI(api_key=KEY, base_url=url, max_retries=0)
    async with client:
        if route == "responses":
            await client.responses.create(
                **shared,
                instructions="Forecast.",
                input=[user],
                max_output_tokens=64,
                reasoning={"effort": "low"},
                text={"format": {"type": "json_schema", **described}, "verbosity": "low"},
                tools=[{"type": "function", **tool, "strict": False}],
            )
        else:
            await client.chat.completions.create(
                **shared,
                messages=[{"role": "system", "content": "Forecast."}, user],
                max_completion_tokens=64,
                reasoning_effort="low",
                verbosity="low",
                response_format={"type": "json_schema", "json_schema": described},
                tools=[{"type": "function", "function": tool}],
            )


@pytest.mark.parametrize("route", ROUTES)
def test_a_conversation_with_tools(route: str) -> None:
    """A model's tool calls come back with their ids, and go out again with their results."""
    arguments = '{"query":"x"}'
    spoken = {"name": "search", "arguments": arguments}
    chat = chat_document(
        finish_reason="tool_calls",
        message={"content": None, "tool_calls": [{"id": "c1", "function": spoken}]},
    )
    item = {"type": "function_call", "id": "fc_1", "call_id": "c1", **spoken}
    with serve_openai() as server:
        server.replies.append(chat if route != "responses" else responses_document(output=[item]))
        answer = call_once(server, route)
        assert answer.failure is None
        assert answer.text is None
        assert answer.tool_calls == (ToolCallRequest("c1", "search", arguments),)
        turns = (
            *request().messages,
            Message("assistant", "", tool_calls=answer.tool_calls),
            Message("tool", "found", call_id="c1"),
        )
        assert call_once(server, route, messages=turns).text == ANSWER
        sent = server.arrived[1].document()
    if route == "responses":
        assert sent["input"][1:] == [
            {"type": "function_call", "call_id": "c1", **spoken},
            {"type": "function_call_output", "call_id": "c1", "output": "found"},
        ]
    else:
        assert sent["messages"][2]["tool_calls"][0]["id"] == "c1"
        assert sent["messages"][3] == {"role": "tool", "content": "found", "tool_call_id": "c1"}


def test_a_request_that_the_route_cannot_say_is_not_sent() -> None:
    """`responses.create` has no seed: a registered seed is refused, not dropped."""
    with serve_openai() as server:
        for changed in (
            {"parameters": {"seed": "1"}},
            {"parameters": {"top_k": "1"}},
            {"parameters": {"temperature": "warm"}},
            {"messages": (Message("user", KEY),)},
            {"messages": (Message("user", "\ud800"),)},
            {"messages": (Message("user", "x" * 1_000_000),)},
            {"idem_key": "a\nb"},
        ):
            with pytest.raises(BadInputError) as caught:
                call_once(server, "responses", **changed)
            assert KEY not in str(caught.value)
        assert server.arrived == []


def test_the_idempotency_key_goes_out() -> None:
    with serve_openai() as server:
        call_once(server, "responses", idem_key="run-1.card-001.1")
        call_once(server, "responses")
        assert server.by_key == {"run-1.card-001.1": 1, "": 1}


def test_cancellation_passes_and_the_connection_closes() -> None:
    """Cancellation passes through as asyncio.CancelledError, and is no timeout."""

    async def go(server: OpenAIServer) -> None:
        provider = open_at(server, "openai", "responses")
        task = asyncio.create_task(provider.call(request(timeout_s=60)))
        while not server.arrived:  # noqa: ASYNC110 - the server lives in another thread
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        answer = await provider.call(request())
        assert answer.text == ANSWER
        await provider.close()

    with serve_openai() as server:
        server.replies.append(Reply(hang=True))
        asyncio.run(go(server))


@pytest.mark.parametrize("route", ROUTES)
def test_no_secret_is_in_any_answer(route: str) -> None:
    """No secret in any event, log or error, even if the server quotes it whole or in part."""
    echoes: list[Reply | dict[str, Any]] = [
        error_reply(401, "invalid_api_key", f"Incorrect API key provided: Bearer {KEY}."),
        error_reply(400, None, f"header {KEY[:30]}***"),
        Reply(200, f"<html>{KEY}</html>".encode(), {"x-request-id": KEY}, media="text/html"),
        Reply(500, KEY.encode() + b"\xff", media=f"text/{KEY}"),
        chat_document(KEY) if route != "responses" else responses_document(KEY),
    ]
    with serve_openai() as server:
        server.replies.extend(echoes)
        for _ in echoes:
            said = repr(call_once(server, route))
            assert KEY not in said
            assert KEY[:24] not in said
            assert KEY[-24:] not in said


def test_a_loopback_that_is_not_there() -> None:
    provider = open_at(OpenAIServer(url="http://127.0.0.1:9/v1"))

    async def go() -> ModelAnswer:
        answer = await provider.call(request())
        await provider.close()
        return answer

    answer = asyncio.run(go())
    assert answer.failure is not None
    assert answer.failure.kind == "connection"


def test_many_at_once_keep_their_answers_apart() -> None:
    """Two hundred calls over eight connections: each gets the answer to its own question."""

    async def go(server: OpenAIServer) -> None:
        provider = open_at(server, "openai", "chat.completions")
        gate = asyncio.Semaphore(8)

        async def one(number: int) -> None:
            async with gate:
                asked = request(messages=(Message("user", f"question {number}"),))
                answer = await provider.call(asked)
                assert answer.failure is None
                assert f"question {number}" in answer.raw_request.data

        await asyncio.gather(*(one(number) for number in range(200)))
        await provider.close()

    with serve_openai() as server:
        asyncio.run(go(server))
        sent = [json.loads(one.body)["messages"][0]["content"] for one in server.arrived]
        assert sorted(sent) == sorted(f"question {number}" for number in range(200))
        assert server.peak <= 8
