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
        str | None,
        typer.Option("--custodian", help="Who keeps the vault. By default the actor."),
    ] = None,
) -> None:
    """Seal the labels of a pack.

    Salts and private objects go into the vault, their commitments into the log. Without the vault
    no label can ever be opened: keep it, and keep it from whoever forecasts.
    """
    path = vault_path(ledger, vault)
    private = [card.private for card in load_pack(pack).cards if card.private is not None]
    if not private:
        raise BadInputError(f"the pack {pack!r} has no labels", remedy="Go on without sealing.")
    with writing(ledger) as session:
        count = seal_labels(session, private, path, custodian or system_actor())
    say(f"sealed {count} labels; salts and labels are in {path}, mode 0600, and nowhere else")


def seal_labels(
    session: Session, private: Iterable[PrivateObject], vault: Path, custodian: str
) -> int:
    """Write the vault, then the seals; return how many.

    The vault comes first: a seal whose salt is lost could never be opened. If the append is
    refused or interrupted, the next try uses the entries that the vault has by then.

    Raises:
        OrderError: a card is not frozen, or all labels are sealed already.
    """
    unsealed = list(_unsealed(session.state(), private))
    kept = read_vault(vault) if vault.exists() else {}
    fresh = [seal_private(p, system_entropy) for p in unsealed]
    # The same bytes under a salt that is kept already: an earlier try did not come to its append.
    entries = [
        kept[e.card_id]
        if e.card_id in kept and kept[e.card_id].private_json == e.private_json
        else e
        for e in fresh
    ]
    write_vault(vault, [e for e in entries if e is not kept.get(e.card_id)])
    session.commit(
        lambda _: [
            LabelSealed(card_id=e.card_id, seal=e.seal, custodian=custodian) for e in entries
        ]
    )
    return len(entries)


def unseal(
    labels: Annotated[
        Path | None, typer.Argument(help="The vault to open from, as with --vault.")
    ] = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    vault: VaultOption = None,
    waiver: Annotated[
        str | None,
        typer.Option(
            "--waiver", help="Open before predictions are closed, for this recorded reason."
        ),
    ] = None,
) -> None:
    """Open every sealed label against its seal.

    All of them, or none.
    """
    path = labels if labels is not None else vault_path(ledger, vault)
    with writing(ledger) as session:
        count = unseal_labels(session, read_vault(path), waiver)
    say(f"opened {count} labels; each opens its seal")


def unseal_labels(session: Session, entries: dict[str, VaultEntry], waiver: str | None) -> int:
    """Append the unsealings; return how many.

    Raises:
        OrderError: nothing is sealed, all is open already, or an order rule refuses.
        BadInputError: the vault lacks a label.
    """
    cards = session.state().cards.values()
    if all(card.sealed_seq is None or card.unsealed_seq is not None for card in cards):
        opened = [card.unsealed_seq for card in cards if card.unsealed_seq is not None]
        raise OrderError(
            "order.unseal-target",
            "every sealed label is open already" if opened else "no label is sealed",
            seq=min(opened, default=None),
            remedy="Go on with `ledger replay`." if opened else "Seal them with `ledger seal`.",
        )
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
    """Take a card out of every denominator.

    The reason stays in the log.
    """
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
    """Record a later resolution of a card.

    It supersedes the label in force; both stay readable.
    """
    with writing(ledger) as session:
        (seq,) = session.commit(lambda state: _revision(state, card, resolution, reason))
    say(f"event {seq}: card {card} now resolves {resolution}")


def _revision(
    state: ProtocolState, card: str, resolution: Literal["yes", "no"], reason: str
) -> Iterator[LabelRevised]:
    known = state.cards.get(card)
    if known is not None and known.label_seq is None:
        raise OrderError(
            "order.revision",
            f"card {card} has no open label to revise",
            seq=known.sealed_seq,
            remedy="Open labels with `ledger unseal` first.",
        )
    yield LabelRevised(
        card_id=card,
        supersedes_seq=0 if known is None or known.label_seq is None else known.label_seq,
        resolution=resolution,
        reason=reason,
        authority=system_actor(),
    )


def _unsealed(state: ProtocolState, private: Iterable[PrivateObject]) -> Iterator[PrivateObject]:
    sealed: list[int] = []
    found = False
    for label in private:
        card = state.cards.get(label.card_id)
        if card is None:
            raise OrderError(
                "order.card-before-use",
                f"card {label.card_id} is not frozen",
                remedy="Freeze it with `ledger cards freeze` first.",
            )
        if card.sealed_seq is None:
            found = True
            yield label
        else:
            sealed.append(card.sealed_seq)
    if not found:
        raise OrderError(
            "order.seal-once",
            "every label is sealed already",
            seq=min(sealed, default=None),
            remedy="Go on with `ledger preregister`.",
        )
