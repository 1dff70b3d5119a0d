"""What the order rules know of the log so far: one fold over its events.

Kept small: a million events must fit in memory. What was redacted or cannot be read is remembered
by type, so that a rule which misses something can tell *absent* from *hidden*.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from ledger.verify.canonical import JsonError, is_canonical, parse_json
from ledger.verify.forms import UNITS, parse_units
from ledger.verify.structure import Event

Cell: TypeAlias = tuple[str, str, int]
"""Method, card and draw."""

ATTEMPTS = ("attempt.started", "attempt.failed")
CALLS = ("model.called", "tool.called")
WORLDS = (
    "world.initialized",
    "tick.completed",
    "branch.forked",
    "timeline.ended",
    "endpoint.updated",
    "endpoint.settled",
)
PREDICTIONS = ("prediction.frozen",)
RUN = (*ATTEMPTS, *CALLS, *WORLDS, *PREDICTIONS)
"""All that an evaluation does to find a probability."""

PLANS = ("plan.preregistered", "plan.amended")
OPENINGS = ("label.unsealed", "label.revised")


class Withheld(str):
    """A message that says why a rule cannot be decided: something it needs is hidden."""

    __slots__ = ()


Problem: TypeAlias = str | Withheld | None
"""What a rule says of an event: broken, not to be decided, or nothing."""


@dataclass(frozen=True, slots=True)
class LogView:
    """What rules may ask of the log: its root at a size, an event's commitment; None: unknown."""

    root: Callable[[int], bytes | None]
    commitment: Callable[[int], str | None]


class Card(NamedTuple):
    """A frozen card."""

    seq: int
    kind: str
    as_of: str


class Seal(NamedTuple):
    """A sealed label."""

    seq: int
    card_id: str
    commitment: str


class Label(NamedTuple):
    """An opened label; `resolution` is None where the private bytes could not be read."""

    seq: int
    resolution: str | None


class Frozen(NamedTuple):
    """A frozen prediction, in 1e-9 units."""

    seq: int
    units: int
    rule: str


@dataclass(slots=True)
class Tries:
    """Attempts at a cell; `open` is number and seq of the one that has not ended."""

    count: int = 0
    open: tuple[int, int] | None = None


@dataclass(slots=True)
class Timeline:
    """A timeline and the mass that it holds."""

    mass_units: int
    ended: bool = False


