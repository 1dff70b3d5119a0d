"""Every order rule that a writer can judge is refused by the writer, under its own name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from event_examples import (
    AMENDED,
    CALLED,
    CLOSED,
    FILE_FROZEN,
    MIXED,
    OPENED,
    PLANNED,
    REDACTED,
    SECOND_DRAW,
    STARTED,
    STORY,
    TOOL,
    WORLD,
    changed,
    make_plan,
    plain,
)
from order_cases import CASES, Case, session_of, with_methods
from store_examples import clock, dump

from ledger.clock import format_moment
from ledger.errors import BugError, OrderError, WithheldError
from ledger.events.base import Payload
from ledger.protocol.state import Cell
from ledger.session import Session

PAGE = Path(__file__).parents[2] / "docs" / "spec" / "events.md"
NOT_JUDGED_WHEN_WRITTEN = {
    "order.anchor",  # the command computes size and root from the log it signs
    "order.report",  # the command computes the scores that it publishes
    "order.label-dropped",  # about the end of a log; decide_unseal opens all labels or none
    "order.redaction",  # written by Session.redact alone, see tests/unit/test_session.py
}


def rules_of_the_page() -> list[str]:
    table = PAGE.read_text(encoding="utf-8").split("## Order rules")[1].split("## Notes")[0]
    return re.findall(r"^\| `([a-z.-]+)` \|", table, flags=re.MULTILINE)


def test_every_rule_of_the_page_has_its_cases() -> None:
    """events.md: each rule is decided by the command that would write the event."""
    page = rules_of_the_page()
    assert len(page) > 40
    assert {case.rule for case in CASES} == set(page) - NOT_JUDGED_WHEN_WRITTEN


@pytest.mark.parametrize(
    "case",
    CASES,
    ids=[f"{n}-{case.rule}-{type(case.payload).__name__}" for n, case in enumerate(CASES)],
)
def test_a_breach_is_refused_with_rule_seq_and_remedy(case: Case) -> None:
    """events.md: what a command refuses, it refuses with the rule, the seq and what to do."""
    session = session_of(case.log)
    before = dump(session.store)
    with pytest.raises(OrderError) as caught:
        session.commit(lambda _: [case.payload])
    assert (caught.value.rule, caught.value.seq) == (case.rule, case.seq)
    assert caught.value.remedy.endswith(".")
    assert f"[{case.rule}]" in str(caught.value)
    assert dump(session.store) == before
    # As a later member of a batch, behind a payload that is allowed, it is refused all the same.
    allowed = OPENED if not case.log else changed(STORY[1], card=_another_card())
    if case.rule != "order.opened-first":
        with pytest.raises(OrderError) as caught:
            session.commit(lambda _: iter([allowed, case.payload]))
        assert caught.value.rule == case.rule
        assert dump(session.store) == before
        assert list(session.commit(lambda _: [allowed])) == [len(before)]


def _another_card() -> object:
    return plain(STORY[1])["card"] | {"card_id": "another", "kind": "stress"}


def test_the_whole_story_is_allowed() -> None:
    assert session_of(STORY).state().size == len(STORY)


def allowed(log: tuple[Payload, ...], payload: Payload) -> None:
    """Say that no rule forbids a payload."""
    session_of((*log, payload))


def test_what_the_rules_do_not_forbid() -> None:
    # A call may look earlier than its card; undated evidence may stay where the plan says so.
    undated = plain(TOOL.evidence[0]) | {"published": None}
    keeping = changed(AMENDED, plan=plain(make_plan(undated_evidence="keep_flagged")))
    allowed((*STORY[:5], keeping, *STORY[6:9]), changed(TOOL, evidence=[undated]))
    at_as_of = plain(TOOL.evidence[0]) | {"published": TOOL.as_of, "snapshot": TOOL.as_of}
    allowed(STORY[:9], changed(TOOL, evidence=[at_as_of]))
    # Calls of a method with a branch policy have prompts of their own.
    branching = with_methods(live={"branch_policy": "narrow"})
    other = changed(CALLED, prompt_version="v9", model_route={"provider": "rival"})
    allowed((*STORY[:6], branching), other)
    # What one side does not record is no difference.
    silent = changed(CALLED, model_route={"provider": None})
    allowed(STORY[:9], silent)
    # An imported prediction may end an attempt that is open.
    live_file = changed(FILE_FROZEN, method="live")
    session = session_of((*STORY[:9], live_file))
    assert session.state().attempts[Cell("live", "bridge", 1)].open_seq is None


def test_a_second_world_begins_the_timelines_anew() -> None:
    """events.md: a second `world.initialized` of a cell begins the cell's timelines anew."""
    session = session_of((*STORY[:17], WORLD))
    cell = Cell("live", "bridge", 1)
    assert session.state().worlds[cell] == {"root": 1_000_000_000}
    session.commit(lambda _: [STORY[12], STORY[14], STORY[16]])
    assert session.state().worlds[cell] == {"root": 400_000_000, "right": 200_000_000}


