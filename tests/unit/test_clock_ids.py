"""Moments, dates, UUIDv7 and the seeded entropy of tests and worked examples."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.clock import SteppingClock, format_moment, parse_date, parse_moment
from ledger.errors import BadInputError
from ledger.ids import RANDOM_BYTES, SeededEntropy, format_uuid7

moments = st.datetimes(timezones=st.just(UTC))


class Undecided(tzinfo):
    """A zone that is set and says nothing: Python calls such a time naive."""

    def utcoffset(self, _when: datetime | None) -> None:
        return None

    def dst(self, _when: datetime | None) -> None:
        return None

    def tzname(self, _when: datetime | None) -> str:
        return "?"


@given(moments)
def test_a_moment_comes_back(moment: datetime) -> None:
    text = format_moment(moment)
    assert len(text) == 27
    assert parse_moment(text) == moment
    assert parse_moment(text).tzinfo is UTC


@given(moments, moments)
def test_text_order_is_time_order(one: datetime, two: datetime) -> None:
    """docs/spec/event-log.md: always UTC, always six decimals, so text sorts as time."""
    assert (format_moment(one) < format_moment(two)) == (one < two)


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 11, 21, 22, 0, tzinfo=UTC), "2026-11-21T22:00:00.000000Z"),
        (datetime(1, 1, 1, tzinfo=UTC), "0001-01-01T00:00:00.000000Z"),
        (datetime(987, 6, 5, tzinfo=UTC), "0987-06-05T00:00:00.000000Z"),
        (datetime.max.replace(tzinfo=UTC), "9999-12-31T23:59:59.999999Z"),
        (
            datetime(2026, 1, 1, 1, 30, 0, 7, timezone(timedelta(hours=2))),
            "2025-12-31T23:30:00.000007Z",
        ),
    ],
    ids=range(5),
)
def test_the_one_form(moment: datetime, text: str) -> None:
    assert format_moment(moment) == text
    assert parse_moment(text) == moment


def test_a_time_without_a_zone_is_refused() -> None:
    for zone in (None, Undecided()):
        with pytest.raises(BadInputError, match="without a zone"):
            format_moment(datetime(2026, 1, 1, tzinfo=zone))


def test_a_time_that_leaves_the_calendar_in_utc_is_refused() -> None:
    east, west = timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))
    for moment in (datetime.min.replace(tzinfo=east), datetime.max.replace(tzinfo=west)):
        with pytest.raises(BadInputError, match="outside the years"):
            format_moment(moment)


WRONG_MOMENTS = [
    *("", "2026-11-21", "2026-11-21T22:00:00Z", "2026-11-21T22:00:00.000Z"),
    *("2026-11-21T22:00:00.000000", "2026-11-21T22:00:00.000000+00:00", "20261121T220000.000000Z"),
    *("2026-11-21 22:00:00.000000Z", "2026-11-21t22:00:00.000000z", "2026-11-21T22:00:00,000000Z"),
    *("2026-11-21T22:00:00.0000000Z", "2026-11-21T22:00:00.000000001Z", " 2026-11-21T22:00:00Z"),
    *(
        "2026-11-21T22:00:00.000000Z\n",
        "2026-11-21T22:00:60.000000Z",
        "2026-11-21T24:00:00.000000Z",
    ),
    *("2026-02-30T22:00:00.000000Z", "2026-13-01T22:00:00.000000Z", "0000-01-01T00:00:00.000000Z"),
    *(
        "\u0662026-11-21T22:00:00.000000Z",
        "2026-W47-6T22:00:00.000000Z",
        "999-01-01T00:00:00.000000Z",
    ),
    *("2026-11-21T22:00:00.000000+01:00", "10000-01-01T00:00:00.000000Z"),
]


@pytest.mark.parametrize("text", WRONG_MOMENTS, ids=range(len(WRONG_MOMENTS)))
def test_any_other_spelling_of_a_moment_is_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="is not a time of the form"):
        parse_moment(text)


@given(st.dates())
def test_a_date_comes_back(day: date) -> None:
    assert parse_date(day.isoformat()) == day


WRONG_DATES = [
    *("", "20261121", "2026-W47-6", "2026-325", "2026-2-3", "2026-02-30", "2026-11-21\n"),
    *(" 2026-11-21", "2026-11-21T00:00:00", "26-11-21", "\u0662026-11-21", "0000-01-01"),
]


@pytest.mark.parametrize("text", WRONG_DATES, ids=range(len(WRONG_DATES)))
def test_any_other_spelling_of_a_date_is_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="is not a date"):
        parse_date(text)


def test_a_stepping_clock_steps() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    clock = SteppingClock(start, timedelta(seconds=2))
    assert [clock(), clock(), clock()] == [start + timedelta(seconds=n) for n in (0, 2, 4)]
    assert SteppingClock(start)() == start


def test_the_uuid_of_the_rfc() -> None:
    """RFC 9562 appendix A.6: the example UUIDv7 value."""
    rand_a, rand_b = 0xCC3, 0x18C4DC0C0C07398F
    random_bytes = (rand_a << 68 | rand_b).to_bytes(10, "big")
    text = format_uuid7(0x017F22E279B0, random_bytes)
    assert text == "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"


@given(st.integers(0, 2**48 - 1), st.binary(min_size=10, max_size=10))
def test_every_uuid_is_of_version_7(unix_ms: int, random_bytes: bytes) -> None:
    """RFC 9562 5.7: 48 bits of Unix milliseconds, version 7, variant 10."""
    text = format_uuid7(unix_ms, random_bytes)
    parsed = uuid.UUID(text)
    assert str(parsed) == text
    assert (parsed.version, parsed.variant) == (7, uuid.RFC_4122)
    assert parsed.int >> 80 == unix_ms


@given(st.integers(0, 2**48 - 2), st.binary(min_size=10, max_size=10))
def test_later_milliseconds_sort_later(unix_ms: int, random_bytes: bytes) -> None:
    assert format_uuid7(unix_ms, b"\xff" * 10) < format_uuid7(unix_ms + 1, random_bytes)


@pytest.mark.parametrize(
    ("unix_ms", "count"), [(-1, 10), (1 << 48, 10), (0, 9), (0, 11), (0, 0)], ids=range(5)
)
def test_what_makes_no_uuid_is_refused(unix_ms: int, count: int) -> None:
    """Fewer random bytes would give guessable ids, in the right form."""
    assert RANDOM_BYTES == 10
    with pytest.raises(BadInputError, match="UUIDv7"):
        format_uuid7(unix_ms, bytes(count))


def test_every_random_bit_that_the_layout_keeps_counts() -> None:
    base = format_uuid7(0, bytes(10))
    differ = [bit for bit in range(80) if format_uuid7(0, (1 << bit).to_bytes(10, "big")) != base]
    assert len(differ) == 74


def test_seeded_entropy_is_reproducible_and_never_repeats_itself() -> None:
    one, two = SeededEntropy("seed"), SeededEntropy("seed")
    drawn = [one(count) for count in (32, 10, 100, 1, 0)]
    assert [len(part) for part in drawn] == [32, 10, 100, 1, 0]
    assert drawn == [two(count) for count in (32, 10, 100, 1, 0)]
    assert one(32) != one(32)
    assert SeededEntropy("other")(32) != SeededEntropy("seed")(32)
