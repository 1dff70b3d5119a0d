"""What a file may look like: its size, its functions, its name, and what is left lying in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest
from sources import list_files, list_packages, list_python, modules, short, tree_of

MAX_FUNCTION_LINES = 70
MAX_FILE_LINES = 500
# Spelt so that this file does not hold what it looks for.
LEFTOVERS = re.compile(
    r"\b(?:TO[D]O|FIX[M]E|XX[X]|HA[C]K|NotImplemented[E]rror)\b|assert[ ]True\b|pragma[:] no cover"
)
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc", "base_utils"}

EVERY_FILE = pytest.mark.parametrize("path", list_python(), ids=short)


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Yield each function with its number of lines; a decorator's table of cases is data."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.end_lineno:
            yield node.name, node.end_lineno - node.lineno + 1


@EVERY_FILE
def test_functions_and_files_keep_their_budget(path: Path) -> None:
    long = {name: size for name, size in functions(path) if size > MAX_FUNCTION_LINES}
    assert long == {}
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_FILE_LINES


def test_most_functions_are_short() -> None:
    sizes = [size for path in modules().values() for _, size in functions(path)]
    assert median(sizes) <= 15


@EVERY_FILE
def test_nothing_is_left_for_later(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert [match[0] for match in LEFTOVERS.finditer(text)] == []


@EVERY_FILE
def test_a_file_is_named_for_one_idea(path: Path) -> None:
    assert path.stem not in VAGUE_NAMES


@EVERY_FILE
def test_no_bare_assert_guards_an_invariant(path: Path) -> None:
    """`-O` removes an assert: packages raise BugError, only tests and benchmarks assert."""
    if short(path).startswith(("tests/", "benchmarks/")):
        return
    assert [n.lineno for n in ast.walk(tree_of(path)) if isinstance(n, ast.Assert)] == []


def test_no_module_only_forwards() -> None:
    forwarding = [
        name
        for name, path in modules().items()
        if path.name != "__init__.py" and all(map(_forwards, tree_of(path).body))
    ]
    assert forwarding == []


def _forwards(node: ast.stmt) -> bool:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return True
    if isinstance(node, ast.Assign):
        return isinstance(node.value, (ast.Name, ast.Attribute)) or any(
            isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets
        )
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def test_packages_open_empty() -> None:
    """The verifier loads the standard library alone: no `__init__` imports anything."""
    filled = [
        short(path)
        for path in modules().values()
        if path.name == "__init__.py" and path.read_text(encoding="utf-8").strip()
    ]
    assert filled == []


def test_packages_say_that_they_are_typed() -> None:
    """PEP 561: a marker in each top-level package, and nowhere else."""
    found = sorted(short(path.parent) for path in list_files() if path.name == "py.typed")
    assert found == list_packages()
