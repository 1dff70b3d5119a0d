"""The books of path mass that an audit vector rests on: kept anew from the postings in the log.

A world's books balance where each fork's postings sum to zero, each timeline ends with the mass it
holds, nothing falls below zero and live and ended mass add up to 1,000,000,000 units
(docs/spec/events.md, `order.mass-balance`). Nothing is taken on trust from whoever wrote the log.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ledger.decimals import UNITS
from ledger.events.branch import BranchForked, TimelineEnded
from ledger.events.world import WorldInitialized
from ledger.protocol.state import Cell


@dataclass(slots=True)
class _World:
    """Live timelines with their mass in 1e-9 units, mass that ended, and what went wrong."""

    live: dict[str, int]
    ended: int = 0
    broken: bool = False


@dataclass(slots=True)
class PathBooks:
    """The books of all worlds, by cell; a new world of a cell begins them anew."""

    worlds: dict[Cell, _World] = field(default_factory=dict)
    hidden: set[Cell] = field(default_factory=set)

    def open(self, p: WorldInitialized) -> None:
        """Begin a world: its root timeline holds all mass."""
        self.worlds[Cell(p.method, p.card_id, p.draw)] = _World({p.timeline: UNITS})

    def fork(self, p: BranchForked) -> None:
        """Post a fork's movements."""
        world = self._world(Cell(p.method, p.card_id, p.draw))
        if sum(posting.mass_units for posting in p.postings) != 0:
            world.broken = True
        for posting in p.postings:
            world.live[posting.timeline] = world.live.get(posting.timeline, 0) + posting.mass_units
            world.broken |= world.live[posting.timeline] < 0

    def end(self, p: TimelineEnded) -> None:
        """Close a timeline with the mass it claims."""
        world = self._world(Cell(p.method, p.card_id, p.draw))
        world.broken |= world.live.pop(p.timeline, None) != p.mass_units
        world.ended += p.mass_units

    def hide(self, cell: Cell) -> None:
        """Note that an event of the world is redacted, so that its books cannot be closed."""
        self.hidden.add(cell)

    def status(self, cell: Cell) -> str | None:
        """Return `balanced to the unit`, `not balanced` or `withheld`; None without a world."""
        if cell in self.hidden:
            return "withheld"
        world = self.worlds.get(cell)
        if world is None:
            return None
        whole = sum(world.live.values()) + world.ended == UNITS
        return "balanced to the unit" if whole and not world.broken else "not balanced"

    def _world(self, cell: Cell) -> _World:
        # A fork without a world has no books to balance.
        return self.worlds.setdefault(cell, _World({}, broken=True))
