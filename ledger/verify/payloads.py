"""The fields of every payload, by wire name and version (docs/spec/events.md, Vocabulary).

A second writing of the vocabulary, on purpose: the writer's classes are checked against it by every
test that verifies a ledger. A payload has exactly its fields, nulls written out.
"""

from __future__ import annotations

from ledger.verify.forms import (
    ANSWER,
    ANY_TEXT,
    COUNT,
    CURRENCY,
    DATE,
    DECIMAL9,
    DIGEST,
    DRAW,
    IDENTIFIER,
    LOG_ID,
    MASS_UNITS,
    MOMENT,
    NAME,
    PRINTED,
    PROBABILITY,
    RULE_NAME,
    SENTENCE,
    SEQ,
    TEXT,
    UNITS,
    Form,
    array,
    boolean,
    integer,
    mapping,
    nullable,
    one_of,
    record,
    text,
    true,
)

_CELL: dict[str, Form] = {"method": IDENTIFIER, "card_id": IDENTIFIER, "draw": DRAW}
_ATTEMPT = integer(1, 1_000_000)
_KIND = one_of("resolved", "dossier", "adversarial", "stress")
_RISK = one_of("low", "medium", "high")
_MONEY = record(amount=nullable(DECIMAL9), currency=CURRENCY, unknown_because=nullable(SENTENCE))
_RAW = record(media=NAME, encoding=one_of("utf-8", "base64"), data=TEXT)
_ROUTE = record(
    provider=nullable(NAME),
    route=nullable(NAME),
    requested_model=nullable(NAME),
    resolved_model=nullable(NAME),
)
_STATUS = one_of(
    "active",
    "weakened",
    "eliminated",
    "realized",
    "unresolved",
    "process_only",
    "insufficient_ticks",
)
_REASON = one_of("annulled", "ambiguous", "withdrawn", "invalid")
_TEST = one_of("sign", "permutation", "wilcoxon")
_METRIC = one_of(
    "brier", "log", "log_unclipped", "ece", "mce", "corp", "murphy", "sharpness", "auc"
)

_OPENED = record(
    origin=NAME,
    log_id=LOG_ID,
    format=one_of("forecast-ledger/1"),
    verifier_keys=array(NAME),
)

_ENDPOINT = record(id=IDENTIFIER, wording=SENTENCE)
_CARD = record(
    card_id=IDENTIFIER,
    kind=_KIND,
    pack=IDENTIFIER,
    title=SENTENCE,
    question=SENTENCE,
    as_of=MOMENT,
    deadline=nullable(MOMENT),
    scheduled=nullable(boolean),
    domain=nullable(NAME),
    source_class=nullable(NAME),
    leakage_risk=nullable(_RISK),
    public_context=TEXT,
    source_packet=array(
        record(source_type=NAME, dated=nullable(DATE), text=TEXT, url=nullable(NAME))
    ),
    endpoints=array(_ENDPOINT),
    auxiliary_endpoints=array(_ENDPOINT),
    masking_rule=SENTENCE,
    masks=array(record(token=NAME, kind=NAME)),
    forbidden=array(record(salt=DIGEST, digest=DIGEST, fold=one_of("fold/1"))),
)

