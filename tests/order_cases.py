"""For each order rule that a writer judges: logs that stand, and the payload that breaks them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from event_examples import (
    AMENDED,
    ANNULLED,
    CALLED,
    CARD,
    CLAIM,
    CLOSED,
    DIGEST,
    ENDED,
    ENTRY,
    FAILED,
    FILE_FROZEN,
    FORKED,
    LATER,
    LIVE_FROZEN,
    METHODS,
    MIXED,
    OPENED,
    PLANNED,
    REJECTED,
    REVISED,
    SEALED,
    SECOND_DRAW,
    SETTLED,
    STARTED,
    STORY,
    TICK,
    TOOL,
    UNSEALED,
    UPDATED,
    WORLD,
    changed,
    make_plan,
    plain,
)
from store_examples import LOG_ID, clock

from ledger.commitment import LABEL_TAG, commit
from ledger.events.base import Payload
from ledger.events.plan import PlanAmended
from ledger.events.prediction import PredictionFrozen
from ledger.ids import SeededEntropy
from ledger.session import Session
from ledger.store.memory import MemoryStore

RUN_EVENTS = (STARTED, FAILED, CALLED, TOOL, WORLD, TICK, UPDATED, FORKED, SETTLED, ENDED)
WAIVER = {"reason": "A leak in the press.", "authority": "counsel"}


class Case(NamedTuple):
    """A log, the payload that may not follow, the rule that says so, the seq it collides with."""

    rule: str
    log: tuple[Payload, ...]
    payload: Payload
    seq: int | None


def session_of(log: tuple[Payload, ...]) -> Session:
    """Write a log event by event, each passing the rules."""
    store = MemoryStore(log_id=LOG_ID, clock=clock(), entropy=SeededEntropy("rules"))
    session = Session(store, clock=clock(), actor="tester")
    for seq, payload in enumerate(log):
        assert list(session.commit(lambda _, p=payload: [p])) == [seq]  # type: ignore[misc]
    return session


def amended(**changes: object) -> PlanAmended:
    """Amend the plan in force of the story."""
    return changed(AMENDED, amends_seq=5, plan=plain(make_plan(**changes)))


def with_methods(**by_id: Mapping[str, object]) -> PlanAmended:
    """Amend methods of the plan in force."""
    return amended(methods=[{**m, **by_id.get(m["id"], {})} for m in METHODS])


def prediction(base: PredictionFrozen, **changes: object) -> PredictionFrozen:
    """Change a prediction."""
    return changed(base, **changes)


def _setup() -> Iterator[Case]:
    yield Case("order.opened-first", (), CARD, None)
    yield Case("order.opened-first", STORY[:1], OPENED, 0)
    yield Case("order.card-once", STORY[:2], CARD, 1)
    for payload in (SEALED, REJECTED, CLAIM, ANNULLED, UNSEALED, REVISED, *RUN_EVENTS, LIVE_FROZEN):
        yield Case("order.card-before-use", STORY[:1], payload, None)
    late = plain(CARD.card) | {
        "source_packet": [{"source_type": "n", "dated": "2026-03-02", "text": "t", "url": None}]
    }
    yield Case("order.source-after-as-of", STORY[:1], changed(CARD, card=late), None)
    yield Case("order.seal-once", STORY[:4], SEALED, 3)
    unsealed = (*STORY[:3], PLANNED)
    for payload in (*RUN_EVENTS, LIVE_FROZEN, FILE_FROZEN):
        yield Case("order.seal-before-use", unsealed, payload, 1)
        yield Case("order.plan-before-use", STORY[:4], payload, None)
    yield Case("order.plan-before-use", STORY[:4], CLOSED, None)
    yield Case("order.plan-once", STORY[:5], PLANNED, 4)
    yield Case("order.plan-once", STORY[:4], AMENDED, None)
    yield Case("order.amends-current", STORY[:6], AMENDED, 5)
    yield Case("order.plan-after-unseal", STORY[:26], amended(), 25)
    no_plan = (*STORY[:4], changed(UNSEALED, waiver=WAIVER))
    yield Case("order.plan-after-unseal", no_plan, PLANNED, 4)


def _plan_cells() -> Iterator[Case]:
    drop = [m for m in METHODS if m["id"] != "live"]
    rule = "order.plan-keeps-cells"
    yield Case(rule, STORY[:20], amended(methods=drop), 19)
    cards = {"pack": "tiny", "cards": ["tunnel"]}
    yield Case(rule, STORY[:20], amended(card_set=cards), 19)
    for changes in ({"extraction_rule": "other/1"}, {"source": "constant"}):
        yield Case(rule, STORY[:20], with_methods(live=changes), 19)
    yield Case(rule, STORY[:22], with_methods(file={"draws": 1}), 21)
    for name in ("ghost", "uniform"):
        for payload in (*RUN_EVENTS, LIVE_FROZEN):
            wrong = changed(payload, method=name)
            yield Case("order.method-registered", STORY[:6], wrong, 5)
    extra = changed(CARD, card=plain(CARD.card) | {"card_id": "extra", "kind": "stress"})
    for payload in (*RUN_EVENTS, LIVE_FROZEN):
        wrong = changed(payload, card_id="extra")
        yield Case("order.card-registered", (*STORY[:6], extra), wrong, 5)
        yield Case("order.draw-registered", STORY[:6], changed(payload, draw=2), 5)


def _attempts() -> Iterator[Case]:
    yield Case("order.attempt-number", STORY[:6], changed(STARTED, attempt=2), None)
    yield Case("order.attempt-number", STORY[:8], STARTED, None)
    yield Case("order.attempt-number", STORY[:8], changed(STARTED, attempt=3), None)
    yield Case("order.attempt-open", STORY[:7], changed(STARTED, attempt=2), 6)
    yield Case("order.attempt-open", STORY[:20], changed(STARTED, attempt=3), 19)
    rule = "order.attempt-cited"
    yield Case(rule, STORY[:6], FAILED, None)
    yield Case(rule, STORY[:8], FAILED, None)
    yield Case(rule, STORY[:7], changed(FAILED, attempt=2), 6)
    yield Case(rule, STORY[:7], changed(FAILED, started_seq=5), 6)
    yield Case(rule, STORY[:19], prediction(LIVE_FROZEN, attempt=1), 8)
    yield Case(rule, STORY[:19], prediction(LIVE_FROZEN, attempt=None), 8)
    yield Case(rule, STORY[:8], LIVE_FROZEN, None)
    yield Case(rule, STORY[:8], prediction(LIVE_FROZEN, attempt=None), None)
    yield Case(rule, STORY[:20], prediction(FILE_FROZEN, attempt=1), None)
    ruled = plain(FILE_FROZEN.origin) | {"kind": "rule"}
    yield Case(rule, STORY[:20], prediction(FILE_FROZEN, attempt=1, origin=ruled), None)
    yield Case("order.attempt-unreported", STORY[:9], CLOSED, 8)


def _calls() -> Iterator[Case]:
    yield Case("order.as-of-widened", STORY[:9], changed(CALLED, as_of=LATER), 1)
    yield Case("order.as-of-widened", STORY[:9], changed(TOOL, as_of=LATER), 1)
    kept = plain(TOOL.evidence[0])
    just_after = "2026-02-20T08:00:00.000001Z"
    for claim in ("published", "snapshot"):
        item = kept | {"published": None, claim: just_after}
        wrong = changed(TOOL, evidence=[kept, item])
        yield Case("order.evidence-after-as-of", STORY[:9], wrong, None)
    undated = kept | {"published": None, "crawled": "2026-01-01T00:00:00.000000Z"}
    wrong = changed(TOOL, evidence=[undated])
    yield Case("order.evidence-undated", STORY[:9], wrong, 5)


def _predictions() -> Iterator[Case]:
    yield Case("order.cell-once", STORY[:20], LIVE_FROZEN, 19)
    yield Case("order.cell-once", STORY[:21], prediction(FILE_FROZEN, p_yes="0.9"), 20)
    other = prediction(FILE_FROZEN, extraction_rule="direct/2")
    yield Case("order.extraction-registered", STORY[:20], other, 5)
    for changes in (
        {"model_route": {"provider": "rival", "route": None}},
        {"model_route": {"requested_model": "m-2"}},
        {"prompt_version": "v2"},
        {"prompt_digest": "cd" * 32},
    ):
        yield Case("order.route-registered", STORY[:20], changed(FILE_FROZEN, **changes), 5)
        yield Case("order.route-registered", STORY[:9], changed(CALLED, **changes), 5)
    for p_yes in ("0.425", "0.450000001", "0.449999999"):
        yield Case("order.blend", STORY[:22], prediction(MIXED, p_yes=p_yes), None)
    yield Case("order.blend", STORY[:21], MIXED, None)
    rounded = with_methods(mix={"source": "imported", "blend": _blend("0.005")})
    log = (*STORY[:6], rounded, FILE_FROZEN, SECOND_DRAW)
    for p_yes in ("0.455000001", "0.444999999"):
        yield Case("order.blend", log, prediction(MIXED, p_yes=p_yes), None)
    strange = _blend(None) | {
        "parts": [{"method": "ghost", "weight": "0.5"}, {"method": "uniform", "weight": "0.5"}]
    }
    yield Case("order.blend", (*STORY[:6], with_methods(mix={"blend": strange})), MIXED, None)


def _strange_blends() -> Iterator[Case]:
    none = with_methods(file={"extraction_rule": "blend/1"})
    claimed = prediction(FILE_FROZEN, extraction_rule="blend/1")
    yield Case("order.blend", (*STORY[:6], none), claimed, 6)


def _blend(rounding: str | None) -> dict[str, object]:
    return {**METHODS[3]["blend"], "rounding": rounding}


def _closing() -> Iterator[Case]:
    yield Case("order.close-once", STORY[:24], CLOSED, 23)
    for field in ("expected", "frozen", "attempts", "failed_attempts"):
        for by in (-1, 1):
            wrong = changed(CLOSED, **{field: getattr(CLOSED, field) + by})
            yield Case("order.close-counts", STORY[:23], wrong, None)
    empty = [plain(e) for e in CLOSED.empty]
    for other in (
        empty[1:],
        [*empty, empty[0]],
        [*empty[1:], empty[1]],
        [*empty[1:], empty[0] | {"card_id": "bridge"}],
        [*empty, empty[0] | {"draw": 3}],
    ):
        yield Case("order.close-complete", STORY[:23], changed(CLOSED, empty=other), None)
    late = (*RUN_EVENTS, LIVE_FROZEN, changed(FILE_FROZEN, card_id="tunnel"))
    opened = (*STORY[:23], changed(UNSEALED, waiver=WAIVER))
    for payload in late:
        yield Case("order.late-prediction", STORY[:24], payload, 23)
        yield Case("order.post-label", opened, payload, 23)


def _labels() -> Iterator[Case]:
    yield Case("order.unseal-before-close", STORY[:23], UNSEALED, None)
    never = "2027-01-01T00:00:00.000000Z"
    waiting = changed(AMENDED, plan=plain(make_plan(labels_open_not_before=never)))
    log = (*STORY[:5], waiting, *STORY[6:24])
    yield Case("order.unseal-too-early", log, UNSEALED, 5)
    yield Case("order.unseal-target", STORY[:24], changed(UNSEALED, sealed_seq=1), 3)
    yield Case("order.unseal-target", STORY[:26], UNSEALED, 25)
    yield Case("order.unseal-target", STORY[:3], changed(UNSEALED, waiver=WAIVER), None)
    yield Case("label.seal", STORY[:24], changed(UNSEALED, salt=DIGEST), 3)
    flipped = UNSEALED.private_json.replace('"no"', '"yes"')
    yield Case("label.seal", STORY[:24], changed(UNSEALED, private_json=flipped), 3)
    text = UNSEALED.private_json
    for data in (
        text + "\n",
        text.replace('"bridge"', '"tunnel"'),
        text.replace('"no"', '"maybe"'),
        "[]",
        "",
        text[:-1],
    ):
        seal = plain(SEALED.seal) | {"commitment": commit(LABEL_TAG, ENTRY.salt, data.encode())}
        log = (*STORY[:3], changed(SEALED, seal=seal), *STORY[4:24])
        yield Case("label.bytes", log, changed(UNSEALED, private_json=data), None)
    yield Case("order.revision", STORY[:26], changed(REVISED, supersedes_seq=3), 25)
    yield Case("order.revision", STORY[:27], REVISED, 26)
    yield Case("order.revision", STORY[:25], REVISED, None)
    yield Case("order.annulled-once", STORY[:28], ANNULLED, 27)


def _worlds() -> Iterator[Case]:
    rule = "order.timeline"
    for payload in (TICK, UPDATED, FORKED, SETTLED, ENDED):
        yield Case(rule, STORY[:11], payload, None)
    yield Case(rule, STORY[:14], SETTLED, None)
    for payload in (SETTLED, ENDED, changed(TICK, timeline="left")):
        yield Case(rule, STORY[:17], payload, None)
    again = changed(ENDED, timeline="root", mass_units=400_000_000)
    yield Case(rule, (*STORY[:17], again), TICK, None)
    for children in (["left", "left"], ["left", "root"], ["right", "left"]):
        log = STORY[:14] if children[1] != "left" or children[0] == "left" else STORY[:17]
        yield Case(rule, log, changed(FORKED, children=children), None)
    rule = "order.mass-balance"
    for masses in (
        {"root": -600, "left": 400, "right": 199},
        {"root": -1_000_000_000, "left": 1_000_000_000},
        {"root": -600, "left": 600, "right": 0},
        {"root": -600, "left": 700, "right": -100},
        {"root": -600, "left": 300, "right": 200, "other": 100},
        {"left": 0, "right": 0},
    ):
        postings = [{"timeline": t, "mass_units": m} for t, m in masses.items()]
        yield Case(rule, STORY[:14], changed(FORKED, postings=postings), None)
    poor = changed(FORKED, children=["a", "b"], postings=_fork(-400_000_001))
    yield Case(rule, STORY[:15], poor, None)
    for mass in (399_999_999, 400_000_001):
        yield Case(rule, STORY[:16], changed(ENDED, mass_units=mass), None)


def _fork(mass: int) -> list[dict[str, object]]:
    half = -mass // 2
    return [
        {"timeline": "root", "mass_units": mass},
        {"timeline": "a", "mass_units": half},
        {"timeline": "b", "mass_units": -mass - half},
    ]


CASES: tuple[Case, ...] = (
    *_setup(),
    *_plan_cells(),
    *_attempts(),
    *_calls(),
    *_predictions(),
    *_strange_blends(),
    *_closing(),
    *_labels(),
    *_worlds(),
)
