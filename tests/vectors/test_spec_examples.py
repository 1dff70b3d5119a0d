"""The worked examples of the specification, recomputed with hashlib from the pages themselves."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ledger.clock import SteppingClock
from ledger.events.anchor import LedgerOpened
from ledger.events.card import LabelSealed, PrivateObject
from ledger.events.codec import draft_event
from ledger.ids import SeededEntropy, format_uuid7
from ledger.store.memory import MemoryStore
from ledger.vault import seal_private

SPEC = Path(__file__).parents[2] / "docs" / "spec"
START = datetime(2026, 1, 1, tzinfo=UTC)


def example(page: str) -> dict[str, bytes]:
    """Read the example block of a page: a name, two spaces or more, a value."""
    text = (SPEC / page).read_text(encoding="utf-8")
    block = text.split("## Example")[1].split("```")[1]
    pairs = (line.split("  ", 1) for line in block.strip().splitlines())
    return {name: value.strip().encode() for name, value in pairs}


def sha256(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()


def raw(digits: bytes) -> bytes:
    return bytes.fromhex(digits.decode())


def test_the_event_log_by_hashlib_alone() -> None:
    """event-log.md 7, 8: one hash is leaf and link; commitments.md 1, 2: what it covers."""
    log = example("event-log.md")
    first, second = json.loads(log["envelope 0"]), json.loads(log["envelope 1"])
    commitment = sha256(b"forecast-ledger/payload/v1\x00", raw(log["salt 0"]), log["payload 0"])
    assert first["payload"]["commitment"] == commitment
    assert first["payload"]["length"] == len(log["payload 0"])
    assert first["prev"] == "0" * 64
    assert log["leaf 0"].decode() == sha256(b"\x00", log["envelope 0"]) == second["prev"]
    assert log["leaf 1"].decode() == sha256(b"\x00", log["envelope 1"])
    assert log["root"].decode() == sha256(b"\x01", raw(log["leaf 0"]), raw(log["leaf 1"]))
    assert json.loads(log["payload 0"])["log_id"] == first["log"] == second["log"]
    for each in (first, second):
        assert each["recorded_at"] == "2026-01-01T00:00:00.000000Z"


def test_the_commitments_by_hashlib_alone() -> None:
    """commitments.md 5: the sealed bytes are the canonical private object."""
    page, log = example("commitments.md"), example("event-log.md")
    label = sha256(b"forecast-ledger/label/v1\x00", raw(page["salt"]), page["private"])
    assert page["commitment"].decode() == label
    assert json.loads(page["payload 1"])["seal"]["commitment"] == label
    commitment = sha256(b"forecast-ledger/payload/v1\x00", raw(page["salt 1"]), page["payload 1"])
    assert json.loads(log["envelope 1"])["payload"]["commitment"] == commitment
    assert commitment in (SPEC / "commitments.md").read_text(encoding="utf-8")
    assert page["private"] not in page["payload 1"]


def test_the_pages_show_what_the_store_writes() -> None:
    entropy = SeededEntropy("worked example")
    log_id = format_uuid7(int(START.timestamp()) * 1000, entropy(10))
    store = MemoryStore(log_id=log_id, clock=SteppingClock(START, timedelta(0)), entropy=entropy)
    opened = LedgerOpened(
        origin="example.org/evaluation",
        log_id=log_id,
        format="forecast-ledger/1",
        verifier_keys=(),
    )
    private = PrivateObject(
        card_id="bridge",
        resolution="no",
        resolved_on="2026-03-20",
        summary="The bearings cracked.",
    )
    entry = seal_private(private, SeededEntropy("worked label"))
    sealed = LabelSealed(card_id="bridge", seal=entry.seal, custodian="notary")
    for payload in (opened, sealed):
        store.append([draft_event(payload, actor="operator")])
    first, second = store.read()
    log, page = example("event-log.md"), example("commitments.md")
    assert (log["payload 0"], raw(log["salt 0"])) == (first.payload, first.salt)
    assert (page["payload 1"], raw(page["salt 1"])) == (second.payload, second.salt)
    assert (page["private"], raw(page["salt"])) == (entry.private_json, entry.salt)
    for name, record in (("0", first), ("1", second)):
        assert log[f"envelope {name}"] == record.envelope_bytes
        assert raw(log[f"leaf {name}"]) == record.leaf
