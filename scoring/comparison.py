"""Paired comparison of two methods on the same cards: differences, sign test, t, Wilcoxon, DM.

Everywhere d_i = loss(b) - loss(a): positive favours a. Differences are exact (`ExactArray`), so
a tie is an equality of integers. The primary metric is the mean; the sign test counts cards and
answers another question. A plan names one before labels open. The sign-flip permutation test is
in permutation.py, sample sizes in power.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import bdtr, stdtr, stdtrit
from scipy.stats import binomtest, wilcoxon

from ledger.errors import BadInputError
from scoring.exact import ExactArray, exact_sum_of_squares
from scoring.levels import parse_tail
from scoring.rules import CLIP, brier_losses, log_losses_exact
from scoring.units import Outcomes, Probabilities

# Above this the exact binomial sum as a fraction costs more than it tells.
_EXACT_SIGN_CARDS = 2000


def differences(loss_a: ExactArray, loss_b: ExactArray) -> ExactArray:
    """Return loss(b) - loss(a) card by card; positive favours a.

    Raises:
        BadInputError: lengths or units of the two differ.
    """
    if len(loss_a) != len(loss_b):
        raise BadInputError(f"{len(loss_a)} cards against {len(loss_b)}", where="loss_a, loss_b")
    if loss_a.step != loss_b.step:
        raise BadInputError("the two losses have different units", where="loss_a, loss_b")
    rounded = loss_a.rounded or loss_b.rounded
    return ExactArray(loss_b.units - loss_a.units, loss_a.step, rounded=rounded)


def brier_differences(p_a: Probabilities, p_b: Probabilities, y: Outcomes) -> ExactArray:
    """Return the exact Brier differences, b minus a."""
    return differences(brier_losses(p_a, y), brier_losses(p_b, y))


def log_differences(
    p_a: Probabilities, p_b: Probabilities, y: Outcomes, clip: tuple[str, str] = CLIP
) -> ExactArray:
    """Return the differences of clipped log losses, b minus a, each loss rounded to 1e-15."""
    return differences(log_losses_exact(p_a, y, clip), log_losses_exact(p_b, y, clip))


@dataclass(frozen=True, slots=True)
class SignTest:
    """Two-sided sign test at a practical-tie threshold.

    Attributes:
        epsilon: the threshold as written; a card is a tie where |d| <= epsilon.
        a_better: cards with d > epsilon.
        b_better: cards with d < -epsilon.
        ties: the others, out of the test.
        p_value: 1 where every card is a tie.
        p_exact: the same as a fraction; None above 2000 non-ties.
        rate: a_better / non-ties; None without any.
        clopper_pearson: exact 95 % interval of the rate; None without any non-tie.
        wilson: score 95 % interval of the rate; None without any non-tie.
    """

    epsilon: str
    a_better: int
    b_better: int
    ties: int
    p_value: float
    p_exact: Fraction | None
    rate: float | None
    clopper_pearson: tuple[float, float] | None
    wilson: tuple[float, float] | None


def sign_test(d: ExactArray, epsilon: str = "0") -> SignTest:
    """Count cards won, lost and tied, and test one half.

    Args:
        d: differences.
        epsilon: tie threshold, a decimal at least 0, compared exactly.

    Raises:
        BadInputError: epsilon is no decimal or negative.
    """
    threshold = _parse_epsilon(epsilon)
    bound = math.floor(threshold / d.step)
    a_better = int(np.count_nonzero(d.units > bound))
    b_better = int(np.count_nonzero(d.units < -bound))
    n = a_better + b_better
    ties = len(d) - n
    if n == 0:
        return SignTest(epsilon, 0, 0, ties, 1.0, Fraction(1), None, None, None)
    exact = _two_sided_half(min(a_better, b_better), n) if n <= _EXACT_SIGN_CARDS else None
    p_value = min(1.0, 2.0 * float(bdtr(min(a_better, b_better), n, 0.5)))
    test = binomtest(a_better, n)
    exact_ci, wilson_ci = (test.proportion_ci(method=kind) for kind in ("exact", "wilson"))
    return SignTest(
        epsilon,
        a_better,
        b_better,
        ties,
        p_value if exact is None else float(exact),
        exact,
        a_better / n,
        (float(exact_ci.low), float(exact_ci.high)),
        (float(wilson_ci.low), float(wilson_ci.high)),
    )


def _parse_epsilon(epsilon: str) -> Fraction:
    try:
        threshold = Fraction(epsilon)
    except (ValueError, ZeroDivisionError):
        threshold = Fraction(-1)
    if threshold < 0:
        raise BadInputError(f"{epsilon!r} is not a decimal of at least 0", where="epsilon")
    return threshold


def _two_sided_half(fewer: int, n: int) -> Fraction:
    """Return min(1, 2 P(X <= fewer)) for X ~ Binomial(n, 1/2), exact."""
    term = total = 1
    for k in range(fewer):
        term = term * (n - k) // (k + 1)
        total += term
    return min(Fraction(1), Fraction(2 * total, 1 << n))


@dataclass(frozen=True, slots=True)
class PairedT:
    """Student's paired t test.

    Attributes:
        n: cards.
        mean: mean difference.
        sd: sample standard deviation (n - 1).
        se: sd / sqrt(n).
        t: mean / se; None where sd is 0.
        p_value: two-sided; None where sd is 0.
        interval: t interval of the mean at `level`.
        level: as written.
    """

    n: int
    mean: float
    sd: float
    se: float
    t: float | None
    p_value: float | None
    interval: tuple[float, float]
    level: str


def paired_t(d: ExactArray, *, level: str = "0.95") -> PairedT | None:
    """Return the paired t test; None for fewer than two cards.

    Raises:
        BadInputError: a level outside (0, 1).
    """
    tail, n = parse_tail(level), len(d)
    if n < 2:
        return None
    mean, sd = float(d.total() / n), standard_deviation(d)
    se = sd / math.sqrt(n)
    reach = -float(stdtrit(n - 1, float(tail))) * se
    t = mean / se if se > 0.0 else None
    p_value = None if t is None else 2.0 * float(stdtr(n - 1, -abs(t)))
    return PairedT(n, mean, sd, se, t, p_value, (mean - reach, mean + reach), level)


def standard_deviation(d: ExactArray) -> float:
    """Return the sample standard deviation of n > 1 values; the variance is exact until rooted."""
    n = len(d)
    total = d.total() / d.step
    squares = exact_sum_of_squares(d.units)
    return math.sqrt((n * squares - total * total) * d.step * d.step / (n * (n - 1)))


def equivalence_test(d: ExactArray, margin: float) -> float | None:
    """Return the TOST p-value that |mean difference| < margin (two one-sided t tests).

    None for fewer than two cards or no spread (Schuirmann 1987).

    Raises:
        BadInputError: margin is not positive.
    """
    if not margin > 0.0:
        raise BadInputError(f"margin {margin} is not positive", where="margin")
    test = paired_t(d)
    if test is None or test.t is None:
        return None
    below = stdtr(test.n - 1, (test.mean - margin) / test.se)
    above = stdtr(test.n - 1, -(test.mean + margin) / test.se)
    return float(max(below, above))


@dataclass(frozen=True, slots=True)
class WilcoxonTest:
    """Wilcoxon's signed-rank test, zero differences dropped.

    Attributes:
        statistic: the smaller of the two rank sums.
        p_value: two-sided.
        method: "exact" without ties in |d| and up to 50 cards, else "asymptotic", no continuity
            correction, ties in the variance.
        n: non-zero differences.
    """

    statistic: float
    p_value: float
    method: str
    n: int


def signed_rank_test(d: ExactArray) -> WilcoxonTest | None:
    """Return Wilcoxon's test; None where no difference is non-zero.

    scipy gets signed dense ranks and not values, so that ties are those of the integers.
    """
    units = d.units[d.units != 0]
    if not units.size:
        return None
    distinct, ranks = np.unique(np.abs(units), return_inverse=True)
    exact = distinct.size == units.size and units.size <= 50
    signed = np.sign(units) * (ranks + 1.0)
    method = "exact" if exact else "asymptotic"
    result = wilcoxon(signed, method=method, correction=False)
    return WilcoxonTest(float(result.statistic), float(result.pvalue), method, int(units.size))


@dataclass(frozen=True, slots=True)
class DieboldMariano:
    """Diebold-Mariano test with the small-sample factor of Harvey, Leybourne and Newbold 1997.

    Attributes:
        dm: mean / sqrt(long-run variance / n).
        hln: dm times sqrt((n + 1 - 2h + h(h-1)/n) / n); for h = 1 it equals the paired t.
        p_value: two-sided, t with n - 1 degrees of freedom on hln.
        horizon: h; autocovariances of the order given to lag h - 1 enter.
    """

    dm: float
    hln: float
    p_value: float
    horizon: int


def diebold_mariano(d: ExactArray, *, horizon: int = 1) -> DieboldMariano | None:
    """Return the Diebold-Mariano test; None for too few cards or no positive variance.

    Args:
        d: differences in time order.
        horizon: forecast horizon h in cards, at least 1.

    Raises:
        BadInputError: horizon below 1.
    """
    if horizon < 1:
        raise BadInputError(f"horizon {horizon} is below 1", where="horizon")
    n = len(d)
    if n < 2 or horizon > n:
        return None
    mean = float(d.total() / n)
    u = d.floats() - mean
    lags = [math.fsum((u[lag:] * u[: n - lag]).tolist()) / n for lag in range(horizon)]
    variance = lags[0] + 2.0 * math.fsum(lags[1:])
    if variance <= 0.0 or int(d.units.min()) == int(d.units.max()):
        return None
    dm = mean / math.sqrt(variance / n)
    factor = (n + 1 - 2 * horizon + horizon * (horizon - 1) / n) / n
    hln = dm * math.sqrt(factor)
    return DieboldMariano(dm, hln, 2.0 * float(stdtr(n - 1, -abs(hln))), horizon)
