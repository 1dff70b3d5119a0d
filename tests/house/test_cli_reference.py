"""docs/cli.md is what the commands say of themselves."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from sources import REPOSITORY, list_files

from cli import exit_codes


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "generate_cli", REPOSITORY / "docs" / "generate_cli.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATOR = _generator()
COMMANDS = dict(GENERATOR.list_commands())
PAGE = (REPOSITORY / "docs" / "cli.md").read_text(encoding="utf-8")
PAGES = [path for path in list_files() if path.suffix == ".md"]


def test_the_page_is_up_to_date() -> None:
    assert GENERATOR.format_page() == PAGE, "run `python docs/generate_cli.py`"


def test_the_page_has_every_command_and_no_other() -> None:
    assert re.findall(r"(?m)^## `(ledger [a-z ]+)`$", PAGE) == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_has_one_clear_sentence(name: str) -> None:
    command = COMMANDS[name]
    summary, *_ = command.help.split("\n\n")
    assert re.fullmatch(r"[A-Z][^\n]*[.]", summary), summary
    # Longer ones are cut off in the list of commands.
    assert len(summary) <= 62, summary
    for parameter in command.params:
        text = parameter.help or ""
        assert re.fullmatch(r"[A-Z].{4,}[.]", text), (name, parameter.name, text)


def test_every_exit_code_is_explained_once() -> None:
    named = {
        value for key, value in vars(exit_codes).items() if key.isupper() and key != "MEANINGS"
    }
    assert [code for code, _ in exit_codes.MEANINGS] == sorted(named)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_documented_command_exists(path: Path) -> None:
    """Whatever a page calls `ledger ...` in code can be run."""
    groups = {name.rsplit(" ", 1)[0] for name in COMMANDS}
    text = path.read_text(encoding="utf-8")
    for words in re.findall(r"(?m)(?:^\$ |`)(?:[.\w/]+/)?ledger ([a-z][a-z ]*[a-z])", text):
        first, *rest = words.split()
        name = f"ledger {first}"
        if name in groups:
            name = f"{name} {rest[0]}" if rest else name
        assert name in COMMANDS or name in groups, f"{path.name}: ledger {words}"
