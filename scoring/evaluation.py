"""The evaluation as the log tells it: one fold over the events, predictions as columns.

Predictions are kept as six integers each, not as objects: a million take 48 MB instead of a
gigabyte. Everything else (cards, plan, labels, attempts) goes through the protocol state. What is
redacted is never passed over in silence: its envelope still says which cell, card or plan it was.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic_core import from_json

from ledger.decimals import parse_probability
from ledger.envelope import FIRST_PREV
from ledger.errors import BadInputError, BugError, DamagedLedgerError, WithheldError
from ledger.events.anchor import ReportPublished
from ledger.events.base import Payload
from ledger.events.branch import BranchForked, TimelineEnded
from ledger.events.codec import Event, read_event
from ledger.events.endpoint import ClaimRecorded, EndpointRejected
from ledger.events.plan import Plan, PlanAmended, PlanPreregistered
from ledger.events.prediction import PredictionFrozen, PredictionsClosed
from ledger.events.world import WorldInitialized
from ledger.merkle import merkle_tree_hash
from ledger.protocol.state import Cell, ProtocolState, apply
from ledger.store.port import Record, Store
from scoring.path_books import PathBooks

MISSING = -1
_FROZEN = "prediction.frozen"
_FROZEN_V = 1
_PLANS = ("plan.preregistered", "plan.amended")
_CARD_STREAMS = ("card", "label")

_ID = rb'"([A-Za-z0-9][A-Za-z0-9_.\-]{0,63})"'
_TEXT = rb'(?:null|"[^"\\]*")'
_FLAT = rb"\{[^{}]*\}"
_PLAIN = re.compile(
    rb"\{"
    + b",".join(
        b'"' + name + b'":' + form
        for name, form in (
            (b"attempt", rb"(?:null|[1-9][0-9]*)"),
            (b"card_id", _ID),
            (b"draw", rb"([1-9][0-9]{0,5}|1000000)"),
            (b"extraction_rule", _TEXT),
            (b"interval", rb"(?:null|" + _FLAT + rb")"),
            (b"method", _ID),
            (b"model_route", _FLAT),
            (b"origin", _FLAT),
            (b"p_raw", _TEXT),
            (b"p_yes", rb'"([0-9.]{1,11})"'),
            (b"prompt_digest", _TEXT),
            (b"prompt_version", _TEXT),
            (b"rejected_endpoints", rb"\[[^\[\]]*\]"),
            (b"response_id", _TEXT),
            (b"sources", rb"\[[0-9,]*\]"),
            (b"unresolved_mass_units", rb"(null|0|[1-9][0-9]{0,8}|1000000000)"),
        )
    )
    + rb"\}"
)
"""A prediction as our writer writes it: each key once and in order, so that it says one thing.

