"""Signed notes and checkpoints, read strictly (docs/spec/checkpoint.md).

Ed25519 comes from the `cryptography` package where it can be imported. Without it a signature is
*unchecked*, which is never the same as good.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import NamedTuple

from ledger.verify.tree import EMPTY_ROOT

ED25519 = 1
COSIGNATURE = 4
MAX_NOTE_BYTES = 1 << 20
MAX_SIGNATURES = 100
MAX_SIZE = 2**63 - 1

_SIZE = re.compile(r"0|[1-9][0-9]{0,18}")
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f]")
_KEY_ID = re.compile(r"[0-9a-f]{8}")
_PRIME = 2**255 - 19
_ORDER_8 = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
_SMALL_ORDER = frozenset((0, 1, _PRIME - 1, _ORDER_8, _PRIME - _ORDER_8))

CheckEd25519 = Callable[[bytes, bytes, bytes], bool]
"""Says whether (public key, message, signature) fit together."""


class NoteError(ValueError):
    """Not a checkpoint, note or key in its one form; the message says why, and quotes no key."""


class Key(NamedTuple):
    """A verifier key: `name+id+keydata`."""

    name: str
    key_id: bytes
    algorithm: int
    public_key: bytes


class Signature(NamedTuple):
    """One signature line of a note."""

    name: str
    key_id: bytes
    signature: bytes


class Checkpoint(NamedTuple):
    """The text of a checkpoint and its signatures, none of them checked."""

    origin: str
    size: int
    root: bytes
    text: str
    signatures: tuple[Signature, ...]


class SignatureCheck(NamedTuple):
    """How the signatures of a checkpoint fared.

    Attributes:
        good: whether a known key of the origin signed it.
        bad: names of known keys that did not sign what their line says.
        unchecked: why nothing is known, empty where `good`.
    """

    good: bool
    bad: tuple[str, ...]
    unchecked: str


def parse_checkpoint(text: str) -> Checkpoint:
    """Read a signed checkpoint, or the bare three lines of one that nobody signed.

    Raises:
        NoteError: not in its one form.
    """
    _require_clean(text)
    body, blank, block = text.rpartition("\n\n")
    if blank:
        return _parse_text(f"{body}\n", _parse_signatures(block))
    return _parse_text(text, ())


def parse_key(text: str) -> Key:
    """Read a verifier key.

    Raises:
        NoteError: another form, an id that is not the key's, an unknown type, a weak key. The text
            is not repeated: it may be a private key given by mistake.
    """
    if text.startswith("PRIVATE+KEY+"):
        raise NoteError("a private key stands where a verifier key belongs; keep it secret")
    parts = text.split("+", 2)
    if len(parts) != 3 or not _KEY_ID.fullmatch(parts[1]) or not _is_name(parts[0]):
        raise NoteError("not a verifier key of the form name+id+keydata")
    data = _decode_base64(parts[2], "keydata of a verifier key")
    if len(data) != 33 or data[0] not in (ED25519, COSIGNATURE):
        raise NoteError("a verifier key of an unknown type")
    y = int.from_bytes(data[1:], "little") & ((1 << 255) - 1)
    if y >= _PRIME or y in _SMALL_ORDER:
        raise NoteError("an Ed25519 key of small order")
    key_id = sha256(parts[0].encode() + b"\n" + data).digest()[:4]
    if key_id.hex() != parts[1]:
        raise NoteError("the id of a verifier key is not that of its name and key")
    return Key(parts[0], key_id, data[0], data[1:])


def check_signatures(
    checkpoint: Checkpoint, keys: Iterable[Key], check_ed25519: CheckEd25519 | None
) -> SignatureCheck:
    """Check every signature whose name and id are those of a known key.

    Args:
        checkpoint: what was signed.
        keys: the keys that the reader knows.
        check_ed25519: None where no library is at hand.
    """
    known = {(key.name, key.key_id): key for key in keys if key.algorithm == ED25519}
    good, bad, waiting = False, [], False
    for line in checkpoint.signatures:
        key = known.get((line.name, line.key_id))
        if key is None:
            continue
        if check_ed25519 is None:
            waiting = True
        elif not check_ed25519(key.public_key, checkpoint.text.encode(), line.signature):
            bad.append(f"{line.name}+{line.key_id.hex()}")
        else:
            good = good or line.name == checkpoint.origin
    if good:
        return SignatureCheck(good=True, bad=tuple(bad), unchecked="")
    if not checkpoint.signatures:
        why = "it has no signature"
    elif waiting:
        why = "the package `cryptography` is not installed, so Ed25519 cannot be checked"
    else:
        why = "no known key of its origin signed it"
    return SignatureCheck(good=False, bad=tuple(bad), unchecked=why)


def load_ed25519() -> CheckEd25519 | None:
    """Return a function that checks Ed25519 signatures, None where there is no library for it."""
    try:
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - optional
        from cryptography.hazmat.primitives.asymmetric.ed25519 import (  # noqa: PLC0415
            Ed25519PublicKey,
        )
    except ImportError:
        return None

    def check(public_key: bytes, message: bytes, signature: bytes) -> bool:
        try:
            Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True

    return check


def _parse_text(text: str, signatures: tuple[Signature, ...]) -> Checkpoint:
    if not text.endswith("\n"):
        raise NoteError("a checkpoint does not end in a newline")
    lines = text.removesuffix("\n").split("\n")
    if len(lines) < 3 or not all(lines):
        raise NoteError("a checkpoint is three lines: origin, size, root hash")
    origin, size, root_text = lines[:3]
    if not _SIZE.fullmatch(size) or int(size) > MAX_SIZE:
        raise NoteError("the size of a checkpoint is not a number without leading zeros")
    root = _decode_base64(root_text, "root hash of a checkpoint")
    if len(root) != 32:
        raise NoteError("the root hash of a checkpoint is not 32 bytes")
    if size == "0" and root != EMPTY_ROOT:
        raise NoteError("a checkpoint of size 0 does not have the empty tree's root")
    return Checkpoint(origin, int(size), root, text, signatures)


def _parse_signatures(block: str) -> tuple[Signature, ...]:
    if not block.endswith("\n"):
        raise NoteError("a signed checkpoint does not end in a signature line and a newline")
    lines = block.removesuffix("\n").split("\n")
    if len(lines) > MAX_SIGNATURES:
        raise NoteError(f"a checkpoint has more than {MAX_SIGNATURES} signatures")
    return tuple(_parse_signature(line) for line in lines)


def _parse_signature(line: str) -> Signature:
    parts = line.split(" ")
    if len(parts) != 3 or parts[0] != "\u2014" or not _is_name(parts[1]):
        raise NoteError("a signature line is not: em dash, name, base64")
    data = _decode_base64(parts[2], "signature")
    if len(data) < 5:
        raise NoteError("a signature line is too short")
    return Signature(parts[1], data[:4], data[4:])


def _require_clean(text: str) -> None:
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise NoteError("a checkpoint holds a lone surrogate") from error
    if size > MAX_NOTE_BYTES:
        raise NoteError(f"a checkpoint is longer than {MAX_NOTE_BYTES:,} bytes")
    if found := _CONTROL.search(text):
        raise NoteError(f"a checkpoint holds the control character {found[0]!r}")


def _is_name(name: str) -> bool:
    return bool(name) and not any(c.isspace() or c == "+" or c < " " for c in name)


def _decode_base64(text: str, what: str) -> bytes:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    # Python's decoder drops padding bits that are not zero: two texts, one value.
    if base64.b64encode(data).decode("ascii") != text:
        raise NoteError(f"the {what} is not base64 in its one form")
    return data
