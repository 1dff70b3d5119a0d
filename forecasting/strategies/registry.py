"""The strategies at a glance: name, function, prompts, registered parameters.

To add one: a function from Context to Forecast in a file of its own, and a row here. `uniform` has
no function: it is a constant of the plan, and no call is made for it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from forecasting.context import Context, Forecast
from forecasting.strategies.ai_prophet import forecast_ai_prophet
from forecasting.strategies.direct import forecast_direct, forecast_structured
from forecasting.strategies.market_price import forecast_market_price
from forecasting.strategies.pipeline import forecast_pipeline
from ledger.errors import BadInputError

Step = Callable[[Context], Awaitable[Forecast]]


@dataclass(frozen=True, slots=True)
class StrategyKind:
    """One strategy.

    Attributes:
        name: as a plan's `strategy` has it; a hyphen there is read as an underscore.
        label: for tables.
        forecast: from an attempt's context to its forecast; None for a constant.
        prompt: the one prompt of a single-prompt strategy.
        parameters: what a plan made for it registers.
        asks_model: whether it needs a route to a model.
    """

    name: str
    label: str
    forecast: Step | None
    prompt: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    asks_model: bool = True


_ONE_CALL: Final = {"temperature": "0.2", "max_output_tokens": "4096"}
"""The direct baselines' settings in the paper's Appendix F and Table 8."""

STRATEGIES: tuple[StrategyKind, ...] = (
    StrategyKind("uniform", "Uniform binary", None, asks_model=False),
    StrategyKind("direct_json", "Direct JSON", forecast_direct, "direct_json.1", _ONE_CALL),
    StrategyKind(
        "structured_direct",
        "Structured direct",
        forecast_structured,
        "structured_direct.1",
        _ONE_CALL,
    ),
    StrategyKind(
        "ai_prophet",
        "ai-prophet FORECAST style",
        forecast_ai_prophet,
        "ai_prophet.1",
        {"max_output_tokens": "4096", "market_line": "false"},
    ),
    StrategyKind("market_price", "Market or crowd price", forecast_market_price, asks_model=False),
    StrategyKind("pipeline", "Forecast pipeline", forecast_pipeline),
)


def find_strategy(name: str) -> StrategyKind:
    """Return the strategy that a plan names.

    Raises:
        BadInputError: there is none.
    """
    for kind in STRATEGIES:
        if kind.name == name.replace("-", "_"):
            return kind
    known = ", ".join(kind.name for kind in STRATEGIES)
    raise BadInputError(f"the runner has no strategy {name!r}", remedy=f"It has: {known}.")
