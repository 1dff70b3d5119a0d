"""Read a pre-registration plan: YAML in, a strict and coherent Plan out.

The fields and their types are ledger/events/plan.py; here stand the rules between fields
(docs/spec/preregistration.md).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

from pydantic import ValidationError

from ledger.canonical import canonicalize
from ledger.decimals import UNITS, parse_units
from ledger.errors import BadInputError, PlanFieldError
from ledger.events.plan import BlendSpec, MethodSpec, Plan, PlanAmended, PlanPreregistered
from ledger.field_errors import describe_problem
from ledger.strict_yaml import load_yaml
from scoring.examples import EXAMPLE_RULES
from scoring.failure_tags import FAILURE_RULES

_COARSEST_ROUNDING = UNITS // 10


def load_plan(path: Path) -> PlanPreregistered:
    """Read a plan file.

    Raises:
        PlanFieldError: the file, the field's path, what is wrong and what is expected.
        BadInputError: the file cannot be read or is not YAML.
    """
    value = load_yaml(path)
    try:
        plan = Plan.model_validate_json(canonicalize(value))
    except ValidationError as error:
        field, problem = describe_problem(error, Plan)
        raise PlanFieldError(problem, where=f"{path}: {field}") from error
    try:
        check_plan(plan)
    except PlanFieldError as error:
        raise PlanFieldError(
            error.what, where=f"{path}: {error.where}", remedy=error.remedy
        ) from error
    return PlanPreregistered(plan=plan, source_sha256=_digest(path))


def amend_plan(path: Path, *, amends_seq: int, reason: str, authority: str) -> PlanAmended:
    """Read a changed plan file as an amendment of the plan at `amends_seq`.

    Raises:
        PlanFieldError: as load_plan; or the reason is shorter than ten characters.
    """
    read = load_plan(path)
    try:
        return PlanAmended(
            plan=read.plan,
            source_sha256=read.source_sha256,
            amends_seq=amends_seq,
            reason=reason,
            authority=authority,
        )
    except ValidationError as error:
        field, problem = describe_problem(error, PlanAmended)
        raise PlanFieldError(problem, where=field) from error


def check_plan(plan: Plan) -> None:
    """Check the rules between fields: unique ids, known references, weights, thresholds.

    Raises:
        PlanFieldError: naming the first field that does not fit the others.
    """
    methods = {method.id for method in plan.methods}
    _check_unique(plan)
    _known(plan.baselines, methods, "baselines", "a registered method")
    _check_comparisons(plan, methods)
    for index, method in enumerate(plan.methods):
        _check_method(plan, method, f"methods[{index}]")
    if plan.extraction_rule not in {method.extraction_rule for method in plan.methods}:
        raise PlanFieldError("is the rule of no method", where="extraction_rule")
    _check_numbers(plan)
    _check_statistics(plan)
    _check_rules(plan)


def _check_unique(plan: Plan) -> None:
    _unique((m.id for m in plan.methods), "methods")
    _unique(plan.card_set.cards, "card_set.cards")
    _unique(plan.baselines, "baselines")
    _unique((plan.primary_metric, *plan.secondary_metrics), "secondary_metrics")
    _unique((p.id for p in plan.branch_policies), "branch_policies")
    _unique((t.id for t in plan.failure_tags), "failure_tags")
    _unique(plan.strata, "strata")
    _unique(plan.multiplicity.tests, "multiplicity.tests")
    _unique(plan.exclusions.reasons, "exclusions.reasons")


def _check_comparisons(plan: Plan, methods: set[str]) -> None:
    for index, comparison in enumerate(plan.comparisons):
        where = f"comparisons[{index}]"
        _known((comparison.a, comparison.b), methods, where, "a registered method")
        if comparison.a == comparison.b:
            raise PlanFieldError("compares a method with itself", where=where)
    # A pair and its reverse are one comparison: twice listed, it would count as two looks.
    _unique((" and ".join(sorted((c.a, c.b))) for c in plan.comparisons), "comparisons")
    if sum(comparison.primary for comparison in plan.comparisons) != 1:
        raise PlanFieldError("exactly one comparison is primary", where="comparisons")
    listed = {(comparison.a, comparison.b) for comparison in plan.comparisons}
    for index, item in enumerate(plan.published_intervals):
        where = f"published_intervals[{index}]"
        if (item.a, item.b) not in listed:
            raise PlanFieldError("is of no comparison a, b of the plan", where=where)
        if Fraction(item.low) > Fraction(item.high):
            raise PlanFieldError("low is above high", where=where)
        if not 0 < parse_units(item.level) < UNITS:
            raise PlanFieldError("lies between 0 and 1", where=f"{where}.level")


def _check_method(plan: Plan, method: MethodSpec, where: str) -> None:
    if (method.draws == 1) != (method.aggregate == "single"):
        raise PlanFieldError(
            "one draw goes with `single`, several with mean or median", where=f"{where}.aggregate"
        )
    if (method.extraction_rule == "blend/1") != (method.blend is not None):
        raise PlanFieldError(
            "goes with extraction_rule blend/1, and only with it", where=f"{where}.blend"
        )
    if (method.extraction_rule == "uniform/1") != (method.source == "constant"):
        raise PlanFieldError(
            "`constant` goes with extraction_rule uniform/1, and only with it",
            where=f"{where}.source",
        )
    if method.source == "constant" and method.draws != 1:
        raise PlanFieldError("a constant has one draw", where=f"{where}.draws")
    if method.source == "computed" and method.blend is None:
        raise PlanFieldError("only a blend is computed", where=f"{where}.source")
    policies = {policy.id for policy in plan.branch_policies}
    if method.branch_policy is not None:
        _known([method.branch_policy], policies, f"{where}.branch_policy", "a branch policy")
    if method.blend is not None:
        _check_blend(plan, method, method.blend, where)


def _check_blend(plan: Plan, method: MethodSpec, blend: BlendSpec, where: str) -> None:
    # A part stands before its blend, so that no blend rests on itself.
    earlier = {m.id for m in plan.methods[: plan.methods.index(method)]}
    parts = [part.method for part in blend.parts]
    _known(parts, earlier, f"{where}.blend.parts", "a method listed before the blend")
    _unique(parts, f"{where}.blend.parts")
    if method.draws != 1:
        raise PlanFieldError("a blend has one draw", where=f"{where}.draws")
    weights = [parse_units(part.weight) for part in blend.parts]
    if min(weights) <= 0:
        raise PlanFieldError("each weight is above 0", where=f"{where}.blend.parts")
    if sum(weights) != UNITS:
        raise PlanFieldError("the weights do not sum to 1", where=f"{where}.blend.parts")
    if blend.rounding is None:
        return
    if method.source == "computed":
        raise PlanFieldError("is null where the ledger computes", where=f"{where}.blend.rounding")
    if not 0 < parse_units(blend.rounding) <= _COARSEST_ROUNDING:
        raise PlanFieldError("is above 0 and at most 0.1", where=f"{where}.blend.rounding")


def _check_numbers(plan: Plan) -> None:
    low, high = parse_units(plan.clip.low), parse_units(plan.clip.high)
    if not 0 < low < high < UNITS:
        # A bound of 0 or 1 is no clip: one card could make the mean infinite.
        raise PlanFieldError("0 < low < high < 1", where="clip")
    if plan.primary_tie_threshold not in plan.tie_thresholds:
        raise PlanFieldError("is not one of tie_thresholds", where="primary_tie_threshold")
    thresholds = [parse_units(text) for text in plan.tie_thresholds]
    if thresholds != sorted(set(thresholds)) or thresholds[0] < 0:
        raise PlanFieldError("rise, each once, none below 0", where="tie_thresholds")
    if (plan.missing_predictions.policy == "impute") != (
        plan.missing_predictions.value is not None
    ):
        raise PlanFieldError(
            "goes with policy impute, and only with it", where="missing_predictions.value"
        )
    if plan.stopping_rule.cards != len(plan.card_set.cards):
        raise PlanFieldError(
            f"is {plan.stopping_rule.cards}, but the card set has {len(plan.card_set.cards)}",
            where="stopping_rule.cards",
        )


def _check_statistics(plan: Plan) -> None:
    test = plan.statistical_test
    for name, level in (("level", test.level), ("bootstrap.level", test.bootstrap.level)):
        if not 0 < parse_units(level) < UNITS:
            raise PlanFieldError("lies between 0 and 1", where=f"statistical_test.{name}")
    if test.permutation.resamples < 1:
        # Found here and not at replay: after labels open it could not be corrected.
        raise PlanFieldError("is at least 1", where="statistical_test.permutation.resamples")
    if plan.multiplicity.confirmatory != "none" and test.primary not in plan.multiplicity.tests:
        raise PlanFieldError(
            f"lacks {test.primary}, the primary test, whose p-values are to be corrected",
            where="multiplicity.tests",
        )


def _check_rules(plan: Plan) -> None:
    for index, tag in enumerate(plan.failure_tags):
        rule = FAILURE_RULES.get(tag.rule)
        where = f"failure_tags[{index}]"
        if rule is None:
            raise PlanFieldError(
                f"no such rule; known: {', '.join(FAILURE_RULES)}", where=f"{where}.rule"
            )
        if set(tag.parameters) != set(rule.parameters):
            raise PlanFieldError(
                f"takes exactly: {', '.join(rule.parameters) or 'nothing'}",
                where=f"{where}.parameters",
            )
    if plan.example_selection.rule not in EXAMPLE_RULES:
        raise PlanFieldError(
            f"no such rule; known: {', '.join(EXAMPLE_RULES)}", where="example_selection.rule"
        )


def _unique(ids: Iterable[str], where: str) -> None:
    twice = [key for key, count in Counter(ids).items() if count > 1]
    if twice:
        raise PlanFieldError(f"{twice[0]!r} stands twice", where=where)


def _known(ids: Iterable[str], known: set[str], where: str, what: str) -> None:
    for key in ids:
        if key not in known:
            raise PlanFieldError(f"{key!r} is not {what}", where=where)


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise BadInputError(f"cannot be read: {error.strerror}", where=str(path)) from error
