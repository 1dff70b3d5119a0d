"""Canonical JSON: the rules of RFC 8785 and the refusals of I-JSON (RFC 7493)."""

from __future__ import annotations

import json
import struct
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from ledger.canonical import (
    MAX_DEPTH,
    MAX_INTEGER,
    canonicalize,
    canonicalize_exact,
    is_canonical,
    parse_strict,
)
from ledger.errors import BadInputError

texts = st.text(st.characters(exclude_categories=["Cs"]))
integers = st.integers(-MAX_INTEGER, MAX_INTEGER)
floats = st.floats(allow_nan=False, allow_infinity=False)
readable_floats = floats.filter(lambda number: not 2**53 <= abs(number) < 1e21)


def json_values(numbers: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    leaves = st.none() | st.booleans() | texts | numbers
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5),
        max_leaves=20,
    )


class Colour(IntEnum):
    RED = 1


class Word(StrEnum):
    YES = "yes"


class Plain(Enum):
    ONE = 1


class MyInt(int):
    pass


class MyStr(str):
    __slots__ = ()


class MyFloat(float):
    pass


def nested(levels: int, leaf: object) -> object:
    value = leaf
    for level in range(levels):
        value = [value] if level % 2 else {"k": value}
    return value


@given(json_values(integers | floats))
@example({"b": [1, {}], "a": '\x7f\x1f\b\f\n\r\t"\\/€😂', "😂": 1, "\ufb33": 2})
@example([-0.0, 1.0, 1e17, 1e21, 5e-324])
def test_it_agrees_with_the_reference_package(value: Any) -> None:
    """The fast path for ASCII keys without floats has to give the bytes of the slow one."""
    assert canonicalize(value) == rfc8785.dumps(value)
    assert canonicalize(value) == canonicalize(json.loads(json.dumps(value)))


@given(json_values(integers | readable_floats))
def test_what_is_written_is_read_back(value: Any) -> None:
    data = canonicalize(value)
    assert parse_strict(data) == value
    assert parse_strict(data.decode()) == value
    assert is_canonical(data)


@given(json_values(integers))
def test_exact_values_are_the_same_without_floats(value: Any) -> None:
    assert canonicalize_exact(value) == canonicalize(value)


ES6_SAMPLES = [
    ("0000000000000000", "0"),
    ("8000000000000000", "0"),
    ("0000000000000001", "5e-324"),
    ("8000000000000001", "-5e-324"),
    ("7fefffffffffffff", "1.7976931348623157e+308"),
    ("ffefffffffffffff", "-1.7976931348623157e+308"),
    ("4340000000000000", "9007199254740992"),
    ("c340000000000000", "-9007199254740992"),
    ("4430000000000000", "295147905179352830000"),
    ("44b52d02c7e14af5", "9.999999999999997e+22"),
    ("44b52d02c7e14af6", "1e+23"),
    ("44b52d02c7e14af7", "1.0000000000000001e+23"),
    ("444b1ae4d6e2ef4e", "999999999999999700000"),
    ("444b1ae4d6e2ef4f", "999999999999999900000"),
    ("444b1ae4d6e2ef50", "1e+21"),
    ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
    ("3eb0c6f7a0b5ed8d", "0.000001"),
    ("41b3de4355555553", "333333333.3333332"),
    ("41b3de4355555554", "333333333.33333325"),
    ("41b3de4355555555", "333333333.3333333"),
    ("41b3de4355555556", "333333333.3333334"),
    ("41b3de4355555557", "333333333.33333343"),
    ("becbf647612f3696", "-0.0000033333333333333333"),
    ("43143ff3c1cb0959", "1424953923781206.2"),
]


@pytest.mark.parametrize(("bits", "text"), ES6_SAMPLES)
def test_the_number_samples_of_rfc_8785_appendix_b(bits: str, text: str) -> None:
    """RFC 8785 3.2.2.3: numbers are serialised as ECMAScript does."""
    number = struct.unpack(">d", bytes.fromhex(bits))[0]
    assert canonicalize(number).decode() == text
    assert canonicalize([number, {"k": number}]).decode() == f'[{text},{{"k":{text}}}]'


@pytest.mark.parametrize("bits", ["7fffffffffffffff", "7ff0000000000000", "fff0000000000000"])
def test_nan_and_infinity_have_no_form(bits: str) -> None:
    """RFC 8785 3.2.2.3: NaN and Infinity "MUST cause a compliant JCS implementation to" fail."""
    number = struct.unpack(">d", bytes.fromhex(bits))[0]
    for value in (number, [number], {"k": number}):
        with pytest.raises(BadInputError, match="not a JSON number"):
            canonicalize(value)


