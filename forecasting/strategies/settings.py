"""A registered method's parameters, read strictly: what goes to the model, what steers the run.

A plan registers one flat table of texts. Names of `forecasting.providers.parameters` go into each
request; the names below steer the strategy; anything else is refused, since a parameter that is
silently ignored would make the registered configuration a lie.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from forecasting.answer import FORMS, PROBABILITY, AnswerForm
from forecasting.prompt_text import Prompt, load_prompt
from forecasting.providers.parameters import PARAMETERS
from ledger.errors import BadInputError
from ledger.events.plan import MethodSpec

DEFAULT_TOOL_CALLS = 20
DEFAULT_CALLS_A_TOOL = 5
DEFAULT_REPAIR_TURNS = 1
DEFAULT_TIMEOUT_S = 120

_OF_THE_MODEL: Final = frozenset(parameter.name for parameter in PARAMETERS)
_FLAGS: Final = ("outside_view", "inside_view", "prediction_market", "final_agent", "market_line")
_RECORDED: Final = ("env.", "requested_model")
"""Written down for the reader and used by nothing: settings of the file, models it asked for."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a method's parameters say.

    Attributes:
        request: parameters of each request, as text.
        form: how a probability is asked for.
        repair_turns: how often to ask again after an unusable answer.
        timeout_s: of one attempt.
        flags: stages that are on; `market_line` shows the market price in the prompt.
        tools: search tools that are offered, in order.
        tool_calls: of all tools together in one agent; `calls_by_tool` bounds single ones.
        corpus_sha256: the registered corpus; None where any or none is used.
        prompts: prompts by stage, each checked against its registered digest.
    """

    request: Mapping[str, str] = field(default_factory=dict)
    form: AnswerForm = PROBABILITY
    repair_turns: int = DEFAULT_REPAIR_TURNS
    timeout_s: int = DEFAULT_TIMEOUT_S
    flags: frozenset[str] = frozenset()
    tools: tuple[str, ...] = ()
    tool_calls: int = DEFAULT_TOOL_CALLS
    calls_by_tool: Mapping[str, int] = field(default_factory=dict)
    corpus_sha256: str | None = None
    prompts: Mapping[str, Prompt] = field(default_factory=dict)

    def most_calls_of(self, tool: str) -> int:
        """Return how often an agent may call one tool."""
        return self.calls_by_tool.get(tool, DEFAULT_CALLS_A_TOOL)

    def for_draw(self, draw: int) -> Mapping[str, str]:
        """Return the request's parameters of a draw: a registered seed grows by one a draw.

        With one seed for all, every draw of a deterministic server would be the same answer.
        """
        seed = self.request.get("seed")
        if seed is None or draw == 1:
            return self.request
        return {**self.request, "seed": str(int(seed) + draw - 1)}


def read_settings(method: MethodSpec) -> Settings:
    """Read the parameters of a registered method.

    Raises:
        BadInputError: a name that is not known, a text of another form, or a prompt whose file is
            not the registered one.
    """
    parameters = dict(method.parameters)
    request = {name: parameters.pop(name) for name in method.parameters if name in _OF_THE_MODEL}
    where = f"method {method.id}: parameters"
    prompts = {
        name.removeprefix("prompt."): _read_prompt(parameters.pop(name), where)
        for name in method.parameters
        if name.startswith("prompt.")
    }
    if method.prompt_version is not None:
        pinned = f"{method.prompt_version} {method.prompt_digest or ''}".strip()
        prompts["forecast"] = _read_prompt(pinned, f"method {method.id}")
    calls = {
        name.removeprefix("tool_calls."): _read_count(name, parameters.pop(name), where)
        for name in method.parameters
        if name.startswith("tool_calls.")
    }
    flags = {name for name in _FLAGS if _read_flag(name, parameters.pop(name, "false"), where)}
    tools = tuple(part for part in parameters.pop("tools", "").split(",") if part)
    form = _read_form(parameters.pop("answer_form", PROBABILITY.name), where)
    counts = {
        name: _read_count(name, parameters.pop(name, str(default)), where)
        for name, default in (
            ("repair_turns", DEFAULT_REPAIR_TURNS),
            ("timeout_s", DEFAULT_TIMEOUT_S),
            ("tool_calls", DEFAULT_TOOL_CALLS),
        )
    }
    corpus = parameters.pop("corpus_sha256", None)
    for name in parameters:
        if not name.startswith(_RECORDED):
            raise BadInputError(
                f"the runner knows no parameter {name!r}", where=where, remedy="Correct the plan."
            )
    return Settings(
        request=request,
        form=form,
        repair_turns=counts["repair_turns"],
        timeout_s=counts["timeout_s"],
        flags=frozenset(flags),
        tools=tools,
        tool_calls=counts["tool_calls"],
        calls_by_tool=calls,
        corpus_sha256=corpus,
        prompts=prompts,
    )


def pin_prompt(version: str) -> str:
    """Write a prompt as a plan registers it: version and digest of the file."""
    return f"{version} {load_prompt(version).digest}"


def _read_prompt(pinned: str, where: str) -> Prompt:
    version, _, digest = pinned.partition(" ")
    prompt = load_prompt(version)
    if digest and digest != prompt.digest:
        raise BadInputError(
            f"the file of prompt {version} is not the registered one",
            where=where,
            remedy="Restore the file, or register a new version.",
        )
    return prompt


def _read_flag(name: str, text: str, where: str) -> bool:
    if text not in {"true", "false"}:
        raise BadInputError(f"{text[:40]!r} is neither true nor false", where=f"{where}.{name}")
    return text == "true"


def _read_count(name: str, text: str, where: str) -> int:
    if not re.fullmatch(r"0|[1-9][0-9]{0,4}", text):
        raise BadInputError(f"{text[:40]!r} is not a whole number", where=f"{where}.{name}")
    return int(text)


def _read_form(name: str, where: str) -> AnswerForm:
    for form in FORMS:
        if form.name == name:
            return form
    known = " and ".join(form.name for form in FORMS)
    raise BadInputError(
        f"{name[:40]!r} is no form of an answer", where=where, remedy=f"Known are {known}."
    )
