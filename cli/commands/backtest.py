"""`ledger backtest`: resolved questions x strategies as one locked evaluation, start to end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
import yaml

from cli import exit_codes
from cli.commands.labels import seal_labels, unseal_labels
from cli.commands.plans import register_plan
from cli.commands.predictions import close_predictions
from cli.commands.reports import print_scores, publish_replay
from cli.commands.run import (
    ConcurrencyOption,
    CorpusOption,
    MaxCostOption,
    NoCacheOption,
)
from cli.commands.setup import create_ledger
from cli.questions import pack_questions, pull_questions
from cli.rendering import say
from cli.running import (
    Environment,
    RunOptions,
    available_tools,
    check_concurrency,
    end_of_run,
    open_prices,
    read_environment,
    read_max_cost,
    run_ledger,
    served_model,
)
from cli.system import system_actor, system_clock, system_entropy
from cli.wiring import key_path, reading, vault_path, write_whole, writing
from forecasting.answer import PERCENT
from forecasting.backtest import (
    PlanFields,
    RunSetup,
    baseline_method,
    differs_from,
    freeze_questions,
    make_plan,
    strategy_method,
)
from forecasting.local_server import LocalServer, find_model
from forecasting.questions.market_file import format_market_prices, read_market_prices
from forecasting.questions.question import ImportedSet, make_question_id
from forecasting.rerun import rerun
from forecasting.strategies.config import load_strategies
from forecasting.tools.corpus import open_corpus
from ledger.clock import format_moment
from ledger.errors import BadInputError
from ledger.protocol.state import ProtocolState
from ledger.session import Session
from ledger.vault import read_vault

LOCAL = "local"
REPLAY = "replay"
LOCAL_PARAMETERS = {"temperature": "0.2", "seed": "0", "max_output_tokens": "400"}
LEDGER_FILE = "ledger.db"
PRICES_FILE = "market_prices.json"
_ID_BYTES = 4

PostIdsOption = Annotated[
    list[int] | None, typer.Option("--post-ids", help="Metaculus posts; several after one name.")
]
ContextOption = Annotated[
    Path | None, typer.Option("--context-file", help="The texts of the questions, JSON.")
]
StrategiesOption = Annotated[
    list[Path] | None, typer.Option("--strategy-files", help="Strategies, YAML; several too.")
]
NumRunsOption = Annotated[
    int | None, typer.Option("--num-runs", min=1, help="Draws a question; the median counts.")
]
OutputOption = Annotated[Path, typer.Option("--output-dir", help="Where run folders are made.")]
ProviderOption = Annotated[
    str | None,
    typer.Option(
        "--provider",
        help="One of openai, openrouter, deepseek, compatible, local, scripted, replay.",
    ),
]
RouteOption = Annotated[
    str | None, typer.Option("--route", help="The provider's interface; by default its usual one.")
]
ModelOption = Annotated[
    str | None, typer.Option("--model", help="Enforced on every stage instead of gpt-5-nano.")
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Go on with the last run of the folder, or of --ledger.")
]
BacktestLedgerOption = Annotated[
    Path | None, typer.Option("--ledger", help="The ledger; by default in the run's folder.")
]
PackOption = Annotated[
    str | None, typer.Option("--pack", help="Questions from a card pack, not from Metaculus.")
]
BaselineOption = Annotated[
    list[str] | None,
    typer.Option("--baseline", help="A baseline to run too, such as direct_json; may repeat."),
]
AsOfOption = Annotated[
    str | None, typer.Option("--as-of", help="As-of of all questions; else each one's opening.")
]


@dataclass(frozen=True, slots=True)
class Inputs:
    """The command line of a backtest, read."""

    post_ids: tuple[int, ...]
    context_file: Path | None
    pack: str | None
    strategy_files: tuple[Path, ...]
    baselines: tuple[str, ...]
    output_dir: Path
    as_of: str | None


def backtest(
    post_ids: PostIdsOption = None,
    context_file: ContextOption = None,
    strategy_files: StrategiesOption = None,
    num_runs: NumRunsOption = None,
    output_dir: OutputOption = Path("logs/evals"),
    concurrency: ConcurrencyOption = 1,
    provider: ProviderOption = None,
    route: RouteOption = None,
    model: ModelOption = None,
    resume: ResumeOption = False,
    max_cost: MaxCostOption = None,
    ledger: BacktestLedgerOption = None,
    corpus: CorpusOption = None,
    no_cache: NoCacheOption = False,
    pack: PackOption = None,
    baseline: BaselineOption = None,
    as_of: AsOfOption = None,
) -> None:
    """Backtest strategies on resolved questions.

    Cards are frozen, labels sealed and a plan registered before the first call; then it runs,
    closes, opens the labels and scores. With --provider replay and --ledger it runs a finished
    backtest again from its log, without a network.
    """
    if provider == REPLAY:
        raise typer.Exit(_replay(ledger, output_dir))
    inputs = Inputs(
        tuple(post_ids or ()),
        context_file,
        pack,
        tuple(strategy_files or ()),
        tuple(baseline or ()),
        output_dir,
        as_of,
    )
    _check_inputs(inputs)
    environment = read_environment(Path())
    documents = None if corpus is None else open_corpus(corpus)
    options = RunOptions(
        concurrency=check_concurrency(concurrency),
        max_cost=read_max_cost(max_cost),
        use_cache=not no_cache,
        corpus=documents,
    )
    setup = RunSetup(
        provider=provider or default_provider(environment),
        route=route,
        model=model,
        draws=num_runs,
        tools=available_tools(environment, documents),
        corpus_sha256=None if documents is None else documents.digest,
    )
    with model_served(setup, environment) as (ready, reachable):
        folder, path = _find_or_make(inputs, ready, reachable, resume=resume, ledger=ledger)
        code = run_and_finish(folder, path, options, reachable)
    raise typer.Exit(code)


def default_provider(environment: Environment) -> str:
    """Return OpenRouter, as the framework has it, where only its key is there; else OpenAI."""
    has_only_router = "OPENROUTER_API_KEY" in environment and "OPENAI_API_KEY" not in environment
    return "openrouter" if has_only_router else "openai"


def _check_inputs(inputs: Inputs) -> None:
    if not inputs.strategy_files and not inputs.baselines:
        raise BadInputError("no strategy is named", remedy="Give --strategy-files or --baseline.")
    if inputs.pack is None and (not inputs.post_ids or inputs.context_file is None):
        raise BadInputError(
            "no questions are named", remedy="Give --post-ids with --context-file, or --pack."
        )
    if inputs.pack is not None and (inputs.post_ids or inputs.context_file is not None):
        raise BadInputError(
            "questions come from a pack or from Metaculus, not from both", where="--pack"
        )


@contextmanager
def model_served(
    setup: RunSetup, environment: Environment
) -> Iterator[tuple[RunSetup, Environment]]:
    """For the local provider: find the server's model, or serve the packaged one meanwhile."""
    if setup.provider != LOCAL:
        yield setup, environment
        return
    setup = replace(setup, form=PERCENT, parameters=LOCAL_PARAMETERS)
    address = environment.get("LOCAL_BASE_URL")
    if address:
        yield replace(setup, model=setup.model or served_model(address)), environment
        return
    with LocalServer(find_model(), sleep=time.sleep, port=0) as server:
        say(f"serving {server.model.name} at {server.base_url}")
        known = {**environment, "LOCAL_BASE_URL": server.base_url}
        yield replace(setup, model=setup.model or server.model.name), known


