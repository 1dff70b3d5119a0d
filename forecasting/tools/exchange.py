"""One HTTP exchange of an SDK, recorded as it went over the wire, and its failure named.

The SDKs lose what an audit needs: Exa turns each error into a bare ValueError without headers, and
AskNews fails a whole page for one odd article. So the request and the answer are recorded by event
hooks of the SDK's own httpx client, and read from there. Credentials are removed from everything
that leaves this module, also where a server sends them back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import httpx

from forecasting.ports import CallFailure, FailureKind, ToolAnswer
from forecasting.providers.secrecy import Scrubber
from forecasting.providers.wire import failed, to_raw
from forecasting.retry import parse_retry_after
from ledger.canonical import canonicalize, parse_strict
from ledger.errors import BadInputError
from ledger.events.base import RawBytes

MAX_ANSWER_BYTES = 750_000
"""Longest answer that is read: its base64 form still fits into an event's text field."""

Timer = Callable[[], float]
"""Seconds from any fixed start, never going back; only differences are used."""

_MIN_SECRET = 6
_MAX_SAID = 300


@dataclass(slots=True)
class Exchange:
    """What went over the wire in one attempt at `path`; other requests, such as tokens, do not.

    Attributes:
        path: URL path whose exchange is recorded.
        sent: the request, None where it was never begun.
        status, headers, body: of the answer, None or empty until it came.
        error: what the SDK raised, if it did.
        latency_ms: from the call to its end.
        scrubbers: by the credential that each removes; those found on requests are added.
        max_bytes: longest body that is read.
    """

    path: str
    scrubbers: dict[str, Scrubber]
    max_bytes: int = MAX_ANSWER_BYTES
    sent: httpx.Request | None = None
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    error: Exception | None = None
    latency_ms: int = 0

    def scrub(self, text: str) -> str:
        """Replace every credential in a text, and long parts of it."""
        for scrubber in self.scrubbers.values():
            text = scrubber.text(text)
        return text

    def scrub_octets(self, data: bytes) -> bytes:
        """Replace every credential in octets, and long parts of it."""
        for scrubber in self.scrubbers.values():
            data = scrubber.octets(data)
        return data

    def guard(self, credentials: Iterable[str]) -> None:
        """Add credentials that must not leave; fewer than six characters are no credential."""
        for secret in credentials:
            if len(secret) >= _MIN_SECRET and secret not in self.scrubbers:
                self.scrubbers[secret] = Scrubber(secret)


class _AnswerTooLongError(Exception):
    """The body went beyond its limit and was not read on."""


class _BoundedStream(httpx.AsyncByteStream):
    """A response body that ends in an error beyond `max_bytes`."""

    def __init__(self, inner: httpx.AsyncByteStream, max_bytes: int) -> None:
        self._inner = inner
        self._max_bytes = max_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._max_bytes
        async for chunk in self._inner:
            left -= len(chunk)
            if left < 0:
                raise _AnswerTooLongError
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


# Plumbing, not policy: httpx runs its hooks in the task that makes the call, and this hands them
# the record of that very call. Nothing about as-of travels this way.
_CURRENT: ContextVar[Exchange | None] = ContextVar("exchange", default=None)


async def _note_request(request: httpx.Request) -> None:
    # Compressed answers could unpack to a thousand times MAX_ANSWER_BYTES.
    request.headers["accept-encoding"] = "identity"
    exchange = _CURRENT.get()
    if exchange is None:
        return
    exchange.guard(_credentials(request))
    if request.url.path == exchange.path:
        exchange.sent = request


async def _note_response(response: httpx.Response) -> None:
    if response.headers.get("content-encoding", "identity") != "identity":
        raise httpx.DecodingError("a compressed answer to a request that takes none")
    if not isinstance(response.stream, httpx.AsyncByteStream):
        raise httpx.DecodingError("an answer that is no stream")
    exchange = _CURRENT.get()
    max_bytes = MAX_ANSWER_BYTES if exchange is None else exchange.max_bytes
    response.stream = _BoundedStream(response.stream, max_bytes)
    if exchange is None or response.request.url.path != exchange.path:
        return
    exchange.status = response.status_code
    exchange.headers = dict(response.headers.items())
    exchange.body = await response.aread()


EVENT_HOOKS: dict[str, list[Callable[..., Any]]] = {
    "request": [_note_request],
    "response": [_note_response],
}
"""For the `event_hooks` of the httpx client that an SDK uses."""