def test_literals_whitespace_and_escapes() -> None:
    """RFC 8785 3.2.1 to 3.2.2.2: no whitespace; short escapes; lower-case hexadecimal."""
    value = {"b": [None, True, False], "a": '\b\t\n\f\r"\\/\x00\x1f\x7f\x80\u2028é😂'}
    expected = (
        '{"a":"\\b\\t\\n\\f\\r\\"\\\\/\\u0000\\u001f\x7f\x80\u2028é😂","b":[null,true,false]}'
    )
    assert canonicalize(value).decode() == expected


def test_keys_sort_by_utf16_code_units() -> None:
    """RFC 8785 3.2.3: sorted as arrays of UTF-16 code units, at every level."""
    value = {"\ufb33": 1, "😂": 2, "a": {"z": 1, "é": 2, "A": 3}, "": 4, "aa": 5, "é": 6}
    expected = '{"":4,"a":{"A":3,"z":1,"é":2},"aa":5,"é":6,"😂":2,"\ufb33":1}'
    assert canonicalize(value).decode() == expected


@pytest.mark.parametrize("number", [0, 1, -1, MAX_INTEGER, -MAX_INTEGER])
def test_integers_up_to_the_exact_limit(number: int) -> None:
    """RFC 7493 2.2: integers in [-(2**53)+1, (2**53)-1] are exact everywhere."""
    assert canonicalize(number) == str(number).encode()
    assert parse_strict(str(number)) == number


@pytest.mark.parametrize("number", [2**53, -(2**53), 2**63, 10**40])
def test_integers_beyond_the_exact_limit_are_refused(number: int) -> None:
    with pytest.raises(BadInputError, match=r"beyond 2\^53-1"):
        canonicalize({"k": [number]})
    with pytest.raises(BadInputError, match=r"beyond 2\^53-1"):
        parse_strict(str(number))


def test_an_integer_too_long_to_print_is_refused_as_any_other() -> None:
    with pytest.raises(BadInputError, match=r"\$\.k: an integer beyond"):
        canonicalize({"k": 10**5000})
    with pytest.raises(BadInputError, match="beyond"):
        parse_strict("9" * 1_000_000)


def test_a_large_float_is_written_in_digits_that_are_not_read_back() -> None:
    """The documented exception to reading back what was written."""
    for number in (2.0**53, -1e17, 999999999999999900000.0):
        assert canonicalize(number) == rfc8785.dumps(number)
        with pytest.raises(BadInputError, match="beyond"):
            parse_strict(canonicalize(number))
    assert parse_strict(canonicalize(1e21)) == 1e21


@pytest.mark.parametrize("number", [0.5, -0.0, 1.0, 0.0, 1e300, 1e21])
def test_the_exact_form_refuses_every_float(number: float) -> None:
    for value, path in (
        (number, r"\$"),
        ([1, number], r"\$\[1\]"),
        ({"a": {"b": (1, number)}}, r"\$\.a\.b\[1\]"),
        ({"é": number}, r"\$\.é"),
    ):
        with pytest.raises(BadInputError, match=rf"^{path} is a floating-point number"):
            canonicalize_exact(value)


def test_negative_zero_and_whole_floats_take_the_form_of_integers() -> None:
    """RFC 8785 3.2.2.3 by way of ECMAScript: -0 is "0", and 1.0 is "1"."""
    assert canonicalize([-0.0, 1.0, 100.0, -3.0]) == b"[0,1,100,-3]"


ALIENS: list[object] = [
    *(b"bytes", bytearray(b"x"), memoryview(b"x"), {1, 2}, frozenset(), 1 + 2j, ..., object()),
    *(Decimal("0.1"), Fraction(1, 2), datetime(2026, 1, 1, tzinfo=UTC), range(3), iter(())),
    *(Colour.RED, Word.YES, Plain.ONE, MyInt(1), MyStr("a"), MyFloat(0.5), OrderedDict(a=1)),
    *(defaultdict(int), int, {}.keys(), NotImplemented),
]


@pytest.mark.parametrize("alien", ALIENS, ids=range(len(ALIENS)))
def test_what_is_no_json_type_is_refused(alien: object) -> None:
    """Subclasses too: an IntEnum is a number or a name, and nothing here can say which."""
    for value in (alien, [alien], {"k": alien}, (1, {"a": [alien]})):
        with pytest.raises(BadInputError, match=f"{type(alien).__name__} is not a JSON type"):
            canonicalize(value)
        with pytest.raises(BadInputError, match="is not a JSON type"):
            canonicalize_exact(value)


KEYS: list[object] = [1, None, True, 1.5, b"k", (1,), Word.YES, MyStr("k"), 10**5000]


