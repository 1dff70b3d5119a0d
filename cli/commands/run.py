"""`ledger run`: the registered methods over the registered cards."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli import exit_codes
from cli.rendering import say
from cli.running import (
    RunOptions,
    check_concurrency,
    end_of_run,
    read_environment,
    read_max_cost,
    run_ledger,
)
from cli.wiring import DEFAULT_LEDGER, LedgerOption, reading, writing
from forecasting.questions.market_file import read_market_prices
from forecasting.tools.corpus import open_corpus
from ledger.errors import BadInputError, OrderError
from ledger.events.codec import read_event
from ledger.protocol.state import ProtocolState, apply

ConcurrencyOption = Annotated[
    int, typer.Option("--question-concurrency", "--concurrency", help="Cells to run at once.")
]
MaxCostOption = Annotated[
    str | None, typer.Option("--max-cost", help="Ceiling in USD over all runs of the ledger.")
]
CorpusOption = Annotated[
    Path | None, typer.Option("--corpus", help="Folder or SQLite file of dated documents.")
]
NoCacheOption = Annotated[
    bool, typer.Option("--no-cache", help="Ask again what the ledger answers already.")
]
PricesOption = Annotated[
    Path | None, typer.Option("--market-prices", help="Dated prices by card, a JSON file.")
]


def run(
    method: Annotated[
        list[str] | None, typer.Option("--method", help="A method's id, or its strategy's name.")
    ] = None,
    cards: Annotated[
        list[str] | None, typer.Option("--cards", "--card", help="Card ids; all without it.")
    ] = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    concurrency: ConcurrencyOption = 1,
    max_cost: MaxCostOption = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with attempts that a stopped run left open.")
    ] = False,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try failed cells again, as new attempts.")
    ] = False,
    no_cache: NoCacheOption = False,
    corpus: CorpusOption = None,
    market_prices: PricesOption = None,
) -> None:
    """Run registered methods over registered cards.

    Every call, failed ones included, is an event before anything follows from it. A run that was
    stopped goes on with --resume and asks nothing twice.
    """
    state = _read_state(ledger)
    _check_open(state, resume=resume)
    options = RunOptions(
        methods=_resolve_methods(state, method or []),
        cards=tuple(part for text in cards or [] for part in text.split(",") if part),
        concurrency=check_concurrency(concurrency),
        max_cost=read_max_cost(max_cost),
        use_cache=not no_cache,
        retry_failed=retry_failed,
        corpus=None if corpus is None else open_corpus(corpus),
        market_prices={} if market_prices is None else read_market_prices(market_prices),
    )
    if method and not options.methods:
        say("the constant needs no run: its value is the plan's")
        return
    tally = run_ledger(ledger, options, read_environment(Path()))
    with writing(ledger):
        say(end_of_run(tally))
    if tally.stopped_by_budget:
        raise typer.Exit(exit_codes.INCOMPLETE)


def _read_state(ledger: Path) -> ProtocolState:
    state = ProtocolState()
    with reading(ledger) as store:
        for record in store.read():
            state = apply(state, read_event(record))
    return state


def _check_open(state: ProtocolState, *, resume: bool) -> None:
    open_seqs = [a.open_seq for a in state.attempts.values() if a.open_seq is not None]
    if open_seqs and not resume:
        raise OrderError(
            "order.attempt-open",
            f"{len(open_seqs)} attempts of a stopped run are open",
            seq=min(open_seqs),
            remedy="Go on with --resume.",
        )


def _resolve_methods(state: ProtocolState, names: list[str]) -> tuple[str, ...]:
    """Turn ids and names of strategies into ids; a constant is dropped, it has nothing to run."""
    chosen: list[str] = []
    for name in names:
        plain = name.replace("-", "_")
        by_id = [m for m in state.methods.values() if m.id == name]
        found = by_id or [
            m for m in state.methods.values() if m.strategy.replace("-", "_") == plain
        ]
        if not found:
            raise BadInputError(
                f"the plan registers no method {name!r}",
                where="--method",
                remedy=f"Registered: {', '.join(state.methods) or 'none'}.",
            )
        chosen += [m.id for m in found if m.source != "constant"]
    return tuple(dict.fromkeys(chosen))
