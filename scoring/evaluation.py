"""The evaluation as the log tells it: one fold over the events, predictions as columns.

Predictions are kept as five integers each, not as objects: a million take 40 MB instead of a
gigabyte. Everything else (cards, plan, labels, attempts) goes through the protocol state.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic_core import from_json

from ledger.decimals import parse_probability
from ledger.envelope import FIRST_PREV
from ledger.errors import DamagedLedgerError
from ledger.events.anchor import ReportPublished
from ledger.events.codec import Event, read_event
from ledger.events.endpoint import ClaimRecorded, EndpointRejected
from ledger.events.plan import Plan
from ledger.events.prediction import PredictionsClosed
from ledger.events.world import WorldInitialized
from ledger.merkle import merkle_tree_hash
from ledger.protocol.state import CardState, Cell, ProtocolState, apply
from ledger.store.port import Record, Store

MISSING = -1
_FROZEN = "prediction.frozen"


@dataclass(slots=True)
class Columns:
    """Frozen predictions, one entry each in order of seq; ids are indices into the two maps."""

    methods: dict[str, int] = field(default_factory=dict)
    cards: dict[str, int] = field(default_factory=dict)
    method: array[int] = field(default_factory=lambda: array("l"))
    card: array[int] = field(default_factory=lambda: array("l"))
    draw: array[int] = field(default_factory=lambda: array("l"))
    p_units: array[int] = field(default_factory=lambda: array("q"))
    seq: array[int] = field(default_factory=lambda: array("q"))

    def add(self, seq: int, p: dict[str, Any]) -> None:
        """Add one prediction's JSON fields."""
        self.method.append(self.methods.setdefault(p["method"], len(self.methods)))
        self.card.append(self.cards.setdefault(p["card_id"], len(self.cards)))
        self.draw.append(p["draw"])
        self.p_units.append(parse_probability(p["p_yes"]))
        self.seq.append(seq)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Everything that scores and tables are computed from.

    `size` and `root` are the log's. `draws_units[method]` has shape (cards of the plan, draws),
    1e-9 units, MISSING where no prediction is frozen; constants are absent.
    """

    size: int
    root: bytes
    state: ProtocolState
    draws_units: dict[str, NDArray[np.int64]]
    withheld: tuple[int, ...]
    closed: PredictionsClosed | None
    reports: int
    rejected: dict[tuple[str | None, str], tuple[EndpointRejected, ...]]
    initialized: dict[Cell, WorldInitialized]
    claims: dict[Cell, tuple[bool | None, ...]]

    @property
    def plan(self) -> Plan | None:
        """The plan in force."""
        return self.state.plan

    def card(self, card_id: str) -> CardState:
        """Return the frozen card; the order rules have seen to it that it exists."""
        return self.state.cards[card_id]


@dataclass(slots=True)
class _Findings:
    """What the tables want of a log beside the protocol state."""

    withheld: list[int] = field(default_factory=list)
    closed: PredictionsClosed | None = None
    reports: int = 0
    rejected: dict[tuple[str | None, str], tuple[EndpointRejected, ...]] = field(
        default_factory=dict
    )
    initialized: dict[Cell, WorldInitialized] = field(default_factory=dict)
    claims: dict[Cell, tuple[bool | None, ...]] = field(default_factory=dict)

    def note(self, event: Event) -> None:
        """Keep what one event adds."""
        p = event.payload
        if event.status == "withheld":
            self.withheld.append(event.seq)
        elif isinstance(p, PredictionsClosed):
            self.closed = p
        elif isinstance(p, ReportPublished):
            self.reports += 1
        elif isinstance(p, EndpointRejected):
            key = (p.method, p.card_id)
            self.rejected[key] = (*self.rejected.get(key, ()), p)
        elif isinstance(p, WorldInitialized):
            self.initialized[Cell(p.method, p.card_id, p.draw)] = p
        elif isinstance(p, ClaimRecorded):
            cell = Cell(p.method, p.card_id, p.draw)
            self.claims[cell] = (*self.claims.get(cell, ()), p.grounded)


def read_evaluation(store: Store) -> Evaluation:
    """Fold the whole log once.

    Cost: about 9 us a prediction, hashes checked.

    Raises:
        DamagedLedgerError: bytes do not match their hashes, or cannot be read as events.
    """
    state, columns, findings = ProtocolState(), Columns(), _Findings()
    leaves: list[bytes] = []
    previous = FIRST_PREV
    for record in store.read():
        if record.fields["prev"] != previous or record.seq != len(leaves):
            raise DamagedLedgerError(
                f"the chain breaks at event {record.seq}. Run `ledger verify`."
            )
        previous = record.leaf.hex()
        leaves.append(record.leaf)
        if record.type == _FROZEN and record.payload is not None:
            _add_prediction(columns, record)
            state.size = record.seq + 1
            continue
        event = read_event(record)
        state = apply(state, event)
        findings.note(event)
    return Evaluation(
        size=len(leaves),
        root=merkle_tree_hash(leaves),
        state=state,
        draws_units=_arrange(columns, state.plan),
        withheld=tuple(findings.withheld),
        closed=findings.closed,
        reports=findings.reports,
        rejected=findings.rejected,
        initialized=findings.initialized,
        claims=findings.claims,
    )


def read_prediction_details(store: Store) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield seq and JSON fields of each frozen prediction, for tables that print them all."""
    for record in store.read():
        if record.type == _FROZEN and record.payload is not None:
            yield record.seq, from_json(record.payload)


