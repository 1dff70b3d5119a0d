#!/usr/bin/env python3
"""Two commands on a fresh machine, with the standard library alone.

    python3 bootstrap.py demo     environment from the hashed lock, then a whole evaluation
    python3 bootstrap.py test     environment, then every check of the project

Idempotent: what is there and fits is left alone. Uses uv where it is on PATH, pip otherwise.
Kept readable by older Pythons, so that they get a sentence and not a syntax error.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
LOCK = ROOT / "requirements.lock"
STAMP = VENV / "forecast-ledger.stamp"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
PACKAGES = ["ledger", "cards", "scoring", "cli", "benchmarks", "tests"]


def main(arguments: list[str]) -> int:
    """Set the environment up and run the job; return the exit code."""
    if sys.version_info < OLDEST:
        have, need = sys.version.split()[0], ".".join(map(str, OLDEST))
        return stop(
            f"Python {have} is too old: forecast-ledger needs Python {need} or newer."
            " Install it and run this file with it."
        )
    if len(arguments) != 1 or arguments[0] not in ("demo", "test"):
        return stop("usage: python3 bootstrap.py demo|test")
    problem = set_up()
    if problem:
        return stop(problem)
    return run_demo() if arguments[0] == "demo" else run_checks()


def set_up() -> str:
    """Create or repair the environment; return a sentence where that is not possible."""
    wanted = fingerprint()
    if PYTHON.exists() and STAMP.exists() and STAMP.read_text() == wanted:
        step("environment", f"{VENV.name} is up to date")
        return ""
    uv = shutil.which("uv")
    if uv is None and importlib.util.find_spec("ensurepip") is None:
        return (
            "This Python has no ensurepip, so no environment can be made."
            " On Debian and Ubuntu: apt install python3-venv. Then run this again."
        )
    if not PYTHON.exists():
        step("environment", f"creating {VENV.name} with Python {sys.version.split()[0]}")
        create = [uv, "venv", "--python", sys.executable] if uv else [sys.executable, "-m", "venv"]
        if run([*create, str(VENV)]):
            return "The environment could not be created; see the lines above."
    step("packages", f"installing the locked versions by {'uv' if uv else 'pip'}, hashes checked")
    if run(install_command(uv, "--require-hashes", "-r", str(LOCK))):
        return "The locked packages could not be installed; see the lines above."
    step("project", "installing forecast-ledger itself")
    if run(install_command(uv, "--no-deps", "--no-build-isolation", "-e", str(ROOT))):
        return "The project could not be installed; see the lines above."
    STAMP.write_text(wanted)
    return ""


def install_command(uv: str | None, *arguments: str) -> list[str]:
    """Return the command that installs into the environment."""
    if uv:
        return [uv, "pip", "install", "--quiet", "--python", str(PYTHON), *arguments]
    quiet = ["--quiet", "--disable-pip-version-check"]
    return [str(PYTHON), "-m", "pip", "install", *quiet, *arguments]


def fingerprint() -> str:
    """Digest what the environment is made from, and by which Python."""
    digest = hashlib.sha256(sys.version.encode())
    for path in (LOCK, ROOT / "pyproject.toml"):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def run_demo() -> int:
    """Run the main job."""
    step("demo", "a whole evaluation in ./demo")
    return run([str(BIN / "ledger"), "demo", "--dir", "demo"])


def run_checks() -> int:
    """Run every check, all of them even if one fails; return 0 if all passed."""
    checks = [
        ("format", ["ruff", "format", "--check", "."]),
        ("lint", ["ruff", "check", "."]),
        ("types", ["mypy", *PACKAGES, "bootstrap.py"]),
        ("import contracts", ["lint-imports"]),
        ("tests and docs", ["pytest", "-n", "auto", "--dist", "worksteal"]),
    ]
    failed = []
    for name, command in checks:
        step(name, " ".join(command))
        if run([str(BIN / command[0]), *command[1:]]):
            failed.append(name)
    if failed:
        return stop("failed: " + ", ".join(failed))
    step("all checks", "passed")
    return 0


def run(command: list[str]) -> int:
    """Run a command in the repository; return its exit code."""
    started = time.monotonic()
    code = subprocess.run(command, cwd=str(ROOT), check=False).returncode
    print(f"    {time.monotonic() - started:.0f} s, exit {code}", flush=True)
    return code


def step(name: str, what: str) -> None:
    """Print what comes next."""
    print(f"==> {name}: {what}", flush=True)


def stop(sentence: str) -> int:
    """Print why it ends here; return a failing exit code."""
    print(sentence, file=sys.stderr)
    return 2 if sentence.startswith("usage") else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
