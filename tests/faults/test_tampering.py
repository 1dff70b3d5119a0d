"""Attacks on a ledger file by somebody with write access, each named; and what cannot be seen."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from builders import LOG_ID, ORIGIN, VKEY, Book
from evaluations import closed, honest_book, ready
from ledger.checkpoint import Checkpoint, sign_checkpoint
from ledger.ids import format_uuid7
from ledger.signed_note import SignerKey, format_verifier_key
from ledger.verify.check import verify_file
from ledger.verify.report import Verification
from ledger.verify.rules import INTEGRITY_RULES
from rows import Rows, Stored, breaches, forge

SPEC = Path(__file__).resolve().parents[2] / "docs/spec/verification.md"
STRANGER = SignerKey(ORIGIN, b"\x07" * 32)


def evaluation() -> Rows:
    """Opened, sealed, planned, predicted, closed, unsealed: seven events and an opened label."""
    book = closed()
    book.unseal("a")
    return Rows.of(book)


def held(rows: Rows, size: int | None = None, signer: SignerKey | None = None) -> str:
    """A checkpoint of the rows, as somebody else kept it."""
    from ledger.merkle import merkle_tree_hash  # noqa: PLC0415

    leaves = [s.leaf for s in rows.stored][:size]
    key = signer or SignerKey(ORIGIN, sha256(b"the operator of the tests").digest())
    return sign_checkpoint(Checkpoint(key.name, len(leaves), merkle_tree_hash(leaves)), key)
