"""Every figure of golden_scores.json that the package computes, recomputed from the pilot's cards.

The golden figures come from sklearn, scipy, statsmodels and exact fractions. They are met to
1e-12, where no comment says otherwise.
"""

from __future__ import annotations

import csv
from typing import Any

import pytest
from golden_panel import METHODS, WITHIN, near, panel
from shared_data import shared_file

from scoring import calibration, corp, decomposition, limit, rules
from scoring.difficulty import difficulty_adjusted_brier
from scoring.discrimination import auc
from scoring.exact import from_floats


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
    adjusted = difficulty_adjusted_brier(everyone, [range(len(y))] * len(METHODS), y)
    rows = zip(METHODS, peers, briers, adjusted, strict=True)
    for method, peer, brier, footing in rows:
        want = golden["metaculus_style_on_clipped_p_7_methods"][method]
        near(rules.baseline_score(p[method], y), want["baseline"])
        near(peer, want["peer"])
        style = golden["forecastbench_style"][method]
        near(brier, style["peer_brier"])
        near(footing, style["difficulty_adjusted_rescaled_uniform_0_25"])
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
