"""`ledger preregister` and `ledger amend`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cards.pack import find_pack_file
from cli.rendering import say
from cli.system import system_actor
from cli.wiring import DEFAULT_LEDGER, LedgerOption, writing
from ledger.errors import BadInputError, OrderError
from ledger.session import Session
from scoring.plan import amend_plan, load_plan

PlanArgument = Annotated[
    Path, typer.Argument(help="The plan, a YAML file; or a shipped pack's name.")
]


def preregister(plan: PlanArgument, ledger: LedgerOption = DEFAULT_LEDGER) -> None:
    """Register the plan of the evaluation.

    Before the first prediction that it covers. What it does not name will be exploratory.
    """
    with writing(ledger) as session:
        seq = register_plan(session, plan)
    say(f"event {seq}: plan registered; what it does not name will be exploratory")


def register_plan(session: Session, path: Path) -> int:
    """Read, check and append a plan; return its seq.

    Raises:
        PlanFieldError: a field is missing or wrong.
        BadInputError: a card of the plan is not frozen.
    """
    path = find_pack_file(path, "plan")
    payload = load_plan(path)
    state = session.state()
    unknown = [card for card in payload.plan.card_set.cards if card not in state.cards]
    if unknown:
        raise BadInputError(
            f"card {unknown[0]!r} is not frozen in this ledger",
            where=f"{path}: card_set.cards",
            remedy="Freeze the pack with `ledger cards freeze` first.",
        )
    (seq,) = session.commit(lambda _: [payload])
    return seq


def amend(
    plan: PlanArgument,
    reason: Annotated[str, typer.Option("--reason", help="Why the plan changes, in a sentence.")],
    ledger: LedgerOption = DEFAULT_LEDGER,
) -> None:
    """Replace the plan, with a reason, before any label opens.

    Both versions stay in the log.
    """
    with writing(ledger) as session:
        in_force = session.state().plan_seq
        if in_force is None:
            raise OrderError(
                "order.amends-current",
                "there is no plan to amend",
                remedy="Register one with `ledger preregister PLAN.yaml` first.",
            )
        payload = amend_plan(plan, amends_seq=in_force, reason=reason, authority=system_actor())
        (seq,) = session.commit(lambda _: [payload])
    say(f"event {seq}: plan amended; it replaces event {in_force}")
