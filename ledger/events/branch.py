"""Forks and ends of timelines: double-entry postings of path mass in 1e-9 units."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from ledger.events.base import (
    Count,
    Draw,
    Identifier,
    MassUnits,
    Payload,
    Probability,
    Text,
)


class Posting(Payload):
    """Mass moved to (positive) or from (negative) a timeline; postings of a fork sum to zero."""

    timeline: Identifier
    mass_units: Annotated[int, Field(ge=-1_000_000_000, le=1_000_000_000)]


class BranchForked(Payload):
    """`branch.forked`: who split what, into what, and why; `chosen_by` says who set the split."""

    method: Identifier
    card_id: Identifier
    draw: Draw
    parent: Identifier
    children: Annotated[tuple[Identifier, ...], Field(min_length=1)]
    tick: Count
    inherited_up_to_tick: Count
    postings: Annotated[tuple[Posting, ...], Field(min_length=2)]
    trigger_score: Probability
    threshold: Probability
    hypothesis: Text
    chosen_by: Literal["model", "heuristic", "constant"]


class TimelineEnded(Payload):
    """`timeline.ended`: how a timeline stopped and its mass then; pruned mass stays seen."""

    method: Identifier
    card_id: Identifier
    draw: Draw
    timeline: Identifier
    how: Literal["completed", "terminated", "frozen", "pruned"]
    mass_units: MassUnits
    settled: Literal["yes", "no", "unclear"]
    reason: Text
