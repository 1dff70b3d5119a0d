"""bootstrap.py on machines that are not ready: each gets one sentence or a repaired environment.

Nothing here needs a network: the commands that would install are recorded instead of run.
"""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from sources import REPOSITORY, imported_names

FILE = REPOSITORY / "bootstrap.py"


class Machine:
    """A copy of bootstrap.py that believes in a folder of ours and notes what it would run."""

    def __init__(self, module: ModuleType, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.module = module
        self.root = root
        self.ran: list[list[str]] = []
        self.codes: dict[str, int] = {}
        self.monkeypatch = monkeypatch
        venv = root / ".venv"
        self.set(ROOT=root, VENV=venv, LOCK=root / "requirements.lock", BIN=venv / "bin")
        self.set(STAMP=venv / "forecast-ledger.stamp", PYTHON=venv / "bin" / "python")
        self.set(run=self._run, is_usable=lambda: False, has_pip=lambda: True)
        monkeypatch.setattr(module.shutil, "which", lambda _: None)
        (root / "requirements.lock").write_text("a==1\n", encoding="utf-8")
        (root / "pyproject.toml").write_text("[project]\n", encoding="utf-8")

    def set(self, **values: object) -> None:
        for name, value in values.items():
            self.monkeypatch.setattr(self.module, name, value)

    def finish(self) -> None:
        """Leave an environment as a finished run leaves it."""
        (self.root / ".venv" / "bin").mkdir(parents=True)
        (self.root / ".venv" / "pyvenv.cfg").touch()
        (self.root / ".venv" / "forecast-ledger.stamp").write_text(
            self.module.fingerprint(), encoding="utf-8"
        )
        self.set(is_usable=lambda: True)

    def main(self, *arguments: str) -> int:
        return int(self.module.main(list(arguments)))

    def jobs(self) -> list[str]:
        """Name what was run, shortly."""
        return [" ".join(Path(part).name for part in command[:4]) for command in self.ran]

    def _run(self, command: list[str]) -> int:
        self.ran.append(command)
        if "venv" in command:
            (self.root / ".venv").mkdir(exist_ok=True)
        return next((c for part, c in self.codes.items() if part in command), 0)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    spec = importlib.util.spec_from_file_location("bootstrap_copy", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return Machine(module, tmp_path, monkeypatch)


def test_it_needs_the_standard_library_alone() -> None:
    assert {name.split(".")[0] for name in imported_names(FILE)} <= set(sys.stdlib_module_names)


def test_an_old_python_can_read_it() -> None:
    """Python 3.6 syntax: a sentence is printed only by who gets past the parser."""
    ast.parse(FILE.read_text(encoding="utf-8"), feature_version=(3, 6))
    assert "__future__" not in {name.split(".")[0] for name in imported_names(FILE)}


def test_an_old_python_gets_one_sentence(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.monkeypatch.setattr(sys, "version_info", (3, 10, 13, "final", 0))
    machine.monkeypatch.setattr(sys, "version", "3.10.13 (main)")
    assert machine.main("demo") == 1
    assert capsys.readouterr().err.startswith("Python 3.10.13 is too old: forecast-ledger needs")
    assert machine.ran == []


@pytest.mark.parametrize("arguments", [(), ("demos",), ("demo", "test"), ("--help",)])
def test_usage(arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, FILE, *arguments], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "usage: python3 bootstrap.py demo|test\n"


def test_a_python_without_ensurepip_is_told_the_package(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    find = importlib.util.find_spec
    machine.monkeypatch.setattr(
        machine.module.importlib.util, "find_spec", lambda n: None if n == "ensurepip" else find(n)
    )
    assert machine.main("demo") == 1
    assert "apt install python3-venv" in capsys.readouterr().err
    assert machine.ran == []


def test_a_fresh_machine_with_pip(machine: Machine) -> None:
    assert machine.main("demo") == 0
    python = Path(sys.executable).name
    assert machine.jobs() == [
        f"{python} -m venv --clear",
        "python -m pip install",
        "python -m pip install",
        "ledger demo --dir demo",
    ]
    assert "--require-hashes" in machine.ran[1]
    assert {"--no-deps", "--no-build-isolation"} <= set(machine.ran[2])


def test_a_fresh_machine_with_uv(machine: Machine) -> None:
    machine.monkeypatch.setattr(machine.module.shutil, "which", lambda _: "/opt/uv")
    assert machine.main("demo") == 0
    assert machine.jobs()[:2] == [
        "uv venv --python " + Path(sys.executable).name,
        "uv pip install --quiet",
    ]
    assert "--require-hashes" in machine.ran[1]


def test_what_fits_is_left_alone(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.finish()
    assert machine.main("demo") == 0
    assert machine.jobs() == ["ledger demo --dir demo"]
    assert "is up to date" in capsys.readouterr().out


def test_a_changed_lock_installs_again_into_the_same_environment(machine: Machine) -> None:
    machine.finish()
    (machine.root / "requirements.lock").write_text("a==2\n", encoding="utf-8")
    assert machine.main("demo") == 0
    assert machine.jobs()[:2] == ["python -m pip install"] * 2


@pytest.mark.parametrize("reason", ["broken", "moved", "made by uv, which is gone"])
def test_an_environment_that_does_not_fit_is_made_anew(machine: Machine, reason: str) -> None:
    machine.finish()
    if reason == "broken":
        machine.set(is_usable=lambda: False)
    elif reason == "moved":
        stamp = machine.root / ".venv" / "forecast-ledger.stamp"
        stamp.write_text("/elsewhere\n" + "0" * 64 + "\n", encoding="utf-8")
    else:
        (machine.root / "requirements.lock").write_text("a==2\n", encoding="utf-8")
        machine.set(has_pip=lambda: False)
    assert machine.main("demo") == 0
    assert "--clear" in machine.ran[0]


def test_a_half_made_environment_is_finished(machine: Machine) -> None:
    """A run that was cut off leaves no stamp: the next one installs again."""
    machine.finish()
    (machine.root / ".venv" / "forecast-ledger.stamp").unlink()
    assert machine.main("demo") == 0
    assert machine.jobs() == ["python -m pip install"] * 2 + ["ledger demo --dir demo"]
    assert (machine.root / ".venv" / "forecast-ledger.stamp").exists()


def test_a_folder_of_somebody_elses_is_not_cleared(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    (machine.root / ".venv").mkdir()
    (machine.root / ".venv" / "mine.txt").touch()
    assert machine.main("demo") == 1
    assert "is no environment. Move it away" in capsys.readouterr().err
    assert machine.ran == []


@pytest.mark.parametrize(
    ("part", "sentence"),
    [
        ("venv", "environment could not be created"),
        ("--require-hashes", "is it there?"),
        ("-e", "project could not be installed"),
    ],
)
def test_a_step_that_fails_stops_there(
    machine: Machine, capsys: pytest.CaptureFixture[str], part: str, sentence: str
) -> None:
    machine.codes[part] = 1
    assert machine.main("demo") == 1
    assert sentence in capsys.readouterr().err
    assert part in machine.ran[-1]
    assert not (machine.root / ".venv" / "forecast-ledger.stamp").exists()


def test_a_read_only_checkout_is_told(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    machine.monkeypatch.setattr(machine.module.os, "access", lambda _path, _mode: False)
    assert machine.main("demo") == 1
    assert "cannot be written" in capsys.readouterr().err


def test_a_checkout_without_its_lock_is_told(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    (machine.root / "requirements.lock").unlink()
    assert machine.main("demo") == 1
    err = capsys.readouterr().err
    assert "requirements.lock: No such file" in err
    assert err.count("\n") == 1


def test_an_interrupt_is_one_sentence(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(_command: list[str]) -> int:
        raise KeyboardInterrupt

    machine.set(run=interrupted)
    assert machine.main("demo") == 1
    assert capsys.readouterr().err == "Interrupted. Run this again to go on.\n"


def test_all_checks_run_even_if_one_fails(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.finish()
    machine.codes["ruff"] = 0
    machine.codes["--check"] = 1
    assert machine.main("test") == 1
    tools = [Path(command[0]).name for command in machine.ran]
    assert tools == ["ruff", "ruff", "mypy", "lint-imports", "pytest"]
    assert "failed: format" in capsys.readouterr().err


def test_the_environments_own_python_is_asked(tmp_path: Path, machine: Machine) -> None:
    """`answer` is how a broken interpreter shows: no file, no start, or a failing line."""
    machine.set(PYTHON=tmp_path / "nothing")
    assert machine.module.answer("print(1)") == ""
    machine.set(PYTHON=Path(sys.executable))
    assert machine.module.answer("print(1)") == "1"
    assert machine.module.answer("import nothing_of_this_name") == ""
