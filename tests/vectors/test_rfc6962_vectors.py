"""RFC 6962 roots and inclusion proofs published by transparency-dev/merkle."""

from __future__ import annotations

import base64
import json

from shared_data import shared_file

from ledger.merkle import (
    EMPTY_ROOT,
    Frontier,
    check_consistency,
    check_inclusion,
    leaf_hash,
    merkle_tree_hash,
    prove_consistency,
)

ROOTS = "data/vectors/rfc6962-roots/roots.json"
INCLUSION = "data/vectors/transparency-dev-merkle/testdata/inclusion"


def test_roots_of_sizes_0_to_8() -> None:
    vectors = json.loads(shared_file(ROOTS).read_text())
    leaves = [leaf_hash(bytes.fromhex(entry)) for entry in vectors["leaf_inputs_hex"]]
    roots = vectors["roots_by_size_1_to_8"]
    assert EMPTY_ROOT.hex() == vectors["empty_root"]
    assert [merkle_tree_hash(leaves[:size]).hex() for size in range(1, 9)] == roots
    assert [Frontier().extend(leaves[:size]).root().hex() for size in range(1, 9)] == roots


def test_the_published_roots_are_consistent_with_each_other() -> None:
    vectors = json.loads(shared_file(ROOTS).read_text())
    leaves = [leaf_hash(bytes.fromhex(entry)) for entry in vectors["leaf_inputs_hex"]]
    roots = [bytes.fromhex(root) for root in vectors["roots_by_size_1_to_8"]]
    for size2 in range(1, 9):
        for size1 in range(1, size2 + 1):
            proof = prove_consistency(size1, leaves[:size2])
            assert check_consistency(size1, size2, proof, roots[size1 - 1], roots[size2 - 1])


def test_every_inclusion_vector() -> None:
    """Each file states one proof and whether a verifier has to refuse it (`wantErr`)."""
    files = sorted(shared_file(INCLUSION).rglob("*.json"))
    wrong = []
    accepted = 0
    for path in files:
        case = json.loads(path.read_text())
        held = check_inclusion(
            case["leafIdx"],
            case["treeSize"],
            base64.b64decode(case["leafHash"] or ""),
            [base64.b64decode(item) for item in case["proof"] or []],
            base64.b64decode(case["root"] or ""),
        )
        accepted += held
        if held == case["wantErr"]:
            wrong.append(f"{path.parent.name}/{path.name}: {case['desc']}")
    assert wrong == []
    assert len(files) >= 80
    assert 0 < accepted < len(files)
