"""Small ledgers that replay tests are run on: built by the writer's own session, in memory.

`pilot()` is the shipped pack from first to last event; `Bench` builds an evaluation of made-up
cards under any plan. Clock and entropy are fixed, so that every ledger is the same on every run.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from cards.pack import load_pack
from cards.source import to_public_card
from ledger.canonical import canonicalize_exact
from ledger.clock import SteppingClock
from ledger.decimals import round_probability
from ledger.events.anchor import LedgerOpened
from ledger.events.base import ModelRoute, Payload
from ledger.events.card import (
    CardFrozen,
    CardKind,
    Endpoint,
    LabelSealed,
    PrivateObject,
    PublicCard,
)
from ledger.events.plan import Plan, PlanPreregistered
from ledger.events.prediction import Origin, PredictionFrozen
from ledger.ids import SeededEntropy, format_uuid7
from ledger.protocol.decide import decide_blends, decide_close, decide_import, decide_unseal
from ledger.session import Session
from ledger.store.memory import MemoryStore
from ledger.vault import VaultEntry, seal_private
from scoring.plan import check_plan, load_plan
from scoring.prediction_file import read_predictions

LOG_ID = format_uuid7(1_750_000_000_000, bytes(10))
START = datetime(2026, 5, 1, tzinfo=UTC)


def open_session(*, start: datetime = START) -> Session:
    """Return a session of a new ledger in memory that holds `ledger.opened` alone."""
    clock = SteppingClock(start, timedelta(seconds=1))
    store = MemoryStore(log_id=LOG_ID, clock=clock, entropy=SeededEntropy("replay tests"))
    session = Session(store, clock=clock, actor="tests")
    opened = LedgerOpened(
        origin="example.org/replay", log_id=LOG_ID, format="forecast-ledger/1", verifier_keys=()
    )
    session.commit(lambda _: [opened])
    return session


def pilot(*, start: datetime = START) -> Session:
    """Return the shipped pilot, labels open."""
    pack, entropy = load_pack("worldfork_pilot"), SeededEntropy("pilot")
    assert pack.plan is not None
    assert pack.predictions is not None
    session = open_session(start=start)
    session.commit(
        lambda _: [
            CardFrozen(
                card=to_public_card(c.source, pack=pack.id, private=c.private, entropy=entropy)
            )
            for c in pack.cards
        ]
    )
    private = [card.private for card in pack.cards if card.private is not None]
    entries = {p.card_id: seal_private(p, entropy) for p in private}
    session.commit(lambda _: _seals(entries))
    plan = load_plan(pack.plan)
    session.commit(lambda _: [plan])
    rows = list(read_predictions(pack.predictions, session.state().methods))
    session.commit(lambda state: decide_import(state, rows))
    session.commit(lambda state: decide_close(state, declared_missing=None))
    session.commit(lambda state: decide_unseal(state, entries, waiver=None))
    return session


def method(method_id: str, **changes: object) -> dict[str, Any]:
    """Return a method's fields: imported, one draw, `direct/1`, but for `changes`."""
    fields: dict[str, Any] = {
        "id": method_id,
        "label": f"Method {method_id}",
        "role": "baseline",
        "source": "imported",
        "strategy": "direct",
        "model_route": dict.fromkeys(("provider", "route", "requested_model", "resolved_model")),
        "prompt_version": None,
        "prompt_digest": None,
        "parameters": {},
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
    }
    return fields | changes


def constant(method_id: str = "uniform") -> dict[str, Any]:
    """Return the fields of a constant method."""
    return method(method_id, role="reference", source="constant", extraction_rule="uniform/1")


def blend(
    method_id: str, parts: Mapping[str, str], *, source: str = "computed", rounding: str | None
) -> dict[str, Any]:
    """Return the fields of a blend."""
    spec = {
        "parts": [{"method": part, "weight": weight} for part, weight in parts.items()],
        "rounding": rounding,
    }
    return method(method_id, source=source, extraction_rule="blend/1", blend=spec)


