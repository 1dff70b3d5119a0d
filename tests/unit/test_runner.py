"""The runner: every cell once, every error a row, nothing twice, nothing in the wrong question.

The real SDK speaks to servers on loopback; where a script is enough, a script answers.
"""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal
from typing import Any

import pytest
from run_examples import (
    AGENT,
    NO_AGENT,
    SCRIPTED,
    CentACall,
    FakeSearch,
    Unclosed,
    again,
    found,
    memory_store,
    over_http,
    payloads,
    prepare,
    prompts,
    question,
    run_all,
    run_in_memory,
    scripted,
)
from servers.openai_server import Reply, error_reply, serve_openai
from store_examples import clock

from forecasting.backtest import PlanFields, RunSetup, baseline_method, strategy_method
from forecasting.ports import CallFailure, Found, ModelRequest, ToolCallRequest, ToolRequest
from forecasting.providers.scripted import ScriptedTurn, digest_forecast
from forecasting.rerun import rerun
from forecasting.runner import Tally, choose_jobs
from ledger.clock import parse_moment
from ledger.errors import BadInputError, OrderError
from ledger.ids import SeededEntropy
from ledger.protocol.decide import decide_close
from ledger.session import Session
from ledger.store.memory import MemoryStore

OPENAI = RunSetup(provider="openai", route="chat.completions", model="gpt-5.4")
KEY = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJ"
DIRECT_ANSWER = json.dumps({"rationale": "r", "p_yes": 0.35, "p_no": 0.65})


def direct(setup: RunSetup = SCRIPTED, **changed: Any) -> PlanFields:
    return baseline_method("direct_json", setup) | changed


def answer(_request: ModelRequest) -> ScriptedTurn:
    return DIRECT_ANSWER


def jobs_left(store: MemoryStore) -> int:
    return len(choose_jobs(Session(store, clock=clock(), actor="t").state()))


def test_a_prediction_cites_its_attempt_its_calls_and_the_route_of_the_last() -> None:
    with serve_openai() as server:
        server.text = DIRECT_ANSWER
        store, tally = run_in_memory([question("a")], [direct(OPENAI)], over_http(server.url))
    (prediction,) = payloads(store, "prediction.frozen")
    (call,) = payloads(store, "model.called")
    assert (tally.frozen, tally.failed, tally.calls) == (1, 0, 1)
    assert (prediction.attempt, prediction.origin.kind) == (1, "run")
    assert (prediction.p_raw, prediction.p_yes) == ("0.35", "0.35")
    sources = [record for record in store.read() if record.seq in prediction.sources]
    assert [record.type for record in sources] == ["model.called"]
    assert prediction.model_route == call.model_route
    assert prediction.model_route.resolved_model == "gpt-5.4-2026-03-05"
    assert (prediction.prompt_version, prediction.prompt_digest) == (
        call.prompt_version,
        call.prompt_digest,
    )
    assert prediction.response_id == call.response_id == "chatcmpl-1"
    assert call.as_of == question("a").as_of


def test_every_attempt_of_a_call_is_an_event_before_the_next() -> None:
    with serve_openai() as server:
        server.text = DIRECT_ANSWER
        server.replies.extend([error_reply(500), error_reply(429, retry_after="0")])
        store, _ = run_in_memory([question("a")], [direct(OPENAI)], over_http(server.url))
        assert len(server.arrived) == 3
        assert len(server.by_key) == 1, "one idempotency key for all attempts of a call"
    outcomes = [call.outcome for call in payloads(store, "model.called")]
    assert outcomes == ["failed", "failed", "answered"]


@pytest.mark.parametrize(
    ("turn", "reason"),
    [
        (CallFailure("refused", "no"), "refused"),
        (CallFailure("timeout", "late"), "timeout"),
        (CallFailure("not_authorized", "HTTP 401"), "provider_error"),
        (CallFailure("truncated", "cut"), "unusable_answer"),
        ('{"p_yes": 45}', "unusable_answer"),
        ("I would say a half.", "unusable_answer"),
    ],
)
def test_a_failure_is_a_row_and_never_a_half(turn: ScriptedTurn, reason: str) -> None:
    store, tally = run_in_memory([question("a")], [direct()], scripted(lambda _: turn))
    (failed,) = payloads(store, "attempt.failed")
    assert failed.reason == reason
    assert (tally.failed, payloads(store, "prediction.frozen")) == (1, [])
    assert payloads(store, "model.called"), "what was asked is on record all the same"


