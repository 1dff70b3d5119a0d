"""One fold of the log: columns, aggregation, blends, damage."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay_ledgers import Bench, blend, constant, make_plan, method, plan_fields

from ledger.canonical import canonicalize, canonicalize_exact, parse_strict
from ledger.decimals import format_units
from ledger.errors import DamagedLedgerError, OrderError, WithheldError
from ledger.events.base import ModelRoute
from ledger.events.prediction import Origin, PredictionFrozen, RejectedEndpoint
from ledger.protocol.blend import aggregate_draws
from ledger.store.memory import MemoryStore
from ledger.store.port import Draft, Record
from scoring.evaluation import MISSING, Columns, aggregate_units, read_evaluation
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
        {"p_yes": "0.50"},
        {"draw": "1"},
        {"draw": 0},
        {"draw": -1},
        {"draw": 2**50},
        {"method": ["a"]},
        {"unresolved_mass_units": "x"},
        {"unresolved_mass_units": 1_000_000_001},
        {"surprise": None},
    ],
)
@pytest.mark.parametrize("encode", [canonicalize, lambda value: json.dumps(value).encode()])
def test_bytes_that_are_no_prediction_are_damage(change: dict[str, Any], encode: Any) -> None:
    made = drawn("mean")
    fields = made.prediction("a", "c1", 1, "0.5").model_dump(mode="json") | change
    made.session.store.append([Draft("prediction.frozen", 1, "x", encode(fields), "tests")])
    with pytest.raises(DamagedLedgerError, match=r"is no prediction|is not a valid"):
        read_evaluation(made.session.store)


WORDS = st.text(st.sampled_from('ab{}[]",:\\ü\n0'), min_size=1, max_size=12)


@given(WORDS, WORDS, st.one_of(st.none(), st.integers(0, ONE)), st.integers(0, ONE))
def test_the_quick_reader_says_what_the_strict_one_says(
    text: str, reason: str, mass: int | None, units: int
) -> None:
    prediction = PredictionFrozen(
        method="a",
        card_id="c1",
        draw=7,
        attempt=None,
        p_raw=text,
        p_yes=format_units(units),
        unresolved_mass_units=mass,
        extraction_rule="direct/1",
        model_route=ModelRoute(provider=text),
        response_id=text,
        rejected_endpoints=(RejectedEndpoint(endpoint="x", reason=reason),),
        origin=Origin(kind="import"),
    )
    quick, strict = Columns(), Columns()
    strict.add_payload(5, prediction)
    if quick.add(5, canonicalize_exact(prediction.model_dump(mode="python"))):
        assert quick == strict


def test_the_quick_reader_takes_what_the_writer_writes() -> None:
    plain = drawn("mean").prediction("a", "c1", 1, "0.5")
    data = canonicalize_exact(plain.model_dump(mode="python"))
    # A new field of the payload belongs into the quick reader too, else all go the slow way.
    assert list(parse_strict(data)) == sorted(PredictionFrozen.model_fields)
    assert Columns().add(0, data)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"p_yes"', b'"p_yes":"0.9","p_yes"'),
        (b'"p_yes"', b'"p_ye\\u0073":"0.9","p_yes"'),
        (b'"p_yes":', b'"p_yes" :'),
        (b'"draw":1', b'"draw":2,"draw":1'),
    ],
)
def test_a_payload_that_says_two_things_is_damage(old: bytes, new: bytes) -> None:
    made = drawn("mean")
    seq = made.session.store.head().size
    data = canonicalize_exact(made.prediction("a", "c1", 1, "0.5").model_dump(mode="python"))
    made.session.store.append([Draft("prediction.frozen", 1, "x", data.replace(old, new), "t")])
    with pytest.raises(DamagedLedgerError, match=f"event {seq} is not a valid"):
        read_evaluation(made.session.store)


def test_a_text_that_looks_like_a_key_is_read_strictly() -> None:
    made = drawn("mean")
    odd = made.prediction("a", "c1", 4, "0.5", response_id='"p_yes":\x00')
    data = canonicalize_exact(odd.model_dump(mode="python"))
    made.session.store.append([Draft("prediction.frozen", 1, "x", data, "tests")])
    assert read_evaluation(made.session.store).size == made.session.store.head().size


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
