"""The Merkle tree over the log: RFC 9162 section 2.1 with SHA-256 (the tree of RFC 6962).

Pure functions over hashes, no input or output. A *leaf hash* is `leaf_hash(entry)`: the log stores
it, so everything but `leaf_hash` takes leaf hashes and never an entry. Proofs are lists of 32-byte
hashes, lowest level first, in the order that the RFC gives them. Argument order is the RFC's too:
positions and sizes, then hashes, then the proof, then roots (docs/spec/checkpoint.md).

What makes the tree safe is the one byte before each hash: without 0x00 and 0x01 an inner node could
be passed off as an entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

from ledger.errors import BadInputError

HASH_BYTES = 32
"""Length of every leaf hash, node hash and root."""

EMPTY_ROOT = sha256(b"").digest()
"""Root of the tree without entries: the hash of nothing (RFC 9162 section 2.1.1)."""


def leaf_hash(entry: bytes) -> bytes:
    """SHA-256(0x00 || entry): the hash of one log entry (RFC 9162 section 2.1.1)."""
    return sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """SHA-256(0x01 || left || right): the hash of an inner node (RFC 9162 section 2.1.1)."""
    return sha256(b"\x01" + left + right).digest()


def merkle_tree_hash(leaf_hashes: Sequence[bytes]) -> bytes:
    """Root of the tree: the RFC's MTH, over leaves that are hashed already.

    Args:
        leaf_hashes: one 32-byte `leaf_hash` per entry, in log order; may be empty.

    Raises:
        BadInputError: a leaf hash is not 32 bytes.

    Cost: n - 1 hashes, level by level; a million leaves take about 0.6 s.
    Source: RFC 9162 section 2.1.1.
    """
    if not leaf_hashes:
        return EMPTY_ROOT
    return _last_level(leaf_hashes)[0]


def prove_inclusion(leaf_index: int, leaf_hashes: Sequence[bytes]) -> list[bytes]:
    """Inclusion proof of one leaf in the tree of all the leaves given: the RFC's PATH(m, D[n]).

    Args:
        leaf_index: position of the leaf, from 0.
        leaf_hashes: every leaf hash of the tree, in log order.

    Returns:
        At most ceil(log2 n) hashes; none for a tree of one leaf.

    Raises:
        BadInputError: the index is not below the number of leaves, or a leaf hash is not 32 bytes.

    Cost: n - 1 hashes.
    Source: RFC 9162 section 2.1.3.1.
    """
    size = len(leaf_hashes)
    if not 0 <= _whole(leaf_index, "leaf_index") < size:
        raise BadInputError(f"a tree of size {size} has no leaf {leaf_index}")
    proof = []
    node = leaf_index
    for level in _levels(leaf_hashes):
        sibling = node ^ 1
        if sibling < len(level):
            proof.append(level[sibling])
        node >>= 1
    return proof


def check_inclusion(
    leaf_index: int,
    tree_size: int,
    leaf_hash: bytes,
    proof: Sequence[bytes],
    root: bytes,
) -> bool:
    """Say whether the proof shows that this leaf stands at this index of the tree with this root.

    Anything that is not exactly such a proof is False: an index not below the size, a negative
    number, a proof too long or too short, a hash that is not 32 bytes.

    Args:
        leaf_index: position of the leaf, from 0.
        tree_size: number of leaves in the tree.
        leaf_hash: 32 bytes.
        proof: hashes of 32 bytes, lowest first.
        root: 32 bytes, from a checkpoint that was verified or kept elsewhere.

    Raises:
        BadInputError: the index or the size is not an int (a bool is none), or the proof is not a
            sequence.

    Source: RFC 9162 section 2.1.3.2.
    """
    return _are_hashes(root) and _fold_inclusion(leaf_index, tree_size, leaf_hash, proof) == root


def root_from_inclusion_proof(
    leaf_index: int, tree_size: int, leaf_hash: bytes, proof: Sequence[bytes]
) -> bytes:
    """Compute the root that the proof leads to, for a caller who then looks for who signed it.

    Raises:
        BadInputError: no tree of that size has a proof of that shape.

    Source: RFC 9162 section 2.1.3.2, without the last comparison.
    """
    root = _fold_inclusion(leaf_index, tree_size, leaf_hash, proof)
    if root is None:
        raise BadInputError(
            f"no inclusion proof of leaf {leaf_index} in a tree of size {tree_size} has this shape"
        )
    return root


def prove_consistency(size1: int, leaf_hashes: Sequence[bytes]) -> list[bytes]:
    """Consistency proof from the tree of the first `size1` leaves to the tree of all of them.

    Args:
        size1: size of the older tree, 1 to n.
        leaf_hashes: every leaf hash of the newer tree, in log order.

    Returns:
        At most ceil(log2 n) + 1 hashes; none where size1 is n.

    Raises:
        BadInputError: size1 is 0 (every tree extends the empty one; nothing is proved) or above the
            number of leaves, or a leaf hash is not 32 bytes.

    Cost: n - 1 hashes.
    Source: RFC 9162 section 2.1.4.1, PROOF(m, D[n]), walked from the leaves up.
    """
    size2 = len(leaf_hashes)
    if not 0 < _whole(size1, "size1") <= size2:
        raise BadInputError(
            f"no consistency proof leads from size {size1} to size {size2}",
            remedy="The older size is at least 1 and at most the newer.",
        )
    if size1 == size2:
        return []
    proof: list[bytes] = []
    node = size1 - 1
    started = False
    for level in _levels(leaf_hashes):
        if not started and node & 1 == 0:
            # The largest whole subtree at the old tree's right edge. Where it is the whole old
            # tree (node 0), the verifier holds its hash already: it is root1.
            started = True
            if node:
                proof.append(level[node])
        if started and node ^ 1 < len(level):
            proof.append(level[node ^ 1])
        node >>= 1
    return proof


def check_consistency(
    size1: int,
    size2: int,
    proof: Sequence[bytes],
    root1: bytes,
    root2: bytes,
) -> bool:
    """Say whether the proof shows that the newer tree only appends to the older one.

    Two cases that the RFC leaves open follow transparency-dev/merkle, so that its vectors hold
    here. Equal sizes (0 and 0 as well) need an empty proof and equal roots, and nothing of the
    roots is looked at but that. A size1 of 0 before a larger size2 is False: the empty tree is a
    prefix of every tree, so that such a proof says nothing. All other malformed input is False, as
    in check_inclusion.

    Args:
        size1: number of leaves in the older tree.
        size2: number of leaves in the newer tree.
        proof: hashes of 32 bytes, in the RFC's order.
        root1: 32 bytes, the older root.
        root2: 32 bytes, the newer root.

    Raises:
        BadInputError: a size is not an int (a bool is none), or the proof is not a sequence.

    Source: RFC 9162 section 2.1.4.2; the step numbers below are the RFC's.
    """
    first, second = _whole(size1, "size1"), _whole(size2, "size2")
    path = _proof_list(proof)
    if first == second >= 0:
        return not path and type(root1) is type(root2) is bytes and root1 == root2
    if not 0 < first < second or not _are_hashes(root1, root2, *path):
        return False
    if not path:  # 1
        return False
    if first & (first - 1) == 0:  # 2: a power of two
        path = [root1, *path]
    fn, sn = first - 1, second - 1  # 3
    while fn & 1:  # 4
        fn, sn = fn >> 1, sn >> 1
    fr = sr = path[0]  # 5
    for c in path[1:]:  # 6
        if sn == 0:
            return False
        if fn & 1 or fn == sn:
            fr, sr = node_hash(c, fr), node_hash(c, sr)
            while fn and not fn & 1:
                fn, sn = fn >> 1, sn >> 1
        else:
            sr = node_hash(sr, c)
        fn, sn = fn >> 1, sn >> 1
    return fr == root1 and sr == root2 and sn == 0  # 7


@dataclass(frozen=True, slots=True)
class Frontier:
    """The right edge of a growing tree: enough to append and to state the root, and no more.

    One hash for each 1 in the binary form of the size, the largest subtree (leftmost) first: 20
    hashes stand for a million leaves. Immutable, so a writer whose transaction is rolled back still
    holds the frontier of before.

    Args:
        size: number of leaves, from 0.
        hashes: one 32-byte hash for each set bit of the size, highest bit first.

    Raises:
        BadInputError: the hashes do not fit the size.
    """

    size: int = 0
    hashes: tuple[bytes, ...] = ()

    def __post_init__(self) -> None:
        if _whole(self.size, "size") < 0 or self.size.bit_count() != len(self.hashes):
            raise BadInputError(
                f"a frontier of size {self.size} does not have {len(self.hashes)} hashes"
            )
        if not _are_hashes(*self.hashes):
            raise BadInputError("a frontier's hashes are not 32 bytes each")

    @classmethod
    def from_hashes(cls, size: int, hashes: Iterable[bytes]) -> Frontier:
        """Read back what `to_hashes` gave; raises BadInputError where the two do not fit."""
        return cls(size, tuple(hashes))

    def to_hashes(self) -> list[bytes]:
        """Return the subtree hashes, leftmost first; with the size they are the whole state."""
        return list(self.hashes)

    def append(self, leaf: bytes) -> Frontier:
        """Return the frontier after one more leaf hash; this one is unchanged.

        Cost: one hash on average, log2(size) at most.
        """
        return self.extend((leaf,))

    def extend(self, leaves: Iterable[bytes]) -> Frontier:
        """Return the frontier after these leaf hashes, in order; this one is unchanged."""
        size, stack = self.size, list(self.hashes)
        for leaf in leaves:
            if not _are_hashes(leaf):
                raise BadInputError(f"leaf hash {size} is not 32 bytes")
            node, carry = leaf, size
            while carry & 1:
                node = node_hash(stack.pop(), node)
                carry >>= 1
            stack.append(node)
            size += 1
        return Frontier(size, tuple(stack))

    def root(self) -> bytes:
        """Root of the tree so far; equals `merkle_tree_hash` of every leaf appended.

        Cost: one hash fewer than there are hashes in the frontier.
        """
        if not self.hashes:
            return EMPTY_ROOT
        *rest, root = self.hashes
        for left in reversed(rest):
            root = node_hash(left, root)
        return root


def _levels(leaf_hashes: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Give the tree's levels below the root, leaves first.

    A last node without a sibling moves up unchanged, which builds the same tree as the RFC's split
    at the largest power of two.
    """
    if set(map(type, leaf_hashes)) - {bytes} or set(map(len, leaf_hashes)) - {HASH_BYTES}:
        raise BadInputError(
            "a leaf hash is not 32 bytes", remedy="Give leaf_hash(entry) for each entry."
        )
    level = leaf_hashes
    while len(level) > 1:
        yield level
        level = _next_level(level)


