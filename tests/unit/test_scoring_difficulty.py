"""Difficulty-adjusted Brier: raw on a balanced panel, fair on an unbalanced one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import BadInputError
from scoring import rules
from scoring.difficulty import difficulty_adjusted_brier
from scoring.units import ONE

panels = st.integers(1, 12).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 1), min_size=n, max_size=n),
        st.lists(st.lists(st.integers(0, ONE), min_size=n, max_size=n), min_size=1, max_size=5),
    )
)


@given(panels)
def test_a_balanced_panel_gives_the_raw_score(panel: tuple[list[int], list[list[int]]]) -> None:
    """On a balanced panel the difficulty-adjusted score MUST equal the raw Brier score."""
    y, rows = panel
    forecasts = [np.array(row, dtype=np.int64) for row in rows]
    found = difficulty_adjusted_brier(forecasts, [range(len(y))] * len(rows), y)
    want = [rules.brier_score(p, y) for p in forecasts]
    assert list(found) == pytest.approx(want, abs=1e-12)


def test_easy_cards_earn_nothing() -> None:
    """Two equal methods, one of which met the easy half alone, get the same score."""
    y = [1, 1, 1, 1]
    whole, half = ["0.9", "0.9", "0.1", "0.1"], ["0.9", "0.9"]
    adjusted = difficulty_adjusted_brier([whole, half], [range(4), [0, 1]], y)
    raw = rules.brier_score(half, [1, 1])
    assert raw == 0.01
    assert adjusted[0] is not None
    assert adjusted[1] is not None
    assert adjusted[1] > raw
    design = np.array(
        # whole, half, cards 0..3; the rows are the losses of whole, half and one half
        [[1, 0, *row] for row in np.eye(4)]
        + [[0, 1, *row] for row in np.eye(4)[:2]]
        + [[0, 0, *row] for row in np.eye(4)]
    )
    losses = [0.01, 0.01, 0.81, 0.81, 0.01, 0.01, *[0.25] * 4]
    effects = np.linalg.lstsq(design, np.array(losses), rcond=None)[0]
    assert list(adjusted) == pytest.approx([0.25 + effects[0], 0.25 + effects[1]], abs=1e-12)


def test_a_method_without_cards_is_not_computable() -> None:
    """A method without a card MUST give None."""
    found = difficulty_adjusted_brier([["0.5"], []], [[0], []], [1])
    assert found[0] == pytest.approx(0.25, abs=1e-15)
    assert found[1] is None


def test_bad_panels_are_refused() -> None:
    for forecasts, answered in (
        ([["0.5"]], []),
        ([["0.5"]], [[0, 1]]),
        ([["0.5", "0.5"]], [[0, 0]]),
        ([["0.5"]], [[2]]),
        ([["0.5"]], [[-1]]),
    ):
        with pytest.raises(BadInputError):
            difficulty_adjusted_brier(forecasts, answered, [0, 1])
