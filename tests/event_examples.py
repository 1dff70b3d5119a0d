"""One example of every event type, in an order that every rule of the protocol allows.

`STORY` is a whole evaluation of two cards; `EXAMPLES` picks one payload of each wire name from it.
`changed` makes a variant of a payload as a foreign writer would: through its JSON.
"""

from __future__ import annotations

from typing import Any, TypeVar

from ledger.canonical import canonicalize_exact
from ledger.events.anchor import (
    CheckpointAnchored,
    LedgerOpened,
    OutsideProof,
    PayloadRedacted,
    PublishedScore,
    ReportPublished,
    TableDigest,
)
from ledger.events.base import ModelRoute, Money, Payload, RawBytes
from ledger.events.branch import BranchForked, Posting, TimelineEnded
from ledger.events.call import (
    AttemptFailed,
    AttemptStarted,
    Evidence,
    ModelCalled,
    TokenUsage,
    ToolCalled,
)
from ledger.events.card import (
    CardAnnulled,
    CardFrozen,
    Endpoint,
    ForbiddenDigest,
    LabelRevised,
    LabelSealed,
    LabelUnsealed,
    MaskedEntity,
    PrivateObject,
    PublicCard,
    ResolutionSource,
    SourceItem,
)
from ledger.events.endpoint import (
    ClaimRecorded,
    EndpointRejected,
    EndpointSettled,
    EndpointUpdated,
)
from ledger.events.plan import Plan, PlanAmended, PlanPreregistered
from ledger.events.prediction import (
    EmptyCell,
    Interval,
    Origin,
    PredictionFrozen,
    PredictionsClosed,
    RejectedEndpoint,
)
from ledger.events.registry import BY_MODEL
from ledger.events.world import (
    Actor,
    BranchHypothesis,
    Edge,
    LedgerRow,
    RubricScore,
    SeedEvent,
    TickCompleted,
    WorldInitialized,
)
from ledger.ids import SeededEntropy
from ledger.vault import seal_private

LOG_ID = "019b7663-1c00-7000-8000-00000000f1a5"
AS_OF = "2026-03-01T00:00:00.000000Z"
EARLIER = "2026-02-20T08:00:00.000000Z"
LATER = "2026-03-02T00:00:00.000000Z"
DIGEST = "ab" * 32
PLANTED_LABEL = "PLANTED-SUMMARY-The-Bearings-Cracked"
"""Stands in the private object alone, so that a test can look for it where it must not be."""

P = TypeVar("P", bound=Payload)


def changed(payload: P, **changes: object) -> P:
    """Return the payload with some fields replaced, validated from JSON as a reader would."""
    value = payload.model_dump(mode="python") | changes
    return type(payload).model_validate_json(canonicalize_exact(plain(value)))


def plain(value: Any) -> Any:
    """Turn payloads inside a value into JSON values."""
    if isinstance(value, Payload):
        return value.model_dump(mode="python")
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def method(name: str, **changes: object) -> dict[str, Any]:
    """Return one method of the plan as JSON."""
    return {
        "id": name,
        "label": f"Method {name}",
        "role": "pilot",
        "source": "imported",
        "strategy": "direct",
        "model_route": ModelRoute(provider="acme", requested_model="m-1").model_dump(),
        "prompt_version": "v1",
        "prompt_digest": DIGEST,
        "parameters": {"temperature": "0"},
        "draws": 1,
        "aggregate": "single",
        "extraction_rule": "direct/1",
        "blend": None,
        "branch_policy": None,
        "exposure": {
            "full_card": "yes",
            "masked_ids": True,
            "retrieval": False,
            "local_context": False,
            "risk": "low",
        },
        **changes,
    }


METHODS = [
    method("file", draws=2, aggregate="mean"),
    method("live", source="run"),
    method("uniform", source="constant", extraction_rule="uniform/1"),
    method(
        "mix",
        source="computed",
        extraction_rule="blend/1",
        blend={
            "parts": [
                {"method": "file", "weight": "0.25"},
                {"method": "uniform", "weight": "0.75"},
            ],
            "rounding": None,
        },
    ),
]

