"""Order rules of the run: attempts, calls, predictions and closing (docs/spec/events.md)."""

from __future__ import annotations

from typing import Protocol

from ledger.decimals import format_units, parse_units
from ledger.errors import OrderError, WithheldError
from ledger.events.base import ModelRoute
from ledger.events.call import AttemptFailed, AttemptStarted, ModelCalled, ToolCalled
from ledger.events.plan import MethodSpec, Plan
from ledger.events.prediction import PredictionFrozen, PredictionsClosed
from ledger.protocol.blend import BLEND_RULE, blend_units
from ledger.protocol.setup_rules import frozen_card
from ledger.protocol.state import Cell, ProtocolState


class NamesCell(Protocol):
    """Any payload that belongs to a cell."""

    @property
    def method(self) -> str: ...  # noqa: D102

    @property
    def card_id(self) -> str: ...  # noqa: D102

    @property
    def draw(self) -> int: ...  # noqa: D102


def check_cell(state: ProtocolState, payload: NamesCell) -> MethodSpec:
    """Check what every attempt, call, world and prediction must satisfy; return its method.

    `order.card-before-use`, `order.seal-before-use`, `order.plan-before-use`,
    `order.method-registered`, `order.card-registered`, `order.draw-registered`,
    `order.late-prediction`, `order.post-label`.
    """
    card = frozen_card(state, payload.card_id)
    if card.needs_seal and card.sealed_seq is None:
        raise OrderError(
            "order.seal-before-use",
            f"the label of card {payload.card_id} is not sealed",
            seq=card.frozen_seq,
            remedy="Seal it with `ledger seal` first.",
        )
    _plan_in_force(state, f"method {payload.method} on card {payload.card_id}")
    method = _registered_method(state, payload)
    if state.closed_seq is not None:
        raise OrderError(
            "order.late-prediction",
            f"method {payload.method} on card {payload.card_id} comes after the closing",
            seq=state.closed_seq,
            remedy="Nothing can be added to a closed evaluation; start a new ledger.",
        )
    if state.first_unsealed_seq is not None:
        raise OrderError(
            "order.post-label",
            f"method {payload.method} on card {payload.card_id} comes after a label was opened",
            seq=state.first_unsealed_seq,
            remedy="Such a prediction proves nothing; start a new ledger with new cards.",
        )
    return method


def _plan_in_force(state: ProtocolState, what: str) -> Plan:
    if state.plan is not None:
        return state.plan
    if state.plan_seq is not None:
        raise WithheldError(
            f"the plan in force, event {state.plan_seq}, is redacted: nothing says whether it"
            f" covers {what}. Amend it with the same plan first."
        )
    raise OrderError(
        "order.plan-before-use",
        f"no plan covers {what}",
        remedy="Register one with `ledger preregister PLAN.yaml` first.",
    )


def _registered_method(state: ProtocolState, payload: NamesCell) -> MethodSpec:
    method = state.methods.get(payload.method)
    if method is None or method.source == "constant":
        raise OrderError(
            "order.method-registered",
            f"method {payload.method} is not one that the plan lets predict",
            seq=state.plan_seq,
            remedy=f"Registered: {', '.join(sorted(state.methods))}.",
        )
    if payload.card_id not in state.planned_cards:
        raise OrderError(
            "order.card-registered",
            f"card {payload.card_id} is not in the plan's card set",
            seq=state.plan_seq,
            remedy="Leave it out, or amend the plan before labels open.",
        )
    if payload.draw > method.draws:
        raise OrderError(
            "order.draw-registered",
            f"draw {payload.draw} of method {method.id}: the plan registers {method.draws}",
            seq=state.plan_seq,
            remedy="Leave it out, or amend the plan before labels open.",
        )
    return method


