"""Scores and comparisons of a panel, as the plan orders them: the content of scores.json.

What the plan names is *confirmatory*; what is asked for besides is computed too, marked
*exploratory*, and counted as a look. Values that are exact stay exact until the last division;
values from special functions are cut to 12 significant digits, so that a table does not depend on
the machine's mathematics library. Pairs of methods are in scoring/pairs.py.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ledger.events.plan import Plan
from scoring.calibration import calibration_error, sharpness, spiegelhalter
from scoring.corp import corp_brier, corp_log
from scoring.decomposition import murphy_binned
from scoring.discrimination import auc
from scoring.grouping import Closed
from scoring.multiplicity import benjamini_hochberg, bonferroni, holm
from scoring.pairs import Pairs, cut, family_pairs
from scoring.panel import Panel
from scoring.rules import brier_score, clipped_count, log_loss, unclipped_log_loss

JsonDict = dict[str, Any]
_CORRECTIONS = {"holm": holm, "bonferroni": bonferroni, "bh": benjamini_hochberg}
_METRIC_KEYS = {
    "brier": ("brier",),
    "log": ("log",),
    "log_unclipped": ("log_unclipped",),
    "ece": ("ece",),
    "mce": ("mce",),
    "corp": ("mcb", "dsc", "unc", "corp_log"),
    "murphy": ("murphy",),
    "sharpness": ("sharpness",),
    "auc": ("auc",),
}
"""Which keys of a method's scores each registered metric covers."""

_UNREGISTRABLE = ("spiegelhalter",)


def method_scores(panel: Panel, plan: Plan, method: str) -> JsonDict:
    """Return every registered score of one method; null where not computable, never 0.

    `n_imputed` counts scored cards whose probability the plan's policy supplied, `missing` all
    cards with a label and without a probability of the method, by reason.
    """
    p, y = panel.units[method], panel.y
    clip = (plan.clip.low, plan.clip.high)
    bins = calibration_error(p, y, bins=plan.calibration.bins, closed=closed_side(plan))
    brier_parts, log_parts = corp_brier(p, y), corp_log(p, y, clip)
    spread, area, spiegel = sharpness(p), auc(p, y), spiegelhalter(p, y)
    return {
        "n": len(panel.cards),
        "n_imputed": int(panel.imputed[method].sum()),
        "missing": dict(sorted(Counter(panel.missing[method].values()).items())),
        "brier": brier_score(p, y),
        "log": finite(log_loss(p, y, clip)),
        "log_clipped_count": clipped_count(p, clip),
        "log_unclipped": _unclipped(panel, method),
        "ece": bins and bins.ece,
        "mce": bins and bins.mce,
        "calibration": bins and bins.convention,
        "auc": None if area is None else float(area),
        "mcb": brier_parts and brier_parts.miscalibration,
        "dsc": brier_parts and brier_parts.discrimination,
        "unc": brier_parts and brier_parts.uncertainty,
        "corp_log": log_parts
        and {
            "mcb": finite(log_parts.miscalibration),
            "dsc": log_parts.discrimination,
            "unc": log_parts.uncertainty,
        },
        "murphy": _murphy(panel, plan, method),
        "sharpness": spread
        and {
            "mean_p": spread.mean_p,
            "variance": spread.variance,
            "mean_distance_from_half": spread.mean_distance,
        },
        "spiegelhalter": spiegel and {"z": cut(spiegel.z), "p": cut(spiegel.p_value)},
    }


def _unclipped(panel: Panel, method: str) -> JsonDict | None:
    unclipped = unclipped_log_loss(panel.units[method], panel.y)
    if unclipped is None:
        return None
    return {
        "mean": finite(unclipped.mean),
        "infinite": unclipped.infinite,
        "finite_mean": unclipped.finite_mean,
    }


