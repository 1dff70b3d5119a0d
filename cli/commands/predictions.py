"""`ledger predictions import` and `ledger close`."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from cards.pack import find_pack_file
from cli.rendering import say
from cli.wiring import DEFAULT_LEDGER, LedgerOption, writing
from ledger.errors import OrderError
from ledger.protocol.decide import decide_blends, decide_close, decide_import
from ledger.session import Session
from scoring.prediction_file import read_predictions

app = typer.Typer(help="Freeze predictions from files.", no_args_is_help=True)


@app.command("import")
def import_(
    file: Annotated[
        Path,
        typer.Argument(help="A .csv or .jsonl file, one row a cell; or a shipped pack's name."),
    ],
    ledger: LedgerOption = DEFAULT_LEDGER,
) -> None:
    """Freeze the predictions of a file, all of them or none.

    Required columns: card, method, p_yes. Optional: draw, provider, route, requested_model,
    resolved_model, prompt_version, prompt_digest, response_id, unresolved_mass,
    rejected_endpoints. A missing probability is an error with its line number, never 0.5.
    """
    with writing(ledger) as session:
        frozen, known = import_predictions(session, file)
    again = f"; {known} were frozen already with the same value" if known else ""
    say(f"froze {frozen} predictions{again}")


def import_predictions(session: Session, file: Path) -> tuple[int, int]:
    """Freeze a file's predictions; return how many were new and how many were known.

    Raises:
        BadInputError: a row is wrong; nothing was written.
        OrderError: an order rule refuses a row; nothing was written.
    """
    methods = session.state().methods
    if not methods:
        raise OrderError(
            "order.plan-before-use",
            f"no plan covers the predictions of {file}",
            remedy="Register one with `ledger preregister PLAN.yaml` first.",
        )
    predictions = list(read_predictions(find_pack_file(file, "predictions"), methods))
    seqs = session.commit(lambda state: decide_import(state, predictions))
    return len(seqs), len(predictions) - len(seqs)


def close(
    ledger: LedgerOption = DEFAULT_LEDGER,
    missing: Annotated[
        str | None,
        typer.Option(help="Declare cells without any attempt as missing, for this reason."),
    ] = None,
) -> None:
    """Close predictions: nothing can be added after this.

    Computes the registered blends and accounts for every registered cell.
    """
    with writing(ledger) as session:
        seqs = close_predictions(session, missing)
    say(f"event {seqs[-1]}: predictions closed, {len(seqs) - 1} blends computed")


def close_predictions(session: Session, missing: str | None) -> list[int]:
    """Append the computed blends and the closing; return their seqs."""
    return list(
        session.commit(
            lambda state: chain(decide_blends(state), decide_close(state, declared_missing=missing))
        )
    )
