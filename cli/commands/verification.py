"""`ledger verify` and `ledger checkpoint`: what an auditor runs, and what an operator hands out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from ledger.verify.check import verify_file

from cli.rendering import print_json, say
from cli.wiring import (
    DEFAULT_LEDGER,
    JsonOption,
    LedgerOption,
    key_path,
    read_key,
    reading,
    signed_checkpoint,
)
from ledger.errors import BadInputError
from ledger.verify.report import Verification, render_text


def verify(
    ledger: Annotated[Path, typer.Argument(help="The ledger file.", envvar="LEDGER")] = (
        DEFAULT_LEDGER
    ),
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint", help="A checkpoint that you kept outside the operator's reach."
        ),
    ] = None,
    key: Annotated[
        list[str] | None, typer.Option("--key", help="A verifier key that you trust (repeatable).")
    ] = None,
    require_anchor: Annotated[
        bool, typer.Option("--require-anchor", help="Fail where nothing outside anchors the log.")
    ] = False,
    workers: Annotated[
        int, typer.Option(help="Processes for the integrity pass.", min=1, max=64)
    ] = 1,
    json: JsonOption = False,
) -> None:
    """Check every hash, every order rule and every published score, from the bytes alone.

    Exit codes: 0 sound or unanchored, 1 tampered, 2 usage, 3 cannot tell, 4 deviated. The same
    check runs without this installation: python -m ledger.verify FILE.
    """
    result = run_verify(
        ledger,
        checkpoint=checkpoint,
        keys=key or (),
        require_anchor=require_anchor,
        workers=workers,
    )
    if json:
        print_json(result.to_json())
    else:
        say(render_text(result))
    raise typer.Exit(result.exit_code)


def run_verify(
    ledger: Path,
    *,
    checkpoint: Path | None,
    keys: list[str] | tuple[str, ...] = (),
    require_anchor: bool = False,
    workers: int = 1,
) -> Verification:
    """Run the standalone verifier on a file."""
    text = None
    if checkpoint is not None:
        try:
            text = checkpoint.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadInputError(
                f"cannot be read: {error}", where=str(checkpoint), remedy="Name a checkpoint file."
            ) from error
    return verify_file(
        ledger,
        checkpoint_text=text,
        keys=tuple(keys),
        require_anchor=require_anchor,
        workers=workers,
    )


def checkpoint(
    ledger: LedgerOption = DEFAULT_LEDGER,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the checkpoint to this file.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", help="The signing key; by default beside the ledger.")
    ] = None,
) -> None:
    """Sign the present size and root (C2SP tlog-checkpoint); give it to people outside."""
    with reading(ledger) as store:
        signed, text = signed_checkpoint(store, read_key(key or key_path(ledger)))
    if out is not None:
        out.write_text(text, encoding="utf-8")
        say(f"checkpoint of {signed.size} events, root {signed.root.hex()}, in {out}")
    else:
        say(text.rstrip("\n"))
