"""C2SP signed notes: strict parsing, keys, and what a signature does and does not say."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import BadInputError
from ledger.signed_note import (
    COSIGNATURE,
    ED25519,
    MAX_NOTE_BYTES,
    Note,
    NoteSignature,
    SignerKey,
    VerifierKey,
    check_note,
    format_note,
    format_signer_key,
    format_verifier_key,
    key_id,
    parse_note,
    parse_signer_key,
    parse_verifier_key,
    sign_note,
)

LOG = SignerKey("example.com/log", sha256(b"log").digest())
WITNESS = SignerKey("witness.example/w1", sha256(b"witness").digest())
TEXT = "one line\n\nand another: ✓\n"
SIGNED = format_note(sign_note(Note(TEXT), LOG, WITNESS))
LOG_LINE = SIGNED.splitlines()[-2]

clean_text = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=[chr(i) for i in range(32)])
    | st.just("\n")
).map(lambda text: f"{text}\n")
names = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], exclude_characters="+"),
    min_size=1,
    max_size=30,
)


def chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


@given(clean_text, names, st.lists(st.binary(min_size=32, max_size=32), min_size=1, max_size=3))
def test_any_note_comes_back_and_verifies(text: str, name: str, seeds: list[bytes]) -> None:
    """C2SP: "the text is separated from the signatures by the last empty line in the note"."""
    signers = [SignerKey(name, seed) for seed in seeds]
    note = sign_note(Note(text), *signers)
    back = parse_note(format_note(note))
    assert back == note
    assert parse_note(format_note(note).encode()) == note
    check = check_note(back, [signer.verifier_key for signer in signers])
    assert check.accepted
    assert check.verified == note.signatures
    assert len(note.signatures) == len(set(seeds)), "one line a key"


@given(names, st.binary(min_size=32, max_size=32))
def test_any_key_comes_back(name: str, seed: bytes) -> None:
    signer = SignerKey(name, seed)
    assert parse_signer_key(format_signer_key(signer)) == signer
    assert parse_verifier_key(format_verifier_key(signer.verifier_key)) == signer.verifier_key


def test_the_key_id_is_the_start_of_a_hash() -> None:
    """C2SP: "key ID = SHA-256(key name || 0x0A || signature type || public key)[:4]"."""
    key = LOG.verifier_key
    expected = sha256(b"example.com/log\n\x01" + key.public_key).digest()[:4]
    assert key.key_id == key_id("example.com/log", ED25519, key.public_key) == expected
    assert key_id("example.com/log", COSIGNATURE, key.public_key) != expected
    with pytest.raises(BadInputError, match="fit in a byte"):
        key_id("example.com/log", 256, key.public_key)


def test_every_byte_of_a_note_counts() -> None:
    """Change any one byte: the note is malformed or is not accepted."""
    keys = [LOG.verifier_key, WITNESS.verifier_key]
    data = SIGNED.encode()
    survivors = []
    for at, octet in enumerate(data):
        for turned in (octet ^ 1, octet ^ 0x20, octet ^ 0x80):
            changed = data[:at] + bytes([turned]) + data[at + 1 :]
            try:
                check = check_note(parse_note(changed), keys)
            except BadInputError:
                continue
            if check.accepted and len(check.verified) == len(keys):
                survivors.append((at, turned))
    assert survivors == []


MALFORMED: list[tuple[str | bytes, str]] = [
    (TEXT, "signature line"),
    (f"{TEXT}\n", "signature line"),
    ("no blank line\n", "no blank line"),
    ("", "no blank line"),
    (SIGNED[:-1], "and a newline"),
    (f"{SIGNED}\n", "and a newline"),
    (f"{SIGNED}Unexpected line.\n", "signature line"),
    (SIGNED.replace("— example", "- example"), "signature line"),
    (SIGNED.replace("— example", "—  example"), "key name|base64"),
    (SIGNED.replace("— example", "—example"), "signature line"),
    (SIGNED.replace("/log ", "/log  "), "base64"),
    (SIGNED.replace("/log ", "/log\u00a0"), "signature line"),
    (SIGNED.replace("— example", "— exa mple"), "base64"),
    (SIGNED.replace("— example", "— exa+mple"), "key name"),
    (SIGNED.replace("— example", "— exa\u2003mple"), "key name"),
    (SIGNED.replace(LOG_LINE, LOG_LINE + " "), "base64"),
    (SIGNED.replace(LOG_LINE, LOG_LINE + "="), "base64"),
    (SIGNED.replace(LOG_LINE, LOG_LINE.rstrip("=")), "base64"),
    (SIGNED.replace(LOG_LINE, "— example.com/log"), "signature line"),
    (SIGNED.replace(LOG_LINE, "— example.com/log "), "4-byte key id"),
    (SIGNED.replace(LOG_LINE, "— example.com/log AAAAAA=="), "4-byte key id"),
    (SIGNED.replace(LOG_LINE, "— example.com/log AAAAAAB="), "base64"),
    (SIGNED.replace("\n", "\r\n"), "control character"),
    ("\x01" + SIGNED, "control character"),
    ("\t" + SIGNED, "control character"),
    ("\x1f" + SIGNED, "control character"),
    ("\ud800" + SIGNED, "surrogate"),
    (b"\xff" + SIGNED.encode(), "not UTF-8 at byte 0"),
    (b"\xc0\x80" + SIGNED.encode(), "not UTF-8"),
    ("x" * MAX_NOTE_BYTES + SIGNED, "larger than"),
    ("é" * (MAX_NOTE_BYTES // 2) + SIGNED, "larger than"),
    (SIGNED + f"{LOG_LINE}\n" * 99, "more than 100"),
]


@pytest.mark.parametrize(("broken", "reason"), MALFORMED, ids=range(len(MALFORMED)))
def test_a_malformed_note_is_refused(broken: str | bytes, reason: str) -> None:
    with pytest.raises(BadInputError, match=reason):
        parse_note(broken)


def test_a_hundred_signatures_are_read() -> None:
    """C2SP: "Verifiers ... MUST accept at least up to 16 signatures"."""
    note = parse_note(SIGNED + f"{LOG_LINE}\n" * 98)
    assert len(note.signatures) == 100
    assert check_note(note, [LOG.verifier_key]).accepted
    with pytest.raises(BadInputError, match="more than 100"):
        sign_note(note, SignerKey("another.example", LOG.seed))


def test_text_may_hold_what_looks_like_signatures() -> None:
    """Only what follows the last empty line is a signature: quoting a note forges nothing."""
    quoted = sign_note(Note(SIGNED + "\n(quoted)\n"), WITNESS)
    back = parse_note(format_note(quoted))
    assert [line.name for line in back.signatures] == [WITNESS.name]
    assert not check_note(back, [LOG.verifier_key]).accepted


@pytest.mark.parametrize("text", ["", "no newline", "a\n\nb"])
def test_text_without_a_last_newline_is_no_note(text: str) -> None:
    """C2SP: "a text ending in newline (U+000A)"."""
    with pytest.raises(BadInputError, match="does not end in a newline"):
        Note(text)


def test_the_shortest_text_is_an_empty_line() -> None:
    note = sign_note(Note("\n"), LOG)
    assert parse_note(format_note(note)) == note


def test_an_unsigned_or_oversized_note_is_not_written() -> None:
    with pytest.raises(BadInputError, match="without a signature"):
        format_note(Note(TEXT))
    with pytest.raises(BadInputError, match="larger than"):
        format_note(sign_note(Note("x" * MAX_NOTE_BYTES + "\n"), LOG))


def test_signing_again_replaces_the_former_line() -> None:
    stale = NoteSignature(LOG.name, LOG.verifier_key.key_id, b"stale")
    once = sign_note(Note(TEXT, (stale,)), LOG)
    assert once == sign_note(Note(TEXT), LOG)
    both = sign_note(sign_note(once, WITNESS), LOG)
    assert [line.name for line in both.signatures] == [WITNESS.name, LOG.name]


def test_unknown_keys_are_ignored_even_with_a_known_name_or_id() -> None:
    """C2SP: ignored "even if they share a name or ID (but not both) with a known key"."""
    note = sign_note(Note(TEXT), LOG)
    good = note.signatures[0]
    same_name = replace(good, key_id=b"\0\0\0\0")
    same_id = replace(good, name="other.example")
    check = check_note(replace(note, signatures=(same_name, good, same_id)), [LOG.verifier_key])
    assert check.verified == (good,)
    assert check.unverified == (same_name, same_id)
    assert check.invalid == ()
    assert check.accepted


def test_a_bad_signature_of_a_known_key_spoils_the_note() -> None:
    """C2SP: "If a signature from a known key fails to verify, clients SHOULD reject"."""
    note = sign_note(Note(TEXT), LOG, WITNESS)
    keys = [LOG.verifier_key, WITNESS.verifier_key]
    for wrong in (b"x", bytes(64), note.signatures[0].signature, bytes(65)):
        bad = replace(note.signatures[1], signature=wrong)
        check = check_note(replace(note, signatures=(note.signatures[0], bad)), keys)
        assert check.invalid == (bad,)
        assert check.verified == (note.signatures[0],)
        assert not check.accepted


def test_a_second_line_of_a_known_key_is_checked_too() -> None:
    """Go's sumdb skips it; a bad line that hides behind a good one is refused here."""
    note = sign_note(Note(TEXT), LOG)
    good = note.signatures[0]
    bad = replace(good, signature=bytes(64))
    for lines in ((good, bad), (bad, good)):
        assert not check_note(replace(note, signatures=lines), [LOG.verifier_key]).accepted


