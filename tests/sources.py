"""The files of this repository as the house tests read them."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
GENERATED = {"demo", "dist", "build", "__pycache__"}
ENTRY_POINTS = {"cli.main", "ledger.verify.__main__"}


def list_files() -> list[Path]:
    """Return every file that is part of the repository, caches and environments left out."""
    return sorted(path for path in _walk(REPOSITORY) if path.is_file())


def list_python() -> list[Path]:
    """Return every Python file, tests included."""
    return [path for path in list_files() if path.suffix == ".py"]


def list_packages() -> list[str]:
    """Return the names of the packages on disk."""
    return sorted(path.parent.name for path in REPOSITORY.glob("*/__init__.py"))


def modules() -> dict[str, Path]:
    """Return every module of the packages by its dotted name."""
    found = {}
    for package in list_packages():
        for path in (REPOSITORY / package).rglob("*.py"):
            parts = path.relative_to(REPOSITORY).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def short(path: Path) -> str:
    """Return a path as it is written in this repository."""
    return path.relative_to(REPOSITORY).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    """Parse a Python file."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imported_names(path: Path) -> Iterator[str]:
    """Yield the dotted name of everything that a file imports, at any depth of it."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def pyproject() -> dict[str, Any]:
    """Return pyproject.toml."""
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))


def spec(name: str) -> str:
    """Return a page of docs/spec."""
    return (REPOSITORY / "docs" / "spec" / name).read_text(encoding="utf-8")


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name in GENERATED or path.suffix == ".egg-info":
            continue
        if path.name.startswith(".") and path.name not in {".ci", ".gitignore", ".github"}:
            continue
        yield path
        if path.is_dir():
            yield from _walk(path)
