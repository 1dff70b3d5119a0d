"""The agent: bounded calls, timeboxed tools, a transcript that is the log."""

from __future__ import annotations

import json

import pytest
from run_examples import AGENT, FakeSearch, found, payloads, question, run_in_memory, scripted

from forecasting.backtest import RunSetup, strategy_method
from forecasting.ports import ModelRequest, ToolCallRequest
from forecasting.providers.scripted import Script, ScriptedTurn
from ledger.store.memory import MemoryStore

SETUP = RunSetup(provider="scripted", model="m", tools=("corpus_search",))
EARLY, LATE = "2025-06-01T09:00:00.000000Z", "2025-07-04T09:00:00.000000Z"
FORECAST = '{"rationale":"r","p_yes":0.3}'


def call(
    number: int, arguments: str = '{"query":"bridge"}', name: str = "corpus_search"
) -> ToolCallRequest:
    return ToolCallRequest(f"c{number}", name, arguments)


def run(script: Script, **parameters: str) -> tuple[MemoryStore, FakeSearch]:
    tool = FakeSearch(lambda _: (found("THE-NEWS", EARLY), found("CANARY", LATE)), is_strict=True)
    method = strategy_method(AGENT, SETUP)
    method["parameters"] |= parameters
    store, _ = run_in_memory(
        [question("a")], [method], scripted(script, tools={"corpus_search": tool})
    )
    return store, tool


def test_it_searches_reads_what_was_kept_and_answers() -> None:
    requests: list[ModelRequest] = []

    def script(request: ModelRequest) -> ScriptedTurn:
        requests.append(request)
        return (call(1),) if len(requests) == 1 else FORECAST

    store, _ = run(script)
    (prediction,) = payloads(store, "prediction.frozen")
    assert prediction.p_yes == "0.3"
    types = [r.type for r in store.read() if r.seq in prediction.sources]
    assert types == ["model.called", "tool.called", "model.called"]
    first, second = requests
    assert [tool.name for tool in first.tools] == ["corpus_search"]
    assert first.output is None
    answer = second.messages[-1]
    assert (answer.role, answer.call_id) == ("tool", "c1")
    assert "THE-NEWS" in answer.content
    assert "CANARY" not in answer.content


def test_it_is_offered_the_runs_tools_and_no_answer_endpoint() -> None:
    def script(request: ModelRequest) -> ScriptedTurn:
        text = json.dumps([m.content for m in request.messages])
        assert "exa_answer" not in text
        assert {tool.name for tool in request.tools} <= {"corpus_search"}
        return FORECAST

    store, _ = run(script)
    assert len(payloads(store, "model.called")) == 1


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (call(1, name="exa_answer"), "There is no tool"),
        (call(1, "not json"), "cannot be read"),
        (call(1, '{"query":"x","end_published_date":"2026-01-01"}'), "does not exist"),
        (call(1, '{"query":"x","since":"2026-01-01"}'), "is after"),
    ],
)
def test_what_would_widen_the_timebox_is_answered_with_a_sentence(
    bad: ToolCallRequest, words: str
) -> None:
    seen: list[str] = []

    def script(request: ModelRequest) -> ScriptedTurn:
        seen.append(request.messages[-1].content)
        return (bad,) if len(seen) == 1 else FORECAST

    store, _ = run(script)
    assert payloads(store, "prediction.frozen")[0].p_yes == "0.3"
    assert words in seen[1]


def test_calls_are_bounded_a_tool_and_in_all_and_then_the_tools_are_gone() -> None:
    turns: list[ModelRequest] = []

    def script(request: ModelRequest) -> ScriptedTurn:
        turns.append(request)
        n = len(turns)
        if request.tools:
            return tuple(call(10 * n + i, f'{{"query":"q{n}{i}"}}') for i in range(5))
        return FORECAST

    store, tool = run(script, **{"tool_calls": "4", "tool_calls.corpus_search": "9"})
    assert len(tool.requests) == 4
    assert turns[-1].tools == ()
    assert turns[-1].output is not None, "then the answer is asked for by schema"
    contents = [m.content for m in turns[-1].messages if m.role == "tool"]
    assert sum("At most 3 calls a turn" in text for text in contents) == 4
    assert sum("All tool calls are used" in text for text in contents) == 2
    assert payloads(store, "prediction.frozen")


def test_an_unusable_free_answer_is_asked_for_again_by_schema() -> None:
    turns: list[ModelRequest] = []

    def script(request: ModelRequest) -> ScriptedTurn:
        turns.append(request)
        return "I think thirty percent." if len(turns) == 1 else FORECAST

    store, _ = run(script)
    first, second = turns
    assert first.tools
    assert not second.tools
    assert second.output is not None
    assert second.messages[-2].content == "I think thirty percent."
    assert payloads(store, "prediction.frozen")[0].p_yes == "0.3"


def test_a_search_that_is_asked_for_twice_is_made_once() -> None:
    turns: list[int] = []

    def script(_request: ModelRequest) -> ScriptedTurn:
        turns.append(1)
        return (call(len(turns)),) if len(turns) < 3 else FORECAST

    store, tool = run(script)
    assert len(tool.requests) == 1
    first, second = payloads(store, "tool.called")
    assert (first.cached_from_seq, second.cached_from_seq is None) == (None, False)
    assert second.evidence == first.evidence