def test_a_note_without_a_known_key_is_not_accepted() -> None:
    """C2SP: "If no signature from a known key verifies successfully, clients MUST reject"."""
    check = check_note(parse_note(SIGNED), [])
    assert not check.accepted
    assert [line.name for line in check.unverified] == [LOG.name, WITNESS.name]


def test_a_cosignature_is_unverified_even_with_its_key() -> None:
    """Type 0x04 is read and named, and never counted as verified."""
    key = VerifierKey(WITNESS.name, WITNESS.verifier_key.public_key, COSIGNATURE)
    assert parse_verifier_key(format_verifier_key(key)) == key
    line = NoteSignature(key.name, key.key_id, WITNESS.sign(TEXT.encode()))
    check = check_note(Note(TEXT, (line,)), [key])
    assert check.unverified == (line,)
    assert not check.accepted


def test_two_keys_with_one_name_and_id_are_refused() -> None:
    class Collision(VerifierKey):
        @property
        def key_id(self) -> bytes:
            return LOG.verifier_key.key_id

    other = Collision(LOG.name, WITNESS.verifier_key.public_key)
    with pytest.raises(BadInputError, match="two keys are called"):
        check_note(parse_note(SIGNED), [LOG.verifier_key, other])
    assert check_note(parse_note(SIGNED), [LOG.verifier_key, LOG.verifier_key]).accepted


