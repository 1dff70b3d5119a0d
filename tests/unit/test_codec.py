"""Payloads to bytes and back: every wire name, and everything that must not come back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from event_examples import EXAMPLES, FILE_FROZEN, OPENED, SEALED, changed
from pydantic import ValidationError
from store_examples import draft, dump, make_memory

from ledger.canonical import canonicalize, canonicalize_exact, is_canonical
from ledger.errors import BugError, DamagedLedgerError
from ledger.events.base import Payload
from ledger.events.codec import Upcast, draft_event, read_event
from ledger.events.registry import BY_MODEL, BY_NAME, EVENT_TYPES, EventType
from ledger.store.port import Draft, Record

NAMES = [row.name for row in EVENT_TYPES]


def stored(each: Draft) -> Record:
    """Store a draft and return its record."""
    store = make_memory()
    store.append([each])
    return dump(store)[1]


def record_of(name: str, value: object, **changes: Any) -> Record:
    """Store JSON as a payload of a type."""
    return stored(draft(canonicalize(value).decode(), type=name, **changes))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every node of a JSON value."""
    found = [path]
    if isinstance(value, dict):
        for key in value:
            found += places(value[key], (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += places(item, (*path, index))
    return found


def with_changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """Return a copy of a JSON value with one node replaced."""
    if not path:
        return new
    copy = json.loads(json.dumps(value))
    target = copy
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = new
    return copy


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def json_of(name: str) -> Any:
    return json.loads(draft_event(EXAMPLES[name], actor="t").payload)


def test_every_wire_name_has_an_example() -> None:
    assert set(NAMES) == EXAMPLES.keys() == BY_NAME.keys()
    assert len(NAMES) == len(set(NAMES)) == len(BY_MODEL)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_comes_back_from_its_canonical_bytes(name: str) -> None:
    payload = EXAMPLES[name]
    made = draft_event(payload, actor="alice", correlation="run", causation="c")
    assert (made.type, made.type_v, made.actor, made.correlation) == (name, 1, "alice", "run")
    assert is_canonical(made.payload)
    assert b"." not in made.payload or not any(
        isinstance(at(json_of(name), path), float) for path in places(json_of(name))
    )
    event = read_event(stored(made))
    assert (event.seq, event.type, event.status) == (1, name, "read")
    assert event.payload == payload
    assert draft_event(payload, actor="alice", correlation="run", causation="c") == made


@pytest.mark.parametrize("name", NAMES)
def test_nulls_are_written_out(name: str) -> None:
    """events.md: a payload has exactly its fields, nulls written out."""
    assert json_of(name).keys() == type(EXAMPLES[name]).model_fields.keys()


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_key_anywhere_is_refused(name: str) -> None:
    value = json_of(name)
    free = {"parameters", "arguments", "limits_sent", "social_state", "entity_map"}
    for path in places(value):
        if isinstance(at(value, path), dict) and not (path and path[-1] in free):
            wrong = with_changed(value, path, at(value, path) | {"surplus": None})
            with pytest.raises(DamagedLedgerError, match=name):
                read_event(record_of(name, wrong))


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_key_is_refused_unless_it_has_a_default(name: str) -> None:
    value = json_of(name)
    for key, field in type(EXAMPLES[name]).model_fields.items():
        less = {k: v for k, v in value.items() if k != key}
        if field.is_required():
            with pytest.raises(DamagedLedgerError):
                read_event(record_of(name, less))


@pytest.mark.parametrize("name", NAMES)
def test_floats_and_wrong_types_anywhere_are_refused(name: str) -> None:
    """event-log.md 3: there is no floating-point number in any payload."""
    value = json_of(name)
    for path in places(value):
        here = at(value, path)
        wrong: list[Any] = [0.5, -1]
        if type(here) is int:
            wrong = [here + 0.5, True, str(here)]
        for new in wrong:
            with pytest.raises(DamagedLedgerError):
                read_event(record_of(name, with_changed(value, path, new)))


def accepts_text(name: str, path: tuple[Any, ...], value: Any) -> bool:
    try:
        read_event(record_of(name, with_changed(value, path, "\ud7ff")))
    except DamagedLedgerError:
        return False
    return True


def test_every_id_digest_and_number_in_text_has_its_form() -> None:
    """Free text takes anything; nothing else takes a strange letter."""
    free = {
        path
        for name in NAMES
        for path in [
            (name, *p) for p in places(json_of(name)) if accepts_text(name, p, json_of(name))
        ]
    }
    last_keys = {next(str(k) for k in reversed(path) if isinstance(k, str)) for path in free}
    forms = {
        *("method", "card_id", "draw", "timeline", "endpoint", "parent", "children", "plan_id"),
        *("p_yes", "low", "high", "mass_units", "commitment", "salt", "source_sha256", "as_of"),
        *("extraction_rule", "labels_open_not_before", "weight", "amount", "currency", "dated"),
        *("outcome", "resolution", "digest", "deadline", "published", "retrieved_at"),
    }
    assert last_keys & forms == set()


@pytest.mark.parametrize(
    "text",
    [
        '{"custodian":"a","card_id":"bridge"}',
        ' {"card_id":"b"}',
        '{"card_id":"b","card_id":"b"}',
        "{",
        "",
        "\ufeff{}",
        '{"card_id":"\\u0062"}',
        "null",
        "[]",
    ],
)
def test_what_is_not_canonical_json_is_refused(text: str) -> None:
    """event-log.md 6: a reader MUST refuse duplicate keys; commitments.md 3: canonical JSON."""
    with pytest.raises(DamagedLedgerError):
        read_event(stored(draft(text, type="label.sealed")))


def test_a_repeated_key_does_not_win_silently() -> None:
    good = draft_event(SEALED, actor="t")
    twice = good.payload.replace(b'{"card_id":"bridge"', b'{"card_id":"x","card_id":"bridge"')
    assert json.loads(twice) == json.loads(good.payload)
    with pytest.raises(DamagedLedgerError):
        read_event(stored(replace(good, payload=twice)))


def test_bytes_that_are_no_utf8_are_refused() -> None:
    with pytest.raises(DamagedLedgerError):
        read_event(stored(replace(draft_event(SEALED, actor="t"), payload=b'{"card_id":"\xff"}')))


@pytest.mark.parametrize(
    ("name", "version"), [("from.the.future", 1), ("card.frozen", 2), ("card.frozen", 0)]
)
def test_unknown_types_and_versions_are_kept(name: str, version: int) -> None:
    """events.md: an event of a type that is not listed is kept and reported, never dropped."""
    record = stored(draft("not even JSON", type=name, type_v=version))
    event = read_event(record)
    assert (event.type, event.status, event.payload) == (name, "unknown", None)
    assert record.payload == b"not even JSON"


def test_a_redacted_payload_is_withheld() -> None:
    """commitments.md 4: reported as withheld, never as absent."""
    store = make_memory()
    store.append([draft_event(SEALED, actor="t")])
    store.redact(1, draft("why"))
    event = read_event(dump(store)[1])
    assert (event.type, event.status, event.payload) == ("label.sealed", "withheld", None)


def rename(value: dict[str, Any]) -> dict[str, Any]:
    return {("card_id" if key == "card" else key): item for key, item in value.items()}


def add_custodian(value: dict[str, Any]) -> dict[str, Any]:
    return value | {"custodian": "notary"}


def test_an_old_version_is_upcast_while_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """events.md: old events stay as they are; upcast on reading only, one version at a time."""
    row = replace(BY_NAME["label.sealed"], version=3)
    monkeypatch.setitem(BY_NAME, "label.sealed", row)
    seal = SEALED.seal.model_dump()
    upcasts = (
        Upcast("label.sealed", 2, add_custodian),
        Upcast("card.frozen", 1, dict),
        Upcast("label.sealed", 1, rename),
    )
    for version, value in (
        (1, {"card": "bridge", "seal": seal}),
        (2, {"card_id": "bridge", "seal": seal}),
        (3, {"card_id": "bridge", "seal": seal, "custodian": "notary"}),
    ):
        record = record_of("label.sealed", value, type_v=version)
        assert read_event(record, upcasts=upcasts).payload == SEALED
        assert record.payload == canonicalize_exact(value)
    with pytest.raises(DamagedLedgerError):
        read_event(record_of("label.sealed", {"seal": seal}, type_v=1), upcasts=upcasts)
    with pytest.raises(BugError, match="no upcast"):
        read_event(record_of("label.sealed", {"card": "x"}, type_v=1), upcasts=upcasts[:2])


def test_an_old_version_that_is_not_canonical_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BY_NAME, "label.sealed", replace(BY_NAME["label.sealed"], version=2))
    record = stored(draft('{"b":1,"a":1}', type="label.sealed"))
    with pytest.raises(DamagedLedgerError):
        read_event(record, upcasts=(Upcast("label.sealed", 1, dict),))


def test_a_payload_outside_the_vocabulary_is_a_bug() -> None:
    class Stray(Payload):
        """Not registered."""

    with pytest.raises(BugError, match="Stray"):
        draft_event(Stray(), actor="t")


@pytest.mark.parametrize("row", EVENT_TYPES, ids=NAMES)
def test_streams_and_keys_fit_an_envelope(row: EventType) -> None:
    """The longest ids make the longest names; all stay within 300 characters."""
    payload = EXAMPLES[row.name]
    longest = {k: "x" * 64 for k in ("method", "card_id") if getattr(payload, k, None)}
    made = draft_event(changed(payload, **longest), actor="t")
    assert len(made.stream) <= 300
    assert made.idem_key is None or len(made.idem_key) <= 300
    stored(made)


def test_streams_and_keys_at_a_glance() -> None:
    made = {name: draft_event(payload, actor="t") for name, payload in EXAMPLES.items()}
    assert made["card.frozen"].stream == made["card.frozen"].idem_key == "card/bridge"
    assert (made["label.sealed"].stream, made["label.sealed"].idem_key) == (
        "label/bridge",
        "seal/bridge",
    )
    assert made["prediction.frozen"].idem_key == "prediction/live/bridge/1"
    assert made["model.called"].stream == "call/live/bridge/1"
    keyed = {name for name, each in made.items() if each.idem_key is not None}
    assert keyed == {"card.frozen", "label.sealed", "prediction.frozen"}


def test_payloads_are_frozen_and_strict() -> None:
    with pytest.raises(ValidationError):
        OPENED.origin = "other"  # type: ignore[misc]
    with pytest.raises(ValidationError):
        changed(FILE_FROZEN, p_yes="0.50")
    with pytest.raises(ValidationError):
        changed(FILE_FROZEN, p_yes="1.1")
