"""YAML without surprises: what was written is what is read, or it is refused with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.canonical import canonicalize_exact
from ledger.errors import BadInputError
from ledger.strict_yaml import MAX_BYTES, load_yaml, parse_yaml


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("True", "True"),
        ("NULL", "NULL"),
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("2025-09-15", "2025-09-15"),
        ("2025-09-15T00:00:00Z", "2025-09-15T00:00:00Z"),
        ("1e-4", "1e-4"),
        ("0.10", "0.10"),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("1:30", "1:30"),
        ("0x10", "0x10"),
        ("0o7", "0o7"),
        ("017", "017"),
        ("1_000", "1_000"),
        ("+1", "+1"),
        ("-0", "-0"),
        ("0", 0),
        ("-7", -7),
        ("9007199254740991", 2**53 - 1),
        ("12345678901234567", "12345678901234567"),
        ("'7'", "7"),
        ('"true"', "true"),
        ("'null'", "null"),
        ("|\n  a\n  b\n", "a\nb\n"),
        ("=", "="),
        ("<<: 1", {"<<": 1}),
        ("no: no", {"no": "no"}),
        ("1: 2", {"1": 2}),
        ("null: ~", {"null": None}),
        ("{a: [1, no, {b: }]}", {"a": [1, "no", {"b": None}]}),
        ("[]", []),
        ("{}", {}),
        ("a: ü", {"a": "ü"}),
        ("--- 1", 1),
        ("\ufeffa: 1", {"a": 1}),
    ],
    ids=range(42),
)
def test_scalars_are_what_they_look_like(text: str, value: object) -> None:
    found = parse_yaml(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("a: 1\na: 2", "f:2:1", "stands twice"),
        ('a: 1\nb: {c: 1, "c": 2}', "f:2:11", "stands twice"),
        ("a: &x 1\nb: *x", "f:1:4", "anchors"),
        ("- &x [*x]", "f:1:3", "anchors"),
        ("a: !!python/object:os.system x", "f:1:4", "tags"),
        ("a: !!str 1", "f:1:4", "tags"),
        ("!local {a: 1}", "f:1:1", "tags"),
        ("? [a, b]\n: 1", "f:1:3", "not text"),
        ("a: 1\n---\nb: 2", "f:2:1", "another document"),
        ("a: [1, 2", "f:1:", ""),
        ("a: b: c", "f:1:5", ""),
        ("\ta: 1", "f:1:1", ""),
        ('"open', "f:1:", ""),
        ("a: 1\n  b: 2", "f:2:4", ""),
    ],
    ids=range(14),
)
def test_surprises_are_refused_with_line_and_column(text: str, place: str, problem: str) -> None:
    with pytest.raises(BadInputError) as caught:
        parse_yaml(text, name="f")
    assert str(caught.value).startswith(place)
    assert problem in caught.value.what
    assert "\n" not in str(caught.value)


def test_letters_that_yaml_forbids_are_refused_in_one_line() -> None:
    with pytest.raises(BadInputError) as caught:
        parse_yaml("a: \x00", name="f")
    assert str(caught.value).startswith("f: is not YAML")
    assert "\n" not in str(caught.value)


def test_depth_is_no_way_to_crash() -> None:
    """event-log.md 6: nesting of more than 64 levels is refused."""
    for text in ("[" * 5_000, "[" * 65 + "]" * 65, "a: " + "{a: " * 3_000):
        with pytest.raises(BadInputError, match="nested more than 64"):
            parse_yaml(text)
    canonicalize_exact(parse_yaml("[" * 64 + "]" * 64))


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MAX_BYTES == 8 * 1024 * 1024
    monkeypatch.setattr("ledger.strict_yaml.MAX_BYTES", 1_000)
    good = tmp_path / "good.yaml"
    good.write_bytes("a: ü\r\nb: 1\r\n".encode())
    assert load_yaml(good) == {"a": "ü", "b": 1}
    with pytest.raises(BadInputError, match=r"missing\.yaml: cannot be read"):
        load_yaml(tmp_path / "missing.yaml")
    with pytest.raises(BadInputError, match="cannot be read"):
        load_yaml(tmp_path)
    odd = tmp_path / "odd.yaml"
    odd.write_bytes(b"a: \xff")
    with pytest.raises(BadInputError, match=r"odd\.yaml: is not UTF-8 at byte 3"):
        load_yaml(odd)
    odd.write_bytes(b"#" * 1_001)
    with pytest.raises(BadInputError, match="larger than"):
        load_yaml(odd)
    odd.write_bytes(b"#" * 1_000)
    assert load_yaml(odd) is None
    odd.write_text("a: 1\na: 2", encoding="utf-8")
    with pytest.raises(BadInputError, match=r"odd\.yaml:2:1"):
        load_yaml(odd)


@given(st.text(max_size=60))
def test_any_text_is_read_as_json_or_refused(text: str) -> None:
    try:
        value = parse_yaml(text)
    except BadInputError as error:
        assert "\n" not in error.where  # noqa: PT017 - a property over both ends
        return
    canonicalize_exact(value)
