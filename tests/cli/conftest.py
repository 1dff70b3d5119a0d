"""One evaluation, built once by the console script and kept at every stage of its life."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from console import PILOT, Inside, Run, Stage, must

from cli.main import run

STAGES: tuple[tuple[str, tuple[object, ...]], ...] = (
    ("opened", ("init", "--origin", "example.org/pilot")),
    ("frozen", ("cards", "freeze", "worldfork_pilot")),
    ("sealed", ("seal", "worldfork_pilot")),
    ("planned", ("preregister", PILOT / "plan.yaml")),
    ("imported", ("predictions", "import", PILOT / "predictions.csv")),
    ("closed", ("close",)),
    ("unsealed", ("unseal",)),
)


@pytest.fixture(scope="session")
def stages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a folder for each stage; tests read them and never write."""
    root = tmp_path_factory.mktemp("stages")
    folders: dict[str, Path] = {}
    work = root / "work"
    work.mkdir()
    for name, command in STAGES:
        must(*command, cwd=work)
        folders[name] = root / name
        shutil.copytree(work, folders[name])
    return folders


@pytest.fixture
def stage(stages: dict[str, Path], tmp_path: Path) -> Stage:
    """Return a maker of fresh copies: `stage("planned")` is a folder to play in."""

    def copy(name: str) -> Path:
        folder = tmp_path / name
        shutil.copytree(stages[name], folder)
        return folder

    return copy


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that `ledger demo` has filled; tests read it and never write."""
    root = tmp_path_factory.mktemp("demo")
    must("demo", "--dir", "d", cwd=root)
    return root / "d"


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Inside:
    """Return `ledger(...)` without a new process: the same entry point, streams captured."""
    monkeypatch.delenv("LEDGER", raising=False)
    monkeypatch.delenv("LEDGER_ACTOR", raising=False)

    def call(*arguments: object, cwd: Path) -> Run:
        monkeypatch.chdir(cwd)
        code = run([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Run(code, out, err)

    return call
