"""Options that take several values after one name, as argparse's nargs='+' does.

    --post-ids 39523 39575 39476    is read as    --post-ids 39523 --post-ids 39575 ...

The eval framework's command lines are written so, and they are to work unchanged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from typer.core import TyperCommand

SPREAD = frozenset({"--post-ids", "--strategy-files", "--cards", "--card", "--method"})


class SpreadCommand(TyperCommand):
    """A command whose options of SPREAD take every value up to the next option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer's own type
        """Spread the values, then parse as usual."""
        return super().parse_args(ctx, list(spread_values(args, SPREAD)))


def spread_values(arguments: Sequence[str], names: Collection[str]) -> Iterator[str]:
    """Repeat an option's name before each further value of it."""
    current: str | None = None
    is_first = False
    for position, argument in enumerate(arguments):
        if argument == "--":
            yield from arguments[position:]
            return
        if argument.startswith("-") and not argument[1:].isdecimal():
            current = argument if argument in names else None
            is_first = current is not None
        elif current is not None and not is_first:
            yield current
        else:
            is_first = False
        yield argument
