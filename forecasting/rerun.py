"""The same run again from its ledger, without a network: every prompt and every probability anew.

Each cell of the last attempts is run by the present code on a scratch ledger that holds the same
cards and plan; models and tools answer with what was recorded, and only to the very octets that
were sent. So a cell comes out the same only if today's code makes the same prompts, reads the same
answers and drops the same evidence.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from forecasting.accounts import read_calls
from forecasting.concurrency import AdaptiveLimit
from forecasting.context import Line, Resources
from forecasting.cost import Budget, Prices
from forecasting.journal import Journal
from forecasting.memory import Memory
from forecasting.ports import SearchTool
from forecasting.providers.caller import World
from forecasting.providers.endpoints import find_endpoint, find_wire
from forecasting.providers.replay import RecordedCall, ReplayProvider
from forecasting.providers.scripted import ScriptedWire
from forecasting.providers.wire import Wire
from forecasting.retry import RetryPolicy
from forecasting.runner import Job, Run, prepare_method, run_jobs
from forecasting.tools import market
from forecasting.tools.recorded import RecordedTool
from ledger.clock import Clock
from ledger.decimals import format_units
from ledger.errors import BugError
from ledger.events.call import AttemptStarted, ModelCalled, ToolCalled
from ledger.events.codec import read_event
from ledger.events.plan import MethodSpec
from ledger.ids import Entropy
from ledger.protocol.state import Cell, ProtocolState, apply
from ledger.session import Session
from ledger.store.memory import MemoryStore
from ledger.store.port import Draft, Record, Store

_TRIES = 100
"""A resumed attempt may hold more failures than one run's policy allows."""

_SETUP = ("ledger.opened", "card.frozen", "label.sealed", "plan.preregistered", "plan.amended")


@dataclass(frozen=True, slots=True)
class RerunCell:
    """What a cell came to then and now: p_yes as text, None where the attempt failed."""

    cell: Cell
    recorded: str | None
    again: str | None

    @property
    def is_same(self) -> bool:
        """Whether both came to the same."""
        return self.recorded == self.again


@dataclass(frozen=True, slots=True)
class _Recorded:
    """The calls of a cell's last attempt, in log order."""

    models: list[RecordedCall]
    tools: list[ToolCalled]


async def rerun(store: Store, *, clock: Clock, entropy: Entropy, prices: Prices) -> list[RerunCell]:
    """Run every cell of a ledger again from what it holds.

    Args:
        store: the ledger; it is only read.
        clock: for the scratch ledger, which is thrown away.
        entropy: for the scratch ledger.
        prices: for the scratch ledger.

    Raises:
        BadInputError: a method that this code cannot run as registered.
    """
    state = ProtocolState()
    for record in store.read():
        state = apply(state, read_event(record))
    recorded = _read_last_attempts(store)
    scratch = _copy_setup(store, clock, entropy)
    cells = [
        cell
        for cell in state.registered_cells()
        if cell in recorded and state.methods[cell.method].source == "run"
    ]
    world = World(clock, _no_wait, entropy)
    async with Journal(lambda: Session(scratch, clock=clock, actor="rerun")) as journal:
        for cell in cells:
            shared = _resources(journal, state, recorded[cell], world, prices)
            await _rerun_cell(state, cell, recorded[cell], shared)
        again = await journal.read(lambda session: dict(session.state().cells))
    return [RerunCell(cell, _p_yes(state.cells, cell), _p_yes(again, cell)) for cell in cells]


async def _rerun_cell(
    state: ProtocolState, cell: Cell, recorded: _Recorded, shared: Resources
) -> None:
    spec = state.methods[cell.method]
    key = (spec.model_route.provider or "", spec.model_route.route or "")
    lines: dict[tuple[str, str], Line] = {}
    if spec.model_route.provider is not None:
        wire = _wire(spec)
        provider = ReplayProvider(
            provider=spec.model_route.provider, wire=wire, calls=recorded.models
        )
        lines[key] = Line(provider, wire, _limit())
    method = prepare_method(spec, lines)
    await run_jobs(Run(shared, {spec.id: method}, state), [Job(cell)])


def _resources(
    journal: Journal, state: ProtocolState, recorded: _Recorded, world: World, prices: Prices
) -> Resources:
    names = {market.NAME, *(call.tool for call in recorded.tools)}
    for method in state.methods.values():
        names |= {name for name in method.parameters.get("tools", "").split(",") if name}
    tools: dict[str, SearchTool] = {
        name: RecordedTool(name, recorded.tools) for name in sorted(names)
    }
    return Resources(
        journal=journal,
        memory=Memory(use_cache=False),
        budget=Budget(None, spent_usd=Decimal(0)),
        prices=prices,
        policy=RetryPolicy(tries=_TRIES),
        world=world,
        tools=tools,
        tool_limit=_limit(),
        log_id=state.opened.log_id if state.opened else "",
        undated=state.plan.undated_evidence if state.plan else "drop",
    )


def _wire(spec: MethodSpec) -> Wire:
    provider = spec.model_route.provider or ""
    if provider == "scripted":
        return ScriptedWire()
    return find_wire(find_endpoint(provider), spec.model_route.route)


def _read_last_attempts(store: Store) -> dict[Cell, _Recorded]:
    began: dict[Cell, int] = {}
    for record in store.read():
        if record.type == "attempt.started":
            payload = read_event(record).payload
            if isinstance(payload, AttemptStarted):
                began[Cell(payload.method, payload.card_id, payload.draw)] = record.seq
    found = {cell: _Recorded([], []) for cell in began}
    for call in read_calls(store):
        if call.seq < began.get(call.cell, 0):
            continue
        if isinstance(call.event, ModelCalled):
            found[call.cell].models.append(RecordedCall(call.seq, call.event))
        else:
            found[call.cell].tools.append(call.event)
    return found


def _copy_setup(store: Store, clock: Clock, entropy: Entropy) -> MemoryStore:
    """Copy cards, seals and plan octet for octet into a ledger in memory."""
    records = [record for record in store.read() if record.type in _SETUP]
    if not records:
        raise BugError("a ledger without a first event was opened")
    scratch = MemoryStore(log_id=records[0].fields["log"], clock=clock, entropy=entropy)
    scratch.append(_drafts(records))
    return scratch


def _drafts(records: Iterable[Record]) -> Sequence[Draft]:
    return [
        Draft(
            type=record.fields["type"],
            type_v=record.fields["type_v"],
            stream=record.fields["stream"],
            payload=record.payload,
            actor=record.fields["actor"],
        )
        for record in records
        if record.payload is not None
    ]


def _limit() -> AdaptiveLimit:
    return AdaptiveLimit(1, monotonic_s=lambda: 0.0, sleep=_no_wait)


async def _no_wait(_seconds: float) -> None:
    await asyncio.sleep(0)


def _p_yes(cells: dict[Cell, tuple[int, int]], cell: Cell) -> str | None:
    frozen = cells.get(cell)
    return None if frozen is None else format_units(frozen[1])
