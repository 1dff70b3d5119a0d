"""Golden figures of paired comparisons: tests, bootstrap, limit, power, multiplicity.

The golden figures come from scipy, statsmodels, R and exact fractions. They are met to 1e-12,
where no comment says otherwise.
"""

from __future__ import annotations

import csv
import json
from typing import Any

import numpy as np
import pytest
from golden_panel import METHODS, PAIRED, SEEDS, WITHIN, brier_pair, log_pair, near, panel
from shared_data import shared_file

from scoring import bootstrap, comparison, limit, multiplicity, permutation, power, rules
from scoring.index_stream import IndexStream


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