def aggregate_units(draws: NDArray[np.int64], aggregate: str) -> NDArray[np.int64]:
    """Aggregate draws row by row, rounded half to even to 1e-9 units; MISSING where one is missing.

    Args:
        draws: shape (cards, draws).
        aggregate: `single`, `mean` or `median` of the plan; the scalar form is in
            ledger/protocol/blend.py.
    """
    missing = (draws == MISSING).any(axis=1)
    count = draws.shape[1]
    if aggregate == "mean":
        out = _divide_half_even(draws.sum(axis=1), count)
    elif aggregate == "median":
        ordered = np.sort(draws, axis=1)
        out = _divide_half_even(ordered[:, (count - 1) // 2] + ordered[:, count // 2], 2)
    else:
        out = draws[:, 0].copy()
    out[missing] = MISSING
    return out


def _divide_half_even(total: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    quotient, rest = np.divmod(total, count)
    up = (2 * rest > count) | ((2 * rest == count) & (quotient % 2 == 1))
    return np.asarray(quotient + up, dtype=np.int64)


def _add_prediction(columns: Columns, record: Record) -> None:
    try:
        columns.add(record.seq, from_json(record.payload or b""))
    except (ValueError, KeyError, TypeError) as error:
        raise DamagedLedgerError(
            f"event {record.seq} is no prediction. Run `ledger verify`."
        ) from error


def _arrange(columns: Columns, plan: Plan | None) -> dict[str, NDArray[np.int64]]:
    """Put the columns into one array a registered method, rows in the plan's order of cards."""
    if plan is None:
        return {}
    place = {card: row for row, card in enumerate(plan.card_set.cards)}
    row_of = np.array([place.get(card, MISSING) for card in columns.cards], dtype=np.int64)
    method = np.frombuffer(columns.method, dtype=np.dtype("l"))
    rows = row_of[np.frombuffer(columns.card, dtype=np.dtype("l"))] if columns.card else method
    draw = np.frombuffer(columns.draw, dtype=np.dtype("l"))
    units = np.frombuffer(columns.p_units, dtype=np.int64)
    out: dict[str, NDArray[np.int64]] = {}
    for spec in plan.methods:
        if spec.source == "constant":
            continue
        table = np.full((len(place), spec.draws), MISSING, dtype=np.int64)
        here = method == columns.methods.get(spec.id, MISSING)
        here &= (rows != MISSING) & (draw <= spec.draws)
        # The first frozen value stands: a second one is a deviation that verify names.
        chosen = np.flatnonzero(here)[::-1]
        table[rows[chosen], draw[chosen] - 1] = units[chosen]
        out[spec.id] = table
    return out
