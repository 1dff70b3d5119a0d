"""`ledger demo`: a whole locked evaluation, from 24 frozen cards to verified scores."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cards.pack import Pack, load_pack
from cards.reported import read_reported
from cli.commands.cards import freeze_pack, frozen_seqs
from cli.commands.labels import seal_labels, unseal_labels
from cli.commands.live import run_live
from cli.commands.plans import register_plan
from cli.commands.predictions import close_predictions, import_predictions
from cli.commands.reports import print_scores, publish_replay
from cli.commands.setup import create_ledger
from cli.commands.verification import run_verify
from cli.rendering import say
from cli.system import system_actor
from cli.wiring import key_path, read_key, signed_checkpoint, write_whole, writing
from ledger.canonical import parse_strict
from ledger.errors import BadInputError, BugError
from ledger.events.anchor import CheckpointAnchored
from ledger.printed import agrees_with_printed
from ledger.session import Session
from ledger.store.sqlite import SqliteStore
from ledger.vault import read_vault
from ledger.verify.report import Verification
from scoring.leaderboard import describe_published

if TYPE_CHECKING:
    from scoring.report import Report

ORIGIN = "forecast-ledger.local/demo"
LEFT_BEHIND = ("vault.db", "ledger.key", "replay", "checkpoint.txt", "checkpoint-before-labels.txt")
PACK = "worldfork_pilot"


def demo(
    folder: Annotated[
        Path, typer.Option("--dir", help="Where to leave the ledger, vault and tables.")
    ] = Path("demo"),
    live: Annotated[
        bool,
        typer.Option("--live", help="Ask a real local model about three cards instead."),
    ] = False,
) -> None:
    """Run a whole evaluation offline and verify it.

    24 cards, sealed labels, a plan, 144 predictions, the scores of a published pilot. What an
    earlier demo left in the folder is replaced; anything else there is never touched.
    """
    from scoring.report import build_report, write_report  # noqa: PLC0415 - as in reports.py

    if live:
        run_live(folder)
        return
    started = time.perf_counter()
    ledger, vault = folder / "ledger.db", folder / "vault.db"
    _clear(folder)
    folder.mkdir(parents=True, exist_ok=True)
    pack = load_pack(PACK)
    create_ledger(ledger, ORIGIN)
    say(f"1. opened {ledger}, a new log with its own signing key")
    with writing(ledger) as session:
        _until_closed(session, pack, vault)
        _anchor(session, ledger, folder / "checkpoint-before-labels.txt")
        opened = unseal_labels(session, read_vault(vault), None)
        say(f"7. opened {opened} labels; each opens the seal made before any prediction")
        publish_replay(session)
        report = build_report(session.store)
        names = write_report(report, session.store, folder / "replay")
        store = _sqlite(session)
        _, text = signed_checkpoint(store, read_key(key_path(ledger)))
        write_whole(folder / "checkpoint.txt", text)
    say(f"8. replayed every score from the log alone: {len(names)} files in {folder / 'replay'}")
    say()
    print_scores(report.scores)
    say(_against_paper(pack, report))
    say()
    _verify(ledger, folder / "checkpoint.txt")
    _tamper(ledger, folder)
    say(f"done in {time.perf_counter() - started:.1f} s")


def _until_closed(session: Session, pack: Pack, vault: Path) -> None:
    if pack.plan is None or pack.predictions is None:
        raise BugError(f"the pack {pack.id} has no plan or no predictions")
    cards = session.commit(lambda state: freeze_pack(pack, frozen_seqs(state)))
    say(f"2. froze {len(cards)} cards")
    private = [card.private for card in pack.cards if card.private is not None]
    count = seal_labels(session, private, vault, system_actor())
    say(f"3. sealed {count} labels; they are in {vault}, mode 0600, and not in the ledger")
    seq = register_plan(session, pack.plan)
    say(f"4. registered the plan as event {seq}: metric, test, seeds, thresholds, methods")
    frozen, _ = import_predictions(session, pack.predictions)
    closed = close_predictions(session, None)
    say(f"5. froze {frozen} predictions and closed as event {closed[-1]}")


def _anchor(session: Session, ledger: Path, out: Path) -> None:
    checkpoint, text = signed_checkpoint(_sqlite(session), read_key(key_path(ledger)))
    write_whole(out, text)
    session.commit(
        lambda _: [CheckpointAnchored(checkpoint=text, tree_size=checkpoint.size, proof=None)]
    )
    say(f"6. signed a checkpoint of {checkpoint.size} events, before any label opens: {out}")


def _sqlite(session: Session) -> SqliteStore:
    if not isinstance(session.store, SqliteStore):
        raise BugError("the demo's ledger is a file")
    return session.store


def _against_paper(pack: Pack, report: Report) -> str:
    """Say how many of the paper's printed figures recompute, and which interval its interval is."""
    if pack.reported is None:
        raise BugError(f"the pack {pack.id} reports no figures")
    printed = read_reported(pack.reported)
    scores = report.scores["scores"]
    cells = [
        agrees_with_printed(Fraction(scores[row.method][name]), getattr(row, name))
        for row in printed.scores
        for name in ("brier", "log")
    ]
    pair = next(p for p in report.scores["paired"] if p["primary"])
    lines = [
        f"the paper's table: {sum(cells)} of {len(cells)} cells recompute to the digits printed"
    ]
    lines += [describe_published(item, pair["bootstrap"]) for item in pair["published"]]
    return "\n".join(lines)