One match is 1.4 us where a JSON parser takes 4.5 and keeps the last of two equal keys in silence.
What does not match (an escape, a brace inside a text) goes to the strict reader, at 30 us.
"""


@lru_cache(maxsize=1 << 16)
def _units(text: bytes) -> int:
    # A file's probabilities repeat: four places make 10,001 texts.
    return parse_probability(text.decode())


@dataclass(slots=True)
class Columns:
    """Frozen predictions, one entry each in order of seq; ids are indices into the two maps."""

    methods: dict[bytes, int] = field(default_factory=dict)
    cards: dict[bytes, int] = field(default_factory=dict)
    method: array[int] = field(default_factory=lambda: array("q"))
    card: array[int] = field(default_factory=lambda: array("q"))
    draw: array[int] = field(default_factory=lambda: array("q"))
    p_units: array[int] = field(default_factory=lambda: array("q"))
    unresolved: array[int] = field(default_factory=lambda: array("q"))
    seq: array[int] = field(default_factory=lambda: array("q"))

    def add(self, seq: int, payload: bytes) -> bool:
        """Add one prediction; False where its bytes are not of the plain form."""
        found = _PLAIN.fullmatch(payload)
        if found is None:
            return False
        card, draw, method, p_yes, mass = found.groups()
        self.p_units.append(_units(p_yes))
        self.method.append(self.methods.setdefault(method, len(self.methods)))
        self.card.append(self.cards.setdefault(card, len(self.cards)))
        self.draw.append(int(draw))
        self.unresolved.append(MISSING if mass == b"null" else int(mass))
        self.seq.append(seq)
        return True

    def add_payload(self, seq: int, p: PredictionFrozen) -> None:
        """Add one prediction that the strict reader has read."""
        self.p_units.append(parse_probability(p.p_yes))
        self.method.append(self.methods.setdefault(p.method.encode(), len(self.methods)))
        self.card.append(self.cards.setdefault(p.card_id.encode(), len(self.cards)))
        self.draw.append(p.draw)
        mass = p.unresolved_mass_units
        self.unresolved.append(MISSING if mass is None else mass)
        self.seq.append(seq)


@dataclass(frozen=True, slots=True, eq=False)
class MethodCells:
    """The cells of one method: three int64 arrays of shape (cards of the plan, draws).

    `p_units` and `unresolved_units` are in 1e-9, `seqs` are the events; MISSING where nothing is
    frozen, and in `unresolved_units` also where the prediction records none. Where a cell was
    frozen twice the first value stands: the second is a deviation that the verifier names.
    """

    p_units: NDArray[np.int64]
    unresolved_units: NDArray[np.int64]
    seqs: NDArray[np.int64]


@dataclass(slots=True)
class Findings:
    """What the tables want of a log beside the protocol state.

    `withheld_cells` are the cells of redacted predictions; `withheld_cards` gives the types of the
    redacted events of each card. `rejected` is by method (or None) and card, `claims` holds
    whether each claim is grounded.
    """

    withheld: list[int] = field(default_factory=list)
    withheld_cells: dict[Cell, int] = field(default_factory=dict)
    withheld_cards: dict[str, set[str]] = field(default_factory=dict)
    plans: int = 0
    hidden_plan: int | None = None
    plan_recorded_at: str | None = None
    closed: PredictionsClosed | None = None
    reports: int = 0
    published_exploratory: int = 0
    rejected: dict[tuple[str | None, str], tuple[EndpointRejected, ...]] = field(
        default_factory=dict
    )
    worlds: dict[Cell, WorldInitialized] = field(default_factory=dict)
    books: PathBooks = field(default_factory=PathBooks)
    claims: dict[Cell, tuple[bool | None, ...]] = field(default_factory=dict)

    def note(self, event: Event) -> None:
        """Keep what one event adds."""
        p = event.payload
        if isinstance(p, PlanPreregistered | PlanAmended):
            self.hidden_plan, self.plan_recorded_at = None, event.recorded_at
            self.plans += 1
        elif isinstance(p, PredictionsClosed):
            self.closed = p
        elif isinstance(p, ReportPublished):
            self.reports += 1
            self.published_exploratory += p.exploratory_looks
        elif isinstance(p, EndpointRejected):
            key = (p.method, p.card_id)
            self.rejected[key] = (*self.rejected.get(key, ()), p)
        elif isinstance(p, ClaimRecorded):
            cell = Cell(p.method, p.card_id, p.draw)
            self.claims[cell] = (*self.claims.get(cell, ()), p.grounded)
        else:
            self._note_world(p)

    def _note_world(self, p: Payload | None) -> None:
        if isinstance(p, WorldInitialized):
            self.worlds[Cell(p.method, p.card_id, p.draw)] = p
            self.books.open(p)
        elif isinstance(p, BranchForked):
            self.books.fork(p)
        elif isinstance(p, TimelineEnded):
            self.books.end(p)

    def note_withheld(self, record: Record) -> None:
        """Keep what the envelope of a redacted event still says."""
        fields = record.fields
        name, (kind, *rest) = fields["type"], fields["stream"].split("/")
        self.withheld.append(record.seq)
        if name in _PLANS:
            self.hidden_plan = record.seq
        elif name == _FROZEN:
            cell = _cell_of(fields["idem_key"])
            if cell is not None:
                self.withheld_cells.setdefault(cell, record.seq)
        elif kind in _CARD_STREAMS and len(rest) == 1:
            self.withheld_cards.setdefault(rest[0], set()).add(name)
        elif kind == "world":
            cell = _cell_of(fields["stream"])
            if cell is not None:
                self.books.hide(cell)


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """Everything that scores and tables are computed from.

    `size` and `root` are the log's. `cells` is by registered method; constants have none.
    `card_rows` is the place of each card of the plan in those arrays.
    """

    size: int
    root: bytes
    state: ProtocolState
    card_rows: dict[str, int]
    cells: dict[str, MethodCells]
    findings: Findings

    @property
    def plan(self) -> Plan | None:
        """The plan in force; None where none was registered.

        Raises:
            WithheldError: the payload of the plan in force is redacted.
        """
        hidden = self.findings.hidden_plan
        if hidden is not None:
            raise WithheldError(
                f"the plan in force, event {hidden}, is redacted; nothing can be scored under it."
            )
        return self.state.plan


def read_evaluation(store: Store) -> Evaluation:
    """Fold the whole log once.

    The store has compared leaf, link and commitment of what it yields; here only the first link is
    looked at. Cost: about 4 us a prediction beside the store's own 9.

    Raises:
        DamagedLedgerError: bytes do not match their hashes, or cannot be read as events.
    """
    state, columns, findings = ProtocolState(), Columns(), Findings()
    leaves: list[bytes] = []
    for record in store.read():
        fields = record.fields
        if not leaves and (fields["seq"] != 0 or fields["prev"] != FIRST_PREV):
            raise DamagedLedgerError("the log does not begin with event 0. Run `ledger verify`.")
        leaves.append(record.leaf)
        if record.payload is None:
            findings.note_withheld(record)
        elif _is_prediction(record):
            _add_prediction(columns, record)
        else:
            event = read_event(record)
            state = apply(state, event)
            findings.note(event)
    state.size = len(leaves)
    plan = state.plan
    card_rows = {} if plan is None else {c: row for row, c in enumerate(plan.card_set.cards)}
    return Evaluation(
        size=len(leaves),
        root=merkle_tree_hash(leaves),
        state=state,
        card_rows=card_rows,
        cells={} if plan is None else _arrange(columns, plan, card_rows),
        findings=findings,
    )


def read_prediction_details(store: Store) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield seq and JSON fields of each frozen prediction, for tables that print them all."""
    for record in store.read():
        if record.payload is not None and _is_prediction(record):
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


