"""`ledger cost`: calls, tokens and money by method, stage or model."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from cli.rendering import print_json, print_table, say
from cli.wiring import DEFAULT_LEDGER, JsonOption, LedgerOption, reading
from forecasting.accounts import ACCOUNT_COLUMNS, count_by, read_calls


def cost(
    by: Annotated[
        Literal["method", "stage", "model"], typer.Option("--by", help="What to sum by.")
    ] = "method",
    ledger: LedgerOption = DEFAULT_LEDGER,
    json: JsonOption = False,
) -> None:
    """Sum calls, tokens and money of a run.

    A cost that is not known is counted apart and never taken for 0. A tool stands under its own
    name, except by method.
    """
    with reading(ledger) as store:
        accounts = count_by(read_calls(store), by)
    rows = [{by: name, **account.to_row()} for name, account in accounts.items()]
    if json:
        print_json(rows)
        return
    if not rows:
        say("no calls are recorded")
        return
    columns = (by, *ACCOUNT_COLUMNS)
    print_table(columns, [[row[name] for name in columns] for row in rows])
