"""Pulling Metaculus posts over httpx: one at a time, at a polite rate, the token never shown.

The service asks its users to go slowly, and its own client waits 3.5 seconds between requests; so
does this one, however many callers there are. A server that says 429 is waited for as it asks.
What comes back holds labels: give it to `forecasting.questions.metaculus.read_post` and nowhere
else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from typing import Literal
from urllib.parse import urlsplit

import httpx

from forecasting.ports import CallFailure
from forecasting.retry import RetryPolicy, Sleep, next_wait_ms
from forecasting.tools.exchange import EVENT_HOOKS, Exchange, Timer, find_failure, run_exchange
from ledger.errors import BadInputError
from ledger.ids import Entropy

BASE_URL = "https://www.metaculus.com"

Form = Literal["posts", "api2"]

_PATHS: Mapping[Form, str] = {"posts": "/api/posts/{}/", "api2": "/api2/questions/{}/"}
_MAX_BYTES = 16 * 1024 * 1024
_RETRY = RetryPolicy(tries=5, first_wait_ms=2_000, longest_wait_ms=60_000)


class MetaculusClient:
    """Fetches the bytes of posts.

    Args:
        token: of the account; never written anywhere.
        sleep, timer, entropy: waiting, seconds that never go back, and the jitter's bytes.
        form: `posts` (with texts) or `api2` (without).
        base_url: scheme, host and path before `/api`.
        interval_s: least time between the starts of two requests.
        timeout_s: for one attempt.

    Raises:
        BadInputError: no token, or one that no header can carry.
    """

    def __init__(
        self,
        token: str,
        *,
        sleep: Sleep,
        timer: Timer,
        entropy: Entropy,
        form: Form = "posts",
        base_url: str = BASE_URL,
        interval_s: float = 3.5,
        timeout_s: float = 60.0,
    ) -> None:
        if not token:
            raise BadInputError("Metaculus has no token", remedy="Set METACULUS_TOKEN.")
        self._secrets = frozenset({token})
        self._sleep = sleep
        self._timer = timer
        self._entropy = entropy
        self._path = _PATHS[form]
        self._base_url = base_url.rstrip("/")
        self._interval_s = interval_s
        self._timeout_s = timeout_s
        self._next_start: float | None = None
        self._lock = asyncio.Lock()
        self._http = httpx.AsyncClient(
            headers={"authorization": f"Token {token}", "accept": "application/json"},
            timeout=timeout_s,
            event_hooks=EVENT_HOOKS,
        )

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str], *, sleep: Sleep, timer: Timer, entropy: Entropy
    ) -> MetaculusClient:
        """Make the client from METACULUS_TOKEN and, if set, METACULUS_BASE_URL."""
        return cls(
            environment.get("METACULUS_TOKEN", ""),
            sleep=sleep,
            timer=timer,
            entropy=entropy,
            base_url=environment.get("METACULUS_BASE_URL") or BASE_URL,
        )

    async def fetch_post(self, post_id: int) -> bytes:
        """Fetch one post, trying again what may pass.

        Raises:
            BadInputError: no such post, the token is refused, or no answer after several tries; the
                message holds no word of the answer, which may be a label.
        """
        url = self._base_url + self._path.format(post_id)
        attempt = 1
        while True:
            exchange = await self._attempt(url)
            failure = find_failure(exchange)
            if failure is None:
                return exchange.scrub_octets(exchange.body or b"")
            wait_ms = next_wait_ms(_RETRY, failure, attempt, self._entropy)
            if wait_ms is None:
                raise _explain(post_id, failure, attempt)
            await self._sleep(wait_ms / 1000)
            attempt += 1

    async def close(self) -> None:
        """Release connections."""
        await self._http.aclose()

    async def _attempt(self, url: str) -> Exchange:
        async with self._lock:
            if self._next_start is not None and (wait := self._next_start - self._timer()) > 0:
                await self._sleep(wait)
            self._next_start = self._timer() + self._interval_s
            return await run_exchange(
                lambda: self._http.get(url),
                path=urlsplit(url).path,
                secrets=self._secrets,
                timeout_s=self._timeout_s,
                timer=self._timer,
                max_bytes=_MAX_BYTES,
            )


def _explain(post_id: int, failure: CallFailure, attempts: int) -> BadInputError:
    where = f"post {post_id}"
    if failure.status == HTTPStatus.NOT_FOUND:
        return BadInputError("Metaculus has no such post", where=where, remedy="Correct the id.")
    if failure.kind == "not_authorized":
        return BadInputError(
            "Metaculus refuses the token for this post",
            where=where,
            remedy="Set METACULUS_TOKEN to one that may see the question.",
        )
    status = "" if failure.status is None else f", HTTP {failure.status}"
    return BadInputError(
        f"Metaculus gave no answer in {attempts} tries ({failure.kind}{status})",
        where=where,
        remedy="Try again later.",
    )