SPACES = "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2007\u200a\u2028\u2029\u202f\u205f\u3000"


@pytest.mark.parametrize("name", ["", "+", "a+b", "a\x00b", "a\x1bb", "a\ud800b"])
def test_what_is_no_key_name(name: str) -> None:
    """C2SP: "Key names MUST be non-empty and MUST NOT contain any Unicode spaces or plus"."""
    with pytest.raises(BadInputError, match="not a key name"):
        SignerKey(name, bytes(32))
    with pytest.raises(BadInputError, match="not a key name"):
        NoteSignature(name, b"1234", b"s")
    with pytest.raises(BadInputError, match="not a key name"):
        key_id(name, ED25519, bytes(32))


def test_no_unicode_space_stands_in_a_key_name() -> None:
    """The list is Go's unicode.IsSpace, which other readers of our notes use."""
    for space in SPACES:
        with pytest.raises(BadInputError, match="not a key name"):
            SignerKey(f"a{space}b", bytes(32))
    for letter in "é\u200b\u00b7—\x7f":
        assert SignerKey(f"a{letter}b", bytes(32)).name == f"a{letter}b"


def test_every_mangling_of_a_verifier_key_is_refused() -> None:
    """As Go's TestNewVerifier: every proper substring and every changed character."""
    text = format_verifier_key(LOG.verifier_key)
    cut = [text[i:j] for i in range(len(text)) for j in range(i, len(text) + 1)]
    turned = [f"{text[:i]}{chr(ord(text[i]) + 1)}{text[i + 1 :]}" for i in range(len(text))]
    hash_at = text.index("+") + 1
    upper = text[:hash_at] + text[hash_at : hash_at + 8].upper() + text[hash_at + 8 :]
    for mangled in {*cut, *turned, upper, f"{text} ", f"{text}\n", f"{text}="} - {text}:
        with pytest.raises(BadInputError):
            parse_verifier_key(mangled)