PLAN: dict[str, Any] = {
    "plan_id": "plan-1",
    "title": "Two cards, four methods",
    "card_set": {"pack": "tiny", "cards": ["bridge", "tunnel"]},
    "methods": METHODS,
    "baselines": ["uniform"],
    "primary_metric": "brier",
    "secondary_metrics": ["log", "auc"],
    "clip": {"low": "0.001", "high": "0.999"},
    "calibration": {"bins": 10, "edges": "left-closed"},
    "extraction_rule": "direct/1",
    "blend_policy": "Weights are fixed before any label opens.",
    "comparisons": [{"a": "live", "b": "uniform", "primary": True}],
    "published_intervals": [],
    "statistical_test": {
        "primary": "sign",
        "level": "0.05",
        "two_sided": True,
        "permutation": {"exact_up_to": 40, "resamples": 10_000, "seed": 1},
        "bootstrap": {
            "resamples": 1_000,
            "seed": 1,
            "generator": "pcg64-lemire32/1",
            "level": "0.95",
        },
    },
    "tie_thresholds": ["0", "0.001"],
    "primary_tie_threshold": "0.001",
    "multiplicity": {
        "confirmatory": "holm",
        "exploratory": "bh",
        "family": "listed",
        "tests": ["sign"],
    },
    "missing_predictions": {"policy": "complete_case", "value": None},
    "exclusions": {"reasons": ["annulled"], "statement": "Annulled cards leave."},
    "undated_evidence": "drop",
    "strata": ["domain"],
    "failure_tags": [{"id": "far", "rule": "far-off/1", "parameters": {"at": "0.5"}}],
    "example_selection": {"rule": "largest-loss/1", "count": 1},
    "branch_policies": [
        {
            "id": "narrow",
            "max_depth": 2,
            "max_active_timelines": 4,
            "max_branches_per_tick": 1,
            "branch_threshold": "0.3",
            "min_runway_ticks": None,
            "candidate_endpoint_branches_only": True,
        }
    ],
    "trigger_rule": {"rule": "trace-score/1", "parameters": {"at": "0.6"}},
    "stopping_rule": {"rule": "fixed_cards", "cards": 2},
    "labels_open_not_before": "2026-01-01T00:00:00.000000Z",
}


def make_plan(**changes: object) -> Plan:
    """Return the example plan with some fields replaced."""
    return Plan.model_validate_json(canonicalize_exact(plain(PLAN | changes)))


PRIVATE = PrivateObject(
    card_id="bridge",
    resolution="no",
    resolved_on="2026-03-20",
    summary=PLANTED_LABEL,
    sources=(ResolutionSource(title="City notice", retrieved_on="2026-03-21"),),
    entity_map={"Town A": "Åsnes"},
    forbidden=("Kløften",),
    leakage_risk="low",
)
ENTRY = seal_private(PRIVATE, SeededEntropy("vault"))

_CARD = PublicCard(
    card_id="bridge",
    kind="resolved",
    pack="tiny",
    title="Opening of a bridge",
    question="Will Town A open its bridge by the deadline?",
    as_of=AS_OF,
    deadline="2026-06-30T23:59:59.999999Z",
    scheduled=False,
    domain="transport",
    source_class="city office",
    leakage_risk="low",
    public_context="Inspections have begun; the word is “soon”.",
    source_packet=(SourceItem(source_type="note", dated="2026-02-27", text="The deck is done."),),
    endpoints=(Endpoint(id="yes", wording="It opens."), Endpoint(id="no", wording="It does not.")),
    auxiliary_endpoints=(Endpoint(id="toll", wording="A charge is set."),),
    masking_rule="The place is called Town A.",
    masks=(MaskedEntity(token="Town A", kind="town"),),  # noqa: S106 - a stand-in, no secret
    forbidden=(ForbiddenDigest(salt=DIGEST, digest=DIGEST),),
)
_LIVE: dict[str, Any] = {"method": "live", "card_id": "bridge", "draw": 1}
_COST = Money(amount="0.0125", currency="USD")

