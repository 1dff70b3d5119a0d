"""The `ledger` command: one line a command, and what an error looks like to a person."""

from __future__ import annotations

import os
import sys

import typer

from cli.commands import (
    cards,
    demo,
    events,
    labels,
    plans,
    predictions,
    reports,
    setup,
    verification,
)
from cli.rendering import complain
from ledger.errors import BugError, DamagedLedgerError, LedgerError

EXIT_USAGE = 2
EXIT_TAMPERED = 1
EXIT_BUG = 70
EXIT_INTERRUPTED = 130

app = typer.Typer(
    name="ledger",
    help="An audit ledger for LLM forecasting evaluations: every step a hash-chained event, every"
    " score replayed from the log.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.command("init")(setup.init)
app.command("demo")(demo.demo)
app.command("doctor")(setup.doctor)
app.add_typer(cards.app, name="cards")
app.command("seal")(labels.seal)
app.command("preregister")(plans.preregister)
app.command("amend")(plans.amend)
app.add_typer(predictions.app, name="predictions")
app.command("close")(predictions.close)
app.command("checkpoint")(verification.checkpoint)
app.command("unseal")(labels.unseal)
app.command("annul")(labels.annul)
app.command("revise")(labels.revise)
app.command("replay")(reports.replay)
app.command("report")(reports.report)
app.command("verify")(verification.verify)
app.command("log")(events.log)
app.command("show")(events.show)
app.command("prove")(events.prove)
app.command("redact")(events.redact)


def main() -> None:
    """Run the command line; a refusal is one sentence on standard error and exit code 2."""
    try:
        app()
    except DamagedLedgerError as error:
        _leave(f"ledger: {error}", EXIT_TAMPERED)
    except BugError as error:
        _leave(f"ledger: this is a bug of forecast-ledger, please report it: {error}", EXIT_BUG)
    except LedgerError as error:
        _leave(f"ledger: {error}", EXIT_USAGE)
    except KeyboardInterrupt:
        _leave("ledger: interrupted; nothing was half-written", EXIT_INTERRUPTED)
    except BrokenPipeError:
        # The reader went away (`ledger log | head`): nothing to say to nobody.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _leave(message: str, code: int) -> None:
    complain(message)
    sys.exit(code)