def _find_or_make(
    inputs: Inputs,
    setup: RunSetup,
    environment: Environment,
    *,
    resume: bool,
    ledger: Path | None,
) -> tuple[Path, Path]:
    """Return the run's folder and ledger: those of a run to go on with, or new ones."""
    if resume:
        path = ledger if ledger is not None else _last_ledger(inputs.output_dir)
        state = _read_state(path)
        _check_same(inputs, setup, state, path)
        folder = path.parent if ledger is None else inputs.output_dir / _plan_id(state, path)
        say(f"going on with {path}")
        return folder, path
    methods = _methods(inputs, setup)
    return make_run(inputs.output_dir, _import(inputs, environment), methods, ledger)


def make_run(
    output_dir: Path,
    imported: ImportedSet,
    methods: Sequence[PlanFields],
    ledger: Path | None = None,
) -> tuple[Path, Path]:
    """Make a run folder up to the registered plan; it appears whole or not at all.

    Returns:
        The folder, and the ledger: the one that was asked for, else one in the folder.
    """
    now = format_moment(system_clock())
    stamp = now[:19].replace("-", "").replace(":", "") + "Z"
    name = f"{stamp}_{system_entropy(_ID_BYTES).hex()}"
    draft = output_dir / f".{name}.new"
    draft.mkdir(parents=True)
    path = draft / LEDGER_FILE if ledger is None else ledger
    create_ledger(path, f"forecast-ledger.local/backtest/{name}")
    write_whole(draft / PRICES_FILE, format_market_prices(imported.questions))
    with writing(path) as session:
        frozen = freeze_questions(imported, system_entropy)
        session.commit(lambda _: frozen)
        seal_labels(session, imported.labels, vault_path(path, None), system_actor())
        cards = [card.card.card_id for card in frozen]
        fields = make_plan(name, cards, methods, opens_at=now, exclusions=imported.exclusions)
        write_whole(draft / "plan.yaml", yaml.safe_dump(fields, sort_keys=False, width=100))
        register_plan(session, draft / "plan.yaml")
    folder = output_dir / name
    draft.rename(folder)
    for item in imported.exclusions:
        say(f"left out {item.question_id}: {item.reason}, {item.detail}")
    say(f"froze {len(cards)} cards, sealed their labels and registered the plan: {folder}")
    return folder, folder / LEDGER_FILE if ledger is None else ledger


