"""Signed notes: text with Ed25519 signatures, as C2SP signed-note v1.0.0 has it.

A note is text that ends in a newline, then a blank line, then one line for each signature:

    This is an example message.

    — example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZ...

After the em dash and a space stand the key's name, one space, and the base64 of a 4-byte key id and
the signature over the text (its last newline included, the blank line not). The same key is written
`name+hash+keydata` for those who check and `PRIVATE+KEY+name+hash+keydata` for the one who signs,
as Go's sumdb/note does; the hash is the key id in hexadecimal.

Every parser here re-encodes what it read and refuses text that does not come out the same. The text
of a note means nothing until `check_note` accepts it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from hashlib import sha256

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ledger.errors import BadInputError

ED25519 = 0x01
"""Signature type of a plain Ed25519 signature over the note text."""

COSIGNATURE = 0x04
"""Signature type of a timestamped witness cosignature: keys of it are read, not yet used."""

MAX_NOTE_BYTES = 1 << 20
MAX_SIGNATURES = 100
"""As Go's sumdb/note; the specification demands at least 16."""

_KEY_BYTES = 32
_ID_BYTES = 4
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f]")
_HEX_ID = re.compile(r"[0-9a-f]{8}")
_SIGNER_PREFIX = "PRIVATE+KEY+"

_FIELD_PRIME = 2**255 - 19
_ORDER_8_Y = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
_SMALL_ORDER_Y = frozenset((0, 1, _FIELD_PRIME - 1, _ORDER_8_Y, _FIELD_PRIME - _ORDER_8_Y))
"""The y coordinates of the eight points of small order (RFC 8032 section 5.1)."""


@dataclass(frozen=True, slots=True)
class NoteSignature:
    """One signature line.

    Args:
        name: the key's name: not empty, no Unicode space, no plus, no control character.
        key_id: 4 bytes.
        signature: at least 1 byte; 64 for Ed25519.

    Raises:
        BadInputError: a part is not of that form.
    """

    name: str
    key_id: bytes
    signature: bytes

    def __post_init__(self) -> None:
        _require_name(self.name)
        if len(self.key_id) != _ID_BYTES or not self.signature:
            raise BadInputError("a note signature is not a 4-byte key id and a signature")


@dataclass(frozen=True, slots=True)
class Note:
    """A text and the signatures under it, none of them checked.

    Args:
        text: valid Unicode that ends in a newline, without other control characters below 0x20.
        signatures: at most 100.

    Raises:
        BadInputError: the text or the number of signatures is not allowed.
    """

    text: str
    signatures: tuple[NoteSignature, ...] = ()

    def __post_init__(self) -> None:
        if not self.text.endswith("\n"):
            raise BadInputError("a note's text does not end in a newline")
        _require_clean(self.text)
        if len(self.signatures) > MAX_SIGNATURES:
            raise BadInputError(f"a note has more than {MAX_SIGNATURES} signatures")


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """A public key under a name: what an auditor is given beforehand and trusts.

    Args:
        name: as in a signature line; by convention the log's origin.
        public_key: 32 bytes (RFC 8032), not a point of small order: such a key would accept one
            signature under every text, and its holder could deny any of them.
        algorithm: ED25519, or COSIGNATURE, whose signatures stay unverified for now.

    Raises:
        BadInputError: a part is not of that form.
    """

    name: str
    public_key: bytes
    algorithm: int = ED25519

    def __post_init__(self) -> None:
        _require_name(self.name)
        if self.algorithm not in (ED25519, COSIGNATURE):
            raise BadInputError(f"signature type {self.algorithm!r} is not known here")
        if type(self.public_key) is not bytes or len(self.public_key) != _KEY_BYTES:
            raise BadInputError(f"an Ed25519 public key is not {_KEY_BYTES} bytes")
        y = int.from_bytes(self.public_key, "little") & (1 << 255) - 1
        if y >= _FIELD_PRIME or y in _SMALL_ORDER_Y:
            raise BadInputError("an Ed25519 public key of small order signs nothing")

    @property
    def key_id(self) -> bytes:
        """The 4 bytes that stand before this key's signatures."""
        return key_id(self.name, self.algorithm, self.public_key)

    def check_signature(self, message: bytes, signature: bytes) -> bool:
        """Say whether this is the key's Ed25519 signature of the message (RFC 8032 5.1.7)."""
        try:
            Ed25519PublicKey.from_public_bytes(self.public_key).verify(signature, message)
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True, slots=True)
class SignerKey:
    """A private Ed25519 key under a name. The seed stands in no repr and in no error.

    Args:
        name: as in a signature line; by convention the log's origin.
        seed: the 32-byte secret of RFC 8032, from the entropy port.

    Raises:
        BadInputError: a part is not of that form.
    """

    name: str
    seed: bytes = field(repr=False)

    def __post_init__(self) -> None:
        _require_name(self.name)
        if type(self.seed) is not bytes or len(self.seed) != _KEY_BYTES:
            raise BadInputError(f"an Ed25519 seed is not {_KEY_BYTES} bytes")

    @property
    def verifier_key(self) -> VerifierKey:
        """The public half, to publish before the first signature."""
        private = Ed25519PrivateKey.from_private_bytes(self.seed)
        return VerifierKey(self.name, private.public_key().public_bytes_raw())

    def sign(self, message: bytes) -> bytes:
        """Sign these bytes: 64 bytes, the same for the same message (RFC 8032 5.1.6)."""
        return Ed25519PrivateKey.from_private_bytes(self.seed).sign(message)


