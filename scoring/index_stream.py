"""The project's own random indices: "pcg64-lemire32/1".

numpy guarantees the raw 64-bit words of a bit generator and the seeding by SeedSequence, and does
not guarantee what `Generator.integers` makes of them (NEP 19). So the ledger fixes the rest
itself:

    1. PCG64(seed) gives 64-bit words.
    2. Each word gives two 32-bit halves, the low half first.
    3. Lemire's bounded method: for a half h and a bound n take m = h * n (64 bits). If the low 32
       bits of m are below 2^32 mod n, discard h and take the next half; else the index is m >> 32.
    4. A bound of 1 gives 0 and takes nothing from the stream.

An odd half left over is kept for the next draw. Uniforms, "pcg64-uniform53/1": the top 53 bits of a
word divided by 2^53; they take whole words and leave a kept half alone. Signs,
"pcg64-signs/1": the bits of a word from the lowest, 1 is plus, each row begins a word.

Sources: O'Neill 2014 (PCG); Lemire 2019, "Fast random integer generation in an interval".
Today's `Generator(PCG64(seed)).integers(0, n, size)` gives the same indices; a test says so.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ledger.errors import BadInputError

GENERATOR = "pcg64-lemire32/1"
LARGEST = (1 << 31) - 1
_WORD = 1 << 32


class IndexStream:
    """A reader of one PCG64 stream. The order of calls is part of the result.

    Args:
        seed: 0 or more.

    Raises:
        BadInputError: a negative seed.
    """

    def __init__(self, seed: int) -> None:
        if seed < 0:
            raise BadInputError(f"seed {seed} is negative", where="seed")
        self._bits = np.random.PCG64(seed)
        self._kept = np.empty(0, dtype=np.uint32)

    def words(self, count: int) -> NDArray[np.uint64]:
        """Return the next `count` raw 64-bit words."""
        return np.asarray(self._bits.random_raw(count), dtype=np.uint64)

    def uniforms(self, count: int) -> NDArray[np.float64]:
        """Return `count` doubles k / 2^53 in [0, 1)."""
        return np.asarray((self.words(count) >> np.uint64(11)) * 2.0**-53, dtype=np.float64)

    def signs(self, rows: int, n: int) -> NDArray[np.int8]:
        """Return (rows, n) signs +1 and -1."""
        width = -(-n // 64)
        words = self.words(rows * width).astype("<u8").view(np.uint8).reshape(rows, 8 * width)
        bits = np.unpackbits(words, axis=1, count=n, bitorder="little")
        return bits.view(np.int8) * np.int8(2) - np.int8(1)

    def indices(self, n: int, count: int) -> NDArray[np.int32]:
        """Return the next `count` indices, each uniform on 0..n-1.

        Raises:
            BadInputError: n outside 1..2^31 - 1.
        """
        if not 1 <= n <= LARGEST:
            raise BadInputError(f"cannot draw from {n} values", where="n")
        drawn = np.zeros(count, dtype=np.int32)
        threshold, filled = _WORD % n, count if n == 1 else 0
        while filled < count:
            products = (self._halves(count - filled) * np.uint64(n)).astype("<u8", copy=False)
            low, high = products.view("<u4")[0::2], products.view("<u4")[1::2]
            # A rejection has a chance below n / 2^32: look at the least before filtering.
            if threshold and low.min() < threshold:
                high = high[low >= threshold]
            drawn[filled : filled + high.size] = high
            filled += high.size
        return drawn

    def _halves(self, count: int) -> NDArray[np.uint64]:
        """Return the next `count` 32-bit halves, as 64-bit words."""
        fresh = count - self._kept.size
        words = self.words(-(-fresh // 2)) if fresh > 0 else np.empty(0, dtype=np.uint64)
        halves = words.astype("<u8", copy=False).view("<u4")
        if self._kept.size:
            halves = np.concatenate([self._kept, halves])
        self._kept = halves[count:].copy()
        return halves[:count].astype(np.uint64)
