"""`ledger cards`: look at packs, read them for leaks, freeze them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import typer

from cards.lint import lint_pack
from cards.pack import Pack, list_packs, load_pack
from cards.source import to_public_card
from cli.rendering import print_json, print_table, say
from cli.system import system_entropy
from cli.wiring import DEFAULT_LEDGER, JsonOption, LedgerOption, writing
from ledger.errors import OrderError
from ledger.events.card import CardFrozen
from ledger.protocol.state import ProtocolState

app = typer.Typer(help="Look at card packs, lint them, freeze them.", no_args_is_help=True)

PackArgument = Annotated[str, typer.Argument(help="A shipped pack's name, or a folder.")]


@app.command("list")
def list_(
    pack: Annotated[str | None, typer.Argument(help="A pack; without it, all packs.")] = None,
    json: JsonOption = False,
) -> None:
    """List packs, or the cards of one pack."""
    if pack is None:
        summaries = [
            {"pack": s.header.id, "title": s.header.title, "cards": s.card_count}
            for s in list_packs()
        ]
        if json:
            print_json(summaries)
        else:
            print_table(
                ("pack", "cards", "title"), [(s["pack"], s["cards"], s["title"]) for s in summaries]
            )
        return
    rows = [
        {
            "card": card.source.id,
            "kind": card.source.kind,
            "as_of": card.source.as_of[:10],
            "deadline": (card.source.deadline or "")[:10] or None,
            "title": card.source.title,
        }
        for card in load_pack(pack).cards
    ]
    if json:
        print_json(rows)
    else:
        print_table(tuple(rows[0]), [tuple(row.values()) for row in rows])


@app.command()
def show(
    pack: PackArgument,
    card: Annotated[str, typer.Argument(help="A card id.")],
    json: JsonOption = False,
) -> None:
    """Show one card as a method would see it.

    The private object stays private.
    """
    loaded = load_pack(pack)
    entry = loaded.card(card)
    public = to_public_card(
        entry.source, pack=loaded.id, private=entry.private, entropy=system_entropy
    )
    value = public.model_dump(mode="json", exclude={"forbidden"})
    if json:
        print_json(value)
        return
    for name, content in value.items():
        if isinstance(content, list):
            say(f"{name}:")
            for item in content:
                say("  - " + "; ".join(f"{k}: {v}" for k, v in item.items() if v is not None))
        elif content is not None:
            say(f"{name}: {content}")


@app.command()
def lint(pack: PackArgument, json: JsonOption = False) -> None:
    """Read a pack for leaks before anything is frozen.

    Exit code 1 if a card gives its outcome away.
    """
    findings = lint_pack(load_pack(pack))
    if json:
        print_json(
            [
                {
                    "rule": f.rule,
                    "severity": f.severity,
                    "card": f.card_id,
                    "field": f.field,
                    "message": f.message,
                    "quote": f.quote,
                    "accepted_because": f.accepted_because,
                }
                for f in findings
            ]
        )
    else:
        for f in findings:
            mark = f"accepted: {f.accepted_because}" if f.accepted_because else f.severity
            say(f"{f.card_id} {f.field}: [{f.rule}] {f.message} ({mark})")
            if f.quote:
                say(f"    {f.quote}")
        accepted = sum(f.accepted_because is not None for f in findings)
        say(f"{len(findings)} findings, {accepted} of them accepted by the pack with a reason")
    if any(f.severity == "error" and not f.accepted_because for f in findings):
        raise typer.Exit(1)


@app.command()
def freeze(pack: PackArgument, ledger: LedgerOption = DEFAULT_LEDGER) -> None:
    """Freeze every card of a pack in the ledger.

    A frozen card never changes.
    """
    loaded = load_pack(pack)
    with writing(ledger) as session:
        seqs = session.commit(lambda state: freeze_pack(loaded, frozen_seqs(state)))
    say(f"froze {len(seqs)} cards of {loaded.id}")


def freeze_pack(pack: Pack, frozen: Mapping[str, int]) -> list[CardFrozen]:
    """Turn a pack into its `card.frozen` payloads; `frozen` gives the seqs of frozen cards.

    Raises:
        OrderError: every card of the pack is frozen already.
    """
    seqs = [frozen.get(card.source.id) for card in pack.cards]
    if None not in seqs:
        raise OrderError(
            "order.card-once",
            f"every card of {pack.id} is frozen already",
            seq=seqs[0],
            remedy="Go on with `ledger seal`.",
        )
    return [
        CardFrozen(
            card=to_public_card(
                card.source, pack=pack.id, private=card.private, entropy=system_entropy
            )
        )
        for card in pack.cards
    ]


def frozen_seqs(state: ProtocolState) -> dict[str, int]:
    """Return the seq of each card's freezing."""
    return {card_id: card.frozen_seq for card_id, card in state.cards.items()}
