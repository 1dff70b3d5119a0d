"""Write docs/cli.md from the commands themselves: `python docs/generate_cli.py`.

A house test compares the page with what this file would write.
"""  # noqa: INP001 - a script beside the page that it writes

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import typer
from typer.core import TyperCommand, TyperGroup

from cli.app import app
from cli.exit_codes import MEANINGS

PAGE = Path(__file__).resolve().parent / "cli.md"

_HEAD = """\
# Commands

<!-- Written by docs/generate_cli.py. Change the commands, then run it. -->

A command that reads prints text for people, or JSON with `--json`. A command that is refused says
in one sentence on standard error what is wrong, where, and what to do, and writes nothing.
`--ledger PATH` names the ledger, else `$LEDGER`, else `ledger.db` in the working folder.
`$LEDGER_ACTOR` is written into each event as its actor, else `operator`.
`ledger --version` prints the version, `--help` after any command what that command takes.
"""


def format_page() -> str:
    """Write the whole page."""
    return "\n".join([_HEAD, *_exit_codes(), *_commands(), ""])


def list_commands() -> Iterator[tuple[str, TyperCommand]]:
    """Yield each command with its full name, such as `ledger cards list`."""
    yield from _walk("ledger", typer.main.get_command(app))


def _walk(name: str, node: object) -> Iterator[tuple[str, TyperCommand]]:
    if isinstance(node, TyperGroup):
        for key, child in node.commands.items():
            yield from _walk(f"{name} {key}", child)
    elif isinstance(node, TyperCommand):
        yield name, node


def _exit_codes() -> Iterator[str]:
    yield "## Exit codes\n\n| code | meaning |\n|---|---|"
    for code, meaning in MEANINGS:
        yield f"| {code} | {meaning} |"
    yield ""


def _commands() -> Iterator[str]:
    for name, command in list_commands():
        yield f"## `{name}`\n"
        yield f"{command.help}\n"
        yield "| argument or option | value | meaning |\n|---|---|---|"
        for parameter in command.params:
            yield _row(parameter)
        yield ""


def _row(parameter: object) -> str:
    """Write one argument or option as a row; typer's parameters are duck-typed on purpose."""
    text = {key: getattr(parameter, key, None) for key in ("help", "default", "envvar", "opts")}
    opts = text["opts"] or []
    argument = getattr(parameter, "param_type_name", "") == "argument"
    name = ", ".join(f"`{opt.upper() if argument else opt}`" for opt in opts)
    value = _value(parameter)
    notes = []
    if getattr(parameter, "required", False):
        notes.append("Required.")
    elif text["default"] not in (None, False, (), []):
        first = f"`${text['envvar']}`, else " if text["envvar"] else ""
        notes.append(f"Default {first}`{text['default']}`.")
    return f"| {name} | {value} | {' '.join([str(text['help']), *notes])} |"


def _value(parameter: object) -> str:
    if getattr(parameter, "is_flag", None):
        return ""
    annotation = getattr(getattr(parameter, "type_descriptor", None), "annotation", str)
    choices = getattr(annotation, "__args__", ())
    if choices and all(isinstance(choice, str) for choice in choices):
        return ", ".join(f"`{choice}`" for choice in choices)
    several = "one or more: " if getattr(parameter, "multiple", False) else ""
    kind = choices[0] if choices else annotation
    return several + {"Path": "path", "int": "whole number", "str": "text"}[kind.__name__]


if __name__ == "__main__":
    PAGE.write_text(format_page(), encoding="utf-8")
