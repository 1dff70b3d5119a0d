"""Ledgers that break one order rule each: rule, and a function that returns book and seq."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from builders import Book
from evaluations import closed, ready, score_row
from plans import DIGEST, DIRECT, MIX, RUNNER, UNIFORM, method_fields
from world_cases import WORLD_BROKEN, Case

from ledger.commitment import LABEL_TAG, commit
from ledger.events.anchor import PublishedScore
from ledger.events.base import ModelRoute
from ledger.events.card import LabelSealed, Seal, SourceItem, Waiver

LATER = "2026-01-11T00:00:00.000000Z"
WAIVER = Waiver(reason="The board asked for it.", authority="board")


def opened_twice() -> tuple[Book, int]:
    book = Book()
    book.open()
    return book, book.open()


def opened_never() -> tuple[Book, int]:
    book = Book()
    return book, book.card("a", kind="dossier")


def card_twice() -> tuple[Book, int]:
    book = ready()
    return book, book.card("a")


def card_unknown() -> tuple[Book, int]:
    book = Book()
    book.open()
    return book, book.seal("a")


def source_late() -> tuple[Book, int]:
    book = Book()
    book.open()
    late = SourceItem(source_type="news", dated="2026-01-11", text="It did.")
    return book, book.card("a", kind="dossier", source_packet=(late,))


def seal_twice() -> tuple[Book, int]:
    book = ready()
    return book, book.seal("a")


def seal_missing() -> tuple[Book, int]:
    book = Book()
    book.open()
    book.card("a")
    book.plan()
    return book, book.predict("direct", "a", "0.7")


def plan_twice() -> tuple[Book, int]:
    book = ready()
    return book, book.plan()


def plan_missing() -> tuple[Book, int]:
    book = Book()
    book.open()
    book.card("a")
    book.seal("a")
    return book, book.predict("direct", "a", "0.7")


def amends_other() -> tuple[Book, int]:
    book = ready()
    book.amend()
    return book, book.amend(amends_seq=3)


def plan_after_label() -> tuple[Book, int]:
    book = closed()
    book.unseal("a")
    return book, book.amend()


def plan_drops_cell() -> tuple[Book, int]:
    book = ready()
    book.predict("direct", "a", "0.7")
    return book, book.amend((method_fields("other"), UNIFORM))


def plan_changes_extraction() -> tuple[Book, int]:
    book = ready()
    book.predict("direct", "a", "0.7")
    return book, book.amend((method_fields("direct", extraction_rule="direct/2"), UNIFORM))


def method_unknown() -> tuple[Book, int]:
    book = ready()
    return book, book.predict("ghost", "a", "0.7")


def method_constant() -> tuple[Book, int]:
    book = ready()
    return book, book.predict("uniform", "a", "0.5", extraction_rule="uniform/1")


def card_not_in_set() -> tuple[Book, int]:
    book = Book()
    book.open()
    for card_id in ("a", "b"):
        book.card(card_id)
        book.seal(card_id)
    book.plan()
    return book, book.predict("direct", "b", "0.7")


def draw_beyond() -> tuple[Book, int]:
    book = ready()
    return book, book.predict("direct", "a", "0.7", draw=2)


def cell_twice() -> tuple[Book, int]:
    book = ready()
    book.predict("direct", "a", "0.7")
    return book, book.predict("direct", "a", "0.8")


def extraction_other() -> tuple[Book, int]:
    book = ready()
    return book, book.predict("direct", "a", "0.7", extraction_rule="other/1")


def route_other() -> tuple[Book, int]:
    book = ready(RUNNER)
    return book, book.model_call("runner", "a", model_route=ModelRoute(resolved_model="model-2"))


def prompt_other() -> tuple[Book, int]:
    book = ready()
    return book, book.predict("direct", "a", "0.7", prompt_digest="cd" * 32)


def blend_parts() -> Book:
    book = ready(DIRECT, RUNNER, MIX)
    book.predict("direct", "a", "0.7")
    book.predict("runner", "a", "0.6")
    book.predict("runner", "a", "0.4", draw=2)
    return book


def blend_wrong() -> tuple[Book, int]:
    book = blend_parts()
    return book, book.predict("mix", "a", "0.580000001", kind="rule")


def blend_too_soon() -> tuple[Book, int]:
    book = ready(DIRECT, RUNNER, MIX)
    book.predict("direct", "a", "0.7")
    book.predict("runner", "a", "0.6")
    return book, book.predict("mix", "a", "0.64", kind="rule")


def blend_rounded_too_far() -> tuple[Book, int]:
    parts = [{"method": "direct", "weight": "0.5"}, {"method": "uniform", "weight": "0.5"}]
    mix = method_fields(
        "mix", extraction_rule="blend/1", blend={"parts": parts, "rounding": "0.01"}
    )
    book = ready(DIRECT, mix, UNIFORM)
    book.predict("direct", "a", "0.7")
    seq = book.predict("mix", "a", "0.610000001", extraction_rule="blend/1")
    return book, seq


def blend_unregistered() -> tuple[Book, int]:
    book = ready(method_fields("mix", extraction_rule="blend/1"))
    return book, book.predict("mix", "a", "0.7", extraction_rule="blend/1")


def blend_by_another_name() -> tuple[Book, int]:
    book = ready(DIRECT, RUNNER, dict(MIX) | {"extraction_rule": "direct/1"})
    return book, book.predict("mix", "a", "0.7")


def as_of_later() -> tuple[Book, int]:
    book = ready(RUNNER)
    return book, book.model_call("runner", "a", as_of=LATER)


def evidence_late() -> tuple[Book, int]:
    book = ready(RUNNER)
    return book, book.tool_call("runner", "a", [{}, {"published": LATER}])


def snapshot_late() -> tuple[Book, int]:
    book = ready(RUNNER)
    return book, book.tool_call("runner", "a", [{"snapshot": LATER}])


def evidence_without_date() -> tuple[Book, int]:
    book = ready(RUNNER)
    return book, book.tool_call("runner", "a", [{"published": None}])


def attempt_skipped() -> tuple[Book, int]:
    book = ready(RUNNER)
    return book, book.start("runner", "a", attempt=2)


def attempt_beside() -> tuple[Book, int]:
    book = ready(RUNNER)
    book.start("runner", "a")
    return book, book.start("runner", "a")


def attempt_after_freeze() -> tuple[Book, int]:
    book = ready(RUNNER)
    book.start("runner", "a")
    book.predict("runner", "a", "0.7", kind="run")
    return book, book.start("runner", "a")


def attempt_uncited() -> tuple[Book, int]:
    book = ready()
    return book, book.predict("direct", "a", "0.7", attempt=1)


def attempt_never_begun() -> tuple[Book, int]:
    book = ready(RUNNER)
    book.attempts["runner", "a", 1] = (1, 0)
    return book, book.predict("runner", "a", "0.7", kind="run")


def failure_miscited() -> tuple[Book, int]:
    book = ready(RUNNER)
    book.start("runner", "a")
    return book, book.fail("runner", "a", started_seq=1)


def attempt_left_open() -> tuple[Book, int]:
    book = ready(RUNNER)
    book.start("runner", "a")
    return book, book.close(("runner", "a", 1), ("runner", "a", 2))


def call_after_close() -> tuple[Book, int]:
    book = closed()
    return book, book.model_call("direct", "a")


def prediction_after_label() -> tuple[Book, int]:
    book = ready()
    book.unseal("a", waiver=WAIVER)
    return book, book.predict("direct", "a", "0.99")


def closed_twice() -> tuple[Book, int]:
    book = closed()
    return book, book.close()


def miscounted(**counts: int) -> tuple[Book, int]:
    book = ready()
    book.predict("direct", "a", "0.7")
    return book, book.close(**counts)


def close_with_gap() -> tuple[Book, int]:
    book = ready()
    return book, book.close(expected=1)


def close_with_both() -> tuple[Book, int]:
    book = ready()
    book.predict("direct", "a", "0.7")
    return book, book.close(("direct", "a", 1), expected=1)


def close_with_stranger() -> tuple[Book, int]:
    book = ready()
    book.predict("direct", "a", "0.7")
    return book, book.close(("ghost", "a", 1), expected=1)


def unseal_without_close() -> tuple[Book, int]:
    book = ready()
    return book, book.unseal("a")


def unseal_early() -> tuple[Book, int]:
    book = ready(labels_open_not_before="2027-01-01T00:00:00.000000Z")
    book.close(("direct", "a", 1))
    return book, book.unseal("a")


def unseal_twice() -> tuple[Book, int]:
    book = closed()
    book.unseal("a")
    return book, book.unseal("a")


def unseal_elsewhere() -> tuple[Book, int]:
    book = closed()
    return book, book.unseal("a", sealed_seq=1)


def seal_not_opened() -> tuple[Book, int]:
    book = closed()
    return book, book.unseal("a", salt="00" * 32)


def label_flipped() -> tuple[Book, int]:
    book = closed()
    return book, book.unseal("a", private_json=book.vault["a"][2].replace("yes", "no"))


def seal_of(data: bytes) -> tuple[Book, int]:
    """A label of these bytes, sealed and opened as they are."""
    book = Book()
    book.open()
    book.card("a")
    salt = b"\x05" * 32
    seal = Seal(scheme="forecast-ledger/label/v1", commitment=commit(LABEL_TAG, salt, data))
    seq = book.add(LabelSealed(card_id="a", seal=seal, custodian="custodian"))
    book.vault["a"] = (seq, salt.hex(), data.decode())
    book.plan()
    book.close(("direct", "a", 1))
    return book, book.unseal("a")


def label_dropped() -> tuple[Book, None]:
    book = closed(("a", "b"))
    book.unseal("a")
    return book, None


def revises_nothing() -> tuple[Book, int]:
    book = closed()
    return book, book.revise("a", 2)


def revises_the_superseded() -> tuple[Book, int]:
    book = closed()
    first = book.unseal("a")
    book.revise("a", first)
    return book, book.revise("a", first, "yes")


def annulled_twice() -> tuple[Book, int]:
    book = ready()
    book.annul("a")
    return book, book.annul("a", "withdrawn")


def redaction_of(target: int, **other: Any) -> Case:
    def build() -> tuple[Book, int]:
        book = ready()
        return book, book.add(book.redaction(target, **other))

    return build


def redacted_twice() -> tuple[Book, int]:
    book = ready()
    book.redact(1)
    return book, book.add(book.redaction(1))


def anchored(change: Callable[[Book], dict[str, Any]]) -> Case:
    def build() -> tuple[Book, int]:
        book = ready()
        return book, book.anchor(**change(book))

    return build


def foreign_root(book: Book) -> dict[str, Any]:
    other = Book(seed="another")
    other.open()
    return {"text": other.checkpoint(), "tree_size": 1}


def scored() -> Book:
    book = closed()
    book.unseal("a")
    return book


def reported(row: PublishedScore, **other: Any) -> Case:
    def build() -> tuple[Book, int]:
        book = scored()
        return book, book.report(row, **other)

    return build


TRUE_ROW = score_row("direct", [("0.7", 1)])

BROKEN: tuple[tuple[str, Case], ...] = (
    ("order.opened-first", opened_twice),
    ("order.opened-first", opened_never),
    ("order.card-once", card_twice),
    ("order.card-before-use", card_unknown),
    ("order.source-after-as-of", source_late),
    ("order.seal-once", seal_twice),
    ("order.seal-before-use", seal_missing),
    ("order.plan-once", plan_twice),
    ("order.plan-before-use", plan_missing),
    ("order.amends-current", amends_other),
    ("order.plan-after-unseal", plan_after_label),
    ("order.plan-keeps-cells", plan_drops_cell),
    ("order.plan-keeps-cells", plan_changes_extraction),
    ("order.method-registered", method_unknown),
    ("order.method-registered", method_constant),
    ("order.card-registered", card_not_in_set),
    ("order.draw-registered", draw_beyond),
    ("order.cell-once", cell_twice),
    ("order.extraction-registered", extraction_other),
    ("order.route-registered", route_other),
    ("order.route-registered", prompt_other),
    ("order.blend", blend_wrong),
    ("order.blend", blend_too_soon),
    ("order.blend", blend_rounded_too_far),
    ("order.blend", blend_unregistered),
    ("order.blend", blend_by_another_name),
    ("order.as-of-widened", as_of_later),
    ("order.evidence-after-as-of", evidence_late),
    ("order.evidence-after-as-of", snapshot_late),
    ("order.evidence-undated", evidence_without_date),
    ("order.attempt-number", attempt_skipped),
    ("order.attempt-open", attempt_beside),
    ("order.attempt-open", attempt_after_freeze),
    ("order.attempt-cited", attempt_uncited),
    ("order.attempt-cited", attempt_never_begun),
    ("order.attempt-cited", failure_miscited),
    ("order.attempt-unreported", attempt_left_open),
    ("order.late-prediction", call_after_close),
    ("order.post-label", prediction_after_label),
    ("order.close-once", closed_twice),
    ("order.close-counts", lambda: miscounted(expected=2)),
    ("order.close-counts", lambda: miscounted(frozen=0)),
    ("order.close-counts", lambda: miscounted(attempts=3)),
    ("order.close-counts", lambda: miscounted(failed_attempts=1)),
    ("order.close-complete", close_with_gap),
    ("order.close-complete", close_with_both),
    ("order.close-complete", close_with_stranger),
    ("order.unseal-before-close", unseal_without_close),
    ("order.unseal-too-early", unseal_early),
    ("order.unseal-target", unseal_twice),
    ("order.unseal-target", unseal_elsewhere),
    ("label.seal", seal_not_opened),
    ("label.seal", label_flipped),
    ("label.bytes", lambda: seal_of(b'{"card_id":"a","resolution":"maybe"}')),
    ("label.bytes", lambda: seal_of(b'{"card_id":"b","resolution":"yes"}')),
    ("label.bytes", lambda: seal_of(b'{"card_id": "a","resolution":"yes"}')),
    ("label.bytes", lambda: seal_of(b'{"card_id":"a","card_id":"a","resolution":"yes"}')),
    ("label.bytes", lambda: seal_of(b"[]")),
    ("order.label-dropped", label_dropped),
    ("order.revision", revises_nothing),
    ("order.revision", revises_the_superseded),
    ("order.annulled-once", annulled_twice),
    *WORLD_BROKEN,
    ("order.redaction", redaction_of(0)),
    ("order.redaction", redaction_of(1, commitment=DIGEST)),
    ("order.redaction", redacted_twice),
    ("order.anchor", anchored(foreign_root)),
    ("order.anchor", anchored(lambda b: {"text": b.checkpoint(origin="example.com/other")})),
    ("order.anchor", anchored(lambda b: {"tree_size": 2})),
    ("order.anchor", anchored(lambda b: {"text": b.checkpoint().replace("\n", "\r\n")})),
    ("order.report", reported(TRUE_ROW.model_copy(update={"brier": "0.08"}))),
    ("order.report", reported(TRUE_ROW.model_copy(update={"n": 2}))),
    ("order.report", reported(TRUE_ROW.model_copy(update={"log": "0.356674947"}))),
    ("order.report", reported(TRUE_ROW.model_copy(update={"log": None}))),
    ("order.report", reported(TRUE_ROW.model_copy(update={"method": "ghost"}))),
    ("order.report", reported(TRUE_ROW, evaluated_size=1000)),
)