@dataclass(frozen=True, slots=True)
class NoteCheck:
    """What is known of each signature of a note, in the note's order.

    Args:
        verified: made by a known key.
        unverified: by a key that is not known, or of a type that is not checked: it says nothing.
        invalid: names a known key, and that key did not make it.
    """

    verified: tuple[NoteSignature, ...]
    unverified: tuple[NoteSignature, ...]
    invalid: tuple[NoteSignature, ...]

    @property
    def accepted(self) -> bool:
        """Whether the text may be believed: a known key signed it, and none is misused."""
        return bool(self.verified) and not self.invalid


def key_id(name: str, algorithm: int, key_bytes: bytes) -> bytes:
    r"""First 4 bytes of SHA-256(name || "\n" || signature type || public key).

    An identifier, not a strong hash: another key with the same id is easily made, and fails to
    verify.

    Raises:
        BadInputError: the name is not a key name, or the type does not fit in a byte.
    """
    _require_name(name)
    if not 0 <= algorithm <= 0xFF:
        raise BadInputError(f"signature type {algorithm} does not fit in a byte")
    return sha256(name.encode() + b"\n" + bytes([algorithm]) + key_bytes).digest()[:_ID_BYTES]


def format_note(note: Note) -> str:
    """Write a note with its signatures.

    Raises:
        BadInputError: there is no signature, or the whole is larger than 1 MiB.
    """
    if not note.signatures:
        raise BadInputError("a note without a signature has no signed form", remedy="Sign it.")
    lines = [
        f"— {line.name} {_encode_base64(line.key_id + line.signature)}\n"
        for line in note.signatures
    ]
    signed = f"{note.text}\n{''.join(lines)}"
    if len(signed.encode()) > MAX_NOTE_BYTES:
        raise BadInputError(f"a signed note is larger than {MAX_NOTE_BYTES} bytes")
    return signed


def parse_note(signed: str | bytes) -> Note:
    """Read a signed note; its signatures are not checked (`check_note` does).

    Raises:
        BadInputError: not exactly a note that `format_note` writes; the message says at which line.
    """
    if len(signed) > MAX_NOTE_BYTES:
        raise BadInputError(f"a signed note is larger than {MAX_NOTE_BYTES} bytes")
    plain = _decode_utf8(signed) if isinstance(signed, bytes) else signed
    _require_clean(plain)
    text, blank, block = plain.rpartition("\n\n")
    if not blank:
        raise BadInputError("a signed note has no blank line before its signatures")
    if not block.endswith("\n"):
        raise BadInputError("a signed note does not end with a signature line and a newline")
    lines = block.removesuffix("\n").split("\n")
    if len(lines) > MAX_SIGNATURES:
        raise BadInputError(f"a note has more than {MAX_SIGNATURES} signatures")
    first = text.count("\n") + 3
    note = Note(
        f"{text}\n",
        tuple(_parse_line(line, f"line {at}") for at, line in enumerate(lines, first)),
    )
    if format_note(note) != plain:
        raise BadInputError("a signed note is not written in its one form")
    return note


def format_verifier_key(key: VerifierKey) -> str:
    """Write a public key as `name+hash+keydata`."""
    data = _encode_base64(bytes([key.algorithm]) + key.public_key)
    return f"{key.name}+{key.key_id.hex()}+{data}"


def parse_verifier_key(text: str) -> VerifierKey:
    """Read `name+hash+keydata`.

    Raises:
        BadInputError: another form, a hash that is not the key's, an unknown signature type. The
            message never repeats the text, which may be a private key given by mistake.
    """
    if text.startswith(_SIGNER_PREFIX):
        raise BadInputError(
            "a private signer key stands where a verifier key belongs",
            remedy="Keep it secret; give the key that is written name+hash+keydata.",
        )
    parts = text.split("+", 2)
    if len(parts) != 3 or not _HEX_ID.fullmatch(parts[1]):
        raise BadInputError("not a verifier key of the form name+hash+keydata")
    data = decode_base64(parts[2], where="keydata of a verifier key")
    key = VerifierKey(parts[0], data[1:], data[0] if data else 0)
    if format_verifier_key(key) != text:
        raise BadInputError("the hash of a verifier key is not that of its name and key")
    return key


