"""The order rules at a glance, and the one fold that decides them.

A row says which events a rule looks at, and whether it reads their payload: a rule that reads the
envelope alone holds for redacted events too. To add a rule: a function in its family, a row here, a
row in `rules.py` and on the page.

Cost: about 5 us an event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ledger.verify import order_cards, order_labels, order_log, order_plan, order_runs
from ledger.verify.report import Findings
from ledger.verify.state import ATTEMPTS, CALLS, PLANS, RUN, WORLDS, Problem, State, Withheld
from ledger.verify.structure import Event

Decide = Callable[[State, Event], Problem]
_NAMING = (
    "label.sealed",
    *RUN,
    "endpoint.rejected",
    "claim.recorded",
    "label.unsealed",
    "label.revised",
    "card.annulled",
)
_MASS = ("branch.forked", "timeline.ended")
_CITING = ("attempt.failed", "prediction.frozen")
_ROUTED = ("model.called", "prediction.frozen")


class OrderRule(NamedTuple):
    """A rule id, the function that decides it, the event types it looks at ("" for all)."""

    id: str
    decide: Decide
    types: tuple[str, ...]
    reads_payload: bool = True


ORDER: tuple[OrderRule, ...] = (
    OrderRule("order.opened-first", order_cards.opened_first, ("",), reads_payload=False),
    OrderRule("order.card-once", order_cards.card_once, ("card.frozen",)),
    OrderRule("order.card-before-use", order_cards.card_before_use, _NAMING),
    OrderRule("order.source-after-as-of", order_cards.source_after_as_of, ("card.frozen",)),
    OrderRule("order.seal-once", order_cards.seal_once, ("label.sealed",)),
    OrderRule("order.seal-before-use", order_cards.seal_before_use, RUN),
    OrderRule("order.plan-once", order_plan.plan_once, PLANS, reads_payload=False),
    OrderRule(
        "order.plan-before-use",
        order_plan.plan_before_use,
        (*RUN, "predictions.closed"),
        reads_payload=False,
    ),
    OrderRule("order.amends-current", order_plan.amends_current, ("plan.amended",)),
    OrderRule("order.plan-after-unseal", order_plan.plan_after_unseal, PLANS, reads_payload=False),
    OrderRule("order.plan-keeps-cells", order_plan.plan_keeps_cells, ("plan.amended",)),
    OrderRule("order.method-registered", order_plan.method_registered, RUN),
    OrderRule("order.card-registered", order_plan.card_registered, RUN),
    OrderRule("order.draw-registered", order_plan.draw_registered, RUN),
    OrderRule("order.cell-once", order_runs.cell_once, ("prediction.frozen",)),
    OrderRule(
        "order.extraction-registered", order_plan.extraction_registered, ("prediction.frozen",)
    ),
    OrderRule("order.route-registered", order_plan.route_registered, _ROUTED),
    OrderRule("order.blend", order_plan.blend_holds, ("prediction.frozen",)),
    OrderRule("order.as-of-widened", order_runs.as_of_widened, CALLS),
    OrderRule("order.evidence-after-as-of", order_runs.evidence_after_as_of, ("tool.called",)),
    OrderRule("order.evidence-undated", order_runs.evidence_undated, ("tool.called",)),
    OrderRule("order.attempt-number", order_runs.attempt_number, ATTEMPTS[:1]),
    OrderRule("order.attempt-open", order_runs.attempt_open, ATTEMPTS[:1]),
    OrderRule("order.attempt-cited", order_runs.attempt_cited, _CITING),
    OrderRule(
        "order.attempt-unreported",
        order_runs.attempt_unreported,
        ("predictions.closed",),
        reads_payload=False,
    ),
    OrderRule("order.late-prediction", order_runs.late_prediction, RUN, reads_payload=False),
    OrderRule("order.post-label", order_runs.post_label, RUN, reads_payload=False),
    OrderRule(
        "order.close-once", order_labels.close_once, ("predictions.closed",), reads_payload=False
    ),
    OrderRule("order.close-counts", order_labels.close_counts, ("predictions.closed",)),
    OrderRule("order.close-complete", order_labels.close_complete, ("predictions.closed",)),
    OrderRule("order.unseal-before-close", order_labels.unseal_before_close, ("label.unsealed",)),
    OrderRule("order.unseal-too-early", order_labels.unseal_too_early, ("label.unsealed",)),
    OrderRule("order.unseal-target", order_labels.unseal_target, ("label.unsealed",)),
    OrderRule("label.seal", order_labels.seal_opens, ("label.unsealed",)),
    OrderRule("label.bytes", order_labels.private_bytes, ("label.unsealed",)),
    OrderRule("order.revision", order_labels.revision, ("label.revised",)),
    OrderRule("order.annulled-once", order_labels.annulled_once, ("card.annulled",)),
    OrderRule("order.mass-balance", order_runs.mass_balance, _MASS),
    OrderRule("order.timeline", order_runs.timeline_lives, WORLDS[1:]),
    OrderRule("order.redaction", order_log.redaction, ("payload.redacted",)),
    OrderRule("order.anchor", order_log.anchor, ("checkpoint.anchored",)),
    OrderRule("order.report", order_log.report, ("report.published",)),
    OrderRule("annulled-after-unseal", order_labels.annulled_after_unseal, ("card.annulled",)),
    OrderRule("label.waiver", order_labels.label_waiver, ("label.unsealed",)),
)

AT_END: tuple[tuple[str, Callable[[State], Iterator[Problem]]], ...] = (
    ("order.attempt-unreported", order_runs.attempt_unreported_at_end),
    ("order.label-dropped", order_labels.label_dropped),
)


def check_order(events: Iterable[Event], state: State, findings: Findings) -> None:
    """Fold the events into `state`, deciding every rule on the way."""
    judge = _Judge(findings)
    everywhere = _rules_of("")
    by_type: dict[str, tuple[OrderRule, ...]] = {}
    for event in events:
        rules = by_type.get(event.type)
        if rules is None:
            rules = by_type[event.type] = everywhere + _rules_of(event.type)
        readable = event.payload is not None
        for rule in rules:
            if readable or not rule.reads_payload:
                problem = rule.decide(state, event)
                if problem is not None:
                    judge.report(rule.id, event.seq, problem)
        state.apply(event)
    for rule_id, decide in AT_END:
        for problem in decide(state):
            judge.report(rule_id, None, problem)


class _Judge:
    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._undecided: set[str] = set()

    def report(self, rule: str, seq: int | None, problem: Problem) -> None:
        if problem is None:
            return
        if not isinstance(problem, Withheld):
            self._findings.add(rule, seq, problem)
        elif rule not in self._undecided:
            # Said once a rule: the rest hangs on the same hidden payload.
            self._undecided.add(rule)
            self._findings.add(rule, seq, f"not to be decided: {problem}", severity="withheld")


def _rules_of(kind: str) -> tuple[OrderRule, ...]:
    return tuple(rule for rule in ORDER if kind in rule.types)
