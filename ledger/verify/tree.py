"""The Merkle tree over the leaves, in subtrees of 4096 (RFC 9162 section 2.1).

A subtree of 4096 leaves that starts at a multiple of 4096 is a node of every larger tree, so the
roots of such chunks are enough to compute the root at any size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256

CHUNK = 4096
"""Leaves of one subtree; a power of two."""

EMPTY_ROOT = sha256(b"").digest()


def leaf_of(envelope: bytes) -> bytes:
    """SHA-256(0x00 || envelope): leaf hash and chain link (docs/spec/event-log.md, rule 7)."""
    return sha256(b"\x00" + envelope).digest()


def root_of(nodes: Sequence[bytes]) -> bytes:
    """Root over equal subtrees, the last one possibly smaller, or over leaf hashes.

    Pairing neighbours and lifting an odd last node gives the RFC's split at the largest power of
    two. Cost: n - 1 hashes.
    """
    if not nodes:
        return EMPTY_ROOT
    level = list(nodes)
    while len(level) > 1:
        odd = level[-1:] if len(level) & 1 else []
        each = iter(level)
        pairs = zip(each, each, strict=False)  # An odd last node pairs with nobody.
        level = [sha256(b"\x01" + left + right).digest() for left, right in pairs]
        level += odd
    return level[0]


class Tree:
    """Roots of the log at any size up to its own.

    Args:
        size: number of leaves.
        chunk_roots: roots of the subtrees of 4096 leaves, the last possibly of fewer.
        read_leaves: returns the computed leaf hashes with start <= position < stop.
    """

    def __init__(
        self,
        size: int,
        chunk_roots: Sequence[bytes],
        read_leaves: Callable[[int, int], list[bytes]],
    ) -> None:
        self.size = size
        self._chunk_roots = chunk_roots
        self._read_leaves = read_leaves

    def root(self, size: int) -> bytes:
        """Root at a size up to the tree's own. Cost: at most 4096 + size / 4096 hashes."""
        if size == self.size:
            return root_of(self._chunk_roots)
        whole, rest = divmod(size, CHUNK)
        nodes = list(self._chunk_roots[:whole])
        if rest:
            nodes.append(root_of(self._read_leaves(whole * CHUNK, size)))
        return root_of(nodes)