def test_two_postings_of_one_timeline_count_together() -> None:
    """events.md, order.mass-balance: the postings sum to zero; nothing says one a timeline."""
    fork = STORY[14]
    postings = [{"timeline": "left", "mass_units": -1}, {"timeline": "left", "mass_units": 1}]
    allowed(STORY[:14], changed(fork, postings=[*plain(fork)["postings"], *postings]))


@pytest.mark.parametrize("p_yes", ["0.455", "0.445", "0.45"])
def test_a_rounded_blend_lies_within_its_rounding(p_yes: str) -> None:
    """events.md, order.blend: within `rounding` of the weighted mean, ends included."""
    blend = {
        "parts": [{"method": "file", "weight": "0.25"}, {"method": "uniform", "weight": "0.75"}],
        "rounding": "0.005",
    }
    rounded = with_methods(mix={"source": "imported", "blend": blend})
    allowed((*STORY[:6], rounded, FILE_FROZEN, SECOND_DRAW), changed(MIXED, p_yes=p_yes))


def test_a_blend_is_rounded_half_to_even_at_nine_places() -> None:
    """events.md, order.blend: exactly, after rounding half to even at nine places."""
    blend = {
        "parts": [{"method": "file", "weight": "0.5"}, {"method": "uniform", "weight": "0.5"}],
        "rounding": None,
    }
    log = (*STORY[:6], with_methods(mix={"blend": blend}, file={"draws": 1, "aggregate": "single"}))
    for p_yes, mixed in (("0.000000001", "0.25"), ("0.000000003", "0.250000002")):
        allowed((*log, changed(FILE_FROZEN, p_yes=p_yes)), changed(MIXED, p_yes=mixed))


def redacted_session(seq: int, log: tuple[Payload, ...]) -> Session:
    session = session_of(log)
    session.redact(seq, reason="Terms.", authority="counsel")
    return session


def test_the_type_of_a_redacted_event_still_counts() -> None:
    """events.md: the type of a redacted event stays in its envelope and still counts."""
    whole = session_of(STORY[:26]).state()
    for seq in (6, 7, 23, 25):
        state = redacted_session(seq, STORY[:26]).state()
        assert (state.started, state.failed) == (whole.started, whole.failed)
        assert state.closed_seq == whole.closed_seq
        assert state.first_unsealed_seq == whole.first_unsealed_seq


@pytest.mark.parametrize("plan_seq", [4, 5])
def test_a_redacted_plan_is_neither_replaced_nor_guessed_at(plan_seq: int) -> None:
    session = redacted_session(plan_seq, STORY[: plan_seq + 1])
    with pytest.raises(OrderError) as caught:
        session.commit(lambda _: [PLANNED])
    assert (caught.value.rule, caught.value.seq) == ("order.plan-once", plan_seq)
    for payload in (STARTED, CLOSED):
        with pytest.raises(WithheldError, match=f"event {plan_seq}"):
            session.commit(lambda _, p=payload: [p])  # type: ignore[misc]
    session.commit(lambda _: [changed(AMENDED, amends_seq=plan_seq), STARTED])


def test_a_redaction_is_written_with_its_deletion_alone() -> None:
    session = session_of(STORY[:3])
    with pytest.raises(BugError):
        session.commit(lambda _: [REDACTED])
    assert session.state().size == 3


def test_labels_open_at_the_very_moment_that_the_plan_names() -> None:
    """events.md, order.unseal-too-early: not before, by `recorded_at`."""
    log = STORY[:24]
    at = clock()
    for _ in range(25):
        moment = at()
    opens = make_plan(labels_open_not_before=format_moment(moment))
    amended = changed(AMENDED, plan=plain(opens))
    allowed((*log[:5], amended, *log[6:]), STORY[25])
    last = moment.replace(microsecond=moment.microsecond + 1)
    too_late = changed(AMENDED, plan=plain(make_plan(labels_open_not_before=format_moment(last))))
    with pytest.raises(OrderError, match="unseal-too-early"):
        allowed((*log[:5], too_late, *log[6:]), STORY[25])
