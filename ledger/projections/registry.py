"""The tables at a glance. Add a projection: one rule below, one row in PROJECTIONS."""

from __future__ import annotations

from collections.abc import Iterable

from ledger.events.call import AttemptFailed, AttemptStarted, ModelCalled, ToolCalled
from ledger.events.card import (
    CardAnnulled,
    CardFrozen,
    LabelRevised,
    LabelSealed,
    LabelUnsealed,
    read_private,
)
from ledger.events.codec import Event
from ledger.events.plan import PlanAmended, PlanPreregistered
from ledger.events.prediction import PredictionFrozen
from ledger.projections.port import Projection, Row
from ledger.store.port import Record


def _timeline(event: Event, record: Record) -> Iterable[Row]:
    e = record.envelope
    yield {
        "seq": e.seq,
        "type": e.type,
        "stream": e.stream,
        "actor": e.actor,
        "recorded_at": e.recorded_at,
        "payload_bytes": e.length,
        "status": event.status,
        "leaf": record.leaf.hex(),
    }


def _cards(event: Event, _record: Record) -> Iterable[Row]:
    p = event.payload
    if isinstance(p, CardFrozen):
        yield {
            "card": p.card.card_id,
            "kind": p.card.kind,
            "title": p.card.title,
            "question": p.card.question,
            "as_of": p.card.as_of,
            "deadline": p.card.deadline,
            "domain": p.card.domain,
            "source_class": p.card.source_class,
            "leakage_risk": p.card.leakage_risk,
            "frozen_seq": event.seq,
        }
    if isinstance(p, CardAnnulled):
        yield {"card": p.card_id, "annulled": p.reason, "annulled_seq": event.seq}


def _labels(event: Event, _record: Record) -> Iterable[Row]:
    p = event.payload
    if isinstance(p, LabelSealed):
        yield {"card": p.card_id, "commitment": p.seal.commitment, "sealed_seq": event.seq}
    if isinstance(p, LabelUnsealed):
        private = read_private(p.private_json, seq=event.seq)
        yield {"card": p.card_id, "label": private.resolution, "label_seq": event.seq}
    if isinstance(p, LabelRevised):
        yield {"card": p.card_id, "label": p.resolution, "label_seq": event.seq}


def _methods(event: Event, _record: Record) -> Iterable[Row]:
    p = event.payload
    if isinstance(p, (PlanPreregistered, PlanAmended)):
        for method in p.plan.methods:
            yield {
                "method": method.id,
                "label": method.label,
                "role": method.role,
                "source": method.source,
                "provider": method.model_route.provider,
                "requested_model": method.model_route.requested_model,
                "prompt_version": method.prompt_version,
                "extraction_rule": method.extraction_rule,
                "draws": method.draws,
                "plan_seq": event.seq,
            }


def _predictions(event: Event, _record: Record) -> Iterable[Row]:
    p = event.payload
    if isinstance(p, PredictionFrozen):
        yield {
            "method": p.method,
            "card": p.card_id,
            "draw": p.draw,
            "p_raw": p.p_raw,
            "p_yes": p.p_yes,
            "unresolved_mass_units": p.unresolved_mass_units,
            "extraction_rule": p.extraction_rule,
            "resolved_model": p.model_route.resolved_model,
            "response_id": p.response_id,
            "frozen_seq": event.seq,
        }


def _attempts(event: Event, _record: Record) -> Iterable[Row]:
    p = event.payload
    if isinstance(p, (AttemptStarted, AttemptFailed)):
        row: Row = {
            "method": p.method,
            "card": p.card_id,
            "draw": p.draw,
            "attempt": p.attempt,
        }
        if isinstance(p, AttemptStarted):
            yield row | {"started_seq": event.seq}
        else:
            yield row | {"failed_seq": event.seq, "reason": p.reason, "detail": p.detail}


