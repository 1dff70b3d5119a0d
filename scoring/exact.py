"""Arrays of exact decimal values, and sums of them without rounding.

An `ExactArray` holds integers and one rational step; value i is `units[i] * step`. Losses,
differences and whatever the resampling methods take come in this form, so that a tie is a tie,
a sum does not depend on the order of its terms, and a table is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ledger.errors import BadInputError

_BLOCK = 1 << 15
_LOW = (1 << 32) - 1
# Sums of resampled units stay below 2^62, so that sums and their differences fit in int64.
SUM_BITS = 62


def exact_sum(values: NDArray[np.int64]) -> int:
    """Sum int64 values without overflow.

    Each value is split into its high and its low 32 bits; both partial sums stay within int64 up
    to 2^31 values.
    """
    high = low = 0
    for start in range(0, values.size, _BLOCK):
        block = values[start : start + _BLOCK]
        high += int((block >> 32).sum())
        low += int((block & _LOW).sum())
    return (high << 32) + low


def exact_sum_of_squares(values: NDArray[np.int64]) -> int:
    """Sum the squares of int64 values, any size, as a Python integer."""
    if values.size and int(np.abs(values).max()) < 1 << 31:
        return exact_sum(values * values)
    return sum(value * value for value in values.tolist())


@dataclass(frozen=True, slots=True, eq=False)
class ExactArray:
    """Exact values of n cards: value i is `units[i] * step`.

    Attributes:
        units: int64, shape (n,).
        step: the worth of one unit, above 0.
        rounded: True where the values were floats that had to be put on the grid of `step`
            (see `from_floats`), so that the array is near to its source and not equal to it.
    """

    units: NDArray[np.int64]
    step: Fraction
    rounded: bool = False

    def __len__(self) -> int:
        return int(self.units.size)

    def total(self) -> Fraction:
        """Return the exact sum of the values."""
        return exact_sum(self.units) * self.step

    def mean(self) -> float | None:
        """Return the mean, rounded once; None for no cards."""
        return float(self.total() / len(self)) if len(self) else None

    def floats(self) -> NDArray[np.float64]:
        """Return the values as doubles, each within an ulp or two of its exact value."""
        if self.step.numerator == 1:
            return np.asarray(self.units / float(self.step.denominator), dtype=np.float64)
        return np.asarray(self.units * float(self.step), dtype=np.float64)


def from_floats(values: Sequence[float] | NDArray[Any]) -> ExactArray:
    """Put floats on an exact grid.

    Where every value is the double nearest to a decimal of at most 9 places, the units are those
    decimals. Otherwise the grid is a power of two so fine that the rounding of a mean is below
    n * max|x| * 2^-62, and `rounded` says whether any value had to move.

    Raises:
        BadInputError: a value is not finite.
    """
    x = np.asarray(values, dtype=np.float64)
    if not np.isfinite(x).all():
        index = int(np.flatnonzero(~np.isfinite(x))[0])
        raise BadInputError(f"{x[index]} is not finite", where=f"values[{index}]")
    largest = float(np.abs(x).max(initial=0.0))
    if largest * 1e9 * max(x.size, 1) < 2.0**53:
        decimal = np.rint(x * 1e9)
        if np.array_equal(decimal / 1e9, x):
            return ExactArray(decimal.astype(np.int64), Fraction(1, 10**9))
    exponent = int(np.frexp(largest)[1])
    shift = min(SUM_BITS - 1 - int(x.size).bit_length() - exponent, 1000)
    scaled = np.ldexp(x, shift)
    units = np.rint(scaled)
    step = Fraction(1, 2**shift) if shift >= 0 else Fraction(2**-shift)
    return ExactArray(units.astype(np.int64), step, rounded=not np.array_equal(units, scaled))


@dataclass(frozen=True, slots=True, eq=False)
class ExactTable:
    """Several exact arrays over the same n cards in one common unit whose sums fit in int64.

    Attributes:
        units: int64, shape (m, n), with n * max|units| below 2^62.
        step: the worth of one unit.
        rounded: True where the unit had to be coarsened, or a source was rounded already.
    """

    units: NDArray[np.int64]
    step: Fraction
    rounded: bool


def align(arrays: Sequence[ExactArray]) -> ExactTable:
    """Bring arrays of equal length to one unit, the coarsest that is exact for all of them.

    Where n * max|units| would not fit in 62 bits, units are rounded half-even to a multiple of a
    power of two that fits, and `rounded` says so; the value of a mean then moves by less than
    max|value| * 2^-61 * n.

    Raises:
        BadInputError: no arrays, or their lengths differ.
    """
    if len({len(array) for array in arrays}) != 1:
        raise BadInputError("need arrays of one length", where="values")
    steps = {array.step for array in arrays}
    base = min(steps)
    if any((step / base).denominator != 1 for step in steps):
        raise BadInputError("the steps of the arrays have no common unit", where="values")
    factors = [int(array.step / base) for array in arrays]
    if factors == [1] * len(arrays):
        table = np.stack([array.units for array in arrays])
    else:
        table = np.array(
            [[unit * f for unit in a.units.tolist()] for a, f in zip(arrays, factors, strict=True)],
            dtype=object,
        )
    rounded = any(array.rounded for array in arrays)
    return fit_units(table, base, len(arrays[0]), rounded=rounded)


def fit_units(table: NDArray[Any], step: Fraction, n: int, *, rounded: bool) -> ExactTable:
    """Divide out the common factor; coarsen, half-even, where n * max|units| exceeds 62 bits.

    Args:
        table: integers of any size, shape (m, k).
        step: the worth of one unit.
        n: how many of them one sum takes.
        rounded: whether the source was rounded already.
    """
    common = int(np.gcd.reduce(table, axis=None)) if table.size else 0
    if common > 1:
        table, step = table // common, step * common
    largest = int(np.abs(table).max()) if table.size else 0
    excess = (n * largest).bit_length() - SUM_BITS
    if excess > 0:
        half_even = [[_shift_half_even(int(unit), excess) for unit in row] for row in table]
        table, step, rounded = np.array(half_even), step * 2**excess, True
    return ExactTable(table.astype(np.int64), step, rounded)


def _shift_half_even(unit: int, bits: int) -> int:
    quotient, rest = unit >> bits, unit & ((1 << bits) - 1)
    half = 1 << (bits - 1)
    return quotient + (rest > half or (rest == half and quotient & 1 == 1))
