"""Scoring rules: what one forecast of a yes-or-no card costs or earns.

Losses (Brier, log) are better when lower; scores (baseline, peer, index, skill) when higher.
No cards gives None everywhere, never 0. Sources: Brier 1950; Good 1952 (log); Metaculus help
pages (baseline and peer score); docs/spec/scoring.md is normative for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ledger.errors import BadInputError
from scoring.elementary_log import natural_log
from scoring.exact import ExactArray, exact_sum
from scoring.units import ONE, Labels, Outcomes, Probabilities, Units, as_cards, as_units
from scoring.units import parse_probability as parse_bound

CLIP = ("0.01", "0.99")
BRIER_STEP = Fraction(1, ONE * ONE)
LN2 = 0.6931471805599453
_BLOCK = 1 << 15
# A log loss on the grid of 1e-15 keeps ties of equal forecasts exact and fits in int64.
_LOG_GRID = 10**15


def brier_units(p: Probabilities, y: Outcomes) -> NDArray[np.int64]:
    """Return the Brier loss (p - y)^2 of each card, exact, in units of 1e-18.

    Returns:
        int64, shape (n,), each in 0..10^18.
    """
    units, labels = as_cards(p, y)
    return _squared_errors(units, labels)


def _squared_errors(units: Units, labels: Labels) -> NDArray[np.int64]:
    error = labels * np.int64(-ONE)
    error += units
    error *= error
    return error


def brier_losses(p: Probabilities, y: Outcomes) -> ExactArray:
    """Return the Brier loss of each card as an exact array, for comparison and resampling."""
    return ExactArray(brier_units(p, y), BRIER_STEP)


def brier_fraction(p: Probabilities, y: Outcomes) -> Fraction | None:
    """Return the mean Brier loss as an exact fraction; None for no cards."""
    units, labels = as_cards(p, y)
    if not units.size:
        return None
    total = sum(
        exact_sum(_squared_errors(units[start : start + _BLOCK], labels[start : start + _BLOCK]))
        for start in range(0, units.size, _BLOCK)
    )
    return Fraction(total, units.size * ONE * ONE)


def brier_score(p: Probabilities, y: Outcomes) -> float | None:
    """Return the mean Brier loss in [0, 1]; None for no cards.

    The sum is exact and divided once, so the result is the double nearest to the true mean.
    Cost: 1,000,000 cards take about 5 ms.

    Raises:
        BadInputError: see `as_cards`.
    """
    mean = brier_fraction(p, y)
    return None if mean is None else float(mean)


def clip_bounds(clip: tuple[str, str] | None) -> tuple[int, int]:
    """Convert clip bounds (decimal strings) to units; None means no clipping.

    Raises:
        BadInputError: a bound is no probability, or the lower is above the upper.
    """
    if clip is None:
        return 0, ONE
    low, high = (parse_bound(bound, where="clip") for bound in clip)
    if low > high:
        raise BadInputError(f"lower bound {clip[0]} is above {clip[1]}", where="clip")
    return low, high


def _realised(p: Probabilities, y: Outcomes, clip: tuple[str, str] | None) -> NDArray[np.float64]:
    """Return the clipped probability of what happened, the double nearest to its 9 places."""
    units, labels = as_cards(p, y)
    low, high = clip_bounds(clip)
    clipped = np.clip(units, low, high)
    return np.asarray(np.where(labels == 1, clipped, ONE - clipped) / float(ONE))


def log_losses(
    p: Probabilities, y: Outcomes, clip: tuple[str, str] | None = CLIP
) -> NDArray[np.float64]:
    """Return -ln of the clipped probability of what happened, card by card.

    Args:
        p: n probabilities.
        y: n labels.
        clip: decimal bounds that p is moved into first; None leaves p, and a card given
            probability 0 of what happened then costs inf.

    Returns:
        float64, shape (n,); with the default clip each is in [0.01005..., 4.60517...].
    """
    return 0.0 - natural_log(_realised(p, y, clip))


def log_loss(p: Probabilities, y: Outcomes, clip: tuple[str, str] | None = CLIP) -> float | None:
    """Return the mean log loss (natural log); None for no cards.

    The logarithm is `elementary_log` and the sum is correctly rounded (math.fsum), so the result
    has the same bits on every machine and in every order of cards. With a clip the rule is
    proper and not strictly proper: all p beyond a bound cost the same.
    """
    losses = log_losses(p, y, clip)
    return math.fsum(losses.tolist()) / losses.size if losses.size else None


def clipped_count(p: Probabilities, clip: tuple[str, str] = CLIP) -> int:
    """Return how many probabilities the clip moves. One on a bound is not moved."""
    units = as_units(p)
    low, high = clip_bounds(clip)
    return int(np.count_nonzero((units < low) | (units > high)))


@dataclass(frozen=True, slots=True)
class UnclippedLogLoss:
    """Mean log loss without a clip.

    Attributes:
        mean: the mean, inf where any card costs inf.
        infinite: how many cards cost inf.
        finite_mean: the mean over the other cards; None where there are none.
        n: all cards.
    """

    mean: float
    infinite: int
    finite_mean: float | None
    n: int


def unclipped_log_loss(p: Probabilities, y: Outcomes) -> UnclippedLogLoss | None:
    """Return the log loss with no clip, infinite cards counted; None for no cards."""
    losses = log_losses(p, y, None)
    if not losses.size:
        return None
    finite = losses[np.isfinite(losses)]
    infinite = int(losses.size - finite.size)
    finite_mean = math.fsum(finite.tolist()) / finite.size if finite.size else None
    mean = math.inf if infinite or finite_mean is None else finite_mean
    return UnclippedLogLoss(mean, infinite, finite_mean, int(losses.size))


def log_losses_exact(p: Probabilities, y: Outcomes, clip: tuple[str, str] = CLIP) -> ExactArray:
    """Return the clipped log losses rounded to 1e-15, for comparison and resampling.

    Raises:
        BadInputError: a loss is infinite, so the clip is too wide for these cards.
    """
    losses = log_losses(p, y, clip)
    if not np.isfinite(losses).all():
        index = int(np.flatnonzero(~np.isfinite(losses))[0])
        raise BadInputError(
            "the loss is infinite", where=f"p[{index}]", remedy="Clip inside (0, 1)."
        )
    units = np.rint(losses * float(_LOG_GRID)).astype(np.int64)
    return ExactArray(units, Fraction(1, _LOG_GRID), rounded=True)


def baseline_scores(
    p: Probabilities, y: Outcomes, clip: tuple[str, str] | None = CLIP
) -> NDArray[np.float64]:
    """Return Metaculus's baseline score 100 (1 + log2 q) of each card, q given to what happened."""
    return 100.0 * (1.0 - log_losses(p, y, clip) / LN2)