def check_attempt_started(state: ProtocolState, payload: AttemptStarted) -> None:
    """`order.attempt-number` and `order.attempt-open`."""
    check_cell(state, payload)
    cell = Cell(payload.method, payload.card_id, payload.draw)
    last = state.attempts.get(cell)
    busy = state.cells[cell][0] if cell in state.cells else (last.open_seq if last else None)
    if busy is not None:
        raise OrderError(
            "order.attempt-open",
            f"cell {'/'.join(map(str, cell))} is frozen or has an attempt under way",
            seq=busy,
            remedy="Let it end, or resume it.",
        )
    expected = last.number + 1 if last else 1
    if payload.attempt != expected:
        raise OrderError(
            "order.attempt-number",
            f"attempt {payload.attempt} of cell {'/'.join(map(str, cell))}: the next is {expected}",
            remedy="The ledger counts attempts; take the number it gives.",
        )


def check_attempt_failed(state: ProtocolState, payload: AttemptFailed) -> None:
    """`order.attempt-cited`."""
    check_cell(state, payload)
    attempt = state.attempts.get(Cell(payload.method, payload.card_id, payload.draw))
    if (
        attempt is None
        or attempt.open_seq is None
        or (attempt.number, attempt.open_seq) != (payload.attempt, payload.started_seq)
    ):
        raise OrderError(
            "order.attempt-cited",
            f"attempt {payload.attempt} of {payload.method}/{payload.card_id}/{payload.draw}"
            " is not the one under way",
            seq=attempt.open_seq if attempt else None,
            remedy="Cite the attempt that is open and its seq.",
        )


def check_model_called(state: ProtocolState, payload: ModelCalled) -> None:
    """`order.as-of-widened`, and `order.route-registered` for single-route methods."""
    method = check_cell(state, payload)
    _check_as_of(state, payload.card_id, payload.as_of)
    if method.branch_policy is None:
        check_route(
            state, method, payload.model_route, payload.prompt_version, payload.prompt_digest
        )


def check_tool_called(state: ProtocolState, payload: ToolCalled) -> None:
    """`order.as-of-widened`, `order.evidence-after-as-of`, `order.evidence-undated`."""
    check_cell(state, payload)
    _check_as_of(state, payload.card_id, payload.as_of)
    keep_undated = state.plan is not None and state.plan.undated_evidence == "keep_flagged"
    for item in payload.evidence:
        times = [time for time in (item.published, item.snapshot) if time is not None]
        if not item.kept:
            continue
        if any(time > payload.as_of for time in times):
            raise OrderError(
                "order.evidence-after-as-of",
                f"evidence {item.url} claims {max(times)}, after the as-of time {payload.as_of}",
                remedy="Drop it; nothing later than as-of may reach a prompt.",
            )
        if not times and not keep_undated:
            raise OrderError(
                "order.evidence-undated",
                f"evidence {item.url} has no date and the plan drops undated evidence",
                seq=state.plan_seq,
                remedy="Drop it, or register undated_evidence: keep_flagged.",
            )


def check_route(
    state: ProtocolState,
    method: MethodSpec,
    route: ModelRoute,
    prompt_version: str | None,
    prompt_digest: str | None,
) -> None:
    """`order.route-registered`: where plan and event both record a field, they are equal."""
    pairs = [
        ("prompt_version", method.prompt_version, prompt_version),
        ("prompt_digest", method.prompt_digest, prompt_digest),
    ]
    pairs += [
        (name, getattr(method.model_route, name), getattr(route, name))
        for name in ("provider", "route", "requested_model", "resolved_model")
    ]
    for name, planned, actual in pairs:
        if planned is not None and actual is not None and planned != actual:
            raise OrderError(
                "order.route-registered",
                f"{name} of method {method.id} is {actual!r}; the plan registers {planned!r}",
                seq=state.plan_seq,
                remedy="Use the registered route, or amend the plan before labels open.",
            )


def check_prediction(state: ProtocolState, payload: PredictionFrozen) -> None:
    """`order.cell-once`, `order.extraction-registered`, `order.attempt-cited`, `order.blend`."""
    method = check_cell(state, payload)
    cell = Cell(payload.method, payload.card_id, payload.draw)
    if cell in state.cells:
        raise OrderError(
            "order.cell-once",
            f"cell {'/'.join(map(str, cell))} is frozen already",
            seq=state.cells[cell][0],
            remedy="A frozen prediction never changes.",
        )
    if payload.extraction_rule != method.extraction_rule:
        raise OrderError(
            "order.extraction-registered",
            f"extraction rule {payload.extraction_rule} for method {method.id}: the plan registers"
            f" {method.extraction_rule}",
            seq=state.plan_seq,
            remedy="Extract with the registered rule.",
        )
    check_route(state, method, payload.model_route, payload.prompt_version, payload.prompt_digest)
    _check_cited_attempt(state, payload, cell)
    if method.blend is not None or payload.extraction_rule == BLEND_RULE:
        _check_blend(state, payload, method)