def plan_fields(
    cards: Sequence[str], methods: Sequence[Mapping[str, Any]], **changes: object
) -> dict[str, Any]:
    """Return a plan's fields; the first two methods (or the one, with `uniform`) are compared."""
    ids = [m["id"] for m in methods]
    fields: dict[str, Any] = {
        "plan_id": "small",
        "title": "A small evaluation",
        "card_set": {"pack": "small", "cards": list(cards)},
        "methods": list(methods),
        "baselines": [],
        "primary_metric": "brier",
        "secondary_metrics": ["log"],
        "clip": {"low": "0.01", "high": "0.99"},
        "calibration": {"bins": 10, "edges": "left-closed"},
        "extraction_rule": methods[0]["extraction_rule"],
        "blend_policy": "None.",
        "comparisons": [{"a": ids[0], "b": ids[1], "primary": True}],
        "published_intervals": [],
        "statistical_test": {
            "primary": "sign",
            "level": "0.05",
            "two_sided": True,
            "permutation": {"exact_up_to": 40, "resamples": 999, "seed": 0},
            "bootstrap": {
                "resamples": 200,
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
            "family": "all_pairs",
            "tests": ["sign"],
        },
        "missing_predictions": {"policy": "complete_case", "value": None},
        "exclusions": {"reasons": ["annulled", "ambiguous"], "statement": "As recorded."},
        "undated_evidence": "drop",
        "strata": [],
        "failure_tags": [],
        "example_selection": {"rule": "first/1", "count": 2},
        "branch_policies": [],
        "trigger_rule": None,
        "stopping_rule": {"rule": "fixed_cards", "cards": len(cards)},
        "labels_open_not_before": "2026-01-01T00:00:00.000000Z",
    }
    return copy.deepcopy(fields | changes)


def make_plan(fields: Mapping[str, Any]) -> Plan:
    """Return the checked plan of such fields."""
    plan = Plan.model_validate_json(canonicalize_exact(fields))
    check_plan(plan)
    return plan


class Bench:
    """An evaluation of made-up cards, step by step; each step is one call."""

    def __init__(self, plan: Plan, *, start: datetime = START) -> None:
        self.plan = plan
        self.session = open_session(start=start)
        self._entries: dict[str, VaultEntry] = {}

    def freeze(
        self,
        labels: Mapping[str, str],
        *,
        kind: CardKind = "resolved",
        as_of: str = "2026-01-01T00:00:00.000000Z",
        deadline: str | None = "2026-01-20T23:59:59.999999Z",
        domain: str | None = None,
    ) -> Bench:
        """Freeze cards, and seal a label for each that is `resolved`."""
        self.add(*(CardFrozen(card=_card(card, kind, as_of, deadline, domain)) for card in labels))
        if kind == "resolved":
            entropy = SeededEntropy(" ".join(labels))
            fresh = {
                card: seal_private(
                    PrivateObject.model_validate({"card_id": card, "resolution": label}), entropy
                )
                for card, label in labels.items()
            }
            self._entries |= fresh
            self.add(*_seals(fresh))
        return self

    def register(self) -> Bench:
        """Register the plan."""
        return self.add(PlanPreregistered(plan=self.plan, source_sha256="0" * 64))

    def predict(self, method_id: str, values: Mapping[str, str | Sequence[str]]) -> Bench:
        """Freeze probabilities by card; a list gives several draws."""
        rows = [
            self.prediction(method_id, card, draw, text)
            for card, texts in values.items()
            for draw, text in enumerate([texts] if isinstance(texts, str) else texts, 1)
        ]
        return self.add(*rows)

    def prediction(
        self, method_id: str, card: str, draw: int, text: str, **changes: object
    ) -> PredictionFrozen:
        """Return one imported prediction."""
        spec = next(m for m in self.plan.methods if m.id == method_id)
        fields: dict[str, Any] = {
            "method": method_id,
            "card_id": card,
            "draw": draw,
            "attempt": None,
            "p_raw": text,
            "p_yes": round_probability(text),
            "extraction_rule": spec.extraction_rule,
            "model_route": ModelRoute(),
            "origin": Origin(kind="import"),
        }
        return PredictionFrozen(**fields | changes)

    def close(self, missing: str | None = "not run") -> Bench:
        """Compute blends and close, declaring what is missing."""
        self.session.commit(lambda state: list(decide_blends(state)))
        self.session.commit(lambda state: decide_close(state, declared_missing=missing))
        return self

    def unseal(self) -> Bench:
        """Open all labels."""
        self.session.commit(lambda state: decide_unseal(state, self._entries, waiver=None))
        return self

    def add(self, *payloads: Payload) -> Bench:
        """Append payloads through the order rules."""
        self.session.commit(lambda _: payloads)
        return self


def _card(
    card: str, kind: CardKind, as_of: str, deadline: str | None, domain: str | None
) -> PublicCard:
    return PublicCard(
        card_id=card,
        kind=kind,
        pack="small",
        title=f"Card {card}",
        question="Will it?",
        as_of=as_of,
        deadline=deadline,
        domain=domain,
        public_context="Nothing is known.",
        endpoints=(
            Endpoint(id="yes", wording="It does."),
            Endpoint(id="no", wording="It does not."),
        ),
        masking_rule="None.",
    )


def _seals(entries: Mapping[str, VaultEntry]) -> Iterable[LabelSealed]:
    return [
        LabelSealed(card_id=card, seal=entry.seal, custodian="tests")
        for card, entry in entries.items()
    ]
