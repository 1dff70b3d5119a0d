"""The scoring rules that a plan may name. One row a rule; a test runs over all rows.

To add a rule: one function (p, y) -> float or None, and one row here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from scoring import rules
from scoring.units import Outcomes, Probabilities


@dataclass(frozen=True, slots=True)
class Rule:
    """A named and versioned scoring rule.

    Attributes:
        name: what a plan writes.
        version: raised when any result changes.
        function: (p, y) -> mean score; None for no cards.
        direction: which way is better.
        lowest: least value on any cards; -inf where there is none.
        highest: greatest value on any cards; inf where there is none.
        proper: True where no forecast beats the true probability in expectation.
        description: one sentence.
    """

    name: str
    version: int
    function: Callable[[Probabilities, Outcomes], float | None]
    direction: Literal["lower", "higher"]
    lowest: float
    highest: float
    proper: bool
    description: str


def log_unclipped(p: Probabilities, y: Outcomes) -> float | None:
    """Return the mean log loss without a clip, inf where a card costs inf; None for no cards."""
    result = rules.unclipped_log_loss(p, y)
    return None if result is None else result.mean


_INF = float("inf")

RULES: tuple[Rule, ...] = (
    Rule(
        name="brier",
        version=1,
        function=rules.brier_score,
        direction="lower",
        lowest=0.0,
        highest=1.0,
        proper=True,
        description="Mean of (p - y)^2, summed exactly and divided once.",
    ),
    Rule(
        name="log-clip-0.01",
        version=1,
        function=rules.log_loss,
        direction="lower",
        lowest=0.01005,
        highest=4.60518,
        proper=True,
        description="Mean of -ln of the probability of what happened, p moved into [0.01, 0.99].",
    ),
    Rule(
        name="log",
        version=1,
        function=log_unclipped,
        direction="lower",
        lowest=0.0,
        highest=_INF,
        proper=True,
        description="Mean of -ln of the probability of what happened; inf is possible.",
    ),
    Rule(
        name="baseline",
        version=1,
        function=rules.baseline_score,
        direction="higher",
        lowest=-564.39,
        highest=98.56,
        proper=True,
        description="Metaculus's 100 (1 + log2 q), q of what happened, p moved into [0.01, 0.99].",
    ),
    Rule(
        name="brier-index",
        version=1,
        function=rules.brier_index,
        direction="higher",
        lowest=0.0,
        highest=100.0,
        proper=False,
        description="100 (1 - sqrt(mean Brier)), for display.",
    ),
    Rule(
        name="brier-skill-uniform",
        version=1,
        function=rules.brier_skill_uniform,
        direction="higher",
        lowest=-3.0,
        highest=1.0,
        proper=True,
        description="1 - B / 0.25, the skill against one half on every card.",
    ),
)
