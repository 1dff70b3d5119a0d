"""Scores and comparisons under a plan: primary metric, single class, pairs, decisions, looks."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replay_ledgers import Bench, blend, constant, make_plan, method, plan_fields

from ledger.decimals import format_units
from ledger.errors import BadInputError
from scoring import limit
from scoring.comparison import brier_differences
from scoring.exact import ExactArray
from scoring.joint_flips import sign_flip_tests
from scoring.leaderboard import describe_published
from scoring.permutation import sign_flip_test
from scoring.report import build_report

CARDS = [f"c{number}" for number in range(8)]
LABELS = {card: "yes" if number % 2 else "no" for number, card in enumerate(CARDS)}
GOOD = {card: "0.8" if LABELS[card] == "yes" else "0.1" for card in CARDS}
FLAT = {card: f"0.{number + 1}5" for number, card in enumerate(CARDS)}


def scores(
    *, labels: dict[str, str] = LABELS, compare: tuple[tuple[str, str], ...] = (), **changes: object
) -> dict[str, Any]:
    methods = [method("a"), method("b"), constant()]
    plan = make_plan(plan_fields(CARDS, methods, **changes))
    made = Bench(plan).freeze(labels).register().predict("a", GOOD).predict("b", FLAT)
    return build_report(made.close().unseal().session.store, compare=compare).scores


def test_a_plan_with_log_as_primary_metric_compares_in_log() -> None:
    found = scores(primary_metric="log", secondary_metrics=["brier"])
    (pair,) = found["paired"]
    assert pair["metric"] == "log"
    rows = found["scores"]
    assert pair["mean_difference"] == pytest.approx(rows["b"]["log"] - rows["a"]["log"], abs=1e-12)
    assert pair["relative_reduction"] == pytest.approx(
        pair["mean_difference"] / rows["b"]["log"], abs=1e-12
    )
    assert found["metrics"]["primary"] == "log"
    assert found["leaderboard"] == sorted(rows, key=lambda name: float(rows[name]["log"]))


def test_a_single_class_has_no_auc_and_no_uncertainty() -> None:
    found = scores(labels=dict.fromkeys(CARDS, "yes"))["scores"]["a"]
    assert found["auc"] is None
    assert found["unc"] == 0
    assert found["brier"] is not None


def test_what_the_plan_does_not_register_is_exploratory() -> None:
    found = scores(secondary_metrics=["log", "corp"])["metrics"]
    assert found["secondary"] == ["log", "corp"]
    assert found["exploratory"] == [
        "log_unclipped", "ece", "mce", "murphy", "sharpness", "auc", "spiegelhalter"
    ]  # fmt: skip


def test_looks_count_each_pair_once_and_mark_it() -> None:
    asked = (("a", "uniform"), ("uniform", "a"), ("a", "uniform"), ("b", "a"), ("a", "b"))
    found = scores(compare=asked)
    assert [(p["a"], p["b"], p["status"]) for p in found["paired"]] == [
        ("a", "b", "confirmatory"),
        ("a", "uniform", "exploratory"),
    ]
    assert found["looks"]["confirmatory"] == 1
    assert found["looks"]["exploratory"] == 1
    assert found["paired"][1]["decision"] is None
    assert found["paired"][1]["primary"] is False


def test_a_look_besides_moves_no_bit_of_what_is_registered() -> None:
    plain, more = scores(), scores(compare=(("b", "uniform"), ("a", "uniform")))
    assert more["paired"][:1] == plain["paired"]
    for name in ("scores", "multiplicity", "leaderboard", "examples", "failure_anatomy"):
        assert more[name] == plain[name]


@pytest.mark.parametrize("pair", [("a", "nobody"), ("a", "a")])
def test_a_look_at_nothing_is_refused(pair: tuple[str, str]) -> None:
    with pytest.raises(BadInputError, match=r"registered|itself"):
        scores(compare=(pair,))


@pytest.mark.parametrize(("correction", "factor"), [("none", None), ("bonferroni", 3), ("holm", 3)])
def test_the_decision_uses_the_corrected_value(correction: str, factor: int | None) -> None:
    found = scores(
        multiplicity={
            "confirmatory": correction,
            "exploratory": "none",
            "family": "all_pairs",
            "tests": ["sign"],
        }
    )
    decision = found["paired"][0]["decision"]
    assert decision["test"] == "sign"
    assert decision["p"] == found["paired"][0]["sign"][0]["p"]
    if factor is None:
        assert decision["adjusted_p"] is None
    else:
        assert decision["p"] <= decision["adjusted_p"] <= min(1, factor * decision["p"])
    decisive = decision["p"] if factor is None else decision["adjusted_p"]
    assert decision["significant"] == (decisive <= 0.05)


def test_one_method_alone_is_ranked_first() -> None:
    mix = blend("mix", {"a": "0.5", "uniform": "0.5"}, rounding=None)
    plan = make_plan(plan_fields(CARDS, [constant(), method("a"), mix]))
    made = Bench(plan).freeze(LABELS).register().predict("a", GOOD).close().unseal()
    found = build_report(made.session.store).scores
    assert found["leaderboard"][0] == "a"
    assert found["leaderboard"][-1] == "uniform"


def test_equal_scores_stand_by_id_and_ece_ranks_nothing() -> None:
    plan = make_plan(plan_fields(CARDS, [method("b"), method("a"), constant()]))
    made = Bench(plan).freeze(LABELS).register().predict("b", GOOD).predict("a", GOOD)
    found = build_report(made.close().unseal().session.store).scores
    assert found["leaderboard"] == ["a", "b", "uniform"]
    (pair,) = found["paired"]
    assert pair["mean_difference"] == 0
    assert pair["wilcoxon_p"] is None
    assert pair["permutation_p"] == 1
    assert pair["bootstrap"]["limit"] == [0, 0]


INTERVAL = {"source": "A paper, table 1", "a": "a", "b": "b", "level": "0.95"}


def test_a_published_interval_is_held_against_four() -> None:
    boot = scores()["paired"][0]["bootstrap"]
    for kind in ("percentile", "bca", "limit", "limit_bca"):
        low, high = (f"{end:.9f}" for end in boot[kind])
        (item,) = scores(published_intervals=[INTERVAL | {"low": low, "high": high}])["paired"][0][
            "published"
        ]
        assert kind in item["agrees"]
        text = describe_published(item, boot)
        assert text.startswith(f"The published interval [{low}, {high}] (A paper, table 1) is the")
        assert text.endswith("which do not print so.") == kind.startswith("limit")


def test_a_published_interval_that_is_nothing_is_said_to_be_nothing() -> None:
    wrong = INTERVAL | {"low": "-0.9", "high": "0.9"}
    pair = scores(published_intervals=[wrong])["paired"][0]
    assert pair["published"][0]["agrees"] == []
    assert "is none of the replayed ones" in describe_published(
        pair["published"][0], pair["bootstrap"]
    )


def test_a_published_interval_has_a_level_of_its_own() -> None:
    wide = INTERVAL | {"low": "0.1", "high": "0.2", "level": "0.5"}
    pair = scores(published_intervals=[wide])["paired"][0]
    (item,) = pair["published"]
    assert item["level"] == "0.5"
    assert pair["bootstrap"]["limit"][0] < item["limit"][0] < item["limit"][1]


def test_both_limits_are_those_of_the_limit_itself() -> None:
    methods = [method("a"), method("b"), constant()]
    made = Bench(make_plan(plan_fields(CARDS, methods))).freeze(LABELS).register()
    report = build_report(made.predict("a", GOOD).predict("b", FLAT).close().unseal().session.store)
    d = brier_differences(report.panel.units["a"], report.panel.units["b"], report.panel.y)
    boot = report.scores["paired"][0]["bootstrap"]
    plain, skewed = limit.limit_interval(d), limit.limit_interval(d, method="bca")
    assert plain is not None
    assert skewed is not None
    assert boot["limit"] == pytest.approx([plain.low, plain.high], rel=1e-11)
    assert boot["limit_bca"] == pytest.approx([skewed.low, skewed.high], rel=1e-11)
    assert boot["limit_tolerance"] >= max(plain.tolerance, skewed.tolerance)


@settings(max_examples=15)
@given(
    st.integers(41, 150).flatmap(
        lambda n: st.lists(
            st.lists(st.integers(-(10**18), 10**18), min_size=n, max_size=n),
            min_size=1,
            max_size=4,
        )
    ),
    st.integers(0, 9),
)
def test_joint_flips_are_bit_for_bit_those_of_each_alone(rows: list[list[int]], seed: int) -> None:
    arrays = [ExactArray(np.array(row, dtype=np.int64), Fraction(1, 10**18)) for row in rows]
    arrays.append(ExactArray(np.array([1, *[0] * (len(rows[0]) - 1)]), Fraction(1, 10**9)))
    found = sign_flip_tests(arrays, seed=seed, resamples=99)
    assert found == [sign_flip_test(d, seed=seed, resamples=99) for d in arrays]


def test_joint_flips_tell_sums_apart_by_one_unit() -> None:
    # Sums of k U + 1 and k U - 1: a double of 53 bits takes them for one number.
    large = 10**16 + 1
    rows = [[large] * 34 + [-large] * 26 + [unit] for unit in (1, -1)]
    arrays = [ExactArray(np.array(row, dtype=np.int64), Fraction(1, 10**18)) for row in rows]
    found = sign_flip_tests(arrays, seed=3, resamples=4_999)
    alone = [sign_flip_test(d, seed=3, resamples=4_999) for d in arrays]
    assert found == alone
    assert alone[0] != alone[1]


def test_imported_values_of_nine_places_are_compared_exactly() -> None:
    fine = {card: format_units(123_456_789 + number) for number, card in enumerate(CARDS)}
    plan = make_plan(plan_fields(CARDS, [method("a"), method("b"), constant()]))
    made = Bench(plan).freeze(LABELS).register().predict("a", fine)
    nudged = fine | {"c0": "0.12345679"}
    found = build_report(made.predict("b", nudged).close().unseal().session.store).scores
    (row,) = found["paired"][0]["sign"]
    assert (row["a_lower"], row["b_lower"], row["ties"]) == (1, 0, 7)
