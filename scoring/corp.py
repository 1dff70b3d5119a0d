"""CORP: calibration by isotonic regression, and the decomposition that follows from it.

    S = MCB - DSC + UNC,  MCB = S - S_rc,  DSC = S_unc - S_rc

S_rc is the score of the forecasts recalibrated by isotonic regression of y on p, S_unc that of the
constant yes rate (Dimitriadis, Gneiting and Jordan 2021). Equal forecasts are pooled first, so
the order of cards cannot matter. Pool-adjacent-violators runs on integers; the Brier terms are
exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

from ledger.errors import BadInputError
from scoring.elementary_log import natural_log
from scoring.grouping import group_cards, sum_of_ratios
from scoring.index_stream import IndexStream
from scoring.rules import CLIP, brier_fraction, clip_bounds, log_loss
from scoring.units import ONE, Labels, Outcomes, Probabilities, Units, as_cards

# Two Monte Carlo statistics nearer than this are one value: the same sums in another order.
_TIE = 1e-12


@dataclass(frozen=True, slots=True)
class Corp:
    """A CORP decomposition.

    Attributes:
        score: mean loss.
        miscalibration: MCB, at least 0; inf where the score is.
        discrimination: DSC, at least 0.
        uncertainty: UNC, the loss of the constant yes rate; 0 for a single class.
        recalibrated: the isotonic yes rate of each card, in the order given.
    """

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    recalibrated: tuple[float, ...]


def pool_adjacent_violators(yes: list[int], sizes: list[int]) -> list[tuple[int, int, int]]:
    """Pool groups, ordered by forecast, until the yes rates rise.

    Args:
        yes: cards with y = 1 in each group.
        sizes: cards in each group, each above 0.

    Returns:
        Blocks (yes, size, groups pooled), yes/size strictly rising. Exact, O(k).
    """
    blocks: list[tuple[int, int, int]] = []
    for group_yes, group_size in zip(yes, sizes, strict=True):
        block = (group_yes, group_size, 1)
        while blocks and blocks[-1][0] * block[1] >= block[0] * blocks[-1][1]:
            last = blocks.pop()
            block = (last[0] + block[0], last[1] + block[1], last[2] + block[2])
        blocks.append(block)
    return blocks


def corp_brier(p: Probabilities, y: Outcomes) -> Corp | None:
    """Decompose the mean Brier loss exactly, each term rounded once; None for no cards."""
    units, labels = as_cards(p, y)
    score = brier_fraction(units, labels)
    if score is None:
        return None
    blocks, recalibrated = _isotonic(units, labels)
    n, yes = int(labels.size), int(np.count_nonzero(labels))
    after = sum_of_ratios([s * (k - s) for s, k, _ in blocks], [k for _, k, _ in blocks]) / n
    constant = Fraction(yes * (n - yes), n * n)
    return Corp(
        float(score), float(score - after), float(constant - after), float(constant), recalibrated
    )


def corp_log(p: Probabilities, y: Outcomes, clip: tuple[str, str] | None = CLIP) -> Corp | None:
    """Decompose the mean log loss of clipped forecasts; None for no cards.

    Forecasts are clipped before ties are pooled. Recalibrated rates are not clipped: a block of
    one class costs 0.
    """
    units, labels = as_cards(p, y)
    score = log_loss(units, labels, clip)
    if score is None:
        return None
    low, high = clip_bounds(clip)
    blocks, recalibrated = _isotonic(np.clip(units, low, high), labels)
    n, yes = int(labels.size), int(np.count_nonzero(labels))
    after = _entropy([(s, k) for s, k, _ in blocks]) / n
    constant = _entropy([(yes, n)]) / n
    return Corp(score, score - after, constant - after, constant, recalibrated)


def _entropy(blocks: list[tuple[int, int]]) -> float:
    """Return the log loss, in sum, of cards forecast at the rate of their own block."""
    counts = [(part, size) for yes, size in blocks for part in (yes, size - yes) if part]
    rates = np.array([part / size for part, size in counts])
    parts = np.array([float(part) for part, _ in counts])
    return math.fsum((parts * (0.0 - natural_log(rates))).tolist())


def _isotonic(units: Units, labels: Labels) -> tuple[list[tuple[int, int, int]], tuple[float, ...]]:
    """Return the blocks and the recalibrated rate of each card."""
    groups = group_cards(units, labels, units)
    blocks = pool_adjacent_violators(groups.yes.tolist(), groups.n.tolist())
    rates = np.repeat([s / k for s, k, _ in blocks], [count for _, _, count in blocks])
    return blocks, tuple(rates[np.searchsorted(groups.index, units)].tolist())


@dataclass(frozen=True, slots=True)
class MiscalibrationTest:
    """Monte Carlo test that every forecast is the true probability.

    Attributes:
        miscalibration: the Brier MCB observed.
        p_value: (k + 1) / (B + 1), k simulated MCB at least as large.
        resamples: B.
        seed: of the stream.
        generator: its name.
    """

    miscalibration: float
    p_value: float
    resamples: int
    seed: int
    generator: str = "pcg64-uniform53/1"


def corp_miscalibration_test(
    p: Probabilities, y: Outcomes, *, seed: int, resamples: int = 1999
) -> MiscalibrationTest | None:
    """Test the Brier MCB against labels drawn from the forecasts; None for no cards.

    Label i of a draw is 1 where the next 53-bit uniform of the stream is below p_i. Values within
    1e-12 count as equal, hence towards the p-value. Cost: about 0.1 s for 1999 draws of 24 cards.

    Raises:
        BadInputError: resamples below 1.
    """
    if resamples < 1:
        raise BadInputError(f"{resamples} resamples; need at least 1", where="resamples")
    units, labels = as_cards(p, y)
    observed = corp_brier(units, labels)
    if observed is None:
        return None
    order = np.argsort(units, kind="stable")
    ordered = units[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    chance = units / float(ONE)
    stream = IndexStream(seed)
    larger = 0
    for _ in range(resamples):
        drawn = (stream.uniforms(units.size) < chance).astype(np.int64)
        larger += _simulated(chance[order], drawn[order], starts) >= (
            observed.miscalibration - _TIE
        )
    return MiscalibrationTest(
        observed.miscalibration, (larger + 1) / (resamples + 1), resamples, seed
    )


def _simulated(
    chance: NDArray[np.float64], drawn: NDArray[np.int64], starts: NDArray[np.int64]
) -> float:
    """Return the Brier MCB of one draw, cards ordered by forecast."""
    sizes = np.diff(np.r_[starts, drawn.size])
    yes = np.add.reduceat(drawn, starts)
    fit = isotonic_regression(yes / sizes, weights=sizes).x
    after = float((sizes * (fit * (1.0 - fit))).sum())
    score = float(((chance - drawn) ** 2).sum())
    return (score - after) / drawn.size