def _is_prediction(record: Record) -> bool:
    # A later version of the type is not ours to read: it is kept and reported.
    return record.fields["type"] == _FROZEN and record.fields["type_v"] == _FROZEN_V


def _add_prediction(columns: Columns, record: Record) -> None:
    try:
        if columns.add(record.seq, record.payload or b""):
            return
    except BadInputError as error:
        raise DamagedLedgerError(
            f"event {record.seq} is no prediction. Run `ledger verify`."
        ) from error
    payload = read_event(record).payload
    if not isinstance(payload, PredictionFrozen):
        raise BugError("the strict reader read a prediction as something else")
    columns.add_payload(record.seq, payload)


def _cell_of(token: str | None) -> Cell | None:
    """Read the cell in a key or stream such as `prediction/METHOD/CARD/1`; None for another."""
    parts = (token or "").split("/")
    if len(parts) != 4 or not parts[3].isdecimal() or len(parts[3]) > 7:
        return None
    return Cell(parts[1], parts[2], int(parts[3]))


def _arrange(columns: Columns, plan: Plan, place: dict[str, int]) -> dict[str, MethodCells]:
    """Put the columns into arrays a registered method, rows in the plan's order of cards."""
    row_of = np.array([place.get(card.decode(), MISSING) for card in columns.cards], dtype=np.int64)
    method, rows, draw = (
        np.asarray(columns.method),
        row_of[np.asarray(columns.card)],
        np.asarray(columns.draw),
    )
    values = [np.asarray(c) for c in (columns.p_units, columns.unresolved, columns.seq)]
    out: dict[str, MethodCells] = {}
    for spec in plan.methods:
        if spec.source == "constant":
            continue
        here = method == columns.methods.get(spec.id.encode(), MISSING)
        here &= (rows != MISSING) & (draw >= 1) & (draw <= spec.draws)
        # Backwards, so that the first frozen value is written last and stands.
        chosen = np.flatnonzero(here)[::-1]
        tables = []
        for column in values:
            table = np.full((len(place), spec.draws), MISSING, dtype=np.int64)
            table[rows[chosen], draw[chosen] - 1] = column[chosen]
            tables.append(table)
        out[spec.id] = MethodCells(*tables)
    return out
