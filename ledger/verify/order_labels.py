"""Order rules of the closing, of labels and of annulled cards (docs/spec/events.md)."""

from __future__ import annotations

from collections.abc import Iterator

from ledger.verify.integrity import is_opened_by
from ledger.verify.order_cards import fields
from ledger.verify.order_plan import show_cell
from ledger.verify.state import Cell, Plan, Problem, State, Withheld, cell_of, read_private
from ledger.verify.structure import Event
from ledger.verify.text import plural

LABEL_TAG = b"forecast-ledger/label/v1\x00"


def close_once(state: State, _event: Event) -> Problem:
    """`order.close-once`."""
    first = state.closed_seq
    return None if first is None else f"predictions were closed by event {first}"


def close_counts(state: State, event: Event) -> Problem:
    """`order.close-counts`."""
    payload, plan = fields(event), state.plan
    counts = {"attempts": state.attempts, "failed_attempts": state.failed_attempts}
    if plan is not None:
        counts["expected"] = plan.count_cells()
        counts["frozen"] = sum(map(plan.is_registered, state.frozen))
    for key, count in counts.items():
        if payload[key] != count:
            what = f"{key} is {payload[key]:,}, the log holds {count:,}"
            return state.absent(what, "prediction.frozen") if key == "frozen" else what
    return _no_plan(state)


def close_complete(state: State, event: Event) -> Problem:
    """`order.close-complete`."""
    plan = state.plan
    if plan is None:
        return _no_plan(state)
    empty: set[Cell] = set()
    for item in fields(event)["empty"]:
        cell = cell_of(item)
        if not plan.is_registered(cell):
            return f"{show_cell(cell)} is declared empty and not registered"
        if cell in empty:
            return f"{show_cell(cell)} stands twice in empty"
        if cell in state.frozen:
            seq = state.frozen[cell].seq
            return f"{show_cell(cell)} is declared empty and was frozen by event {seq}"
        empty.add(cell)
    missing = _first_missing(state, plan, empty)
    if missing is None:
        return None
    what = f"{show_cell(missing)} is registered, neither frozen nor declared empty"
    return state.absent(what, "prediction.frozen")


def unseal_before_close(state: State, event: Event) -> Problem:
    """`order.unseal-before-close`."""
    if state.closed_seq is not None or fields(event)["waiver"] is not None:
        return None
    return "a label opens before predictions are closed, and without a waiver"


def unseal_too_early(state: State, event: Event) -> Problem:
    """`order.unseal-too-early`."""
    if state.plan is None:
        return _no_plan(state)
    due = state.plan.fields["labels_open_not_before"]
    at = event.envelope.recorded_at
    return None if at >= due else f"recorded at {at}, and the plan opens no label before {due}"


def unseal_target(state: State, event: Event) -> Problem:
    """`order.unseal-target`."""
    payload = fields(event)
    card_id, named = payload["card_id"], payload["sealed_seq"]
    if card_id in state.opened:
        return f"the label of {card_id} was opened by event {state.opened[card_id].seq}"
    seal = state.seals.get(card_id)
    if seal is None:
        return state.absent(f"no label of {card_id} was sealed", "label.sealed")
    if seal.seq == named:
        return None
    return f"it names event {named}; the label of {card_id} was sealed by event {seal.seq}"


def seal_opens(state: State, event: Event) -> Problem:
    """`label.seal`."""
    payload = fields(event)
    seal = state.seals_by_seq.get(payload["sealed_seq"])
    if seal is None:
        return None  # Nothing to open; `order.unseal-target` has said so.
    salt, data = bytes.fromhex(payload["salt"]), payload["private_json"].encode()
    if is_opened_by(seal.commitment, salt, data, LABEL_TAG):
        return None
    return f"salt and private bytes do not open the seal of event {seal.seq}"


def private_bytes(_state: State, event: Event) -> Problem:
    """`label.bytes`."""
    return read_private(fields(event))[1] or None


def label_dropped(state: State) -> Iterator[Problem]:
    """`order.label-dropped`, at the end of the log."""
    if state.first_unseal_seq is None:
        return
    if state.plan is None:
        yield _no_plan(state)
        return
    dropped = [
        card_id
        for card_id in state.plan.cards
        if card_id in state.cards
        and state.cards[card_id].kind == "resolved"
        and card_id not in state.opened
        and card_id not in state.annulled
    ]
    if dropped:
        what = f"{plural(len(dropped), 'label')} neither opened nor annulled, of {dropped[0]} first"
        yield state.absent(what, "label.unsealed", "card.annulled")


def revision(state: State, event: Event) -> Problem:
    """`order.revision`."""
    payload = fields(event)
    card_id, named = payload["card_id"], payload["supersedes_seq"]
    label = state.labels.get(card_id)
    if label is not None and label.seq == named:
        return None
    due = "none is in force" if label is None else f"event {label.seq} is in force"
    what = f"it supersedes event {named}; of {card_id} {due}"
    return state.absent(what, "label.unsealed", "label.revised")


def annulled_once(state: State, event: Event) -> Problem:
    """`order.annulled-once`."""
    card_id = fields(event)["card_id"]
    first = state.annulled.get(card_id)
    return None if first is None else f"{card_id} was annulled by event {first[0]}"


def annulled_after_unseal(state: State, event: Event) -> Problem:
    """`annulled-after-unseal`, a note."""
    card_id = fields(event)["card_id"]
    label = state.opened.get(card_id)
    if label is None:
        return None
    return f"{card_id} is annulled after its label was opened by event {label.seq}"


def label_waiver(_state: State, event: Event) -> Problem:
    """`label.waiver`, a note."""
    payload = fields(event)
    if payload["waiver"] is None:
        return None
    return f"the label of {payload['card_id']} opens under a waiver"


def _first_missing(state: State, plan: Plan, empty: set[Cell]) -> Cell | None:
    held = sum(map(plan.is_registered, state.frozen)) + len(empty)
    if held == plan.count_cells():
        return None
    # At most `held` cells are passed over, however many a plan registers.
    return next((c for c in plan.cells() if c not in state.frozen and c not in empty), None)


def _no_plan(state: State) -> Problem:
    if state.plan is not None or state.plan_seq is None:
        return None
    return Withheld(f"the plan in force, event {state.plan_seq}, is hidden")
