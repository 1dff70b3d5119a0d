"""The verifier's own strict JSON reader and canonical encoder (RFC 8785, RFC 7493).

Written from docs/spec/event-log.md, not from the writer's code: the two meet only in bytes. No
float exists in an envelope or a payload, so the number formatting of RFC 8785 section 3.2.2.3 is
not needed: a float is refused.

Cost: 1 us for a small object, 5 us for a payload of 1 kB; non-ASCII text about double.
"""

from __future__ import annotations

import json
from typing import Any

MAX_INTEGER = 2**53 - 1
"""Largest integer that every JSON reader keeps exactly (RFC 7493 section 2.2)."""

MAX_DEPTH = 64
"""Deepest nesting that is read (docs/spec/event-log.md, rule 6)."""

_MAX_DIGITS = 17
_encode_sorted = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"), check_circular=False
).encode
_encode_in_order = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), check_circular=False
).encode


class JsonError(ValueError):
    """The bytes are not JSON as docs/spec/event-log.md rule 6 admits it; the message says why."""


def parse_json(data: bytes) -> Any:  # noqa: ANN401 - JSON is any of six types
    """Read strict JSON: objects, arrays, strings, null, booleans and integers within +-(2^53-1).

    Raises:
        JsonError: not UTF-8, not JSON, a duplicate key, a float, an integer beyond 2^53-1, a lone
            surrogate, or nesting of more than 64 levels.
    """
    try:
        text = data.decode("utf-8")
        value = _decode(text)
        if data.count(b"{") + data.count(b"[") > MAX_DEPTH:
            _refuse_depth(value)
        if b"\\u" in data:
            _encode_in_order(value).encode("utf-8")
    except UnicodeDecodeError as error:
        raise JsonError(f"not UTF-8 at byte {error.start}") from error
    except UnicodeEncodeError as error:
        raise JsonError("a lone surrogate") from error
    except json.JSONDecodeError as error:
        raise JsonError(f"not JSON at offset {error.pos}: {error.msg}") from error
    except RecursionError as error:
        raise JsonError(f"nested more than {MAX_DEPTH} levels deep") from error
    return value


def encode_canonical(value: object) -> bytes:
    """Write a value that `parse_json` returned in its one canonical form (RFC 8785)."""
    return _encode_in_order(_sort_keys(value)).encode("utf-8")


def is_canonical(data: bytes, value: object) -> bool:
    """Say whether `data`, which `parse_json` read as `value`, is the value's canonical form."""
    if data.isascii():
        # Python sorts keys by code point, RFC 8785 by UTF-16 unit. They differ beyond ASCII only,
        # and a value with such a key has no canonical form that is ASCII.
        return _encode_sorted(value).encode("utf-8") == data
    return encode_canonical(value) == data


def _sort_keys(value: object) -> object:
    if isinstance(value, dict):
        ordered = sorted(value.items(), key=_utf16)
        return {key: _sort_keys(item) for key, item in ordered}
    if isinstance(value, list):
        return [_sort_keys(item) for item in value]
    return value


def _utf16(pair: tuple[str, object]) -> bytes:
    return pair[0].encode("utf-16-be")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise JsonError("a key stands twice in one object")
    return out


def _integer(digits: str) -> int:
    # Length first: int() of a million digits is a denial of service.
    if len(digits) > _MAX_DIGITS or not -MAX_INTEGER <= int(digits) <= MAX_INTEGER:
        raise JsonError("an integer beyond 2^53-1")
    return int(digits)


def _no_float(text: str) -> object:
    raise JsonError(f"{text[:20]} is not an integer")


_decode = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_no_float, parse_constant=_no_float
).decode


def _refuse_depth(value: object, depth: int = 0) -> None:
    if not isinstance(value, (dict, list)):
        return
    if depth >= MAX_DEPTH:
        raise JsonError(f"nested more than {MAX_DEPTH} levels deep")
    for item in value.values() if isinstance(value, dict) else value:
        _refuse_depth(item, depth + 1)
