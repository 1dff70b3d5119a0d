"""`ledger questions import`: foreign question sets into a card pack."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Annotated, Literal

import typer

from cli.questions import pull_questions
from cli.rendering import say
from cli.running import read_environment
from cli.spread import SpreadCommand
from cli.system import system_clock
from forecasting.questions.ai_prophet import read_ai_prophet
from forecasting.questions.forecastbench import read_forecastbench
from forecasting.questions.pack_folder import format_pack
from forecasting.questions.question import ImportedSet, make_question_id
from forecasting.questions.worldfork import read_worldfork
from ledger.clock import format_moment
from ledger.errors import BadInputError

app = typer.Typer(help="Read question sets of other systems.", no_args_is_help=True)

Source = Literal["metaculus", "worldfork", "forecastbench", "ai-prophet"]


@app.command("import", cls=SpreadCommand)
def import_(
    source: Annotated[Source, typer.Argument(help="Whose format it is.")],
    out: Annotated[Path, typer.Option("--out", help="The pack's folder; it must not exist.")],
    file: Annotated[
        Path | None, typer.Option("--file", help="Questions: cards, a set, tasks, or texts.")
    ] = None,
    labels: Annotated[
        Path | None, typer.Option("--labels", help="Private cards or resolutions, apart.")
    ] = None,
    stress: Annotated[
        Path | None, typer.Option("--stress", help="Stress prompts of a WorldFork bundle.")
    ] = None,
    post_ids: Annotated[
        list[int] | None, typer.Option("--post-ids", help="Metaculus posts; several after one.")
    ] = None,
    as_of: Annotated[
        str | None, typer.Option("--as-of", help="As-of of all questions, a day or moment.")
    ] = None,
) -> None:
    """Import questions into a card pack, labels apart.

    What is left out is said with its reason; go on with `ledger cards lint`.
    """
    if file is None:
        raise BadInputError("no file of questions is named", remedy="Name it with --file.")
    imported = _read(source, file, labels, stress, post_ids or [], as_of)
    files = format_pack(
        imported,
        pack_id=make_question_id(out.name),
        title=f"Imported from {source}",
        source=source,
    )
    _write(out, files)
    for item in imported.exclusions:
        say(f"left out {item.question_id}: {item.reason}, {item.detail}")
    for note in imported.notes:
        say(note)
    say(f"wrote {len(imported.questions)} cards and {len(imported.labels)} labels to {out}")


def _read(
    source: Source,
    file: Path,
    labels: Path | None,
    stress: Path | None,
    post_ids: list[int],
    as_of: str | None,
) -> ImportedSet:
    if source == "metaculus":
        if not post_ids:
            raise BadInputError("no post is named", remedy="Name posts with --post-ids.")
        return asyncio.run(pull_questions(file, post_ids, read_environment(Path()), as_of=as_of))
    if source == "worldfork":
        return read_worldfork(
            _bytes(file), private=_optional(labels), stress=_optional(stress), as_of=as_of
        )
    if source == "forecastbench":
        today = format_moment(system_clock())[:10]
        return read_forecastbench(
            _bytes(file), resolutions=_optional(labels), as_of=as_of, retrieved_on=today
        )
    return read_ai_prophet(_bytes(file), as_of=as_of, where=str(file))


def _optional(path: Path | None) -> bytes | None:
    return None if path is None else _bytes(path)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInputError(
            f"cannot be read: {error.strerror}", where=str(path), remedy="Name a readable file."
        ) from error


def _write(out: Path, files: dict[str, str]) -> None:
    """Write the folder as a whole; labels are for their owner alone."""
    if out.exists():
        raise BadInputError("exists already", where=str(out), remedy="Choose another folder.")
    draft = out.parent / f".{out.name}.{os.getpid()}.new"
    try:
        for name, text in files.items():
            path = draft / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600 if name.startswith("private/") else 0o644)
            path.write_text(text, encoding="utf-8", newline="\n")
        draft.rename(out)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
