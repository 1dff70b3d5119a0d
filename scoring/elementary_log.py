"""The natural logarithm with the same bits on every IEEE 754 machine.

numpy and the C library choose their log by processor, and two of them may differ in the last
bit. This one is fdlibm's `__ieee754_log` (Sun Microsystems, e_log.c, 1993) written with numpy's
add, subtract, multiply and divide alone. Each of these is one correctly rounded IEEE operation,
and nothing can be fused across two numpy calls, so the result is fixed by the input. The error
is below 1 ulp.

Method: x = 2^k (1 + f) with sqrt(2)/2 < 1 + f < sqrt(2); with s = f / (2 + f),
log(1 + f) = f - (f^2/2 - s (f^2/2 + R)), R a polynomial of degree 14 in s; then
log x = k ln2_hi + (log(1 + f) + k ln2_lo).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ledger.errors import BadInputError

_LN2_HI = 6.93147180369123816490e-01
_LN2_LO = 1.90821492927058770002e-10
_TWO54 = 1.80143985094819840000e16
_LG1 = 6.666666666666735130e-01
_LG2 = 3.999999999940941908e-01
_LG3 = 2.857142874366239149e-01
_LG4 = 2.222219843214978396e-01
_LG5 = 1.818357216161805012e-01
_LG6 = 1.531383769920937332e-01
_LG7 = 1.479819860511658591e-01
_SMALLEST_NORMAL = 2.2250738585072014e-308

# A block and its dozen temporaries stay in the second-level cache.
_BLOCK = 1 << 13


def natural_log(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ln x for an array of any one-dimensional length.

    Args:
        x: float64, shape (n,), each 0 <= x <= inf; 0 gives -inf, inf gives inf.

    Raises:
        BadInputError: a negative value or NaN.
    """
    if not (x >= 0.0).all():
        index = int(np.flatnonzero(~(x >= 0.0))[0])
        raise BadInputError(f"{x[index]} has no logarithm", where=f"x[{index}]")
    result = np.empty(x.size, dtype=np.float64)
    for start in range(0, x.size, _BLOCK):
        block = x[start : start + _BLOCK]
        result[start : start + _BLOCK] = _log_block(block)
    return result


def _log_block(x: NDArray[np.float64]) -> NDArray[np.float64]:
    finite = (x > 0.0) & (x < np.inf)
    if not finite.all():
        inner = _log_block(np.where(finite, x, 1.0))
        return np.where(finite, inner, np.where(x > 0.0, np.inf, -np.inf))
    tiny = x < _SMALLEST_NORMAL
    scaled = x * np.where(tiny, _TWO54, 1.0) if tiny.any() else x
    f, k, high = _split(scaled)
    if tiny.any():
        k -= np.where(tiny, 54.0, 0.0)
    return _assemble(f, k, high)


def _split(
    x: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return f, k and the 20 high fraction bits with x = 2^k (1 + f), f near 0."""
    bits = np.ascontiguousarray(x).view(np.int64)
    high = (bits >> 32) & 0x000FFFFF
    up = (high + 0x95F64) & 0x100000
    exponent = (bits >> 52) - 1023 + (up >> 20)
    mantissa = (bits & 0x000FFFFFFFFFFFFF) | ((up ^ 0x3FF00000) << 32)
    f = mantissa.view(np.float64) - 1.0
    return f, exponent.astype(np.float64), high


def _assemble(
    f: NDArray[np.float64], k: NDArray[np.float64], high: NDArray[np.int64]
) -> NDArray[np.float64]:
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    odd = w * (_LG2 + w * (_LG4 + w * _LG6))
    even = z * (_LG1 + w * (_LG3 + w * (_LG5 + w * _LG7)))
    r = even + odd
    k_high, k_low = k * _LN2_HI, k * _LN2_LO
    half_square = 0.5 * f * f
    # Away from 1 fdlibm subtracts f^2/2 apart, near 1 it does not; k = 0 drops exact zeros only.
    apart = k_high - ((half_square - (s * (half_square + r) + k_low)) - f)
    plain = k_high - ((s * (f - r) - k_low) - f)
    result = np.where(((high - 0x6147A) | (0x6B851 - high)) > 0, apart, plain)
    close = (0x000FFFFF & (2 + high)) < 3
    if close.any():
        square = f * f * (0.5 - 0.33333333333333333 * f)
        result = np.where(close, k_high - ((square - k_low) - f), result)
    return result
