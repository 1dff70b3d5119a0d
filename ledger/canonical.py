"""One value, one byte string: JSON Canonicalization Scheme (RFC 8785) over I-JSON (RFC 7493).

`canonicalize` is the only place that writes JSON into a ledger, and `parse_strict` the only one
that reads foreign JSON. Nothing is re-serialised to check history: verifiers hash stored bytes.

Cost: a value without floats and with ASCII keys takes one walk and one call of the C encoder (2 to
7 us for an event); everything else goes to the rfc8785 package, about ten times slower.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import rfc8785

from ledger.errors import BadInputError, BugError

MAX_INTEGER = 2**53 - 1
"""Largest integer that every JSON reader keeps exactly (RFC 7493 section 2.2)."""

MAX_DEPTH = 64
"""Deepest nesting that is read or written; real events need about eight levels."""

_MAX_SHOWN = 80

_encode = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"), check_circular=False
).encode


def canonicalize(value: object) -> bytes:
    """Encode a JSON value in its one canonical form.

    Noncharacters such as U+FFFE, which I-JSON forbids beside surrogates, pass as they do in every
    JCS implementation: they have UTF-8 and occur in what models write.

    Only the plain types are taken: a subclass (IntEnum, StrEnum, OrderedDict, numpy scalars) is
    refused, since which of its two faces is meant cannot be known here.

    `parse_strict` reads back an equal value, with one exception that RFC 8785 forces: a float from
    2^53 to below 1e21 in magnitude is written in plain digits, which `parse_strict` refuses because
    it could not tell them from an inexact integer. Ledger payloads hold no floats at all.

    Args:
        value: None, bool, int within +-(2^53-1), finite float, str without lone surrogates, list or
            tuple, dict with str keys.

    Raises:
        BadInputError: the value has no I-JSON form; the message names the path.

    Source: RFC 8785 sections 3.2.1 to 3.2.4; RFC 7493 sections 2.1 to 2.3.
    """
    return _write(value, plain=_walk(value, "$", 0))


def canonicalize_exact(value: object) -> bytes:
    """Like canonicalize, but refuses floats: the form of every envelope and event payload.

    Raises:
        BadInputError: as canonicalize, or the value holds a float.
    """
    plain = _walk(value, "$", 0)
    if not plain and (where := _first_path(value, "$", _is_float)):
        raise BadInputError(
            f"{_shown(where)} is a floating-point number",
            remedy="Write probabilities and money as decimal strings, masses as integers.",
        )
    return _write(value, plain=plain)


def parse_strict(data: bytes | str) -> Any:  # noqa: ANN401 - JSON is any of seven types
    """Read JSON as I-JSON demands: no duplicate keys, no NaN, exact integers, valid Unicode.

    Raises:
        BadInputError: with the reason and, where there is one, the offset or the path.
    """
    if not isinstance(data, bytes | str):
        # json.loads would guess an encoding for other buffers, UTF-16 among them.
        raise BadInputError(f"JSON is read from bytes or str, not {type(data).__name__}")
    try:
        value = json.loads(
            data.decode("utf-8") if isinstance(data, bytes) else data,
            object_pairs_hook=_object_without_duplicates,
            parse_constant=_refuse_constant,
            parse_int=_parse_exact_int,
        )
    except json.JSONDecodeError as error:
        raise BadInputError(f"not JSON: {error.msg} at offset {error.pos}") from error
    except UnicodeDecodeError as error:
        raise BadInputError(f"not UTF-8 at byte {error.start}") from error
    except RecursionError as error:
        raise BadInputError("JSON nested too deeply") from error
    _walk(value, "$", 0)
    if isinstance(data, str) or b"\\u" in data:
        # Bytes were decoded strictly, so that only an escape can bring a surrogate in.
        _refuse_surrogates(value)
    return value


def is_canonical(data: bytes) -> bool:
    """Say whether the bytes are exactly the canonical form of the value they hold."""
    try:
        return canonicalize(parse_strict(data)) == data
    except BadInputError:
        return False


def _write(value: object, *, plain: bool) -> bytes:
    try:
        if plain:
            return _encode(value).encode("utf-8")
        return rfc8785.dumps(value)  # type: ignore[arg-type]
    except (UnicodeEncodeError, rfc8785.CanonicalizationError):
        _refuse_surrogates(value)
        raise BugError("the canonical encoder refused a value that was checked") from None


def _walk(value: object, path: str, depth: int) -> bool:
    """Check every node; True where the C encoder's output is the canonical form."""
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return True
    if kind is int:
        if not -MAX_INTEGER <= value <= MAX_INTEGER:  # type: ignore[operator]
            raise BadInputError(
                f"{_shown(path)}: an integer beyond 2^53-1", remedy="Write it as a decimal string."
            )
        return True
    if kind is float:
        if not math.isfinite(value):  # type: ignore[arg-type]
            raise BadInputError(f"{_shown(path)}: {value} is not a JSON number")
        return False
    if depth >= MAX_DEPTH:
        raise BadInputError(f"{_shown(path)}: nested more than {MAX_DEPTH} levels deep")
    if kind is dict:
        return _walk_members(value, path, depth + 1)  # type: ignore[arg-type]
    if kind is list or kind is tuple:
        return _walk_items(value, path, depth + 1)  # type: ignore[arg-type]
    raise BadInputError(f"{_shown(path)}: {kind.__name__} is not a JSON type")


