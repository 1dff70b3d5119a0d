"""The pilot's cards and the golden figures, as the vector tests read them."""

from __future__ import annotations

import csv
import json
from functools import cache
from typing import Any, NamedTuple

import pytest
from shared_data import shared_file

from scoring import comparison
from scoring.exact import ExactArray

COLUMNS = {
    "direct": "direct_gpt54",
    "deepseek": "structured_deepseek",
    "prophet": "ai_prophet",
    "nobranch": "wf_no_branch",
    "branch": "wf_branch",
    "blend": "blend_50_50",
}
METHODS = ("uniform", *COLUMNS)
PAIRED = (
    "branch_vs_nobranch",
    "blend_vs_branch",
    "branch_vs_direct",
    "blend_vs_direct",
    "branch_vs_uniform",
)
SEEDS = (0, 20260101, 12345)
WITHIN = 1e-12


class Panel(NamedTuple):
    """The pilot: forecasts by method as decimal strings, labels, golden figures."""

    p: dict[str, list[str]]
    y: list[int]
    golden: dict[str, Any]


@cache
def panel() -> Panel:
    with shared_file("data/pilot/predictions.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    p = {name: [row[column] for row in rows] for name, column in COLUMNS.items()}
    golden = json.loads(shared_file("data/golden_scores.json").read_text(encoding="utf-8"))
    return Panel({"uniform": ["0.5"] * len(rows), **p}, [int(row["y"]) for row in rows], golden)


def near(value: float | None, expected: float | None, within: float = WITHIN) -> None:
    if value is None or expected is None:
        assert value is expected
    else:
        assert value == pytest.approx(expected, abs=within, rel=0)


def brier_pair(key: str) -> ExactArray:
    first, second = key.replace("_vs_", "|").split("|")
    p, y, _ = panel()
    return comparison.brier_differences(p[first], p[second], y)


def log_pair(key: str) -> ExactArray:
    first, second = key.replace("_vs_", "|").split("|")
    p, y, _ = panel()
    return comparison.log_differences(p[first], p[second], y)
