"""A backtest as a locked evaluation: questions to cards, strategies to a plan; pure.

The eval framework ran strategies over resolved questions and printed a ranking. Here the same
inputs become a ledger: cards frozen, labels sealed, a plan that fixes models, prompts, draws,
scores and penalties before the first call. The plan is made from the strategy files; nobody has to
write it, and everybody can read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from forecasting.answer import PROBABILITY, AnswerForm
from forecasting.questions.question import Exclusion, ImportedSet, to_public_card
from forecasting.strategies.config import ENFORCED_MODEL, Strategy
from forecasting.strategies.registry import StrategyKind, find_strategy
from forecasting.strategies.settings import DEFAULT_CALLS_A_TOOL, DEFAULT_TOOL_CALLS, pin_prompt
from ledger.errors import BadInputError
from ledger.events.card import CardFrozen
from ledger.events.plan import Plan
from ledger.ids import Entropy

PACK: Final = "backtest"
REFERENCE: Final = "uniform"
LOG_EPSILON: Final = ("0.000001", "0.999999")
"""Clip bounds of the framework's log loss (epsilon 1e-6)."""

_STAGES: Final = (
    ("outside_view", "outside_view.1", "outside_view_enabled"),
    ("inside_view", "inside_view.1", "inside_view_enabled"),
)
_PIPELINE_TOKENS: Final = "8192"
_FIXED_SAMPLING: Final = ("gpt-5-", "o1", "o3", "o4")
"""Names of reasoning models whose endpoints refuse a temperature."""

PlanFields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunSetup:
    """What the command line fixes for all methods of a backtest.

    Attributes:
        provider, route: who is asked; a route of None is the provider's usual one.
        model: the model that is enforced on every stage; None for `gpt-5-nano`.
        draws: runs a question; None takes the strategy's own number, else 1.
        tools: search tools that are open.
        corpus_sha256: digest of the corpus among them.
        form: how a probability is asked for.
        parameters: of the model, over those of the strategy (a local model's seed, for example).
    """

    provider: str
    route: str | None = None
    model: str | None = None
    draws: int | None = None
    tools: tuple[str, ...] = ()
    corpus_sha256: str | None = None
    form: AnswerForm = PROBABILITY
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def enforced_model(self) -> str:
        """The model's name at this provider; OpenRouter puts the maker's name before it."""
        if self.model is not None:
            return self.model
        return f"openai/{ENFORCED_MODEL}" if self.provider == "openrouter" else ENFORCED_MODEL


def freeze_questions(imported: ImportedSet, entropy: Entropy) -> list[CardFrozen]:
    """Turn imported questions into their `card.frozen` payloads.

    Raises:
        BadInputError: a question that makes no card, or none at all.
    """
    if not imported.questions:
        raise BadInputError("no question is left to ask", remedy="Name questions that resolved.")
    labels = {label.card_id: label for label in imported.labels}
    return [
        CardFrozen(
            card=to_public_card(
                question, pack=PACK, private=labels.get(question.question_id), entropy=entropy
            )
        )
        for question in imported.questions
    ]


