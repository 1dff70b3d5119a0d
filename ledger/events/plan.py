"""The pre-registration plan as data, strict and complete (docs/spec/preregistration.md).

Every choice that could move a score is a field, and no field has a default: a plan that leaves a
choice open is not a plan. Optional things are written `null` or `[]` by their author.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from ledger.events.base import (
    Count,
    Decimal9,
    Digest,
    Identifier,
    ModelRoute,
    Moment,
    Name,
    Payload,
    Probability,
    RuleName,
    Sentence,
    Seq,
)
from ledger.printed import Printed

MetricName = Literal[
    "brier", "log", "log_unclipped", "ece", "mce", "corp", "murphy", "sharpness", "auc"
]
TestName = Literal["sign", "permutation", "wilcoxon"]


class CardSet(Payload):
    """The cards that the plan covers, one by one: a set that can grow is a hidden choice."""

    pack: Identifier
    cards: Annotated[tuple[Identifier, ...], Field(min_length=1)]


class Exposure(Payload):
    """What a method may see (the leakage exposure table): the paper's Table 10."""

    full_card: Literal["yes", "no", "decomposed"]
    masked_ids: bool
    retrieval: bool
    local_context: bool
    risk: Name


class BlendPart(Payload):
    """One part of a blend and its weight; weights are fixed here and sum to 1."""

    method: Identifier
    weight: Decimal9


class BlendSpec(Payload):
    """`blend/1`: the weighted mean of other methods' aggregated probabilities.

    `rounding` is how far an imported blend may lie from the exact mean, since whoever made it
    rounded it (`order.blend`). It is null where the ledger computes the blend itself.
    """

    parts: Annotated[tuple[BlendPart, ...], Field(min_length=2)]
    rounding: Decimal9 | None


class RegisteredRoute(ModelRoute):
    """A model route with every part written: in a plan, a part left out is a choice left open."""

    provider: Name | None
    route: Name | None
    requested_model: Name | None
    resolved_model: Name | None


class MethodSpec(Payload):
    """One method: how it is run, by which route and prompt, how often, and how p_yes is extracted.

    `source`: `imported` predictions come from a file, `run` from this project's runner, `computed`
    from other methods when predictions are closed, `constant` from the plan itself (no events).
    """

    id: Identifier
    label: Sentence
    role: Literal["reference", "baseline", "pilot", "exploratory", "confirmatory"]
    source: Literal["imported", "run", "computed", "constant"]
    strategy: Name
    model_route: RegisteredRoute
    prompt_version: Name | None
    prompt_digest: Digest | None
    parameters: dict[str, str]
    draws: Annotated[int, Field(ge=1, le=10_000)]
    aggregate: Literal["single", "mean", "median"]
    extraction_rule: RuleName
    blend: BlendSpec | None
    branch_policy: Identifier | None
    exposure: Exposure


class Clip(Payload):
    """Bounds for the clipped log score."""

    low: Probability
    high: Probability


class CalibrationSpec(Payload):
    """Equal-width bins and the rule for a probability on an edge."""

    bins: Annotated[int, Field(ge=2, le=100)]
    edges: Literal["left-closed", "right-closed"]


class Comparison(Payload):
    """A paired comparison of two methods on the same cards; difference = loss(b) - loss(a)."""

    a: Identifier
    b: Identifier
    primary: bool


class PublishedInterval(Payload):
    """An interval that a publication prints for a registered comparison, digit for digit.

    Replay says which of its own intervals at this `level` print so: percentile, BCa or the limit
    for infinitely many resamples.
    """

    source: Sentence
    a: Identifier
    b: Identifier
    level: Probability
    low: Printed
    high: Printed


class PermutationSpec(Payload):
    """Sign-flip permutation: exact up to 40 non-zero differences, else seeded Monte Carlo."""

    exact_up_to: Literal[40]
    resamples: Count
    seed: Count


class BootstrapSpec(Payload):
    """Resampling of cards: count, seed, generator and level are all part of the result."""

    resamples: Annotated[int, Field(ge=100, le=1_000_000)]
    seed: Count
    generator: Literal["pcg64-lemire32/1"]
    level: Probability