def _import(inputs: Inputs, environment: Environment) -> ImportedSet:
    if inputs.pack is not None:
        return pack_questions(inputs.pack)
    if inputs.context_file is None:
        raise BadInputError("no context file", where="--context-file")
    return asyncio.run(
        pull_questions(inputs.context_file, inputs.post_ids, environment, as_of=inputs.as_of)
    )


def _methods(inputs: Inputs, setup: RunSetup) -> list[PlanFields]:
    strategies = load_strategies(inputs.strategy_files) if inputs.strategy_files else ()
    return [
        *(strategy_method(strategy, setup) for strategy in strategies),
        *(baseline_method(name, setup) for name in inputs.baselines),
    ]


def run_and_finish(
    folder: Path, ledger: Path, options: RunOptions, environment: Environment
) -> int:
    """Run what is left, close, open the labels, score and write the files; return the exit code."""
    prices = folder / PRICES_FILE
    if prices.is_file():
        options = replace(options, market_prices=read_market_prices(prices))
    state = _read_state(ledger)
    if state.closed_seq is None:
        tally = run_ledger(ledger, options, environment)
        say(end_of_run(tally))
        if tally.stopped_by_budget:
            return exit_codes.INCOMPLETE
    _finish(folder, ledger)
    return exit_codes.DONE


def _finish(folder: Path, ledger: Path) -> None:
    """Close, open the labels, publish the replay, write the files; what is done stays done."""
    from forecasting.output import write_outputs  # noqa: PLC0415 - scipy is slow to load
    from scoring.report import build_report, write_report  # noqa: PLC0415

    with writing(ledger) as session:
        if session.state().closed_seq is None:
            close_predictions(session, None)
        if _has_sealed(session.state()):
            unseal_labels(session, read_vault(vault_path(ledger, None)), None)
        report = build_report(session.store)
        if not report.scores["looks"]["published_reports"]:
            publish_replay(session)
            report = build_report(session.store)
        write_report(report, session.store, folder / "replay")
        names = write_outputs(session.store, folder)
    print_scores(report.scores)
    say(f"wrote {', '.join(names)} and replay/ to {folder}")
    say(f"the ledger is {ledger}, its key {key_path(ledger).name}")


def _replay(ledger: Path | None, output_dir: Path) -> int:
    """Run a ledger's cells again from its log, and write its files anew."""
    if ledger is None:
        raise BadInputError("replay needs the ledger to replay", remedy="Name it with --ledger.")
    from forecasting.output import write_outputs  # noqa: PLC0415 - scipy is slow to load

    state = _read_state(ledger)
    with reading(ledger) as store:
        cells = asyncio.run(
            rerun(store, clock=system_clock, entropy=system_entropy, prices=open_prices())
        )
        folder = output_dir / f"{_plan_id(state, ledger)}-replay"
        names = write_outputs(store, folder)
    different = [item for item in cells if not item.is_same]
    same = len(cells) - len(different)
    say(f"{same} of {len(cells)} cells came out the same, run again from the log alone")
    for item in different[:20]:
        where = "/".join(map(str, item.cell))
        say(f"{where}: recorded {item.recorded or 'no forecast'}, now {item.again or 'none'}")
    say(f"wrote {', '.join(names)} to {folder}")
    return exit_codes.FOUND if different else exit_codes.DONE


def _has_sealed(state: ProtocolState) -> bool:
    return any(c.sealed_seq is not None and c.unsealed_seq is None for c in state.cards.values())


def _last_ledger(output_dir: Path) -> Path:
    runs = sorted(output_dir.glob(f"*_*/{LEDGER_FILE}")) if output_dir.is_dir() else []
    if not runs:
        raise BadInputError(
            "holds no run to go on with", where=str(output_dir), remedy="Start without --resume."
        )
    return runs[-1]


def _check_same(inputs: Inputs, setup: RunSetup, state: ProtocolState, ledger: Path) -> None:
    """Refuse to go on with a run that this command line would not have made."""
    if state.plan is None:
        raise BadInputError(
            "has no plan: its set-up was interrupted",
            where=str(ledger),
            remedy="Remove it and start without --resume.",
        )
    cards = state.plan.card_set.cards
    asked = {make_question_id("metaculus", str(post_id)) for post_id in inputs.post_ids}
    if asked and not set(cards) <= asked:
        raise BadInputError("the run to go on with has other questions", where=str(ledger))
    fields = make_plan(state.plan.plan_id, cards, _methods(inputs, setup), opens_at="")
    part = differs_from(state.plan, fields)
    if part is not None:
        raise BadInputError(
            f"the run to go on with registers other {part}",
            where=str(ledger),
            remedy="Repeat its command line, or start without --resume.",
        )


def _plan_id(state: ProtocolState, ledger: Path) -> str:
    if state.plan is None:
        raise BadInputError("has no registered plan", where=str(ledger))
    return state.plan.plan_id


def _read_state(ledger: Path) -> ProtocolState:
    with reading(ledger) as store:
        return Session(store, clock=system_clock, actor=system_actor()).state()