def make_plan(
    plan_id: str,
    cards: Sequence[str],
    methods: Sequence[PlanFields],
    *,
    opens_at: str,
    exclusions: Iterable[Exclusion] = (),
) -> PlanFields:
    """Return the plan of a backtest as JSON values, ready for a YAML file.

    Brier score first, missing predictions at the full loss (the framework's penalty), log loss
    clipped at 1e-6. The first method against the constant 1/2 is primary; every other against the
    first is registered too.

    Args:
        plan_id: the run's id.
        cards: card ids in order.
        methods: what `strategy_method` and `baseline_method` gave.
        opens_at: labels open not before this moment.
        exclusions: questions that were left out before anything was registered.

    Raises:
        BadInputError: no method, or two with one id.
    """
    ids = [method["id"] for method in methods]
    if not ids or len({*ids, REFERENCE}) != len(ids) + 1:
        raise BadInputError(
            f"the methods {', '.join(ids) or 'none'} have no ids of their own",
            remedy=f"Give each strategy another id, and none {REFERENCE}.",
        )
    first, *others = ids
    left_out = "; ".join(f"{item.question_id} ({item.reason})" for item in exclusions)
    return {
        "plan_id": plan_id,
        "title": f"Backtest of {len(ids)} strategies on {len(cards)} resolved questions",
        "card_set": {"pack": PACK, "cards": list(cards)},
        "methods": [_reference(), *methods],
        "baselines": [REFERENCE],
        "primary_metric": "brier",
        "secondary_metrics": ["log", "ece", "mce", "murphy", "sharpness"],
        "clip": dict(zip(("low", "high"), LOG_EPSILON, strict=True)),
        "calibration": {"bins": 10, "edges": "left-closed"},
        "extraction_rule": "direct/1",
        "blend_policy": "No blend.",
        "comparisons": [
            {"a": first, "b": REFERENCE, "primary": True},
            *({"a": other, "b": first, "primary": False} for other in others),
            *({"a": other, "b": REFERENCE, "primary": False} for other in others),
        ],
        "published_intervals": [],
        **_statistics(),
        "missing_predictions": {"policy": "worst_case", "value": None},
        "exclusions": {
            "reasons": ["annulled", "ambiguous"],
            "statement": f"Left out before registration: {left_out or 'none'}.",
        },
        "undated_evidence": "drop",
        "strata": [],
        "failure_tags": [],
        "example_selection": {"rule": "extremes/1", "count": 3},
        "branch_policies": [],
        "trigger_rule": None,
        "stopping_rule": {"rule": "fixed_cards", "cards": len(cards)},
        "labels_open_not_before": opens_at,
    }


def strategy_method(strategy: Strategy, setup: RunSetup) -> PlanFields:
    """Register a strategy file: stages, prompts with digests, models requested and enforced."""
    stages = [(name, prompt) for name, prompt, toggle in _STAGES if getattr(strategy, toggle)]
    is_agent = strategy.final_forecast_use_agent
    final = "final_agent.1" if is_agent else "final_forecast.1"
    needs_search = is_agent or strategy.inside_view_enabled
    parameters = {
        "max_output_tokens": _PIPELINE_TOKENS,
        **setup.parameters,
        **_common(setup, with_tools=needs_search),
        **{name: "true" for name, _ in stages},
        **{f"prompt.{name}": pin_prompt(prompt) for name, prompt in stages},
        "prediction_market": _flag(is_on=strategy.prediction_market_enabled),
        "final_agent": _flag(is_on=is_agent),
        "prompt.final_forecast": pin_prompt(final),
        **{f"env.{name}": value for name, value in sorted(strategy.env_overrides.items())},
    }
    for stage in (*(name for name, _ in stages), "final_forecast"):
        wanted = strategy.requested_model(stage)
        parameters[f"requested_model.{stage}"] = wanted or setup.enforced_model
    return _method(
        strategy.id,
        "pipeline",
        find_strategy("pipeline"),
        setup,
        draws=setup.draws or strategy.num_runs or 1,
        parameters=parameters,
    )


def baseline_method(name: str, setup: RunSetup) -> PlanFields:
    """Register one of the baselines under its own name.

    Raises:
        BadInputError: no such strategy, or one that is not a baseline.
    """
    kind = find_strategy(name)
    if kind.forecast is None or kind.name == "pipeline":
        raise BadInputError(
            f"{name!r} is not a baseline to be run", remedy="The constant is always there."
        )
    parameters: dict[str, str] = {}
    if kind.asks_model:
        own = {
            key: value
            for key, value in kind.parameters.items()
            if key != "temperature" or not fixes_sampling(setup.enforced_model)
        }
        parameters = {**own, **setup.parameters, **_common(setup, with_tools=False)}
    draws = setup.draws if kind.asks_model and setup.draws else 1
    return _method(kind.name, kind.label, kind, setup, draws=draws, parameters=parameters)