class Plan:
    """The plan in force, in the shape in which rules ask for it."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields
        self.methods: dict[str, dict[str, Any]] = {m["id"]: m for m in fields["methods"]}
        self.cards: tuple[str, ...] = tuple(dict.fromkeys(fields["card_set"]["cards"]))
        self.card_ids = frozenset(self.cards)

    def is_registered(self, cell: Cell) -> bool:
        """Say whether the plan registers the cell."""
        method = self.methods.get(cell[0])
        return (
            method is not None
            and method["source"] != "constant"
            and cell[1] in self.card_ids
            and 1 <= cell[2] <= method["draws"]
        )

    def count_cells(self) -> int:
        """Count the registered cells."""
        draws = sum(m["draws"] for m in self.methods.values() if m["source"] != "constant")
        return int(draws) * len(self.cards)

    def cells(self) -> Iterator[Cell]:
        """Yield the registered cells; a plan may register very many."""
        for name, method in self.methods.items():
            if method["source"] != "constant":
                for card_id in self.cards:
                    for draw in range(1, method["draws"] + 1):
                        yield name, card_id, draw


@dataclass(slots=True)
class State:
    """The log so far. Fields that are seqs are None before such an event."""

    log: LogView
    origin: str | None = None
    log_id: str | None = None
    verifier_keys: tuple[str, ...] = ()
    cards: dict[str, Card] = field(default_factory=dict)
    seals: dict[str, Seal] = field(default_factory=dict)
    seals_by_seq: dict[int, Seal] = field(default_factory=dict)
    plan: Plan | None = None
    plan_seq: int | None = None
    first_plan_seq: int | None = None
    amendments: list[int] = field(default_factory=list)
    frozen: dict[Cell, Frozen] = field(default_factory=dict)
    first_run_seq: int | None = None
    first_prediction_seq: int | None = None
    last_prediction_seq: int | None = None
    imported: int = 0
    tries: dict[Cell, Tries] = field(default_factory=dict)
    attempts: int = 0
    failed_attempts: int = 0
    calls: int = 0
    timelines: dict[Cell, dict[str, Timeline]] = field(default_factory=dict)
    closed_seq: int | None = None
    first_unseal_seq: int | None = None
    opened: dict[str, Label] = field(default_factory=dict)
    labels: dict[str, Label] = field(default_factory=dict)
    annulled: dict[str, tuple[int, str]] = field(default_factory=dict)
    redactions: dict[int, int] = field(default_factory=dict)
    anchors: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    reports: list[int] = field(default_factory=list)
    hidden: dict[str, int] = field(default_factory=dict)

    def apply(self, event: Event) -> None:
        """Take an event into the state, whatever the rules said of it."""
        self._apply_type(event)
        if event.payload is None:
            self.hidden.setdefault(event.type, event.seq)
            return
        fold = _FOLDS.get(event.type)
        if fold is not None:
            fold(self, event.seq, event.payload)

    def absent(self, message: str, *types: str) -> str:
        """Return the message, as withheld if a hidden event of these types could refute it."""
        for kind in types:
            if kind in self.hidden:
                seq = self.hidden[kind]
                return Withheld(f"{message}, unless the hidden payload of event {seq} says so")
        return message

    def _apply_type(self, event: Event) -> None:
        """Take what the envelope alone says."""
        seq, kind = event.seq, event.type
        if kind in PLANS:
            self.plan_seq = seq
            self.plan = None
            if self.first_plan_seq is None:
                self.first_plan_seq = seq
            if kind == "plan.amended":
                self.amendments.append(seq)
        elif kind in RUN:
            self.first_run_seq = seq if self.first_run_seq is None else self.first_run_seq
            if kind == "prediction.frozen":
                self.last_prediction_seq = seq
                if self.first_prediction_seq is None:
                    self.first_prediction_seq = seq
            self.attempts += kind == "attempt.started"
            self.failed_attempts += kind == "attempt.failed"
            self.calls += kind in CALLS
        elif kind == "predictions.closed" and self.closed_seq is None:
            self.closed_seq = seq
        elif kind == "label.unsealed" and self.first_unseal_seq is None:
            self.first_unseal_seq = seq
        elif kind == "report.published":
            self.reports.append(seq)


def cell_of(payload: dict[str, Any]) -> Cell:
    """Return the cell that a payload names."""
    return payload["method"], payload["card_id"], payload["draw"]


def read_private(payload: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Read the private object of a `label.unsealed`.

    Returns:
        The object, or None and what is wrong with it (docs/spec/commitments.md, rule 6).
    """
    data = payload["private_json"].encode()
    try:
        value = parse_json(data)
    except JsonError as error:
        return None, f"the private bytes are not strict JSON: {error}"
    if not isinstance(value, dict):
        return None, "the private bytes are no JSON object"
    if not is_canonical(data, value):
        return value, "the private bytes are not in their canonical form"
    if value.get("card_id") != payload["card_id"]:
        return value, "the private object is of another card"
    if value.get("resolution") not in ("yes", "no"):
        return value, "the private object's resolution is not yes or no"
    return value, ""


def _fold_opened(state: State, _seq: int, payload: dict[str, Any]) -> None:
    if state.origin is None:
        state.origin = payload["origin"]
        state.log_id = payload["log_id"]
        state.verifier_keys = tuple(payload["verifier_keys"])


def _fold_card(state: State, seq: int, payload: dict[str, Any]) -> None:
    card = payload["card"]
    state.cards.setdefault(card["card_id"], Card(seq, card["kind"], card["as_of"]))


