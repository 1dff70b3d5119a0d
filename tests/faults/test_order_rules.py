"""Every order rule is broken once, alone, and named; the table must cover the specification."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from broken_ledgers import BROKEN, WAIVER, blend_parts, scored, seal_of
from builders import Book
from evaluations import closed, honest_book, ready
from plans import FORKY, RUNNER
from rows import Rows, breaches
from world_cases import Case

from ledger.canonical import canonicalize_exact
from ledger.verify.rules import NOTES, ORDER_RULES

SPEC = Path(__file__).resolve().parents[2] / "docs/spec/events.md"


def spec_rules(section: str) -> list[str]:
    """The ids of the first table under a heading of the specification page."""
    text = SPEC.read_text(encoding="utf-8").split(f"## {section}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^\| `([a-z.-]+)` \|", text, re.MULTILINE)


def test_every_rule_of_the_specification_is_broken_here() -> None:
    covered = list(dict.fromkeys(rule for rule, _ in BROKEN))
    assert covered == spec_rules("Order rules") == [rule.id for rule in ORDER_RULES]


@pytest.mark.parametrize(
    ("rule", "case"), BROKEN, ids=[f"{i}-{rule}" for i, (rule, _) in enumerate(BROKEN)]
)
def test_a_broken_rule_is_named_alone_and_where_it_happened(rule: str, case: Case) -> None:
    """Each rule is decided by the command, and checked again by the verifier from the bytes."""
    book, seq = case()
    result = Rows.of(book).verify()
    grave = [f for f in result.findings if f.severity in ("tampered", "deviated")]
    assert [(f.rule, f.seq) for f in grave] == [(rule, seq)]
    is_label = rule.startswith("label.")
    assert result.verdict == ("tampered" if is_label else "deviated")
    assert result.exit_code == (1 if is_label else 4)


@pytest.mark.parametrize(
    "book",
    [honest_book(), closed(), scored(), blend_parts(), ready(FORKY)],
    ids=["honest", "closed", "scored", "blend", "forking"],
)
def test_an_honest_ledger_breaks_nothing(book: Book) -> None:
    result = Rows.of(book).verify()
    assert breaches(result) == set()
    assert result.verdict == "unanchored"
    assert result.exit_code == 0


def test_the_honest_evaluation_holds_every_event_type() -> None:
    kinds = {record.type for record in honest_book().records}
    text = SPEC.read_text(encoding="utf-8")
    assert kinds == set(re.findall(r"^### `([a-z.]+)`$", text, re.MULTILINE))


def test_an_attempt_begun_after_the_closing_is_reported_at_the_end() -> None:
    """At `predictions.closed`, and at the end of a log that has one, no attempt is open."""
    book = closed()
    seq = book.start("direct", "a")
    result = Rows.of(book).verify()
    found = {(f.rule, f.seq) for f in result.findings if f.severity == "deviated"}
    late = {("order.late-prediction", seq), ("order.attempt-open", seq)}
    assert found == {*late, ("order.attempt-unreported", None)}


def test_a_second_world_begins_the_cell_anew() -> None:
    """A second `world.initialized` of a cell begins the cell's timelines anew."""
    book = ready(FORKY)
    for _ in range(2):
        book.world("forky", "a")
        book.fork("forky", "a", {"root": -1_000_000_000, "x": 1_000_000_000})
        book.end("forky", "a", "x", 1_000_000_000)
    assert breaches(Rows.of(book).verify()) == set()


def test_undated_evidence_may_be_kept_where_the_plan_says_so() -> None:
    book = ready(RUNNER, undated_evidence="keep_flagged")
    book.tool_call("runner", "a", [{"published": None}])
    assert breaches(Rows.of(book).verify()) == set()


def unknown_event(book: Book) -> int:
    return book.add_bytes("weather.observed", b'{"rain":true}')


def unknown_version(book: Book) -> int:
    return book.add_bytes("card.annulled", b"{}", type_v=2)


def annulled_late(book: Book) -> int:
    book.close(("direct", "a", 1))
    book.unseal("a")
    return book.annul("a")


def still_stored(book: Book) -> int:
    book.add(book.redaction(1))
    return 1


def waived(book: Book) -> int:
    return book.unseal("a", waiver=WAIVER)