async def run_exchange(
    call: Callable[[], Awaitable[object]],
    *,
    path: str,
    secrets: frozenset[str],
    timeout_s: float,
    timer: Timer,
    max_bytes: int = MAX_ANSWER_BYTES,
) -> Exchange:
    """Make one SDK call and record it; whatever the SDK raises is kept in the record.

    Args:
        call: the SDK call, on a client that has EVENT_HOOKS.
        path: URL path of the request to record.
        secrets: credentials that must not appear in any record.
        timeout_s: limit for the whole attempt, also against a server that sends a byte a second.
        timer: measures the latency.
        max_bytes: longest body that is read.
    """
    exchange = Exchange(path, {}, max_bytes)
    exchange.guard(secrets)
    token = _CURRENT.set(exchange)
    began = timer()
    try:
        async with asyncio.timeout(timeout_s):
            await call()
    except Exception as error:  # noqa: BLE001 - an SDK raises anything, even AttributeError
        exchange.error = error
    finally:
        _CURRENT.reset(token)
        exchange.latency_ms = max(0, round((timer() - began) * 1000))
    return exchange


def find_failure(exchange: Exchange) -> CallFailure | None:
    """Name what went wrong before the body is read; None where there is a 200 with a body."""
    error = exchange.error
    if isinstance(error, httpx.HTTPStatusError) and exchange.status is None:
        # The token request failed; its answer is never kept, since it may hold a token.
        return _describe_status(exchange, error.response.status_code, error.response.headers)
    if exchange.body is not None and exchange.status is not None:
        if exchange.status == HTTPStatus.OK:
            return None
        return _describe_status(exchange, exchange.status, exchange.headers)
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        return failed("timeout", "no complete answer in time")
    if isinstance(error, _AnswerTooLongError):
        return failed("unreadable", f"an answer of more than {exchange.max_bytes:,} bytes")
    if isinstance(error, httpx.DecodingError):
        return failed("unreadable", exchange.scrub(str(error)))
    kind: FailureKind = "connection" if isinstance(error, httpx.TransportError) else "bad_request"
    name = "no request was made" if error is None else f"{type(error).__name__}: {error}"
    return failed(kind, exchange.scrub(name))


def read_answer(exchange: Exchange) -> tuple[dict[str, Any], RawBytes]:
    """Read the body of a 200 strictly as a JSON object, credentials removed first.

    Raises:
        BadInputError: no UTF-8, no I-JSON, no object, or a credential hidden behind escapes.
    """
    raw = record_answer(exchange)
    if raw is None or raw.encoding != "utf-8":
        raise BadInputError("the answer cannot be kept, or is not UTF-8")
    value = parse_strict(raw.data)
    if not isinstance(value, dict):
        raise BadInputError(f"the answer is {type(value).__name__}, not an object")
    return value, raw


def record_answer(exchange: Exchange) -> RawBytes | None:
    """Keep the body octet for octet, credentials removed; None where there is none to keep.

    A body in which a credential stands behind JSON escapes is not kept at all.
    """
    if exchange.body is None:
        return None
    body = exchange.scrub_octets(exchange.body)
    if _hides_credential(exchange, body):
        return None
    media = exchange.scrub(exchange.headers.get("content-type", ""))
    return to_raw(body, media or "application/octet-stream")


def failed_answer(
    failure: CallFailure, exchange: Exchange | None, limits_sent: Mapping[str, str]
) -> ToolAnswer:
    """Make the answer of an attempt that found nothing because it failed."""
    return ToolAnswer(
        found=(),
        failure=failure,
        limits_sent=limits_sent,
        cost_usd=None,
        raw_answer=None if exchange is None else record_answer(exchange),
        latency_ms=0 if exchange is None else exchange.latency_ms,
    )


def _describe_status(exchange: Exchange, status: int, headers: Mapping[str, str]) -> CallFailure:
    body = exchange.scrub_octets(exchange.body or b"")
    said = "" if _hides_credential(exchange, body) else body.decode("utf-8", "replace")
    detail = failed(_kind_of_status(status), f"HTTP {status} {said[:_MAX_SAID]}".strip()).detail
    return CallFailure(
        kind=_kind_of_status(status),
        detail=detail,
        status=status,
        retry_after_ms=parse_retry_after(headers),
    )


def _kind_of_status(status: int) -> FailureKind:
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return "rate_limited"
    if status == HTTPStatus.REQUEST_TIMEOUT:
        return "timeout"
    if status == HTTPStatus.PAYMENT_REQUIRED:
        return "out_of_quota"
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return "not_authorized"
    return "server_error" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "bad_request"


def _credentials(request: httpx.Request) -> set[str]:
    key = request.headers.get("x-api-key", "")
    scheme, _, credential = request.headers.get("authorization", "").partition(" ")
    return {key, credential or scheme}


def _hides_credential(exchange: Exchange, body: bytes) -> bool:
    if b"\\" not in body:
        return False
    try:
        plain = canonicalize(parse_strict(body))
    except BadInputError:
        return False  # Not JSON: its escapes are nobody's to undo.
    return any(scrubber.is_in(plain) for scrubber in exchange.scrubbers.values())