class StatisticalTest(Payload):
    """The primary test and every parameter of it and of its companions."""

    primary: TestName
    level: Probability
    two_sided: Literal[True]
    permutation: PermutationSpec
    bootstrap: BootstrapSpec


class Multiplicity(Payload):
    """Which family of comparisons is corrected, how, and how exploratory ones are shown."""

    confirmatory: Literal["holm", "bonferroni", "none"]
    exploratory: Literal["bh", "none"]
    family: Literal["listed", "all_pairs"]
    tests: Annotated[tuple[TestName, ...], Field(min_length=1)]


class MissingPolicy(Payload):
    """What a registered cell without a prediction counts as; failed attempts are missing cells.

    `complete_case` scores every method on the cards that all methods have; `impute` puts `value`
    and marks it; `worst_case` charges the full loss of 1.
    """

    policy: Literal["complete_case", "impute", "worst_case"]
    value: Probability | None


class ExclusionRule(Payload):
    """Which cards leave the denominators, by recorded reason alone."""

    reasons: tuple[Literal["annulled", "ambiguous", "withdrawn", "invalid"], ...]
    statement: Sentence


class FailureTag(Payload):
    """A tag that a pure rule puts on a card and method from frozen values alone."""

    id: Identifier
    rule: RuleName
    parameters: dict[str, Decimal9]


class ExampleRule(Payload):
    """How the cards shown as examples are chosen, before anyone has seen the outcomes."""

    rule: RuleName
    count: Annotated[int, Field(ge=0, le=100)]


class BranchPolicy(Payload):
    """WorldFork branch policy: depth, active timelines, branches a tick, threshold, runway."""

    id: Identifier
    max_depth: Count
    max_active_timelines: Annotated[int, Field(ge=1, le=1024)]
    max_branches_per_tick: Count
    branch_threshold: Probability
    min_runway_ticks: Count | None
    candidate_endpoint_branches_only: bool


class TriggerRule(Payload):
    """When an adaptive policy may branch, from trace features alone."""

    rule: RuleName
    parameters: dict[str, Decimal9]


class StoppingRule(Payload):
    """When the evaluation is complete."""

    rule: Literal["fixed_cards"]
    cards: Annotated[int, Field(ge=1)]


class Plan(Payload):
    """Everything that is fixed before a label opens (design section 6; the paper's Table 1)."""

    plan_id: Identifier
    title: Sentence
    card_set: CardSet
    methods: Annotated[tuple[MethodSpec, ...], Field(min_length=1)]
    baselines: tuple[Identifier, ...]
    primary_metric: Literal["brier", "log"]
    secondary_metrics: tuple[MetricName, ...]
    clip: Clip
    calibration: CalibrationSpec
    extraction_rule: RuleName
    blend_policy: Sentence
    comparisons: Annotated[tuple[Comparison, ...], Field(min_length=1)]
    published_intervals: tuple[PublishedInterval, ...]
    statistical_test: StatisticalTest
    tie_thresholds: Annotated[tuple[Decimal9, ...], Field(min_length=1)]
    primary_tie_threshold: Decimal9
    multiplicity: Multiplicity
    missing_predictions: MissingPolicy
    exclusions: ExclusionRule
    undated_evidence: Literal["drop", "keep_flagged"]
    strata: tuple[Literal["domain", "source_class", "leakage_risk", "kind", "deadline_days"], ...]
    failure_tags: tuple[FailureTag, ...]
    example_selection: ExampleRule
    branch_policies: tuple[BranchPolicy, ...]
    trigger_rule: TriggerRule | None
    stopping_rule: StoppingRule
    labels_open_not_before: Moment


class PlanPreregistered(Payload):
    """`plan.preregistered`: the plan, and the digest of the file it was read from."""

    plan: Plan
    source_sha256: Digest


class PlanAmended(Payload):
    """`plan.amended`: the whole new plan, what it replaces and why; only before any label opens."""

    plan: Plan
    source_sha256: Digest
    amends_seq: Seq
    reason: Annotated[str, StringConstraints(min_length=10, max_length=4_000)]
    authority: Name
