"""Order rules of attempts, calls, evidence, predictions and worlds (docs/spec/events.md)."""

from __future__ import annotations

from collections.abc import Iterator

from ledger.verify.order_cards import fields
from ledger.verify.order_plan import show_cell
from ledger.verify.state import Problem, State, Tries, cell_of
from ledger.verify.structure import Event

_NO_TRIES = Tries()


def cell_once(state: State, event: Event) -> Problem:
    """`order.cell-once`."""
    cell = cell_of(fields(event))
    first = state.frozen.get(cell)
    return None if first is None else f"{show_cell(cell)} was frozen by event {first.seq}"


def as_of_widened(state: State, event: Event) -> Problem:
    """`order.as-of-widened`."""
    payload = fields(event)
    card = state.cards.get(payload["card_id"])
    if card is None or payload["as_of"] <= card.as_of:
        return None
    return f"the call is as of {payload['as_of']}, its card as of {card.as_of}"


def evidence_after_as_of(_state: State, event: Event) -> Problem:
    """`order.evidence-after-as-of`."""
    payload = fields(event)
    for index, item in enumerate(payload["evidence"]):
        for key in ("published", "snapshot"):
            if item["kept"] and item[key] is not None and item[key] > payload["as_of"]:
                claim = f"evidence {index} claims {key} {item[key]}"
                return f"{claim}, the call is as of {payload['as_of']}"
    return None


def evidence_undated(state: State, event: Event) -> Problem:
    """`order.evidence-undated`."""
    if state.plan is None or state.plan.fields["undated_evidence"] == "keep_flagged":
        return None
    for index, item in enumerate(fields(event)["evidence"]):
        if item["kept"] and item["published"] is None and item["snapshot"] is None:
            return f"evidence {index} has neither published nor snapshot time and is kept"
    return None


def attempt_number(state: State, event: Event) -> Problem:
    """`order.attempt-number`."""
    payload = fields(event)
    due = state.tries.get(cell_of(payload), _NO_TRIES).count + 1
    if payload["attempt"] == due:
        return None
    return state.absent(f"attempt {payload['attempt']}, where {due} is due", "attempt.started")


def attempt_open(state: State, event: Event) -> Problem:
    """`order.attempt-open`."""
    cell = cell_of(fields(event))
    if cell in state.frozen:
        return f"{show_cell(cell)} was frozen by event {state.frozen[cell].seq}"
    tries = state.tries.get(cell, _NO_TRIES)
    if tries.open is None:
        return None
    number, seq = tries.open
    what = f"attempt {number}, begun by event {seq}, has not ended"
    return state.absent(what, "attempt.failed", "prediction.frozen")


def attempt_cited(state: State, event: Event) -> Problem:
    """`order.attempt-cited`."""
    payload = fields(event)
    open_attempt = state.tries.get(cell_of(payload), _NO_TRIES).open
    if event.type == "attempt.failed":
        if open_attempt == (payload["attempt"], payload["started_seq"]):
            return None
        cited = f"attempt {payload['attempt']} of event {payload['started_seq']}"
    else:
        if payload["origin"]["kind"] != "run":
            if payload["attempt"] is None:
                return None
            return f"a prediction of origin {payload['origin']['kind']} cites an attempt"
        if open_attempt is not None and open_attempt[0] == payload["attempt"]:
            return None
        cited = f"attempt {payload['attempt']}"
    due = "none is open" if open_attempt is None else f"attempt {open_attempt[0]} is open"
    return state.absent(f"it cites {cited}, and {due}", "attempt.started")


def attempt_unreported(state: State, _event: Event) -> Problem:
    """`order.attempt-unreported`, at the closing."""
    return _describe_open(state, -1)


def attempt_unreported_at_end(state: State) -> Iterator[Problem]:
    """`order.attempt-unreported`, at the end: attempts begun after the closing."""
    if state.closed_seq is not None:
        yield _describe_open(state, state.closed_seq)


def late_prediction(state: State, event: Event) -> Problem:
    """`order.late-prediction`."""
    if state.closed_seq is None:
        return None
    return f"{event.type} after predictions were closed by event {state.closed_seq}"


def post_label(state: State, event: Event) -> Problem:
    """`order.post-label`."""
    if state.first_unseal_seq is None:
        return None
    return f"{event.type} after a label was opened by event {state.first_unseal_seq}"


def mass_balance(state: State, event: Event) -> Problem:
    """`order.mass-balance`."""
    payload = fields(event)
    timelines = state.timelines.get(cell_of(payload), {})
    if event.type == "timeline.ended":
        timeline = timelines.get(payload["timeline"])
        if timeline is None or timeline.mass_units == payload["mass_units"]:
            return None
        what = f"it ends with {payload['mass_units']:,} units and holds {timeline.mass_units:,}"
        return state.absent(what, "branch.forked")
    moved: dict[str, int] = {}
    for posting in payload["postings"]:
        moved[posting["timeline"]] = moved.get(posting["timeline"], 0) + posting["mass_units"]
    parent, children = payload["parent"], payload["children"]
    if sum(moved.values()) != 0:
        return f"the postings sum to {sum(moved.values()):,} units"
    if others := moved.keys() - {parent, *children}:
        return f"a posting to {min(others)}, which is neither parent nor child"
    for child in children:
        if moved.get(child, 0) <= 0:
            return f"the child {child} gets {moved.get(child, 0):,} units"
    held = timelines.get(parent)
    if held is not None and -moved.get(parent, 0) > held.mass_units:
        what = f"it takes {-moved.get(parent, 0):,} units of {held.mass_units:,} from {parent}"
        return state.absent(what, "branch.forked")
    return None


def timeline_lives(state: State, event: Event) -> Problem:
    """`order.timeline`."""
    payload = fields(event)
    timelines = state.timelines.get(cell_of(payload), {})
    name = payload["parent"] if event.type == "branch.forked" else payload["timeline"]
    timeline = timelines.get(name)
    if timeline is None:
        what = f"there is no timeline {name} in {show_cell(cell_of(payload))}"
        return state.absent(what, "world.initialized", "branch.forked")
    if timeline.ended:
        return f"the timeline {name} has ended"
    if event.type == "branch.forked":
        children = payload["children"]
        for child in children:
            if child in timelines or children.count(child) > 1:
                return f"the child {child} is not new"
    return None


def _describe_open(state: State, after: int) -> Problem:
    found = [
        (tries.open[1], cell)
        for cell, tries in state.tries.items()
        if tries.open is not None and tries.open[1] > after
    ]
    if not found:
        return None
    seq, cell = min(found)
    what = f"{len(found)} open, the first of {show_cell(cell)} since event {seq}"
    return state.absent(what, "attempt.failed", "prediction.frozen")