def _murphy(panel: Panel, plan: Plan, method: str) -> JsonDict | None:
    murphy = murphy_binned(
        panel.units[method], panel.y, bins=plan.calibration.bins, closed=closed_side(plan)
    )
    if murphy is None:
        return None
    return {
        "grouping": murphy.grouping,
        "reliability": float(murphy.reliability),
        "resolution": float(murphy.resolution),
        "uncertainty": float(murphy.uncertainty),
        "within_bin_variance": float(murphy.within_variance),
        "within_bin_covariance": float(murphy.within_covariance),
    }


def closed_side(plan: Plan) -> Closed:
    """Return the side on which the plan's calibration bins are closed."""
    return "left" if plan.calibration.edges == "left-closed" else "right"


def finite(value: float | None) -> float | None:
    """Return a number that JSON can hold: an infinite loss is null, and counted elsewhere."""
    return value if value is not None and math.isfinite(value) else None


def metric_roles(plan: Plan) -> JsonDict:
    """Say which scores of scores.json the plan registers; the others are exploratory."""
    registered = {plan.primary_metric, *plan.secondary_metrics}
    covered = {key for name in registered for key in _METRIC_KEYS[name]}
    everything = [key for keys in _METRIC_KEYS.values() for key in keys]
    return {
        "primary": plan.primary_metric,
        "secondary": [name for name in plan.secondary_metrics if name != plan.primary_metric],
        "exploratory": [key for key in (*everything, *_UNREGISTRABLE) if key not in covered],
    }


def multiplicity(pairs: Pairs) -> JsonDict:
    """Correct the registered family of comparisons, test by test.

    The family is every pair of methods or the listed comparisons, as the plan says.
    """
    spec = pairs.plan.multiplicity
    family = family_pairs(pairs.panel, pairs.plan)
    tables: JsonDict = {}
    for name in spec.tests:
        raw = pairs.p_values(family, name)
        tables[name] = {
            "raw": raw,
            "adjusted": _adjust(spec.confirmatory, raw),
            "exploratory": _adjust(spec.exploratory, raw),
        }
    return {
        "family": spec.family,
        "confirmatory": spec.confirmatory,
        "exploratory": spec.exploratory,
        "pairs": [list(pair) for pair in family],
        "tests": tables,
    }


def _adjust(name: str, raw: Sequence[float | None]) -> list[float | None] | None:
    correction = _CORRECTIONS.get(name)
    return None if correction is None else [cut(p) for p in correction(raw)]


def decide_primary(pair: JsonDict, plan: Plan, family: JsonDict) -> JsonDict:
    """Return the registered decision about one registered comparison.

    `p` is that of the plan's primary test, `adjusted_p` its value in the corrected family (null
    where the family does not hold the pair or nothing is corrected), and `significant` compares
    the adjusted value, else `p`, with the plan's level; null where not computable.
    """
    name = plan.statistical_test.primary
    p = _primary_p(pair, plan, name)
    table = family["tests"].get(name, {})
    adjusted = None
    for index, (a, b) in enumerate(family["pairs"]):
        if {a, b} == {pair["a"], pair["b"]} and table.get("adjusted"):
            adjusted = table["adjusted"][index]
    decisive = p if adjusted is None else adjusted
    return {
        "test": name,
        "p": p,
        "adjusted_p": adjusted,
        "level": plan.statistical_test.level,
        "significant": None if decisive is None else decisive <= float(plan.statistical_test.level),
    }


def _primary_p(pair: JsonDict, plan: Plan, name: str) -> float | None:
    if name == "sign":
        place = plan.tie_thresholds.index(plan.primary_tie_threshold)
        return None if pair["sign"] is None else float(pair["sign"][place]["p"])
    value: float | None = pair[f"{name}_p"]
    return value


def leaderboard(scores: dict[str, JsonDict], primary: str) -> list[str]:
    """Order methods by the primary metric, then Brier, then log; not computable comes last.

    Equal in all three is ordered by id. ECE ranks nothing (docs/spec/scoring.md, rule 12).
    """

    def key(method: str) -> tuple[float, ...]:
        row = scores[method]
        return tuple(
            math.inf if row[name] is None else float(row[name])
            for name in (primary, "brier", "log")
        )

    return sorted(scores, key=lambda method: (key(method), method))
