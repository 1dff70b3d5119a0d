"""WorldFork's state: the initialized world and each completed tick."""

from __future__ import annotations

from typing import Literal

from ledger.events.base import Count, Draw, Identifier, Name, Payload, Probability, Sentence, Text
from ledger.events.endpoint import EndpointStatus

GraphLayer = Literal[
    "exposure", "trust", "dependency", "influence", "coalition", "conflict", "oasis_interaction"
]


class Actor(Payload):
    """A named individual or a cohort, typed."""

    id: Identifier
    kind: Literal["hero", "cohort"]
    role: Name
    authority: Text
    interests: Text
    stance: Text
    share: Probability | None = None


class Edge(Payload):
    """A directed edge in one graph layer."""

    layer: GraphLayer
    source: Identifier
    target: Identifier
    weight: Probability
    reason: Text


class SeedEvent(Payload):
    """An event queued for a tick."""

    title: Sentence
    scheduled_tick: Count
    description: Text


class BranchHypothesis(Payload):
    """An alternate path, what would trigger it and which scored endpoint it concerns."""

    id: Identifier
    trigger: Text
    path: Text
    divergence_signal: Text
    endpoint: Identifier | None


class LedgerRow(Payload):
    """One endpoint's row of a timeline's endpoint ledger."""

    endpoint: Identifier
    status: EndpointStatus
    basis: Text


class RubricScore(Payload):
    """One dimension of the initialization rubric, 0 to 4, and its pass mark."""

    dimension: Identifier
    score: Count
    pass_mark: Count
    judged_by: Literal["structure", "model", "human"]


class WorldInitialized(Payload):
    """`world.initialized`: the Big Bang of one card, method and draw."""

    method: Identifier
    card_id: Identifier
    draw: Draw
    timeline: Identifier
    actors: tuple[Actor, ...]
    constraints: tuple[Sentence, ...]
    scored_endpoints: tuple[Identifier, ...]
    auxiliary_endpoints: tuple[Identifier, ...]
    graph: tuple[Edge, ...]
    social_state: dict[str, str]
    seed_events: tuple[SeedEvent, ...]
    branch_hypotheses: tuple[BranchHypothesis, ...]
    endpoint_ledger: tuple[LedgerRow, ...]
    rubric: tuple[RubricScore, ...]


class TickCompleted(Payload):
    """`tick.completed`: what happened in one tick of one timeline, and the review's reasons."""

    method: Identifier
    card_id: Identifier
    draw: Draw
    timeline: Identifier
    tick: Count
    decisions: tuple[Text, ...]
    events: tuple[Text, ...]
    updates: tuple[Text, ...]
    review: Literal["continue", "terminate", "fork", "freeze"]
    review_reasons: Text
    summary: Text