def fixes_sampling(model: str) -> bool:
    """Say whether a model is one whose endpoint refuses a temperature."""
    name = model.rsplit("/", 1)[-1]
    return name == "gpt-5" or name.startswith(_FIXED_SAMPLING)


def _common(setup: RunSetup, *, with_tools: bool) -> dict[str, str]:
    parameters: dict[str, str] = {"answer_form": setup.form.name}
    if with_tools and setup.tools:
        parameters |= {
            "tools": ",".join(setup.tools),
            "tool_calls": str(DEFAULT_TOOL_CALLS),
            **{f"tool_calls.{tool}": str(DEFAULT_CALLS_A_TOOL) for tool in setup.tools},
        }
        if setup.corpus_sha256 is not None and "corpus_search" in setup.tools:
            parameters["corpus_sha256"] = setup.corpus_sha256
    return parameters


def _method(
    method_id: str,
    label: str,
    kind: StrategyKind,
    setup: RunSetup,
    *,
    draws: int,
    parameters: Mapping[str, str],
) -> PlanFields:
    prompt, digest = pin_prompt(kind.prompt).split(" ") if kind.prompt else (None, None)
    return {
        "id": method_id,
        "label": f"{label} {method_id}" if label == "pipeline" else label,
        "role": "confirmatory" if kind.name == "pipeline" else "baseline",
        "source": "run",
        "strategy": kind.name,
        "model_route": {
            "provider": setup.provider if kind.asks_model else None,
            "route": setup.route if kind.asks_model else None,
            "requested_model": setup.enforced_model if kind.asks_model else None,
            "resolved_model": None,
        },
        "prompt_version": prompt,
        "prompt_digest": digest,
        "parameters": dict(parameters),
        "draws": draws,
        "aggregate": "median" if draws > 1 else "single",
        "extraction_rule": "direct/1",
        "blend": None,
        "branch_policy": None,
        "exposure": {
            "full_card": "yes",
            "masked_ids": False,
            "retrieval": "tools" in parameters,
            "local_context": False,
            "risk": "med/high",
        },
    }


def _reference() -> PlanFields:
    return {
        "id": REFERENCE,
        "label": "Uniform binary",
        "role": "reference",
        "source": "constant",
        "strategy": REFERENCE,
        "model_route": dict.fromkeys(("provider", "route", "requested_model", "resolved_model")),
        "prompt_version": None,
        "prompt_digest": None,
        "parameters": {},
        "draws": 1,
        "aggregate": "single",
        "extraction_rule": "uniform/1",
        "blend": None,
        "branch_policy": None,
        "exposure": {
            "full_card": "no",
            "masked_ids": False,
            "retrieval": False,
            "local_context": False,
            "risk": "none",
        },
    }


def _statistics() -> PlanFields:
    return {
        "statistical_test": {
            "primary": "permutation",
            "level": "0.05",
            "two_sided": True,
            "permutation": {"exact_up_to": 40, "resamples": 9999, "seed": 0},
            "bootstrap": {
                "resamples": 10000,
                "seed": 0,
                "generator": "pcg64-lemire32/1",
                "level": "0.95",
            },
        },
        "tie_thresholds": ["0"],
        "primary_tie_threshold": "0",
        "multiplicity": {
            "confirmatory": "holm",
            "exploratory": "bh",
            "family": "listed",
            "tests": ["sign", "permutation", "wilcoxon"],
        },
    }


def _flag(*, is_on: bool) -> str:
    return "true" if is_on else "false"


def differs_from(plan: Plan, fields: PlanFields) -> str | None:
    """Say in which of its parts a registered plan differs from what a command line asks for.

    The run's own id and time are left out: a run that goes on keeps those that it began with.
    """
    there = plan.model_dump(mode="json")
    for name in fields:
        if name in {"plan_id", "labels_open_not_before", "exclusions", "title"}:
            continue
        if there[name] != fields[name]:
            return name
    return None
