"""Ids and salts as arguments: UUIDv7 from a moment and random bytes, and the entropy port."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from ledger.errors import BadInputError

Entropy = Callable[[int], bytes]
"""Returns that many random bytes. The system source lives in cli/system.py."""

RANDOM_BYTES = 10
"""Random bytes that one UUIDv7 takes: 74 of their 80 bits."""


_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


def format_uuid7(unix_ms: int, random_bytes: bytes) -> str:
    """UUIDv7 (RFC 9562 section 5.7) of Unix milliseconds (48 bits) and 10 random bytes.

    Raises:
        BadInputError: a time before 1970 or beyond 48 bits, or another number of random bytes.
    """
    if not 0 <= unix_ms < 1 << 48 or len(random_bytes) != RANDOM_BYTES:
        raise BadInputError(
            f"a UUIDv7 is not made of {unix_ms} ms and {len(random_bytes)} random bytes"
        )
    time, tail = f"{unix_ms:012x}", random_bytes.hex()
    # Version 7 in front of rand_a; the variant 0b10 replaces the top two bits of the next digit.
    variant = _VARIANT[tail[4]]
    return f"{time[:8]}-{time[8:]}-7{tail[:3]}-{variant}{tail[5:8]}-{tail[8:]}"


class SeededEntropy:
    """Reproducible bytes for tests, vectors and worked examples: SHA-256 of seed and counter.

    Never for a real ledger: whoever knows the seed can open every seal.
    """

    def __init__(self, seed: str) -> None:
        self._seed = seed.encode()
        self._counter = 0

    def __call__(self, count: int) -> bytes:
        """Return the next `count` bytes of the stream."""
        out = b""
        while len(out) < count:
            out += hashlib.sha256(self._seed + self._counter.to_bytes(8, "big")).digest()
            self._counter += 1
        return out[:count]
