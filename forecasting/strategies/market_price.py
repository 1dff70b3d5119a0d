"""The market or crowd price that came with a question: a lane of the pipeline and a baseline.

Prices are evidence: they are recorded with their times and judged by the timebox, and only one that
was kept is ever used. Where none was kept there is no forecast, never 0.5.
"""

from __future__ import annotations

from forecasting.answer import ReadProbability
from forecasting.context import Context, Forecast, NoForecastError
from forecasting.questions.question import MarketPrice
from forecasting.tools.market import NAME
from ledger.decimals import round_probability


async def forecast_market_price(context: Context) -> Forecast:
    """`market_price`: the last price that was public at as-of; no model is asked.

    Raises:
        NoForecastError: the question brought no price that the timebox keeps.
    """
    price = await find_price(context)
    if price is None:
        raise NoForecastError("unusable_answer", "the question has no price dated before as-of")
    read = ReadProbability(price.p_yes, round_probability(price.p_yes), {"p_yes": price.p_yes})
    return Forecast(read, answer=None, prompt=None)


async def find_price(context: Context) -> MarketPrice | None:
    """Return the latest price that the timebox keeps; None where there is none."""
    if NAME not in context.shared.tools:
        return None
    searched = await context.search(NAME, {"card_id": context.card.card_id})
    kept = [item.found for item in searched.judged if item.evidence.kept]
    dated = [(item.published, item) for item in kept if item.published is not None]
    if not dated:
        return None
    at, item = max(dated, key=lambda pair: pair[0])
    return MarketPrice(item.title, at, item.text)
