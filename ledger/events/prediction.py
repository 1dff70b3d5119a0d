"""Frozen predictions and the closing of the book."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from ledger.events.base import (
    Count,
    Digest,
    Draw,
    Identifier,
    MassUnits,
    ModelRoute,
    Name,
    Payload,
    Probability,
    RuleName,
    Sentence,
    Seq,
)


class Interval(Payload):
    """p_yes if all unresolved mass goes to no, and if all goes to yes."""

    low: Probability
    high: Probability


class Origin(Payload):
    """Where a prediction came from: a file and line, a run, or the registered rule."""

    kind: Literal["import", "run", "rule"]
    file_sha256: Digest | None = None
    line: Annotated[int, Field(ge=1)] | None = None


class RejectedEndpoint(Payload):
    """An auxiliary endpoint that was excluded before scoring, and why."""

    endpoint: Identifier
    reason: Sentence


class PredictionFrozen(Payload):
    """`prediction.frozen`: one method, card and draw, once.

    `p_raw` is the text as it arrived; `p_yes` what the extraction rule made of it, at most nine
    places. What is not recorded is null.
    """

    method: Identifier
    card_id: Identifier
    draw: Draw
    attempt: Annotated[int, Field(ge=1)] | None
    p_raw: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    p_yes: Probability
    interval: Interval | None = None
    unresolved_mass_units: MassUnits | None = None
    extraction_rule: RuleName
    model_route: ModelRoute
    prompt_version: Name | None = None
    prompt_digest: Digest | None = None
    response_id: Name | None = None
    rejected_endpoints: tuple[RejectedEndpoint, ...] = ()
    sources: tuple[Seq, ...] = ()
    origin: Origin


class EmptyCell(Payload):
    """A registered cell that holds no prediction, and why."""

    method: Identifier
    card_id: Identifier
    draw: Draw
    status: Literal["failed", "missing"]
    reason: Sentence


class PredictionsClosed(Payload):
    """`predictions.closed`: every registered cell is frozen, failed or declared missing.

    The counts are recomputed by the verifier: expected = frozen + len(empty).
    """

    expected: Count
    frozen: Count
    attempts: Count
    failed_attempts: Count
    empty: tuple[EmptyCell, ...] = ()
