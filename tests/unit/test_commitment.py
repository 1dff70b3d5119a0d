"""Commitments: SHA-256 over tag, salt and bytes, and nothing else opens them."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.commitment import LABEL_TAG, PAYLOAD_TAG, SALT_BYTES, check_commitment, commit
from ledger.errors import BugError

SALTS = st.binary(min_size=32, max_size=32)


def test_tags_are_the_pages() -> None:
    """commitments.md 2, 5: the tags are ASCII and end in one zero byte."""
    assert PAYLOAD_TAG == b"forecast-ledger/payload/v1\x00"
    assert LABEL_TAG == b"forecast-ledger/label/v1\x00"
    assert SALT_BYTES == 32


@given(SALTS, st.binary())
def test_the_definition(salt: bytes, data: bytes) -> None:
    """commitments.md 1: commitment = SHA-256(tag || salt || bytes) in lower-case hexadecimal."""
    for tag in (PAYLOAD_TAG, LABEL_TAG):
        made = commit(tag, salt, data)
        assert made == hashlib.sha256(tag + salt + data).hexdigest()
        assert check_commitment(tag, salt, data, made)


@given(SALTS, st.binary(max_size=40), st.integers(0, 71))
def test_nothing_else_opens_it(salt: bytes, data: bytes, at: int) -> None:
    made = commit(PAYLOAD_TAG, salt, data)
    assert not check_commitment(LABEL_TAG, salt, data, made)
    assert not check_commitment(PAYLOAD_TAG, salt, data + b"\x00", made)
    assert not check_commitment(PAYLOAD_TAG, salt, data, made.upper() + " ")
    both = bytearray(salt + data)
    both[at % len(both)] ^= 1
    assert not check_commitment(PAYLOAD_TAG, bytes(both[:32]), bytes(both[32:]), made)


@given(SALTS, st.binary(min_size=1, max_size=40))
def test_a_salt_of_another_length_opens_nothing(salt: bytes, data: bytes) -> None:
    """Bytes cannot move between salt and data: the salt has one length."""
    made = commit(PAYLOAD_TAG, salt, data)
    longer = hashlib.sha256(PAYLOAD_TAG + salt + data).hexdigest()
    assert made == longer
    assert not check_commitment(PAYLOAD_TAG, salt + data[:1], data[1:], made)
    assert not check_commitment(PAYLOAD_TAG, salt[:-1], salt[-1:] + data, made)


@pytest.mark.parametrize(
    ("tag", "salt"),
    [(b"tag", bytes(32)), (b"", bytes(32)), (PAYLOAD_TAG, b""), (PAYLOAD_TAG, bytes(33))],
)
def test_a_wrong_tag_or_salt_is_a_bug(tag: bytes, salt: bytes) -> None:
    with pytest.raises(BugError):
        commit(tag, salt, b"x")
