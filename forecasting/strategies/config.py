"""Strategy files: YAML in, strict strategies out (the eval framework's section 5.2).

A file holds one strategy, a list of them, or `strategies: [...]`. Unknown keys are refused: a
misspelt toggle that silently keeps its default has changed more than one published ranking.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ledger.errors import BadInputError
from ledger.events.base import Identifier, Name
from ledger.field_errors import describe_problem
from ledger.strict_yaml import load_yaml

ENFORCED_MODEL = "gpt-5-nano"
"""The model that every stage runs on unless the plan says otherwise (the framework's 5.2)."""

STAGES = ("outside_view", "inside_view", "final_forecast")
FORBIDDEN_SETTINGS = frozenset({"EVAL_AS_OF_TIME", "EVAL_AS_OF_OVERRIDE"})
"""Settings that would move the timebox from outside; as-of is the question's and nobody else's."""


class Strategy(BaseModel):
    """One strategy with the framework's defaults.

    `model_overrides` gives a stage of STAGES, or `default`, another requested model; the enforced
    one is recorded beside it. `env_overrides` are settings that are recorded with the run; none of
    them reaches the process environment, which two questions at once would share.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: Identifier
    enabled: bool
    outside_view_enabled: bool = True
    inside_view_enabled: bool = True
    prediction_market_enabled: bool = False
    final_forecast_use_agent: bool = True
    num_runs: Annotated[int, Field(ge=1, le=1000)] | None = None
    env_overrides: dict[str, str] = Field(default_factory=dict)
    model_overrides: dict[str, Name] = Field(default_factory=dict)

    def requested_model(self, stage: str) -> str | None:
        """Return the model that the file asks for in a stage; None where it does not say."""
        return self.model_overrides.get(stage) or self.model_overrides.get("default")


def load_strategies(paths: Sequence[Path]) -> tuple[Strategy, ...]:
    """Read strategy files; disabled strategies are left out.

    Raises:
        BadInputError: the file, the strategy's place, the field, what is expected; or two with one
            id, or none that is enabled.
    """
    strategies = [strategy for path in paths for strategy in _read_file(path)]
    twice = [key for key, count in Counter(s.id for s in strategies).items() if count > 1]
    if twice:
        raise BadInputError(
            f"two strategies have the id {twice[0]!r}", remedy="Give each its own id."
        )
    enabled = tuple(strategy for strategy in strategies if strategy.enabled)
    if not enabled:
        raise BadInputError("no strategy is enabled", remedy="Set enabled: true in one of them.")
    return enabled


def _read_file(path: Path) -> list[Strategy]:
    value = load_yaml(path)
    if isinstance(value, Mapping) and "strategies" in value:
        if set(value) != {"strategies"} or not isinstance(value["strategies"], list):
            raise BadInputError(
                "`strategies` is a list and stands alone", where=str(path), remedy="See docs."
            )
        return [
            _strategy(item, f"{path}: strategies[{i}]")
            for i, item in enumerate(value["strategies"])
        ]
    if isinstance(value, list):
        return [_strategy(item, f"{path}: [{i}]") for i, item in enumerate(value)]
    return [_strategy(value, str(path))]


def _strategy(value: object, where: str) -> Strategy:
    if not isinstance(value, Mapping):
        raise BadInputError(
            "is not a strategy; expected a mapping with id and enabled", where=where
        )
    try:
        strategy = Strategy.model_validate(_settings_as_text(value))
    except ValidationError as error:
        field, problem = describe_problem(error, Strategy)
        raise BadInputError(problem, where=f"{where}: {field}") from error
    for name in strategy.env_overrides:
        if name in FORBIDDEN_SETTINGS:
            raise BadInputError(
                f"{name} would move the timebox",
                where=f"{where}: env_overrides",
                remedy="Remove it; as-of belongs to the question.",
            )
    for stage in strategy.model_overrides:
        if stage not in (*STAGES, "default"):
            raise BadInputError(
                f"no stage {stage!r}; expected one of {', '.join((*STAGES, 'default'))}",
                where=f"{where}: model_overrides",
            )
    return strategy


def _settings_as_text(value: Mapping[str, Any]) -> dict[str, Any]:
    """Settings are text whatever YAML makes of them: `LOG_ENABLE: true` means the word."""
    settings = value.get("env_overrides")
    if not isinstance(settings, Mapping):
        return dict(value)
    words = {True: "true", False: "false", None: ""}
    plain = {
        name: words[item] if item is None or isinstance(item, bool) else str(item)
        for name, item in settings.items()
        if item is None or isinstance(item, (bool, int, str))
    }
    # What is neither stays as it was, so that validation names it.
    return {**value, "env_overrides": {**settings, **plain}}
