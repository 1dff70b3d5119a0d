"""Scores and comparisons of a panel, as the plan orders them: the content of scores.json.

What the plan names is *confirmatory*; what is asked for besides is computed too, marked
*exploratory*, and counted as a look. Values that are exact stay exact until the last division;
values from special functions are cut to 12 significant digits, so that a table does not depend on
the machine's mathematics library.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from ledger.events.plan import Plan
from scoring import bootstrap, limit
from scoring.calibration import calibration_error, sharpness, spiegelhalter
from scoring.comparison import (
    brier_differences,
    log_differences,
    paired_t,
    sign_test,
    signed_rank_test,
)
from scoring.corp import corp_brier, corp_log
from scoring.decomposition import murphy_binned
from scoring.discrimination import auc
from scoring.exact import ExactArray
from scoring.grouping import Closed
from scoring.multiplicity import benjamini_hochberg, bonferroni, holm
from scoring.panel import Panel
from scoring.permutation import sign_flip_test
from scoring.rules import brier_score, clipped_count, log_loss, unclipped_log_loss

JsonDict = dict[str, Any]
_CORRECTIONS = {"holm": holm, "bonferroni": bonferroni, "bh": benjamini_hochberg}


def method_scores(panel: Panel, plan: Plan, method: str) -> JsonDict:
    """Return every registered score of one method; null where not computable, never 0."""
    p, y = panel.units[method], panel.y
    clip = (plan.clip.low, plan.clip.high)
    side: Closed = "left" if plan.calibration.edges == "left-closed" else "right"
    bins = calibration_error(p, y, bins=plan.calibration.bins, closed=side)
    brier_parts, log_parts = corp_brier(p, y), corp_log(p, y, clip)
    murphy = murphy_binned(p, y, bins=plan.calibration.bins, closed=side)
    spread, area, unclipped = sharpness(p), auc(p, y), unclipped_log_loss(p, y)
    spiegel = spiegelhalter(p, y)
    return {
        "n": len(panel.cards),
        "n_imputed": int(panel.imputed[method].sum()),
        "brier": brier_score(p, y),
        "log": log_loss(p, y, clip),
        "log_clipped_count": clipped_count(p, clip),
        "log_unclipped": None
        if unclipped is None
        else {
            "mean": None if unclipped.infinite else unclipped.mean,
            "infinite": unclipped.infinite,
            "finite_mean": unclipped.finite_mean,
        },
        "ece": bins and bins.ece,
        "mce": bins and bins.mce,
        "calibration": bins and bins.convention,
        "auc": None if area is None else float(area),
        "mcb": brier_parts and brier_parts.miscalibration,
        "dsc": brier_parts and brier_parts.discrimination,
        "unc": brier_parts and brier_parts.uncertainty,
        "corp_log": log_parts
        and {
            "mcb": log_parts.miscalibration,
            "dsc": log_parts.discrimination,
            "unc": log_parts.uncertainty,
        },
        "murphy": murphy
        and {
            "grouping": murphy.grouping,
            "reliability": float(murphy.reliability),
            "resolution": float(murphy.resolution),
            "uncertainty": float(murphy.uncertainty),
            "within_bin_variance": float(murphy.within_variance),
            "within_bin_covariance": float(murphy.within_covariance),
        },
        "sharpness": spread
        and {
            "mean_p": spread.mean_p,
            "variance": spread.variance,
            "mean_distance_from_half": spread.mean_distance,
        },
        "spiegelhalter": spiegel and {"z": cut(spiegel.z), "p": cut(spiegel.p_value)},
    }


def differences(panel: Panel, plan: Plan, a: str, b: str) -> ExactArray:
    """Return loss(b) - loss(a) by card in the plan's primary metric; positive favours a."""
    if plan.primary_metric == "log":
        return log_differences(
            panel.units[a], panel.units[b], panel.y, (plan.clip.low, plan.clip.high)
        )
    return brier_differences(panel.units[a], panel.units[b], panel.y)


