"""The shipped pack worldfork_pilot against the paper's facts."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from shared_data import shared_file

from cards.lint import lint_pack
from cards.pack import Pack, load_pack
from cards.reported import Reported, read_reported
from cards.source import to_public_card
from ledger.events.plan import Plan
from ledger.ids import SeededEntropy
from ledger.printed import agrees_with_printed
from scoring.plan import load_plan

IDS = [f"{number:03d}" for number in range(1, 25)]
METHODS = (
    "direct_gpt54",
    "structured_deepseek",
    "ai_prophet",
    "wf_no_branch",
    "wf_branch",
    "blend_50_50",
)
HEADER = (
    "card,method,p_yes,provider,route,requested_model,resolved_model,prompt_version,response_id"
)
RISKS = {"low": "low", "med": "medium", "high": "high"}


@pytest.fixture(scope="module")
def pack() -> Pack:
    return load_pack("worldfork_pilot")


@pytest.fixture(scope="module")
def rows(pack: Pack) -> list[dict[str, str]]:
    assert pack.predictions is not None
    return list(csv.DictReader(pack.predictions.read_text().splitlines()))


@pytest.fixture(scope="module")
def plan(pack: Pack) -> Plan:
    assert pack.plan is not None
    return load_plan(pack.plan).plan


@pytest.fixture(scope="module")
def reported(pack: Pack) -> Reported:
    assert pack.reported is not None
    return read_reported(pack.reported)


def paper_rows(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(shared_file(f"data/pilot/{name}").read_text().splitlines()))


def brier(rows: list[dict[str, str]], pack: Pack, method: str) -> dict[str, Fraction]:
    """Exact Brier loss of each card."""
    return {
        row["card"]: (Fraction(row["p_yes"]) - truth(pack, row["card"])) ** 2
        for row in rows
        if row["method"] == method
    }


def truth(pack: Pack, card_id: str) -> int:
    private = pack.card(card_id).private
    assert private is not None
    return int(private.resolution == "yes")


def test_the_pack_has_24_resolved_cards(pack: Pack) -> None:
    assert [card.source.id for card in pack.cards] == IDS
    assert {card.source.kind for card in pack.cards} == {"resolved"}
    assert sum(truth(pack, card_id) for card_id in IDS) == 12


def test_every_card_is_complete_and_says_where_it_comes_from(pack: Pack) -> None:
    for card in pack.cards:
        source = card.source
        assert 2 <= len(source.source_packet) <= 3, source.id
        assert len(source.auxiliary_endpoints) <= 2, source.id
        assert 3 <= source.public_context.count(". ") + 1 <= 5, source.id
        assert "the paper's" in source.provenance
        assert "this project's" in source.provenance
    assert "reconstruction" in pack.header.provenance


def test_facts_are_the_papers(pack: Pack) -> None:
    facts = paper_rows("cards.csv")
    assert [row["case"] for row in facts] == IDS
    for row in facts:
        card = pack.card(row["case"])
        source, private = card.source, card.private
        assert private is not None
        assert private.resolution == row["resolution"]
        assert (source.as_of, source.deadline) == (row["as_of"], row["deadline"])
        assert (source.domain, source.source_class) == (row["domain"], row["source_class"])
        assert source.leakage_risk == RISKS[row["leakage_risk"]]


def test_predictions_are_the_papers_as_printed(pack: Pack, rows: list[dict[str, str]]) -> None:
    assert pack.predictions is not None
    assert pack.predictions.read_text().splitlines()[0] == HEADER
    printed = {
        (row["case"], method): row[method]
        for row in paper_rows("predictions.csv")
        for method in METHODS
    }
    assert {(row["card"], row["method"]): row["p_yes"] for row in rows} == printed
    assert [(row["card"], row["method"]) for row in rows] == list(printed)
    assert len(rows) == 144


def test_what_the_paper_does_not_record_is_empty(rows: list[dict[str, str]]) -> None:
    assert {row["response_id"] for row in rows} == {""}
    assert {row["prompt_version"] for row in rows} == {""}
    resolved = {row["method"]: row["resolved_model"] for row in rows}
    assert resolved["structured_deepseek"] == "deepseek-v4-flash-20260423"
    assert resolved["ai_prophet"] == "gpt-5.4-2026-03-05"
    assert resolved["blend_50_50"] == ""


def test_the_plan_registers_the_routes_of_the_predictions(
    plan: Plan, rows: list[dict[str, str]]
) -> None:
    parts = ("provider", "route", "requested_model", "resolved_model")
    registered = {
        method.id: tuple(getattr(method.model_route, part) or "" for part in parts)
        for method in plan.methods
    }
    assert registered.pop("uniform") == ("", "", "", "")
    assert {row["method"]: tuple(row[part] for part in parts) for row in rows} == registered


def test_the_plan_covers_the_pack_and_refers_to_itself_only(pack: Pack, plan: Plan) -> None:
    methods = [method.id for method in plan.methods]
    assert (plan.card_set.pack, list(plan.card_set.cards)) == (pack.id, IDS)
    assert methods == ["uniform", *METHODS]
    assert set(plan.baselines) < set(methods)
    named = {side for pair in plan.comparisons for side in (pair.a, pair.b)}
    assert named < set(methods)
    assert [(pair.a, pair.b) for pair in plan.comparisons if pair.primary] == [
        ("wf_branch", "wf_no_branch")
    ]
    policies = {policy.id for policy in plan.branch_policies}
    assert {method.branch_policy for method in plan.methods} - {None} == policies
    assert plan.primary_tie_threshold in plan.tie_thresholds
    assert plan.stopping_rule.cards == len(IDS)


def test_every_printed_blend_lies_within_its_rounding(
    plan: Plan, rows: list[dict[str, str]]
) -> None:
    """The blend was rounded from unrounded parts: half a step of it and half a step of each."""
    blend = next(method.blend for method in plan.methods if method.blend is not None)
    assert blend.rounding is not None
    cells = {(row["card"], row["method"]): Fraction(row["p_yes"]) for row in rows}
    weights = {part.method: Fraction(part.weight) for part in blend.parts}
    assert sum(weights.values()) == 1
    for card_id in IDS:
        exact = sum(weight * cells[card_id, part] for part, weight in weights.items())
        assert abs(cells[card_id, "blend_50_50"] - exact) <= Fraction(blend.rounding)


def test_the_predictions_score_to_the_reported_figures(
    pack: Pack, rows: list[dict[str, str]], reported: Reported
) -> None:
    for score in reported.scores:
        losses = brier(rows, pack, score.method) or {card_id: Fraction(1, 4) for card_id in IDS}
        assert len(losses) == reported.n
        assert agrees_with_printed(sum(losses.values(), Fraction()) / 24, score.brier)
        given = {row["card"]: row["p_yes"] for row in rows if row["method"] == score.method}
        logs = []
        for card_id in IDS:
            p = min(0.99, max(0.01, float(given.get(card_id, "0.5"))))
            logs.append(-math.log(p if truth(pack, card_id) else 1 - p))
        assert agrees_with_printed(Fraction(math.fsum(logs)) / 24, score.log)


def test_the_paired_figures_recompute(
    pack: Pack, rows: list[dict[str, str]], reported: Reported
) -> None:
    pair = reported.paired
    a, b = brier(rows, pack, pair.a), brier(rows, pack, pair.b)
    gaps = {card_id: b[card_id] - a[card_id] for card_id in IDS}
    mean = sum(gaps.values(), Fraction()) / 24
    assert agrees_with_printed(mean, pair.mean_brier_difference)
    reduction = mean * 24 / sum(b.values(), Fraction())
    assert agrees_with_printed(reduction, pair.relative_reduction)
    for row in pair.tie_table:
        epsilon = Fraction(row.epsilon)
        wins = sum(gap > epsilon for gap in gaps.values())
        losses = sum(gap < -epsilon for gap in gaps.values())
        assert (wins, losses, 24 - wins - losses) == (row.a_lower, row.b_lower, row.ties)
        assert agrees_with_printed(sign_test_p(wins, losses), row.sign_test_p)
    assert agrees_with_printed(sign_test_p(17, 7), pair.sign_test_p)
    lost = {item.card: item.difference for item in pair.b_lower_cards}
    assert set(lost) == {card_id for card_id, gap in gaps.items() if gap < 0}
    assert all(agrees_with_printed(gaps[card_id], text) for card_id, text in lost.items())


def sign_test_p(wins: int, losses: int) -> Fraction:
    """Exact two-sided sign test, ties left out (the paper's equation 4)."""
    n, most = wins + losses, max(wins, losses)
    return min(Fraction(1), Fraction(2 * sum(math.comb(n, k) for k in range(most, n + 1)), 2**n))


def test_reported_figures_are_those_of_the_paper(reported: Reported) -> None:
    paper: dict[str, Any] = json.loads(shared_file("data/pilot/reported.json").read_text())
    scores = {
        item.method: (float(item.brier), float(item.log), item.role) for item in reported.scores
    }
    assert scores == {
        name: (item["brier"], item["log"], item["role"]) for name, item in paper["scores"].items()
    }
    pair, ours = paper["paired_branch_vs_no_branch"], reported.paired
    assert reported.n == paper["n"]
    assert float(ours.sign_test_p) == pair["sign_test_p_two_sided"]
    assert [float(ours.interval.low), float(ours.interval.high)] == pair["bootstrap_percentile_95"]
    rows = [
        (float(r.epsilon), r.a_lower, r.b_lower, r.ties, float(r.sign_test_p))
        for r in ours.tie_table
    ]
    assert rows == [tuple(item.values()) for item in pair["tie_thresholds"]]
    lost = {item.card: float(item.difference) for item in ours.b_lower_cards}
    assert lost == pair["no_branch_lower_cards"]


def test_the_pack_is_clean_but_for_what_it_accepts(pack: Pack) -> None:
    findings = lint_pack(pack)
    assert [item for item in findings if item.accepted_because is None] == []
    assert len(findings) == len(pack.accepted) == 1


def test_every_card_becomes_public_with_its_secrets_digested(pack: Pack) -> None:
    entropy: Callable[[int], bytes] = SeededEntropy("pilot")
    for card in pack.cards:
        public = to_public_card(card.source, pack=pack.id, private=card.private, entropy=entropy)
        assert public.as_of.endswith("T00:00:00.000000Z")
        assert public.deadline is not None
        assert public.deadline.endswith("T23:59:59.999999Z")
        assert bool(public.forbidden) is bool(
            card.private and (card.private.entity_map or card.private.forbidden)
        )