OPENED = LedgerOpened(
    origin="example.org/log", log_id=LOG_ID, format="forecast-ledger/1", verifier_keys=()
)
CARD = CardFrozen(card=_CARD)
DOSSIER = changed(CARD, card=plain(_CARD) | {"card_id": "tunnel", "kind": "dossier"})
SEALED = LabelSealed(card_id="bridge", seal=ENTRY.seal, custodian="notary")
PLANNED = PlanPreregistered(plan=make_plan(), source_sha256=DIGEST)
AMENDED = PlanAmended(
    plan=make_plan(title="Two cards, four methods, corrected"),
    source_sha256=DIGEST,
    amends_seq=4,
    reason="A typing error in the title.",
    authority="operator",
)
STARTED = AttemptStarted(**_LIVE, attempt=1)
FAILED = AttemptFailed(
    **_LIVE, attempt=1, started_seq=6, reason="timeout", detail="No answer in 60 s."
)
STARTED_AGAIN = changed(STARTED, attempt=2)
CALLED = ModelCalled(
    **_LIVE,
    role="forecaster",
    model_route=ModelRoute(provider="acme", requested_model="m-1", resolved_model="m-1-0301"),
    prompt_version="v1",
    prompt_digest=DIGEST,
    parameters={"temperature": "0", "überschrift": "ja"},
    as_of=AS_OF,
    outcome="answered",
    usage=TokenUsage(input_tokens=812, output_tokens=77),
    cost=_COST,
    latency_ms=1_204,
    raw_request=RawBytes(media="application/json", encoding="utf-8", data='{"q": "…"}'),
    raw_answer=RawBytes(media="application/json", encoding="utf-8", data='{"p": 0.31}\n'),
)
TOOL = ToolCalled(
    **_LIVE,
    tool="search",
    arguments={"query": "bridge"},
    as_of=EARLIER,
    limits_sent={"before": "2026-02-20"},
    outcome="answered",
    evidence=(
        Evidence(
            url="https://example.org/a",
            published="2026-02-01T00:00:00.000000Z",
            retrieved_at=LATER,
            content_sha256=DIGEST,
            kept=True,
            rule="dated-before/1",
        ),
        Evidence(url=None, retrieved_at=LATER, content_sha256=DIGEST, kept=False, rule="undated/1"),
    ),
    cost=Money(amount=None, currency="USD", unknown_because="The provider does not say."),
    latency_ms=None,
    raw_answer=None,
)
WORLD = WorldInitialized(
    **_LIVE,
    timeline="root",
    actors=(
        Actor(id="mayor", kind="hero", role="mayor", authority="a", interests="b", stance="c"),
    ),
    constraints=("Winter.",),
    scored_endpoints=("yes", "no"),
    auxiliary_endpoints=("toll",),
    graph=(Edge(layer="trust", source="mayor", target="mayor", weight="0.5", reason="Self."),),
    social_state={"mood": "calm"},
    seed_events=(SeedEvent(title="Inspection", scheduled_tick=1, description="First."),),
    branch_hypotheses=(
        BranchHypothesis(id="h1", trigger="t", path="p", divergence_signal="d", endpoint="no"),
    ),
    endpoint_ledger=(LedgerRow(endpoint="yes", status="active", basis="Start."),),
    rubric=(RubricScore(dimension="actors", score=3, pass_mark=2, judged_by="structure"),),
)
TICK = TickCompleted(
    **_LIVE,
    timeline="root",
    tick=1,
    decisions=("wait",),
    events=("snow",),
    updates=(),
    review="fork",
    review_reasons="Two ways.",
    summary="Quiet.",
)
UPDATED = EndpointUpdated(
    **_LIVE,
    timeline="root",
    endpoint="yes",
    before="active",
    after="weakened",
    evidence_for=(),
    evidence_against=("snow",),
    basis="Snow.",
)
FORKED = BranchForked(
    **_LIVE,
    parent="root",
    children=("left", "right"),
    tick=1,
    inherited_up_to_tick=1,
    postings=(
        Posting(timeline="root", mass_units=-600_000_000),
        Posting(timeline="left", mass_units=400_000_000),
        Posting(timeline="right", mass_units=200_000_000),
    ),
    trigger_score="0.7",
    threshold="0.3",
    hypothesis="h1",
    chosen_by="model",
)
SETTLED = EndpointSettled(
    **_LIVE, timeline="left", endpoint="no", status="realized", at_deadline=True, basis="Time."
)
ENDED = TimelineEnded(
    **_LIVE, timeline="left", how="completed", mass_units=400_000_000, settled="no", reason="Done."
)
REJECTED = EndpointRejected(
    method="live", card_id="bridge", endpoint="toll-2", wording="A toll.", reason="Not scored."
)
CLAIM = ClaimRecorded(
    **_LIVE,
    claim="The bearings matter.",
    timeline="left",
    tick=1,
    actor="mayor",
    source_text=None,
    state_update=None,
    endpoint="no",
    confidence="0.6",
    rests_on=(9, 12),
    grounded=True,
)
LIVE_FROZEN = PredictionFrozen(
    **_LIVE,
    attempt=2,
    p_raw="0.31",
    p_yes="0.31",
    interval=Interval(low="0.1", high="0.6"),
    unresolved_mass_units=500_000_000,
    extraction_rule="direct/1",
    model_route=ModelRoute(provider="acme", requested_model="m-1"),
    prompt_version="v1",
    prompt_digest=DIGEST,
    response_id="r-1",
    rejected_endpoints=(RejectedEndpoint(endpoint="toll", reason="Auxiliary."),),
    sources=(9,),
    origin=Origin(kind="run"),
)
FILE_FROZEN = PredictionFrozen(
    method="file",
    card_id="bridge",
    draw=1,
    attempt=None,
    p_raw="0.20",
    p_yes="0.2",
    extraction_rule="direct/1",
    model_route=ModelRoute(),
    origin=Origin(kind="import", file_sha256=DIGEST, line=2),
)
SECOND_DRAW = changed(FILE_FROZEN, draw=2, p_raw="0.4", p_yes="0.4")
MIXED = PredictionFrozen(
    method="mix",
    card_id="bridge",
    draw=1,
    attempt=None,
    p_raw="0.45",
    p_yes="0.45",
    extraction_rule="blend/1",
    model_route=ModelRoute(),
    sources=(20, 21),
    origin=Origin(kind="rule"),
)
_EMPTY = (("file", 1), ("file", 2), ("live", 1), ("mix", 1))
CLOSED = PredictionsClosed(
    expected=8,
    frozen=4,
    attempts=2,
    failed_attempts=1,
    empty=tuple(
        EmptyCell(method=m, card_id="tunnel", draw=d, status="missing", reason="Not run.")
        for m, d in _EMPTY
    ),
)
ANCHORED = CheckpointAnchored(
    checkpoint="example.org/log\n24\nAAAA\n",
    tree_size=24,
    proof=OutsideProof(kind="rfc3161", issuer="a notary", token_base64="AAAA"),  # noqa: S106
)
UNSEALED = LabelUnsealed(
    card_id="bridge",
    sealed_seq=3,
    salt=ENTRY.salt.hex(),
    private_json=ENTRY.private_json.decode(),
)
REVISED = LabelRevised(
    card_id="bridge", supersedes_seq=25, resolution="yes", reason="It opened.", authority="operator"
)
ANNULLED = CardAnnulled(
    card_id="tunnel", reason="ambiguous", detail="Two readings.", authority="operator"
)
PUBLISHED = ReportPublished(
    evaluated_size=27,
    scores=(PublishedScore(method="live", n=1, brier="0.4761", log="1.171182982"),),
    tables=(TableDigest(name="scores", sha256=DIGEST),),
    confirmatory_looks=1,
    exploratory_looks=0,
    authority="operator",
)
REDACTED = PayloadRedacted(
    target_seq=9, commitment=DIGEST, reason="The provider's terms.", authority="counsel"
)

STORY: tuple[Payload, ...] = (
    OPENED,
    CARD,
    DOSSIER,
    SEALED,
    PLANNED,
    AMENDED,
    STARTED,
    FAILED,
    STARTED_AGAIN,
    CALLED,
    TOOL,
    WORLD,
    TICK,
    UPDATED,
    FORKED,
    SETTLED,
    ENDED,
    REJECTED,
    CLAIM,
    LIVE_FROZEN,
    FILE_FROZEN,
    SECOND_DRAW,
    MIXED,
    CLOSED,
    ANCHORED,
    UNSEALED,
    REVISED,
    ANNULLED,
    PUBLISHED,
)
"""A whole evaluation; the place in the tuple is the seq that other payloads cite."""

EXAMPLES: dict[str, Payload] = {BY_MODEL[type(p)].name: p for p in (REDACTED, *reversed(STORY))}
"""The first payload of each wire name."""