def _calls(event: Event, _record: Record) -> Iterable[Row]:
    p = event.payload
    if isinstance(p, (ModelCalled, ToolCalled)):
        row: Row = {
            "seq": event.seq,
            "method": p.method,
            "card": p.card_id,
            "draw": p.draw,
            "as_of": p.as_of,
            "outcome": p.outcome,
            "cost": p.cost.amount,
            "currency": p.cost.currency,
            "latency_ms": p.latency_ms,
        }
        if isinstance(p, ModelCalled):
            yield row | {
                "what": p.role,
                "model": p.model_route.resolved_model,
                "input_tokens": p.usage.input_tokens,
                "output_tokens": p.usage.output_tokens,
            }
        else:
            kept = sum(item.kept for item in p.evidence)
            dropped = len(p.evidence) - kept
            yield row | {"what": p.tool, "evidence_kept": kept, "evidence_dropped": dropped}


LISTED_ONLY = frozenset(
    {
        "ledger.opened",
        "world.initialized",
        "tick.completed",
        "branch.forked",
        "timeline.ended",
        "endpoint.updated",
        "endpoint.settled",
        "endpoint.rejected",
        "claim.recorded",
        "predictions.closed",
        "checkpoint.anchored",
        "payload.redacted",
        "report.published",
    }
)
"""Types without a table of their own: they stand in `event_list` alone."""

PROJECTIONS: tuple[Projection, ...] = (
    Projection(
        "event_list",
        1,
        {
            "seq": int,
            "type": str,
            "stream": str,
            "actor": str,
            "recorded_at": str,
            "payload_bytes": int,
            "status": str,
            "leaf": str,
        },
        "seq",
        frozenset(),
        _timeline,
    ),
    Projection(
        "cards",
        1,
        {
            "card": str,
            "kind": str,
            "title": str,
            "question": str,
            "as_of": str,
            "deadline": str,
            "domain": str,
            "source_class": str,
            "leakage_risk": str,
            "frozen_seq": int,
            "annulled": str,
            "annulled_seq": int,
        },
        "card",
        frozenset({"card.frozen", "card.annulled"}),
        _cards,
    ),
    Projection(
        "labels",
        1,
        {"card": str, "commitment": str, "sealed_seq": int, "label": str, "label_seq": int},
        "card",
        frozenset({"label.sealed", "label.unsealed", "label.revised"}),
        _labels,
    ),
    Projection(
        "methods",
        1,
        {
            "method": str,
            "label": str,
            "role": str,
            "source": str,
            "provider": str,
            "requested_model": str,
            "prompt_version": str,
            "extraction_rule": str,
            "draws": int,
            "plan_seq": int,
        },
        "method",
        frozenset({"plan.preregistered", "plan.amended"}),
        _methods,
    ),
    Projection(
        "predictions",
        1,
        {
            "method": str,
            "card": str,
            "draw": int,
            "p_raw": str,
            "p_yes": str,
            "unresolved_mass_units": int,
            "extraction_rule": str,
            "resolved_model": str,
            "response_id": str,
            "frozen_seq": int,
        },
        ("method", "card", "draw"),
        frozenset({"prediction.frozen"}),
        _predictions,
    ),
    Projection(
        "attempts",
        1,
        {
            "method": str,
            "card": str,
            "draw": int,
            "attempt": int,
            "started_seq": int,
            "failed_seq": int,
            "reason": str,
            "detail": str,
        },
        ("method", "card", "draw", "attempt"),
        frozenset({"attempt.started", "attempt.failed"}),
        _attempts,
    ),
    Projection(
        "calls",
        1,
        {
            "seq": int,
            "method": str,
            "card": str,
            "draw": int,
            "what": str,
            "model": str,
            "as_of": str,
            "outcome": str,
            "input_tokens": int,
            "output_tokens": int,
            "evidence_kept": int,
            "evidence_dropped": int,
            "cost": str,
            "currency": str,
            "latency_ms": int,
        },
        "seq",
        frozenset({"model.called", "tool.called"}),
        _calls,
    ),
)