@pytest.mark.parametrize("key", KEYS, ids=range(len(KEYS)))
def test_a_key_that_is_no_string_is_refused(key: object) -> None:
    """Python's own encoder would turn 1 and None into "1" and "null"."""
    with pytest.raises(BadInputError, match=r"\$\.in: a key is \w+, not a string"):
        canonicalize({"in": {key: 1}})


SURROGATES = ["\ud800", "a\udfffb", "\ude02\ud83d", "\ud83d"]


@pytest.mark.parametrize("text", SURROGATES, ids=range(len(SURROGATES)))
def test_lone_surrogates_are_refused_on_the_way_out(text: str) -> None:
    """RFC 7493 2.1: strings "MUST NOT include code points that identify Surrogates"."""
    cases: list[tuple[object, str]] = [
        (text, r"\$:"),
        ({"a": [1, text]}, r"\$\.a\[1\]:"),
        ({text: 1}, r"\$ \(a key\):"),
        ({"é": {"x": text}}, r"\$\.é\.x:"),
        ([1, {text: {}}], r"\$\[1\] \(a key\):"),
    ]
    for value, path in cases:
        for write in (canonicalize, canonicalize_exact):
            with pytest.raises(BadInputError, match=f"^{path} a string with a lone surrogate"):
                write(value)
    with pytest.raises(BadInputError, match="lone surrogate"):
        canonicalize([0.5, {text: 1}])


def test_a_message_about_a_surrogate_key_can_be_printed() -> None:
    with pytest.raises(BadInputError, match="beyond") as caught:
        canonicalize({"\ud800": {"k": 2**60}})
    assert str(caught.value).encode().startswith(b"$.\\ud800.k: ")
    with pytest.raises(BadInputError, match="beyond") as caught:
        canonicalize({"k" * 10_000: [2**60]})
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "text",
    [r'"\ud800"', r'"\uDFFF"', r'{"a":["\ud83d"]}', r'{"\ud83d":1}', r'"\ude02\ud83d"', '"\ud800"'],
)
def test_lone_surrogates_are_refused_on_the_way_in(text: str) -> None:
    """An escape, or text that was decoded with surrogateescape, can bring one in."""
    with pytest.raises(BadInputError, match="lone surrogate"):
        parse_strict(text)


def test_noncharacters_pass() -> None:
    """The one rule of RFC 7493 2.1 that is not enforced, as the docstring of canonicalize says."""
    assert parse_strict(canonicalize("\ufffe\uffff\ufdd0")) == "\ufffe\uffff\ufdd0"


def test_paired_surrogates_are_one_character() -> None:
    assert parse_strict(rb'"\ud83d\ude02 \\ud800"') == "😂 \\ud800"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a":1,"a":1}', "'a' stands twice"),
        ('[{"b":{"a":1,"c":2,"\\u0061":3}}]', "'a' stands twice"),
        ('{"":1,"":2}', "'' stands twice"),
        ("NaN", "NaN is not a JSON number"),
        ("[Infinity]", "Infinity is not a JSON number"),
        ('{"a":-Infinity}', "-Infinity is not a JSON number"),
        ("1e400", "inf is not a JSON number"),
        ("-1e400", "inf is not a JSON number"),
        ("", "not JSON: .* at offset 0"),
        (" ", "not JSON"),
        ("1 2", "not JSON: Extra data at offset 2"),
        ("{}x", "not JSON: Extra data"),
        ("[1,]", "not JSON"),
        ('{"a":1,}', "not JSON"),
        ("{'a':1}", "not JSON"),
        ("{a:1}", "not JSON"),
        ("01", "not JSON"),
        ("+1", "not JSON"),
        (".5", "not JSON"),
        ("5.", "not JSON"),
        ("0x10", "not JSON"),
        ("1_000", "not JSON"),
        ("\u0661", "not JSON"),
        ("True", "not JSON"),
        ("nul", "not JSON"),
        ('"\n"', "not JSON: Invalid control character"),
        ('"\x00"', "not JSON: Invalid control character"),
        (r'"\x41"', "not JSON"),
        (r'"\u12"', "not JSON"),
        ('"abc', "not JSON"),
        ("\ufeff{}", "not JSON"),
        ("\u00a0{}", "not JSON"),
        ("// c\n1", "not JSON"),
        ("[" * 100_000, "nested"),
        ("[" * 65 + "]" * 65, "nested more than 64"),
        ('{"k":' * 65 + "1" + "}" * 65, "nested more than 64"),
    ],
    ids=range(36),
)
def test_what_i_json_refuses(text: str, reason: str) -> None:
    """RFC 7493 2.3: "objects MUST NOT have members with duplicate names"; and RFC 8259."""
    with pytest.raises(BadInputError, match=reason):
        parse_strict(text)
    with pytest.raises(BadInputError, match=reason):
        parse_strict(text.encode())
    assert not is_canonical(text.encode())