NOTED: tuple[tuple[str, Callable[[Book], int]], ...] = (
    ("event.unknown", unknown_event),
    ("event.unknown", unknown_version),
    ("annulled-after-unseal", annulled_late),
    ("redaction.present", still_stored),
    ("label.waiver", waived),
)


@pytest.mark.parametrize(("note", "act"), NOTED, ids=[f"{i}-{n}" for i, (n, _) in enumerate(NOTED)])
def test_a_note_is_printed_and_changes_no_verdict(note: str, act: Callable[[Book], int]) -> None:
    """Not deviations; a verifier MUST print them."""
    book = ready()
    seq = act(book)
    result = Rows.of(book).verify()
    assert [(f.rule, f.seq) for f in result.findings if f.severity == "note"] == [(note, seq)]
    assert result.verdict == "unanchored"


def test_a_clock_that_runs_backwards_is_noted() -> None:
    """`time.backwards`: `recorded_at` earlier than that of the event before."""
    book = Book(step=timedelta(seconds=-1))
    book.open()
    seq = book.card("a", kind="dossier")
    found = Rows.of(book).verify().findings
    assert [(f.rule, f.seq) for f in found] == [("time.backwards", seq)]


def test_the_notes_are_those_of_the_specification() -> None:
    # store.guard is about the file: tests/faults/test_tampering.py.
    tested = {"time.backwards", "store.guard", *(note for note, _ in NOTED)}
    assert {note.id for note in NOTES} == set(spec_rules("Notes")) == tested


@pytest.mark.parametrize("hidden", ["plan", "card", "seal"])
def test_what_hangs_on_a_redacted_payload_is_withheld(hidden: str) -> None:
    """A rule whose answer hangs on a redacted payload is *withheld*."""
    book = closed()
    target = {"card": 1, "seal": 2, "plan": 3}[hidden]
    book.redact(target)
    book.unseal("a")
    result = Rows.of(book).verify()
    assert breaches(result) == set()
    withheld = {f.rule for f in result.findings if f.severity == "withheld"}
    assert "payload.withheld" in withheld
    assert len(withheld) > 1
    assert result.exit_code == 0
    claims = {"plan": ("Plan:", "Closing:"), "card": ("Seals:",), "seal": ("Seals:",)}[hidden]
    for sentence in result.proved:
        assert not sentence.startswith(claims) or "Hidden payloads excepted" in sentence


def test_a_rule_that_hangs_on_a_hidden_payload_is_reported_once() -> None:
    book = ready(cards=("a", "b", "c"))
    book.redact(book.plan_seq)
    for card_id in ("a", "b", "c"):
        book.predict("direct", card_id, "0.7")
    withheld = [f.rule for f in Rows.of(book).verify().findings if f.severity == "withheld"]
    assert "order.method-registered" in withheld
    assert len(withheld) == len(set(withheld))


def test_the_first_opening_of_a_label_stays_in_force() -> None:
    """The *label in force* is its last `label.revised`, else its `label.unsealed`."""
    book = closed()
    first = book.unseal("a")
    book.unseal("a")
    book.revise("a", first)
    assert breaches(Rows.of(book).verify()) == {"order.unseal-target"}


def test_a_label_is_not_dropped_where_none_is_needed_or_the_card_is_annulled() -> None:
    """Every registered card that needs a seal is open or annulled by the end of the log."""
    book = Book()
    book.open()
    book.card("a")
    book.card("b")
    book.card("c", kind="dossier")
    book.seal("a")
    book.seal("b")
    book.plan(cards=("a", "b", "c"))
    book.close(*[("direct", card_id, 1) for card_id in ("a", "b", "c")])
    book.annul("b", "ambiguous")
    book.unseal("a")
    assert breaches(Rows.of(book).verify()) == set()


def test_a_redacted_payload_does_not_hide_its_type() -> None:
    """The type of a redacted event stays in its envelope and still counts."""
    book = closed()
    seq = book.predict("direct", "a", "0.9")
    book.redact(seq)
    result = Rows.of(book).verify()
    assert breaches(result) == {"order.late-prediction"}


def test_a_label_may_hold_more_than_the_resolution() -> None:
    data = canonicalize_exact({"card_id": "a", "resolution": "no", "summary": "caf\u00e9"})
    book, _ = seal_of(data)
    assert breaches(Rows.of(book).verify()) == set()
