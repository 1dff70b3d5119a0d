"""Paired comparisons of a panel's methods under a plan: each test of each pair is computed once.

Differences are loss(b) - loss(a) by card in the plan's primary metric, so positive favours a. The
registered comparisons share one set of resampled cards (docs/spec/scoring.md, rule 28).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

from ledger.errors import BugError
from ledger.events.plan import Plan, PublishedInterval
from ledger.printed import agrees_with_printed
from scoring import bootstrap, limit
from scoring.comparison import (
    PairedT,
    brier_differences,
    log_differences,
    paired_t,
    sign_test,
    signed_rank_test,
)
from scoring.exact import ExactArray
from scoring.joint_flips import sign_flip_tests
from scoring.levels import acceleration, bca_levels, parse_tail
from scoring.panel import Panel
from scoring.permutation import PermutationTest
from scoring.power import cards_needed, detectable_difference
from scoring.rules import brier_score, log_loss

JsonDict = dict[str, Any]
Pair = tuple[str, str]


class Pairs:
    """The pairs of one panel, with what was computed of them so far."""

    def __init__(self, panel: Panel, plan: Plan) -> None:
        self.panel = panel
        self.plan = plan
        self._differences: dict[Pair, ExactArray] = {}
        self._flips: dict[Pair, PermutationTest] = {}

    def differences(self, a: str, b: str) -> ExactArray:
        """Return loss(b) - loss(a) by card in the plan's primary metric."""
        if (a, b) not in self._differences:
            units, y = self.panel.units, self.panel.y
            if self.plan.primary_metric == "log":
                clip = (self.plan.clip.low, self.plan.clip.high)
                found = log_differences(units[a], units[b], y, clip)
            else:
                found = brier_differences(units[a], units[b], y)
            self._differences[a, b] = found
        return self._differences[a, b]

    def flips(self, pairs: Sequence[Pair]) -> list[PermutationTest]:
        """Return the sign-flip test of each pair; what is new is computed in one pass.

        A pair and its reverse have one p-value.
        """
        spec = self.plan.statistical_test.permutation
        new = [pair for pair in dict.fromkeys(map(_ordered, pairs)) if pair not in self._flips]
        found = sign_flip_tests(
            [self.differences(*pair) for pair in new], seed=spec.seed, resamples=spec.resamples
        )
        self._flips.update(zip(new, found, strict=True))
        return [self._flips[_ordered(pair)] for pair in pairs]

    def p_values(self, pairs: Sequence[Pair], test: str) -> list[float | None]:
        """Return one p-value a pair; null where no card is scored or no difference is left."""
        if not len(self.panel.cards):
            return [None] * len(pairs)
        if test == "permutation":
            return [cut(found.p_value) for found in self.flips(pairs)]
        if test == "sign":
            epsilon = self.plan.primary_tie_threshold
            return [sign_test(self.differences(*pair), epsilon).p_value for pair in pairs]
        ranks = [signed_rank_test(self.differences(*pair)) for pair in pairs]
        return [None if found is None else cut(found.p_value) for found in ranks]

    def compare(self, pairs: Sequence[Pair]) -> list[JsonDict]:
        """Compare pairs of methods on the same cards with every registered test and interval.

        All intervals of one call come from the same resampled cards. Where no card is scored each
        figure is null.
        """
        if not pairs:
            return []
        spec = self.plan.statistical_test.bootstrap
        drawn = bootstrap.resample(
            [self.differences(*pair) for pair in pairs], seed=spec.seed, resamples=spec.resamples
        )
        self.flips(pairs)
        return [self._row(pair, drawn, which) for which, pair in enumerate(pairs)]

    def _row(self, pair: Pair, drawn: bootstrap.ResampledSums | None, which: int) -> JsonDict:
        (a, b), d = pair, self.differences(*pair)
        head: JsonDict = {"a": a, "b": b, "n": len(d), "metric": self.plan.primary_metric}
        if drawn is None:
            return head | dict.fromkeys(_FIGURES) | {"published": []}
        level = self.plan.statistical_test.bootstrap.level
        mean, loss_b = d.mean(), self._loss(b)
        (flips,) = self.flips([pair])
        ranks, t = signed_rank_test(d), paired_t(d, level=level)
        figures: JsonDict = {
            "mean_difference": mean,
            "relative_reduction": mean / loss_b if mean is not None and loss_b else None,
            "sign": [_sign_row(d, epsilon) for epsilon in self.plan.tie_thresholds],
            "bootstrap": self._intervals(d, drawn, which, level),
            "permutation_p": flips.p_value if flips.method == "exact" else cut(flips.p_value),
            "permutation_method": flips.method,
            "permutation_fraction": None if flips.p_exact is None else str(flips.p_exact),
            "wilcoxon_p": None if ranks is None else cut(ranks.p_value),
            "wilcoxon_method": None if ranks is None else ranks.method,
            "paired_t": t
            and {
                "t": cut(t.t),
                "p": cut(t.p_value),
                "interval": [cut(end) for end in t.interval],
                "sd": t.sd,
            },
            "power": None if t is None else _power(t, self.plan),
        }
        published = [
            self._hold_against(item, figures["bootstrap"], drawn, which)
            for item in self.plan.published_intervals
            if (item.a, item.b) == pair
        ]
        return head | {name: figures[name] for name in _FIGURES} | {"published": published}

    def _loss(self, method: str) -> float | None:
        units, y = self.panel.units[method], self.panel.y
        if self.plan.primary_metric == "log":
            return log_loss(units, y, (self.plan.clip.low, self.plan.clip.high))
        return brier_score(units, y)

    def _intervals(
        self, d: ExactArray, drawn: bootstrap.ResampledSums, which: int, level: str
    ) -> JsonDict:
        spec = self.plan.statistical_test.bootstrap
        return _ends(d, drawn, which, level) | {
            "level": level,
            "resamples": spec.resamples,
            "seed": spec.seed,
            "generator": spec.generator,
            "rounded": drawn.rounded,
        }

    def _hold_against(
        self,
        item: PublishedInterval,
        registered: JsonDict,
        drawn: bootstrap.ResampledSums,
        which: int,
    ) -> JsonDict:
        """Say which of our intervals at the printed level print as the published one."""
        ours = registered
        if item.level != registered["level"]:
            ours = _ends(self.differences(item.a, item.b), drawn, which, item.level)
        kinds = ("percentile", "bca", "limit", "limit_bca")
        return {
            "source": item.source,
            "level": item.level,
            "low": item.low,
            "high": item.high,
            "agrees": [kind for kind in kinds if _prints_as(ours[kind], item.low, item.high)],
        } | {name: ours[name] for name in (*kinds, "limit_tolerance")}


