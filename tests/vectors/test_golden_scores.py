"""Every figure of golden_scores.json that the package computes, recomputed from the pilot's cards.

The golden figures come from sklearn, scipy, statsmodels and exact fractions. They are met to
1e-12, where no comment says otherwise.
"""

from __future__ import annotations

import csv
import json
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from shared_data import shared_file

from scoring import (
    bootstrap,
    calibration,
    comparison,
    corp,
    decomposition,
    limit,
    multiplicity,
    permutation,
    power,
    rules,
)
from scoring.discrimination import auc
from scoring.exact import ExactArray, from_floats
from scoring.index_stream import IndexStream

COLUMNS = {
    "direct": "direct_gpt54",
    "deepseek": "structured_deepseek",
    "prophet": "ai_prophet",
    "nobranch": "wf_no_branch",
    "branch": "wf_branch",
    "blend": "blend_50_50",
}
METHODS = ("uniform", *COLUMNS)
PAIRED = (
    "branch_vs_nobranch",
    "blend_vs_branch",
    "branch_vs_direct",
    "blend_vs_direct",
    "branch_vs_uniform",
)
SEEDS = (0, 20260101, 12345)
WITHIN = 1e-12


class Panel(NamedTuple):
    """The pilot: forecasts by method as decimal strings, labels, golden figures."""

    p: dict[str, list[str]]
    y: list[int]
    golden: dict[str, Any]


