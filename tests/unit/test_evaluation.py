"""One fold of the log: columns, aggregation, blends, damage."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay_ledgers import Bench, blend, constant, make_plan, method, plan_fields

from ledger.canonical import canonicalize_exact
from ledger.errors import DamagedLedgerError, OrderError, WithheldError
from ledger.protocol.blend import aggregate_draws
from ledger.store.memory import MemoryStore
from ledger.store.port import Draft, Record
from scoring.evaluation import MISSING, aggregate_units, read_evaluation
from scoring.report import build_report

ONE = 1_000_000_000


@given(
    st.integers(1, 7).flatmap(
        lambda k: st.lists(
            st.lists(st.integers(0, ONE), min_size=k, max_size=k), min_size=1, max_size=8
        )
    ),
    st.sampled_from(["single", "mean", "median"]),
)
def test_vectors_aggregate_as_the_scalar_form(table: list[list[int]], aggregate: str) -> None:
    found = aggregate_units(np.array(table, dtype=np.int64), aggregate)
    assert found.tolist() == [aggregate_draws(aggregate, list(row)) for row in table]


@given(st.integers(2, 5), st.sampled_from(["mean", "median"]), st.integers(0, 4))
def test_one_missing_draw_leaves_the_whole_missing(draws: int, aggregate: str, at: int) -> None:
    row = [5] * draws
    row[at % draws] = MISSING
    assert aggregate_units(np.array([row, [5] * draws]), aggregate).tolist() == [MISSING, 5]


def test_halves_round_to_even() -> None:
    assert aggregate_units(np.array([[1, 2], [2, 3], [0, 1]]), "mean").tolist() == [2, 2, 0]


def drawn(aggregate: str) -> Bench:
    spec = method("a", draws=3, aggregate=aggregate)
    plan = make_plan(plan_fields(["c1", "c2"], [spec, constant()]))
    made = Bench(plan).freeze({"c1": "yes", "c2": "no"}).register()
    return made.predict("a", {"c1": ["0.1", "0.2", "0.9"], "c2": ["0.3", "0.3", "0.4"]})


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [("mean", [400_000_000, 333_333_333]), ("median", [200_000_000, 300_000_000])],
)
def test_draws_are_aggregated_as_the_plan_says(aggregate: str, expected: list[int]) -> None:
    report = build_report(drawn(aggregate).close().unseal().session.store)
    assert report.panel.units["a"].tolist() == expected
    assert report.panel.units["uniform"].tolist() == [ONE // 2, ONE // 2]


def test_a_method_lacking_one_draw_is_missing_there() -> None:
    plan = make_plan(plan_fields(["c1"], [method("a", draws=2, aggregate="mean"), constant()]))
    made = Bench(plan).freeze({"c1": "yes"}).register().predict("a", {"c1": ["0.9"]})
    scores = build_report(made.close().unseal().session.store).scores
    assert scores["cards"]["excluded"] == {"c1": "no prediction from a (missing)"}


def test_the_ledger_computes_a_registered_blend_at_the_close() -> None:
    mix = blend("mix", {"a": "0.25", "uniform": "0.75"}, rounding=None)
    plan = make_plan(plan_fields(["c1"], [constant(), method("a"), mix]))
    made = Bench(plan).freeze({"c1": "yes"}).register().predict("a", {"c1": "0.123456789"})
    report = build_report(made.close().unseal().session.store)
    # 0.25 * 0.123456789 + 0.375 = 0.40586419725, half to even at nine places.
    assert report.panel.units["mix"].tolist() == [405_864_197]


def test_an_imported_blend_outside_its_rounding_is_refused() -> None:
    mix = blend("mix", {"a": "0.5", "uniform": "0.5"}, source="imported", rounding="0.01")
    plan = make_plan(plan_fields(["c1"], [constant(), method("a"), mix]))
    made = Bench(plan).freeze({"c1": "yes"}).register().predict("a", {"c1": "0.333"})
    with pytest.raises(OrderError, match=r"order\.blend"):
        made.predict("mix", {"c1": "0.43"})
    made.predict("mix", {"c1": "0.42"})


def test_a_repeated_cell_keeps_its_first_value_and_the_table_says_so() -> None:
    made = drawn("mean")
    second = made.prediction("a", "c1", 1, "0.99")
    beyond = made.prediction("a", "c1", 4, "0.99")
    for number, payload in enumerate((second, beyond)):
        # Straight into the store, which knows no order rules.
        data = canonicalize_exact(payload.model_dump(mode="python"))
        draft = Draft("prediction.frozen", 1, f"x{number}", data, "tests")
        made.session.store.append([draft])
    evaluation = read_evaluation(made.session.store)
    assert evaluation.cells["a"].p_units[0].tolist() == [100_000_000, 200_000_000, 900_000_000]


@pytest.mark.parametrize(
    "change",
    [
        {"p_yes": 0.5},
        {"p_yes": "1.5"},
        {"draw": "1"},
        {"draw": 2**70},
        {"method": ["a"]},
        {"unresolved_mass_units": "x"},
    ],
)
def test_bytes_that_are_no_prediction_are_damage(change: dict[str, Any]) -> None:
    made = drawn("mean")
    import json  # noqa: PLC0415 - canonical bytes refuse what is tried here

    fields = made.prediction("a", "c1", 1, "0.5").model_dump(mode="json") | change
    draft = Draft("prediction.frozen", 1, "x", json.dumps(fields).encode(), "tests")
    made.session.store.append([draft])
    with pytest.raises(DamagedLedgerError, match="is no prediction"):
        read_evaluation(made.session.store)


def test_a_draw_below_one_is_not_taken_for_the_last() -> None:
    made = drawn("mean")
    fields = made.prediction("a", "c2", 1, "0.99").model_dump(mode="python") | {"draw": 0}
    draft = Draft("prediction.frozen", 1, "x", canonicalize_exact(fields), "tests")
    made.session.store.append([draft])
    assert read_evaluation(made.session.store).cells["a"].p_units[1].tolist()[2] == 400_000_000


def test_a_later_version_of_a_prediction_is_kept_and_not_read() -> None:
    made = drawn("mean")
    made.session.store.append([Draft("prediction.frozen", 2, "x", b"{}", "tests")])
    assert read_evaluation(made.session.store).size == made.session.store.head().size


def test_a_log_that_does_not_begin_at_zero_is_damage() -> None:
    made = drawn("mean")
    store = made.session.store
    assert isinstance(store, MemoryStore)
    first: Record = store._records[0]
    fields = dict(first.fields) | {"prev": "1" * 64}
    store._records[0] = replace(first, fields=fields)  # type: ignore[arg-type]
    with pytest.raises(DamagedLedgerError, match="does not begin"):
        read_evaluation(store)


def test_no_plan_and_a_redacted_plan_are_different_refusals() -> None:
    plan = make_plan(plan_fields(["c1"], [method("a"), constant()]))
    made = Bench(plan).freeze({"c1": "yes"})
    with pytest.raises(OrderError, match="no plan is registered"):
        build_report(made.session.store)
    made.register()
    seq = made.session.state().plan_seq
    assert seq is not None
    made.session.redact(seq, reason="Personal data.", authority="tests")
    with pytest.raises(WithheldError, match="redacted"):
        build_report(made.session.store)
