"""The direct baselines: one call on the full card, no search (the paper's Appendix F).

Both prompts are our own wording with the content that the appendix requires. `direct_json` asks for
one forecast and its reasons; `structured_direct` separates evidence for and against, base rates of
the card, uncertainties and a calibration note. The probability comes last, after its reasons.
"""

from __future__ import annotations

from collections.abc import Callable

from forecasting.answer import AnswerForm, forecast_schema
from forecasting.context import Context, Forecast
from forecasting.ports import JsonObject
from forecasting.strategies.card_text import format_card, list_field, text_field

ROLE = "forecaster"

Fields = dict[str, JsonObject]


async def forecast_direct(context: Context) -> Forecast:
    """`direct_json`: one forecast, its main drivers and uncertainties."""
    return await _ask(context, "direct_json", _direct_fields)


async def forecast_structured(context: Context) -> Forecast:
    """`structured_direct`: evidence for and against before the probability."""
    return await _ask(context, "structured_direct", _structured_fields)


async def _ask(
    context: Context, condition: str, fields: Callable[[AnswerForm], Fields]
) -> Forecast:
    form = context.settings.form
    given: Fields = {
        "case_id": {"type": "string", "enum": [context.card.card_id]},
        "condition": {"type": "string", "enum": [condition]},
    }
    warning: Fields = {"leakage_warning": {"anyOf": [text_field(form), {"type": "null"}]}}
    prompt = context.prompt("forecast")
    messages = prompt.fill(
        {
            "as_of_date": context.today,
            "card_json": format_card(context.card),
            "probability_rule": _rule(form),
        }
    )
    output = forecast_schema(form, {**given, **fields(form), **warning, **_counterpart(form)})
    return await context.ask(ROLE, prompt, messages, output)


def _direct_fields(form: AnswerForm) -> Fields:
    return {
        "main_drivers": list_field(form),
        "main_uncertainties": list_field(form),
        "rationale": text_field(form),
        "confidence": {"type": "string", "enum": ["low", "medium", "high"]},
    }


def _structured_fields(form: AnswerForm) -> Fields:
    return {
        "evidence_for": list_field(form),
        "evidence_against": list_field(form),
        "base_rate": text_field(form),
        "uncertainties": list_field(form),
        "calibration_note": text_field(form),
    }


def _counterpart(form: AnswerForm) -> Fields:
    # A percentage has no p_no beside it: a grammar cannot say that two numbers sum to 100.
    return {"p_no": form.schema} if form.name == "p_yes" else {}


def _rule(form: AnswerForm) -> str:
    if form.name == "p_yes":
        return "p_yes and p_no are between 0 and 1 and sum to 1."
    return f"Give {form.wording}."