def test_a_failed_cell_is_tried_again_only_on_request() -> None:
    questions, methods = [question("a")], [direct()]
    store, _ = run_in_memory(questions, methods, scripted(lambda _: "nothing"))
    assert again(store, scripted(answer)) == Tally()
    tally = again(store, scripted(answer, retry_failed=True))
    assert tally.frozen == 1
    (prediction,) = payloads(store, "prediction.frozen")
    assert prediction.attempt == 2
    assert tally.reused == 0, "an unusable answer is not taken again"


def test_one_broken_question_does_not_stop_the_others() -> None:
    def script(request: ModelRequest) -> ScriptedTurn:
        is_broken = any('"card_id": "b"' in message.content for message in request.messages)
        return "nothing" if is_broken else DIRECT_ANSWER

    questions = [question(name) for name in "abc"]
    _, tally = run_in_memory(questions, [direct()], scripted(script, concurrency=3))
    assert (tally.frozen, tally.failed, tally.done) == (2, 1, 3)


def test_the_ceiling_stops_the_run_and_a_resumed_one_ends_it() -> None:
    questions = [question(name) for name in "abcd"]
    with serve_openai() as server:
        server.text = DIRECT_ANSWER
        store, tally = run_in_memory(
            questions, [direct(OPENAI)], over_http(server.url, max_cost=Decimal("0.025"))
        )
        assert (tally.frozen, tally.failed, tally.stopped_by_budget) == (1, 1, True)
        assert len(server.arrived) == 1, "nothing was sent that could break the ceiling"
        after = again(store, over_http(server.url, max_cost=Decimal(1)))
        assert (after.frozen, after.failed) == (3, 0)
        assert after.spent_usd == Decimal("0.04"), "what was spent before counts"


def test_a_configuration_that_cannot_be_sent_is_refused_before_the_first_attempt() -> None:
    wrong = direct(OPENAI, parameters={"temperature": "hot"})
    store = memory_store()
    prepare(store, [question("a")], [wrong])
    size = store.head().size
    with pytest.raises(BadInputError, match="not a number"):
        again(store, over_http("http://127.0.0.1:9/v1"))
    assert store.head().size == size


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"parameters": {"temprature": "0.2"}}, "knows no parameter 'temprature'"),
        ({"prompt_digest": "0" * 64}, "is not the registered one"),
        ({"strategy": "oracle"}, "no strategy 'oracle'"),
        ({"extraction_rule": "path-ledger/1"}, "extracted by direct/1"),
        ({"parameters": {"tools": "exa_search"}}, "registered and not open"),
    ],
)
def test_a_plan_that_the_runner_cannot_follow_is_refused(
    changed: dict[str, Any], words: str
) -> None:
    store = memory_store()
    prepare(store, [question("a")], [direct(**{"extraction_rule": "direct/1", **changed})])
    with pytest.raises(BadInputError, match=words):
        again(store, scripted())


def test_a_closed_evaluation_is_left_alone() -> None:
    store, _ = run_in_memory([question("a")], [direct()], scripted(lambda _: "nothing"))
    session = Session(store, clock=clock(), actor="t")
    session.commit(lambda state: decide_close(state, declared_missing=None))
    with pytest.raises(OrderError, match="late-prediction"):
        again(store, scripted(answer, retry_failed=True))


def test_equal_questions_of_two_methods_are_asked_once_and_the_second_cites_the_first() -> None:
    twin = direct() | {"id": "twin"}
    store, tally = run_in_memory([question("a")], [direct(), twin], scripted(answer))
    first, second = payloads(store, "model.called")
    assert (first.cached_from_seq, tally.reused) == (None, 1)
    assert second.cached_from_seq == payloads(store, "prediction.frozen")[0].sources[0]
    assert second.cost.amount == "0"
    assert second.raw_answer == first.raw_answer


def test_without_the_cache_each_method_asks() -> None:
    twin = direct() | {"id": "twin"}
    store, tally = run_in_memory(
        [question("a")], [direct(), twin], scripted(answer, use_cache=False)
    )
    assert [call.cached_from_seq for call in payloads(store, "model.called")] == [None, None]
    assert tally.reused == 0


