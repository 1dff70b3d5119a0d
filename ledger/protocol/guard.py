"""The gate before every append: which rules judge which payload.

`checkpoint.anchored` and `report.published` are not listed: `order.anchor` and `order.report` are
about roots and scores, which the commands that write them compute from the log. Of the rules about
the end of a log, `order.label-dropped` is kept by `decide_unseal`, which opens all labels.

Add a rule: one function in its family, one row here, one row in docs/spec/events.md, one log that
breaks exactly it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ledger.errors import OrderError
from ledger.events.anchor import LedgerOpened, PayloadRedacted
from ledger.events.base import Payload
from ledger.events.branch import BranchForked, TimelineEnded
from ledger.events.call import AttemptFailed, AttemptStarted, ModelCalled, ToolCalled
from ledger.events.card import (
    CardAnnulled,
    CardFrozen,
    LabelRevised,
    LabelSealed,
    LabelUnsealed,
)
from ledger.events.endpoint import (
    ClaimRecorded,
    EndpointRejected,
    EndpointSettled,
    EndpointUpdated,
)
from ledger.events.plan import PlanAmended, PlanPreregistered
from ledger.events.prediction import PredictionFrozen, PredictionsClosed
from ledger.events.world import TickCompleted, WorldInitialized
from ledger.protocol import reveal_rules, run_rules, setup_rules, world_rules
from ledger.protocol.state import ProtocolState

_GUARDS: dict[type[Payload], Callable[[ProtocolState, Any], object]] = {
    LedgerOpened: setup_rules.check_opened,
    CardFrozen: setup_rules.check_card_frozen,
    LabelSealed: setup_rules.check_label_sealed,
    PlanPreregistered: setup_rules.check_plan,
    PlanAmended: setup_rules.check_amended,
    AttemptStarted: run_rules.check_attempt_started,
    AttemptFailed: run_rules.check_attempt_failed,
    ModelCalled: run_rules.check_model_called,
    ToolCalled: run_rules.check_tool_called,
    PredictionFrozen: run_rules.check_prediction,
    PredictionsClosed: run_rules.check_closed,
    WorldInitialized: world_rules.check_world,
    TickCompleted: world_rules.check_tick,
    BranchForked: world_rules.check_forked,
    TimelineEnded: world_rules.check_ended,
    EndpointUpdated: world_rules.check_tick,
    EndpointSettled: world_rules.check_tick,
    EndpointRejected: setup_rules.check_named_card,
    ClaimRecorded: setup_rules.check_named_card,
    LabelRevised: reveal_rules.check_revised,
    CardAnnulled: reveal_rules.check_annulled,
    PayloadRedacted: reveal_rules.check_redacted,
}


def guard(state: ProtocolState, payload: Payload, *, recorded_at: str) -> None:
    """Raise OrderError where an order rule forbids the payload as the next event.

    `recorded_at` is the moment at which it would be recorded, in the one text form.
    """
    if state.size == 0 and not isinstance(payload, LedgerOpened):
        raise OrderError(
            "order.opened-first",
            "the log is empty, and a ledger begins with ledger.opened",
            remedy="Create it with `ledger init`.",
        )
    if isinstance(payload, LabelUnsealed):
        reveal_rules.check_unsealed(state, payload, recorded_at)
        return
    check = _GUARDS.get(type(payload))
    if check is not None:
        check(state, payload)