def _next_level(level: Sequence[bytes]) -> list[bytes]:
    pairs = iter(level)
    # One flat comprehension: a call of node_hash per node would cost half as much again.
    above = [sha256(b"\x01" + a + b).digest() for a, b in zip(pairs, pairs, strict=False)]
    if len(level) & 1:
        above.append(level[-1])
    return above


def _last_level(leaf_hashes: Sequence[bytes]) -> Sequence[bytes]:
    level = leaf_hashes
    for level in _levels(leaf_hashes):  # noqa: B007 - the last one counts
        pass
    return _next_level(level) if len(level) > 1 else level


def _fold_inclusion(
    leaf_index: int, tree_size: int, leaf_hash: bytes, proof: Sequence[bytes]
) -> bytes | None:
    """Steps 1 to 5 of RFC 9162 section 2.1.3.2; None where they fail the verification."""
    fn, size = _whole(leaf_index, "leaf_index"), _whole(tree_size, "tree_size")
    path = _proof_list(proof)
    if not 0 <= fn < size or not _are_hashes(leaf_hash, *path):  # 1
        return None
    sn = size - 1  # 2
    r = leaf_hash  # 3
    for p in path:  # 4
        if sn == 0:
            return None
        if fn & 1 or fn == sn:
            r = node_hash(p, r)
            while fn and not fn & 1:
                fn, sn = fn >> 1, sn >> 1
        else:
            r = node_hash(r, p)
        fn, sn = fn >> 1, sn >> 1
    return r if sn == 0 else None  # 5


def _whole(number: int, name: str) -> int:
    # bool is an int to Python; True as a tree size is a caller's mistake, not the tree of size 1.
    if type(number) is not int:
        raise BadInputError(f"{name} is {type(number).__name__}, not int")
    return number


def _proof_list(proof: Sequence[bytes]) -> list[bytes]:
    if not isinstance(proof, Sequence):
        raise BadInputError(f"a proof is {type(proof).__name__}, not a list of hashes")
    return list(proof)


def _are_hashes(*candidates: object) -> bool:
    return all(type(item) is bytes and len(item) == HASH_BYTES for item in candidates)


# RFC 9162 speaks of verifying a proof, the rest of this project of checking one; the RFC's verbs
# are second names of the same functions, so that its readers find what they look for.
verify_inclusion = check_inclusion
verify_consistency = check_consistency
inclusion_proof = prove_inclusion
consistency_proof = prove_consistency
