"""Brier scores of methods that did not all forecast the same cards, put on one footing.

Two-way additive effects: loss = card difficulty + method effect, by least squares (ForecastBench).
A method that met easy cards gets no credit for it. On a balanced panel the adjusted score is
the raw Brier score.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ledger.errors import BadInputError
from scoring.exact import ExactArray
from scoring.rules import BRIER_STEP
from scoring.units import ONE, Outcomes, Probabilities, as_labels, as_units

_UNIFORM = 0.25


def difficulty_adjusted_brier(
    forecasts: Sequence[Probabilities], answered: Sequence[Sequence[int]], y: Outcomes
) -> tuple[float | None, ...]:
    """Return each method's Brier score had it met all cards, p = 1/2 scoring 0.25.

    The constant forecast 1/2 joins as a method that answered every card; effects are measured from
    it. This ties every method to every other through the cards they met.

    Args:
        forecasts: for each method its probabilities, in the order of its `answered`.
        answered: for each method the indices of its cards in `y`, each at most once.
        y: labels of all n cards.

    Returns:
        One score a method, to about 1e-12; None for a method without a card. Can lie outside
        [0, 1] on unbalanced panels.

    Raises:
        BadInputError: lengths that differ, an index outside 0..n-1 or twice.
    """
    labels = as_labels(y)
    n, m = int(labels.size), len(forecasts)
    if len(answered) != m:
        raise BadInputError(f"{m} methods but {len(answered)} lists of cards", where="answered")
    loss = np.full((m + 1, n), _UNIFORM)
    met = np.zeros((m + 1, n), dtype=np.bool_)
    met[m] = True
    for method, (p, cards) in enumerate(zip(forecasts, answered, strict=True)):
        units, places = as_units(p), list(cards)
        if len(places) != units.size or len(set(places)) != len(places):
            raise BadInputError("need one probability for each card, once", where=f"[{method}]")
        if any(not 0 <= place < n for place in places):
            raise BadInputError(f"a card outside 0..{n - 1}", where=f"answered[{method}]")
        error = units - labels[places].astype(np.int64) * ONE
        loss[method, places] = ExactArray(error * error, BRIER_STEP).floats()
        met[method, places] = True
    # Normal equations with the card effects eliminated; the effect of 1/2 is fixed at 0.
    share = met / met.sum(axis=0)
    matrix = np.diag(met.sum(axis=1).astype(np.float64)) - share @ met.T
    centred = np.where(met, loss - (share * loss).sum(axis=0), 0.0)
    present = (met[:m].sum(axis=1) > 0).tolist()
    solved, *_ = np.linalg.lstsq(matrix[:m, :m], centred[:m].sum(axis=1), rcond=None)
    return tuple(
        _UNIFORM + effect if some else None
        for effect, some in zip(solved.tolist(), present, strict=True)
    )
