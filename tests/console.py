"""Run the installed `ledger` command as a person does, and compare folders before and after."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sysconfig
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_PR_CAPBSET_DROP = 24
_CAP_DAC_OVERRIDE = 1
_CAP_DAC_READ_SEARCH = 2

SCRIPT = Path(sysconfig.get_path("scripts")) / "ledger"
REPOSITORY = Path(__file__).resolve().parent.parent
Stage = Callable[[str], Path]
"""Copies the folder of a stage of an evaluation (tests/cli/conftest.py) for one test."""

Inside = Callable[..., "Run"]
"""Runs a command as `ledger` does, in this process: fifty times faster, for sweeps over inputs."""

PILOT = REPOSITORY / "cards" / "packs" / "worldfork_pilot"
METHODS = [
    "uniform",
    "direct_gpt54",
    "structured_deepseek",
    "ai_prophet",
    "wf_no_branch",
    "wf_branch",
    "blend_50_50",
]


@dataclass(frozen=True)
class Run:
    """What one command gave back."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


def clean_environment(changes: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this environment without what would steer the command, and with the changes."""
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("LEDGER", "COV_", "PYTHON"))
    }
    return kept | dict(changes or {})


def ledger(*arguments: object, cwd: Path, env: Mapping[str, str] | None = None) -> Run:
    """Run the console script; whatever it is given, it never shows a traceback."""
    done = subprocess.run(
        [SCRIPT, *map(str, arguments)],
        cwd=cwd,
        env=clean_environment(env),
        capture_output=True,
        encoding="utf-8",
        stdin=subprocess.DEVNULL,
        preexec_fn=drop_override,
        timeout=300,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Run(done.returncode, done.stdout, done.stderr)


def must(*arguments: object, cwd: Path, env: Mapping[str, str] | None = None) -> Run:
    """Run a command that has to succeed."""
    run = ledger(*arguments, cwd=cwd, env=env)
    assert run.code == 0, run.err
    assert run.err == ""
    return run


def contents(folder: Path) -> dict[str, bytes | None]:
    """Return every file of a folder by its path, with its bytes; None for a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def is_one_sentence(err: str) -> bool:
    """Say whether a refusal is one line that begins with the command's name and ends in a stop."""
    return err.startswith("ledger: ") and err.count("\n") == 1 and err.endswith((".\n", ".`\n"))


def drop_override() -> None:
    """In a child before it starts: let file modes bind the superuser too, where this is Linux.

    Tests run as root in containers, and root reads a file of mode 0. Dropped from the bounding set,
    the two capabilities are gone after exec (capabilities(7)).
    """
    try:
        prctl = ctypes.CDLL(None).prctl
    except (AttributeError, OSError):
        return
    for capability in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
        prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
