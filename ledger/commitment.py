"""Salted commitments: one mechanism for redaction, sealed labels and large raw answers.

commitment = SHA-256(tag || salt || bytes), tag ending in a zero byte, salt of 32 bytes. Whoever
lacks the salt learns nothing from the commitment, not even of a one-bit label
(docs/spec/commitments.md).
"""

from __future__ import annotations

import hashlib

from ledger.errors import BugError

PAYLOAD_TAG = b"forecast-ledger/payload/v1\x00"
LABEL_TAG = b"forecast-ledger/label/v1\x00"
SALT_BYTES = 32


def commit(tag: bytes, salt: bytes, data: bytes) -> str:
    """Return the commitment as 64 lower-case hexadecimal digits.

    Raises:
        BugError: a salt of another length than 32 bytes, or a tag without its zero byte.
    """
    if len(salt) != SALT_BYTES or not tag.endswith(b"\x00"):
        raise BugError(f"a commitment needs a tag ending in zero and a salt of {SALT_BYTES} bytes")
    return hashlib.sha256(tag + salt + data).hexdigest()


def check_commitment(tag: bytes, salt: bytes, data: bytes, commitment: str) -> bool:
    """Say whether salt and bytes open the commitment; a salt of another length never does."""
    return len(salt) == SALT_BYTES and commit(tag, salt, data) == commitment