@pytest.mark.parametrize(
    "data",
    [b"\xff", b'"\xc0\x80"', b'"\xed\xa0\x80"', b'"\xf5\x80\x80\x80"', '"é"'.encode("latin1")],
)
def test_what_is_not_utf8_is_refused(data: bytes) -> None:
    """RFC 7493 2.1: I-JSON messages "MUST be encoded using UTF-8"."""
    with pytest.raises(BadInputError, match="not UTF-8 at byte"):
        parse_strict(data)


@pytest.mark.parametrize("data", [bytearray(b"1"), memoryview(b"1"), None, 1, ["1"]])
def test_json_is_read_from_bytes_or_text_only(data: Any) -> None:
    with pytest.raises(BadInputError, match="read from bytes or str"):
        parse_strict(data)


def test_utf16_is_not_guessed() -> None:
    with pytest.raises(BadInputError):
        parse_strict("[1]".encode("utf-16"))


@pytest.mark.parametrize("leaf", [1, "s", None, True, 0.5, {}, []])
def test_the_depth_limit_is_the_same_for_every_leaf_and_both_ways(leaf: object) -> None:
    room = MAX_DEPTH - 1 if isinstance(leaf, dict | list) else MAX_DEPTH
    deepest = nested(room, leaf)
    assert parse_strict(canonicalize(deepest)) == deepest
    with pytest.raises(BadInputError, match="nested more than 64 levels"):
        canonicalize([deepest])
    with pytest.raises(BadInputError, match="nested more than 64 levels"):
        parse_strict(b"[" + canonicalize(deepest) + b"]")


def test_a_value_that_holds_itself_ends() -> None:
    ring: list[object] = []
    ring.append({"k": ring})
    for write in (canonicalize, canonicalize_exact):
        with pytest.raises(BadInputError, match="nested"):
            write(ring)


def test_lists_and_tuples_have_one_form() -> None:
    assert canonicalize((1, (2, [3]))) == canonicalize([1, [2, (3,)]]) == b"[1,[2,[3]]]"


SAMPLE = canonicalize({"a": [0, -1, 0.5, 1e21, "é\n\\"], "b": {"c": None, "d": True}, "é": "1"})


def oracle_is_canonical(data: bytes) -> bool:
    """The definition again, from other parts: the standard reader and the reference writer."""

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        if len({key for key, _ in pairs}) != len(pairs):
            raise ValueError
        return dict(pairs)

    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=unique)
        return bool(rfc8785.dumps(value) == data)
    except ValueError:
        return False


def test_every_changed_byte_of_a_sample_is_judged_rightly() -> None:
    """All 255 other values of every byte: canonical is exactly what the definition says."""
    assert is_canonical(SAMPLE)
    wrong, kept = [], 0
    for at in range(len(SAMPLE)):
        for octet in range(256):
            changed = SAMPLE[:at] + bytes([octet]) + SAMPLE[at + 1 :]
            said = is_canonical(changed)
            kept += said
            if said != oracle_is_canonical(changed):
                wrong.append(changed)
            if said and changed != SAMPLE:
                assert parse_strict(changed) != parse_strict(SAMPLE), "one value, one byte string"
    assert wrong == []
    assert kept > len(SAMPLE), "some changes give another canonical text"


def test_every_inserted_space_and_every_cut_is_seen() -> None:
    for at in range(len(SAMPLE) + 1):
        for space in (b" ", b"\n", b"\t", b"\r", b"\xef\xbb\xbf"):
            changed = SAMPLE[:at] + space + SAMPLE[at:]
            assert is_canonical(changed) == oracle_is_canonical(changed)
    assert not any(is_canonical(SAMPLE[:at]) for at in range(len(SAMPLE)))


@pytest.mark.parametrize(
    "data",
    [b"-0", b"1.0", b"1e2", b"1E+21", b"0.50", b'"\\/"', b'"\\u0041"', b'"\\u000a"', b'"\\u001F"',
     b'{"b":1,"a":2}', b"[ ]", b" 1", b"1\n", b"1e21", b"0.0000001"],
)  # fmt: skip
def test_valid_json_in_another_form_is_not_canonical(data: bytes) -> None:
    parse_strict(data)
    assert not is_canonical(data)


def test_writing_leaves_the_value_alone() -> None:
    value: dict[str, Any] = {"b": [2, {"y": 1, "x": 2}], "a": 1}
    before = json.dumps(value)
    writers: list[Callable[[object], bytes]] = [canonicalize, canonicalize_exact]
    for write in writers:
        write(value)
        assert json.dumps(value) == before