_BLEND = record(
    parts=array(record(method=IDENTIFIER, weight=DECIMAL9), 2), rounding=nullable(DECIMAL9)
)
_METHOD = record(
    id=IDENTIFIER,
    label=SENTENCE,
    role=one_of("reference", "baseline", "pilot", "exploratory", "confirmatory"),
    source=one_of("imported", "run", "computed", "constant"),
    strategy=NAME,
    model_route=_ROUTE,
    prompt_version=nullable(NAME),
    prompt_digest=nullable(DIGEST),
    parameters=mapping(ANY_TEXT),
    draws=integer(1, 10_000),
    aggregate=one_of("single", "mean", "median"),
    extraction_rule=RULE_NAME,
    blend=nullable(_BLEND),
    branch_policy=nullable(IDENTIFIER),
    exposure=record(
        full_card=one_of("yes", "no", "decomposed"),
        masked_ids=boolean,
        retrieval=boolean,
        local_context=boolean,
        risk=NAME,
    ),
)
_STATISTICAL_TEST = record(
    primary=_TEST,
    level=PROBABILITY,
    two_sided=true,
    permutation=record(exact_up_to=integer(40, 40), resamples=COUNT, seed=COUNT),
    bootstrap=record(
        resamples=integer(100, 1_000_000),
        seed=COUNT,
        generator=one_of("pcg64-lemire32/1"),
        level=PROBABILITY,
    ),
)
_BRANCH_POLICY = record(
    id=IDENTIFIER,
    max_depth=COUNT,
    max_active_timelines=integer(1, 1024),
    max_branches_per_tick=COUNT,
    branch_threshold=PROBABILITY,
    min_runway_ticks=nullable(COUNT),
    candidate_endpoint_branches_only=boolean,
)
_PLAN = record(
    plan_id=IDENTIFIER,
    title=SENTENCE,
    card_set=record(pack=IDENTIFIER, cards=array(IDENTIFIER, 1)),
    methods=array(_METHOD, 1),
    baselines=array(IDENTIFIER),
    primary_metric=one_of("brier", "log"),
    secondary_metrics=array(_METRIC),
    clip=record(low=PROBABILITY, high=PROBABILITY),
    calibration=record(bins=integer(2, 100), edges=one_of("left-closed", "right-closed")),
    extraction_rule=RULE_NAME,
    blend_policy=SENTENCE,
    comparisons=array(record(a=IDENTIFIER, b=IDENTIFIER, primary=boolean), 1),
    published_intervals=array(
        record(
            source=SENTENCE,
            a=IDENTIFIER,
            b=IDENTIFIER,
            level=PROBABILITY,
            low=PRINTED,
            high=PRINTED,
        )
    ),
    statistical_test=_STATISTICAL_TEST,
    tie_thresholds=array(DECIMAL9, 1),
    primary_tie_threshold=DECIMAL9,
    multiplicity=record(
        confirmatory=one_of("holm", "bonferroni", "none"),
        exploratory=one_of("bh", "none"),
        family=one_of("listed", "all_pairs"),
        tests=array(_TEST, 1),
    ),
    missing_predictions=record(
        policy=one_of("complete_case", "impute", "worst_case"), value=nullable(PROBABILITY)
    ),
    exclusions=record(reasons=array(_REASON), statement=SENTENCE),
    undated_evidence=one_of("drop", "keep_flagged"),
    strata=array(one_of("domain", "source_class", "leakage_risk", "kind", "deadline_days")),
    failure_tags=array(record(id=IDENTIFIER, rule=RULE_NAME, parameters=mapping(DECIMAL9))),
    example_selection=record(rule=RULE_NAME, count=integer(0, 100)),
    branch_policies=array(_BRANCH_POLICY),
    trigger_rule=nullable(record(rule=RULE_NAME, parameters=mapping(DECIMAL9))),
    stopping_rule=record(rule=one_of("fixed_cards"), cards=integer(1)),
    labels_open_not_before=MOMENT,
)

_MODEL_CALLED = record(
    **_CELL,
    role=NAME,
    model_route=_ROUTE,
    prompt_version=NAME,
    prompt_digest=DIGEST,
    parameters=mapping(ANY_TEXT),
    as_of=MOMENT,
    outcome=one_of("answered", "failed"),
    error=nullable(SENTENCE),
    response_id=nullable(NAME),
    request_id=nullable(NAME),
    fingerprint=nullable(NAME),
    usage=record(
        input_tokens=nullable(COUNT),
        output_tokens=nullable(COUNT),
        cached_input_tokens=nullable(COUNT),
        reasoning_tokens=nullable(COUNT),
    ),
    cost=_MONEY,
    latency_ms=nullable(COUNT),
    cached_from_seq=nullable(SEQ),
    raw_request=_RAW,
    raw_answer=nullable(_RAW),
)
_EVIDENCE = record(
    url=nullable(NAME),
    title=TEXT,
    published=nullable(MOMENT),
    crawled=nullable(MOMENT),
    snapshot=nullable(MOMENT),
    retrieved_at=MOMENT,
    content_sha256=DIGEST,
    kept=boolean,
    rule=NAME,
)
_TOOL_CALLED = record(
    **_CELL,
    tool=NAME,
    arguments=mapping(ANY_TEXT),
    as_of=MOMENT,
    limits_sent=mapping(ANY_TEXT),
    outcome=one_of("answered", "failed"),
    error=nullable(SENTENCE),
    evidence=array(_EVIDENCE),
    cost=_MONEY,
    latency_ms=nullable(COUNT),
    cached_from_seq=nullable(SEQ),
    raw_answer=nullable(_RAW),
)

