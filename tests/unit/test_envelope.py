"""Envelopes: one form, written by one format string and read back strictly."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from datetime import UTC
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.canonical import MAX_INTEGER, canonicalize
from ledger.clock import format_moment
from ledger.envelope import (
    FIRST_PREV,
    MAX_ENVELOPE_BYTES,
    Envelope,
    EnvelopeFields,
    check_log_id,
    check_token,
    encode_envelope,
    leaf_of,
    parse_envelope,
    read_envelope,
)
from ledger.errors import BadInputError
from ledger.ids import format_uuid7

PRINTABLE = "".join(chr(c) for c in range(32, 127) if chr(c) not in '"\\')
TOKENS = st.text(alphabet=PRINTABLE, min_size=1, max_size=300)
NUMBERS = st.integers(0, MAX_INTEGER)
IDS = st.builds(format_uuid7, st.integers(0, 2**48 - 1), st.binary(min_size=10, max_size=10))
DIGESTS = st.binary(min_size=32, max_size=32).map(bytes.hex)
MOMENTS = st.datetimes(timezones=st.just(UTC)).map(format_moment)
ENVELOPES = st.builds(
    Envelope,
    log=IDS,
    seq=NUMBERS,
    id=IDS,
    type=TOKENS,
    type_v=NUMBERS,
    stream=TOKENS,
    stream_seq=NUMBERS,
    actor=TOKENS,
    recorded_at=MOMENTS,
    idem_key=st.none() | TOKENS,
    causation=st.none() | TOKENS,
    correlation=st.none() | TOKENS,
    prev=DIGESTS,
    commitment=DIGESTS,
    length=NUMBERS,
    media=TOKENS,
)
EXAMPLE = Envelope(
    log="019b7663-1c00-7000-8000-00000000f1a5",
    seq=0,
    id="019b7663-1c01-7000-8000-00000000f1a5",
    type="ledger.opened",
    type_v=1,
    stream="ledger",
    stream_seq=0,
    actor="operator",
    recorded_at="2026-01-01T00:00:00.000000Z",
    idem_key=None,
    causation=None,
    correlation=None,
    prev=FIRST_PREV,
    commitment="ab" * 32,
    length=2,
    media="application/json",
)
BYTES = encode_envelope(EXAMPLE)


@given(ENVELOPES)
def test_an_envelope_comes_back(envelope: Envelope) -> None:
    data = encode_envelope(envelope)
    fields = parse_envelope(data)
    assert Envelope.from_fields(fields) == envelope
    assert read_envelope(data) == fields


@given(ENVELOPES)
def test_the_format_string_writes_canonical_json(envelope: Envelope) -> None:
    """event-log.md 1: an envelope MUST be the canonical JSON (RFC 8785) of its object."""
    data = encode_envelope(envelope)
    assert canonicalize(json.loads(data)) == data


def test_the_keys_are_those_of_the_page() -> None:
    fields = parse_envelope(BYTES)
    assert list(fields) == sorted(EnvelopeFields.__annotations__)
    assert fields["v"] == 1


def changed(**changes: Any) -> bytes:
    """Return canonical bytes of the example with keys replaced, or dropped where `...`."""
    value = json.loads(BYTES) | changes
    return canonicalize({k: v for k, v in value.items() if v is not ...})


STRING_KEYS = ("type", "stream", "actor", "idem_key", "causation", "correlation")
BAD_STRINGS = ["", "ä", 'a"b', "a\\b", "a\n", "\x7f", "a" * 301, 7, True, [], {}]


@pytest.mark.parametrize("key", STRING_KEYS)
def test_strings_have_their_form(key: str) -> None:
    r"""event-log.md 2: 1 to 300 printable ASCII characters without `"` and `\`."""
    for bad in BAD_STRINGS + ([None] if key in ("type", "stream", "actor") else []):
        with pytest.raises(BadInputError):
            parse_envelope(changed(**{key: bad}))
    parse_envelope(changed(**{key: "a" * 300}))
    if key in ("idem_key", "causation", "correlation"):
        parse_envelope(changed(**{key: None}))


@pytest.mark.parametrize("key", ["seq", "type_v", "stream_seq", "v"])
def test_numbers_have_their_form(key: str) -> None:
    """event-log.md 3: numbers MUST be integers from 0 to 2^53-1."""
    for bad in (-1, 0.5, True, "1", None, ...):
        with pytest.raises(BadInputError):
            parse_envelope(changed(**{key: bad}))
    too_large = re.sub(rf'"{key}":[01]', f'"{key}":{2**53}', BYTES.decode())
    with pytest.raises(BadInputError):
        parse_envelope(too_large.encode())
    if key != "v":
        parse_envelope(changed(**{key: 2**53 - 1}))


@pytest.mark.parametrize("v", [0, 2, 10])
def test_another_format_version_is_refused(v: int) -> None:
    with pytest.raises(BadInputError, match="version"):
        parse_envelope(changed(v=v))


@pytest.mark.parametrize(
    ("key", "bad"),
    [
        ("log", "019b7663-1c00-4000-8000-00000000f1a5"),
        ("log", "019B7663-1c00-7000-8000-00000000f1a5"),
        ("id", "019b7663-1c00-7000-c000-00000000f1a5"),
        ("id", "019b76631c007000800000000000f1a5"),
        ("id", None),
        ("prev", "AB" * 32),
        ("prev", "ab" * 31),
        ("prev", "ab" * 32 + "\n"),
        ("recorded_at", "2026-01-01T00:00:00Z"),
        ("recorded_at", "2026-01-01T00:00:00.000000+00:00"),
        ("recorded_at", "2026-02-30T00:00:00.000000Z"),
        ("recorded_at", 0),
        ("payload", None),
        ("payload", {}),
        ("payload", {"commitment": "ab" * 32, "length": 2}),
        ("payload", {"commitment": "ab" * 32, "length": 2, "media": "a", "x": 1}),
        ("payload", {"commitment": "xy" * 32, "length": 2, "media": "a"}),
        ("payload", {"commitment": "ab" * 32, "length": -2, "media": "a"}),
        ("payload", {"commitment": "ab" * 32, "length": 2, "media": ""}),
        ("surplus", None),
        *((key, ...) for key in EnvelopeFields.__annotations__),
    ],
    ids=range(35),
)
def test_other_forms_are_refused(key: str, bad: Any) -> None:
    with pytest.raises(BadInputError):
        parse_envelope(changed(**{key: bad}))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        BYTES + b" ",
        b" " + BYTES,
        BYTES.replace(b'"seq":0', b'"seq":0.0'),
        BYTES.replace(b'"seq":0', b'"seq":-0'),
        BYTES.replace(b'"seq":0', b'"seq":0,"seq":0'),
        BYTES.replace(b'"v":1', b'"v":true'),
        BYTES.replace(b'"operator"', b'"\\u006fperator"'),
        BYTES.replace(b'"operator"', b'"\xff"'),
        BYTES.replace(b'"actor":"operator",', b"").replace(b'"v":1', b'"v":1,"actor":"operator"'),
        BYTES.replace(b",", b", "),
        BYTES[:-1],
        b"\xef\xbb\xbf" + BYTES,
    ],
    ids=range(16),
)
def test_what_does_not_re_encode_is_refused(data: bytes) -> None:
    """event-log.md 5, 6: one form; duplicate keys and bad Unicode MUST be refused."""
    with pytest.raises(BadInputError):
        parse_envelope(data)


def test_every_cut_and_every_flipped_byte_is_refused_or_another_envelope() -> None:
    for at in range(len(BYTES)):
        with pytest.raises(BadInputError):
            parse_envelope(BYTES[:at])
        flipped = BYTES[:at] + bytes([BYTES[at] ^ 1]) + BYTES[at + 1 :]
        try:
            fields = parse_envelope(flipped)
        except BadInputError:
            continue
        assert encode_envelope(Envelope.from_fields(fields)) == flipped


def test_the_largest_envelope() -> None:
    """event-log.md 4: an envelope MUST NOT be longer than 16,384 bytes."""
    with pytest.raises(BadInputError, match="16384"):
        parse_envelope(b" " * (MAX_ENVELOPE_BYTES + 1))
    longest = replace(
        EXAMPLE,
        **dict.fromkeys(STRING_KEYS, "x" * 300),  # type: ignore[arg-type]
        media="x" * 300,
    )
    assert len(encode_envelope(longest)) < MAX_ENVELOPE_BYTES


def test_leaf() -> None:
    """event-log.md 7: leaf = SHA-256(0x00 || envelope)."""
    assert leaf_of(BYTES) == hashlib.sha256(b"\x00" + BYTES).digest()


@given(st.text(max_size=320))
def test_tokens(text: str) -> None:
    fits = 1 <= len(text) <= 300 and all(c in PRINTABLE for c in text)
    if fits:
        assert check_token(text, "token") == text
    else:
        with pytest.raises(BadInputError, match="token"):
            check_token(text, "token")


def test_log_ids() -> None:
    assert check_log_id(EXAMPLE.log) == EXAMPLE.log
    for bad in ("", EXAMPLE.log.upper(), EXAMPLE.log + "\n", EXAMPLE.log.replace("-7", "-1")):
        with pytest.raises(BadInputError, match="log id"):
            check_log_id(bad)


@pytest.mark.parametrize("data", [b"", b"7", b"{}", b'{"payload":1}', changed(payload={})])
def test_the_quick_reader_refuses_what_is_no_envelope(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"envelope|JSON|EOF|expected"):
        read_envelope(data)


def test_the_quick_reader_keeps_the_fields() -> None:
    fields = cast("dict[str, Any]", read_envelope(BYTES))
    assert fields == json.loads(BYTES)
