"""The README's examples run: its ```console blocks are executed in one temporary folder.

Lines that begin with `$ ledger ` are run in order. What a block shows below such a line is compared
with what the command prints; `...` stands for any text. A line may end with `# exit N`.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from console import SCRIPT, clean_environment
from sources import REPOSITORY

README = REPOSITORY / "README.md"


@dataclass(frozen=True)
class Step:
    """A command of the README, its exit code, and what the page shows that it prints."""

    line: str
    code: int
    shown: str


def read_steps(text: str) -> list[Step]:
    """Find the steps of every console block of a page."""
    steps = []
    for block in re.findall(r"(?ms)^```console\n(.*?)^```$", text):
        for part in re.split(r"(?m)^\$ ", block)[1:]:
            command, _, shown = part.replace("\\\n", "").partition("\n")
            if command.startswith("ledger "):
                line, _, code = command.partition("# exit ")
                steps.append(Step(line.strip(), int(code or 0), shown.strip()))
    return steps


def matches(shown: str, printed: str) -> bool:
    """Compare what a page shows with what was printed."""
    pattern = ".*?".join(re.escape(piece) for piece in shown.split("..."))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def test_the_readme_runs(tmp_path: Path) -> None:
    steps = read_steps(README.read_text(encoding="utf-8"))
    assert steps
    for step in steps:
        done = subprocess.run(
            ["bash", "-c", step.line],
            cwd=tmp_path,
            env=clean_environment({"PATH": f"{SCRIPT.parent}:{os.environ['PATH']}"}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == step.code, f"{step.line}\n{done.stdout}"
        if step.shown:
            assert matches(step.shown, done.stdout), f"{step.line}\n{done.stdout}"


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a ... c", "a b c", True),
        ("a\n...\nd", "a\nb\nc\nd\n", True),
        ("a", "b", False),
        ("a ... c", "a b d", False),
        ("1.5 (x)", "1.5 (x)", True),
        ("1.5", "125", False),
    ],
)
def test_the_comparison_can_fail(shown: str, printed: str, same: bool) -> None:  # noqa: FBT001
    assert matches(shown, printed) is same


def test_steps_are_found_with_their_output() -> None:
    page = (
        "```console\n$ cd x\n$ ledger init \\\n  --origin a\ncreated ...\n"
        "$ ledger show 9 # exit 2\n```\n"
    )
    assert read_steps(page) == [
        Step("ledger init   --origin a", 0, "created ..."),
        Step("ledger show 9", 2, ""),
    ]
