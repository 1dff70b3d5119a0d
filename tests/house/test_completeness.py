"""Registries and pages agree: an addition without its heading, row or example fails here."""

from __future__ import annotations

import ast
import re

import pytest
from event_examples import EXAMPLES
from sources import modules, spec, tree_of

from ledger.events.registry import EVENT_TYPES
from ledger.projections.registry import PROJECTIONS
from ledger.verify.rules import RULES as VERIFIER_RULES
from scoring.registry import RULES as SCORING_RULES

ONLY_THE_VERIFIER = {"order.label-dropped", "order.report", "order.anchor"}
"""Rules about a whole log, or about what no command of ours writes wrong: nothing to refuse."""


def rules_of_the_page() -> set[str]:
    """Return the ids in the table of order rules."""
    table = spec("events.md").split("\n## Order rules")[1].split("\n## ")[0]
    return set(re.findall(r"(?m)^\| `([a-z]+\.[a-z-]+)` \|", table))


def rules_that_commands_raise() -> set[str]:
    """Return the first argument of every OrderError in the packages."""
    found = set()
    for path in modules().values():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "OrderError":
                first = node.args[0]
                assert isinstance(first, ast.Constant), f"{path}:{node.lineno}"
                found.add(str(first.value))
    return found


def test_every_event_type_has_its_heading_and_nothing_else_does() -> None:
    section = spec("events.md").split("\n## Vocabulary")[1].split("\n## ")[0]
    assert re.findall(r"(?m)^### `([a-z.]+)`$", section) == [row.name for row in EVENT_TYPES]


def test_every_event_type_has_an_example() -> None:
    assert set(EXAMPLES) == {row.name for row in EVENT_TYPES}


def test_projections_handle_known_events() -> None:
    names = {row.name for row in EVENT_TYPES}
    assert all(projection.handles <= names for projection in PROJECTIONS)
    assert len({projection.table for projection in PROJECTIONS}) == len(PROJECTIONS)


@pytest.mark.parametrize("rule", SCORING_RULES, ids=lambda rule: rule.name)
def test_every_scoring_rule_has_its_row(rule: object) -> None:
    name = getattr(rule, "name", "")
    assert re.search(rf"(?m)^\| `{re.escape(name)}` \|", spec("scoring.md"))


def test_every_rule_that_is_raised_is_in_the_specification() -> None:
    assert rules_that_commands_raise() <= rules_of_the_page()


def test_every_rule_of_the_specification_is_raised_or_left_to_the_verifier() -> None:
    assert rules_of_the_page() - rules_that_commands_raise() == ONLY_THE_VERIFIER


def test_the_verifier_decides_every_rule_of_the_specification() -> None:
    assert rules_of_the_page() <= set(VERIFIER_RULES)
