"""`ledger seal`, `unseal`, `annul`, `revise`: labels from sealing to their last correction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Literal

import typer

from cards.pack import load_pack
from cli.rendering import say
from cli.system import system_actor, system_entropy
from cli.wiring import (
    DEFAULT_LEDGER,
    LedgerOption,
    VaultOption,
    vault_path,
    writing,
)
from ledger.errors import BadInputError, OrderError
from ledger.events.card import (
    CardAnnulled,
    LabelRevised,
    LabelSealed,
    PrivateObject,
    Waiver,
)
from ledger.protocol.decide import decide_unseal
from ledger.protocol.state import ProtocolState
from ledger.session import Session
from ledger.vault import VaultEntry, read_vault, seal_private, write_vault

PackArgument = Annotated[str, typer.Argument(help="A shipped pack's name, or a folder.")]
CardArgument = Annotated[str, typer.Argument(help="A card id.")]
ReasonOption = Annotated[str, typer.Option("--reason", help="Why; it goes into the log.")]


def seal(
    pack: PackArgument,
    ledger: LedgerOption = DEFAULT_LEDGER,
    vault: VaultOption = None,
    custodian: Annotated[
        str | None, typer.Option(help="Who keeps the vault; by default the actor.")
    ] = None,
) -> None:
    """Seal the labels of a pack: salts and private objects into the vault, seals into the log."""
    path = vault_path(ledger, vault)
    private = [card.private for card in load_pack(pack).cards if card.private is not None]
    with writing(ledger) as session:
        count = seal_labels(session, private, path, custodian or system_actor())
    say(f"sealed {count} labels; salts and labels are in {path}, mode 0600, and nowhere else")


def seal_labels(
    session: Session, private: Iterable[PrivateObject], vault: Path, custodian: str
) -> int:
    """Write the vault, then the seals; return how many.

    The vault comes first: a seal whose salt is lost could never be opened. If the append is
    refused, the vault's new entries are unused and harmless.

    Raises:
        OrderError: a card is not frozen, or all labels are sealed already.
    """
    state = session.state()
    entries = [seal_private(p, system_entropy) for p in private if not _sealed(state, p.card_id)]
    if not entries:
        raise OrderError(
            "order.seal-once",
            "every label is sealed already",
            remedy="Go on with `ledger preregister`.",
        )
    for entry in entries:
        if entry.card_id not in state.cards:
            raise OrderError(
                "order.card-before-use",
                f"card {entry.card_id} is not frozen",
                remedy="Freeze it with `ledger cards freeze` first.",
            )
    write_vault(vault, entries)
    session.commit(
        lambda _: [
            LabelSealed(card_id=e.card_id, seal=e.seal, custodian=custodian) for e in entries
        ]
    )
    return len(entries)


def unseal(
    labels: Annotated[
        Path | None, typer.Argument(help="The vault to open from; by default the ledger's.")
    ] = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    vault: VaultOption = None,
    waiver: Annotated[
        str | None,
        typer.Option(help="Open before predictions are closed, for this recorded reason."),
    ] = None,
) -> None:
    """Open every sealed label against its seal: all of them, or none."""
    path = labels if labels is not None else vault_path(ledger, vault)
    with writing(ledger) as session:
        count = unseal_labels(session, read_vault(path), waiver)
    say(f"opened {count} labels; each opens its seal")


def unseal_labels(session: Session, entries: dict[str, VaultEntry], waiver: str | None) -> int:
    """Append the unsealings; return how many."""
    excuse = Waiver(reason=waiver, authority=system_actor()) if waiver else None
    return len(session.commit(lambda state: decide_unseal(state, entries, waiver=excuse)))


def annul(
    card: CardArgument,
    reason: Annotated[
        Literal["annulled", "ambiguous", "withdrawn", "invalid"],
        typer.Option("--reason", help="The kind of annulment; the plan says which are excluded."),
    ],
    detail: Annotated[str, typer.Option("--detail", help="What happened, in a sentence.")],
    ledger: LedgerOption = DEFAULT_LEDGER,
) -> None:
    """Take a card out of every denominator, by a reason that stays in the log."""
    with writing(ledger) as session:
        payload = CardAnnulled(card_id=card, reason=reason, detail=detail, authority=system_actor())
        (seq,) = session.commit(lambda _: [payload])
    say(f"event {seq}: card {card} is {reason}")


def revise(
    card: CardArgument,
    resolution: Annotated[
        Literal["yes", "no"], typer.Option("--resolution", help="The new resolution.")
    ],
    reason: ReasonOption,
    ledger: LedgerOption = DEFAULT_LEDGER,
) -> None:
    """Record a later resolution of a card; it supersedes, and both stay readable."""
    with writing(ledger) as session:
        (seq,) = session.commit(lambda state: _revision(state, card, resolution, reason))
    say(f"event {seq}: card {card} now resolves {resolution}")


def _revision(
    state: ProtocolState, card: str, resolution: Literal["yes", "no"], reason: str
) -> Iterator[LabelRevised]:
    known = state.cards.get(card)
    if known is None or known.label_seq is None:
        raise BadInputError(
            f"card {card} has no open label to revise", remedy="Open labels with `ledger unseal`."
        )
    yield LabelRevised(
        card_id=card,
        supersedes_seq=known.label_seq,
        resolution=resolution,
        reason=reason,
        authority=system_actor(),
    )


def _sealed(state: ProtocolState, card_id: str) -> bool:
    card = state.cards.get(card_id)
    return card is not None and card.sealed_seq is not None