def _walk_members(members: dict[object, object], path: str, depth: int) -> bool:
    plain = True
    for key, item in members.items():
        if type(key) is not str:
            raise BadInputError(f"{_shown(path)}: a key is {type(key).__name__}, not a string")
        # Code-unit order and code-point order agree for ASCII, which is all our own keys.
        if not key.isascii():
            plain = False
        if type(item) is not str and not _walk(item, f"{path}.{key}", depth):
            plain = False
    return plain


def _walk_items(items: list[object] | tuple[object, ...], path: str, depth: int) -> bool:
    plain = True
    for index, item in enumerate(items):
        if type(item) is not str and not _walk(item, f"{path}[{index}]", depth):
            plain = False
    return plain


def _first_path(value: object, path: str, wanted: Callable[[object], bool]) -> str:
    """Path of the first node, key included, that is wanted; empty where there is none."""
    if wanted(value):
        return path
    pairs: Iterator[tuple[str, object]] = iter(())
    if isinstance(value, dict):
        if any(wanted(key) for key in value):
            return f"{path} (a key)"
        pairs = ((f"{path}.{key}", item) for key, item in value.items())
    elif isinstance(value, (list, tuple)):
        pairs = ((f"{path}[{index}]", item) for index, item in enumerate(value))
    return next((hit for at, item in pairs if (hit := _first_path(item, at, wanted))), "")


def _is_float(value: object) -> bool:
    return isinstance(value, float)


def _has_surrogate(value: object) -> bool:
    return isinstance(value, str) and any("\ud800" <= char <= "\udfff" for char in value)


def _refuse_surrogates(value: object) -> None:
    if where := _first_path(value, "$", _has_surrogate):
        raise BadInputError(
            f"{_shown(where)}: a string with a lone surrogate has no JSON form",
            remedy="Give valid Unicode.",
        )


def _shown(path: str) -> str:
    # A path holds keys from outside: it may be long, or not even printable.
    return path[:_MAX_SHOWN].encode("utf-8", "backslashreplace").decode("utf-8")


def _object_without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    out = dict(pairs)
    if len(out) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise BadInputError(f"the key {twice[:_MAX_SHOWN]!r} stands twice in one object")
    return out


def _refuse_constant(name: str) -> None:
    raise BadInputError(f"{name} is not a JSON number")


def _parse_exact_int(digits: str) -> int:
    # Length first: int() of a million digits is a denial of service.
    if len(digits) > 17 or not -MAX_INTEGER <= int(digits) <= MAX_INTEGER:
        raise BadInputError(f"the integer {digits[:20]} is beyond 2^53-1")
    return int(digits)


def format_readable(value: object) -> bytes:
    """Encode a JSON value for people: sorted keys, two spaces, one newline at the end.

    Deterministic, but not canonical: for output files, never for what is hashed in a ledger.
    """
    _walk(value, "$", 0)
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, indent=2)
    return (text + "\n").encode("utf-8")
