"""The vocabulary at a glance: wire name, version, class. Add an event type: one class, one row."""

from __future__ import annotations

from dataclasses import dataclass

from ledger.events import anchor, branch, call, card, endpoint, plan, prediction, world
from ledger.events.base import Payload


@dataclass(frozen=True, slots=True)
class EventType:
    """One row of the vocabulary.

    `name` is the literal wire name, `version` the current one, `model` the payload's class.
    `stream` and `key` are patterns over the payload `p`: the stream that an event belongs to, and
    the idempotency key of events that can be written once (None: no key).
    """

    name: str
    version: int
    model: type[Payload]
    stream: str
    key: str | None = None

    def stream_of(self, payload: Payload) -> str:
        """Return the stream of a payload of this type."""
        return self.stream.format(p=payload)

    def key_of(self, payload: Payload) -> str | None:
        """Return the idempotency key of a payload of this type, or None."""
        return None if self.key is None else self.key.format(p=payload)


_CELL = "{p.method}/{p.card_id}/{p.draw}"

EVENT_TYPES: tuple[EventType, ...] = (
    EventType("ledger.opened", 1, anchor.LedgerOpened, "ledger"),
    EventType("card.frozen", 1, card.CardFrozen, "card/{p.card.card_id}", "card/{p.card.card_id}"),
    EventType("label.sealed", 1, card.LabelSealed, "label/{p.card_id}", "seal/{p.card_id}"),
    EventType("plan.preregistered", 1, plan.PlanPreregistered, "plan"),
    EventType("plan.amended", 1, plan.PlanAmended, "plan"),
    EventType("attempt.started", 1, call.AttemptStarted, "attempt/" + _CELL),
    EventType("attempt.failed", 1, call.AttemptFailed, "attempt/" + _CELL),
    EventType("model.called", 1, call.ModelCalled, "call/" + _CELL),
    EventType("tool.called", 1, call.ToolCalled, "call/" + _CELL),
    EventType("world.initialized", 1, world.WorldInitialized, "world/" + _CELL),
    EventType("tick.completed", 1, world.TickCompleted, "world/" + _CELL),
    EventType("branch.forked", 1, branch.BranchForked, "world/" + _CELL),
    EventType("timeline.ended", 1, branch.TimelineEnded, "world/" + _CELL),
    EventType("endpoint.updated", 1, endpoint.EndpointUpdated, "world/" + _CELL),
    EventType("endpoint.settled", 1, endpoint.EndpointSettled, "world/" + _CELL),
    EventType("endpoint.rejected", 1, endpoint.EndpointRejected, "card/{p.card_id}"),
    EventType("claim.recorded", 1, endpoint.ClaimRecorded, "claim/" + _CELL),
    EventType(
        "prediction.frozen",
        1,
        prediction.PredictionFrozen,
        "prediction/{p.method}",
        "prediction/" + _CELL,
    ),
    EventType("predictions.closed", 1, prediction.PredictionsClosed, "plan"),
    EventType("checkpoint.anchored", 1, anchor.CheckpointAnchored, "ledger"),
    EventType("label.unsealed", 1, card.LabelUnsealed, "label/{p.card_id}"),
    EventType("label.revised", 1, card.LabelRevised, "label/{p.card_id}"),
    EventType("card.annulled", 1, card.CardAnnulled, "card/{p.card_id}"),
    EventType("payload.redacted", 1, anchor.PayloadRedacted, "ledger"),
    EventType("report.published", 1, anchor.ReportPublished, "report"),
)

BY_NAME: dict[str, EventType] = {row.name: row for row in EVENT_TYPES}
BY_MODEL: dict[type[Payload], EventType] = {row.model: row for row in EVENT_TYPES}
