"""Order rules of the reveal: unsealing, revision, annulment and redaction."""

from __future__ import annotations

from pydantic import ValidationError

from ledger.canonical import is_canonical
from ledger.commitment import LABEL_TAG, check_commitment
from ledger.errors import OrderError
from ledger.events.anchor import PayloadRedacted
from ledger.events.card import CardAnnulled, LabelRevised, LabelUnsealed, PrivateObject
from ledger.protocol.setup_rules import frozen_card
from ledger.protocol.state import ProtocolState


def check_unsealed(state: ProtocolState, payload: LabelUnsealed, recorded_at: str) -> None:
    """Order of unsealing, then `label.seal` and `label.bytes`."""
    card = frozen_card(state, payload.card_id)
    if card.seal is None or card.sealed_seq != payload.sealed_seq or card.unsealed_seq is not None:
        raise OrderError(
            "order.unseal-target",
            f"the label of card {payload.card_id} is not sealed there, or is open already",
            seq=card.unsealed_seq if card.unsealed_seq is not None else card.sealed_seq,
            remedy="Open each sealed label once.",
        )
    if state.closed_seq is None and payload.waiver is None:
        raise OrderError(
            "order.unseal-before-close",
            f"the label of card {payload.card_id} cannot open before predictions are closed",
            remedy="Run `ledger close` first, or record a waiver with a reason.",
        )
    if state.plan is not None and recorded_at < state.plan.labels_open_not_before:
        raise OrderError(
            "order.unseal-too-early",
            f"labels may not open before {state.plan.labels_open_not_before}; it is {recorded_at}",
            seq=state.plan_seq,
            remedy="Wait, as the plan says.",
        )
    data = payload.private_json.encode("utf-8")
    if not check_commitment(LABEL_TAG, bytes.fromhex(payload.salt), data, card.seal.commitment):
        raise OrderError(
            "label.seal",
            f"the label offered for card {payload.card_id} does not open its seal",
            seq=card.sealed_seq,
            remedy="Use the vault that was written when the label was sealed.",
        )
    _check_private_bytes(payload.card_id, data)


def _check_private_bytes(card_id: str, data: bytes) -> None:
    try:
        private = PrivateObject.model_validate_json(data)
    except ValidationError:
        private = None
    if private is None or private.card_id != card_id or not is_canonical(data):
        raise OrderError(
            "label.bytes",
            f"the private bytes of card {card_id} are not the canonical object of that card",
            remedy="The seal was made over something else; annul the card.",
        )


def check_revised(state: ProtocolState, payload: LabelRevised) -> None:
    """`order.revision`."""
    card = frozen_card(state, payload.card_id)
    if card.label_seq is None or card.label_seq != payload.supersedes_seq:
        raise OrderError(
            "order.revision",
            f"event {payload.supersedes_seq} is not the label in force of card {payload.card_id}",
            seq=card.label_seq,
            remedy="Supersede the label in force.",
        )


def check_annulled(state: ProtocolState, payload: CardAnnulled) -> None:
    """`order.annulled-once`."""
    card = frozen_card(state, payload.card_id)
    if card.annulled_seq is not None:
        raise OrderError(
            "order.annulled-once",
            f"card {payload.card_id} is annulled already",
            seq=card.annulled_seq,
            remedy="An annulment stands; record a later resolution as a revision.",
        )


def check_redacted(state: ProtocolState, payload: PayloadRedacted) -> None:
    """`order.redaction`: an earlier event other than 0, once."""
    if not 0 < payload.target_seq < state.size or payload.target_seq in state.redacted:
        raise OrderError(
            "order.redaction",
            f"event {payload.target_seq} cannot be redacted",
            seq=payload.target_seq,
            remedy="Name an event after the first that still has its payload.",
        )