def baseline_score(
    p: Probabilities, y: Outcomes, clip: tuple[str, str] | None = CLIP
) -> float | None:
    """Return the mean baseline score: 0 for p = 1/2, at most 100; None for no cards."""
    loss = log_loss(p, y, clip)
    return None if loss is None else 100.0 * (1.0 - loss / LN2)


def peer_scores(
    forecasts: Sequence[Probabilities], y: Outcomes, clip: tuple[str, str] | None = CLIP
) -> tuple[float, ...] | None:
    """Return Metaculus's mean peer score of each of N methods on the same cards.

    100 N/(N-1) ln(q / geometric mean of all q), averaged over cards; the scores of all methods
    sum to 0.

    Returns:
        N scores, or None for fewer than two methods or no cards.
    """
    losses = [log_loss(p, y, clip) for p in forecasts]
    known = [loss for loss in losses if loss is not None]
    count = len(losses)
    if count < 2 or len(known) < count:
        return None
    middle = math.fsum(known) / count
    return tuple(100.0 * count / (count - 1) * (middle - loss) for loss in known)


def peer_brier(forecasts: Sequence[Probabilities], y: Outcomes) -> tuple[float, ...] | None:
    """Return the mean Brier loss of all methods minus that of each (ForecastBench).

    Returns:
        N differences, positive for better than the mean; None for no methods or no cards.
    """
    means = [brier_fraction(p, y) for p in forecasts]
    known = [mean for mean in means if mean is not None]
    if not known or len(known) < len(means):
        return None
    middle = sum(known, Fraction(0)) / len(known)
    return tuple(float(middle - mean) for mean in known)


def brier_index(p: Probabilities, y: Outcomes) -> float | None:
    """Return 100 (1 - sqrt(mean Brier)) in [0, 100]; None for no cards.

    A rescaling for display. It is not proper on one card: 100 (1 - |p - y|) rewards p = 0 or 1.
    """
    mean = brier_score(p, y)
    return None if mean is None else 100.0 * (1.0 - math.sqrt(mean))


def brier_skill_uniform(p: Probabilities, y: Outcomes) -> float | None:
    """Return 1 - B / 0.25, the skill against p = 1/2 on every card; None for no cards."""
    mean = brier_fraction(p, y)
    return None if mean is None else float(1 - 4 * mean)


def brier_skill_climatology(p: Probabilities, y: Outcomes) -> float | None:
    """Return 1 - B / (r (1 - r)), r the yes rate of these same cards.

    The reference knows the labels, so this flatters nobody. None for no cards or one class.
    """
    units, labels = as_cards(p, y)
    mean = brier_fraction(units, labels)
    n, yes = int(labels.size), int(np.count_nonzero(labels))
    if mean is None or yes in (0, n):
        return None
    return float(1 - mean * n * n / (yes * (n - yes)))
