"""Commands that must compute what they write: pure functions from state to payloads.

Each returns the payloads of one append; the order rules judge them once more in the session.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ledger.decimals import format_units
from ledger.errors import BadInputError, OrderError
from ledger.events.base import ModelRoute, Payload
from ledger.events.card import LabelUnsealed, Waiver
from ledger.events.plan import MethodSpec
from ledger.events.prediction import EmptyCell, Origin, PredictionFrozen, PredictionsClosed
from ledger.protocol.blend import blend_units
from ledger.protocol.state import Cell, ProtocolState
from ledger.vault import VaultEntry


def decide_import(
    state: ProtocolState, predictions: Iterable[PredictionFrozen]
) -> Iterator[PredictionFrozen]:
    """Pass on the predictions that are not frozen yet; the same file twice adds nothing.

    Raises:
        OrderError: a cell is frozen with another probability.
    """
    for prediction in predictions:
        cell = Cell(prediction.method, prediction.card_id, prediction.draw)
        frozen = state.cells.get(cell)
        if frozen is None:
            yield prediction
        elif format_units(frozen[1]) != prediction.p_yes:
            raise OrderError(
                "order.cell-once",
                f"cell {'/'.join(map(str, cell))} is frozen at {format_units(frozen[1])}, the file"
                f" says {prediction.p_yes}",
                seq=frozen[0],
                remedy="A frozen prediction never changes.",
            )


def decide_blends(state: ProtocolState) -> Iterator[PredictionFrozen]:
    """Freeze every computed blend whose parts are frozen and which is not frozen itself."""
    if state.plan is None:
        return
    for method in state.plan.methods:
        if method.source != "computed":
            continue
        for card_id in state.plan.card_set.cards:
            blend = blend_units(state, method, card_id)
            if blend is None or Cell(method.id, card_id, 1) in state.cells:
                continue
            text = format_units(round(blend))
            yield PredictionFrozen(
                method=method.id,
                card_id=card_id,
                draw=1,
                attempt=None,
                p_raw=text,
                p_yes=text,
                extraction_rule=method.extraction_rule,
                model_route=ModelRoute(),
                sources=_part_seqs(state, method, card_id),
                origin=Origin(kind="rule"),
            )


def _part_seqs(state: ProtocolState, blend: MethodSpec, card_id: str) -> tuple[int, ...]:
    """Return the seqs of every draw that a blend of a card rests on; constants have none."""
    return tuple(
        state.cells[Cell(method.id, card_id, draw)][0]
        for part in (blend.blend.parts if blend.blend is not None else ())
        for method in [state.methods[part.method]]
        if method.source != "constant"
        for draw in range(1, method.draws + 1)
    )


def decide_close(
    state: ProtocolState, *, declared_missing: str | None
) -> Iterator[PredictionsClosed]:
    """Close: every registered cell is frozen, failed, or declared missing with a reason.

    Args:
        state: the protocol state, blends frozen.
        declared_missing: the reason for cells that never had an attempt; None refuses them.

    Raises:
        OrderError: cells are empty and no reason was given.
    """
    cells = state.registered_cells()
    empty: list[EmptyCell] = []
    for cell in cells:
        if cell in state.cells:
            continue
        failure = state.last_failure.get(cell)
        if failure is None and declared_missing is None:
            raise OrderError(
                "order.close-complete",
                f"cell {'/'.join(map(str, cell))} has neither a prediction nor a failed attempt",
                remedy="Import it, run it, or declare all such cells with --missing REASON.",
            )
        empty.append(
            EmptyCell(
                method=cell.method,
                card_id=cell.card_id,
                draw=cell.draw,
                status="missing" if failure is None else "failed",
                reason=failure or declared_missing or "",
            )
        )
    yield PredictionsClosed(
        expected=len(cells),
        frozen=len(cells) - len(empty),
        attempts=state.started,
        failed_attempts=state.failed,
        empty=tuple(empty),
    )


def decide_unseal(
    state: ProtocolState, entries: Mapping[str, VaultEntry], *, waiver: Waiver | None
) -> Iterator[Payload]:
    """Open every sealed label that is not open: all of them, or none.

    Raises:
        BadInputError: the vault lacks the label of a sealed card, or nothing is left to open.
    """
    waiting = [
        (card_id, card.sealed_seq)
        for card_id, card in state.cards.items()
        if card.sealed_seq is not None and card.unsealed_seq is None
    ]
    if not waiting:
        raise BadInputError("there is no sealed label left to open")
    for card_id, sealed_seq in waiting:
        entry = entries.get(card_id)
        if entry is None or sealed_seq is None:
            raise BadInputError(
                f"the vault holds no label for card {card_id}",
                remedy="Opening some labels and not others is not possible; find the vault.",
            )
        yield LabelUnsealed(
            card_id=card_id,
            sealed_seq=sealed_seq,
            salt=entry.salt.hex(),
            private_json=entry.private_json.decode("utf-8"),
            waiver=waiver,
        )
