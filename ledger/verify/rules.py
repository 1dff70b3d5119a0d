"""Every rule that the verifier can name, at a glance: id, what a breach means, the rule.

The sentences are those of docs/spec/verification.md and docs/spec/events.md, word for word; a test
compares them. To add a rule: a row here, a row there, the function that decides it, and a ledger
that breaks it alone.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Severity = Literal["tampered", "deviated", "unverifiable", "withheld", "note"]


class Rule(NamedTuple):
    """One rule: its id, what a breach of it means, and what a ledger has to satisfy."""

    id: str
    severity: Severity
    statement: str


INTEGRITY_RULES: tuple[Rule, ...] = (
    Rule(
        "store.unreadable",
        "unverifiable",
        "the file is there, can be read, and is an SQLite database with the ledger's "
        "`application_id`",
    ),
    Rule(
        "store.damaged",
        "tampered",
        "SQLite can read all of its pages that hold events and payloads",
    ),
    Rule(
        "store.table",
        "tampered",
        "`events` and `payloads` are plain tables with exactly the columns of the "
        "specification and values of their types",
    ),
    Rule("store.empty", "tampered", "it holds an event"),
    Rule("store.column", "tampered", "each index column equals the field of the envelope"),
    Rule("store.orphan", "tampered", "each row of `payloads` belongs to an event"),
    Rule(
        "log.seq",
        "tampered",
        "the rows are numbered 0, 1, 2 ... and each envelope's `seq` is its row's",
    ),
    Rule("log.leaf", "tampered", "the stored leaf is the hash of the stored envelope"),
    Rule(
        "log.prev",
        "tampered",
        "an envelope's `prev` is the leaf hash of the envelope before, 64 zeros for the first",
    ),
    Rule("log.id", "tampered", "no two events have the same `id`"),
    Rule(
        "log.log",
        "tampered",
        "each event has the `log` of event 0, which is the `log_id` of `ledger.opened`",
    ),
    Rule("log.stream", "tampered", "the events of a stream are numbered 0, 1, 2 ..."),
    Rule("log.key", "tampered", "no two events have the same `idem_key`"),
    Rule("envelope.json", "tampered", "an envelope is strict JSON without duplicate keys"),
    Rule(
        "envelope.form", "tampered", "an envelope has exactly its keys, and values of their forms"
    ),
    Rule("envelope.canonical", "tampered", "an envelope is stored in its canonical form"),
    Rule("envelope.size", "tampered", "an envelope has at most 16,384 bytes"),
    Rule(
        "payload.lost",
        "tampered",
        "salt and bytes of a payload are there, unless `payload.redacted` names its event",
    ),
    Rule("payload.commitment", "tampered", "salt and bytes open the commitment of the envelope"),
    Rule("payload.length", "tampered", "the payload has the length that the envelope says"),
    Rule(
        "payload.json",
        "tampered",
        "a payload of media type `application/json` is strict JSON without duplicate "
        "keys and floats",
    ),
    Rule("payload.canonical", "tampered", "and is stored in its canonical form"),
    Rule(
        "payload.form",
        "tampered",
        "and, of a known type and version, has exactly its fields, with values of their forms",
    ),
    Rule(
        "payload.size",
        "unverifiable",
        "a payload has at most 67,108,864 bytes; a longer one is not read",
    ),
    Rule("payload.withheld", "withheld", "no payload is redacted"),
    Rule("label.sealed", "withheld", "no label is still sealed"),
    Rule("checkpoint.form", "unverifiable", "a held checkpoint is a checkpoint in its one form"),
    Rule("checkpoint.origin", "tampered", "a held checkpoint has this log's origin"),
    Rule("checkpoint.signature", "tampered", "no signature that names a known key fails to verify"),
    Rule(
        "checkpoint.truncated",
        "tampered",
        "the log is at least as long as the held checkpoint says",
    ),
    Rule("checkpoint.fork", "tampered", "the tree's root at the held size is the held root"),
    Rule(
        "checkpoint.unverifiable",
        "unverifiable",
        "a signature of a held checkpoint could be checked with a known key of the origin",
    ),
    Rule("checkpoint.unsigned", "note", "a held checkpoint is signed"),
    Rule("checkpoint.uncovered", "note", "no event comes after the held checkpoint"),
    Rule(
        "checkpoint.unchecked",
        "note",
        "the signature of each checkpoint inside the log could be checked with a "
        "known key of the origin",
    ),
    Rule(
        "checkpoint.token",
        "note",
        "no checkpoint inside the log carries an outside proof; this verifier reads none",
    ),
)
"""Rules of docs/spec/verification.md: is this the log that was written?"""

ORDER_RULES: tuple[Rule, ...] = (
    Rule("order.opened-first", "deviated", "event 0 is `ledger.opened`, and no other event is"),
    Rule("order.card-once", "deviated", "a card is frozen once"),
    Rule(
        "order.card-before-use",
        "deviated",
        "an event that names a card comes after its `card.frozen`",
    ),
    Rule(
        "order.source-after-as-of",
        "deviated",
        "no dated source of a frozen card is dated after the day of its `as_of`",
    ),
    Rule("order.seal-once", "deviated", "a card's label is sealed once"),
    Rule(
        "order.seal-before-use",
        "deviated",
        "no attempt, call, world or prediction names a card that needs a seal before "
        "its `label.sealed`",
    ),
    Rule(
        "order.plan-once",
        "deviated",
        "there is one `plan.preregistered`; changes are `plan.amended`",
    ),
    Rule(
        "order.plan-before-use",
        "deviated",
        "no attempt, call, world, prediction or closing comes before the plan",
    ),
    Rule("order.amends-current", "deviated", "`plan.amended.amends_seq` is the plan in force"),
    Rule(
        "order.plan-after-unseal",
        "deviated",
        "no plan is registered or amended after the first `label.unsealed`",
    ),
    Rule(
        "order.plan-keeps-cells",
        "deviated",
        "an amended plan still registers every cell that is frozen, with the same extraction rule",
    ),
    Rule(
        "order.method-registered",
        "deviated",
        "attempts, calls, worlds and predictions belong to a registered method that "
        "is not `constant`",
    ),
    Rule("order.card-registered", "deviated", "and to a card of the plan's card set"),
    Rule("order.draw-registered", "deviated", "and to a draw from 1 to the method's `draws`"),
    Rule("order.cell-once", "deviated", "a cell is frozen once"),
    Rule(
        "order.extraction-registered",
        "deviated",
        "a prediction's `extraction_rule` is its method's",
    ),
    Rule(
        "order.route-registered",
        "deviated",
        "where both the plan and the event record a field of the model route, or the "
        "prompt version or digest, they are equal (predictions, and model calls of "
        "methods without a `branch_policy`)",
    ),
    Rule(
        "order.blend",
        "deviated",
        "a prediction by `blend/1`, or of a method with a `blend`, lies within "
        "`rounding` of the weighted mean of its parts' aggregated predictions "
        "(exactly, after rounding half to even at nine places, where `rounding` is "
        "null), and its parts are frozen before it; a `constant` part has its value",
    ),
    Rule("order.as-of-widened", "deviated", "a call's `as_of` is not later than its card's"),
    Rule(
        "order.evidence-after-as-of",
        "deviated",
        "no kept evidence claims a `published` or `snapshot` time after the call's `as_of`",
    ),
    Rule(
        "order.evidence-undated",
        "deviated",
        "evidence with neither time is not kept, unless the plan says `keep_flagged`",
    ),
    Rule(
        "order.attempt-number", "deviated", "attempts of a cell are numbered 1, 2, 3 ... in order"
    ),
    Rule(
        "order.attempt-open",
        "deviated",
        "an attempt starts only when the cell's last one has ended and the cell is not frozen",
    ),
    Rule(
        "order.attempt-cited",
        "deviated",
        "`attempt.failed` cites the cell's open attempt and its seq; a prediction of "
        "origin `run` cites the cell's open attempt; one of origin `import` or `rule`"
        " has `attempt` null",
    ),
    Rule(
        "order.attempt-unreported",
        "deviated",
        "at `predictions.closed`, and at the end of a log that has one, no attempt is open",
    ),
    Rule(
        "order.late-prediction",
        "deviated",
        "no attempt, model call, tool call, world or prediction comes after `predictions.closed`",
    ),
    Rule(
        "order.post-label",
        "deviated",
        "none comes after the first `label.unsealed` either (a waiver marks it, and "
        "does not cure it)",
    ),
    Rule("order.close-once", "deviated", "predictions are closed once"),
    Rule(
        "order.close-counts",
        "deviated",
        "`expected` is the number of registered cells, `frozen` of those frozen, "
        "`attempts` and `failed_attempts` of such events before it",
    ),
    Rule(
        "order.close-complete",
        "deviated",
        "each registered cell is frozen or stands once in `empty`, never both; "
        "nothing else stands in `empty`",
    ),
    Rule(
        "order.unseal-before-close",
        "deviated",
        "a label opens after `predictions.closed`, or carries a waiver",
    ),
    Rule(
        "order.unseal-too-early",
        "deviated",
        "a label opens not before the plan's `labels_open_not_before` (by `recorded_at`)",
    ),
    Rule(
        "order.unseal-target",
        "deviated",
        "`label.unsealed` names the seq of its card's `label.sealed`, once a card",
    ),
    Rule(
        "label.seal",
        "tampered",
        "the salt and bytes of `label.unsealed` open the commitment of the `label.sealed` it names",
    ),
    Rule(
        "label.bytes",
        "tampered",
        "the private bytes are canonical JSON of an object whose `card_id` is the "
        "event's and whose `resolution` is yes or no",
    ),
    Rule(
        "order.label-dropped",
        "deviated",
        "once any label is open, every registered card that needs a seal is open or "
        "annulled by the end of the log",
    ),
    Rule(
        "order.revision",
        "deviated",
        "`label.revised.supersedes_seq` is the label in force of its card",
    ),
    Rule("order.annulled-once", "deviated", "a card is annulled once"),
    Rule(
        "order.mass-balance",
        "deviated",
        "the postings of a fork sum to zero, take from its parent at most what it "
        "holds, give each new child more than zero, and touch no other timeline; a "
        "timeline ends with the mass it holds",
    ),
    Rule(
        "order.timeline",
        "deviated",
        "a fork, tick, end, endpoint update or settlement names a timeline of its cell "
        "that exists and has not ended; a fork's children are new",
    ),
    Rule(
        "order.redaction",
        "deviated",
        "`payload.redacted` names an earlier event other than 0 and that event's commitment, once",
    ),
    Rule(
        "order.anchor",
        "deviated",
        "`checkpoint.anchored` holds a checkpoint of this log's origin whose size is "
        "its `tree_size`, at most its own seq, and whose root is the tree's at that "
        "size",
    ),
    Rule(
        "order.report",
        "deviated",
        "`evaluated_size` is at most its own seq, and each published score is of a "
        "registered method and equals the score recomputed from the events before it:"
        " `n` and `brier` exactly (nine places, half to even), `log` within 2e-9",
    ),
)
"""Order rules of docs/spec/events.md: was the protocol followed?"""

NOTES: tuple[Rule, ...] = (
    Rule("event.unknown", "note", "each event's type and version are in the vocabulary"),
    Rule(
        "time.backwards",
        "note",
        "no event's `recorded_at` is earlier than that of the event before",
    ),
    Rule("annulled-after-unseal", "note", "no card is annulled after its label opened"),
    Rule(
        "redaction.present",
        "note",
        "salt and bytes of each redacted payload are gone from the file",
    ),
    Rule(
        "store.guard",
        "note",
        "the file has the two append-only triggers and the unique indexes, and no other trigger",
    ),
    Rule("label.waiver", "note", "no label was opened under a waiver"),
)
"""Notes of docs/spec/events.md: no breach, and never left out."""

RULES: dict[str, Rule] = {rule.id: rule for rule in (*INTEGRITY_RULES, *ORDER_RULES, *NOTES)}
"""Every rule by its id."""
