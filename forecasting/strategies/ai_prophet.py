"""The ai-prophet baseline: its FORECAST stage alone, search and action off (Appendix H).

An expert forecaster's prompt with question, summary and key points, and a probability with a short
rationale for an answer. The package's own prompt holds the market price; whether the line is there
is the recorded parameter `market_line`, and where it is, the price is the question's own, dated and
not later than as-of.
"""

from __future__ import annotations

from forecasting.answer import forecast_schema
from forecasting.context import Context, Forecast
from forecasting.strategies.card_text import format_sources, text_field
from forecasting.strategies.market_price import find_price

ROLE = "forecaster"
_RULE = "- Respect the market price: depart from it only for a reason that it cannot hold yet."


async def forecast_ai_prophet(context: Context) -> Forecast:
    """`ai_prophet`: one call in FORECAST style."""
    line = rule = ""
    if "market_line" in context.settings.flags:
        price = await find_price(context)
        # Without a price the rule would speak of something that is not there.
        line = f"Market price: {price.p_yes} on {price.at[:10]}" if price else ""
        rule = _RULE if price else ""
    form = context.settings.form
    prompt = context.prompt("forecast")
    messages = prompt.fill(
        {
            "as_of_date": context.today,
            "market_rule": rule,
            "market_line": line,
            "question": context.card.question,
            "summary": context.card.public_context.strip(),
            "key_points": format_sources(context.card),
            "probability_wording": form.wording,
        }
    )
    output = forecast_schema(form, {"rationale": text_field(form)})
    return await context.ask(ROLE, prompt, messages, output)