def encoded_key(name: str, data: bytes) -> str:
    digest = sha256(name.encode() + b"\n" + data).digest()[:4].hex()
    return f"{name}+{digest}+{base64.b64encode(data).decode()}"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "signature type 0"),
        (b"\x01", "not 32 bytes"),
        (b"\x01" + LOG.verifier_key.public_key[:31], "not 32 bytes"),
        (b"\x01" + LOG.verifier_key.public_key + b"\0", "not 32 bytes"),
        (b"\x02" + LOG.verifier_key.public_key, "signature type 2"),
        (b"\x65" + LOG.verifier_key.public_key, "signature type 101"),
    ],
    ids=["empty", "no-key", "short", "long", "ecdsa", "unassigned"],
)
def test_a_key_with_a_right_hash_and_wrong_data_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(BadInputError, match=reason):
        parse_verifier_key(encoded_key("example.com/log", data))


def small_order_points() -> Iterator[tuple[int, int]]:
    """The eight points of RFC 8032's curve whose order divides 8, found by adding."""
    p = 2**255 - 19
    d = -121665 * pow(121666, -1, p) % p

    def add(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        k = d * a[0] * b[0] * a[1] * b[1] % p
        x = (a[0] * b[1] + b[0] * a[1]) * pow(1 + k, -1, p) % p
        return x, (a[1] * b[1] + a[0] * b[0]) * pow(1 - k, -1, p) % p

    # The order of the curve is 8 times the prime L, so L times any point has small order.
    order = 2**252 + 27742317777372353535851937790883648493
    seen: set[tuple[int, int]] = set()
    y = 2
    while len(seen) < 8:
        y += 1
        square = (y * y - 1) * pow(d * y * y + 1, -1, p) % p
        if pow(square, (p - 1) // 2, p) != 1:
            continue
        x = pow(square, (p + 3) // 8, p)
        point = (x if x * x % p == square else x * pow(2, (p - 1) // 4, p) % p, y)
        total = (0, 1)
        for bit in f"{order:b}":
            total = add(total, total)
            total = add(total, point) if bit == "1" else total
        seen.add(total)
    yield from seen


def test_keys_of_small_order_are_refused() -> None:
    """OpenSSL accepts them; under such a key one signature fits every text."""
    p = 2**255 - 19
    encodings = {y | (x & 1) << 255 for x, y in small_order_points()}
    assert len(encodings) == 8
    encodings |= {1 | 1 << 255, p - 1 | 1 << 255}  # x = 0 with a sign
    encodings |= {p, p + 1, p | 1 << 255, p + 1 | 1 << 255, 2**255 - 1}  # y not reduced
    for encoding in encodings:
        with pytest.raises(BadInputError, match="small order"):
            VerifierKey("example.com/log", encoding.to_bytes(32, "little"))


def test_a_private_key_in_place_of_a_public_one_is_not_repeated() -> None:
    text = format_signer_key(LOG)
    with pytest.raises(BadInputError, match="private signer key") as caught:
        parse_verifier_key(text)
    assert text.rsplit("+", 1)[1] not in str(caught.value)


def test_every_mangling_of_a_signer_key_is_refused_without_a_word_of_it() -> None:
    """As Go's TestNewSigner; and the message is one and the same."""
    text = format_signer_key(LOG)
    data = text.split("+", 4)[4]
    cut = [text[i:j] for i in range(len(text)) for j in range(i, len(text) + 1)]
    turned = [f"{text[:i]}{chr(ord(text[i]) + 1)}{text[i + 1 :]}" for i in range(len(text))]
    swapped = f"PRIVATE+KEY+{data}+{LOG.name}"
    messages = set()
    for mangled in {*cut, *turned, swapped, f"{text}\n", f"{text}é", f"{text}\ud800"} - {text}:
        with pytest.raises(BadInputError) as caught:
            parse_signer_key(mangled)
        messages |= {repr(error.args) for error in chain(caught.value)}
    assert len(messages) == 1


def test_the_seed_is_in_no_repr_and_no_error() -> None:
    secret = sha256(b"secret").digest()
    signer = SignerKey("example.com/log", secret)
    shown = [repr(signer), str(signer), f"{signer!r:>300}", repr([signer])]
    calls: list[Callable[[], object]] = [
        lambda: SignerKey("a b", secret),
        lambda: SignerKey("a", secret[:31]),
        lambda: SignerKey("a", bytearray(secret)),  # type: ignore[arg-type]
        lambda: SignerKey("a", secret.hex()),  # type: ignore[arg-type]
    ]
    for call in calls:
        with pytest.raises(BadInputError) as caught:
            call()
        shown += [repr(error) for error in chain(caught.value)]
    for form in (secret.hex(), base64.b64encode(secret).decode(), repr(secret)[2:-1]):
        assert not any(form[:12] in text for text in shown)
