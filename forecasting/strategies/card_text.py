"""How a frozen card is put into words for a prompt: the card alone, never its label or its file."""

from __future__ import annotations

from typing import Final

from forecasting.answer import AnswerForm
from forecasting.ports import JsonObject
from ledger.canonical import format_readable
from ledger.events.card import PublicCard

_SHOWN: Final = (
    "card_id",
    "title",
    "question",
    "as_of",
    "deadline",
    "public_context",
    "source_packet",
    "endpoints",
    "masking_rule",
)
_SHORT_TEXT: Final = 120
_FEW: Final = 2


def format_card(card: PublicCard) -> str:
    """Write a card as JSON for a prompt; digests of forbidden strings stay out."""
    return format_readable(card.model_dump(mode="json", include=set(_SHOWN))).decode("utf-8")


def format_sources(card: PublicCard) -> str:
    """Write the source packet as a list, each note with its day."""
    lines = [f"- {item.dated or 'undated'}: {item.text.strip()}" for item in card.source_packet]
    return "\n".join(lines) or "- none"


def format_case(card: PublicCard) -> str:
    """Write context and source packet for a prompt that takes no JSON."""
    if not card.source_packet:
        return card.public_context.strip()
    return f"{card.public_context.strip()}\n\nKey points:\n{format_sources(card)}"


def format_deadline(card: PublicCard) -> str:
    """Write the last day that counts."""
    return "not given" if card.deadline is None else card.deadline[:10]


def text_field(form: AnswerForm) -> JsonObject:
    """Return the schema of a text; bounded where a grammar would let a small model go on for ever.

    Local grammars enforce `maxLength`; hosted strict modes do not take it.
    """
    if form.name == "p_yes":
        return {"type": "string"}
    return {"type": "string", "maxLength": _SHORT_TEXT}


def list_field(form: AnswerForm, item: JsonObject | None = None) -> JsonObject:
    """Return the schema of a list of texts, or of the items given; bounded like `text_field`."""
    items = text_field(form) if item is None else item
    if form.name == "p_yes":
        return {"type": "array", "items": items}
    return {"type": "array", "items": items, "maxItems": _FEW}


def object_field(**fields: JsonObject) -> JsonObject:
    """Return the schema of an object with exactly these fields."""
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }
