"""Who imports what: no dead module, no undeclared library, contracts over all packages."""

from __future__ import annotations

import re
import sys
from importlib import import_module

import pytest
from sources import (
    ENTRY_POINTS,
    imported_names,
    list_packages,
    modules,
    pyproject,
    short,
)

DISTRIBUTIONS = {
    "yaml": "pyyaml",
    "sqlite_utils": "sqlite-utils",
    "exa_py": "exa-py",
    "asknews_sdk": "asknews",
    "pydantic_core": "pydantic",
}
"""Import names that differ from the name under which a library is declared."""

FOR_CALLERS = {
    "ledger.store.memory": "the store port without a file, for tests and for whoever embeds it",
    "scoring.difficulty": "pure scoring functions for notebooks; equal to Brier on a full panel",
    "scoring.registry": "the scoring rules at a glance, run over by the properness test",
}
"""Modules that no other module needs, and why they are there."""


def declared() -> set[str]:
    """Return the names of the declared dependencies."""
    return {
        re.split(r"[<>=!~\[ ]", text, maxsplit=1)[0]
        for text in pyproject()["project"]["dependencies"]
    }


def foreign(package: str) -> dict[str, str]:
    """Return each library that a package imports, with one file that does."""
    own = {*list_packages(), *sys.stdlib_module_names}
    return {
        name.split(".")[0]: short(path)
        for module, path in modules().items()
        if module.split(".")[0] == package
        for name in imported_names(path)
        if name.split(".")[0] not in own
    }


@pytest.mark.parametrize("package", list_packages())
def test_what_a_package_imports_is_declared(package: str) -> None:
    """A tool of developers in a shipped package works here and nowhere else."""
    missing = {
        name: file
        for name, file in foreign(package).items()
        if DISTRIBUTIONS.get(name, name) not in declared()
    }
    assert missing == {}


def test_no_module_is_dead() -> None:
    """Every module is imported by another module of the packages, or is an entry point."""
    known = modules()
    used = {name for path in known.values() for name in imported_names(path)}
    parents = {
        ".".join(name.split(".")[:n]) for name in used for n in range(1, name.count(".") + 1)
    }
    dead = [
        name
        for name, path in known.items()
        if name not in used | parents | ENTRY_POINTS | set(FOR_CALLERS)
        and path.name != "__init__.py"
    ]
    assert dead == []


def test_the_entry_points_are_those_of_the_project() -> None:
    (target,) = pyproject()["project"]["scripts"].values()
    module, function = target.split(":")
    assert module in ENTRY_POINTS
    assert callable(getattr(import_module(module), function))
    assert set(modules()) >= ENTRY_POINTS


def test_every_package_is_shipped_and_under_contract() -> None:
    on_disk = list_packages()
    assert sorted(pyproject()["tool"]["importlinter"]["root_packages"]) == on_disk
    assert sorted(pyproject()["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]) == on_disk
    layers = next(
        contract["layers"]
        for contract in pyproject()["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
    )
    assert sorted(re.findall(r"\w+", " ".join(layers))) == on_disk
