"""The Merkle tree of RFC 9162 section 2.1, against the RFC's own recursive definitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ledger import merkle
from ledger.errors import BadInputError
from ledger.merkle import (
    EMPTY_ROOT,
    Frontier,
    check_consistency,
    check_inclusion,
    leaf_hash,
    merkle_tree_hash,
    node_hash,
    prove_consistency,
    prove_inclusion,
    root_from_inclusion_proof,
)

LEAVES = [leaf_hash(b"entry %d" % index) for index in range(64)]
OTHER = leaf_hash(b"not in the tree")
Hashes = list[bytes]
hash_lists = st.lists(st.binary(min_size=32, max_size=32), max_size=70)


def split(size: int) -> int:
    """RFC: let k be the largest power of two smaller than n."""
    return 1 << (size - 1).bit_length() - 1


def oracle_mth(leaves: Hashes) -> bytes:
    """RFC 9162 2.1.1: MTH(D_n) = HASH(0x01 || MTH(D[0:k]) || MTH(D[k:n]))."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = split(len(leaves))
    return sha256(b"\x01" + oracle_mth(leaves[:k]) + oracle_mth(leaves[k:])).digest()


def oracle_path(m: int, leaves: Hashes) -> Hashes:
    """RFC 9162 2.1.3.1: PATH(m, D_n) = PATH(m, D[0:k]) : MTH(D[k:n]) for m < k, and so on."""
    if len(leaves) == 1:
        return []
    k = split(len(leaves))
    if m < k:
        return [*oracle_path(m, leaves[:k]), oracle_mth(leaves[k:])]
    return [*oracle_path(m - k, leaves[k:]), oracle_mth(leaves[:k])]


def oracle_subproof(m: int, leaves: Hashes, *, whole: bool) -> Hashes:
    """RFC 9162 2.1.4.1: SUBPROOF(m, D_n, b)."""
    if m == len(leaves):
        return [] if whole else [oracle_mth(leaves)]
    k = split(len(leaves))
    if m <= k:
        return [*oracle_subproof(m, leaves[:k], whole=whole), oracle_mth(leaves[k:])]
    return [*oracle_subproof(m - k, leaves[k:], whole=False), oracle_mth(leaves[:k])]


