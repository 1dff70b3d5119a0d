"""An imported set as the files of a card pack: cards public, labels apart, exclusions said."""

from __future__ import annotations

from typing import Any, Final

import yaml

from cards.pack import HEADER_FILE, LABELS_FILE
from forecasting.questions.market_file import format_market_prices
from forecasting.questions.question import ImportedSet, Question, format_context
from ledger.errors import BadInputError

PRICES_FILE: Final = "market_prices.json"


def format_pack(imported: ImportedSet, *, pack_id: str, title: str, source: str) -> dict[str, str]:
    """Write an imported set as the files of a pack, by path within its folder.

    Args:
        imported: what an importer gave.
        pack_id: an identifier; the pack's folder may have any name.
        title: for lists.
        source: where the questions come from, in a few words.

    Raises:
        BadInputError: no question, or a resolved one without label, deadline or text: a pack could
            not hold it.
    """
    if not imported.questions:
        raise BadInputError("holds no question that could make a card", where=source)
    labels = {label.card_id: label for label in imported.labels}
    left_out = "; ".join(f"{x.question_id} ({x.reason})" for x in imported.exclusions) or "none"
    header = {
        "id": pack_id,
        "title": title,
        "licence": f"That of {source}.",
        "provenance": f"Imported from {source}. Left out: {left_out}.",
    }
    files = {HEADER_FILE: _dump(header)}
    for question in imported.questions:
        _check(question, has_label=question.question_id in labels)
        files[f"cards/{question.question_id}.yaml"] = _dump(_card(question, source))
    private = [label.model_dump(mode="json") for label in imported.labels]
    if private:
        files[LABELS_FILE] = _dump({"labels": private})
    if any(question.market_prices for question in imported.questions):
        files[PRICES_FILE] = format_market_prices(imported.questions)
    return files


def _check(question: Question, *, has_label: bool) -> None:
    if question.kind != "resolved":
        return
    if not has_label:
        raise BadInputError(
            "has no label", where=question.question_id, remedy="Give the file of resolutions."
        )
    if question.deadline is None:
        raise BadInputError(
            "has no deadline that was public", where=question.question_id, remedy="Leave it out."
        )


def _card(question: Question, source: str) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": question.question_id,
        "kind": question.kind,
        "title": question.title,
        "question": question.question,
        "as_of": question.as_of,
        "deadline": question.deadline,
        "domain": question.domain,
        "source_class": question.origin,
        "leakage_risk": question.leakage_risk,
        "public_context": format_context(question) or question.title,
        "source_packet": [item.model_dump(mode="json") for item in question.source_packet],
        "endpoints": [item.model_dump(mode="json") for item in question.endpoints],
        "masking_rule": question.masking_rule,
        "masks": [item.model_dump(mode="json") for item in question.masks],
        "provenance": f"Imported from {source}; {question.url or 'no address is given'}.",
    }
    return {name: value for name, value in fields.items() if value is not None}


def _dump(value: object) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100)
