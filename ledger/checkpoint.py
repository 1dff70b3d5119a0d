"""Checkpoints: a log's name, size and root in three lines, signed as a note.

C2SP tlog-checkpoint v1.0.0; normative for this project is docs/spec/checkpoint.md:

    example.com/behind-the-sofa
    20852163
    CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

    — example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe...

A checkpoint that is kept elsewhere is what makes a rewritten log detectable: every later tree has
to be consistent with it (`ledger.merkle.check_consistency`).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from dataclasses import dataclass

from ledger.errors import BadInputError
from ledger.merkle import EMPTY_ROOT, HASH_BYTES
from ledger.signed_note import (
    Note,
    SignerKey,
    VerifierKey,
    check_note,
    decode_base64,
    format_note,
    parse_note,
    sign_note,
)

MAX_SIZE = 2**63 - 1
"""Largest tree size; a signed 64-bit integer, as in Go's tlog and in SQLite."""

_SIZE = re.compile(r"0|[1-9][0-9]{0,18}")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a log at one size. Nothing is known of who says so before a note is checked.

    Args:
        origin: unique name of the log: one line, not empty.
        size: number of leaves, 0 to 2^63-1.
        root: 32 bytes, the RFC 9162 tree head at that size; of an empty log, EMPTY_ROOT.
        extensions: further lines of the note, read and kept, never written by this project.

    Raises:
        BadInputError: a part is not of that form.
    """

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if any(not line or "\n" in line for line in (self.origin, *self.extensions)):
            raise BadInputError("an origin or extension line is empty or holds a newline")
        if type(self.size) is not int or not 0 <= self.size <= MAX_SIZE:
            raise BadInputError(f"{self.size!r} is not a tree size from 0 to 2^63-1")
        if type(self.root) is not bytes or len(self.root) != HASH_BYTES:
            raise BadInputError(f"a root hash is not {HASH_BYTES} bytes")
        if self.size == 0 and self.root != EMPTY_ROOT:
            raise BadInputError("a checkpoint of an empty log does not have the empty tree's root")
        Note(_write(self))  # Valid Unicode without control characters, or it could not be signed.


def format_checkpoint(checkpoint: Checkpoint) -> str:
    """Write the note text: origin, size and root, each with its newline.

    Raises:
        BadInputError: the checkpoint has extension lines, which no reader can audit.
    """
    if checkpoint.extensions:
        raise BadInputError(
            "a checkpoint with extension lines is not written here",
            remedy="Keep the signed text as it was received.",
        )
    return _write(checkpoint)


def parse_checkpoint(text: str) -> Checkpoint:
    """Read the text of a note as a checkpoint; signatures are no part of it (`open_checkpoint`).

    Raises:
        BadInputError: not exactly the one form of a checkpoint; the message names the line.
    """
    if not text.endswith("\n"):
        raise BadInputError("a checkpoint does not end in a newline")
    lines = text.removesuffix("\n").split("\n")
    if len(lines) < 3:
        raise BadInputError("a checkpoint has fewer than three lines: origin, size, root hash")
    origin, size, root, *extensions = lines
    if not _SIZE.fullmatch(size):
        raise BadInputError(
            "the tree size is not a decimal number without leading zeros", where="checkpoint line 2"
        )
    checkpoint = Checkpoint(
        origin, int(size), decode_base64(root, where="checkpoint line 3"), tuple(extensions)
    )
    if _write(checkpoint) != text:
        raise BadInputError("a checkpoint is not written in its one form")
    return checkpoint


def sign_checkpoint(checkpoint: Checkpoint, signer: SignerKey) -> str:
    """Write the checkpoint as a note signed by the log's key.

    The caller answers for consistency with every checkpoint that was signed before.

    Raises:
        BadInputError: the key is not named after the origin, or the checkpoint has extensions.
    """
    if signer.name != checkpoint.origin:
        raise BadInputError(
            f"the key {signer.name!r} does not sign for the log {checkpoint.origin!r}",
            remedy="Name the key after the log's origin.",
        )
    return format_note(sign_note(Note(format_checkpoint(checkpoint)), signer))


def open_checkpoint(text: str | bytes, keys: Iterable[VerifierKey]) -> Checkpoint:
    """Read a signed checkpoint and believe it only under a known key of the log it names.

    Stricter than C2SP in one point: a verified signature has to carry the origin as its key name.
    Otherwise a caller who knows two logs could be given one log's tree under the other's name.

    Raises:
        BadInputError: not a checkpoint; a signature of a known key does not verify; or no known key
            of this origin signed it. To tell these apart, use `parse_note` and `check_note`.
    """
    note = parse_note(text)
    checkpoint = parse_checkpoint(note.text)
    check = check_note(note, keys)
    if check.invalid:
        bad = check.invalid[0]
        raise BadInputError(
            f"the signature of {bad.name}+{bad.key_id.hex()} does not verify",
            remedy="Do not believe this checkpoint.",
        )
    if not any(line.name == checkpoint.origin for line in check.verified):
        raise BadInputError(
            f"no known key of {checkpoint.origin!r} signed this checkpoint",
            remedy="Give the log's verifier key.",
        )
    return checkpoint


def _write(checkpoint: Checkpoint) -> str:
    root = base64.b64encode(checkpoint.root).decode("ascii")
    lines = (checkpoint.origin, str(checkpoint.size), root, *checkpoint.extensions)
    return "".join(f"{line}\n" for line in lines)
