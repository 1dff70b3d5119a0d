"""docs/spec/scoring.md executes: its numbers are recomputed, its rules and tables are ours."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import pytest
from golden_panel import brier_pair, panel

from scoring import bootstrap, calibration, comparison, corp, limit, permutation, power, rules
from scoring.discrimination import auc
from scoring.index_stream import GENERATOR, IndexStream
from scoring.permutation import SIGN_GENERATOR
from scoring.registry import RULES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "spec" / "scoring.md"
Figure = float | int | str | Fraction | None


def table_rows(heading: str) -> list[list[str]]:
    """Return the cells of the first table after a heading, its two header lines left out."""
    section = PAGE.read_text(encoding="utf-8").split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def methods() -> dict[str, Figure]:
    p, y, _ = panel()
    branch, plain = p["branch"], p["nobranch"]
    error = calibration.calibration_error(branch, y)
    parts = corp.corp_brier(branch, y)
    assert error is not None
    assert parts is not None
    return {
        "Brier, branch": rules.brier_score(branch, y),
        "Brier, branch, exact": rules.brier_fraction(branch, y),
        "Brier, no-branch": rules.brier_score(plain, y),
        "log loss, branch": rules.log_loss(branch, y),
        "log loss, no-branch": rules.log_loss(plain, y),
        "clipped cards, branch": rules.clipped_count(branch),
        "ECE, 10 bins left-closed, branch": error.ece,
        "MCB, branch": parts.miscalibration,
        "DSC, branch": parts.discrimination,
        "AUC, branch": auc(branch, y),
    }


def comparisons() -> dict[str, Figure]:
    d = brier_pair("branch_vs_nobranch")
    t, ranks = comparison.paired_t(d), comparison.signed_rank_test(d)
    assert t is not None
    assert ranks is not None
    figures: dict[str, Figure] = {
        "mean difference": t.mean,
        "standard deviation of the differences": t.sd,
        "sign-flip permutation test": permutation.sign_flip_exact(d),
        "paired t test": t.p_value,
        "Wilcoxon signed-rank test": ranks.p_value,
        "detectable difference at 80 % power": power.detectable_difference(24, t.sd),
        "cards needed for this difference": power.cards_needed(t.mean, t.sd),
    }
    for epsilon in ("0", "0.0001"):
        found = comparison.sign_test(d, epsilon)
        counts = f"{found.a_better} {found.b_better} {found.ties}"
        figures[f"cards won, lost, tied at {epsilon}"] = counts
        figures[f"sign test at {epsilon}"] = found.p_value
    return figures


def intervals() -> dict[str, Figure]:
    d = brier_pair("branch_vs_nobranch")
    drawn = bootstrap.resample([d], seed=0)
    assert drawn is not None
    plain, bca = bootstrap.interval(drawn), bootstrap.interval(drawn, method="bca")
    limits = limit.limit_interval(d), limit.limit_interval(d, method="bca")
    assert limits[0] is not None
    assert limits[1] is not None
    return {
        "percentile interval, seed 0, low": plain.low,
        "percentile interval, seed 0, high": plain.high,
        "BCa interval, seed 0, low": bca.low,
        "BCa interval, seed 0, high": bca.high,
        "percentile limit, low": limits[0].low,
        "percentile limit, high": limits[0].high,
        "BCa limit, low": limits[1].low,
        "BCa limit, high": limits[1].high,
    }


def as_printed(figure: Figure, text: str) -> str:
    """Format a figure with as many decimals as the page shows."""
    if isinstance(figure, float):
        return f"{figure:.{len(text.partition('.')[2])}f}"
    return str(figure)


def test_the_worked_example_is_what_the_code_computes() -> None:
    """Every value of the worked example MUST follow from the pilot's cards."""
    figures = methods() | comparisons() | intervals()
    rows = {label: text for label, text in table_rows("Worked example")}  # noqa: C416
    assert {label: as_printed(figures[label], text) for label, text in rows.items()} == rows
    assert set(rows) == set(figures)


def test_the_table_of_rules_is_the_registry() -> None:
    """Every registered rule MUST stand on the page, with its direction."""
    rows = table_rows("Rules")
    assert [(row[0].strip("`"), row[2]) for row in rows] == [(r.name, r.direction) for r in RULES]


def test_the_table_of_words_and_indices_is_the_stream() -> None:
    for seed, word, indices in table_rows("Random stream"):
        assert str(IndexStream(int(seed)).words(1)[0]) == word
        found = IndexStream(int(seed)).indices(24, 24).tolist()
        assert " ".join(map(str, found)) == indices


def test_the_page_names_generators_and_conventions() -> None:
    text = PAGE.read_text(encoding="utf-8")
    left = calibration.calibration_error(["0.5"], [1])
    right = calibration.calibration_error(["0.5"], [1], closed="right")
    adaptive = calibration.adaptive_calibration_error(["0.5"], [1])
    names = [found.convention for found in (left, right, adaptive) if found]
    for name in (GENERATOR, SIGN_GENERATOR, "pcg64-uniform53/1", *names):
        assert f"`{name}`" in text


def test_rules_are_numbered_without_gaps() -> None:
    numbers = re.findall(r"^(\d+)\. ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert numbers == [str(k + 1) for k in range(len(numbers))]


@pytest.mark.parametrize(("figure", "text", "want"), [(0.25, "0.2500", "0.2500"), (3, "3", "3")])
def test_figures_are_printed_as_the_page_does(figure: Figure, text: str, want: str) -> None:
    assert as_printed(figure, text) == want