def flips(proof: Sequence[bytes], salt: int) -> list[Hashes]:
    """Copies of the proof, each with one bit of one hash turned; which bit follows the salt."""
    out = []
    for position, item in enumerate(proof):
        bit = int.from_bytes(sha256(b"%d %d" % (salt, position)).digest()[:2], "big") % 256
        wrong = bytearray(item)
        wrong[bit // 8] ^= 1 << bit % 8
        out.append([*proof[:position], bytes(wrong), *proof[position + 1 :]])
    return out


def misshapen(proof: Sequence[bytes]) -> list[Hashes]:
    """Proofs that are too long, too short or hold something that is no hash."""
    longer = [[*proof, OTHER], [OTHER, *proof], [*proof, b""], [b"", *proof], [*proof, EMPTY_ROOT]]
    shorter = [list(proof[1:]), list(proof[:-1])] if proof else []
    cut = [[*proof[:-1], proof[-1][:-1]], [*proof[:-1], proof[-1] + b"\0"]] if proof else []
    return longer + shorter + cut


def test_the_empty_tree_has_the_hash_of_nothing() -> None:
    """RFC 9162 2.1.1: "The hash of an empty list is the hash of an empty string"."""
    expected = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert EMPTY_ROOT.hex() == expected
    assert merkle_tree_hash([]) == merkle_tree_hash(()) == Frontier().root() == EMPTY_ROOT


def test_leaves_and_nodes_hash_in_separate_domains() -> None:
    """RFC 9162 2.1.1: "0x00" before a leaf, "0x01" before a node: no second preimage."""
    assert leaf_hash(b"x") == sha256(b"\x00x").digest()
    assert node_hash(OTHER, LEAVES[0]) == sha256(b"\x01" + OTHER + LEAVES[0]).digest()
    assert leaf_hash(OTHER + LEAVES[0]) != node_hash(OTHER, LEAVES[0])


@given(hash_lists)
def test_root_and_frontier_agree_with_the_recursive_definition(leaves: Hashes) -> None:
    """The same tree three ways: the RFC's recursion, level by level, and leaf by leaf."""
    expected = oracle_mth(leaves)
    assert merkle_tree_hash(leaves) == expected
    assert merkle_tree_hash(tuple(leaves)) == expected
    grown = Frontier()
    for leaf in leaves:
        grown = grown.append(leaf)
    assert grown.root() == expected
    assert grown == Frontier().extend(leaves)


@pytest.mark.parametrize("size", range(1, 65))
def test_every_leaf_of_every_size_is_proved_and_every_flip_refused(size: int) -> None:
    leaves = LEAVES[:size]
    root = oracle_mth(leaves)
    for index, leaf in enumerate(leaves):
        proof = prove_inclusion(index, leaves)
        assert proof == oracle_path(index, leaves)
        assert check_inclusion(index, size, leaf, proof, root)
        assert root_from_inclusion_proof(index, size, leaf, proof) == root
        assert not check_inclusion(index, size, OTHER, proof, root)
        assert not check_inclusion(index, size, leaf, proof, OTHER)
        for wrong in flips(proof, size * 64 + index) + misshapen(proof):
            assert not check_inclusion(index, size, leaf, wrong, root)


@pytest.mark.parametrize("size", range(1, 33))
def test_an_inclusion_proof_fits_no_other_index(size: int) -> None:
    leaves = LEAVES[:size]
    root = oracle_mth(leaves)
    for index, leaf in enumerate(leaves):
        proof = prove_inclusion(index, leaves)
        accepted = [
            at for at in range(-2, size + 3) if check_inclusion(at, size, leaf, proof, root)
        ]
        assert accepted == [index]


@pytest.mark.parametrize("size2", range(1, 41))
def test_every_pair_of_sizes_is_consistent_and_every_flip_refused(size2: int) -> None:
    leaves = LEAVES[:size2]
    root2 = oracle_mth(leaves)
    for size1 in range(1, size2 + 1):
        root1 = oracle_mth(leaves[:size1])
        proof = prove_consistency(size1, leaves)
        assert proof == oracle_subproof(size1, leaves, whole=True)
        assert check_consistency(size1, size2, proof, root1, root2)
        assert not check_consistency(size1, size2, proof, OTHER, root2)
        assert not check_consistency(size1, size2, proof, root1, OTHER)
        for wrong in flips(proof, size1 * 64 + size2) + misshapen(proof):
            assert not check_consistency(size1, size2, wrong, root1, root2)


@pytest.mark.parametrize("size2", range(2, 25))
def test_a_consistency_proof_fits_no_other_pair_of_roots(size2: int) -> None:
    leaves = LEAVES[:size2]
    roots = [oracle_mth(leaves[:size]) for size in range(size2 + 1)]
    for size1 in range(1, size2):
        proof = prove_consistency(size1, leaves)
        for claimed in range(-1, size2):
            right = claimed == size1
            assert check_consistency(claimed, size2, proof, roots[claimed], roots[size2]) == right


def test_a_proof_too_long_is_refused_even_where_it_leads_to_the_root() -> None:
    """A forger picks the root to fit: only the length gives the surplus hash away."""
    for size in range(1, 33):
        leaves = LEAVES[:size]
        root = node_hash(OTHER, oracle_mth(leaves))
        for index, leaf in enumerate(leaves):
            longer = [*oracle_path(index, leaves), OTHER]
            assert not check_inclusion(index, size, leaf, longer, root)
        for size1 in range(1, size):
            root1 = node_hash(OTHER, oracle_mth(leaves[:size1]))
            longer = [*oracle_subproof(size1, leaves, whole=True), OTHER]
            if size1 & (size1 - 1):
                assert not check_consistency(size1, size, longer, root1, root)


def test_a_proof_from_a_tree_of_another_height_is_refused_under_its_own_root() -> None:
    """A proof that ends early must not pass for a taller tree, whatever root is claimed."""
    for size in range(1, 18):
        leaves = LEAVES[:size]
        root = oracle_mth(leaves)
        for claimed in range(1, 35):
            taller = LEAVES[:claimed]
            for index in range(min(size, claimed)):
                proof = oracle_path(index, leaves)
                if len(proof) != len(oracle_path(index, taller)):
                    assert not check_inclusion(index, claimed, LEAVES[index], proof, root)


def test_a_consistency_proof_from_another_height_is_refused_under_its_own_roots() -> None:
    for size in range(2, 17):
        for size1 in range(1, size):
            proof = oracle_subproof(size1, LEAVES[:size], whole=True)
            roots = oracle_mth(LEAVES[:size1]), oracle_mth(LEAVES[:size])
            for claimed in range(size1 + 1, 33):
                expected = oracle_subproof(size1, LEAVES[:claimed], whole=True)
                if len(proof) != len(expected):
                    assert not check_consistency(size1, claimed, proof, *roots)


def test_a_rewritten_history_has_no_consistency_proof() -> None:
    """The one thing a held checkpoint is for: changing any old leaf is found."""
    root1 = merkle_tree_hash(LEAVES[:11])
    for changed in range(11):
        forged = [*LEAVES[:changed], OTHER, *LEAVES[changed + 1 : 20]]
        proof = prove_consistency(11, forged)
        assert not check_consistency(11, 20, proof, root1, merkle_tree_hash(forged))


def test_equal_sizes_need_an_empty_proof_and_equal_roots() -> None:
    root = merkle_tree_hash(LEAVES[:5])
    assert check_consistency(5, 5, [], root, root)
    assert not check_consistency(5, 5, [], root, OTHER)
    assert not check_consistency(5, 5, [root], root, root)
    assert prove_consistency(5, LEAVES[:5]) == []
    assert check_consistency(0, 0, [], EMPTY_ROOT, EMPTY_ROOT)
    assert check_consistency(1, 1, [], b"any bytes, as upstream", b"any bytes, as upstream")
    assert not check_consistency(1, 1, [], None, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("proof", [[], [OTHER], [EMPTY_ROOT]])
def test_nothing_is_consistent_with_the_empty_tree(proof: Hashes) -> None:
    """As upstream: "consistency proof from empty tree is meaningless"."""
    for size2 in range(1, 9):
        root2 = merkle_tree_hash(LEAVES[:size2])
        assert not check_consistency(0, size2, proof, EMPTY_ROOT, root2)


@pytest.mark.parametrize(("size1", "size2"), [(3, 2), (-1, 2), (-1, -1), (1, -1), (0, -1)])
def test_impossible_sizes_are_false(size1: int, size2: int) -> None:
    assert not check_consistency(size1, size2, [], OTHER, OTHER)
    assert not check_consistency(size1, size2, [OTHER], OTHER, OTHER)


@pytest.mark.parametrize(("index", "size"), [(0, 0), (-1, 1), (1, 1), (5, 3), (0, -1), (-2, -1)])
def test_an_index_outside_the_tree_is_false(index: int, size: int) -> None:
    """RFC 9162 2.1.3.2: an index "greater than or equal to tree_size" fails."""
    assert not check_inclusion(index, size, OTHER, [], OTHER)


@pytest.mark.parametrize("wrong", [b"", LEAVES[0][:31], LEAVES[0] + b"\0", "a" * 32, None, 7])
def test_what_is_not_32_bytes_is_false_everywhere(wrong: bytes) -> None:
    root = merkle_tree_hash(LEAVES[:2])
    assert not check_inclusion(0, 2, wrong, [LEAVES[1]], root)
    assert not check_inclusion(0, 2, LEAVES[0], [wrong], root)
    assert not check_inclusion(0, 2, LEAVES[0], [LEAVES[1]], wrong)
    assert not check_inclusion(0, 1, wrong, [], wrong)
    assert not check_consistency(1, 2, [wrong], LEAVES[0], root)
    assert not check_consistency(1, 2, [LEAVES[1]], wrong, root)
    assert not check_consistency(1, 2, [LEAVES[1]], LEAVES[0], wrong)
    with pytest.raises(BadInputError, match="has this shape"):
        root_from_inclusion_proof(0, 2, LEAVES[0], [wrong])


@pytest.mark.parametrize("number", [True, False, 1.0, "one", None, b"1"])
def test_a_number_that_is_no_int_is_the_callers_mistake(number: int) -> None:
    calls: list[Callable[[], object]] = [
        lambda: check_inclusion(number, 2, OTHER, [], OTHER),
        lambda: check_inclusion(0, number, OTHER, [], OTHER),
        lambda: root_from_inclusion_proof(0, number, OTHER, []),
        lambda: check_consistency(number, 2, [], OTHER, OTHER),
        lambda: check_consistency(1, number, [], OTHER, OTHER),
        lambda: prove_inclusion(number, LEAVES),
        lambda: prove_consistency(number, LEAVES),
        lambda: Frontier(number, (OTHER,)),
    ]
    for call in calls:
        with pytest.raises(BadInputError, match="not int"):
            call()


@pytest.mark.parametrize("proof", [None, 3, {1: OTHER}, {OTHER}])
def test_a_proof_that_is_no_sequence_is_the_callers_mistake(proof: Hashes) -> None:
    with pytest.raises(BadInputError, match="a list of hashes"):
        check_inclusion(0, 2, OTHER, proof, OTHER)
    with pytest.raises(BadInputError, match="a list of hashes"):
        check_consistency(1, 2, proof, OTHER, OTHER)


def test_a_proof_given_as_one_byte_string_is_false() -> None:
    root = merkle_tree_hash(LEAVES[:2])
    assert not check_inclusion(0, 2, LEAVES[0], LEAVES[1], root)  # type: ignore[arg-type]


def test_an_endless_proof_for_a_vast_tree_ends() -> None:
    assert not check_inclusion(2**200, 2**201, OTHER, [OTHER] * 5000, OTHER)
    assert not check_consistency(2**200, 2**201, [OTHER] * 5000, OTHER, OTHER)


@pytest.mark.parametrize("index", [-1, 5, 64])
def test_no_proof_is_made_for_a_leaf_outside(index: int) -> None:
    with pytest.raises(BadInputError, match="has no leaf"):
        prove_inclusion(index, LEAVES[:5])
    with pytest.raises(BadInputError, match="has no leaf"):
        prove_inclusion(0, [])


@pytest.mark.parametrize("size1", [-1, 0, 6])
def test_no_proof_is_made_from_an_impossible_size(size1: int) -> None:
    with pytest.raises(BadInputError, match="no consistency proof leads"):
        prove_consistency(size1, LEAVES[:5])


@pytest.mark.parametrize("wrong", [b"entry", b"", "a" * 32, bytearray(32)])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_an_entry_in_place_of_its_hash_is_refused(wrong: bytes, size: int) -> None:
    """Two leaves of odd lengths could otherwise be cut elsewhere and give one root."""
    leaves = [*LEAVES[: size - 1], wrong]
    calls: list[Callable[[], object]] = [
        lambda: merkle_tree_hash(leaves),
        lambda: Frontier().extend(leaves),
        lambda: Frontier().append(wrong),
    ]
    if size > 1:
        calls += [lambda: prove_inclusion(0, leaves), lambda: prove_consistency(1, leaves)]
    for call in calls:
        with pytest.raises(BadInputError, match="32 bytes"):
            call()


@given(hash_lists, hash_lists)
@example([], [])
def test_a_frontier_travels_and_goes_on(before: Hashes, after: Hashes) -> None:
    """Saved and read back at any size, it grows into the same tree."""
    here = Frontier().extend(before)
    assert len(here.to_hashes()) == here.size.bit_count()
    back = Frontier.from_hashes(here.size, here.to_hashes())
    assert back == here
    assert back.extend(after).root() == oracle_mth(before + after)
    assert here.size == len(before)
    assert here.root() == oracle_mth(before), "appending leaves the old frontier as it was"


@pytest.mark.parametrize(
    ("size", "hashes"),
    [(0, [OTHER]), (1, []), (3, [OTHER]), (2, [OTHER, OTHER]), (-1, [OTHER]), (1, [b"short"])],
)
def test_a_frontier_that_does_not_fit_its_size_is_refused(size: int, hashes: Hashes) -> None:
    with pytest.raises(BadInputError, match="frontier"):
        Frontier.from_hashes(size, hashes)


def test_the_rfcs_verbs_name_the_same_functions() -> None:
    assert merkle.verify_inclusion is check_inclusion
    assert merkle.verify_consistency is check_consistency
    assert merkle.inclusion_proof is prove_inclusion
    assert merkle.consistency_proof is prove_consistency