def test_draws_are_separate_answers_and_a_seed_grows_with_them() -> None:
    method = direct(
        parameters={"seed": "5", "max_output_tokens": "64"}, draws=3, aggregate="median"
    )
    store, _ = run_in_memory([question("a")], [method], scripted(digest_direct))
    seeds = [call.parameters["seed"] for call in payloads(store, "model.called")]
    assert seeds == ["5", "6", "7"]
    assert len({p.p_yes for p in payloads(store, "prediction.frozen")}) > 1


def digest_direct(request: ModelRequest) -> ScriptedTurn:
    turn = digest_forecast(request)
    assert isinstance(turn, str)
    p_yes = Decimal(json.loads(turn)["p_yes"]).quantize(Decimal("0.01"))
    return f'{{"rationale":"r","p_yes":{p_yes},"p_no":{1 - p_yes}}}'


def test_two_hundred_questions_at_once_each_see_their_own_as_of_and_nothing_later() -> None:
    """Two questions that run at once with different as-of times see nothing of each other's."""
    days = [f"2025-{1 + i // 28 % 9:02}-{1 + i % 28:02}" for i in range(200)]
    questions = [
        question(f"q{i}", as_of=f"{day}T{i % 24:02}:30:00.000000Z") for i, day in enumerate(days)
    ]

    def find(_request: ToolRequest) -> tuple[Found, ...]:
        news = (found(f"NEWS-OF-{day}", f"{day}T12:00:00.000000Z") for day in sorted(set(days)))
        return (*news, found("CANARY-UNDATED", None))

    tool = FakeSearch(find)
    setup = RunSetup(provider="scripted", model="m", tools=("corpus_search",))
    methods = [strategy_method(NO_AGENT, setup)]
    store, tally = run_in_memory(
        questions, methods, scripted(tools={"corpus_search": tool}, concurrency=16)
    )
    assert tally.frozen == 200
    own = {q.question_id: q.as_of for q in questions}
    calls = payloads(store, "model.called")
    assert len(calls) == 600
    for call in calls:
        assert call.as_of == own[call.card_id]
        text = call.raw_request.data
        assert f"Today is {call.as_of[:10]}" in text
        assert "CANARY" not in text
        later = [day for day in set(days) if f"{day}T12" > call.as_of]
        assert not any(f"NEWS-OF-{day}" in text for day in later)
    for search in payloads(store, "tool.called"):
        assert search.as_of == own[search.card_id]
        for item in search.evidence:
            assert item.kept == (item.published is not None and item.published <= search.as_of)
    assert {parse_moment(r.now) > parse_moment(r.as_of) for r in tool.requests} == {True}


def test_the_same_search_at_another_as_of_is_another_search() -> None:
    questions = [
        question(name, question="Will it open?", as_of=f"2025-0{month}-01T12:00:00.000000Z")
        for name, month in (("early", 3), ("late", 6))
    ]
    tool = FakeSearch(lambda _: (found("SPRING", "2025-05-01T00:30:00.000000Z"),))
    setup = RunSetup(provider="scripted", model="m", tools=("corpus_search",))
    store, _ = run_in_memory(
        questions, [strategy_method(NO_AGENT, setup)], scripted(tools={"corpus_search": tool})
    )
    assert len(tool.requests) == 2
    assert [s.cached_from_seq for s in payloads(store, "tool.called")] == [None, None]
    seen = [text for text in prompts(store) if "SPRING" in text]
    assert seen
    assert all("2025-06-01" in text for text in seen)


def test_no_key_stands_in_any_event_although_the_server_echoes_it() -> None:
    with serve_openai() as server:
        server.key = "another"
        store, _ = run_in_memory([question("a")], [direct(OPENAI)], over_http(server.url, key=KEY))
    (failed,) = payloads(store, "attempt.failed")
    assert "401" in failed.detail
    for record in store.read():
        assert KEY.encode() not in (record.payload or b"")
        assert KEY[8:40].encode() not in (record.payload or b"")