_FIGURES = (
    "mean_difference",
    "relative_reduction",
    "sign",
    "bootstrap",
    "permutation_p",
    "permutation_method",
    "permutation_fraction",
    "wilcoxon_p",
    "wilcoxon_method",
    "paired_t",
    "power",
)

POWER = 0.8
"""The power at which the detectable difference and the cards needed are stated."""


def family_pairs(panel: Panel, plan: Plan) -> list[Pair]:
    """Return the pairs of the plan's multiplicity family, in the plan's order."""
    if plan.multiplicity.family == "all_pairs":
        return list(combinations(panel.methods, 2))
    return [(c.a, c.b) for c in plan.comparisons]


def cut(value: float | None) -> float | None:
    """Keep 12 significant digits of a value that a special function computed."""
    return None if value is None else float(f"{value:.12g}")


def _ordered(pair: Pair) -> Pair:
    return pair if pair[0] <= pair[1] else (pair[1], pair[0])


def _power(t: PairedT, plan: Plan) -> JsonDict | None:
    """State what these cards could have shown (docs/spec/scoring.md, rule 25)."""
    alpha = float(plan.statistical_test.level)
    if t.n < 2 or t.sd == 0 or t.mean == 0:
        return None
    return {
        "power": POWER,
        "level": alpha,
        "detectable_difference": cut(detectable_difference(t.n, t.sd, power=POWER, alpha=alpha)),
        "cards_needed": cards_needed(abs(t.mean), t.sd, power=POWER, alpha=alpha),
    }


def _sign_row(d: ExactArray, epsilon: str) -> JsonDict:
    result = sign_test(d, epsilon)
    return {
        "epsilon": float(epsilon),
        "a_lower": result.a_better,
        "b_lower": result.b_better,
        "ties": result.ties,
        "p": result.p_value,
    }


def _ends(d: ExactArray, drawn: bootstrap.ResampledSums, which: int, level: str) -> JsonDict:
    """Return the ends of the four intervals at a level: two resampled, two limits."""
    percentile = bootstrap.interval(drawn, which=which, level=level, method="percentile")
    bca = bootstrap.interval(drawn, which=which, level=level, method="bca")
    return {
        "percentile": [percentile.low, percentile.high],
        "bca": [cut(bca.low), cut(bca.high)],
        "bca_fell_back": bca.fell_back,
    } | _limits(d, level)


def _limits(d: ExactArray, level: str) -> JsonDict:
    """Return both limits from one law: `limit_interval` twice would compute the law twice.

    `limit_tolerance` is the larger numerical error of any of the four ends.
    """
    law = limit.mean_law(d)
    if law is None:
        raise BugError("there are resampled cards and no law of their mean")
    tail = parse_tail(level)
    plain = law.quantiles([float(tail), float(1 - tail)])
    levels = bca_levels(law.below_mean(), acceleration(d), float(tail))
    skewed = plain if levels is None else law.quantiles(list(levels))
    return {
        "limit": [cut(end) for end, _ in plain],
        "limit_bca": [cut(end) for end, _ in skewed],
        "limit_bca_fell_back": levels is None,
        "limit_method": law.path,
        "limit_tolerance": _upwards(max(error for _, error in (*plain, *skewed))),
    }


def _upwards(tolerance: float) -> float:
    """Return a tolerance as a short decimal that is not below it."""
    return float(f"{tolerance * 1.005:.3g}") if tolerance else 0.0


def _prints_as(ends: Sequence[float] | None, low: str, high: str) -> bool:
    return ends is not None and all(
        agrees_with_printed(Fraction(end), text)
        for end, text in zip(ends, (low, high), strict=True)
    )
