"""When to try again and how long to wait: pure rules, and the one reader of Retry-After.

The wait doubles from try to try up to a cap, with full jitter: a uniform share of it, so that calls
that failed together do not come back together. Where the server says how long to wait, its word is
the least wait and jitter goes on top; a server that asks for longer than the cap is taken at its
word and the call fails.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime

from forecasting.ports import CallFailure
from ledger.errors import BadInputError
from ledger.ids import Entropy

Sleep = Callable[[float], Awaitable[None]]
"""Waits that many seconds; `asyncio.sleep` outside of tests."""

_FRACTION_BYTES = 4


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how slowly to try again.

    Args:
        tries: attempts of one call at most, the first included (1 to 100).
        first_wait_ms: the longest wait after the first attempt.
        longest_wait_ms: no wait grows beyond it.
        longest_asked_ms: a server that asks for a longer wait is not waited for.

    Raises:
        BadInputError: a number out of its range.
    """

    tries: int = 5
    first_wait_ms: int = 500
    longest_wait_ms: int = 60_000
    longest_asked_ms: int = 120_000

    def __post_init__(self) -> None:
        """Check the ranges."""
        if not 1 <= self.tries <= 100:
            raise BadInputError(f"{self.tries} tries are not between 1 and 100", where="tries")
        if not 0 <= self.first_wait_ms <= self.longest_wait_ms or self.longest_asked_ms < 0:
            raise BadInputError("the waits of a retry policy are negative or shrink")


def next_wait_ms(
    policy: RetryPolicy, failure: CallFailure, attempt: int, entropy: Entropy
) -> int | None:
    """Return how long to wait before the next attempt; None where there is none.

    Args:
        policy: the bounds.
        failure: why the attempt failed.
        attempt: its number, from 1.
        entropy: 4 bytes of it make the jitter.
    """
    if attempt >= policy.tries or not failure.is_retryable:
        return None
    asked = failure.retry_after_ms or 0
    if asked > policy.longest_asked_ms:
        return None
    # The exponent is bounded so that a hundredth try does not compute 2^99.
    longest = min(policy.longest_wait_ms, policy.first_wait_ms << min(attempt - 1, 32))
    share = int.from_bytes(entropy(_FRACTION_BYTES), "big")
    jitter = longest * share >> (8 * _FRACTION_BYTES)
    # A server's word spreads nobody; a tenth of the usual jitter keeps the delay close to it.
    return asked + jitter // 10 if asked else jitter


def parse_retry_after(headers: Mapping[str, str]) -> int | None:
    """Read how long a server asks to wait, in milliseconds; null where it does not say.

    `retry-after-ms` (OpenAI) goes before `Retry-After` (RFC 9110 section 10.2.3), which is a number
    of seconds or a date. A date is compared with the answer's own `Date`, so that a wrong clock on
    this machine does not matter; without one it says nothing.
    """
    milliseconds = _milliseconds(headers.get("retry-after-ms"), 1)
    if milliseconds is not None:
        return milliseconds
    text = headers.get("retry-after")
    seconds = _milliseconds(text, 1000)
    if seconds is not None:
        return seconds
    then, now = _http_date(text), _http_date(headers.get("date"))
    if then is None or now is None:
        return None
    return max(0, round((then - now).total_seconds() * 1000))


def _milliseconds(text: str | None, unit: int) -> int | None:
    # Plain digits only: float() would read 'nan', 'inf' and '1_0'.
    if text is None or len(text) > 20 or not text.replace(".", "", 1).isdecimal():
        return None
    return round(float(text) * unit)


def _http_date(text: str | None) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text) if text else None
    except ValueError:
        return None
    # An obsolete date without a zone compares with nothing.
    return moment if moment is not None and moment.tzinfo is not None else None
