"""AUC: the chance that a yes card got a higher forecast than a no card."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from scoring.exact import exact_sum
from scoring.grouping import group_cards
from scoring.units import Outcomes, Probabilities, as_cards


def auc(p: Probabilities, y: Outcomes) -> Fraction | None:
    """Return the area under the ROC curve, exact, ties counted one half (Hanley, McNeil 1982).

    Returns:
        A fraction in [0, 1]; None for no cards or a single class. O(n log n), to 1e9 cards.
    """
    units, labels = as_cards(p, y)
    groups = group_cards(units, labels, units)
    no = groups.n - groups.yes
    pairs = int(groups.yes.sum()) * int(no.sum())
    if pairs == 0:
        return None
    below = np.cumsum(no) - no
    return Fraction(exact_sum(groups.yes * (2 * below + no)), 2 * pairs)
