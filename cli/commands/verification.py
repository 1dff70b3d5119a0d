"""`ledger verify` and `ledger checkpoint`: what an auditor runs, and what an operator hands out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from cli.rendering import say
from cli.wiring import (
    DEFAULT_LEDGER,
    JsonOption,
    LedgerOption,
    key_path,
    read_key,
    reading,
    signed_checkpoint,
    write_whole,
)
from ledger.checkpoint import Checkpoint, parse_checkpoint
from ledger.errors import BadInputError
from ledger.signed_note import parse_note
from ledger.verify.__main__ import format_lines
from ledger.verify.check import verify_file
from ledger.verify.note import NoteError, parse_key
from ledger.verify.report import Verification


def verify(
    file: Annotated[
        Path | None,
        # Unreadable is a verdict of the verifier's own, not a usage error of typer's.
        typer.Argument(help="The ledger file, as with --ledger.", readable=False),
    ] = None,
    ledger: LedgerOption = DEFAULT_LEDGER,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint", help="A checkpoint that you kept out of the operator's reach."
        ),
    ] = None,
    key: Annotated[
        list[str] | None, typer.Option("--key", help="A verifier key that you trust; repeatable.")
    ] = None,
    require_anchor: Annotated[
        bool, typer.Option("--require-anchor", help="Exit 3 where no held checkpoint matches.")
    ] = False,
    workers: Annotated[
        int, typer.Option("--workers", help="Processes for the integrity pass.", min=1, max=64)
    ] = 1,
    json: JsonOption = False,
) -> None:
    """Check hashes, order rules and scores from the bytes alone.

    Exit codes: 0 sound, withheld or unanchored, 1 tampered, 2 usage, 3 cannot tell, 4 deviated. The
    same check runs without this installation: python -m ledger.verify FILE.
    """
    result = run_verify(
        ledger if file is None else file,
        checkpoint=checkpoint,
        keys=key or (),
        require_anchor=require_anchor,
        workers=workers,
    )
    for line in [result.to_json()] if json else format_lines(result):
        say(line)
    raise typer.Exit(result.exit_code)


def run_verify(
    ledger: Path,
    *,
    checkpoint: Path | None,
    keys: Sequence[str] = (),
    require_anchor: bool = False,
    workers: int = 1,
) -> Verification:
    """Run the standalone verifier on a file.

    Raises:
        BadInputError: the checkpoint cannot be read, or a key is none.
    """
    for key in keys:
        try:
            parse_key(key)
        except NoteError as error:
            raise BadInputError(
                f"{key[:80]!r} is not a verifier key: {error}.",
                where="--key",
                remedy="Give one as `ledger init` prints it.",
            ) from error
    return verify_file(
        ledger,
        checkpoint_text=None if checkpoint is None else _read_text(checkpoint),
        keys=tuple(keys),
        require_anchor=require_anchor,
        workers=workers,
    )


def checkpoint(
    ledger: LedgerOption = DEFAULT_LEDGER,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Write the checkpoint to this file; an older one is replaced."),
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", help="The signing key. By default beside the ledger.")
    ] = None,
) -> None:
    """Sign the log's present size and root.

    The form is a C2SP tlog-checkpoint. Give it to people outside: what they keep, nobody can
    rewrite.
    """
    with reading(ledger) as store:
        signed, text = signed_checkpoint(store, read_key(key or key_path(ledger)))
    if out is not None:
        _require_older(out, signed)
        write_whole(out, text)
        say(f"checkpoint of {signed.size} events, root {signed.root.hex()}, in {out}")
    else:
        say(text.rstrip("\n"))


def _require_older(out: Path, new: Checkpoint) -> None:
    """Let a checkpoint replace an older one of the same log, and nothing else."""
    if not out.exists():
        return
    try:
        old = parse_checkpoint(parse_note(_read_text(out)).text)
    except ValueError as error:
        raise BadInputError(
            "is there already and is not a checkpoint",
            where=str(out),
            remedy="Name another file with --out.",
        ) from error
    if old.origin != new.origin or old.size > new.size:
        raise BadInputError(
            f"holds a checkpoint of {old.size} events of {old.origin}, which this one does not"
            " continue",
            where=str(out),
            remedy="Name another file with --out.",
        )


def _read_text(path: Path) -> str:
    try:
        # Bytes that are no UTF-8 become lone surrogates, which no checkpoint may hold.
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except OSError as error:
        raise BadInputError(
            f"cannot be read: {error.strerror}.", where=str(path), remedy="Name a checkpoint file."
        ) from error