_LAYER = one_of(
    "exposure", "trust", "dependency", "influence", "coalition", "conflict", "oasis_interaction"
)
_WORLD = record(
    **_CELL,
    timeline=IDENTIFIER,
    actors=array(
        record(
            id=IDENTIFIER,
            kind=one_of("hero", "cohort"),
            role=NAME,
            authority=TEXT,
            interests=TEXT,
            stance=TEXT,
            share=nullable(PROBABILITY),
        )
    ),
    constraints=array(SENTENCE),
    scored_endpoints=array(IDENTIFIER),
    auxiliary_endpoints=array(IDENTIFIER),
    graph=array(
        record(layer=_LAYER, source=IDENTIFIER, target=IDENTIFIER, weight=PROBABILITY, reason=TEXT)
    ),
    social_state=mapping(ANY_TEXT),
    seed_events=array(record(title=SENTENCE, scheduled_tick=COUNT, description=TEXT)),
    branch_hypotheses=array(
        record(
            id=IDENTIFIER,
            trigger=TEXT,
            path=TEXT,
            divergence_signal=TEXT,
            endpoint=nullable(IDENTIFIER),
        )
    ),
    endpoint_ledger=array(record(endpoint=IDENTIFIER, status=_STATUS, basis=TEXT)),
    rubric=array(
        record(
            dimension=IDENTIFIER,
            score=COUNT,
            pass_mark=COUNT,
            judged_by=one_of("structure", "model", "human"),
        )
    ),
)
_TICK = record(
    **_CELL,
    timeline=IDENTIFIER,
    tick=COUNT,
    decisions=array(TEXT),
    events=array(TEXT),
    updates=array(TEXT),
    review=one_of("continue", "terminate", "fork", "freeze"),
    review_reasons=TEXT,
    summary=TEXT,
)
_FORK = record(
    **_CELL,
    parent=IDENTIFIER,
    children=array(IDENTIFIER, 1),
    tick=COUNT,
    inherited_up_to_tick=COUNT,
    postings=array(record(timeline=IDENTIFIER, mass_units=integer(-UNITS, UNITS)), 2),
    trigger_score=PROBABILITY,
    threshold=PROBABILITY,
    hypothesis=TEXT,
    chosen_by=one_of("model", "heuristic", "constant"),
)
_CLAIM = record(
    **_CELL,
    claim=SENTENCE,
    timeline=nullable(IDENTIFIER),
    tick=nullable(COUNT),
    actor=nullable(IDENTIFIER),
    source_text=nullable(TEXT),
    state_update=nullable(TEXT),
    endpoint=nullable(IDENTIFIER),
    confidence=nullable(PROBABILITY),
    rests_on=array(SEQ),
    grounded=nullable(boolean),
)

_PREDICTION = record(
    **_CELL,
    attempt=nullable(integer(1)),
    p_raw=text(100, 1),
    p_yes=PROBABILITY,
    interval=nullable(record(low=PROBABILITY, high=PROBABILITY)),
    unresolved_mass_units=nullable(MASS_UNITS),
    extraction_rule=RULE_NAME,
    model_route=_ROUTE,
    prompt_version=nullable(NAME),
    prompt_digest=nullable(DIGEST),
    response_id=nullable(NAME),
    rejected_endpoints=array(record(endpoint=IDENTIFIER, reason=SENTENCE)),
    sources=array(SEQ),
    origin=record(
        kind=one_of("import", "run", "rule"),
        file_sha256=nullable(DIGEST),
        line=nullable(integer(1)),
    ),
)