@cache
def panel() -> Panel:
    with shared_file("data/pilot/predictions.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    p = {name: [row[column] for row in rows] for name, column in COLUMNS.items()}
    golden = json.loads(shared_file("data/golden_scores.json").read_text(encoding="utf-8"))
    return Panel({"uniform": ["0.5"] * len(rows), **p}, [int(row["y"]) for row in rows], golden)


def near(value: float | None, expected: float | None, within: float = WITHIN) -> None:
    if value is None or expected is None:
        assert value is expected
    else:
        assert value == pytest.approx(expected, abs=within, rel=0)


def brier_pair(key: str) -> ExactArray:
    first, second = key.replace("_vs_", "|").split("|")
    p, y, _ = panel()
    return comparison.brier_differences(p[first], p[second], y)


def log_pair(key: str) -> ExactArray:
    first, second = key.replace("_vs_", "|").split("|")
    p, y, _ = panel()
    return comparison.log_differences(p[first], p[second], y)


@pytest.mark.parametrize("method", METHODS)
def test_losses(method: str) -> None:
    p, y, golden = panel()
    want = golden["methods"][method]
    near(rules.brier_score(p[method], y), want["brier"])
    assert str(rules.brier_fraction(p[method], y)) == want["brier_exact_fraction"]
    cards = rules.brier_units(p[method], y) / 1e18
    assert cards.tolist() == pytest.approx(want["per_card_brier"], abs=1e-15)
    near(rules.log_loss(p[method], y), want["log_clip_0.01"])
    near(rules.log_loss(p[method], y), float(want["log_clip_0.01_25_digits"]), 2.3e-16)
    losses = rules.log_losses(p[method], y).tolist()
    assert losses == pytest.approx(want["per_card_log_clip_0.01"], abs=1e-14)
    assert rules.clipped_count(p[method]) == want["n_clipped"]
    unclipped = rules.unclipped_log_loss(p[method], y)
    assert unclipped is not None
    near(unclipped.mean, want["log_unclipped_sklearn_eps"])
    near(rules.brier_skill_uniform(p[method], y), want["bss_vs_uniform"])
    near(rules.brier_skill_climatology(p[method], y), want["bss_vs_in_sample_climatology"])


def check_bins(found: calibration.CalibrationError | None, want: list[dict[str, Any]]) -> None:
    assert found is not None
    assert [(b.index, b.n) for b in found.bins] == [(w["bin"], w["n"]) for w in want]
    for mine, golden in zip(found.bins, want, strict=True):
        near(mine.mean_p, golden.get("mean_p"))
        near(mine.observed, golden.get("obs"))
        near(mine.gap, golden.get("gap"))


@pytest.mark.parametrize("method", METHODS)
def test_calibration(method: str) -> None:
    p, y, golden = panel()
    want = golden["methods"][method]
    left = calibration.calibration_error(p[method], y, closed="left")
    right = calibration.calibration_error(p[method], y, closed="right")
    adaptive = calibration.adaptive_calibration_error(p[method], y)
    assert left is not None
    assert right is not None
    assert adaptive is not None
    for found, key in ((left, "10_left_closed"), (right, "10_right_closed")):
        near(found.ece, want[f"ece{key}"])
        near(found.mce, want[f"mce{key}"])
        check_bins(found, want[f"bins{key}"])
    near(adaptive.ece, want["ece5_quantile_sklearn"])
    near(adaptive.mce, want["mce5_quantile_sklearn"])
    check_bins(adaptive, want["bins5_quantile_sklearn"])
    squared = calibration.squared_calibration_error(p[method], y)
    assert squared is not None
    near(squared.plugin, want["l2_ce2_plugin_10_left"])
    near(squared.debiased, want["l2_ce2_debiased_10_left_bins_with_n_ge_2"])


@pytest.mark.parametrize("method", METHODS)
def test_sharpness_discrimination_and_tests(method: str) -> None:
    p, y, golden = panel()
    want = golden["methods"][method]
    sharp = calibration.sharpness(p[method])
    assert sharp is not None
    near(sharp.variance, want["sharpness_var_p"])
    near(sharp.mean_distance, want["sharpness_mean_abs_dev_from_half"])
    near(sharp.mean_p, want["mean_p"])
    large = calibration.calibration_in_the_large(p[method], y)
    near(large, want["calibration_in_the_large_mean_p_minus_ybar"])
    assert str(auc(p[method], y)) == want["auc_exact_fraction"]
    z = calibration.spiegelhalter(p[method], y)
    near(None if z is None else z.z, want["spiegelhalter_z"])
    near(None if z is None else z.p_value, want["spiegelhalter_p_two_sided"])
    line = calibration.cox_line(p[method], y)
    # The golden fit stops at about 1e-11.
    near(None if line is None else line.intercept, want.get("cox_intercept"), 1e-10)
    near(None if line is None else line.slope, want.get("cox_slope"), 1e-10)


@pytest.mark.parametrize("method", METHODS)
def test_murphy(method: str) -> None:
    p, y, golden = panel()
    for key, found in (
        ("murphy_by_unique_p", decomposition.murphy_distinct(p[method], y)),
        ("murphy_10_left_closed_bins", decomposition.murphy_binned(p[method], y)),
    ):
        want = golden["methods"][method][key]
        assert found is not None
        assert found.corrected is not None
        near(float(found.reliability), want["REL"])
        near(float(found.resolution), want["RES"])
        near(float(found.uncertainty), want["UNC"])
        near(float(found.within_variance), want["WBV"])
        near(float(found.within_covariance), want["WBC"])
        near(float(found.brier), want["brier_check"])
        near(found.corrected.reliability, want["bias_corrected"]["REL"])
        near(found.corrected.resolution, want["bias_corrected"]["RES"])
        near(found.corrected.uncertainty, want["bias_corrected"]["UNC"])
        assert found.corrected.singletons == want["bias_corrected"]["singleton_groups"]
    right = decomposition.murphy_binned(p[method], y, closed="right")
    want = golden["ferro_fricker_truncated_10_right_closed"][method]
    assert right is not None
    near(float(right.reliability), want["REL"])
    near(float(right.resolution), want["RES"])


@pytest.mark.parametrize("method", METHODS)
def test_murphy_curve(method: str) -> None:
    p, y, golden = panel()
    thresholds = [f"{k / 100:.2f}" for k in range(101)]
    curve = decomposition.murphy_curve(p[method], y, thresholds)
    assert curve == pytest.approx(golden["murphy_diagram"]["curves"][method], abs=WITHIN)


@pytest.mark.parametrize("method", METHODS)
def test_corp(method: str) -> None:
    p, y, golden = panel()
    for key, found in (
        ("corp_brier", corp.corp_brier(p[method], y)),
        ("corp_log_on_clipped_p", corp.corp_log(p[method], y)),
    ):
        want = golden["methods"][method][key]
        assert found is not None
        near(found.score, want["score"])
        near(found.miscalibration, want["MCB"])
        near(found.discrimination, want["DSC"])
        near(found.uncertainty, want["UNC"])
    brier = corp.corp_brier(p[method], y)
    assert brier is not None
    rates = golden["methods"][method]["corp_recalibrated_by_card"]
    assert brier.recalibrated == pytest.approx(rates, abs=WITHIN)


@pytest.mark.parametrize("method", METHODS)
def test_corp_miscalibration_test(method: str) -> None:
    p, y, golden = panel()
    found = corp.corp_miscalibration_test(p[method], y, seed=0, resamples=1999)
    want = golden["corp_miscalibration_test_fixed_x_PCG64(0)_B1999"][method]
    assert found is not None
    near(found.miscalibration, want["MCB"])
    near(found.p_value, want["p"])


@pytest.mark.parametrize("name", ["Logistic", "EMOS", "ENS", "EPC"])
def test_corp_of_niamey(name: str) -> None:
    with shared_file("data/scoring/precip_Niamey_2016.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    p, y = [float(row[name]) for row in rows], [int(row["obs"]) for row in rows]
    found = corp.corp_brier(p, y)
    want = panel().golden["corp_niamey_2016"][name]
    assert found is not None
    # These forecasts have 15 places; ours have 9.
    near(found.miscalibration, want["miscalibration"], 1e-9)
    near(found.discrimination, want["discrimination"], 1e-9)
    near(found.uncertainty, want["uncertainty"])
    near(found.score, want["score"], 1e-9)


def test_panel_scores() -> None:
    p, y, golden = panel()
    everyone = [p[method] for method in METHODS]
    peers = rules.peer_scores(everyone, y)
    briers = rules.peer_brier(everyone, y)
    assert peers is not None
    assert briers is not None
    for method, peer, brier in zip(METHODS, peers, briers, strict=True):
        want = golden["metaculus_style_on_clipped_p_7_methods"][method]
        near(rules.baseline_score(p[method], y), want["baseline"])
        near(peer, want["peer"])
        style = golden["forecastbench_style"][method]
        near(brier, style["peer_brier"])
        near(rules.brier_index(p[method], y), style["brier_index"])


def test_orders() -> None:
    p, y, golden = panel()

    def by(score: Any, *, reverse: bool = False) -> list[str]:
        return sorted(METHODS, key=lambda m: score(p[m], y), reverse=reverse)

    assert by(rules.brier_score) == golden["leaderboard_brier_log_ece"]
    assert by(rules.log_loss) == golden["order_by_log_clip_0.01"]
    assert by(auc, reverse=True) == golden["order_by_auc_desc"]
    assert by(ece_left) == golden["order_by_ece10_left_closed"]
    assert by(ece_right) == golden["order_by_ece10_right_closed"]


def ece_left(p: list[str], y: list[int]) -> float:
    found = calibration.calibration_error(p, y, closed="left")
    assert found is not None
    return found.ece


def ece_right(p: list[str], y: list[int]) -> float:
    found = calibration.calibration_error(p, y, closed="right")
    assert found is not None
    return found.ece


def test_paper_table_2() -> None:
    p, y, golden = panel()
    for method, row in golden["paper_table2_check"].items():
        brier, log = rules.brier_score(p[method], y), rules.log_loss(p[method], y)
        assert brier is not None
        assert log is not None
        assert [round(brier, 3), round(log, 3)] == row["paper"]


def test_edge_values() -> None:
    want = panel().golden["edge_values"]
    near(float(rules.log_losses(["1"], [1])[0]), want["log_clip_floor"])
    near(float(rules.log_losses(["0"], [1])[0]), want["log_clip_cap"])
    near(rules.brier_score(["0.271"], [0]), want["scoringrules"]["brier(0,0.271)"])
    near(rules.log_loss(["0.481"], [0]), want["scoringrules"]["log(0,0.481)"], 5e-8)
    baseline = want["metaculus_baseline"]
    near(rules.baseline_score(["0.9"], [1]), baseline["0.9_yes"], 5e-9)
    near(rules.baseline_score(["0.1"], [1]), baseline["0.1_yes"], 5e-9)
    # 2^-1/2 and 2^-3/2 to 9 places.
    near(rules.baseline_score(["0.707106781"], [1]), baseline["2^-1/2"], 1e-6)
    near(rules.baseline_score(["0.353553391"], [1]), baseline["2^-3/2"], 1e-6)
    case = want["reliabilitydiag_R_6pt"]
    for key, found in (
        ("brier", corp.corp_brier(case["p"], case["y"])),
        ("log", corp.corp_log(case["p"], case["y"], None)),
    ):
        assert found is not None
        near(found.miscalibration, case[key]["MCB"], 5e-8)
        near(found.discrimination, case[key]["DSC"], 5e-8)
        near(found.uncertainty, case[key]["UNC"], 5e-8)
        near(found.score, case[key]["score"], 5e-8)


def test_bootstrap_against_r() -> None:
    want = panel().golden["edge_values"]["R_boot_16pt"]
    values = from_floats(want["x"])
    for method, key in (("percentile", "percentile"), ("bca", "BCa")):
        found = limit.limit_interval(values, method=method)  # type: ignore[arg-type]
        assert found is not None
        assert [found.low, found.high] == pytest.approx(want[key], rel=want["rtol"])


def check_sign(found: comparison.SignTest, want: dict[str, Any]) -> None:
    counts = (found.a_better, found.b_better, found.ties)
    assert counts == (want["first_better"], want["second_better"], want["ties"])
    near(found.p_value, want["p_sign"])
    assert found.clopper_pearson is not None
    assert found.wilson is not None
    golden = [*want["lower_loss_rate_clopper_pearson95"], *want["wilson95"]]
    assert [*found.clopper_pearson, *found.wilson] == pytest.approx(golden, abs=WITHIN)


def check_pair(key: str, want: dict[str, Any]) -> None:
    d = brier_pair(key)
    t = comparison.paired_t(d)
    assert t is not None
    near(t.mean, want["mean_diff"])
    near(t.sd, want["sd"])
    near(t.se, want["se"])
    near(t.t, want["paired_t"]["t"])
    near(t.p_value, want["paired_t"]["p"])
    assert list(t.interval) == pytest.approx(want["paired_t"]["ci95"], abs=WITHIN)
    assert int(np.count_nonzero(d.units == 0)) == want["n_zero"]
    exact = permutation.sign_flip_test(d, seed=0)
    assert str(exact.p_exact) == want["perm_signflip_exact_fraction"]
    near(exact.p_value, want["perm_signflip_exact_p"])
    ranks = comparison.signed_rank_test(d)
    assert ranks is not None
    near(ranks.statistic, want["wilcoxon"]["statistic"])
    near(ranks.p_value, want["wilcoxon"]["p_auto"])
    check_sign(comparison.sign_test(d), want["sign_eps0"])
    near(log_pair(key).mean(), want["log_mean_diff"])


def test_all_pairs() -> None:
    for key, want in panel().golden["pairwise"].items():
        check_pair(key, want)


@pytest.mark.parametrize("key", PAIRED)
def test_paired(key: str) -> None:
    want = panel().golden[key]
    check_pair(key, want)
    for row in want["sign_by_eps"]:
        check_sign(comparison.sign_test(brier_pair(key), f"{row['eps']:.4f}"), row)


@pytest.mark.parametrize("key", PAIRED)
@pytest.mark.parametrize("seed", SEEDS)
def test_bootstrap_intervals(key: str, seed: int) -> None:
    want = panel().golden[key]["bootstrap"][f"PCG64({seed})_B10000"]
    drawn = bootstrap.resample([brier_pair(key)], seed=seed)
    assert drawn is not None
    plain, bca = bootstrap.interval(drawn), bootstrap.interval(drawn, method="bca")
    assert [plain.low, plain.high] == pytest.approx(want["scipy_percentile"], abs=WITHIN)
    assert [bca.low, bca.high] == pytest.approx(want["scipy_BCa"], abs=WITHIN)
    assert not bca.fell_back
    first = IndexStream(seed).indices(24, 24)
    assert first.tolist() == want["first_indices_row0"]


@pytest.mark.parametrize("key", PAIRED)
def test_bootstrap_of_log_losses(key: str) -> None:
    want = panel().golden[key]["bootstrap_log_PCG64(0)_B10000"]
    drawn = bootstrap.resample([log_pair(key)], seed=0)
    assert drawn is not None
    plain, bca = bootstrap.interval(drawn), bootstrap.interval(drawn, method="bca")
    assert [plain.low, plain.high] == pytest.approx(want["scipy_percentile"], abs=WITHIN)
    assert [bca.low, bca.high] == pytest.approx(want["scipy_BCa"], abs=WITHIN)


def test_bootstrap_by_cluster_and_by_stratum() -> None:
    want = panel().golden["branch_vs_nobranch"]
    d = brier_pair("branch_vs_nobranch")
    with shared_file("data/pilot/cards.csv").open(encoding="utf-8") as file:
        domains = [row["domain"] for row in csv.DictReader(file)]
    clustered = bootstrap.cluster_interval(d, domains, seed=0)
    golden = want["cluster_bootstrap_by_domain"]
    assert sorted(set(domains)) == golden["clusters"]
    assert clustered is not None
    assert [clustered.low, clustered.high] == pytest.approx(golden["percentile95"], abs=WITHIN)
    stratified = bootstrap.stratified_interval(d, panel().y, [1, 0], seed=0)
    golden = want["stratified_bootstrap_by_y"]
    assert stratified is not None
    assert [stratified.low, stratified.high] == pytest.approx(golden["percentile95"], abs=WITHIN)


def test_bootstrap_of_all_methods_at_once() -> None:
    p, y, golden = panel()
    losses = [rules.brier_losses(p[method], y) for method in METHODS]
    drawn = bootstrap.resample(losses, seed=0)
    assert drawn is not None
    ranks = bootstrap.bootstrap_ranks(drawn)
    for which, method in enumerate(METHODS):
        found = bootstrap.interval(drawn, which=which)
        want = golden["brier_ci95_percentile_PCG64(0)_B10000"][method]
        assert [found.low, found.high] == pytest.approx(want, abs=WITHIN)
        want = golden["bootstrap_rank_PCG64(0)_B10000"][method]
        near(ranks[which].first, want["p_first"])
        assert [ranks[which].low, ranks[which].high] == want["rank95"]
        # Exact ties of resampled means: averaged here, ranked by column order in the golden file.
        near(ranks[which].mean_rank, want["mean_rank"], 2.1e-4)


def test_raw_stream() -> None:
    for name, words in panel().golden["pcg64_raw"].items():
        stream = IndexStream(int(name.removeprefix("seed")))
        assert [str(word) for word in stream.words(4)] == words


@pytest.mark.parametrize("key", PAIRED)
def test_limit(key: str) -> None:
    want = panel().golden[key]["bootstrap_exact_limit_percentile95"]
    found = limit.limit_interval(brier_pair(key))
    assert found is not None
    assert [found.low, found.high] == pytest.approx(want, abs=1e-6)


def test_limit_by_grid() -> None:
    want = panel().golden["branch_vs_nobranch"]["bootstrap_exact_limit_by_grid"]["1e-06"]
    d = brier_pair("branch_vs_nobranch")
    bca = limit.limit_interval(d, method="bca")
    law = limit.mean_law(d)
    assert bca is not None
    assert law is not None
    assert [bca.low, bca.high] == pytest.approx(want["bca"], abs=1e-6)
    near(limit.limit_at_most(d, "0"), want["P_le_0"], 1e-6)
    near(law.below_mean(), want["P_le_theta"], 1e-6)


def test_equivalence_and_diebold_mariano() -> None:
    want = panel().golden["branch_vs_nobranch"]
    d = brier_pair("branch_vs_nobranch")
    for margin, p_value in want["tost_paired_t"].items():
        near(comparison.equivalence_test(d, float(margin)), p_value)
    found = comparison.diebold_mariano(d)
    assert found is not None
    near(found.dm, want["diebold_mariano_h1"]["dm"])
    near(found.hln, want["diebold_mariano_h1"]["hln"])
    near(found.p_value, want["diebold_mariano_h1"]["p_t"])


def test_power() -> None:
    want = panel().golden["power"]
    sd = comparison.standard_deviation(brier_pair("branch_vs_nobranch"))
    table = dict(want["paired_t_n_cards_at_sd_of_seed"])
    near(sd, table.pop("sd"))
    for difference, row in table.items():
        assert power.cards_needed(float(difference), sd) == row["power80"]
        assert power.cards_needed(float(difference), sd, power=0.9) == row["power90"]
    for rate, row in want["sign_test_n_cards"].items():
        assert power.sign_cards_needed(float(rate)) == row["power80"]
        assert power.sign_cards_needed(float(rate), power=0.9) == row["power90"]
    for n, difference in want["mde_by_n"].items():
        # The golden root finder stops where the power is within 2e-5 of 0.8.
        near(power.detectable_difference(int(n), sd), difference, 1e-6)
    for difference, n in want["bonferroni21_power80"].items():
        assert power.cards_needed(float(difference), sd, alpha=0.05 / 21) == n
    observed = panel().golden["branch_vs_nobranch"]["mean_diff"]
    near(power.t_power(24, observed / sd), want["power_n24_at_observed"])


@pytest.mark.parametrize("family", ["21_pairs_incl_uniform", "15_pairs_six_methods"])
@pytest.mark.parametrize("test", ["perm_signflip_exact", "sign", "wilcoxon"])
def test_families(family: str, test: str) -> None:
    rows = panel().golden["multiplicity"][family][test]
    p = [row["p"] for row in rows.values()]
    for key, found in (
        ("holm", multiplicity.holm(p)),
        ("bh", multiplicity.benjamini_hochberg(p)),
        ("by", multiplicity.benjamini_yekutieli(p)),
    ):
        assert list(found) == pytest.approx([row[key] for row in rows.values()], abs=WITHIN)


@pytest.mark.parametrize("family", ["21_pairs_incl_uniform", "15_pairs_six_methods"])
def test_westfall_young(family: str) -> None:
    rows = panel().golden["multiplicity"][family]["westfall_young_maxt_exact_signflip_2^24"]
    found = multiplicity.westfall_young([brier_pair(key) for key in rows], seed=0, resamples=20000)
    assert found is not None
    want = list(rows.values())
    assert list(found.statistics) == pytest.approx([row["stat"] for row in want], abs=WITHIN)
    # 20,000 sign vectors against all 2^24: four standard errors are 0.0141.
    assert list(found.step_down) == pytest.approx([row["step_down"] for row in want], abs=0.0141)
    single = [row["single_step"] for row in want]
    assert list(found.single_step) == pytest.approx(single, abs=0.0141)


@pytest.mark.parametrize("table", ["res_multtest1", "res_multtest2", "res_multtest3"])
def test_against_r_multtest(table: str) -> None:
    path = shared_file("data/scoring/r_multtest_adjusted_p.json")
    want = json.loads(path.read_text(encoding="utf-8"))["tables"][table]
    for key, adjust in (
        ("Bonferroni", multiplicity.bonferroni),
        ("Holm", multiplicity.holm),
        ("BH", multiplicity.benjamini_hochberg),
        ("BY", multiplicity.benjamini_yekutieli),
    ):
        assert list(adjust(want["rawp"])) == pytest.approx(want[key], abs=1e-12, rel=1e-11)
