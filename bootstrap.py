#!/usr/bin/env python3
"""Two commands on a fresh machine, with the standard library alone.

    python3 bootstrap.py demo     environment from the hashed lock, then a whole evaluation
    python3 bootstrap.py test     environment, then every check of the project

Idempotent: what is there and fits is left alone; what is broken, moved or made by another Python is
made anew. Uses uv where it is on PATH, pip otherwise. Annotations are quoted and nothing newer than
Python 3.6 is used, so that an old Python gets a sentence and not a syntax error.
"""

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
TYPED = ["benchmarks", "tests", "bootstrap.py", "docs/generate_cli.py"]
# Set by the caller for other work, these would lead pip and Python away from the environment.
FOREIGN = ("PYTHONHOME", "PYTHONPATH", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "VIRTUAL_ENV")


def main(arguments: "list[str]") -> "int":
    """Set the environment up and run the job; return the exit code."""
    if sys.version_info < OLDEST:
        have, need = sys.version.split()[0], ".".join(map(str, OLDEST))
        return stop(
            f"Python {have} is too old: forecast-ledger needs Python {need} or newer."
            " Install it and run this file with it."
        )
    if len(arguments) != 1 or arguments[0] not in ("demo", "test"):
        return stop("usage: python3 bootstrap.py demo|test")
    try:
        problem = set_up()
        if problem:
            return stop(problem)
        return run_demo() if arguments[0] == "demo" else run_checks()
    except OSError as error:
        return stop(f"{error.filename or ROOT}: {error.strerror}. Correct it and run this again.")
    except KeyboardInterrupt:
        return stop("Interrupted. Run this again to go on.")


def set_up() -> "str":
    """Create or repair the environment; return a sentence where that is not possible."""
    wanted = fingerprint()
    if is_usable() and STAMP.exists() and STAMP.read_text() == wanted:
        step("environment", f"{VENV.name} is up to date")
        return ""
    if VENV.exists() and not (VENV / "pyvenv.cfg").exists() and any(VENV.iterdir()):
        return f"{VENV} is there and is no environment. Move it away and run this again."
    if not os.access(str(ROOT), os.W_OK):
        return f"{ROOT} cannot be written. Copy the project to a folder of yours."
    uv = shutil.which("uv")
    if uv is None and importlib.util.find_spec("ensurepip") is None:
        return (
            "This Python has no ensurepip, so no environment can be made."
            " On Debian and Ubuntu: apt install python3-venv. Then run this again."
        )
    if not is_usable() or is_moved() or not (uv or has_pip()):
        step("environment", f"creating {VENV.name} with Python {sys.version.split()[0]}")
        create = [uv, "venv", "--python", sys.executable] if uv else [sys.executable, "-m", "venv"]
        if run([*create, "--clear", str(VENV)]):
            return "The environment could not be created; see the lines above."
    step("packages", f"installing the locked versions by {'uv' if uv else 'pip'}, hashes checked")
    if run(install_command(uv, "--require-hashes", "-r", str(LOCK))):
        return (
            "The locked packages could not be installed; see the lines above."
            " They come over the network: is it there?"
        )
    step("project", "installing forecast-ledger itself")
    if run(install_command(uv, "--no-deps", "--no-build-isolation", "-e", str(ROOT))):
        return "The project could not be installed; see the lines above."
    STAMP.write_text(wanted)
    return ""


def install_command(uv: "str | None", *arguments: "str") -> "list[str]":
    """Return the command that installs into the environment."""
    if uv:
        return [uv, "pip", "install", "--quiet", "--python", str(PYTHON), *arguments]
    quiet = ["--quiet", "--disable-pip-version-check"]
    return [str(PYTHON), "-m", "pip", "install", *quiet, *arguments]


def is_usable() -> "bool":
    """Say whether the environment starts and is of this very Python."""
    return PYTHON.exists() and answer("import sys; print(sys.version)") == sys.version


def is_moved() -> "bool":
    """Say whether the environment was finished elsewhere: its scripts name their old place."""
    return STAMP.exists() and STAMP.read_text().splitlines()[:1] != [str(ROOT)]


def has_pip() -> "bool":
    """Say whether pip is in the environment; one that uv made has none."""
    return answer("import pip; print('yes')") == "yes"


def answer(code: "str") -> "str":
    """Run a line in the environment's Python and return what it prints, empty if it fails."""
    try:
        done = subprocess.run(
            [str(PYTHON), "-c", code],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
            check=False,
        )
    except OSError:
        return ""
    return done.stdout.decode().strip() if done.returncode == 0 else ""


def fingerprint() -> "str":
    """Write down where the environment stands, and digest what it is made from."""
    digest = hashlib.sha256(sys.version.encode())
    for path in (LOCK, ROOT / "pyproject.toml"):
        digest.update(path.read_bytes())
    return f"{ROOT}\n{digest.hexdigest()}\n"


def run_demo() -> "int":
    """Run the main job."""
    step("demo", "a whole evaluation in ./demo")
    return run([str(BIN / "ledger"), "demo", "--dir", "demo"])


def run_checks() -> "int":
    """Run every check, all of them even if one fails; return 0 if all passed."""
    checks = [
        ("format", ["ruff", "format", "--check", "."]),
        ("lint", ["ruff", "check", "."]),
        ("types", ["mypy", *packages(), *TYPED]),
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


def packages() -> "list[str]":
    """Return the names of the packages on disk."""
    return sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))


def run(command: "list[str]") -> "int":
    """Run a command in the repository; return its exit code."""
    started = time.monotonic()
    code = subprocess.run(command, cwd=str(ROOT), env=environment(), check=False).returncode
    print(f"    {time.monotonic() - started:.0f} s, exit {code}", flush=True)
    return code


def environment() -> "dict[str, str]":
    """Return this process's environment without what points elsewhere."""
    return {key: value for key, value in os.environ.items() if key not in FOREIGN}


def step(name: "str", what: "str") -> None:
    """Print what comes next."""
    print(f"==> {name}: {what}", flush=True)


def stop(sentence: "str") -> "int":
    """Print why it ends here; return a failing exit code."""
    print(sentence, file=sys.stderr)
    return 2 if sentence.startswith("usage") else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
