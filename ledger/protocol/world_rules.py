"""Order rules of branching worlds: timelines exist, and mass balances to the unit."""

from __future__ import annotations

from collections import Counter

from ledger.errors import OrderError
from ledger.events.branch import BranchForked, TimelineEnded
from ledger.events.endpoint import EndpointSettled, EndpointUpdated
from ledger.events.world import TickCompleted, WorldInitialized
from ledger.protocol.run_rules import check_cell
from ledger.protocol.state import Cell, ProtocolState


def check_world(state: ProtocolState, payload: WorldInitialized) -> None:
    """Only a registered cell has a world; a second one begins its timelines anew."""
    check_cell(state, payload)


def check_tick(
    state: ProtocolState, payload: TickCompleted | EndpointUpdated | EndpointSettled
) -> None:
    """`order.timeline`."""
    check_cell(state, payload)
    _mass_of(state, Cell(payload.method, payload.card_id, payload.draw), payload.timeline)


def check_forked(state: ProtocolState, payload: BranchForked) -> None:
    """`order.timeline` and `order.mass-balance`."""
    check_cell(state, payload)
    cell = Cell(payload.method, payload.card_id, payload.draw)
    held = _mass_of(state, cell, payload.parent)
    known = state.worlds[cell].keys() | state.ended.get(cell, set())
    for child in payload.children:
        if child in known or payload.children.count(child) > 1:
            raise OrderError(
                "order.timeline",
                f"the child {child} of timeline {payload.parent} is not new",
                remedy="Give each child an id that no timeline of its cell ever had.",
            )
    posted = Counter[str]()
    for posting in payload.postings:
        posted[posting.timeline] += posting.mass_units
    balanced = (
        posted.total() == 0
        and posted.keys() == {payload.parent, *payload.children}
        and -held <= posted[payload.parent]
        and all(posted[child] > 0 for child in payload.children)
    )
    if not balanced:
        raise OrderError(
            "order.mass-balance",
            f"the postings of the fork of {payload.parent} do not balance (it holds {held} units)",
            remedy="Postings sum to zero, and only the parent gives and only the children get.",
        )


def check_ended(state: ProtocolState, payload: TimelineEnded) -> None:
    """`order.timeline` and `order.mass-balance`."""
    check_cell(state, payload)
    held = _mass_of(state, Cell(payload.method, payload.card_id, payload.draw), payload.timeline)
    if held != payload.mass_units:
        raise OrderError(
            "order.mass-balance",
            f"timeline {payload.timeline} ends with {payload.mass_units} units but holds {held}",
            remedy="Nothing renormalises silently: end it with the mass it holds.",
        )


def _mass_of(state: ProtocolState, cell: Cell, timeline: str) -> int:
    mass = state.worlds.get(cell, {}).get(timeline)
    if mass is None:
        raise OrderError(
            "order.timeline",
            f"timeline {timeline} of cell {'/'.join(map(str, cell))} does not exist or has ended",
            remedy="Name a timeline that is active.",
        )
    return mass