def format_signer_key(key: SignerKey) -> str:
    """Write a private key as `PRIVATE+KEY+name+hash+keydata`. Whoever reads it can sign."""
    data = _encode_base64(bytes([ED25519]) + key.seed)
    return f"{_SIGNER_PREFIX}{key.name}+{key.verifier_key.key_id.hex()}+{data}"


def parse_signer_key(text: str) -> SignerKey:
    """Read `PRIVATE+KEY+name+hash+keydata`.

    Raises:
        BadInputError: another form, another signature type than Ed25519, or a hash that is not the
            key's. One message for all of them, so that no part of the text is ever repeated.
    """
    key = _read_signer_key(text)
    if key is None:
        raise BadInputError(
            "not a signer key of the form PRIVATE+KEY+name+hash+keydata with Ed25519 keydata",
            remedy="Give the key exactly as it was written when it was made.",
        )
    return key


def sign_note(note: Note, *signers: SignerKey) -> Note:
    """Return the note with these keys' signatures last; a former one of the same key is replaced.

    Raises:
        BadInputError: there are more than 100 signatures.
    """
    signatures = list(note.signatures)
    for signer in signers:
        made = NoteSignature(
            signer.name, signer.verifier_key.key_id, signer.sign(note.text.encode())
        )
        signatures = [line for line in signatures if _identity(line) != _identity(made)]
        signatures.append(made)
    return replace(note, signatures=tuple(signatures))


def check_note(note: Note, keys: Iterable[VerifierKey]) -> NoteCheck:
    """Check every signature of a note against the keys that the caller trusts.

    A key is known by its name and id together. Signatures of unknown keys are ignored; one that
    names a known key and does not verify spoils the note, even beside a good one.

    Raises:
        BadInputError: two different keys share name and id, so that it is not clear which is meant.

    Source: C2SP signed-note, "Signatures".
    """
    known: dict[tuple[str, bytes], VerifierKey] = {}
    for key in keys:
        if known.setdefault(_identity(key), key) != key:
            raise BadInputError(f"two keys are called {key.name!r} with the id {key.key_id.hex()}")
    message = note.text.encode()
    verified, unverified, invalid = [], [], []
    for line in note.signatures:
        by = known.get(_identity(line))
        if by is None or by.algorithm != ED25519:
            unverified.append(line)
        elif by.check_signature(message, line.signature):
            verified.append(line)
        else:
            invalid.append(line)
    return NoteCheck(tuple(verified), tuple(unverified), tuple(invalid))


def decode_base64(text: str, *, where: str) -> bytes:
    """Read standard base64 (RFC 4648 section 4) in its one form.

    Raises:
        BadInputError: stray characters, missing padding, or padding bits that are not zero. The
            message names `where` and repeats nothing.
    """
    try:
        data = base64.b64decode(text, validate=True)
    except ValueError:
        data = b""
    # Python's decoder drops padding bits that are not zero: two texts, one value.
    if _encode_base64(data) != text:
        raise BadInputError("not base64 in its one form", where=where)
    return data


def _encode_base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _decode_utf8(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInputError(f"a signed note is not UTF-8 at byte {error.start}") from error


def _require_clean(text: str) -> None:
    if found := _CONTROL.search(text):
        raise BadInputError(
            f"a note holds the control character {found[0]!r} at offset {found.start()}"
        )
    if not _is_unicode(text):
        raise BadInputError("a note holds a lone surrogate")


def _require_name(name: str) -> None:
    # str.isspace covers Unicode White_Space (and four control characters, refused anyway).
    bad = any(char.isspace() or char == "+" or char < " " for char in name)
    if not name or bad or not _is_unicode(name):
        raise BadInputError(
            f"{name!r} is not a key name",
            remedy="Use text without spaces and plus signs, such as example.com/log.",
        )


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


def _parse_line(line: str, where: str) -> NoteSignature:
    dash, _, rest = line.partition(" ")
    name, space, encoded = rest.partition(" ")
    if dash != "—" or not space:
        raise BadInputError("not a signature line: em dash, name, base64", where=where)
    data = decode_base64(encoded, where=where)
    return NoteSignature(name, data[:_ID_BYTES], data[_ID_BYTES:])


def _read_signer_key(text: str) -> SignerKey | None:
    # None and not an exception: an exception's context could carry the secret into a traceback.
    parts = text.removeprefix(_SIGNER_PREFIX).split("+", 2)
    if len(parts) != 3:
        return None
    try:
        data = decode_base64(parts[2], where="keydata")
        key = SignerKey(parts[0], data[1:])
        return key if format_signer_key(key) == text else None
    except BadInputError:
        return None


def _identity(named: NoteSignature | VerifierKey) -> tuple[str, bytes]:
    return named.name, named.key_id
