"""Parameters, endpoints, secrecy, raw octets, scripts and replay."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from provider_examples import ANSWER, CELL, FREE, KEY, request
from servers.openai_server import chat_document

from forecasting.answer import FORMS, AnswerForm, forecast_schema, read_probability
from forecasting.ports import CallFailure, ModelAnswer, ModelRequest, ToolCallRequest
from forecasting.providers.chat import ChatWire
from forecasting.providers.endpoints import ENDPOINTS, find_endpoint, find_wire, open_provider
from forecasting.providers.openai_sdk import check_base_url
from forecasting.providers.parameters import PARAMETERS, max_output_tokens, place_parameters
from forecasting.providers.pool import SpreadTransport, open_http_client
from forecasting.providers.record import CallAttempt, to_model_called
from forecasting.providers.replay import RecordedCall, ReplayProvider
from forecasting.providers.scripted import (
    ScriptedProvider,
    ScriptedTurn,
    ScriptedWire,
    digest_forecast,
    in_order,
)
from forecasting.providers.secrecy import HIDDEN, Scrubber
from forecasting.providers.wire import from_raw, request_record, to_raw
from ledger.errors import BadInputError

GOOD = {"number": "0.2", "integer": "7", "text": "low", "flag": "true", "list": "a,b"}


@pytest.mark.parametrize("parameter", PARAMETERS, ids=lambda parameter: parameter.name)
def test_every_parameter_stands_in_its_place(parameter: object) -> None:
    found = next(one for one in PARAMETERS if one is parameter)
    for route, place in (("chat", found.chat), ("responses", found.responses)):
        body: dict[str, object] = {}
        given_text = {found.name: GOOD[found.form]}
        if place is None:
            with pytest.raises(BadInputError, match="has no parameter"):
                place_parameters(body, given_text, route)  # type: ignore[arg-type]
            continue
        place_parameters(body, given_text, route)  # type: ignore[arg-type]
        value: object = body
        for key in place:
            assert isinstance(value, dict)
            value = value[key]
        assert (
            value
            == {
                "number": 0.2,
                "integer": 7,
                "text": "low",
                "flag": True,
                "list": ["a", "b"],
            }[found.form]
        )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("temperature", "0,2"),
        ("temperature", "nan"),
        ("temperature", "1e3"),
        ("temperature", " 0.2"),
        ("temperature", ".5"),
        ("seed", "1.0"),
        ("seed", "9" * 17),
        ("store", "yes"),
        ("provider_order", "a,,b"),
        ("reasoning_effort", ""),
        ("unheard_of", "1"),
    ],
)
def test_other_texts_are_refused(name: str, text: str) -> None:
    with pytest.raises(BadInputError):
        place_parameters({}, {name: text}, "chat")


def test_the_bound_on_an_answer() -> None:
    assert max_output_tokens({"max_output_tokens": "64"}) == 64
    assert max_output_tokens({"max_output_tokens": "0"}) is None
    assert max_output_tokens({}) is None


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_a_missing_key_or_address_is_one_sentence(endpoint: object) -> None:
    found = next(one for one in ENDPOINTS if one is endpoint)
    if found.key_variable is None:
        return
    with pytest.raises(BadInputError, match=r"API key|address") as caught:
        open_provider(found.name, None, {}, monotonic_s=time.perf_counter)
    variable = found.key_variable if found.base_url else found.base_url_variable
    assert variable in str(caught.value)


def test_unknown_names_list_the_known() -> None:
    with pytest.raises(BadInputError, match="openrouter"):
        find_endpoint("nobody")
    with pytest.raises(BadInputError, match="responses and chat"):
        find_wire(find_endpoint("openai"), "completions")


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com",
        "example.com/v1",
        "https://",
        "https://user:secret@example.com/v1",
        "https://example.com/v1?key=secret",
        "https://example.com/v1#secret",
    ],
)
def test_a_base_url_holds_no_credentials(url: str) -> None:
    with pytest.raises(BadInputError) as caught:
        check_base_url(url)
    assert "secret" not in str(caught.value)


def test_a_base_url_loses_its_last_slash() -> None:
    assert check_base_url("https://example.com/v1/") == "https://example.com/v1"


@pytest.mark.parametrize("key", ["sk-a\nb", "sk a", "sk-\u00e9", "sk-\x00"])
def test_a_key_that_no_header_can_carry_is_not_shown(key: str) -> None:
    with pytest.raises(BadInputError) as caught:
        Scrubber(key)
    assert "sk" not in str(caught.value)


@given(
    st.integers(0, len(KEY) - 23),
    st.integers(23, len(KEY)),
    st.text(max_size=20),
    st.text(max_size=20),
)
def test_long_parts_of_a_key_are_found(start: int, size: int, before: str, after: str) -> None:
    part = KEY[start : start + size]
    found = Scrubber(KEY).text(f"{before}{part}{after}")
    if len(part) >= 23:
        assert part not in found
        assert HIDDEN in found


@given(st.binary(max_size=200))
def test_octets_without_the_key_are_untouched(data: bytes) -> None:
    assert Scrubber(KEY).octets(data) is data
    assert Scrubber(None).octets(data) is data


def test_a_prefix_that_everybody_has_is_no_secret() -> None:
    assert Scrubber(KEY).text("keys begin with sk-proj-") == "keys begin with sk-proj-"
    assert Scrubber("short").text("a short key") == f"a {HIDDEN} key"


@given(st.binary(max_size=300))
def test_raw_octets_come_back(data: bytes) -> None:
    raw = to_raw(data)
    assert raw is not None
    assert from_raw(raw) == data


def test_octets_that_no_event_can_hold() -> None:
    assert to_raw(b"x" * 1_000_000) is not None
    assert to_raw(b"x" * 1_000_001) is None
    assert to_raw(b"\xff" * 750_001) is None


def test_proxies_of_the_environment_are_obeyed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> list[bool]:
        outside = "https://api.example.com/v1"
        clients = [open_http_client(outside, 64)]
        monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
        clients += [open_http_client(url, 64) for url in (outside, "http://localhost:8091/v1")]
        for client in clients:
            await client.aclose()
        return [isinstance(client._transport, SpreadTransport) for client in clients]

    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    assert asyncio.run(go()) == [True, False, True]


# --- scripted and replay


def answer(turn: ScriptedTurn, asked: ModelRequest | None = None) -> ModelAnswer:
    return asyncio.run(ScriptedProvider(lambda _: turn).call(asked or request()))


def test_a_script_says_texts_failures_and_tool_calls() -> None:
    assert answer("x").text == "x"
    failure = CallFailure("refused", "no")
    assert answer(failure).failure == failure
    calls = (ToolCallRequest("c1", "search", "{}"),)
    assert answer(calls).tool_calls == calls
    assert answer(calls).text is None


def test_a_script_that_is_over_says_so() -> None:
    script = in_order(["one"])
    assert script(request()) == "one"
    with pytest.raises(BadInputError, match="no more answers"):
        script(request())


@pytest.mark.parametrize("form", FORMS)
def test_the_digest_forecast_is_readable_and_reproducible(form: AnswerForm) -> None:
    asked = request(output=forecast_schema(form, {"rationale": {"type": "string"}}))
    first, second = digest_forecast(asked), digest_forecast(asked)
    assert first == second
    assert isinstance(first, str)
    assert 0.01 <= float(read_probability(first, form).p_yes) <= 0.99
    assert digest_forecast(request(as_of="2026-05-01T00:00:00.000000Z")) != first


def recorded(*turns: ScriptedTurn) -> list[RecordedCall]:
    return [
        RecordedCall(
            seq,
            to_model_called(
                CallAttempt(request(), answer(turn), "scripted", "scripted", FREE, 1), CELL
            ),
        )
        for seq, turn in enumerate(turns, start=10)
    ]


def replay(calls: list[RecordedCall], provider: str = "scripted") -> ReplayProvider:
    return ReplayProvider(provider=provider, wire=ScriptedWire(), calls=calls)


def test_replay_answers_in_order_and_once_each() -> None:
    again = CallFailure("server_error", "HTTP 500: boom")
    provider = replay(recorded(again, "one", "two"))
    found = [asyncio.run(provider.call(request())) for _ in range(4)]
    assert [one.text for one in found] == [None, "one", "two", None]
    assert found[0].failure == again
    assert [one.cached_from_seq for one in found] == [10, 11, 12, None]
    assert found[3].failure is not None
    assert not found[3].failure.is_retryable


def test_replay_keeps_the_whole_record() -> None:
    first = answer(ANSWER)
    second = asyncio.run(replay(recorded(ANSWER)).call(request()))
    assert second.response_id == first.response_id
    assert second.raw_answer == first.raw_answer
    assert second.resolved_model == first.resolved_model


@pytest.mark.parametrize(
    "changed",
    [
        {"model": "another"},
        {"parameters": {"temperature": "0.3"}},
        {"as_of": "2026-05-01T00:00:00.000000Z"},
        {"output": None},
    ],
)
def test_replay_gives_nobody_elses_answer(changed: dict[str, object]) -> None:
    found = asyncio.run(replay(recorded(ANSWER)).call(request(**changed)))
    assert found.failure is not None
    assert found.text is None


def test_replay_minds_as_of_where_the_octets_do_not_say_it() -> None:
    """As-of is part of the key: the same prompt at another as-of is another question."""
    wire = ChatWire()
    body = json.dumps(chat_document()).encode()
    said = replace(
        answer(ANSWER), raw_request=request_record(wire.encode(request())), raw_answer=to_raw(body)
    )
    event = to_model_called(CallAttempt(request(), said, "openai", wire.route, FREE, 1), CELL)
    provider = ReplayProvider(provider="openai", wire=wire, calls=[RecordedCall(3, event)])
    later = request(as_of="2026-05-01T00:00:00.000000Z")
    assert provider.encode(later) == provider.encode(request())
    assert asyncio.run(provider.call(later)).failure is not None
    assert asyncio.run(provider.call(request())).text == ANSWER


def test_a_schema_keeps_the_order_of_its_fields() -> None:
    """A model writes its fields in the schema's order: a rationale comes before its number."""
    for endpoint in ENDPOINTS:
        for wire in endpoint.wires:
            sent = wire.encode(request())
            if b"json_schema" in sent:
                assert sent.index(b'"rationale":{') < sent.index(b'"p_yes":{')


def test_replay_leaves_out_other_providers() -> None:
    found = asyncio.run(replay(recorded(ANSWER), provider="openai").call(request()))
    assert found.failure is not None
