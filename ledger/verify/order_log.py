"""Order rules of the log about itself: redactions, checkpoints, reports (docs/spec/events.md)."""

from __future__ import annotations

from ledger.verify.note import NoteError, parse_checkpoint
from ledger.verify.order_cards import fields
from ledger.verify.scores import ScoreSheet, Unscorable, differs
from ledger.verify.state import Problem, State, Withheld
from ledger.verify.structure import Event
from ledger.verify.text import show

_SCORED = ("card.frozen", "prediction.frozen", "label.unsealed", "label.revised", "card.annulled")


def redaction(state: State, event: Event) -> Problem:
    """`order.redaction`."""
    payload = fields(event)
    target = payload["target_seq"]
    if target == 0 or target >= event.seq:
        return f"it names event {target}"
    if target in state.redactions:
        return f"event {target} was redacted by event {state.redactions[target]}"
    if state.log.commitment(target) != payload["commitment"]:
        return f"it names another commitment than that of event {target}"
    return None


def anchor(state: State, event: Event) -> Problem:
    """`order.anchor`."""
    payload = fields(event)
    try:
        checkpoint = parse_checkpoint(payload["checkpoint"])
    except NoteError as error:
        return str(error)
    if checkpoint.size != payload["tree_size"]:
        return f"tree_size is {payload['tree_size']}, the checkpoint's size {checkpoint.size}"
    if checkpoint.size > event.seq:
        return f"a checkpoint of size {checkpoint.size} in event {event.seq}"
    if state.origin is None:
        return state.absent("the log's origin is not known", "ledger.opened")
    if checkpoint.origin != state.origin:
        return f"a checkpoint of {show(checkpoint.origin)}, not of {show(state.origin)}"
    root = state.log.root(checkpoint.size)
    if root is not None and checkpoint.root != root:
        return f"the root at size {checkpoint.size} is another"
    return None


def report(state: State, event: Event) -> Problem:
    """`order.report`."""
    payload = fields(event)
    if payload["evaluated_size"] > event.seq:
        return f"evaluated_size is {payload['evaluated_size']} in event {event.seq}"
    if state.plan is None:
        if state.plan_seq is None:
            return "scores are published without a plan"
        return Withheld(f"the plan in force, event {state.plan_seq}, is hidden")
    sheet = ScoreSheet(state, state.plan)
    for row in payload["scores"]:
        if row["method"] not in state.plan.methods:
            return f"the plan has no method {row['method']}"
        score = sheet.score(row["method"])
        wrong = score.why if isinstance(score, Unscorable) else differs(row, score)
        if wrong:
            return state.absent(f"{row['method']}: {wrong}", *_SCORED)
    return None
