"""Order rules of what comes first: opening, cards, seals and the plan (docs/spec/events.md)."""

from __future__ import annotations

from ledger.errors import OrderError
from ledger.events.anchor import LedgerOpened
from ledger.events.card import CardFrozen, LabelSealed
from ledger.events.endpoint import ClaimRecorded, EndpointRejected
from ledger.events.plan import PlanAmended, PlanPreregistered
from ledger.protocol.state import CardState, ProtocolState


def check_opened(state: ProtocolState, _payload: LedgerOpened) -> None:
    """`order.opened-first`."""
    if state.size:
        raise OrderError(
            "order.opened-first",
            "the ledger is open already",
            seq=0,
            remedy="Use another file for another ledger.",
        )


def check_card_frozen(state: ProtocolState, payload: CardFrozen) -> None:
    """`order.card-once` and `order.source-after-as-of`."""
    card = payload.card
    earlier = state.cards.get(card.card_id)
    if earlier is not None:
        raise OrderError(
            "order.card-once",
            f"card {card.card_id} is frozen already",
            seq=earlier.frozen_seq,
            remedy="A frozen card never changes: give a new card a new id.",
        )
    for source in card.source_packet:
        if source.dated is not None and source.dated > card.as_of[:10]:
            raise OrderError(
                "order.source-after-as-of",
                f"card {card.card_id} cites a source of {source.dated}, after its as-of date"
                f" {card.as_of[:10]}",
                remedy="Remove the source or correct its date.",
            )


def check_label_sealed(state: ProtocolState, payload: LabelSealed) -> None:
    """`order.seal-once`, after `order.card-before-use`."""
    card = frozen_card(state, payload.card_id)
    if card.sealed_seq is not None:
        raise OrderError(
            "order.seal-once",
            f"the label of card {payload.card_id} is sealed already",
            seq=card.sealed_seq,
            remedy="Record a later resolution with `ledger unseal` and a revision.",
        )


def check_plan(state: ProtocolState, payload: PlanPreregistered) -> None:
    """`order.plan-once` and `order.plan-after-unseal`."""
    if state.plan_seq is not None:
        raise OrderError(
            "order.plan-once",
            f"plan {payload.plan.plan_id} cannot replace the registered plan",
            seq=state.plan_seq,
            remedy="Change a plan with `ledger amend` and a reason.",
        )
    _check_before_labels(state)


def check_amended(state: ProtocolState, payload: PlanAmended) -> None:
    """`order.plan-once`, `-amends-current`, `-plan-after-unseal` and `-plan-keeps-cells`."""
    if state.plan_seq is None:
        raise OrderError(
            "order.plan-once",
            "there is no plan to amend",
            remedy="Register one with `ledger preregister PLAN.yaml` first.",
        )
    if payload.amends_seq != state.plan_seq:
        raise OrderError(
            "order.amends-current",
            f"the amendment names event {payload.amends_seq}, which is not the plan in force",
            seq=state.plan_seq,
            remedy="Amend the plan in force.",
        )
    _check_before_labels(state)
    methods = {method.id: method for method in payload.plan.methods}
    cards = frozenset(payload.plan.card_set.cards)
    for cell, (seq, _) in state.cells.items():
        method = methods.get(cell.method)
        before = state.methods.get(cell.method)
        if (
            method is None
            or cell.card_id not in cards
            or cell.draw > method.draws
            or method.source == "constant"
            or (before is not None and method.extraction_rule != before.extraction_rule)
        ):
            raise OrderError(
                "order.plan-keeps-cells",
                f"the new plan drops or re-extracts the frozen cell {'/'.join(map(str, cell))}",
                seq=seq,
                remedy="Keep every frozen method, card, draw and extraction rule.",
            )


def check_named_card(state: ProtocolState, payload: EndpointRejected | ClaimRecorded) -> None:
    """`order.card-before-use` for events that name a card and nothing else of the plan."""
    frozen_card(state, payload.card_id)


def frozen_card(state: ProtocolState, card_id: str) -> CardState:
    """`order.card-before-use`: return the frozen card or refuse."""
    card = state.cards.get(card_id)
    if card is None:
        raise OrderError(
            "order.card-before-use",
            f"card {card_id} is not frozen",
            remedy="Freeze it with `ledger cards freeze` first.",
        )
    return card


def _check_before_labels(state: ProtocolState) -> None:
    if state.first_unsealed_seq is not None:
        raise OrderError(
            "order.plan-after-unseal",
            "a plan cannot be registered or changed after a label was opened",
            seq=state.first_unsealed_seq,
            remedy="Start a new ledger with new cards.",
        )