_PROOF = record(
    kind=one_of("rfc3161", "cosignature", "opentimestamps", "rekor", "manual"),
    issuer=NAME,
    token_base64=TEXT,
)
_REPORT = record(
    evaluated_size=COUNT,
    scores=array(
        record(method=IDENTIFIER, n=COUNT, brier=nullable(DECIMAL9), log=nullable(DECIMAL9)), 1
    ),
    tables=array(record(name=NAME, sha256=DIGEST)),
    confirmatory_looks=COUNT,
    exploratory_looks=COUNT,
    authority=NAME,
)

FORMS: dict[tuple[str, int], Form] = {
    ("ledger.opened", 1): _OPENED,
    ("card.frozen", 1): record(card=_CARD),
    ("label.sealed", 1): record(
        card_id=IDENTIFIER,
        seal=record(scheme=one_of("forecast-ledger/label/v1"), commitment=DIGEST),
        custodian=NAME,
    ),
    ("plan.preregistered", 1): record(plan=_PLAN, source_sha256=DIGEST),
    ("plan.amended", 1): record(
        plan=_PLAN, source_sha256=DIGEST, amends_seq=SEQ, reason=text(4_000, 10), authority=NAME
    ),
    ("attempt.started", 1): record(**_CELL, attempt=_ATTEMPT),
    ("attempt.failed", 1): record(
        **_CELL,
        attempt=_ATTEMPT,
        started_seq=SEQ,
        reason=one_of(
            "refused", "timeout", "provider_error", "unusable_answer", "budget", "stopped"
        ),
        detail=SENTENCE,
    ),
    ("model.called", 1): _MODEL_CALLED,
    ("tool.called", 1): _TOOL_CALLED,
    ("world.initialized", 1): _WORLD,
    ("tick.completed", 1): _TICK,
    ("branch.forked", 1): _FORK,
    ("timeline.ended", 1): record(
        **_CELL,
        timeline=IDENTIFIER,
        how=one_of("completed", "terminated", "frozen", "pruned"),
        mass_units=MASS_UNITS,
        settled=one_of("yes", "no", "unclear"),
        reason=TEXT,
    ),
    ("endpoint.updated", 1): record(
        **_CELL,
        timeline=IDENTIFIER,
        endpoint=IDENTIFIER,
        before=_STATUS,
        after=_STATUS,
        evidence_for=array(TEXT),
        evidence_against=array(TEXT),
        basis=SENTENCE,
    ),
    ("endpoint.settled", 1): record(
        **_CELL,
        timeline=IDENTIFIER,
        endpoint=IDENTIFIER,
        status=_STATUS,
        at_deadline=boolean,
        basis=SENTENCE,
    ),
    ("endpoint.rejected", 1): record(
        method=nullable(IDENTIFIER),
        card_id=IDENTIFIER,
        endpoint=IDENTIFIER,
        wording=SENTENCE,
        reason=SENTENCE,
    ),
    ("claim.recorded", 1): _CLAIM,
    ("prediction.frozen", 1): _PREDICTION,
    ("predictions.closed", 1): record(
        expected=COUNT,
        frozen=COUNT,
        attempts=COUNT,
        failed_attempts=COUNT,
        empty=array(record(**_CELL, status=one_of("failed", "missing"), reason=SENTENCE)),
    ),
    ("checkpoint.anchored", 1): record(checkpoint=TEXT, tree_size=COUNT, proof=nullable(_PROOF)),
    ("label.unsealed", 1): record(
        card_id=IDENTIFIER,
        sealed_seq=SEQ,
        salt=DIGEST,
        private_json=TEXT,
        waiver=nullable(record(reason=SENTENCE, authority=NAME)),
    ),
    ("label.revised", 1): record(
        card_id=IDENTIFIER, supersedes_seq=SEQ, resolution=ANSWER, reason=SENTENCE, authority=NAME
    ),
    ("card.annulled", 1): record(
        card_id=IDENTIFIER, reason=_REASON, detail=SENTENCE, authority=NAME
    ),
    ("payload.redacted", 1): record(
        target_seq=SEQ, commitment=DIGEST, reason=SENTENCE, authority=NAME
    ),
    ("report.published", 1): _REPORT,
}
"""The form of each payload, by wire name and version: the vocabulary at a glance."""
