"""`ledger demo --live`: three pilot cards, one call each to a real model on this machine."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

from cli.commands.backtest import LOCAL, make_run, model_served, run_and_finish
from cli.commands.verification import run_verify
from cli.questions import pack_questions
from cli.rendering import say
from cli.running import RunOptions
from forecasting.backtest import RunSetup, baseline_method
from ledger.errors import BugError

PACK: Final = "worldfork_pilot"
CARDS: Final = 3


def run_live(folder: Path) -> None:
    """Freeze, seal, register, ask the local model, close, open, score and verify.

    The model is small and forecasts nothing; what is shown is that each step is on record.

    Raises:
        BadInputError: the local model is not installed.
    """
    began = time.perf_counter()
    everything = pack_questions(PACK)
    chosen = everything.questions[:CARDS]
    ids = {question.question_id for question in chosen}
    labels = tuple(label for label in everything.labels if label.card_id in ids)
    imported = replace(everything, questions=chosen, labels=labels)
    with model_served(RunSetup(provider=LOCAL), os.environ) as (setup, environment):
        methods = [baseline_method("direct_json", setup)]
        run, ledger = make_run(folder, imported, methods)
        run_and_finish(run, ledger, RunOptions(), environment)
    result = run_verify(ledger, checkpoint=None)
    if result.exit_code:
        raise BugError(f"the demo's own ledger does not verify: {result.findings[0].rule}")
    say(f"verified: {result.verdict}, {result.size} events, root {result.root}")
    say(f"done in {time.perf_counter() - began:.1f} s")
