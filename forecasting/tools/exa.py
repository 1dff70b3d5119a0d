"""Exa search through its own SDK: dated, from stored snapshots, never live, never the answer route.

Every request carries `endPublishedDate` and, where snapshots are on, `contents.snapshotAsOf` with
`maxAgeHours` -1: the newest stored text at or before as-of, and no live fetch. The published date
is the provider's estimate, so both are only a first sieve; `forecasting.timebox` is the second.
Exa's answer endpoint takes no date and is not used anywhere. Wire facts: exa-py 2.27.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from decimal import ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING, Any, Final
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
from ledger.decimals import UNITS, format_units
from ledger.errors import BadInputError
from ledger.events.base import RawBytes

if TYPE_CHECKING:
    from exa_py import AsyncExa

BASE_URL: Final = "https://api.exa.ai"

SPEC: Final = ToolSpec(
    name="exa_search",
    description="Search web pages as they stood on the as-of date.",
    parameters=SEARCH_PARAMETERS,
)

_PATH = "/search"
_MAX_NOTICES = 20
_MAX_NOTICE = 200
_MAX_COST_USD = 1_000_000


class ExaTool:
    """The search tool `exa_search`.

    Args:
        api_key: never written anywhere.
        timer: measures latency.
        base_url: without a slash at the end.
        timeout_s: for the whole attempt.
        max_results: asked for, 1 to 25.
        max_characters: of text asked for from each page.
        snapshots: ask for stored snapshots; False only for an account that is not offered them.

    Raises:
        BadInputError: no key, or one that no header can carry.
    """

    def __init__(
        self,
        api_key: str,
        *,
        timer: Timer,
        base_url: str = BASE_URL,
        timeout_s: float = 30.0,
        max_results: int = 8,
        max_characters: int = 4_000,
        snapshots: bool = True,
    ) -> None:
        if not api_key:
            raise BadInputError("Exa has no key", remedy="Set EXA_API_KEY.")
        self._secrets = frozenset({api_key})
        self._timer = timer
        self._timeout_s = timeout_s
        self._max_results = max_results
        self._max_characters = max_characters
        self._snapshots = snapshots
        self._path = urlsplit(base_url).path.rstrip("/") + _PATH
        self._exa = _connect(api_key, base_url.rstrip("/"), timeout_s)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], *, timer: Timer) -> ExaTool:
        """Make the tool from EXA_API_KEY and, if set, EXA_BASE_URL."""
        return cls(
            environment.get("EXA_API_KEY", ""),
            timer=timer,
            base_url=environment.get("EXA_BASE_URL") or BASE_URL,
        )

    @property
    def spec(self) -> ToolSpec:
        """How a model sees the tool."""
        return SPEC

    async def search(self, request: ToolRequest) -> ToolAnswer:
        """Make one attempt; `docs/spec/timebox.md` says what is sent."""
        try:
            arguments = check_arguments(request.arguments, as_of=request.as_of)
        except BadInputError as error:
            return failed_answer(failed("bad_request", str(error)), None, {})
        options = self._options(arguments, request.as_of)
        exchange = await run_exchange(
            lambda: self._exa.search(arguments.query, **options),
            path=self._path,
            secrets=self._secrets,
            timeout_s=self._timeout_s,
            timer=self._timer,
        )
        limits = _limits_sent(exchange)
        failure = find_failure(exchange)
        if failure is not None:
            return failed_answer(failure, exchange, limits)
        try:
            return _read_page(exchange, limits)
        except BadInputError as error:
            return failed_answer(failed("unreadable", str(error)), exchange, limits)

    async def close(self) -> None:
        """Release connections."""
        await self._exa.aclose()

    def _options(self, arguments: SearchArguments, as_of: str) -> dict[str, Any]:
        # Milliseconds are cut, not rounded: the limit is never later than as-of.
        cutoff = f"{as_of[:23]}Z"
        contents: dict[str, Any] = {
            "text": {"max_characters": self._max_characters},
            "max_age_hours": -1,
        }
        if self._snapshots:
            contents["snapshot_as_of"] = cutoff
        options = {
            "contents": contents,
            "num_results": self._max_results,
            "end_published_date": cutoff,
            "type": "auto",
        }
        if arguments.since is not None:
            options["start_published_date"] = f"{arguments.since}T00:00:00.000Z"
        return options


def _connect(api_key: str, base_url: str, timeout_s: float) -> AsyncExa:
    from exa_py import AsyncExa, ExaWarning  # noqa: PLC0415 - 0.7 s that only a search should pay

    # The service's remarks are kept as notices; printed too, they would be noise, and under
    # warnings-as-errors they would lose a page.
    warnings.filterwarnings("ignore", category=ExaWarning)
    exa = AsyncExa(api_key, api_base=base_url, timeout=timeout_s)
    exa.client.event_hooks = EVENT_HOOKS
    return exa


def _limits_sent(exchange: Exchange) -> dict[str, str]:
    """Read the limits back from the body that went out."""
    if exchange.sent is None:
        return {}
    body = parse_strict(exchange.sent.content)
    contents = {f"contents.{key}": item for key, item in body.pop("contents", {}).items()}
    return {
        key: str(item)
        for key, item in {**body, **contents}.items()
        if key != "query" and isinstance(item, str | int)
    }


def _read_page(exchange: Exchange, limits: Mapping[str, str]) -> ToolAnswer:
    page, raw = read_answer(exchange)
    items = page.get("results")
    if not isinstance(items, list):
        raise BadInputError("the answer has no list of results")
    read = [_read_result(item) for item in items]
    found = tuple(item for item in read if item is not None)
    return ToolAnswer(
        found=found,
        failure=None,
        limits_sent=limits,
        cost_usd=_read_cost(page.get("costDollars")),
        raw_answer=raw,
        latency_ms=exchange.latency_ms,
        malformed=len(items) - len(found),
        notices=_read_notices(page.get("warnings")),
    )


def read_recorded(raw: RawBytes) -> tuple[Found, ...]:
    """Read the results out of an answer that an event holds: what `search` found then.

    Raises:
        BadInputError: it is no answer of this service.
    """
    page = parse_strict(raw.data)
    items = page.get("results") if isinstance(page, dict) else None
    if not isinstance(items, list):
        raise BadInputError("the recorded answer has no list of results")
    return tuple(found for item in items if (found := _read_result(item)) is not None)


def _read_result(item: object) -> Found | None:
    """Read one result; None where it is no object or its url, title or text is no text."""
    if not isinstance(item, dict):
        return None
    texts = [item.get(name) for name in ("url", "title", "text")]
    if any(text is not None and not isinstance(text, str) for text in texts):
        return None
    times = read_times(item.get("publishedDate"), item.get("crawlDate"), item.get("snapshotAt"))
    return Found(
        url=texts[0],
        title=texts[1] or "",
        text=texts[2] or "",
        published=times.published,
        crawled=times.crawled,
        snapshot=times.snapshot,
        unreadable_times=times.unreadable,
    )


def _read_cost(cost: object) -> str | None:
    total = cost.get("total") if isinstance(cost, dict) else None
    if isinstance(total, bool) or not isinstance(total, int | float):
        return None
    if not 0 <= total <= _MAX_COST_USD:
        return None
    units = (Decimal(repr(total)) * UNITS).to_integral_value(ROUND_HALF_EVEN)
    return format_units(int(units))


def _read_notices(remarks: object) -> tuple[str, ...]:
    if not isinstance(remarks, list):
        return ()
    lines = [
        " ".join(str(remark.get(key, "")) for key in ("code", "path", "message"))
        for remark in remarks[:_MAX_NOTICES]
        if isinstance(remark, dict)
    ]
    return tuple(" ".join(line.split())[:_MAX_NOTICE] for line in lines)
