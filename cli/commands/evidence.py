"""`ledger evidence`: what searches brought, every time it claims, and the timebox's verdict."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from cli.rendering import print_json_rows, print_table, say
from cli.wiring import DEFAULT_LEDGER, JsonOption, LedgerOption, reading
from forecasting.accounts import evidence_rows, read_calls
from ledger.errors import BadInputError
from ledger.events.codec import read_event
from ledger.protocol.state import ProtocolState, apply
from ledger.store.port import Store

_SHOWN = ("seq", "card", "method", "tool", "published", "crawled", "snapshot", "rule", "title")
_LONGEST_TITLE = 48


def evidence(
    card: Annotated[str | None, typer.Option("--card", help="One card; all without it.")] = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    json: JsonOption = False,
) -> None:
    """List the evidence of a run with its times and verdicts.

    Published, crawled and snapshot are what the source claims; retrieved-at is this log's clock.
    """
    with reading(ledger) as store:
        if card is not None:
            _check_card(store, card)
        rows = evidence_rows(read_calls(store), card=card)
        if json:
            print_json_rows(rows)
            return
        kept = list(rows)
    table = [[_short(row[name]) for name in _SHOWN] for row in kept]
    if table:
        print_table(_SHOWN, table)
    counts = Counter(row["rule"] for row in kept)
    say(f"{len(kept)} pieces of evidence")
    for rule, count in counts.most_common():
        say(f"  {rule}: {count}")


def _check_card(store: Store, card: str) -> None:
    state = ProtocolState()
    for record in store.read():
        if record.type == "card.frozen":
            state = apply(state, read_event(record))
    if card not in state.cards:
        raise BadInputError(
            f"card {card!r} is not in this ledger",
            where="--card",
            remedy="List them with `ledger log`.",
        )


def _short(value: object) -> object:
    if isinstance(value, str) and len(value) > _LONGEST_TITLE:
        return f"{value[: _LONGEST_TITLE - 1]}…"
    return value
