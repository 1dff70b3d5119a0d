"""Projected tables: incremental, dropped and rebuilt, they are the same byte for byte."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from event_examples import (
    AMENDED,
    CARD,
    FILE_FROZEN,
    OPENED,
    PLANTED_LABEL,
    STORY,
    changed,
    plain,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from order_cases import with_methods
from sqlite_utils import Database
from store_examples import clock, draft, make_sqlite, open_sqlite

from ledger.errors import DamagedLedgerError
from ledger.events.base import Payload
from ledger.events.codec import draft_event
from ledger.events.registry import BY_NAME
from ledger.projections.port import Projection, drop_tables, refresh_tables
from ledger.projections.registry import LISTED_ONLY, PROJECTIONS
from ledger.session import Session
from ledger.store.port import Draft
from ledger.store.sqlite import PROJECTION_SNAPSHOTS, SqliteStore

TABLES = [projection.table for projection in PROJECTIONS]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = make_sqlite(tmp_path / "a.db", draft_event(OPENED, actor="tester"))
    yield made
    made.close()


def drafts(payloads: tuple[Payload, ...]) -> list[Draft]:
    return [draft_event(payload, actor="tester") for payload in payloads]


def refresh(store: SqliteStore) -> int:
    return refresh_tables(store.database, store, PROJECTIONS)


def dumped(store: SqliteStore) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every projected table, its declaration, and the snapshots."""
    query: Callable[[str], sqlite3.Cursor] = store.database.execute
    names = [*TABLES, PROJECTION_SNAPSHOTS]
    out = {name: query(f"SELECT rowid, * FROM {name}").fetchall() for name in names}
    out["declarations"] = query(
        "SELECT name, sql FROM sqlite_master WHERE name NOT IN ('events', 'payloads') ORDER BY name"
    ).fetchall()
    return out


def rebuilt(store: SqliteStore) -> dict[str, list[tuple[Any, ...]]]:
    drop_tables(store.database, PROJECTIONS)
    assert refresh(store) == store.head().size
    return dumped(store)


def rows(store: SqliteStore, table: str) -> list[dict[str, Any]]:
    return list(store.database.table(table).rows)


def test_every_type_has_a_table_or_is_listed_only() -> None:
    handled = {name for projection in PROJECTIONS for name in projection.handles}
    assert handled | LISTED_ONLY == BY_NAME.keys()
    assert handled & LISTED_ONLY == set()
    assert len({projection.table for projection in PROJECTIONS}) == len(PROJECTIONS)


def test_the_tables_tell_the_story(store: SqliteStore) -> None:
    store.append(drafts(STORY[1:]))
    assert refresh(store) == len(STORY)
    assert [r["type"] for r in rows(store, "event_list")] == [r.type for r in store.read()]
    assert {r["status"] for r in rows(store, "event_list")} == {"read"}
    bridge, tunnel = rows(store, "cards")
    assert (bridge["card"], bridge["frozen_seq"], bridge["annulled"]) == ("bridge", 1, None)
    assert (tunnel["title"], tunnel["annulled"]) == ("Opening of a bridge", "ambiguous")
    (label,) = rows(store, "labels")
    assert (label["sealed_seq"], label["label"], label["label_seq"]) == (3, "yes", 26)
    assert [r["method"] for r in rows(store, "methods")] == ["file", "live", "uniform", "mix"]
    assert {r["plan_seq"] for r in rows(store, "methods")} == {5}
    frozen = {(r["method"], r["draw"]): r["p_yes"] for r in rows(store, "predictions")}
    assert frozen == {
        ("live", 1): "0.31",
        ("file", 1): "0.2",
        ("file", 2): "0.4",
        ("mix", 1): "0.45",
    }
    first, second = rows(store, "attempts")
    assert (first["started_seq"], first["failed_seq"], first["reason"]) == (6, 7, "timeout")
    assert (second["started_seq"], second["failed_seq"]) == (8, None)
    model, tool = rows(store, "calls")
    assert (model["what"], model["input_tokens"], model["cost"]) == ("forecaster", 812, "0.0125")
    assert (tool["evidence_kept"], tool["evidence_dropped"], tool["cost"]) == (1, 1, None)


@settings(max_examples=25)
@given(cuts=st.sets(st.integers(1, len(STORY))))
def test_cut_anywhere_the_tables_are_the_same(
    tmp_path_factory: pytest.TempPathFactory, cuts: set[int]
) -> None:
    """Refreshed at random points == dropped and refreshed, byte for byte."""
    path = tmp_path_factory.mktemp("cut") / "a.db"
    store = make_sqlite(path, draft_event(OPENED, actor="tester"))
    folded = 0
    for cut in sorted(cuts | {len(STORY)}):
        store.append(drafts(STORY[max(folded, 1) : cut]))
        assert refresh(store) == cut - folded
        folded = cut
    incremental = dumped(store)
    assert incremental == rebuilt(store)
    store.close()


def test_a_refresh_with_nothing_new_reads_nothing(store: SqliteStore) -> None:
    store.append(drafts(STORY[1:]))
    refresh(store)
    before = dumped(store)
    assert refresh(store) == 0
    assert dumped(store) == before


def test_a_row_keeps_what_a_later_event_does_not_say(store: SqliteStore) -> None:
    """In one batch a row that lacks a column must not empty it."""
    store.append(drafts((STORY[1], STORY[2], STORY[27])))
    refresh(store)
    assert rows(store, "cards")[1]["question"] is not None
    assert dumped(store) == rebuilt(store)


