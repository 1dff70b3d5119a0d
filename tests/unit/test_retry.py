"""When a call is tried again, how long it waits, and what a server may ask for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecasting.ports import RETRYABLE, CallFailure
from forecasting.retry import RetryPolicy, next_wait_ms, parse_retry_after
from ledger.errors import BadInputError
from ledger.ids import SeededEntropy

POLICY = RetryPolicy(tries=5, first_wait_ms=500, longest_wait_ms=3_000, longest_asked_ms=120_000)
MOST = b"\xff\xff\xff\xff"


def wait(failure: CallFailure, attempt: int = 1, share: bytes = MOST) -> int | None:
    return next_wait_ms(POLICY, failure, attempt, lambda _: share)


@pytest.mark.parametrize("kind", sorted(RETRYABLE))
def test_the_wait_doubles_up_to_the_cap(kind: str) -> None:
    failure = CallFailure(kind, "x")  # type: ignore[arg-type]
    assert [wait(failure, n) for n in range(1, 6)] == [499, 999, 1999, 2999, None]
    assert wait(failure, 1, b"\0\0\0\0") == 0


@pytest.mark.parametrize(
    "kind",
    ["bad_request", "not_authorized", "out_of_quota", "over_budget", "refused", "truncated"],
)
def test_what_will_not_pass_is_not_tried_again(kind: str) -> None:
    assert wait(CallFailure(kind, "x")) is None  # type: ignore[arg-type]


def test_a_server_is_believed() -> None:
    """Its word is the least wait; more than the cap, or a final answer, ends the call."""
    asked = CallFailure("rate_limited", "x", retry_after_ms=7_000)
    assert wait(asked, 1, b"\0\0\0\0") == 7_000
    assert wait(asked) == 7_049
    assert wait(CallFailure("rate_limited", "x", retry_after_ms=120_001)) is None
    assert wait(CallFailure("rate_limited", "x", is_final=True)) is None


@given(st.integers(1, 100), st.integers(0, 200_000), st.text())
def test_no_wait_is_outside_its_bounds(attempt: int, asked: int, seed: str) -> None:
    policy = RetryPolicy(tries=100)
    failure = CallFailure("timeout", "x", retry_after_ms=asked or None)
    found = next_wait_ms(policy, failure, attempt, SeededEntropy(seed))
    if attempt >= 100 or asked > policy.longest_asked_ms:
        assert found is None
    else:
        assert found is not None
        assert asked <= found < asked + policy.longest_wait_ms


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3_000),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "1.5"}, 1_500),
        ({"retry-after-ms": "250", "retry-after": "9"}, 250),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9_000),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e9"}, None),
        ({"retry-after": "1_0"}, None),
        ({"retry-after": "."}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "9" * 21}, None),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        (
            {
                "retry-after": "Wed, 21 Oct 2026 07:28:00 GMT",
                "date": "Wed, 21 Oct 2026 07:27:30 GMT",
            },
            30_000,
        ),
        (
            {
                "retry-after": "Wed, 21 Oct 2026 07:27:00 GMT",
                "date": "Wed, 21 Oct 2026 07:27:30 GMT",
            },
            0,
        ),
        ({"retry-after": "yesterday", "date": "Wed, 21 Oct 2026 07:27:30 GMT"}, None),
    ],
)
def test_retry_after(headers: dict[str, str], expected: int | None) -> None:
    assert parse_retry_after(headers) == expected


@given(st.text(), st.text())
def test_retry_after_never_raises(asked: str, date: str) -> None:
    found = parse_retry_after({"retry-after": asked, "date": date})
    assert found is None or found >= 0


@pytest.mark.parametrize(
    "fields",
    [
        {"tries": 0},
        {"tries": 101},
        {"first_wait_ms": -1},
        {"first_wait_ms": 2, "longest_wait_ms": 1},
    ],
)
def test_a_policy_that_is_none(fields: dict[str, int]) -> None:
    with pytest.raises(BadInputError):
        RetryPolicy(**fields)
