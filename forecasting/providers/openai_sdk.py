"""One route to an OpenAI-compatible endpoint, through the openai SDK's asynchronous client.

The SDK's `post` is used with octets of our own and a raw response, not its typed methods: the
octets recorded are then exactly those sent, and the SDK's pydantic parsing (which costs as much CPU
as the rest of a call and validates nothing: a minimal or HTML answer passes) is replaced by ours.
The SDK keeps what it is good at: the connection pool, headers, authentication, timeouts and the
error tree. Its own retries are off, so that every attempt is an event.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from forecasting.ports import CallFailure, FailureKind, ModelAnswer, ModelRequest
from forecasting.providers.secrecy import Scrubber
from forecasting.providers.wire import (
    Wire,
    WireAnswer,
    failed,
    member,
    read_body,
    request_record,
    short_name,
    to_raw,
    unanswered,
)
from forecasting.retry import parse_retry_after
from ledger.errors import BadInputError
from ledger.events.base import RawBytes

if TYPE_CHECKING:
    import httpx2
    import openai

MonotonicS = Callable[[], float]
"""Seconds from an arbitrary start that never go back, such as `time.perf_counter`."""

_CONNECT_S = 10.0
_MAX_ENCODED = 256

_QUOTA_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
_BY_STATUS: Mapping[int, FailureKind] = {
    401: "not_authorized",
    402: "out_of_quota",
    403: "not_authorized",
    408: "timeout",
    409: "server_error",
    429: "rate_limited",
}


class OpenAIProvider:
    """Calls one endpoint by one wire format.

    Args:
        provider: who is asked, as events name it.
        wire: the wire format.
        base_url: where, such as `https://api.openai.com/v1`.
        api_key: the key, or None for a server that asks for none. It is kept by the client alone.
        monotonic_s: for latencies.
        max_connections: calls that may be in flight at once.

    Raises:
        BadInputError: a base URL that is none or holds credentials, or a key no header can carry.
    """

    def __init__(
        self,
        *,
        provider: str,
        wire: Wire,
        base_url: str,
        api_key: str | None,
        monotonic_s: MonotonicS,
        max_connections: int = 64,
    ) -> None:
        self._provider = provider
        self._wire = wire
        # Whole, since joining a path to the base URL on each call costs the SDK 50 us.
        self._url = check_base_url(base_url) + wire.path
        self._scrubber = Scrubber(api_key)
        self._monotonic_s = monotonic_s
        self._encoded: dict[int, tuple[ModelRequest, bytes]] = {}
        self._client = _open_client(self._url.removesuffix(wire.path), api_key, max_connections)

    @property
    def provider(self) -> str:
        """Who is asked."""
        return self._provider

    @property
    def route(self) -> str:
        """By which interface."""
        return self._wire.route

    def encode(self, request: ModelRequest) -> bytes:
        """Return the octets that `call` sends; the last few are kept, since `call` follows."""
        body = self._wire.encode(request)
        if len(self._encoded) >= _MAX_ENCODED:
            self._encoded.clear()
        self._encoded[id(request)] = (request, body)
        return body

    async def call(self, request: ModelRequest) -> ModelAnswer:
        """Make one attempt (see Provider.call)."""
        # The entry holds the request, so its id is not another's.
        body = self._encoded.pop(id(request), (None, None))[1] or self._wire.encode(request)
        if self._scrubber.is_whole_in(body):
            raise BadInputError(
                "the request holds the API key, so it is not sent",
                remedy="Look where the prompt is made from the environment.",
            )
        recorded = request_record(body)
        started = self._monotonic_s()
        answer = await self._send(body, request)
        latency_ms = round((self._monotonic_s() - started) * 1000)
        if isinstance(answer, CallFailure):
            return unanswered(body, answer, latency_ms=latency_ms)
        return self._read(answer, recorded, latency_ms)

    async def close(self) -> None:
        """Release connections."""
        await self._client.close()

    async def _send(self, body: bytes, request: ModelRequest) -> httpx2.Response | CallFailure:
        """Return the server's answer whatever its status, or why none came."""
        import httpx2  # noqa: PLC0415 - 0.1 s that commands without calls do not pay
        import openai  # noqa: PLC0415 - 0.5 s likewise

        seconds = request.timeout_s
        try:
            # The client's timeout bounds one read; a server that drips is stopped by this one.
            async with asyncio.timeout(seconds):
                return await self._client.post(
                    self._url,
                    content=body,
                    cast_to=httpx2.Response,
                    options={
                        "headers": _headers(request),
                        "timeout": httpx2.Timeout(seconds, connect=min(seconds, _CONNECT_S)),
                    },
                )
        except openai.APIStatusError as error:
            return error.response
        except (TimeoutError, openai.APITimeoutError):
            return failed("timeout", f"no whole answer within {seconds:g} s")
        except openai.OpenAIError as error:
            cause = error.__cause__ or error
            detail = f"no answer: {type(cause).__name__}: {cause}"
            return failed("connection", self._scrubber.text(detail))

    def _read(self, answer: httpx2.Response, sent: RawBytes, latency_ms: int) -> ModelAnswer:
        data = self._scrubber.octets(answer.content)
        media = answer.headers.get("content-type", "application/octet-stream")
        raw = to_raw(data, self._scrubber.text(media))
        if raw is None:
            said = WireAnswer(failure=failed("unreadable", f"an answer of {len(data)} bytes"))
        elif answer.status_code == 200:
            said = self._wire.decode(data)
        else:
            said = WireAnswer(failure=read_status(answer.status_code, answer.headers, data))
        return ModelAnswer(
            text=said.text,
            tool_calls=said.tool_calls,
            failure=said.failure,
            resolved_model=said.resolved_model,
            response_id=said.response_id,
            request_id=short_name(self._scrubber.text(answer.headers.get("x-request-id", ""))),
            fingerprint=said.fingerprint,
            usage=said.usage,
            raw_request=sent,
            raw_answer=raw,
            latency_ms=latency_ms,
        )