def _verify(ledger: Path, checkpoint: Path) -> Verification:
    result = run_verify(ledger, checkpoint=checkpoint)
    say(f"9. verified against {checkpoint}: {result.verdict}, {result.size} events, root")
    say(f"   {result.root}")
    if result.exit_code:
        first = result.findings[0]
        raise BugError(f"the demo's own ledger does not verify: {first.rule} at {first.seq}")
    return result


def _tamper(ledger: Path, folder: Path) -> None:
    """Flip one byte in a copy and show that it is found."""
    copy = folder / "tampered.db"
    with _connected(ledger) as source, _connected(copy) as target:
        source.backup(target)
        target.execute("DROP TRIGGER events_are_never_updated")
        (data,) = target.execute("SELECT envelope FROM events WHERE seq = 100").fetchone()
        target.execute(
            "UPDATE events SET envelope = ? WHERE seq = 100", (data[:40] + b"x" + data[41:],)
        )
        target.commit()
    try:
        result = run_verify(copy, checkpoint=None)
    finally:
        _remove(copy)
    first = result.findings[0]
    if first.seq != 100 or result.verdict != "tampered":
        raise BugError("a flipped byte was not found")
    say(f"10. flipped one byte of event 100 in a copy: {result.verdict}")
    say(f"   event {first.seq}, {first.rule}: {first.message}")


@contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path)
    try:
        yield connection
    finally:
        connection.close()


def _clear(folder: Path) -> None:
    """Remove what an earlier demo left; refuse a folder that holds anybody's real work."""
    ledger = folder / "ledger.db"
    if not ledger.exists():
        for name in LEFT_BEHIND:
            if (folder / name).exists():
                raise _in_the_way(folder / name)
        return
    if _origin(ledger) != ORIGIN:
        raise _in_the_way(ledger)
    shutil.rmtree(folder / "replay", ignore_errors=True)
    key_path(ledger).unlink(missing_ok=True)
    # The ledger goes last: without it nobody could tell whose the other files are.
    for name in ("checkpoint-before-labels.txt", "checkpoint.txt", "tampered.db", "vault.db"):
        _remove(folder / name)
    _remove(ledger)


def _origin(ledger: Path) -> object:
    """Return the origin that a ledger's first event names, None where it cannot be read."""
    try:
        with _connected(ledger) as connection:
            row = connection.execute("SELECT bytes FROM payloads WHERE seq = 0").fetchone()
        opened = parse_strict(row[0]) if row and row[0] else None
    except (sqlite3.Error, ValueError):
        return None
    return opened.get("origin") if isinstance(opened, dict) else None


def _in_the_way(path: Path) -> BadInputError:
    return BadInputError(
        "is not what an earlier demo left", where=str(path), remedy="Choose another --dir."
    )


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
