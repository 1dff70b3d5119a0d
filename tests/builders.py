"""Small ledgers for tests: built event by event with the writer's classes and stores.

A `Book` appends to a store that does not judge meaning, so a test can write what no command would.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from plans import AS_OF, DIGEST, DIRECT, ROUTE, UNIFORM, plan_fields
from worlds import WorldPages

from ledger.canonical import canonicalize_exact
from ledger.checkpoint import Checkpoint, sign_checkpoint
from ledger.clock import SteppingClock
from ledger.commitment import LABEL_TAG, commit
from ledger.envelope import JSON_MEDIA
from ledger.events import call, card, prediction
from ledger.events.anchor import (
    CheckpointAnchored,
    LedgerOpened,
    PayloadRedacted,
    PublishedScore,
    ReportPublished,
    TableDigest,
)
from ledger.events.base import ModelRoute, Money, Payload, RawBytes
from ledger.events.plan import Plan, PlanAmended, PlanPreregistered
from ledger.events.registry import BY_MODEL
from ledger.ids import SeededEntropy, format_uuid7
from ledger.merkle import merkle_tree_hash
from ledger.signed_note import SignerKey, format_verifier_key
from ledger.store.memory import MemoryStore
from ledger.store.port import Draft, Record

ORIGIN = "example.com/test-log"
LOG_ID = format_uuid7(1_770_000_000_000, b"\x01" * 10)
SIGNER = SignerKey(ORIGIN, hashlib.sha256(b"the operator of the tests").digest())
VKEY = format_verifier_key(SIGNER.verifier_key)
START = datetime(2026, 2, 1, tzinfo=UTC)


class Book(WorldPages):
    """A ledger in the making: each method appends one event and returns its seq."""

    def __init__(self, *, seed: str = "book", step: timedelta | None = None) -> None:
        clock = SteppingClock(START) if step is None else SteppingClock(START, step)
        self.store = MemoryStore(log_id=LOG_ID, clock=clock, entropy=SeededEntropy(seed))
        self.entropy = SeededEntropy(f"labels of {seed}")
        self.vault: dict[str, tuple[int, str, str]] = {}
        self.attempts: dict[tuple[str, str, int], tuple[int, int]] = {}
        self.plan_seq = -1

    @property
    def records(self) -> list[Record]:
        """All events so far."""
        return list(self.store.read())

    @property
    def size(self) -> int:
        """Number of events so far."""
        return self.store.head().size

    def add(self, payload: Payload, stream: str = "log", **other: Any) -> int:
        """Append an event of the payload's type."""
        kind = BY_MODEL[type(payload)]
        data = canonicalize_exact(payload.model_dump(mode="json"))
        return self.add_bytes(kind.name, data, stream, type_v=kind.version, **other)

    def add_bytes(self, kind: str, data: bytes, stream: str = "log", **other: Any) -> int:
        """Append any bytes as an event of any type."""
        fields = {"type_v": 1, "actor": "tester", "media": JSON_MEDIA, **other}
        (seq,) = self.store.append([Draft(type=kind, stream=stream, payload=data, **fields)])
        return seq

    def open(self, **other: Any) -> int:
        """`ledger.opened`."""
        fields = {
            "origin": ORIGIN,
            "log_id": LOG_ID,
            "format": "forecast-ledger/1",
            "verifier_keys": (VKEY,),
            **other,
        }
        return self.add(LedgerOpened(**fields))

    def card(self, card_id: str, kind: str = "resolved", **other: Any) -> int:
        """`card.frozen`."""
        fields = {
            "card_id": card_id,
            "kind": kind,
            "pack": "pack",
            "title": f"Card {card_id}",
            "question": "Will it happen?",
            "as_of": AS_OF,
            "deadline": "2026-01-31T23:59:59.999999Z",
            "public_context": "What everybody knew: caf\u00e9.",
            "source_packet": (
                card.SourceItem(source_type="news", dated="2026-01-09", text="It may."),
                card.SourceItem(source_type="note", dated=None, text="Undated."),
            ),
            "endpoints": (
                card.Endpoint(id="yes", wording="It happens."),
                card.Endpoint(id="no", wording="It does not."),
            ),
            "masking_rule": "No names.",
            **other,
        }
        return self.add(card.CardFrozen(card=card.PublicCard(**fields)), f"card/{card_id}")

    def seal(self, card_id: str, resolution: str = "yes", **other: Any) -> int:
        """`label.sealed`; salt and bytes go to the book's vault. `other` changes the object."""
        private = {"card_id": card_id, "resolution": resolution, "summary": "So it was.", **other}
        data = canonicalize_exact(private)
        salt = self.entropy(32)
        seal = card.Seal(
            scheme="forecast-ledger/label/v1", commitment=commit(LABEL_TAG, salt, data)
        )
        seq = self.add(
            card.LabelSealed(card_id=card_id, seal=seal, custodian="custodian"), f"card/{card_id}"
        )
        self.vault[card_id] = (seq, salt.hex(), data.decode())
        return seq

    def plan(
        self,
        methods: Sequence[Mapping[str, object]] = (DIRECT, UNIFORM),
        cards: Sequence[str] = ("a",),
        **other: object,
    ) -> int:
        """`plan.preregistered`."""
        plan = Plan.model_validate_json(canonicalize_exact(plan_fields(methods, cards, **other)))
        self.plan_seq = self.add(PlanPreregistered(plan=plan, source_sha256=DIGEST), "plan")
        return self.plan_seq

    def amend(
        self,
        methods: Sequence[Mapping[str, object]] = (DIRECT, UNIFORM),
        cards: Sequence[str] = ("a",),
        amends_seq: int | None = None,
        **other: object,
    ) -> int:
        """`plan.amended`, of the plan in force if no other seq is given."""
        plan = Plan.model_validate_json(canonicalize_exact(plan_fields(methods, cards, **other)))
        self.plan_seq = self.add(
            PlanAmended(
                plan=plan,
                source_sha256=DIGEST,
                amends_seq=self.plan_seq if amends_seq is None else amends_seq,
                reason="A typing error in the plan.",
                authority="board",
            ),
            "plan",
        )
        return self.plan_seq

    def start(self, method: str, card_id: str, draw: int = 1, attempt: int | None = None) -> int:
        """`attempt.started`, numbered as due if no number is given."""
        cell = (method, card_id, draw)
        number = self.attempts.get(cell, (0, 0))[0] + 1 if attempt is None else attempt
        seq = self.add(
            call.AttemptStarted(method=method, card_id=card_id, draw=draw, attempt=number)
        )
        self.attempts[cell] = (number, seq)
        return seq

    def fail(self, method: str, card_id: str, draw: int = 1, **other: Any) -> int:
        """`attempt.failed`, of the cell's last attempt."""
        number, seq = self.attempts.get((method, card_id, draw), (1, 0))
        fields = {"attempt": number, "started_seq": seq, "reason": "timeout", **other}
        return self.add(
            call.AttemptFailed(
                method=method, card_id=card_id, draw=draw, detail="No answer came.", **fields
            )
        )

    def model_call(self, method: str, card_id: str, draw: int = 1, **other: Any) -> int:
        """`model.called`."""
        raw = RawBytes(media="application/json", encoding="utf-8", data='{"q": "p?"}')
        fields = {
            "role": "forecaster",
            "model_route": ROUTE,
            "prompt_version": "prompt-1",
            "prompt_digest": DIGEST,
            "parameters": {"temperature": "0"},
            "as_of": AS_OF,
            "outcome": "answered",
            "usage": call.TokenUsage(input_tokens=10, output_tokens=3),
            "cost": Money(amount=None, currency="USD", unknown_because="not said"),
            "latency_ms": 12,
            "raw_request": raw,
            "raw_answer": raw,
            **other,
        }
        return self.add(call.ModelCalled(method=method, card_id=card_id, draw=draw, **fields))

    def tool_call(
        self, method: str, card_id: str, evidence: Iterable[Mapping[str, Any]] = (), **other: Any
    ) -> int:
        """`tool.called`, with kept evidence of before the as-of date unless told otherwise."""
        pieces = tuple(
            call.Evidence(
                **{
                    "url": "https://example.com/a",
                    "published": "2026-01-05T00:00:00.000000Z",
                    "retrieved_at": "2026-02-01T00:00:00.000000Z",
                    "content_sha256": DIGEST,
                    "kept": True,
                    "rule": "timebox/1",
                    **piece,
                }
            )
            for piece in evidence
        )
        fields = {
            "tool": "search",
            "arguments": {"query": "it"},
            "as_of": AS_OF,
            "limits_sent": {"before": "2026-01-10"},
            "outcome": "answered",
            "cost": Money(amount="0.01", currency="USD"),
            "latency_ms": None,
            "raw_answer": None,
            **other,
        }
        return self.add(
            call.ToolCalled(method=method, card_id=card_id, draw=1, evidence=pieces, **fields)
        )

    def predict(
        self, method: str, card_id: str, p: str, draw: int = 1, kind: str = "import", **other: Any
    ) -> int:
        """`prediction.frozen`; of kind `run` it cites the cell's last attempt."""
        attempt = self.attempts[method, card_id, draw][0] if kind == "run" else None
        is_rule = kind == "rule"
        fields = {
            "attempt": attempt,
            "p_raw": p,
            "extraction_rule": "blend/1" if is_rule else "direct/1",
            "model_route": ModelRoute() if is_rule else ROUTE,
            "prompt_version": None if is_rule else "prompt-1",
            "prompt_digest": None if is_rule else DIGEST,
            "origin": prediction.Origin(
                kind=kind,  # type: ignore[arg-type]
                file_sha256=DIGEST if kind == "import" else None,
            ),
            **other,
        }
        return self.add(
            prediction.PredictionFrozen(
                method=method, card_id=card_id, draw=draw, p_yes=p, **fields
            )
        )

    def close(self, *empty: tuple[str, str, int], **other: int) -> int:
        """`predictions.closed`, with true counts unless told otherwise."""
        kinds = [record.type for record in self.records]
        frozen = kinds.count("prediction.frozen")
        fields = {
            "expected": frozen + len(empty),
            "frozen": frozen,
            "attempts": kinds.count("attempt.started"),
            "failed_attempts": kinds.count("attempt.failed"),
            **other,
        }
        cells = tuple(
            prediction.EmptyCell(
                method=method, card_id=card_id, draw=draw, status="missing", reason="not run"
            )
            for method, card_id, draw in empty
        )
        return self.add(prediction.PredictionsClosed(empty=cells, **fields))

    def checkpoint(self, size: int | None = None, origin: str = ORIGIN) -> str:
        """A signed checkpoint of the log at a size, present size by default."""
        leaves = [record.leaf for record in self.records][:size]
        state = Checkpoint(origin, len(leaves), merkle_tree_hash(leaves))
        signer = SignerKey(origin, SIGNER.seed)
        return sign_checkpoint(state, signer)

    def anchor(self, text: str | None = None, **other: Any) -> int:
        """`checkpoint.anchored`, without an outside proof."""
        fields = {"tree_size": self.size, "proof": None, **other}
        note = self.checkpoint() if text is None else text
        return self.add(CheckpointAnchored(checkpoint=note, **fields))

    def unseal(self, card_id: str, **other: Any) -> int:
        """`label.unsealed`, from the book's vault."""
        seq, salt, data = self.vault[card_id]
        fields = {"sealed_seq": seq, "salt": salt, "private_json": data, **other}
        return self.add(card.LabelUnsealed(card_id=card_id, **fields), f"card/{card_id}")

    def revise(self, card_id: str, supersedes_seq: int, resolution: str = "no") -> int:
        """`label.revised`."""
        return self.add(
            card.LabelRevised(
                card_id=card_id,
                supersedes_seq=supersedes_seq,
                resolution=resolution,  # type: ignore[arg-type]
                reason="The source was corrected.",
                authority="board",
            ),
            f"card/{card_id}",
        )

    def annul(self, card_id: str, reason: str = "annulled") -> int:
        """`card.annulled`."""
        return self.add(
            card.CardAnnulled(
                card_id=card_id,
                reason=reason,  # type: ignore[arg-type]
                detail="The question was void.",
                authority="board",
            ),
            f"card/{card_id}",
        )

    def redact(self, target_seq: int, **other: Any) -> int:
        """`payload.redacted`, and salt and bytes of the target are gone."""
        payload = self.redaction(target_seq, **other)
        kind = BY_MODEL[type(payload)]
        data = canonicalize_exact(payload.model_dump(mode="json"))
        draft = Draft(type=kind.name, type_v=1, stream="log", payload=data, actor="tester")
        return self.store.redact(target_seq, draft)

    def redaction(self, target_seq: int, **other: Any) -> PayloadRedacted:
        """The payload of a redaction, without carrying it out."""
        fields = {
            "target_seq": target_seq,
            "commitment": self.records[target_seq].envelope.commitment,
            "reason": "personal data",
            "authority": "board",
            **other,
        }
        return PayloadRedacted(**fields)

    def report(self, *scores: PublishedScore, **other: Any) -> int:
        """`report.published`."""
        fields = {
            "evaluated_size": self.size,
            "tables": (TableDigest(name="scores", sha256=DIGEST),),
            "confirmatory_looks": 1,
            "exploratory_looks": 0,
            "authority": "board",
            **other,
        }
        return self.add(ReportPublished(scores=scores, **fields))
