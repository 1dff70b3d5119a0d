"""`ledger log`, `show`, `prove`, `redact`: single events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from cli.rendering import print_json, print_json_rows, say
from cli.system import system_actor
from cli.wiring import DEFAULT_LEDGER, JsonOption, LedgerOption, reading, writing
from ledger.canonical import parse_strict
from ledger.errors import BadInputError
from ledger.events.registry import EVENT_TYPES
from ledger.merkle import merkle_tree_hash, prove_inclusion
from ledger.store.port import Record
from ledger.store.sqlite import SqliteStore

Row = dict[str, str | int]

SeqArgument = Annotated[int, typer.Argument(help="The event's seq, from 0.", min=0)]

_TYPE_WIDTH = max(len(row.name) for row in EVENT_TYPES)


def log(
    ledger: LedgerOption = DEFAULT_LEDGER,
    type_: Annotated[
        str | None, typer.Option("--type", help="Only events of this type, such as card.frozen.")
    ] = None,
    start: Annotated[int, typer.Option("--start", help="The first seq to list.", min=0)] = 0,
    stop: Annotated[
        int | None, typer.Option("--stop", help="The seq to stop before.", min=0)
    ] = None,
    json: JsonOption = False,
) -> None:
    """List events, one a line.

    Seq, time, type, payload bytes, actor and stream.
    """
    with reading(ledger) as store:
        rows = _rows(store, type_, start, stop)
        if json:
            print_json_rows(rows)
        else:
            _print_rows(rows, len(str(store.head().size)))


def _rows(store: SqliteStore, type_: str | None, start: int, stop: int | None) -> Iterator[Row]:
    for record in store.read(start, stop):
        if type_ is None or record.type == type_:
            yield {
                "seq": record.seq,
                "recorded_at": record.fields["recorded_at"],
                "type": record.type,
                "payload": "withheld" if record.payload is None else len(record.payload),
                "actor": record.fields["actor"],
                "stream": record.fields["stream"],
            }


def _print_rows(rows: Iterator[Row], seq_width: int) -> None:
    """Print rows as they are read: widths are fixed, so that no row waits for the last one."""
    for row in rows:
        line = (
            f"{row['seq']:>{seq_width}}  {row['recorded_at']}  {row['type']:<{_TYPE_WIDTH}}"
            f"  {row['payload']:>8}  {row['actor']}  {row['stream']}"
        )
        if not say(line):
            return


def show(seq: SeqArgument, ledger: LedgerOption = DEFAULT_LEDGER, json: JsonOption = False) -> None:
    """Show one event, or that it is withheld.

    Envelope, leaf hash and payload.
    """
    with reading(ledger) as store:
        record = _record(store, seq)
    value = {
        "envelope": dict(record.fields),
        "leaf": record.leaf.hex(),
        "payload": _payload(record),
        "withheld": record.payload is None,
    }
    if json:
        print_json(value)
        return
    say(f"event {seq}, leaf {record.leaf.hex()}")
    for name, content in record.fields.items():
        say(f"  {name}: {content}")
    if record.payload is None:
        say("payload: withheld (redacted; its commitment stays above)")
    else:
        print_json(value["payload"])


def prove(
    seq: SeqArgument, ledger: LedgerOption = DEFAULT_LEDGER, json: JsonOption = False
) -> None:
    """Prove that an event is in the log.

    An inclusion proof against the present root (RFC 9162 section 2.1.3).
    """
    with reading(ledger) as store:
        leaves = [record.leaf for record in store.read()]
    if seq >= len(leaves):
        raise _no_event(seq, len(leaves))
    proof = prove_inclusion(seq, leaves)
    value = {
        "leaf_index": seq,
        "tree_size": len(leaves),
        "leaf_hash": leaves[seq].hex(),
        "proof": [node.hex() for node in proof],
        "root": merkle_tree_hash(leaves).hex(),
    }
    if json:
        print_json(value)
        return
    say(f"leaf {seq} of {len(leaves)}: {value['leaf_hash']}")
    for node in proof:
        say(f"  {node.hex()}")
    say(f"root {value['root']}")


def redact(
    seq: SeqArgument,
    reason: Annotated[str, typer.Option("--reason", help="Why; it goes into the log.")],
    ledger: LedgerOption = DEFAULT_LEDGER,
    authority: Annotated[
        str | None, typer.Option("--authority", help="Who decided it. By default the actor.")
    ] = None,
) -> None:
    """Delete one event's payload and salt.

    The chain still verifies, and reports say withheld. Copies of the file (backups, bundles already
    given away) keep the payload.
    """
    with writing(ledger) as session:
        at = session.redact(seq, reason=reason, authority=authority or system_actor())
    say(f"event {at}: the payload of event {seq} is gone; its commitment stays")


def _record(store: SqliteStore, seq: int) -> Record:
    size = store.head().size
    record = next(iter(store.read(seq, seq + 1)), None) if seq < size else None
    if record is None:
        raise _no_event(seq, size)
    return record


def _no_event(seq: int, size: int) -> BadInputError:
    return BadInputError(
        f"there is no event {seq}", remedy=f"The log holds events 0 to {size - 1}."
    )


def _payload(record: Record) -> object:
    if record.payload is None:
        return None
    if record.fields["payload"]["media"] == "application/json":
        return parse_strict(record.payload)
    return record.payload.decode("utf-8", errors="replace")
