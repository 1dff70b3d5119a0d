"""Signed notes and keys published by C2SP and by Go's sumdb/note."""

from __future__ import annotations

import json
from typing import Any

import pytest
from shared_data import shared_file

from ledger.checkpoint import format_checkpoint, open_checkpoint, parse_checkpoint
from ledger.errors import BadInputError
from ledger.signed_note import (
    check_note,
    format_note,
    format_signer_key,
    format_verifier_key,
    parse_note,
    parse_signer_key,
    parse_verifier_key,
    sign_note,
)

FOLDER = "data/vectors/c2sp-signed-note"

GO_SIGNER = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
"""The test key that the package documentation of Go's sumdb/note publishes."""


def vectors() -> Any:
    return json.loads(shared_file(f"{FOLDER}/notes.json").read_text(encoding="utf-8"))


def test_the_note_of_the_specification_verifies() -> None:
    case = vectors()["c2sp"]
    key = parse_verifier_key(case["vkey"])
    note = parse_note(case["note"])
    assert format_verifier_key(key) == case["vkey"]
    assert format_note(note) == case["note"]
    assert check_note(note, [key]).accepted


def test_the_notes_of_go_verify_by_either_key_and_both() -> None:
    case = vectors()["golang"]
    peter, enoch = parse_verifier_key(case["peter_vkey"]), parse_verifier_key(case["enoch_vkey"])
    note = parse_note(f"{case['text']}\n{case['peter_sig']}{case['enoch_sig']}")
    by_peter, by_enoch = note.signatures
    one = check_note(note, [peter])
    assert (one.verified, one.unverified, one.invalid) == ((by_peter,), (by_enoch,), ())
    both = check_note(note, [enoch, peter])
    assert (both.verified, both.unverified, both.invalid) == ((by_peter, by_enoch), (), ())
    assert not check_note(note, []).accepted


def test_our_signature_is_the_one_that_go_writes() -> None:
    """Ed25519 is deterministic: the same key and text give the same line."""
    case = vectors()["golang"]
    signer = parse_signer_key(GO_SIGNER)
    assert format_signer_key(signer) == GO_SIGNER
    assert format_verifier_key(signer.verifier_key) == case["peter_vkey"]
    note = parse_note(f"{case['text']}\n{case['enoch_sig']}")
    signed = format_note(sign_note(note, signer))
    assert signed == f"{case['text']}\n{case['enoch_sig']}{case['peter_sig']}"


@pytest.mark.parametrize(
    "text",
    [
        "PeterNeumann+cc469956+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWBADKEY==",
        "PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
    ],
    ids=["wrong-length", "unknown-algorithm"],
)
def test_the_bad_keys_of_go_are_refused(text: str) -> None:
    with pytest.raises(BadInputError):
        parse_verifier_key(text)


def test_the_cosigned_checkpoint_of_the_specification_is_read_back_exactly() -> None:
    """The published example gives no keys: it is read, and believed by nobody."""
    text = shared_file(f"{FOLDER}/checkpoint-cosigned.example.txt").read_text(encoding="utf-8")
    note = parse_note(text)
    checkpoint = parse_checkpoint(note.text)
    assert checkpoint.origin == "example.com/behind-the-sofa"
    assert checkpoint.size == 20852163
    assert format_checkpoint(checkpoint) == note.text
    assert format_note(note) == text
    assert [line.name for line in note.signatures] == [
        "example.com/behind-the-sofa",
        "witness.example.com/w1",
    ]
    assert [len(line.signature) for line in note.signatures] == [64, 8 + 64]
    with pytest.raises(BadInputError, match="no known key"):
        open_checkpoint(text, [parse_verifier_key(vectors()["c2sp"]["vkey"])])


def test_the_elided_proof_example_is_refused() -> None:
    text = shared_file(f"{FOLDER}/tlog-proof.example.txt").read_text(encoding="utf-8")
    with pytest.raises(BadInputError, match="base64"):
        parse_note(text)
