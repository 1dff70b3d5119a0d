"""Exa search through its own SDK: dated, from stored snapshots, never live, never the answer route.

Every request carries `endPublishedDate` and, where snapshots are on, `contents.snapshotAsOf` with
`maxAgeHours` -1: the newest stored text at or before as-of, and no live fetch. The published date
is the provider's estimate, so both are only a first sieve; `forecasting.timebox` is the second.
Exa's answer endpoint takes no date and is not used anywhere. Wire facts: exa-py 2.27.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

from forecasting.ports import Found, JsonObject, ToolAnswer, ToolRequest, ToolSpec
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
from ledger.clock import parse_moment
from ledger.decimals import round_money
from ledger.errors import BadInputError
from ledger.events.base import RawBytes

if TYPE_CHECKING:
    from exa_py import AsyncExa

BASE_URL = "https://api.exa.ai"
PATH = "/search"