def _check_cited_attempt(state: ProtocolState, payload: PredictionFrozen, cell: Cell) -> None:
    attempt = state.attempts.get(cell)
    under_way = attempt.number if attempt is not None and attempt.open_seq is not None else None
    if payload.origin.kind == "run":
        cited_well = under_way is not None and payload.attempt == under_way
    else:
        cited_well = payload.attempt is None
    if not cited_well:
        raise OrderError(
            "order.attempt-cited",
            f"the prediction for {'/'.join(map(str, cell))} cites attempt {payload.attempt}; under"
            f" way is {under_way}",
            seq=attempt.open_seq if attempt else None,
            remedy="A run's prediction cites its open attempt; an imported one cites none.",
        )


def _check_blend(state: ProtocolState, payload: PredictionFrozen, method: MethodSpec) -> None:
    if method.blend is None:
        raise OrderError(
            "order.blend",
            f"method {method.id} extracts by {BLEND_RULE} and registers no blend",
            seq=state.plan_seq,
            remedy="Amend the plan with the parts and weights of the blend.",
        )
    expected = blend_units(state, method, payload.card_id)
    if expected is None:
        raise OrderError(
            "order.blend",
            f"the parts of blend {method.id} on card {payload.card_id} are not all frozen",
            remedy="Freeze the parts first.",
        )
    units = parse_units(payload.p_yes)
    rounding = method.blend.rounding
    if rounding is None:
        is_blend = units == round(expected)
    else:
        is_blend = abs(units - expected) <= parse_units(rounding)
    if not is_blend:
        raise OrderError(
            "order.blend",
            f"{payload.p_yes} for {method.id} on card {payload.card_id} is not the registered blend"
            f" {format_units(round(expected))} of its parts",
            remedy="Correct the value, the weights or the rounding.",
        )


def check_closed(state: ProtocolState, payload: PredictionsClosed) -> None:
    """`order.close-once`, `order.attempt-unreported`, `order.close-counts`, `-complete`."""
    _plan_in_force(state, "the closing")
    if state.closed_seq is not None:
        raise OrderError(
            "order.close-once",
            "predictions are closed already",
            seq=state.closed_seq,
            remedy="Go on with `ledger unseal`.",
        )
    for cell, attempt in state.attempts.items():
        if attempt.open_seq is not None:
            raise OrderError(
                "order.attempt-unreported",
                f"attempt {attempt.number} of {'/'.join(map(str, cell))} has not been reported",
                seq=attempt.open_seq,
                remedy="Resume the run, or record why it failed.",
            )
    cells = state.registered_cells()
    frozen = sum(cell in state.cells for cell in cells)
    counts = (len(cells), frozen, state.started, state.failed)
    if counts != (payload.expected, payload.frozen, payload.attempts, payload.failed_attempts):
        raise OrderError(
            "order.close-counts", f"the log counts {counts}", remedy="Close from the log itself."
        )
    empty = [Cell(e.method, e.card_id, e.draw) for e in payload.empty]
    if sorted(empty) != sorted(cell for cell in cells if cell not in state.cells):
        raise OrderError(
            "order.close-complete",
            "the list of empty cells is not the log's",
            remedy="Close from the log itself.",
        )


def _check_as_of(state: ProtocolState, card_id: str, as_of: str) -> None:
    card = frozen_card(state, card_id)
    if as_of > card.card.as_of:
        raise OrderError(
            "order.as-of-widened",
            f"a call for card {card_id} as of {as_of}; the card's is {card.card.as_of}",
            seq=card.frozen_seq,
            remedy="A call may look earlier than its card, never later.",
        )