def paired_comparison(panel: Panel, plan: Plan, a: str, b: str) -> JsonDict:
    """Compare two methods on the same cards with every registered test and interval."""
    d = differences(panel, plan, a, b)
    test = plan.statistical_test
    flips = sign_flip_test(d, seed=test.permutation.seed, resamples=test.permutation.resamples)
    ranks, t = signed_rank_test(d), paired_t(d, level=test.bootstrap.level)
    loss_b = method_loss(panel, plan, b)
    mean = d.mean()
    return {
        "a": a,
        "b": b,
        "n": len(d),
        "metric": plan.primary_metric,
        "mean_difference": mean,
        "relative_reduction": mean / loss_b if mean is not None and loss_b else None,
        "sign": [_sign_row(d, epsilon) for epsilon in plan.tie_thresholds],
        "bootstrap": _bootstrap(d, plan),
        "permutation_p": flips.p_value if flips.method == "exact" else cut(flips.p_value),
        "permutation_method": flips.method,
        "wilcoxon_p": None if ranks is None else cut(ranks.p_value),
        "wilcoxon_method": None if ranks is None else ranks.method,
        "paired_t": t
        and {
            "t": cut(t.t),
            "p": cut(t.p_value),
            "interval": [cut(end) for end in t.interval],
            "sd": t.sd,
        },
    }


def method_loss(panel: Panel, plan: Plan, method: str) -> float | None:
    """Return a method's mean loss in the plan's primary metric."""
    if plan.primary_metric == "log":
        return log_loss(panel.units[method], panel.y, (plan.clip.low, plan.clip.high))
    return brier_score(panel.units[method], panel.y)


def _sign_row(d: ExactArray, epsilon: str) -> JsonDict:
    result = sign_test(d, epsilon)
    return {
        "epsilon": float(epsilon),
        "a_lower": result.a_better,
        "b_lower": result.b_better,
        "ties": result.ties,
        "p": result.p_value,
    }


def _bootstrap(d: ExactArray, plan: Plan) -> JsonDict | None:
    spec = plan.statistical_test.bootstrap
    drawn = bootstrap.resample([d], seed=spec.seed, resamples=spec.resamples)
    if drawn is None:
        return None
    percentile = bootstrap.interval(drawn, level=spec.level, method="percentile")
    bca = bootstrap.interval(drawn, level=spec.level, method="bca")
    ends = limit.limit_interval(d, level=spec.level)
    return {
        "percentile": [percentile.low, percentile.high],
        "bca": [cut(bca.low), cut(bca.high)],
        "bca_fell_back": bca.fell_back,
        "limit": None if ends is None else [cut(ends.low), cut(ends.high)],
        "limit_method": ends and ends.path,
        "level": spec.level,
        "resamples": spec.resamples,
        "seed": spec.seed,
        "generator": spec.generator,
    }


def multiplicity(panel: Panel, plan: Plan) -> JsonDict:
    """Correct the registered family of comparisons, test by test.

    The family is every pair of methods or the listed comparisons, as the plan says.
    """
    spec = plan.multiplicity
    pairs = (
        list(combinations(panel.methods, 2))
        if spec.family == "all_pairs"
        else [(c.a, c.b) for c in plan.comparisons]
    )
    tables: JsonDict = {}
    for name in spec.tests:
        raw = [_p_value(differences(panel, plan, a, b), plan, name) for a, b in pairs]
        tables[name] = {
            "raw": raw,
            "adjusted": _adjust(spec.confirmatory, raw),
            "exploratory": _adjust(spec.exploratory, raw),
        }
    return {
        "family": spec.family,
        "confirmatory": spec.confirmatory,
        "exploratory": spec.exploratory,
        "pairs": [list(pair) for pair in pairs],
        "tests": tables,
    }


def _p_value(d: ExactArray, plan: Plan, name: str) -> float | None:
    if not len(d):
        return None
    if name == "sign":
        return sign_test(d, plan.primary_tie_threshold).p_value
    if name == "permutation":
        spec = plan.statistical_test.permutation
        return cut(sign_flip_test(d, seed=spec.seed, resamples=spec.resamples).p_value)
    ranks = signed_rank_test(d)
    return None if ranks is None else cut(ranks.p_value)


def _adjust(name: str, raw: Sequence[float | None]) -> list[float | None] | None:
    correction = _CORRECTIONS.get(name)
    return None if correction is None else [cut(p) for p in correction(raw)]


def leaderboard(scores: dict[str, JsonDict], primary: str) -> list[str]:
    """Order methods by the primary metric, then Brier, log, ECE; not computable comes last."""

    def key(method: str) -> tuple[float, ...]:
        row = scores[method]
        return tuple(
            float("inf") if row[name] is None else float(row[name])
            for name in (primary, "brier", "log", "ece")
        )

    return sorted(scores, key=lambda method: (key(method), method))


def cut(value: float | None) -> float | None:
    """Keep 12 significant digits of a value that a special function computed."""
    return None if value is None else float(f"{value:.12g}")
