"""Commands out of order: each refusal names its rule, the event it collides with and the remedy.

The design: "What a command refuses, it refuses with the rule's id, the seq it collides with and
what to do." Nothing in the folder changes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from console import PILOT, Inside, Stage, contents, is_one_sentence, ledger, must

PLAN = PILOT / "plan.yaml"
PREDICTIONS = PILOT / "predictions.csv"
REASON = ("--reason", "a rehearsal of refusals")
ONE_CARD = "card,method,p_yes\n001,direct_gpt54,0.9\n"


@dataclass(frozen=True)
class Refusal:
    """At a stage, a command, the rule that refuses it, the event it names and its advice."""

    stage: str
    command: tuple[object, ...]
    rule: str
    seq: int | None
    advice: str
    first: tuple[object, ...] = ()

    @property
    def name(self) -> str:
        """A name of its own for the list of tests."""
        return f"{self.stage}: {' '.join(map(str, self.command[:2]))}: {self.rule}"


REFUSALS = (
    Refusal("frozen", ("cards", "freeze", "worldfork_pilot"), "order.card-once", 1, "ledger seal"),
    Refusal("opened", ("seal", "worldfork_pilot"), "order.card-before-use", None, "cards freeze"),
    Refusal("sealed", ("seal", "worldfork_pilot"), "order.seal-once", 25, "ledger preregister"),
    Refusal("planned", ("preregister", PLAN), "order.plan-once", 49, "ledger amend"),
    Refusal("sealed", ("amend", PLAN, *REASON), "order.amends-current", None, "preregister"),
    Refusal(
        "sealed", ("predictions", "import", PREDICTIONS), "order.plan-before-use", None, "preregist"
    ),
    Refusal("sealed", ("close",), "order.plan-before-use", None, "Register"),
    Refusal("sealed", ("replay",), "order.plan-before-use", None, "preregister"),
    Refusal("sealed", ("report",), "order.plan-before-use", None, "preregister"),
    Refusal(
        "frozen",
        ("predictions", "import", PREDICTIONS),
        "order.seal-before-use",
        1,
        "ledger seal",
        first=("preregister", PLAN),
    ),
    Refusal("planned", ("close",), "order.close-complete", None, "--missing REASON"),
    Refusal(
        "planned",
        ("predictions", "import", PREDICTIONS),
        "order.late-prediction",
        50,
        "new ledger",
        first=("close", "--missing", "a rehearsal of refusals"),
    ),
    Refusal(
        "planned",
        ("predictions", "import", PREDICTIONS),
        "order.post-label",
        50,
        "new ledger",
        first=("unseal", "--waiver", "a rehearsal of refusals"),
    ),
    Refusal("imported", ("predictions", "import", "one.csv"), "order.cell-once", 50, "never"),
    Refusal("closed", ("close",), "order.close-once", 194, ""),
    Refusal("imported", ("unseal",), "order.unseal-before-close", None, "ledger close"),
    Refusal("unsealed", ("unseal",), "order.unseal-target", 195, "ledger replay"),
    Refusal("unsealed", ("amend", PLAN, *REASON), "order.plan-after-unseal", 195, "new ledger"),
    Refusal(
        "opened",
        ("annul", "001", "--reason", "invalid", "--detail", "x"),
        "order.card-before-use",
        None,
        "cards freeze",
    ),
    Refusal(
        "unsealed",
        ("annul", "001", "--reason", "invalid", "--detail", "x"),
        "order.annulled-once",
        219,
        "",
        first=("annul", "001", "--reason", "invalid", "--detail", "x"),
    ),
    Refusal(
        "closed",
        ("revise", "001", "--resolution", "no", *REASON),
        "order.revision",
        25,
        "ledger unseal",
    ),
    Refusal(
        "unsealed",
        ("revise", "nobody", "--resolution", "no", *REASON),
        "order.card-before-use",
        None,
        "cards freeze",
    ),
    Refusal("planned", ("redact", "0", *REASON), "order.redaction", 0, "after the first"),
    Refusal("planned", ("redact", "900", *REASON), "order.redaction", 900, "Name an event"),
    Refusal(
        "planned",
        ("redact", "3", *REASON),
        "order.redaction",
        3,
        "still has its payload",
        first=("redact", "3", *REASON),
    ),
)


@pytest.mark.parametrize(
    "case", REFUSALS, ids=lambda c: f"{c.stage}: {c.command[0]} {c.command[1:2]} {c.rule}"
)
def test_a_refusal_names_rule_event_and_remedy(stage: Stage, inside: Inside, case: Refusal) -> None:
    folder = stage(case.stage)
    (folder / "one.csv").write_text(ONE_CARD, encoding="utf-8")
    if case.first:
        assert inside(*case.first, cwd=folder).code == 0
    refused(folder, case, call=inside)


def test_labels_stay_shut_until_the_planned_day(stage: Stage) -> None:
    folder = stage("sealed")
    text = PLAN.read_text(encoding="utf-8")
    late = re.sub(r"(?m)^labels_open_not_before:.*$", _not_before("2999"), text)
    (folder / "plan.yaml").write_text(late, encoding="utf-8")
    must("preregister", "plan.yaml", cwd=folder)
    must("close", "--missing", "a rehearsal", cwd=folder)
    refused(folder, Refusal("closed", ("unseal",), "order.unseal-too-early", 49, "Wait"))


def test_another_vault_does_not_open_the_seals(stage: Stage) -> None:
    folder, other = stage("closed"), stage("frozen")
    must("seal", "worldfork_pilot", cwd=other)
    command = ("unseal", other / "vault.db")
    refused(folder, Refusal("closed", command, "label.seal", 25, "Use the vault"))


def test_a_vault_without_a_label_opens_none(stage: Stage) -> None:
    folder = stage("closed")
    must("init", "--ledger", "empty.db", cwd=folder)
    before = contents(folder)
    run = ledger("unseal", "--vault", "gone.db", cwd=folder)
    assert run.code == 2
    assert "gone.db" in run.err
    assert contents(folder) == before


def refused(folder: Path, case: Refusal, call: Inside = ledger) -> None:
    before = contents(folder)
    run = call(*case.command, cwd=folder)
    assert (run.code, run.out) == (2, "")
    assert is_one_sentence(run.err)
    assert f"[{case.rule}]" in run.err
    assert case.advice in run.err
    place = re.search(r"\(event (\d+)\)", run.err)
    assert (int(place[1]) if place else None) == case.seq
    assert contents(folder) == before


def _not_before(year: str) -> str:
    return f'labels_open_not_before: "{year}-01-01T00:00:00.000000Z"'
