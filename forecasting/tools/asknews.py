"""AskNews search through its own SDK, in two lanes; every default of the SDK that leaks is set.

What the SDK would send by itself: `time_filter` crawl_date, `hours_back` 24 beside any timestamps,
`historical` false (which searches the last 48 hours of the wall clock) and `return_type` string.
Here `time_filter` is pub_date and `end_timestamp` is as-of, always; `hours_back` is never sent.

The lane `latest` starts 48 hours before as-of; the lane `archive` goes back as far as there is
news. `historical` is false in the lane `latest` alone, and only where as-of lies within 48 hours of
the wall clock: the service searches wall-clock news there, and an older as-of would find nothing.
What was sent is in `limits_sent`. Wire facts: asknews 0.14.6.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

from forecasting.ports import Found, ToolAnswer, ToolRequest, ToolSpec
from forecasting.providers.wire import failed
from forecasting.timebox import read_times
from forecasting.tools.arguments import SEARCH_PARAMETERS, SearchArguments, check_arguments
from forecasting.tools.exchange import (
    EVENT_HOOKS,
    Exchange,
    Timer,
    failed_answer,
    find_failure,
    read_answer,
    run_exchange,
)
from ledger.canonical import parse_strict
from ledger.clock import parse_date, parse_moment
from ledger.errors import BadInputError
from ledger.events.base import RawBytes

if TYPE_CHECKING:
    from asknews_sdk import AsyncAskNewsSDK
    from asknews_sdk.security import OAuth2ClientCredentials

BASE_URL: Final = "https://api.asknews.app"
TOKEN_URL: Final = "https://auth.asknews.app/oauth2/token"  # noqa: S105 - an address, no secret
LATEST_WINDOW: Final = timedelta(hours=48)

Lane = Literal["latest", "archive"]

_PATH = "/v1/news/search"
SPECS: Final[Mapping[Lane, ToolSpec]] = {
    "latest": ToolSpec(
        name="asknews_latest",
        description="Search news of the 48 hours before the as-of date.",
        parameters=SEARCH_PARAMETERS,
    ),
    "archive": ToolSpec(
        name="asknews_archive",
        description="Search the news archive up to the as-of date.",
        parameters=SEARCH_PARAMETERS,
    ),
}
_LIMITS = (
    "start_timestamp",
    "end_timestamp",
    "time_filter",
    "historical",
    "hours_back",
    "n_articles",
    "strategy",
    "method",
)


class AskNewsTool:
    """The search tools `asknews_latest` and `asknews_archive`, one a lane.

    Args:
        client_id, client_secret: never written anywhere; the secret and the token are scrubbed.
        lane: how far back to look.
        timer: measures latency.
        base_url: scheme and host; the SDK drops a path.
        token_url: where the token comes from; beside `base_url` where only that is changed.
        timeout_s: for the whole attempt, a token request included.
        max_results: articles asked for, 1 to 100.

    Raises:
        BadInputError: id or secret is missing, or the base URL has a path.
    """

    def __init__(
        self,
        client_id: str,
        client_secret: str,
        *,
        lane: Lane,
        timer: Timer,
        base_url: str = BASE_URL,
        token_url: str | None = None,
        timeout_s: float = 30.0,
        max_results: int = 10,
    ) -> None:
        if not client_id or not client_secret:
            raise BadInputError(
                "AskNews has no credentials", remedy="Set ASKNEWS_CLIENT_ID and ASKNEWS_SECRET."
            )
        self._secrets = frozenset({client_secret})
        self._lane: Lane = lane
        self._timer = timer
        self._timeout_s = timeout_s
        self._max_results = max_results
        base = base_url.rstrip("/")
        if urlsplit(base).path:
            raise BadInputError(
                f"the AskNews address {base!r} has a path, which its SDK would drop",
                remedy="Set ASKNEWS_BASE_URL to scheme and host alone.",
            )
        if token_url is None:
            token_url = TOKEN_URL if base == BASE_URL else f"{base}/oauth2/token"
        self._sdk, self._auth = _connect(client_id, client_secret, base, token_url, timeout_s)
        self._renewal = asyncio.Lock()

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str], *, lane: Lane, timer: Timer
    ) -> AskNewsTool:
        """Make the tool from ASKNEWS_CLIENT_ID, ASKNEWS_SECRET and, if set, ASKNEWS_BASE_URL."""
        return cls(
            environment.get("ASKNEWS_CLIENT_ID", ""),
            environment.get("ASKNEWS_SECRET", ""),
            lane=lane,
            timer=timer,
            base_url=environment.get("ASKNEWS_BASE_URL") or BASE_URL,
        )

    @property
    def spec(self) -> ToolSpec:
        """How a model sees the tool."""
        return SPECS[self._lane]

    async def search(self, request: ToolRequest) -> ToolAnswer:
        """Make one attempt; `docs/spec/timebox.md` says what is sent."""
        try:
            arguments = check_arguments(request.arguments, as_of=request.as_of)
        except BadInputError as error:
            return failed_answer(failed("bad_request", str(error)), None, {})
        limits = plan_limits(self._lane, arguments, as_of=request.as_of, now=request.now)
        exchange = await run_exchange(
            lambda: self._ask(arguments.query, limits),
            path=_PATH,
            secrets=self._secrets,
            timeout_s=self._timeout_s,
            timer=self._timer,
        )
        sent = _limits_sent(exchange)
        failure = find_failure(exchange)
        if failure is not None:
            return failed_answer(failure, exchange, sent)
        try:
            return _read_page(exchange, sent)
        except BadInputError as error:
            return failed_answer(failed("unreadable", str(error)), exchange, sent)

    async def close(self) -> None:
        """Release connections."""
        await self._sdk.close()

    async def _ask(self, query: str, limits: Mapping[str, Any]) -> None:
        # The SDK's own lock does not keep searches that start together from asking for a token
        # each: 21 searches asked for 21. The first one brings it for all.
        if self._auth.token.is_expired:
            async with self._renewal:
                if self._auth.token.is_expired:
                    await self._sdk.news.search_news(query, n_articles=self._max_results, **limits)
                    return
        await self._sdk.news.search_news(query, n_articles=self._max_results, **limits)


def plan_limits(lane: Lane, arguments: SearchArguments, *, as_of: str, now: str) -> dict[str, Any]:
    """Choose the arguments of the SDK's `search_news` that bound time; pure.

    Args:
        lane: how far back to look.
        arguments: `since` can only shorten the lane.
        as_of: becomes `end_timestamp`, whole seconds, rounded down.
        now: the wall clock; decides `historical` in the lane `latest`.
    """
    end = parse_moment(as_of)
    starts: list[datetime] = []
    if arguments.since is not None:
        starts.append(datetime.combine(parse_date(arguments.since), time(), UTC))
    if lane == "latest":
        starts.append(end - LATEST_WINDOW)
    return {
        "start_timestamp": int(max(starts).timestamp()) if starts else None,
        "end_timestamp": int(end.timestamp() // 1),
        "time_filter": "pub_date",
        "historical": lane == "archive" or abs(parse_moment(now) - end) > LATEST_WINDOW,
        "hours_back": None,
        "return_type": "dicts",
        "method": "nl",
        "strategy": "default",
        "try_cache": None,
    }


def _connect(
    client_id: str, client_secret: str, base_url: str, token_url: str, timeout_s: float
) -> tuple[AsyncAskNewsSDK, OAuth2ClientCredentials]:
    # The SDK's own models warn on import; exactly that warning is silenced, and only here.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Support for class-based `config`")
        from asknews_sdk import AsyncAskNewsSDK  # noqa: PLC0415 - 0.3 s only a search should pay
        from asknews_sdk.security import OAuth2ClientCredentials  # noqa: PLC0415

    auth = OAuth2ClientCredentials(client_id, client_secret, token_url, {"news"})
    sdk = AsyncAskNewsSDK(
        auth=auth,
        base_url=base_url,
        timeout=timeout_s,
        # A redirect would carry the token to whatever host it names.
        follow_redirects=False,
        event_hooks=EVENT_HOOKS,
    )
    return sdk, auth


def _limits_sent(exchange: Exchange) -> dict[str, str]:
    """Read the limits back from the query string that went out."""
    if exchange.sent is None:
        return {}
    query = exchange.sent.url.params
    return {name: query[name] for name in _LIMITS if name in query}


def _read_page(exchange: Exchange, limits: Mapping[str, str]) -> ToolAnswer:
    page, raw = read_answer(exchange)
    items = page.get("as_dicts")
    if items is None and "as_dicts" in page:
        items = []
    if not isinstance(items, list):
        raise BadInputError("the answer has no list of articles")
    read = [_read_article(item) for item in items]
    found = tuple(item for item in read if item is not None)
    cached = exchange.headers.get("x-cache", "").lower() == "hit"
    return ToolAnswer(
        found=found,
        failure=None,
        limits_sent=limits,
        cost_usd=None,
        raw_answer=raw,
        latency_ms=exchange.latency_ms,
        malformed=len(items) - len(found),
        notices=("x-cache: hit",) if cached else (),
    )


def read_recorded(raw: RawBytes) -> tuple[Found, ...]:
    """Read the articles out of an answer that an event holds: what `search` found then.

    Raises:
        BadInputError: it is no answer of this service.
    """
    page = parse_strict(raw.data)
    if not isinstance(page, dict) or not isinstance(items := page.get("as_dicts") or [], list):
        raise BadInputError("the recorded answer has no list of articles")
    return tuple(found for item in items if (found := _read_article(item)) is not None)


def _read_article(item: object) -> Found | None:
    """Read one article; None where it is no object or its url, title or summary is no text.

    The SDK's own model fails a whole page for one label it does not know; this reads what is used.
    """
    if not isinstance(item, dict):
        return None
    names = ("article_url", "eng_title", "title", "summary")
    texts = [item.get(name) for name in names]
    if any(text is not None and not isinstance(text, str) for text in texts):
        return None
    times = read_times(item.get("pub_date"), item.get("crawl_date"), None)
    return Found(
        url=texts[0],
        title=texts[1] or texts[2] or "",
        text=texts[3] or "",
        published=times.published,
        crawled=times.crawled,
        snapshot=None,
        unreadable_times=times.unreadable,
    )