def read_status(status: int, headers: Mapping[str, str], body: bytes) -> CallFailure:
    """Say what an answer of another status than 200 means.

    Args:
        status: the HTTP status.
        headers: the answer's headers, names in lower case or a mapping that ignores case.
        body: the scrubbed body: a JSON error object, or whatever a gateway writes.
    """
    document = read_body(body)
    error = member(document, "error") if not isinstance(document, CallFailure) else {}
    said = error.get("message") or body[:200].decode("utf-8", "replace")
    kind = _BY_STATUS.get(status) or ("server_error" if status >= 500 else "bad_request")
    if status == 429 and error.get("code") in _QUOTA_CODES:
        kind = "out_of_quota"
    failure = failed(kind, f"HTTP {status}: {said}", status=status)
    return CallFailure(
        kind,
        failure.detail,
        status=status,
        retry_after_ms=parse_retry_after(headers),
        is_final=headers.get("x-should-retry") == "false",
    )


def check_base_url(url: str) -> str:
    """Return a base URL without a slash at its end.

    Raises:
        BadInputError: not http or https, no host, or with credentials, a query or a fragment.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInputError("the base URL is not an http or https address", where="base URL")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise BadInputError(
            "the base URL holds more than scheme, host, port and path",
            where="base URL",
            remedy="Credentials belong into the API key variable.",
        )
    return url.rstrip("/")


def _headers(request: ModelRequest) -> dict[str, str]:
    key = request.idem_key
    if key is None:
        return {}
    if not (key.isascii() and key.isprintable()):
        raise BadInputError(f"{key[:40]!r} cannot be an Idempotency-Key", where="idem_key")
    return {"Idempotency-Key": key}


def _open_client(base_url: str, api_key: str | None, connections: int) -> openai.AsyncOpenAI:
    import openai  # noqa: PLC0415 - see _send

    from forecasting.providers.pool import open_http_client  # noqa: PLC0415

    return openai.AsyncOpenAI(
        # The SDK insists on a key; servers that ask for none ignore this one.
        api_key=api_key or "none",
        base_url=base_url,
        max_retries=0,
        http_client=open_http_client(base_url, connections),
    )
