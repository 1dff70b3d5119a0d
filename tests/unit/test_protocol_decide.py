"""Commands that compute what they write: imports, blends, the closing, the unsealing."""

from __future__ import annotations

from fractions import Fraction
from itertools import chain

import pytest
from event_examples import (
    CLOSED,
    ENTRY,
    FILE_FROZEN,
    LIVE_FROZEN,
    METHODS,
    MIXED,
    PLANNED,
    SEALED,
    SECOND_DRAW,
    STORY,
    UNSEALED,
    changed,
    make_plan,
    plain,
)
from hypothesis import given
from hypothesis import strategies as st
from order_cases import session_of

from ledger.errors import BadInputError, BugError, OrderError
from ledger.events.card import Waiver
from ledger.protocol.blend import aggregate_draws, blend_units, probability_units
from ledger.protocol.decide import decide_blends, decide_close, decide_import, decide_unseal
from ledger.protocol.state import ProtocolState
from ledger.vault import VaultEntry


def test_an_import_passes_on_what_is_not_frozen() -> None:
    state = session_of(STORY[:21]).state()
    both = [FILE_FROZEN, SECOND_DRAW]
    assert list(decide_import(state, both)) == [SECOND_DRAW]
    assert list(decide_import(state, [FILE_FROZEN])) == []


def test_an_import_of_another_probability_is_refused() -> None:
    state = session_of(STORY[:21]).state()
    with pytest.raises(OrderError) as caught:
        list(decide_import(state, [changed(FILE_FROZEN, p_yes="0.3")]))
    assert (caught.value.rule, caught.value.seq) == ("order.cell-once", 20)


def test_a_blend_is_computed_with_all_its_sources() -> None:
    state = session_of(STORY[:22]).state()
    assert list(decide_blends(state)) == [MIXED]
    assert list(decide_blends(session_of(STORY[:21]).state())) == []
    assert list(decide_blends(session_of(STORY[:23]).state())) == []
    assert list(decide_blends(ProtocolState())) == []


def test_a_blend_of_a_blend_is_frozen_in_the_same_command() -> None:
    parts = [{"method": "mix", "weight": "0.5"}, {"method": "uniform", "weight": "0.5"}]
    second = METHODS[3] | {"id": "mix-2", "blend": {"parts": parts, "rounding": None}}
    plan = changed(PLANNED, plan=plain(make_plan(methods=[*METHODS, second])))
    session = session_of((*STORY[:4], plan, FILE_FROZEN, SECOND_DRAW))
    assert list(session.commit(decide_blends)) == [7, 8]
    frozen = {cell.method: units for cell, (_, units) in session.state().cells.items()}
    assert frozen["mix-2"] == 475_000_000


def test_the_closing_counts_blends_of_the_same_command() -> None:
    session = session_of(STORY[:22])
    seqs = session.commit(
        lambda s: chain(decide_blends(s), decide_close(s, declared_missing="Not run."))
    )
    assert list(seqs) == [22, 23]
    assert session.state() == session_of(STORY[:24]).state()


def test_the_closing_is_the_storys() -> None:
    state = session_of(STORY[:23]).state()
    assert list(decide_close(state, declared_missing="Not run.")) == [CLOSED]


def test_a_closing_without_a_reason_for_the_missing_is_refused() -> None:
    """events.md, order.close-complete: each registered cell is frozen or stands once in empty."""
    state = session_of(STORY[:23]).state()
    with pytest.raises(OrderError, match="close-complete") as caught:
        list(decide_close(state, declared_missing=None))
    assert "--missing" in caught.value.remedy


def test_a_failed_cell_is_declared_failed_with_its_reason() -> None:
    session = session_of(STORY[:8])
    (closed,) = decide_close(session.state(), declared_missing="Not run.")
    cell = next(e for e in closed.empty if (e.method, e.card_id) == ("live", "bridge"))
    assert (cell.status, cell.reason) == ("failed", "timeout: No answer in 60 s.")
    assert (closed.expected, closed.frozen, len(closed.empty)) == (8, 0, 8)
    session.commit(lambda _: [closed])


def test_unsealing_opens_every_label_or_none() -> None:
    state = session_of(STORY[:24]).state()
    assert list(decide_unseal(state, {"bridge": ENTRY}, waiver=None)) == [UNSEALED]
    with pytest.raises(BadInputError, match="no label for card bridge"):
        list(decide_unseal(state, {}, waiver=None))
    with pytest.raises(BadInputError, match="no sealed label"):
        list(decide_unseal(session_of(STORY[:26]).state(), {"bridge": ENTRY}, waiver=None))


def test_a_missing_vault_entry_opens_none_of_two() -> None:
    card = plain(STORY[1]) | {}
    second = changed(STORY[1], card=card["card"] | {"card_id": "second"})
    session = session_of((*STORY[:4], second, changed(SEALED, card_id="second")))
    with pytest.raises(BadInputError):
        session.commit(
            lambda s: decide_unseal(
                s, {"bridge": ENTRY}, waiver=Waiver(reason="A leak.", authority="counsel")
            )
        )
    assert session.state().first_unsealed_seq is None


def test_the_wrong_vault_is_refused_by_the_seal() -> None:
    wrong = VaultEntry("bridge", bytes(32), ENTRY.private_json)
    session = session_of(STORY[:24])
    with pytest.raises(OrderError, match=r"label\.seal"):
        session.commit(lambda s: decide_unseal(s, {"bridge": wrong}, waiver=None))


DRAWS = st.lists(st.integers(0, 10**9), min_size=1, max_size=9)


@given(DRAWS)
def test_aggregates_are_exact_and_rounded_half_to_even(draws: list[int]) -> None:
    """events.md, scores 2: exact mean or median, rounded half to even at nine places."""
    assert aggregate_draws("single", draws) == draws[0]
    assert aggregate_draws("mean", draws) == round(Fraction(sum(draws), len(draws)))
    ordered = sorted(draws)
    middle = ordered[(len(draws) - 1) // 2], ordered[len(draws) // 2]
    assert aggregate_draws("median", draws) == round(Fraction(sum(middle), 2))


def test_an_unknown_aggregate_is_a_bug() -> None:
    with pytest.raises(BugError):
        aggregate_draws("mode", [1])


def test_a_probability_is_missing_until_all_draws_are_frozen() -> None:
    """events.md, scores 2: missing unless all registered draws are frozen, whatever aggregate."""
    methods = [m | ({"aggregate": "single"} if m["id"] == "file" else {}) for m in METHODS]
    plan = changed(PLANNED, plan=plain(make_plan(methods=methods)))
    state = session_of((*STORY[:4], plan, FILE_FROZEN)).state()
    assert probability_units(state, state.methods["file"], "bridge") is None
    assert blend_units(state, state.methods["mix"], "bridge") is None
    state = session_of((*STORY[:4], plan, FILE_FROZEN, SECOND_DRAW)).state()
    assert probability_units(state, state.methods["file"], "bridge") == 200_000_000
    assert probability_units(state, state.methods["uniform"], "bridge") == 500_000_000
    with pytest.raises(BugError):
        blend_units(state, state.methods["live"], "bridge")


def test_the_live_prediction_is_read_as_units() -> None:
    state = session_of(STORY[:20]).state()
    assert [units for _, units in state.cells.values()] == [310_000_000]
    assert LIVE_FROZEN.p_yes == "0.31"
