"""Plans for the tests: every field of a plan, and five methods of different kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ledger.events.base import ModelRoute

AS_OF = "2026-01-10T00:00:00.000000Z"
OPEN_FROM = "2026-02-01T00:00:00.000000Z"
DIGEST = "ab" * 32
ROUTE = ModelRoute(
    provider="provider", route="chat", requested_model="model", resolved_model="model-1"
)
EXPOSURE = {
    "full_card": "yes",
    "masked_ids": True,
    "retrieval": False,
    "local_context": False,
    "risk": "low",
}


def method_fields(name: str, source: str = "imported", **other: object) -> dict[str, object]:
    """A method of a plan; `other` replaces fields."""
    return {
        "id": name,
        "label": f"The method {name}",
        "role": "pilot",
        "source": source,
        "strategy": "direct",
        "model_route": ROUTE.model_dump(),
        "prompt_version": "prompt-1",
        "prompt_digest": DIGEST,
        "parameters": {},
        "draws": 1,
        "aggregate": "single",
        "extraction_rule": "direct/1",
        "blend": None,
        "branch_policy": None,
        "exposure": EXPOSURE,
        **other,
    }


def plan_fields(
    methods: Sequence[Mapping[str, object]], cards: Sequence[str], **other: object
) -> dict[str, object]:
    """A plan over these methods and cards; `other` replaces fields."""
    return {
        "plan_id": "plan-1",
        "title": "A plan of the tests",
        "card_set": {"pack": "pack", "cards": list(cards)},
        "methods": list(methods),
        "baselines": [],
        "primary_metric": "brier",
        "secondary_metrics": ["log"],
        "clip": {"low": "0.01", "high": "0.99"},
        "calibration": {"bins": 10, "edges": "left-closed"},
        "extraction_rule": "direct/1",
        "blend_policy": "Weights are fixed here.",
        "comparisons": [{"a": "direct", "b": "uniform", "primary": True}],
        "published_intervals": [
            {
                "source": "A paper",
                "a": "direct",
                "b": "uniform",
                "level": "0.95",
                "low": "-0.065",
                "high": "0.250",
            }
        ],
        "statistical_test": {
            "primary": "sign",
            "level": "0.05",
            "two_sided": True,
            "permutation": {"exact_up_to": 40, "resamples": 1000, "seed": 1},
            "bootstrap": {
                "resamples": 1000,
                "seed": 1,
                "generator": "pcg64-lemire32/1",
                "level": "0.95",
            },
        },
        "tie_thresholds": ["0.01"],
        "primary_tie_threshold": "0.01",
        "multiplicity": {
            "confirmatory": "holm",
            "exploratory": "bh",
            "family": "listed",
            "tests": ["sign"],
        },
        "missing_predictions": {"policy": "complete_case", "value": None},
        "exclusions": {"reasons": ["annulled"], "statement": "Annulled cards leave."},
        "undated_evidence": "drop",
        "strata": [],
        "failure_tags": [],
        "example_selection": {"rule": "first/1", "count": 1},
        "branch_policies": [],
        "trigger_rule": None,
        "stopping_rule": {"rule": "fixed_cards", "cards": len(cards)},
        "labels_open_not_before": OPEN_FROM,
        **other,
    }


DIRECT = method_fields("direct")
UNIFORM = method_fields("uniform", "constant", extraction_rule="uniform/1")
RUNNER = method_fields("runner", "run", draws=2, aggregate="mean")
FORKY = method_fields("forky", "run", branch_policy="policy", extraction_rule="candidate-status/1")
MIX = method_fields(
    "mix",
    "computed",
    extraction_rule="blend/1",
    prompt_version=None,
    prompt_digest=None,
    blend={
        "parts": [
            {"method": "direct", "weight": "0.4"},
            {"method": "runner", "weight": "0.6"},
        ],
        "rounding": None,
    },
)
