"""Attacks on a ledger file by somebody with write access, each named; and what cannot be seen."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest
from builders import VKEY, Book
from evaluations import closed, honest_book
from rows import Rows, breaches, forge
from tamper_cases import (
    STRANGER,
    TAMPERED,
    Attack,
    evaluation,
    held,
    of_size_zero,
    only_at,
    rewritten,
    unsigned,
    with_sql,
)

from ledger.signed_note import format_verifier_key
from ledger.verify.check import verify_file
from ledger.verify.rules import INTEGRITY_RULES, RULES

SPEC = Path(__file__).resolve().parents[2] / "docs/spec/verification.md"
CODES = {"tampered": 1, "unverifiable": 3, "withheld": 0, "note": 0}


def test_every_integrity_rule_is_attacked_here() -> None:
    text = SPEC.read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([a-z.]+)` \| [a-z]+ \|", text.split("## Rules")[1], re.MULTILINE)
    attacked = list(dict.fromkeys(rule for rule, _, _ in TAMPERED))
    assert attacked == listed == [rule.id for rule in INTEGRITY_RULES]


@pytest.mark.parametrize(
    ("rule", "seq", "attack"), TAMPERED, ids=[f"{i}-{row[0]}" for i, row in enumerate(TAMPERED)]
)
def test_an_attack_is_named_where_it_was_done(
    rule: str, seq: int | None, attack: Attack, tmp_path: Path
) -> None:
    result = attack(tmp_path)
    assert (rule, seq) in {(f.rule, f.seq) for f in result.findings}
    assert result.exit_code == CODES[RULES[rule].severity]
    if RULES[rule].severity == "tampered":
        assert result.verdict == "tampered"
        assert result.proved == ()
    if RULES[rule].severity == "unverifiable":
        assert result.verdict == "unverifiable"


ALONE = frozenset(
    {
        *("store.column", "store.orphan", "log.id", "log.log", "log.stream", "log.key"),
        *("envelope.canonical", "payload.canonical", "payload.lost", "checkpoint.fork"),
        *("checkpoint.truncated", "checkpoint.origin", "checkpoint.signature"),
    }
)


@pytest.mark.parametrize(
    ("rule", "attack"),
    [(rule, attack) for rule, _, attack in TAMPERED if rule in ALONE],
    ids=[f"{i}-{rule}" for i, (rule, _, _) in enumerate(TAMPERED) if rule in ALONE],
)
def test_no_follow_up_noise_hides_the_cause(rule: str, attack: Attack, tmp_path: Path) -> None:
    """A breach that touches one thing alone gives one name alone."""
    grave = {f.rule for f in attack(tmp_path).findings if f.severity == "tampered"}
    assert grave == {rule}


def test_a_dropped_tail_is_seen_by_a_held_checkpoint_alone(tmp_path: Path) -> None:
    """A missing tail leaves a log that is consistent in itself."""
    book = closed()
    text = book.checkpoint()
    path = Rows(Rows.of(book).stored[:-1]).write(tmp_path / "ledger.db")
    alone = verify_file(path)
    assert (alone.verdict, breaches(alone)) == ("unanchored", set())
    against = verify_file(path, checkpoint_text=text)
    assert (against.verdict, breaches(against)) == ("tampered", {"checkpoint.truncated"})


def test_a_rewritten_chain_is_seen_by_a_held_checkpoint_alone(tmp_path: Path) -> None:
    """`unanchored`: an operator who rewrites everything gets the same verdict."""
    rows = evaluation()
    path = rewritten(rows).write(tmp_path / "ledger.db")
    alone = verify_file(path)
    assert (alone.verdict, alone.exit_code, breaches(alone)) == ("unanchored", 0, set())
    assert verify_file(path, require_anchor=True).exit_code == 3
    against = verify_file(path, checkpoint_text=held(rows), keys=(VKEY,))
    assert (against.verdict, breaches(against)) == ("tampered", {"checkpoint.fork"})


def test_a_new_last_event_with_its_leaf_is_seen_by_a_held_checkpoint_alone() -> None:
    """The last event has no P: it is seen by a held checkpoint alone."""
    rows = evaluation()
    changed = forge(rows.stored, payload=only_at(6, b"So it was.", b"So it is .")).stored[6]
    forged_rows = rows.patch(6, envelope=changed.envelope, leaf=changed.leaf, data=changed.data)
    # The seal inside the payload still gives a changed label away.
    assert breaches(forged_rows.verify()) == {"label.seal"}
    assert "checkpoint.fork" in breaches(forged_rows.verify(checkpoint_text=held(rows)))


def test_an_honest_continuation_of_a_held_checkpoint_is_sound(tmp_path: Path) -> None:
    rows = evaluation()
    path = rows.write(tmp_path / "ledger.db")
    for size in range(1, len(rows.stored) + 1):
        result = verify_file(path, checkpoint_text=held(rows, size), keys=(VKEY,))
        assert (result.verdict, result.exit_code) == ("sound", 0)
        assert f"Held: events 0 to {size - 1} " in result.proved[-1]
        uncovered = [f.seq for f in result.findings if f.rule == "checkpoint.uncovered"]
        assert uncovered == ([size] if size < len(rows.stored) else [])


def test_a_checkpoint_of_size_zero_anchors_nothing() -> None:
    """A checkpoint of size 0 holds nothing and anchors nothing."""
    rows = evaluation()
    assert rows.verify(checkpoint_text=of_size_zero(rows)).verdict == "unanchored"


def test_a_checkpoint_inside_the_log_anchors_nothing() -> None:
    book = closed()
    book.anchor()
    book.unseal("a")
    result = Rows.of(book).verify()
    assert (result.verdict, result.findings) == ("unanchored", ())


def test_a_held_checkpoint_without_signature_is_trusted_as_held() -> None:
    rows = evaluation()
    result = rows.verify(checkpoint_text=unsigned(rows))
    assert result.verdict == "sound"
    assert [f.rule for f in result.findings] == ["checkpoint.unsigned"]


def test_a_key_given_replaces_the_keys_of_the_ledger() -> None:
    """Keys given by the reader are known. Where none is given, those of `ledger.opened` are."""
    rows = evaluation()
    stranger = format_verifier_key(STRANGER.verifier_key)
    assert rows.verify(checkpoint_text=held(rows)).verdict == "sound"
    assert rows.verify(checkpoint_text=held(rows), keys=(stranger,)).verdict == "unverifiable"
    by_stranger = held(rows, signer=STRANGER)
    assert rows.verify(checkpoint_text=by_stranger, keys=(stranger,)).verdict == "sound"
    word = rows.verify(checkpoint_text=held(rows)).proved[-1]
    assert "the ledger's own word" in word


def test_a_forged_history_next_to_an_honest_one_is_a_fork() -> None:
    """Two logs of one origin that share a beginning: each is fine, and they exclude each other."""
    honest, secret = closed(), closed()
    honest.unseal("a")
    secret.annul("a")
    secret.model_call("direct", "a")
    one, two = Rows.of(honest), Rows.of(secret)
    assert breaches(two.verify(checkpoint_text=held(one, 6))) <= {"order.late-prediction"}
    assert "checkpoint.fork" in breaches(two.verify(checkpoint_text=held(one)))


def test_a_lost_guard_is_noted(tmp_path: Path) -> None:
    """`store.guard`: the file has the two append-only triggers and the unique indexes."""
    path = evaluation().write(tmp_path / "whole.db")
    assert verify_file(path).findings == ()
    result = with_sql(
        evaluation(),
        tmp_path,
        "CREATE TRIGGER mine AFTER INSERT ON events BEGIN DELETE FROM payloads; END",
    )
    assert [f.rule for f in result.findings] == ["store.guard"] * 3
    assert (result.verdict, result.exit_code) == ("unanchored", 0)


def test_many_findings_of_one_rule_are_counted_and_not_all_listed() -> None:
    """At most 100 findings of one rule are written; one more then says how many there were."""
    book = Book()
    book.open()
    for index in range(150):
        book.add_bytes("weather.observed", b"{}", f"s{index}")
    found = Rows.of(book).verify().findings
    assert len(found) == 101
    assert "150 findings in all" in found[-1].message


def test_the_cause_stands_before_what_follows_from_it() -> None:
    """Findings are sorted by `seq`, at one `seq` by gravity."""
    rows = Rows.of(honest_book())
    found = rows.patch(1, data=b"[]").verify().findings
    assert (found[0].seq, found[0].severity) == (1, "tampered")
    assert [f.rule for f in found if f.seq == 1][:2] == ["payload.commitment", "payload.length"]
    seqs = [f.seq for f in found if f.seq is not None]
    assert seqs == sorted(seqs)


def test_a_payload_beside_the_log_is_not_read_into_it(tmp_path: Path) -> None:
    """Other tables are projections: disposable, and of no weight in any check."""
    path = evaluation().write(tmp_path / "ledger.db")
    conn = sqlite3.connect(path)
    conn.execute("CREATE TABLE scores (method TEXT, brier REAL)")
    conn.commit()
    conn.close()
    assert verify_file(path).findings == ()
