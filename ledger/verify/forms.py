"""Forms: small functions that say whether a JSON value has the shape that a field demands.

A form returns None for a good value, and else where it is wrong, as a path such as
`.methods[2].draws`. The shapes themselves are in `payloads.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date

from ledger.verify.canonical import MAX_INTEGER
from ledger.verify.envelope import is_moment
from ledger.verify.text import show

Form = Callable[[object], str | None]

UNITS = 10**9
"""Units of 1e-9 in a probability or mass of one."""

_DECIMAL = re.compile(r"(-?)(0|[1-9][0-9]{0,17})(?:\.([0-9]{0,8}[1-9]))?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def parse_units(text: str) -> int | None:
    """Read a decimal string of at most nine places in its one form, as 1e-9 units; else None."""
    match = _DECIMAL.fullmatch(text)
    if match is None:
        return None
    units = int(match[2]) * UNITS + int((match[3] or "").ljust(9, "0"))
    if match[1]:
        return -units if units else None
    return units


def format_units(units: int) -> str:
    """Write 1e-9 units as a decimal string in its one form: 103500000 is 0.1035."""
    whole, part = divmod(abs(units), UNITS)
    text = f"{whole}.{part:09d}".rstrip("0").rstrip(".") if part else str(whole)
    return f"-{text}" if units < 0 else text


def text(most: int, least: int = 0) -> Form:
    """A string of `least` to `most` characters."""

    def check(value: object) -> str | None:
        if type(value) is str and least <= len(value) <= most:
            return None
        return f" is not a text of {least} to {most:,} characters"

    return check


def matching(pattern: str, what: str) -> Form:
    """A string that a pattern matches as a whole."""
    whole = re.compile(pattern).fullmatch

    def check(value: object) -> str | None:
        if type(value) is str and whole(value):
            return None
        return f" is not {what}: {show(value)}"

    return check


def where(condition: Callable[[str], bool], what: str) -> Form:
    """A string that satisfies a condition."""

    def check(value: object) -> str | None:
        if type(value) is str and condition(value):
            return None
        return f" is not {what}: {show(value)}"

    return check


def integer(low: int = 0, high: int = MAX_INTEGER) -> Form:
    """A whole number from `low` to `high`; true and false are none."""

    def check(value: object) -> str | None:
        if type(value) is int and low <= value <= high:
            return None
        return f" is not a whole number from {low} to {high}: {show(value)}"

    return check


def one_of(*words: str) -> Form:
    """One of a few words."""
    known = frozenset(words)

    def check(value: object) -> str | None:
        if type(value) is str and value in known:
            return None
        return f" is none of {', '.join(words)}: {show(value)}"

    return check


def boolean(value: object) -> str | None:
    """True or false."""
    return None if value is True or value is False else f" is not true or false: {show(value)}"


def true(value: object) -> str | None:
    """The value true."""
    return None if value is True else f" is not true: {show(value)}"


def nullable(form: Form) -> Form:
    """Null, or what the form admits."""

    def check(value: object) -> str | None:
        return None if value is None else form(value)

    return check


def array(form: Form, least: int = 0) -> Form:
    """An array of at least `least` items of one form."""

    def check(value: object) -> str | None:
        if type(value) is not list or len(value) < least:
            return f" is not an array of at least {least} items"
        for index, item in enumerate(value):
            wrong = form(item)
            if wrong is not None:
                return f"[{index}]{wrong}"
        return None

    return check


def mapping(form: Form) -> Form:
    """An object with any keys and values of one form."""

    def check(value: object) -> str | None:
        if type(value) is not dict:
            return " is not an object"
        for key, item in value.items():
            wrong = form(item)
            if wrong is not None:
                return f".{show(key)}{wrong}"
        return None

    return check


def record(**fields: Form) -> Form:
    """An object with exactly these keys."""
    keys = fields.keys()
    items = tuple(fields.items())

    def check(value: object) -> str | None:
        if type(value) is not dict:
            return " is not an object"
        if value.keys() != keys:
            return _odd_keys(value.keys() - keys, keys - value.keys())
        for key, form in items:
            wrong = form(value[key])
            if wrong is not None:
                return f".{key}{wrong}"
        return None

    return check


def _odd_keys(extra: set[str], missing: set[str]) -> str:
    if missing:
        return f" lacks {', '.join(sorted(missing))}"
    return f" has unknown keys {show(sorted(extra))}"


def _is_date(value: str) -> bool:
    if _DATE.fullmatch(value) is None:
        return False
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


def _is_probability(value: str) -> bool:
    units = parse_units(value)
    return units is not None and 0 <= units <= UNITS


ANY_TEXT = text(MAX_INTEGER)
IDENTIFIER = matching(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}", "an identifier")
NAME = text(200, 1)
TEXT = text(1_000_000)
SENTENCE = text(4_000, 1)
DIGEST = matching(r"[0-9a-f]{64}", "64 lower-case hexadecimal digits")
LOG_ID = matching(r"[0-9a-f-]{36}", "a log id")
PRINTED = matching(r"-?(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,18})?", "a plain decimal")
CURRENCY = matching(r"[A-Z]{3}", "a currency")
RULE_NAME = matching(r"[a-z][a-z0-9-]{0,48}/[1-9][0-9]{0,3}", "a versioned rule")
MOMENT = where(is_moment, "a time of the form YYYY-MM-DDTHH:MM:SS.ffffffZ")
DATE = where(_is_date, "a date of the form YYYY-MM-DD")
PROBABILITY = where(_is_probability, "a probability of at most nine places")
DECIMAL9 = where(lambda value: parse_units(value) is not None, "a decimal of at most nine places")
MASS_UNITS = integer(0, UNITS)
SEQ = integer()
COUNT = integer()
DRAW = integer(1, 1_000_000)
ANSWER = one_of("yes", "no")
