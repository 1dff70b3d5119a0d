"""The commands at a glance: one line a command, in the order in which an evaluation uses them."""

from __future__ import annotations

import importlib.metadata
from typing import Annotated

import typer

from cli.commands import (
    backtest,
    cards,
    costs,
    demo,
    doctor,
    events,
    evidence,
    labels,
    models,
    plans,
    predictions,
    questions,
    reports,
    run,
    setup,
    verification,
)
from cli.rendering import say
from cli.spread import SpreadCommand

app = typer.Typer(
    name="ledger",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

app.command("init")(setup.init)
app.command("demo")(demo.demo)
app.command("doctor")(doctor.doctor)
app.add_typer(cards.app, name="cards")
app.command("seal")(labels.seal)
app.command("preregister")(plans.preregister)
app.command("amend")(plans.amend)
app.command("run", cls=SpreadCommand)(run.run)
app.add_typer(predictions.app, name="predictions")
app.command("close")(predictions.close)
app.command("checkpoint")(verification.checkpoint)
app.command("unseal")(labels.unseal)
app.command("annul")(labels.annul)
app.command("revise")(labels.revise)
app.command("replay")(reports.replay)
app.command("report")(reports.report)
app.command("verify")(verification.verify)
app.command("backtest", cls=SpreadCommand)(backtest.backtest)
app.command("evidence")(evidence.evidence)
app.command("cost")(costs.cost)
app.add_typer(models.app, name="models")
app.add_typer(questions.app, name="questions")
app.command("log")(events.log)
app.command("show")(events.show)
app.command("prove")(events.prove)
app.command("redact")(events.redact)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it with the option's value
    if wanted:
        say(f"forecast-ledger {importlib.metadata.version('forecast-ledger')}")
        raise typer.Exit


@app.callback()
def ledger(
    _version: Annotated[  # noqa: FBT002 - an option, named by whoever types it
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """An audit ledger for LLM forecasting evaluations.

    Every step is a hash-chained event, every score is replayed from the log.
    """