def _fold_seal(state: State, seq: int, payload: dict[str, Any]) -> None:
    seal = Seal(seq, payload["card_id"], payload["seal"]["commitment"])
    state.seals.setdefault(seal.card_id, seal)
    state.seals_by_seq[seq] = seal


def _fold_plan(state: State, _seq: int, payload: dict[str, Any]) -> None:
    state.plan = Plan(payload["plan"])


def _fold_started(state: State, seq: int, payload: dict[str, Any]) -> None:
    tries = state.tries.setdefault(cell_of(payload), Tries())
    tries.count += 1
    tries.open = (payload["attempt"], seq)


def _fold_failed(state: State, _seq: int, payload: dict[str, Any]) -> None:
    tries = state.tries.get(cell_of(payload))
    if tries is not None and tries.open is not None and tries.open[0] == payload["attempt"]:
        tries.open = None


def _fold_prediction(state: State, seq: int, payload: dict[str, Any]) -> None:
    cell = cell_of(payload)
    units = parse_units(payload["p_yes"]) or 0
    state.frozen.setdefault(cell, Frozen(seq, units, payload["extraction_rule"]))
    state.imported += payload["origin"]["kind"] == "import"
    tries = state.tries.get(cell)
    if tries is not None:
        tries.open = None


def _fold_world(state: State, _seq: int, payload: dict[str, Any]) -> None:
    state.timelines[cell_of(payload)] = {payload["timeline"]: Timeline(UNITS)}


def _fold_fork(state: State, _seq: int, payload: dict[str, Any]) -> None:
    timelines = state.timelines.setdefault(cell_of(payload), {})
    for child in payload["children"]:
        timelines.setdefault(child, Timeline(0))
    for posting in payload["postings"]:
        timeline = timelines.get(posting["timeline"])
        if timeline is not None:
            timeline.mass_units += posting["mass_units"]


def _fold_end(state: State, _seq: int, payload: dict[str, Any]) -> None:
    timeline = state.timelines.get(cell_of(payload), {}).get(payload["timeline"])
    if timeline is not None:
        timeline.ended = True


def _fold_unsealed(state: State, seq: int, payload: dict[str, Any]) -> None:
    private, _ = read_private(payload)
    resolution = private.get("resolution") if private else None
    label = Label(seq, resolution if resolution in ("yes", "no") else None)
    state.opened.setdefault(payload["card_id"], label)
    state.labels.setdefault(payload["card_id"], label)


def _fold_revised(state: State, seq: int, payload: dict[str, Any]) -> None:
    state.labels[payload["card_id"]] = Label(seq, payload["resolution"])


def _fold_annulled(state: State, seq: int, payload: dict[str, Any]) -> None:
    state.annulled.setdefault(payload["card_id"], (seq, payload["reason"]))


def _fold_redaction(state: State, seq: int, payload: dict[str, Any]) -> None:
    state.redactions.setdefault(payload["target_seq"], seq)


def _fold_anchor(state: State, seq: int, payload: dict[str, Any]) -> None:
    state.anchors.append((seq, payload))


_FOLDS: dict[str, Callable[[State, int, dict[str, Any]], None]] = {
    "ledger.opened": _fold_opened,
    "card.frozen": _fold_card,
    "label.sealed": _fold_seal,
    "plan.preregistered": _fold_plan,
    "plan.amended": _fold_plan,
    "attempt.started": _fold_started,
    "attempt.failed": _fold_failed,
    "world.initialized": _fold_world,
    "branch.forked": _fold_fork,
    "timeline.ended": _fold_end,
    "prediction.frozen": _fold_prediction,
    "checkpoint.anchored": _fold_anchor,
    "label.unsealed": _fold_unsealed,
    "label.revised": _fold_revised,
    "card.annulled": _fold_annulled,
    "payload.redacted": _fold_redaction,
}
