"""What a verification shows and what it does not: plain sentences, each with its evidence.

Normative: docs/spec/verification.md, "What is proved". A sentence is written only where no finding
touches the rules that it rests on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ledger.verify.held import Held
from ledger.verify.report import Finding
from ledger.verify.state import ATTEMPTS, CALLS, PLANS, RUN, WORLDS, State
from ledger.verify.text import plural

_SEALS = ("order.seal-before-use", "order.seal-once", "order.card-before-use")
_PLAN = ("order.plan-once", "order.plan-before-use", "order.amends-current")
_CELLS = ("order.method-registered", "order.card-registered", "order.draw-registered")
_CLOSE = (
    "order.close-once",
    "order.close-counts",
    "order.close-complete",
    "order.late-prediction",
    "order.cell-once",
    *_CELLS,
)
_TRIES = (
    "order.attempt-number",
    "order.attempt-open",
    "order.attempt-cited",
    "order.attempt-unreported",
)
_EVIDENCE = ("order.as-of-widened", "order.evidence-after-as-of", "order.evidence-undated")
_LABELS = (
    "order.unseal-before-close",
    "order.unseal-target",
    "order.post-label",
    "order.label-dropped",
    "label.seal",
    "label.bytes",
    "label.waiver",
)
_MASS = ("order.mass-balance", "order.timeline")


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the sentences rest on.

    Attributes:
        size: number of events.
        payloads: payloads that opened their commitments.
        state: the log as folded.
        held: the held checkpoint, None where none was given or it could not be read.
        findings: all findings.
    """

    size: int
    payloads: int
    state: State
    held: Held | None
    findings: tuple[Finding, ...]

    def untouched(self, *rules: str) -> bool:
        """Say whether no finding is of one of these rules."""
        return not any(finding.rule in rules for finding in self.findings)

    def qualify(self, sentence: str, *types: str) -> str:
        """Return a sentence, with a reservation if a payload of these types is hidden."""
        hidden = [seq for kind, seq in self.state.hidden.items() if not types or kind in types]
        if not hidden:
            return sentence
        return f"{sentence} Hidden payloads excepted, such as that of event {min(hidden)}."

    def count(self, rule: str) -> int:
        """Count the findings of a rule."""
        return sum(finding.rule == rule for finding in self.findings)


def list_proved(evidence: Evidence) -> Iterator[str]:
    """Yield what a log shows whose bytes are whole."""
    if any(finding.severity == "tampered" for finding in evidence.findings):
        return
    yield (
        f"Integrity: {plural(evidence.size, 'event')}, 0 to {evidence.size - 1}, each hashed and"
        f" linked to the one before; {plural(evidence.payloads, 'payload')} open their commitments."
    )
    for sentence, types in _order_claims(evidence):
        yield evidence.qualify(sentence, *types)
    if (held := evidence.held) is not None and held.matched:
        signed = f", signed by {held.signed_by}" if held.signed_by else ""
        yield (
            f"Held: events 0 to {held.size - 1} are those of a checkpoint of size {held.size} that"
            f" you kept elsewhere{signed}."
        )


def list_not_proved(evidence: Evidence) -> Iterator[str]:
    """Yield what the log does not show, whatever its verdict."""
    if any(finding.severity == "tampered" for finding in evidence.findings):
        yield "Anything about the evaluation: the bytes are not those that were written."
    yield "When anything happened: recorded_at is the writer's claim; only the order is shown."
    yield from _anchor_gaps(evidence)
    yield "That there is no second, secret log of the same evaluation with other results."
    yield "That a model had never seen an outcome."
    if evidence.state.seals:
        yield "That nobody knew a label when it was sealed."
    if evidence.state.imported:
        count = plural(evidence.state.imported, "imported prediction")
        yield f"That {count} came from the models named: that is the operator's word."
    if evidence.state.frozen and not evidence.state.calls:
        yield "What evidence the predictions rested on: no model call or search is recorded."
    hidden = evidence.count("payload.withheld")
    if hidden:
        yield f"What stood in {plural(hidden, 'redacted payload')}."
    sealed = sum(card not in evidence.state.opened for card in evidence.state.seals)
    if sealed:
        yield f"What stands in {plural(sealed, 'sealed label')}."


def _anchor_gaps(evidence: Evidence) -> Iterator[str]:
    held = evidence.held
    if held is None or not held.matched:
        yield (
            "That this is the first version of the log: no checkpoint that you hold was matched,"
            " and an operator who rewrites everything passes the same checks."
        )
    elif held.size < evidence.size:
        yield (
            f"That events {held.size} to {evidence.size - 1} are the first version: they come after"
            " the held checkpoint."
        )
    for seq, payload in evidence.state.anchors:
        word = "carries an outside proof that was not read" if payload["proof"] else "has no proof"
        yield f"Anything by the checkpoint in event {seq}: it {word}, and the operator wrote it."


def _order_claims(evidence: Evidence) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield sentences with the event types whose hidden payloads could refute them."""
    state = evidence.state
    if state.seals and state.first_run_seq is not None and evidence.untouched(*_SEALS):
        yield (
            f"Seals: the labels of {plural(len(state.seals), 'card')} were sealed before any"
            f" attempt, call, world or prediction named them (event {state.first_run_seq} first).",
            ("card.frozen", "label.sealed", *RUN),
        )
    if (
        state.first_plan_seq is not None
        and state.first_prediction_seq is not None
        and evidence.untouched(*_PLAN)
    ):
        amended = f", amended at {_list(state.amendments)}" if state.amendments else ""
        yield (
            f"Plan: registered at event {state.first_plan_seq}{amended}, before the first"
            f" prediction at event {state.first_prediction_seq}.",
            PLANS,
        )
    if state.closed_seq is not None and evidence.untouched(*_CLOSE):
        yield (
            f"Closing: {plural(len(state.frozen), 'prediction')} were frozen before predictions"
            f" closed at event {state.closed_seq}, each registered cell once or declared empty.",
            ("predictions.closed", "prediction.frozen", *PLANS),
        )
    if state.attempts and evidence.untouched(*_TRIES):
        yield (
            f"Attempts: {state.attempts:,} were started and {state.failed_attempts:,} failed; all"
            " are in the log and numbered, none is open.",
            (*ATTEMPTS, "prediction.frozen"),
        )
    if state.calls and evidence.untouched(*_EVIDENCE):
        sentence = (
            f"Evidence: in {plural(state.calls, 'recorded call')} no kept evidence claims a time"
            " after its call's as-of date."
        )
        yield sentence, ("card.frozen", *CALLS)
    if state.timelines and evidence.untouched(*_MASS):
        sentence = (
            f"Mass: path mass balances to the unit in {plural(len(state.timelines), 'world')}."
        )
        yield sentence, WORLDS
    if state.first_unseal_seq is not None and evidence.untouched(*_LABELS):
        yield (
            f"Labels: {plural(len(state.opened), 'label')} opened from event"
            f" {state.first_unseal_seq} on, after the closing, each by its own seal.",
            ("label.sealed", "label.unsealed"),
        )
    if state.reports and evidence.untouched("order.report"):
        sentence = (
            f"Scores: those published at {_list(state.reports)} recompute from the events before."
        )
        yield sentence, ("report.published",)


def _list(seqs: list[int]) -> str:
    word = "event" if len(seqs) == 1 else "events"
    shown = ", ".join(str(seq) for seq in seqs[:10])
    return f"{word} {shown}" + (" and later" if len(seqs) > 10 else "")
