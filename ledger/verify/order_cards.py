"""Order rules of cards and seals (docs/spec/events.md, Order rules)."""

from __future__ import annotations

from typing import Any

from ledger.verify.state import Problem, State
from ledger.verify.structure import Event
from ledger.verify.text import show


def opened_first(_state: State, event: Event) -> Problem:
    """`order.opened-first`."""
    if (event.type == "ledger.opened") == (event.seq == 0):
        return None
    if event.seq == 0:
        return f"the log begins with {show(event.type)}"
    return "a second ledger.opened"


def card_once(state: State, event: Event) -> Problem:
    """`order.card-once`."""
    card_id = fields(event)["card"]["card_id"]
    first = state.cards.get(card_id)
    return None if first is None else f"{card_id} was frozen by event {first.seq}"


def card_before_use(state: State, event: Event) -> Problem:
    """`order.card-before-use`."""
    card_id = fields(event)["card_id"]
    if card_id in state.cards:
        return None
    return state.absent(f"{event.type} names {card_id}, which is not frozen", "card.frozen")


def source_after_as_of(_state: State, event: Event) -> Problem:
    """`order.source-after-as-of`."""
    card = fields(event)["card"]
    day = card["as_of"][:10]
    late = [
        s["dated"] for s in card["source_packet"] if s["dated"] is not None and s["dated"] > day
    ]
    if not late:
        return None
    return f"{card['card_id']} is as of {day} and holds a source dated {max(late)}"


def seal_once(state: State, event: Event) -> Problem:
    """`order.seal-once`."""
    card_id = fields(event)["card_id"]
    first = state.seals.get(card_id)
    return None if first is None else f"the label of {card_id} was sealed by event {first.seq}"


def seal_before_use(state: State, event: Event) -> Problem:
    """`order.seal-before-use`."""
    card_id = fields(event)["card_id"]
    card = state.cards.get(card_id)
    if card is None or card.kind != "resolved" or card_id in state.seals:
        return None
    return state.absent(f"{event.type} before the label of {card_id} is sealed", "label.sealed")


def fields(event: Event) -> dict[str, Any]:
    """Return the payload of an event that has one: the rules table asks only then."""
    return event.payload or {}
