"""Aggregation of draws and the registered blend, in exact fractions (`blend/1`)."""

from __future__ import annotations

from fractions import Fraction
from statistics import median_high, median_low

from ledger.decimals import UNITS, parse_units
from ledger.errors import BugError
from ledger.events.plan import MethodSpec
from ledger.protocol.state import Cell, ProtocolState

BLEND_RULE = "blend/1"
"""The extraction rule of a method that is the weighted mean of others."""

CONSTANT_UNITS = UNITS // 2
"""`uniform/1`: the probability of a method whose source is `constant`."""


def aggregate_draws(aggregate: str, draws_units: list[int]) -> int:
    """Aggregate a cell's draws as the plan says, rounded half to even to 1e-9 units.

    `single` takes the first draw, `mean` the exact mean, `median` the mean of the middle two.
    """
    if aggregate == "single":
        return draws_units[0]
    if aggregate == "mean":
        return round(Fraction(sum(draws_units), len(draws_units)))
    if aggregate == "median":
        # median_low and median_high bracket the middle; their mean is exact.
        middle = Fraction(median_low(draws_units) + median_high(draws_units), 2)
        return round(middle)
    raise BugError(f"no aggregate called {aggregate}")


def probability_units(state: ProtocolState, method: MethodSpec, card_id: str) -> int | None:
    """Return a method's aggregated probability for a card in 1e-9 units; None while missing.

    It is missing unless all registered draws are frozen, whatever the aggregate.
    """
    if method.source == "constant":
        return CONSTANT_UNITS
    draws: list[int] = []
    for draw in range(1, method.draws + 1):
        frozen = state.cells.get(Cell(method.id, card_id, draw))
        if frozen is None:
            return None
        draws.append(frozen[1])
    return aggregate_draws(method.aggregate, draws)


def blend_units(state: ProtocolState, method: MethodSpec, card_id: str) -> Fraction | None:
    """Return the registered blend of a card in 1e-9 units, exactly.

    None while a part is missing, or where a part is no registered method.
    """
    if method.blend is None:
        raise BugError(f"method {method.id} is not a blend")
    total = Fraction(0)
    for part in method.blend.parts:
        source = state.methods.get(part.method)
        units = None if source is None else probability_units(state, source, card_id)
        if units is None:
            return None
        total += Fraction(parse_units(part.weight) * units, UNITS)
    return total
