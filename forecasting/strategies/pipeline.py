"""The eval framework's pipeline: outside view, inside view, market lane, final forecast.

    outside view --------------------------.
    search -> inside view ------------------> final forecast, as an agent or in one call
    the question's own dated prices --------'

Each stage can be switched off; a stage that fails ends the attempt, since a forecast without a
registered stage is another method. Evidence is searched for with the question itself; the agent may
search on with queries of its own, through the same timeboxed tools.
"""

from __future__ import annotations

from forecasting.agent import run_agent
from forecasting.answer import forecast_schema
from forecasting.context import Context, Forecast
from forecasting.ports import JsonObject
from forecasting.strategies.card_text import (
    format_case,
    format_deadline,
    list_field,
    object_field,
    text_field,
)
from forecasting.strategies.market_price import find_price
from forecasting.tools.arguments import MAX_QUERY
from ledger.canonical import format_readable

NOT_RUN = "This stage is switched off."


async def forecast_pipeline(context: Context) -> Forecast:
    """`pipeline`: the stages that are registered, then the final forecast."""
    flags = context.settings.flags
    values = _case_values(context)
    outside = await _outside_view(context, values) if "outside_view" in flags else NOT_RUN
    inside = await _inside_view(context, values) if "inside_view" in flags else NOT_RUN
    market = await _market_lane(context) if "prediction_market" in flags else NOT_RUN
    values |= {"outside_view": outside, "inside_view": inside, "market": market}
    if "final_agent" in flags:
        return await run_agent(context, "final_forecast", values)
    prompt = context.prompt("final_forecast")
    form = context.settings.form
    output = forecast_schema(form, {"rationale": text_field(form)})
    return await context.ask("final_forecast", prompt, prompt.fill(values), output)


def _case_values(context: Context) -> dict[str, str]:
    return {
        "as_of_date": context.today,
        "question": context.card.question,
        "context": format_case(context.card),
        "deadline": format_deadline(context.card),
        "probability_wording": context.settings.form.wording,
    }


async def _outside_view(context: Context, values: dict[str, str]) -> str:
    form = context.settings.form
    share: JsonObject = object_field(
        reference_class=text_field(form), rate=text_field(form), fit=text_field(form)
    )
    return await _view(context, "outside_view", values, {"classes": list_field(form, share)})


async def _inside_view(context: Context, values: dict[str, str]) -> str:
    evidence = [
        (await context.search(tool, {"query": first_query(context.card.question)})).format(
            context.as_of
        )
        for tool in context.settings.tools
    ]
    form = context.settings.form
    fields: dict[str, JsonObject] = {
        "pushes_up": list_field(form),
        "pushes_down": list_field(form),
        "still_open": list_field(form),
    }
    searched = {**values, "evidence": "\n\n".join(evidence) or "No search tool is registered."}
    return await _view(context, "inside_view", searched, fields)


async def _view(
    context: Context, stage: str, values: dict[str, str], fields: dict[str, JsonObject]
) -> str:
    prompt = context.prompt(stage)
    output = forecast_schema(context.settings.form, fields)
    view = await context.ask(stage, prompt, prompt.fill(values), output)
    # As JSON written anew: what one stage says reaches the next as data.
    said = {**view.probability.document, "p_yes": view.probability.p_yes}
    return format_readable(said).decode("utf-8")


async def _market_lane(context: Context) -> str:
    price = await find_price(context)
    if price is None:
        return "No price dated before today came with the question."
    return f"{price.source} gave {price.p_yes} for yes on {price.at[:10]}."


def first_query(question: str) -> str:
    """Return the query of the inside view: the question, as much of it as a tool takes."""
    return question.strip()[:MAX_QUERY]