def test_an_amended_plan_replaces_rows(store: SqliteStore) -> None:
    store.append(drafts(STORY[1:6]))
    refresh(store)
    store.append(drafts((with_methods(file={"label": "Another label"}),)))
    refresh(store)
    assert rows(store, "methods")[0]["label"] == "Another label"
    assert {r["plan_seq"] for r in rows(store, "methods")} == {6}
    assert dumped(store) == rebuilt(store)


def test_a_method_that_an_amendment_drops_leaves_the_table(store: SqliteStore) -> None:
    store.append(drafts(STORY[1:6]))
    methods = [m for m in plain(AMENDED.plan)["methods"] if m["id"] != "live"]
    plan = plain(AMENDED.plan) | {"methods": methods}
    store.append(drafts((changed(AMENDED, amends_seq=5, plan=plan),)))
    refresh(store)
    in_force = {r["method"] for r in rows(store, "methods") if r["plan_seq"] == 6}
    assert in_force == {"file", "uniform", "mix"}


def changed_version(table: str) -> tuple[Projection, ...]:
    return tuple(replace(p, version=p.version + (p.table == table)) for p in PROJECTIONS)


def test_a_new_version_makes_its_table_anew(store: SqliteStore) -> None:
    store.append(drafts(STORY[1:]))
    refresh(store)
    before = dumped(store)
    store.database.execute("UPDATE cards SET title = 'stale'")
    store.database.execute("UPDATE labels SET label = 'kept as it is'")
    assert refresh_tables(store.database, store, changed_version("cards")) == len(STORY)
    after = dumped(store)
    assert after["cards"] == before["cards"]
    # Only the table with the new version is folded again.
    assert {r["label"] for r in rows(store, "labels")} == {"kept as it is"}


def test_a_dropped_table_comes_back_alone(store: SqliteStore) -> None:
    store.append(drafts(STORY[1:]))
    refresh(store)
    before = dumped(store)
    store.database.table("labels").drop()
    refresh(store)
    after = dumped(store)
    assert {k: v for k, v in after.items() if k != "declarations"} == {
        k: v for k, v in before.items() if k != "declarations"
    }


def test_tables_of_another_log_are_made_anew(store: SqliteStore, tmp_path: Path) -> None:
    store.append(drafts(STORY[1:6]))
    other = make_sqlite(tmp_path / "b.db", draft_event(OPENED, actor="tester"), seed="other")
    other.append(drafts(STORY[1:]))
    tables = Database(tmp_path / "tables.db", execute_plugins=False)
    assert refresh_tables(tables, other, PROJECTIONS) == len(STORY)
    # A shorter log and a longer one, then back: each time the head it was folded to is not there.
    assert refresh_tables(tables, store, PROJECTIONS) == 6
    assert tables.table("predictions").count == 0
    assert refresh_tables(tables, other, PROJECTIONS) == len(STORY)
    assert tables.table("predictions").count == 4
    tables.close()
    other.close()


def test_what_is_redacted_stands_in_no_table(store: SqliteStore) -> None:
    """Refreshed after a redaction == dropped and refreshed: the row is gone, not merely old."""
    session = Session(store, clock=clock(), actor="tester")
    for payload in STORY[1:22]:
        session.commit(lambda _, p=payload: [p])  # type: ignore[misc]
    refresh(store)
    session.redact(20, reason="Terms.", authority="counsel")
    assert not store.database.table("predictions").exists()
    assert refresh(store) == 23
    assert {r["draw"] for r in rows(store, "predictions") if r["method"] == "file"} == {2}
    assert rows(store, "event_list")[20]["status"] == "withheld"
    assert dumped(store) == rebuilt(store)


def test_a_redaction_by_another_program_is_noticed(store: SqliteStore, tmp_path: Path) -> None:
    """Tables in a file of their own are not dropped with the payload."""
    store.append(drafts(STORY[1:22]))
    tables = Database(tmp_path / "tables.db", execute_plugins=False)
    refresh_tables(tables, store, PROJECTIONS)
    Session(store, clock=clock(), actor="tester").redact(20, reason="Terms.", authority="counsel")
    assert refresh_tables(tables, store, PROJECTIONS) == 23
    assert list(tables.query("SELECT draw FROM predictions WHERE method = 'file'")) == [{"draw": 2}]
    tables.close()


def test_unknown_events_are_listed(store: SqliteStore) -> None:
    store.append([draft("{}", type="from.the.future"), draft("{}", type="card.frozen", type_v=9)])
    refresh(store)
    assert [r["status"] for r in rows(store, "event_list")] == ["read", "unknown", "unknown"]


def test_a_label_that_is_no_private_object_stops_the_refresh_without_showing_it(
    store: SqliteStore,
) -> None:
    junk = changed(STORY[25], private_json=f'{{"summary":"{PLANTED_LABEL}"}}')
    store.append(drafts((CARD, junk)))
    with pytest.raises(DamagedLedgerError) as caught:
        refresh(store)
    assert PLANTED_LABEL not in repr(caught.value)
    assert caught.value.__suppress_context__
    # Nothing is half-refreshed.
    assert not store.database.table("event_list").exists()


def test_a_refresh_beside_a_writer(store: SqliteStore, tmp_path: Path) -> None:
    """Begun by reading, it would be refused as soon as another process appends in between."""
    store.append(drafts(STORY[1:6]))
    writer = open_sqlite(tmp_path / "a.db", seed="writer")
    statements: list[str] = []
    store.database.conn.set_trace_callback(statements.append)
    refresh(store)
    store.database.conn.set_trace_callback(None)
    assert next(s for s in statements if not s.startswith("PRAGMA")) == "BEGIN IMMEDIATE"
    writer.append(drafts((FILE_FROZEN,)))
    assert refresh(store) == 1
    writer.close()
