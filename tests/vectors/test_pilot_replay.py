"""The shipped pilot, replayed from a log, against the golden figures and the paper's own."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
import replay_ledgers
from golden_panel import COLUMNS, METHODS, near
from shared_data import shared_file

from ledger.printed import agrees_with_printed
from scoring.leaderboard import render_leaderboard
from scoring.report import build_report

SENTENCE = (
    "The published interval [-0.065, 0.189] (WorldFork paper, section 4) is the limit for"
    " infinitely many resamples; 10,000 resamples with seed 0 give [-0.0649, 0.1871], which do"
    " not print so."
)
NAMES = {"uniform": "uniform", **COLUMNS}


@cache
def scores() -> dict[str, Any]:
    return build_report(replay_ledgers.pilot().store).scores


@cache
def golden() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        shared_file("data/golden_scores.json").read_text(encoding="utf-8")
    )
    return found


@cache
def reported() -> dict[str, Any]:
    # Figures as text: 0.250 says three digits, and a float would forget one.
    found: dict[str, Any] = json.loads(
        shared_file("data/pilot/reported.json").read_text(encoding="utf-8"), parse_float=str
    )
    return found


def primary() -> dict[str, Any]:
    (pair,) = [pair for pair in scores()["paired"] if pair["primary"]]
    assert (pair["a"], pair["b"]) == ("wf_branch", "wf_no_branch")
    return dict(pair)


def prints_as(value: float, text: str) -> bool:
    return agrees_with_printed(Fraction(value), text)


@pytest.mark.parametrize("name", METHODS)
def test_all_fourteen_cells_are_golden_and_print_as_the_paper(name: str) -> None:
    row, expected = scores()["scores"][NAMES[name]], golden()["methods"][name]
    near(row["brier"], expected["brier"])
    near(row["log"], expected["log_clip_0.01"])
    printed = reported()["scores"][NAMES[name]]
    assert row["n"] == reported()["n"]
    assert prints_as(row["brier"], printed["brier"])
    assert prints_as(row["log"], printed["log"])


@pytest.mark.parametrize("name", METHODS)
def test_every_other_score_is_golden(name: str) -> None:
    row, expected = scores()["scores"][NAMES[name]], golden()["methods"][name]
    near(row["ece"], expected["ece10_left_closed"])
    near(row["mce"], expected["mce10_left_closed"])
    near(row["auc"], expected["auc"])
    assert row["log_clipped_count"] == expected["n_clipped"]
    for ours, theirs in (("mcb", "MCB"), ("dsc", "DSC"), ("unc", "UNC")):
        near(row[ours], expected["corp_brier"][theirs])
        near(row["corp_log"][ours], expected["corp_log_on_clipped_p"][theirs])
    for ours, theirs in (
        ("reliability", "REL"),
        ("resolution", "RES"),
        ("uncertainty", "UNC"),
        ("within_bin_variance", "WBV"),
        ("within_bin_covariance", "WBC"),
    ):
        near(row["murphy"][ours], expected["murphy_10_left_closed_bins"][theirs])
    near(row["sharpness"]["variance"], expected["sharpness_var_p"])
    near(row["sharpness"]["mean_distance_from_half"], expected["sharpness_mean_abs_dev_from_half"])
    near(row["sharpness"]["mean_p"], expected["mean_p"])
    spiegel = row["spiegelhalter"] or {"z": None, "p": None}
    near(spiegel["z"], expected["spiegelhalter_z"], 1e-10)
    near(spiegel["p"], expected["spiegelhalter_p_two_sided"], 1e-10)


def test_the_five_tie_rows_are_the_papers() -> None:
    rows = primary()["sign"]
    printed = reported()["paired_branch_vs_no_branch"]["tie_thresholds"]
    assert len(rows) == len(printed) == 5
    for row, paper in zip(rows, printed, strict=True):
        assert row["epsilon"] == float(paper["epsilon"])
        counts = (row["a_lower"], row["b_lower"], row["ties"])
        assert counts == (paper["branch"], paper["no_branch"], paper["ties"])
        assert prints_as(row["p"], paper["p_sign"])
    assert prints_as(
        rows[0]["p"], reported()["paired_branch_vs_no_branch"]["sign_test_p_two_sided"]
    )


def test_the_primary_pair_is_golden_to_the_last_figure() -> None:
    pair, expected = primary(), golden()["branch_vs_nobranch"]
    near(pair["mean_difference"], expected["mean_diff"])
    near(pair["relative_reduction"], expected["relative_reduction"])
    assert pair["permutation_fraction"] == expected["perm_signflip_exact_fraction"]
    near(pair["permutation_p"], expected["perm_signflip_exact_p"])
    near(pair["wilcoxon_p"], expected["wilcoxon"]["p_auto"])
    for name in ("t", "p"):
        near(pair["paired_t"][name], expected["paired_t"][name], 1e-11)
    near(pair["sign"][0]["p"], expected["sign_eps0"]["p_sign"])
    paper = reported()["paired_branch_vs_no_branch"]
    assert prints_as(pair["mean_difference"], paper["mean_brier_difference"])
    assert prints_as(pair["relative_reduction"], paper["relative_reduction"])


def test_resampled_intervals_and_limits_are_golden() -> None:
    boot, expected = primary()["bootstrap"], golden()["branch_vs_nobranch"]
    drawn = expected["bootstrap"]["PCG64(0)_B10000"]
    assert boot["percentile"] == pytest.approx(drawn["scipy_percentile"], abs=1e-12)
    assert boot["bca"] == pytest.approx(drawn["scipy_BCa"], abs=1e-12)
    by_grid = expected["bootstrap_exact_limit_by_grid"]["1e-06"]
    assert boot["limit"] == pytest.approx(by_grid["percentile"], abs=1e-6)
    assert boot["limit_bca"] == pytest.approx(by_grid["bca"], abs=1e-6)
    assert 0 < boot["limit_tolerance"] < 1e-6


def test_the_papers_interval_is_the_limit_and_the_page_says_so() -> None:
    (item,) = primary()["published"]
    paper = reported()["paired_branch_vs_no_branch"]["bootstrap_percentile_95"]
    assert [item["low"], item["high"]] == paper
    assert item["agrees"] == ["limit"]
    assert SENTENCE in page()


def page() -> str:
    report = build_report(replay_ledgers.pilot().store)
    return render_leaderboard(report.scores, report.plan)


def test_the_page_says_that_the_plan_came_after_the_results() -> None:
    assert "Registered after the last deadline: retrospective." in page()
    assert "(primary, confirmatory under a retrospective plan)" in page()


def test_the_other_comparisons_are_golden() -> None:
    back = {ours: theirs for theirs, ours in NAMES.items()}
    for pair in scores()["paired"]:
        expected = golden()[f"{back[pair['a']]}_vs_{back[pair['b']]}"]
        near(pair["mean_difference"], expected["mean_diff"])
        assert pair["permutation_fraction"] == expected["perm_signflip_exact_fraction"]
        assert pair["bootstrap"]["limit"] == pytest.approx(
            expected["bootstrap_exact_limit_percentile95"], abs=1e-6
        )


def test_the_seven_branch_losses_are_the_papers() -> None:
    rows = scores()["failure_anatomy"]
    printed = reported()["paired_branch_vs_no_branch"]["no_branch_lower_cards"]
    assert [row["card"] for row in rows] == list(printed)
    for row in rows:
        text = format(Decimal(printed[row["card"]]), "f")
        assert prints_as(row["difference"], text)
    tags = {row["card"]: row["tags"] for row in rows}
    # The paper's Table 7, its column Interpretation.
    assert {card for card, found in tags.items() if found == ["branch_dilution"]} == {
        "006",
        "012",
        "016",
        "020",
    }
    assert {card for card, found in tags.items() if found == ["near_tie"]} == {"022", "024"}
    assert tags["015"] == ["both_wrong"]


def test_orders_are_golden() -> None:
    assert scores()["leaderboard"] == [NAMES[m] for m in golden()["leaderboard_brier_log_ece"]]
    by_log = sorted(scores()["scores"], key=lambda m: float(scores()["scores"][m]["log"]))
    assert by_log == [NAMES[m] for m in golden()["order_by_log_clip_0.01"]]


@pytest.mark.parametrize(
    ("test", "name"),
    [("sign", "sign"), ("permutation", "perm_signflip_exact"), ("wilcoxon", "wilcoxon")],
)
def test_the_family_of_all_pairs_is_golden(test: str, name: str) -> None:
    family, rows = scores()["multiplicity"], golden()["multiplicity"]["21_pairs_incl_uniform"][name]
    expected = {frozenset(NAMES[part] for part in key.split("|")): row for key, row in rows.items()}
    assert len(family["pairs"]) == len(expected) == 21
    table = family["tests"][test]
    for index, pair in enumerate(family["pairs"]):
        row = expected[frozenset(pair)]
        near(table["raw"][index], row["p"], 1e-11)
        near(table["adjusted"][index], row["holm"], 1e-11)
        near(table["exploratory"][index], row["bh"], 1e-11)
    near(min(table["adjusted"]), min(row["holm"] for row in rows.values()), 1e-11)
    near(min(table["exploratory"]), min(row["bh"] for row in rows.values()), 1e-11)


def test_nothing_is_excluded_imputed_or_withheld() -> None:
    assert scores()["cards"]["excluded"] == {}
    assert scores()["cards"]["scored"] == 24
    assert scores()["withheld_events"] == []
    assert all(
        row["n_imputed"] == 0 and row["missing"] == {} for row in scores()["scores"].values()
    )


def test_examples_are_those_of_the_registered_rule() -> None:
    # 017 is branching's largest gain, 016 its largest loss, 009 its second largest gain.
    assert scores()["examples"] == ["017", "016", "009"]
