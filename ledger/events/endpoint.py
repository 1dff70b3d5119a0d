"""Endpoints and claims: what settles the question, what was rejected, what a report rests on."""

from __future__ import annotations

from typing import Literal

from ledger.events.base import (
    Count,
    Draw,
    Identifier,
    Payload,
    Probability,
    Sentence,
    Seq,
    Text,
)

EndpointStatus = Literal[
    "active",
    "weakened",
    "eliminated",
    "realized",
    "unresolved",
    "process_only",
    "insufficient_ticks",
]


class EndpointUpdated(Payload):
    """`endpoint.updated`: a status change with the evidence for and against it."""

    method: Identifier
    card_id: Identifier
    draw: Draw
    timeline: Identifier
    endpoint: Identifier
    before: EndpointStatus
    after: EndpointStatus
    evidence_for: tuple[Text, ...]
    evidence_against: tuple[Text, ...]
    basis: Sentence


class EndpointSettled(Payload):
    """`endpoint.settled`: deadline settlement, apart from the open-ended end of a simulation."""

    method: Identifier
    card_id: Identifier
    draw: Draw
    timeline: Identifier
    endpoint: Identifier
    status: EndpointStatus
    at_deadline: bool
    basis: Sentence


class EndpointRejected(Payload):
    """`endpoint.rejected`: an auxiliary endpoint that was refused keeps its wording and reason."""

    method: Identifier | None
    card_id: Identifier
    endpoint: Identifier
    wording: Sentence
    reason: Sentence


class ClaimRecorded(Payload):
    """`claim.recorded`: a report claim and everything it points to."""

    method: Identifier
    card_id: Identifier
    draw: Draw
    claim: Sentence
    timeline: Identifier | None
    tick: Count | None
    actor: Identifier | None
    source_text: Text | None
    state_update: Text | None
    endpoint: Identifier | None
    confidence: Probability | None
    rests_on: tuple[Seq, ...]
    grounded: bool | None
