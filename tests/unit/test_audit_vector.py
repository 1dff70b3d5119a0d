"""The audit vector: every field from the log, none on trust, the gravest word first."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from replay_ledgers import Bench, constant, make_plan, method, plan_fields

from ledger.canonical import canonicalize_exact
from ledger.decimals import UNITS
from ledger.events.branch import BranchForked, Posting, TimelineEnded
from ledger.events.codec import draft_event
from ledger.events.endpoint import ClaimRecorded, EndpointRejected
from ledger.events.world import RubricScore, WorldInitialized
from scoring.audit_vector import AUDIT_COLUMNS, audit_rows
from scoring.report import build_report

POLICY = {
    "id": "tree",
    "max_depth": 2,
    "max_active_timelines": 4,
    "max_branches_per_tick": 2,
    "branch_threshold": "0.75",
    "min_runway_ticks": None,
    "candidate_endpoint_branches_only": True,
}
CELL: dict[str, Any] = {"method": "wf", "card_id": "c1", "draw": 1}


def bench(draws: int = 1) -> Bench:
    spec = method(
        "wf", branch_policy="tree", draws=draws, aggregate="mean" if draws > 1 else "single"
    )
    plan = make_plan(plan_fields(["c1"], [spec, constant()], branch_policies=[POLICY]))
    return Bench(plan).freeze({"c1": "yes"}).register()


def vector(made: Bench, name: str = "wf") -> dict[str, str]:
    report = build_report(made.session.store)
    rows = list(audit_rows(report.evaluation, report.plan, report.panel))
    assert all(tuple(row) == AUDIT_COLUMNS for row in rows)
    return next(row for row in rows if row["method"] == name)


def world(*rubric: RubricScore, draw: int = 1) -> WorldInitialized:
    nothing: dict[str, Any] = dict.fromkeys(
        ("actors", "constraints", "scored_endpoints", "auxiliary_endpoints", "graph"), ()
    ) | dict.fromkeys(("seed_events", "branch_hypotheses", "endpoint_ledger"), ())
    return WorldInitialized(
        **CELL | {"draw": draw}, **nothing, timeline="root", social_state={}, rubric=rubric
    )


def rubric(dimension: str, score: int) -> RubricScore:
    return RubricScore(dimension=dimension, score=score, pass_mark=3, judged_by="human")


def fork(parent: int, child: int) -> BranchForked:
    postings = (
        Posting(timeline="root", mass_units=parent),
        Posting(timeline="x", mass_units=child),
    )
    return BranchForked(
        **CELL,
        parent="root",
        children=("x",),
        tick=1,
        inherited_up_to_tick=0,
        postings=postings,
        trigger_score="0.8",
        threshold="0.75",
        hypothesis="",
        chosen_by="model",
    )


def end(timeline: str, mass: int, settled: Literal["yes", "no"] = "yes") -> TimelineEnded:
    return TimelineEnded(
        **CELL, timeline=timeline, how="completed", mass_units=mass, settled=settled, reason=""
    )


def test_a_silent_log_is_not_recorded_and_a_constant_not_applicable() -> None:
    made = bench()
    for field in ("initialization_validity", "path_mass_conservation", "report_grounding"):
        assert vector(made)[field] == "not recorded"
        assert vector(made, "uniform")[field] == "not applicable"
    assert vector(made)["unresolved_mass"] == "not recorded"
    assert vector(made)["leakage_exposure"] == (
        "card risk not recorded; full card yes; masked ids yes; retrieval no; local context no;"
        " method risk low"
    )


def test_initialization_names_failed_dimensions() -> None:
    assert vector(bench().add(world()))["initialization_validity"].endswith("rubric not recorded")
    good = world(rubric("actors", 3), rubric("graph", 4))
    assert vector(bench().add(good))["initialization_validity"] == "passed 2 dimensions"
    bad = world(rubric("graph", 2), rubric("actors", 1), rubric("events", 4))
    assert vector(bench().add(bad))["initialization_validity"] == "failed: actors graph"


def test_one_failed_draw_is_not_hidden_by_the_others() -> None:
    made = bench(2).add(world(rubric("graph", 4)), world(rubric("graph", 0), draw=2))
    assert vector(made)["initialization_validity"] == "failed: graph"


def test_books_that_balance() -> None:
    made = bench().add(world(), fork(-300_000_000, 300_000_000), end("x", 300_000_000))
    assert vector(made)["path_mass_conservation"] == "balanced to the unit"
    made.add(end("root", 700_000_000))
    assert vector(made)["path_mass_conservation"] == "balanced to the unit"


@pytest.mark.parametrize(
    "payloads",
    [
        [fork(-300_000_000, 299_999_999)],
        [fork(-UNITS, UNITS), fork(-1, 1)],
        [end("root", UNITS - 1)],
        [end("nobody", 5)],
        [fork(-300_000_000, 300_000_000), end("x", 1)],
        # Two wrong ends that add up to one.
        [fork(-300_000_000, 300_000_000), end("x", 1), end("root", UNITS - 1)],
    ],
)
def test_books_that_do_not_balance_are_not_said_to(payloads: list[Any]) -> None:
    made = bench().add(world())
    # The writer's rules would refuse these; a log need not come from the writer.
    made.session.store.append([draft_event(payload, actor="tests") for payload in payloads])
    assert vector(made)["path_mass_conservation"] == "not balanced"


def test_a_redacted_fork_withholds_the_books() -> None:
    made = bench().add(world(), fork(-300_000_000, 300_000_000))
    made.session.redact(made.session.state().size - 1, reason="Personal data.", authority="tests")
    assert vector(made)["path_mass_conservation"] == "withheld"


def test_a_fork_without_a_world_has_no_books_to_balance() -> None:
    made = bench()
    payload = fork(-1, 1)
    assert canonicalize_exact(payload.model_dump(mode="python"))
    made.session.store.append([draft_event(payload, actor="tests")])
    assert vector(made)["path_mass_conservation"] == "not balanced"


def test_unresolved_mass_is_the_exact_mean_of_the_draws_that_record_one() -> None:
    made = bench(3)
    for draw, mass in ((1, 300_000_001), (2, 300_000_002), (3, None)):
        made.add(made.prediction("wf", "c1", draw, "0.5", unresolved_mass_units=mass))
    # The mean lies on a half and goes to even.
    assert vector(made)["unresolved_mass"] == "0.300000002"


def test_claims_and_rejected_endpoints_are_counted() -> None:
    blank: dict[str, Any] = dict.fromkeys(
        ("timeline", "tick", "actor", "source_text", "state_update", "endpoint", "confidence")
    )
    made = bench()
    for grounded in (True, False, None):
        made.add(ClaimRecorded(**CELL, **blank, claim="So.", rests_on=(), grounded=grounded))
    for name in ("wf", None):
        made.add(
            EndpointRejected(method=name, card_id="c1", endpoint="x", wording="w", reason="leaks")
        )
    assert vector(made)["report_grounding"] == "1 of 3 claims grounded"
    assert vector(made)["endpoint_hygiene"] == "binary apart from 0 auxiliary; 2 rejected"
    assert vector(made, "uniform")["endpoint_hygiene"].endswith("1 rejected")
