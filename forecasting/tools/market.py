"""Market and crowd prices that came with the question, as a tool: dated, judged and recorded.

Nothing is looked up anywhere: a live price would know what happened since. Each price is a piece of
evidence like any other, so that the timebox decides on its date and the log says what was shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from forecasting.ports import Found, ToolAnswer, ToolRequest, ToolSpec
from forecasting.providers.wire import failed, to_raw
from forecasting.questions.question import MarketPrice
from ledger.canonical import canonicalize, parse_strict
from ledger.errors import BadInputError
from ledger.events.base import RawBytes

NAME: Final = "market_prices"
SPEC: Final = ToolSpec(
    name=NAME,
    description="Dated prices that came with the question.",
    parameters={
        "type": "object",
        "properties": {"card_id": {"type": "string"}},
        "required": ["card_id"],
        "additionalProperties": False,
    },
)


class MarketTool:
    """The tool `market_prices`: the prices of one card, chosen by its id.

    Args:
        prices: by card id; a card that is not in it has none.
    """

    def __init__(self, prices: Mapping[str, Sequence[MarketPrice]]) -> None:
        self._prices = prices

    @property
    def spec(self) -> ToolSpec:
        """How the tool is described; no model is offered it."""
        return SPEC

    async def search(self, request: ToolRequest) -> ToolAnswer:
        """Return the prices that the question brought, each under its own date."""
        if set(request.arguments) != {"card_id"}:
            failure = failed("bad_request", "the one argument is card_id")
            return ToolAnswer((), failure, {}, None, None, 0)
        prices = self._prices.get(request.arguments["card_id"], ())
        rows = [{"source": item.source, "at": item.at, "p_yes": item.p_yes} for item in prices]
        return ToolAnswer(
            found=tuple(map(_to_found, rows)),
            failure=None,
            limits_sent={"not_after": request.as_of},
            cost_usd="0",
            raw_answer=to_raw(canonicalize(rows)),
            latency_ms=0,
        )

    async def close(self) -> None:
        """Nothing to release."""


def read_recorded(raw: RawBytes) -> tuple[Found, ...]:
    """Read the prices out of an answer that an event holds.

    Raises:
        BadInputError: it is no answer of this tool.
    """
    try:
        return tuple(_to_found(row) for row in parse_strict(raw.data))
    except (TypeError, KeyError) as error:
        raise BadInputError("the recorded answer is no list of prices") from error


def _to_found(row: Mapping[str, str]) -> Found:
    return Found(
        url=None,
        title=row["source"],
        text=row["p_yes"],
        published=row["at"],
        crawled=None,
        snapshot=None,
    )