def test_a_storm_of_429s_and_cut_answers_ends_with_every_cell_done() -> None:
    with serve_openai() as server:
        server.text = DIRECT_ANSWER
        server.most_in_flight = 2
        server.replies.extend([Reply(body=b'{"id": "x"', cut=5), Reply(status=200, body=b"<html>")])
        questions = [question(f"q{i}") for i in range(30)]
        setting = over_http(server.url, concurrency=16, tries=50)
        _, tally = run_in_memory(questions, [direct(OPENAI)], setting)
    assert (tally.frozen, tally.failed) == (30, 0)


def test_what_an_open_attempt_was_told_is_used_without_a_new_event() -> None:
    setup = RunSetup(provider="scripted", model="m", tools=("corpus_search",))
    tool = FakeSearch(lambda _: (found("OLD", "2025-05-01T00:30:00.000000Z"),))
    methods = [strategy_method(NO_AGENT, setup)]
    store = memory_store()
    prepare(store, [question("a")], methods)

    def dies_at_last(request: ModelRequest) -> ScriptedTurn:
        if "You make the final forecast" in request.messages[0].content:
            raise KeyboardInterrupt
        return digest_forecast(request)

    with pytest.raises(KeyboardInterrupt):
        again(store, scripted(dies_at_last, tools={"corpus_search": tool}))
    assert jobs_left(store) == 1
    before = len(payloads(store, "model.called"))
    tally = again(store, scripted(tools={"corpus_search": tool}))
    assert (before, tally.calls, tally.reused) == (2, 1, 3)
    assert len(tool.requests) == 1
    assert len(payloads(store, "model.called")) == 3
    (prediction,) = payloads(store, "prediction.frozen")
    assert len(payloads(store, "attempt.started")) == 1
    assert len(prediction.sources) == 4, "all calls of the attempt, those before the stop too"


def test_a_cancelled_run_leaves_its_attempts_open_and_its_calls_on_record() -> None:
    store = memory_store()
    with serve_openai() as server:
        server.text = DIRECT_ANSWER
        server.replies.append(Reply(hang=True))
        prepare(store, [question("a")], [direct(OPENAI)])

        async def stop_soon() -> None:
            session = lambda: Session(Unclosed(store), clock=clock(), actor="t")  # noqa: E731
            task = asyncio.create_task(run_all(session, over_http(server.url)))
            while not server.arrived:  # noqa: ASYNC110 - the server lives in another thread
                await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        asyncio.run(stop_soon())
        (call,) = payloads(store, "model.called")
        assert (call.error or "").startswith("cancelled")
        assert payloads(store, "attempt.failed") == []
        assert jobs_left(store) == 1
        assert again(store, over_http(server.url)).frozen == 1
        assert len(server.by_key) == 1, "the same call after the stop has the same key"


def test_the_run_comes_out_the_same_from_its_log_alone() -> None:
    setup = RunSetup(provider="scripted", model="m", tools=("corpus_search",), draws=2)
    tool = FakeSearch(lambda _: (found("OLD", "2025-05-01T00:30:00.000000Z"), found("X", None)))
    methods = [
        strategy_method(NO_AGENT, setup),
        strategy_method(AGENT, setup),
        baseline_method("structured_direct", setup),
    ]
    calls: list[int] = []

    def script(request: ModelRequest) -> ScriptedTurn:
        calls.append(1)
        if request.tools and len(request.messages) == 2:
            return (ToolCallRequest("c1", "corpus_search", '{"query":"bridge"}'),)
        return "nothing" if len(calls) == 4 else digest_direct(request)

    questions = [question(name) for name in "abc"]
    store, tally = run_in_memory(
        questions, methods, scripted(script, tools={"corpus_search": tool}, concurrency=4)
    )
    assert tally.done == 18
    cells = asyncio.run(rerun(store, clock=clock(), entropy=SeededEntropy("r"), prices=CentACall()))
    assert len(cells) == 18
    assert all(cell.is_same for cell in cells)


def test_a_changed_answer_in_the_log_comes_out_different(monkeypatch: pytest.MonkeyPatch) -> None:
    store, _ = run_in_memory([question("a")], [direct()], scripted(answer))
    monkeypatch.setattr(
        "forecasting.strategies.direct.format_card", lambda card: f"changed {card.card_id}"
    )
    (cell,) = asyncio.run(
        rerun(store, clock=clock(), entropy=SeededEntropy("r"), prices=CentACall())
    )
    assert (cell.recorded, cell.again) == ("0.35", None)
