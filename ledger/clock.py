"""Time as an argument: the clock port, and the one text form of a moment.

A moment is written `YYYY-MM-DDTHH:MM:SS.ffffffZ`: UTC, always six decimals, so that text order is
time order and a nanosecond is never silently dropped by a column (docs/spec/event-log.md).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

from ledger.errors import BadInputError

Clock = Callable[[], datetime]
"""Returns the present moment, timezone-aware. The system clock lives in cli/system.py."""


def format_moment(moment: datetime) -> str:
    """Write an aware datetime in the one form; raises BadInputError for a naive one."""
    if moment.tzinfo is UTC:
        return f"{moment.isoformat(timespec='microseconds')[:-6]}Z"
    if moment.utcoffset() is None:
        raise BadInputError("a time without a zone", remedy="Give it in UTC.")
    try:
        utc = moment.astimezone(UTC)
    except OverflowError as error:
        raise BadInputError(f"{moment.isoformat()} is outside the years 1 to 9999") from error
    # isoformat and not strftime, whose %Y drops the leading zeros of a year below 1000 on Linux.
    return f"{utc.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def parse_moment(text: str) -> datetime:
    """Read the one form back; anything that does not re-encode to itself is refused."""
    # fromisoformat takes many forms and is ten times faster than strptime; comparing decides.
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is not UTC or format_moment(moment) != text:
        raise BadInputError(
            f"{text!r} is not a time of the form YYYY-MM-DDTHH:MM:SS.ffffffZ",
            remedy="Write it in UTC with six decimals.",
        )
    return moment


def parse_date(text: str) -> date:
    """Read `YYYY-MM-DD`; anything that does not re-encode to itself is refused."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or day.isoformat() != text:
        raise BadInputError(f"{text!r} is not a date", remedy="Write it as YYYY-MM-DD.")
    return day


class SteppingClock:
    """A clock for tests and worked examples: each call is `step` later than the last."""

    def __init__(self, start: datetime, step: timedelta = timedelta(milliseconds=1)) -> None:
        self._next = start
        self._step = step

    def __call__(self) -> datetime:
        """Return the present moment and move on."""
        now = self._next
        self._next = now + self._step
        return now
