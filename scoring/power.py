"""How many cards a comparison needs, and how small a difference it can see.

Two-sided paired t test with the noncentral t distribution, and the exact sign test. Source: Cohen
1988; the minimum detectable effect is reported beside every comparison that does not reject.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import bdtr, bdtrc, bdtrik, ndtr, ndtri, stdtrit

from ledger.errors import BadInputError

_MOST_CARDS = 10**7
_MOST_SIGNS = 200_000
_NODES = 200


def t_power(n: int, effect: float, *, alpha: float = 0.05) -> float:
    """Return the power of the two-sided paired t test.

    Args:
        n: cards, at least 2.
        effect: |mean difference| / sd of the differences.
        alpha: level of the test, in (0, 1).

    Raises:
        BadInputError: n below 2, effect negative or alpha outside (0, 1).
    """
    _check(alpha=alpha)
    if n < 2 or not effect >= 0.0:
        raise BadInputError(f"n = {n}, effect = {effect}: need n >= 2 and effect >= 0")
    critical = -float(stdtrit(n - 1, alpha / 2.0))
    spread, weight = _spread_nodes(n - 1)
    shift = effect * math.sqrt(n)
    chance = ndtr(shift - critical * spread) + ndtr(-shift - critical * spread)
    return float(chance @ weight)


def _spread_nodes(freedom: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes and weights of the law of s/sigma, chi over its root degrees of freedom.

    Gauss-Legendre over 15 standard deviations, normalised to 1: the noncentral t tail is then
    right to about 1e-13; scipy.special.nctdtr gives NaN at large effects.
    """
    width = 15.0 / math.sqrt(2.0 * freedom)
    low, high = max(0.0, 1.0 - width), 1.0 + width
    at, weight = _gauss_nodes()
    s = low + (high - low) * (at + 1.0) / 2.0
    log_density = (freedom - 1.0) * np.log(s) - freedom * (s * s - 1.0) / 2.0
    mass = weight * np.exp(log_density)
    return s, mass / mass.sum()


@cache
def _gauss_nodes() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return nodes and weights on [-1, 1]: an eigenvalue problem of 40 ms, solved once."""
    at, weight = leggauss(_NODES)
    at.flags.writeable = weight.flags.writeable = False
    return at, weight


def cards_needed(
    difference: float, sd: float, *, power: float = 0.8, alpha: float = 0.05
) -> int | None:
    """Return the least n whose paired t test has the power; None above 10 million cards.

    Args:
        difference: mean loss difference to detect, above 0.
        sd: standard deviation of the differences, above 0.
        power: in (0, 1).
        alpha: divide by the number of comparisons for Bonferroni.

    Raises:
        BadInputError: an argument outside its range.
    """
    _check(alpha=alpha, power=power)
    if not (difference > 0.0 and sd > 0.0):
        raise BadInputError(f"difference {difference} and sd {sd} must be positive")
    effect = difference / sd
    low, high = 1, 2
    while t_power(high, effect, alpha=alpha) < power:
        low, high = high, 2 * high
        if high > _MOST_CARDS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if t_power(middle, effect, alpha=alpha) < power:
            low = middle
        else:
            high = middle
    return high


def detectable_difference(n: int, sd: float, *, power: float = 0.8, alpha: float = 0.05) -> float:
    """Return the mean difference that n cards detect with the power.

    Raises:
        BadInputError: n below 2, sd not positive, or power not above alpha.
    """
    _check(alpha=alpha, power=power)
    if n < 2 or not sd > 0.0 or power <= alpha:
        raise BadInputError(f"n = {n}, sd = {sd}, power = {power}: no detectable difference")
    high = 1.0
    while t_power(n, high, alpha=alpha) < power:
        high *= 2.0
    effect = brentq(lambda e: t_power(n, e, alpha=alpha) - power, 0.0, high, xtol=1e-14, rtol=1e-14)
    return float(effect) * sd


def sign_power(n: int, rate: float, *, alpha: float = 0.05) -> float:
    """Return the power of the exact two-sided sign test with n non-tied cards.

    Args:
        n: non-tied cards, at least 1.
        rate: true chance that a wins a card, in [0, 1].
        alpha: nominal level; the test is conservative.

    Raises:
        BadInputError: an argument outside its range.
    """
    _check(alpha=alpha)
    if n < 1 or not 0.0 <= rate <= 1.0:
        raise BadInputError(f"n = {n}, rate = {rate}: need n >= 1 and a rate in [0, 1]")
    return float(_sign_powers(np.array([n]), rate, alpha)[0])


def _sign_powers(n: NDArray[np.int64], rate: float, alpha: float) -> NDArray[np.float64]:
    """Return the power for each n; the test rejects at `least` wins or losses and fewer."""
    least = np.floor(bdtrik(alpha / 2.0, n, 0.5))
    # bdtrik inverts in floats: move to the last count whose two-sided p is at most alpha.
    for _ in range(2):
        least = np.where(2.0 * bdtr(np.maximum(least, 0.0), n, 0.5) > alpha, least - 1.0, least)
        more = least + 1.0
        least = np.where(2.0 * bdtr(more, n, 0.5) <= alpha, more, least)
    floor = np.maximum(least, 0.0)
    power = bdtr(floor, n, rate) + bdtrc(n - floor - 1.0, n, rate)
    return np.asarray(np.where(least < 0.0, 0.0, power), dtype=np.float64)


def sign_cards_needed(rate: float, *, power: float = 0.8, alpha: float = 0.05) -> int | None:
    """Return the n from which on the sign test always has the power.

    Power rises in a sawtooth: a smaller n may reach it once and a larger one miss it again. None
    where about 200,000 cards or more would be needed.

    Raises:
        BadInputError: rate is 1/2 or outside [0, 1], or another argument outside its range.
    """
    _check(alpha=alpha, power=power)
    if not 0.0 <= rate <= 1.0 or rate == 0.5:
        raise BadInputError(f"a rate of {rate} cannot be detected", where="rate")
    effect = abs(rate - 0.5)
    reach = -float(ndtri(alpha / 2.0)) + max(float(ndtri(power)), 0.0)
    beyond = int((reach / effect) ** 2 / 2.0) + 200
    if beyond > _MOST_SIGNS:
        return None
    weak = _sign_powers(np.arange(1, beyond), rate, alpha) < power
    return int(np.flatnonzero(weak)[-1]) + 2 if weak.any() else 1


def _check(**shares: float) -> None:
    for name, value in shares.items():
        if not 0.0 < value < 1.0:
            raise BadInputError(f"{value} is not inside (0, 1)", where=name)
