"""Order rules of the plan and of what it registers (docs/spec/events.md, Order rules)."""

from __future__ import annotations

from typing import Any

from ledger.verify.forms import format_units, parse_units
from ledger.verify.order_cards import fields
from ledger.verify.scores import aggregate, blend
from ledger.verify.state import PLANS, Plan, Problem, State, Withheld, cell_of
from ledger.verify.structure import Event

_ROUTE = ("provider", "route", "requested_model", "resolved_model")


def plan_once(state: State, event: Event) -> Problem:
    """`order.plan-once`."""
    if event.type == "plan.amended":
        if state.first_plan_seq is None:
            return "a plan is amended, and none was registered"
        return None
    if state.first_plan_seq is None:
        return None
    return f"a plan was registered by event {state.first_plan_seq}"


def plan_before_use(state: State, event: Event) -> Problem:
    """`order.plan-before-use`."""
    return f"{event.type} before any plan" if state.plan_seq is None else None


def amends_current(state: State, event: Event) -> Problem:
    """`order.amends-current`."""
    named = fields(event)["amends_seq"]
    if state.plan_seq is None or named == state.plan_seq:
        return None
    return f"it amends event {named}; the plan in force is event {state.plan_seq}"


def plan_after_unseal(state: State, event: Event) -> Problem:
    """`order.plan-after-unseal`."""
    if state.first_unseal_seq is None:
        return None
    return f"{event.type} after a label was opened by event {state.first_unseal_seq}"


def plan_keeps_cells(state: State, event: Event) -> Problem:
    """`order.plan-keeps-cells`."""
    old = state.plan
    if old is None:
        return _hidden_plan(state)
    new = Plan(fields(event)["plan"])
    for cell, frozen in state.frozen.items():
        if not old.is_registered(cell):
            continue
        where = f"the cell {show_cell(cell)}, frozen by event {frozen.seq},"
        if not new.is_registered(cell):
            return f"{where} is not registered any more"
        if new.methods[cell[0]]["extraction_rule"] != old.methods[cell[0]]["extraction_rule"]:
            return f"{where} gets another extraction rule"
    return None


def method_registered(state: State, event: Event) -> Problem:
    """`order.method-registered`."""
    if state.plan is None:
        return _hidden_plan(state)
    name = fields(event)["method"]
    method = state.plan.methods.get(name)
    if method is None:
        return f"the plan has no method {name}"
    return f"{name} is constant and has no cells" if method["source"] == "constant" else None


def card_registered(state: State, event: Event) -> Problem:
    """`order.card-registered`."""
    if state.plan is None:
        return _hidden_plan(state)
    card_id = fields(event)["card_id"]
    return None if card_id in state.plan.card_ids else f"the plan's card set has no {card_id}"


def draw_registered(state: State, event: Event) -> Problem:
    """`order.draw-registered`."""
    if state.plan is None:
        return _hidden_plan(state)
    name, _, draw = cell_of(fields(event))
    method = state.plan.methods.get(name)
    if method is None or draw <= method["draws"]:
        return None
    return f"draw {draw} of {name}, which has {method['draws']}"


def extraction_registered(state: State, event: Event) -> Problem:
    """`order.extraction-registered`."""
    method = _method(state, event)
    if method is None:
        return _hidden_plan(state)
    used, due = fields(event)["extraction_rule"], method["extraction_rule"]
    return None if used == due else f"{used} was used, {due} is registered"


def route_registered(state: State, event: Event) -> Problem:
    """`order.route-registered`."""
    method = _method(state, event)
    if method is None:
        return _hidden_plan(state)
    if event.type == "model.called" and method["branch_policy"] is not None:
        return None  # The calls of a world have a role each, and prompts of their own.
    payload = fields(event)
    pairs = [(key, method["model_route"][key], payload["model_route"][key]) for key in _ROUTE]
    pairs += [(key, method[key], payload[key]) for key in ("prompt_version", "prompt_digest")]
    for key, planned, recorded in pairs:
        if planned is not None and recorded is not None and planned != recorded:
            return f"{key} is {ascii(recorded)[:80]}, {ascii(planned)[:80]} is registered"
    return None


def blend_holds(state: State, event: Event) -> Problem:
    """`order.blend`."""
    payload = fields(event)
    plan, method = state.plan, _method(state, event)
    if plan is None or method is None:
        return _hidden_plan(state)
    spec = method["blend"]
    if spec is None:
        is_blend = payload["extraction_rule"] == "blend/1"
        return f"the plan has no blend for {payload['method']}" if is_blend else None
    values = []
    for part in spec["parts"]:
        if part["method"] not in plan.methods:
            return f"the part {part['method']} is not registered"
        value = aggregate(state, plan, part["method"], payload["card_id"])
        if value is None:
            what = f"the part {part['method']} of {payload['card_id']} is not frozen"
            return state.absent(what, "prediction.frozen")
        values.append(value)
    mean = blend(spec, values)
    units = parse_units(payload["p_yes"]) or 0
    if spec["rounding"] is None:
        holds = round(mean) == units
    else:
        holds = abs(units - mean) <= (parse_units(spec["rounding"]) or 0)
    if holds:
        return None
    return f"p_yes is {payload['p_yes']}, the blend of its parts {format_units(round(mean))}"


def show_cell(cell: tuple[str, str, int]) -> str:
    """Write a cell as method, card and draw."""
    return f"{cell[0]} / {cell[1]} / draw {cell[2]}"


def _method(state: State, event: Event) -> dict[str, Any] | None:
    return None if state.plan is None else state.plan.methods.get(fields(event)["method"])


def _hidden_plan(state: State) -> Problem:
    """Say that a rule about the plan cannot be decided where the plan in force is hidden."""
    if state.plan_seq is None or state.plan is not None:
        return None
    if not any(kind in state.hidden for kind in PLANS):
        return None
    return Withheld(f"the plan in force, event {state.plan_seq}, is hidden")
