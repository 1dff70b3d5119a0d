"""Probabilities as integers of 1e-9 and labels as 0 or 1: the one door to exact arithmetic.

Every rule of this package takes probabilities and labels in the shapes below and passes them
through `as_units` and `as_labels` first, so that a probability means one integer and nothing else.

    accepted as p                     becomes
    "0.5591", Decimal("0.5591")       559_100_000; more than 9 places is refused
    0.5591 (float)                    its shortest repr, rounded half-even to 9 places
    int64 array                       already units, range-checked

A plain int inside a list is refused: 1 could mean certainty or one unit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ledger.errors import BadInputError

PLACES = 9
ONE = 10**PLACES

Units: TypeAlias = NDArray[np.int64]
Labels: TypeAlias = NDArray[np.int8]
Probabilities: TypeAlias = Sequence[float | str | Decimal] | NDArray[Any]
Outcomes: TypeAlias = Sequence[int | bool | float] | NDArray[Any]

_DECIMAL = re.compile(r"[01](?:\.[0-9]{1,9})?", re.ASCII)
# x * 1e9 and the shortest repr of x each differ from x by half a unit in the last place: 1.2e-7
# units together. Within this distance of a half the decimal digits themselves decide.
_NEAR_HALF = 1e-6


def as_units(p: Probabilities) -> Units:
    """Convert probabilities to integers of 1e-9.

    Args:
        p: n probabilities: decimal strings, Decimals or floats in [0, 1], or an integer array of
            1e-9 units in [0, 1_000_000_000].

    Returns:
        int64 array of shape (n,).

    Raises:
        BadInputError: NaN, a value outside [0, 1], more than 9 decimal places in a string or a
            Decimal, an int in a list, or an array that is not one-dimensional. `where` is `p[i]`.
    """
    values: Any = p
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise BadInputError(f"expected one dimension, got {values.ndim}", where="p")
        if np.issubdtype(values.dtype, np.integer):
            return _from_integers(values)
        if np.issubdtype(values.dtype, np.floating):
            return _from_floats(values)
        values = values.tolist()
    if isinstance(values, str | bytes):
        raise BadInputError("a single string is not a list of probabilities", where="p")
    values = list(values)
    if all(type(value) is float for value in values):
        return _from_floats(np.array(values, dtype=np.float64))
    return np.array([parse_probability(v, where=f"p[{i}]") for i, v in enumerate(values)], np.int64)


def parse_probability(value: object, *, where: str = "p") -> int:
    """Convert one probability (str, Decimal or float) to an integer of 1e-9 units.

    Raises:
        BadInputError: as for `as_units`.
    """
    if isinstance(value, str):
        if not _DECIMAL.fullmatch(value):
            raise BadInputError(
                f"{value!r} is not a decimal in [0, 1] with at most 9 places",
                where=where,
                remedy="Write it like 0.25.",
            )
        return _in_range(int(Decimal(value).scaleb(PLACES)), value, where)
    if isinstance(value, Decimal):
        scaled = value.scaleb(PLACES) if value.is_finite() else Decimal(-1)
        if scaled != scaled.to_integral_value():
            raise BadInputError(f"{value} has more than 9 decimal places", where=where)
        return _in_range(int(scaled), value, where)
    if isinstance(value, float):
        if not 0.0 <= value <= 1.0:
            raise BadInputError(f"{float(value)!r} is not a probability in [0, 1]", where=where)
        return _round_shortest(float(value))
    raise BadInputError(
        f"{value!r} of type {type(value).__name__} is not a probability",
        where=where,
        remedy="Pass floats, decimal strings or an int64 array of 1e-9 units.",
    )


def _in_range(units: int, shown: object, where: str) -> int:
    if not 0 <= units <= ONE:
        raise BadInputError(f"{shown} is not a probability in [0, 1]", where=where)
    return units


def _round_shortest(value: float) -> int:
    scaled = Decimal(repr(value)).scaleb(PLACES)
    return int(scaled.to_integral_value(rounding=ROUND_HALF_EVEN))


def _from_integers(values: NDArray[Any]) -> Units:
    if values.size and (values.min() < 0 or values.max() > ONE):
        index = int(np.flatnonzero((values < 0) | (values > ONE))[0])
        raise BadInputError(
            f"{int(values[index])} units is outside 0..{ONE}",
            where=f"p[{index}]",
            remedy="An integer array means units of 1e-9.",
        )
    return values.astype(np.int64, copy=False)


def _from_floats(values: NDArray[Any]) -> Units:
    if values.dtype != np.float64:
        # str of a numpy float of any width is its own shortest repr; float32 0.1 means 0.1.
        values = np.array([float(str(value)) for value in values], dtype=np.float64)
    inside = (values >= 0.0) & (values <= 1.0)
    if not inside.all():
        index = int(np.flatnonzero(~inside)[0])
        raise BadInputError(
            f"{float(values[index])!r} is not a probability in [0, 1]", where=f"p[{index}]"
        )
    scaled = values * float(ONE)
    nearest = np.rint(scaled)
    units = nearest.astype(np.int64)
    for index in np.flatnonzero(np.abs(scaled - nearest) > 0.5 - _NEAR_HALF).tolist():
        units[index] = _round_shortest(float(values[index]))
    return units


def as_labels(y: Outcomes) -> Labels:
    """Convert labels to an int8 array of 0 and 1.

    Args:
        y: n labels, each equal to 0 or 1 (bool, int or float).

    Raises:
        BadInputError: a label that is neither 0 nor 1, NaN included; `where` is `y[i]`.
    """
    values: NDArray[Any] = y if isinstance(y, np.ndarray) else np.array(list(y))
    if values.ndim != 1:
        raise BadInputError(f"expected one dimension, got {values.ndim}", where="y")
    if values.size == 0:
        return np.zeros(0, dtype=np.int8)
    if not (np.issubdtype(values.dtype, np.number) or values.dtype == np.bool_):
        raise BadInputError(f"labels of type {values.dtype} are not 0 or 1", where="y")
    good = (values == 0) | (values == 1)
    if not good.all():
        index = int(np.flatnonzero(~good)[0])
        raise BadInputError(f"label {values[index]} is neither 0 nor 1", where=f"y[{index}]")
    return values.astype(np.int8, copy=False)


def as_cards(p: Probabilities, y: Outcomes) -> tuple[Units, Labels]:
    """Convert probabilities and labels of the same n cards.

    Raises:
        BadInputError: as for `as_units` and `as_labels`, or the lengths differ.
    """
    units, labels = as_units(p), as_labels(y)
    if units.size != labels.size:
        raise BadInputError(f"{units.size} probabilities but {labels.size} labels", where="p, y")
    return units, labels
