"""Dated market prices in a file beside a ledger: public, and never part of a card."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from forecasting.questions.question import MarketPrice, Question
from forecasting.questions.reading import ClosedRow, read_json, read_row
from ledger.canonical import format_readable
from ledger.errors import BadInputError
from ledger.events.base import Identifier, Moment, Name, Probability


class _PriceRow(ClosedRow):
    card_id: Identifier
    source: Name
    at: Moment
    p_yes: Probability


def format_market_prices(questions: Iterable[Question]) -> str:
    """Write the prices of questions as a JSON list of rows."""
    rows = [
        {"card_id": q.question_id, "source": p.source, "at": p.at, "p_yes": p.p_yes}
        for q in questions
        for p in q.market_prices
    ]
    return format_readable(rows).decode("utf-8")


def read_market_prices(path: Path) -> Mapping[str, tuple[MarketPrice, ...]]:
    """Read prices by card id.

    Raises:
        BadInputError: no such file, or rows that are no prices.
    """
    try:
        value = read_json(path.read_bytes(), where=str(path))
    except OSError as error:
        raise BadInputError(f"cannot be read: {error.strerror}", where=str(path)) from error
    if not isinstance(value, list):
        raise BadInputError("is not a list of prices", where=str(path))
    prices: dict[str, tuple[MarketPrice, ...]] = {}
    for index, item in enumerate(value):
        row = read_row(_PriceRow, item, where=f"{path}: [{index}]")
        known = prices.get(row.card_id, ())
        prices[row.card_id] = (*known, MarketPrice(row.source, row.at, row.p_yes))
    return prices
