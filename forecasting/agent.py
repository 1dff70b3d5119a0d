"""An agent: a model that may call the timeboxed search tools before it answers.

Its transcript is the log: every turn is a `model.called`, every tool call a `tool.called`. It is
offered the run's tools and nothing else, so there is no answer endpoint, no open network and no
argument that could carry a later date. Calls are bounded a tool and in all; beyond a bound a call
is answered with a sentence, and when nothing is left the tools are taken away and the answer is
asked for by schema.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from forecasting.answer import ReadProbability, forecast_schema, read_probability
from forecasting.context import Context, Forecast
from forecasting.ports import Message, ModelAnswer, ToolCallRequest, ToolSpec
from forecasting.strategies.card_text import text_field
from forecasting.tools.arguments import parse_arguments
from ledger.errors import BadInputError

CALLS_A_TURN: Final = 3
"""Tool calls of one turn that are carried out; the framework's agents make three at a time."""

_ANSWER_NOW: Final = "Now give your forecast as one JSON object that follows the schema."


@dataclass(slots=True)
class _Calls:
    """What was called so far; `is_begun` once the model has spoken at all."""

    by_tool: Counter[str] = field(default_factory=Counter)
    is_begun: bool = False

    def left(self, context: Context) -> int:
        return context.settings.tool_calls - self.by_tool.total()

    def refuse(self, context: Context, name: str) -> str | None:
        """Say why a tool cannot be called any more, None where it can."""
        if name not in context.settings.tools:
            return f"There is no tool {name[:60]!r}."
        if self.left(context) < 1:
            return "All tool calls are used. Give your forecast."
        if self.by_tool[name] >= context.settings.most_calls_of(name):
            return f"All calls of {name} are used."
        return None


async def run_agent(context: Context, role: str, values: dict[str, str]) -> Forecast:
    """Let the model search until it answers or its calls are used up.

    Args:
        context: the attempt; its settings name the tools and the bounds.
        role: as events name it, and the stage whose prompt is used.
        values: for the prompt; `tools` and `tool_calls` are added.

    Raises:
        NoForecastError: no answer, or none with a probability.
    """
    prompt = context.prompt(role)
    settings = context.settings
    names = ", ".join(settings.tools) or "none"
    messages = prompt.fill({**values, "tools": names, "tool_calls": str(settings.tool_calls)})
    offered = tuple(context.shared.tools[name].spec for name in settings.tools)
    calls = _Calls()
    while offered:
        answer = await context.call(role, prompt, messages, offered)
        if not answer.tool_calls:
            # The schema is not sent beside tools (some servers refuse that), so the answer may
            # already be good; else it is asked for again below, by schema.
            done = _read(context, answer)
            if done is not None:
                return Forecast(done, answer, prompt)
            messages += (Message("assistant", answer.text or ""),)
            calls.is_begun = True
            break
        messages += await _carry_out(context, answer, calls)
        calls.is_begun = True
        offered = _still_offered(context, offered, calls)
    if calls.is_begun:
        messages += (Message("user", _ANSWER_NOW),)
    form = settings.form
    output = forecast_schema(form, {"rationale": text_field(form)})
    return await context.ask(role, prompt, messages, output)


async def _carry_out(context: Context, answer: ModelAnswer, calls: _Calls) -> tuple[Message, ...]:
    turns = [Message("assistant", answer.text or "", tool_calls=answer.tool_calls)]
    for index, call in enumerate(answer.tool_calls):
        if index < CALLS_A_TURN:
            said = await _call_tool(context, call, calls)
        else:
            said = f"At most {CALLS_A_TURN} calls a turn are carried out."
        turns.append(Message("tool", said, call_id=call.call_id))
    return tuple(turns)


async def _call_tool(context: Context, call: ToolCallRequest, calls: _Calls) -> str:
    refusal = calls.refuse(context, call.name)
    if refusal is not None:
        return refusal
    calls.by_tool[call.name] += 1
    try:
        arguments = parse_arguments(call.arguments_json)
    except BadInputError as error:
        return f"The arguments cannot be read: {error}"
    return (await context.search(call.name, arguments)).format(context.as_of)


def _still_offered(
    context: Context, offered: tuple[ToolSpec, ...], calls: _Calls
) -> tuple[ToolSpec, ...]:
    return tuple(tool for tool in offered if calls.refuse(context, tool.name) is None)


def _read(context: Context, answer: ModelAnswer) -> ReadProbability | None:
    try:
        return read_probability(answer.text or "", context.settings.form)
    except BadInputError:
        return None
