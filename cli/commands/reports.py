"""`ledger replay` and `ledger report`: every number from the log alone.

The scoring code is imported where it is used: scipy would double the start of every other command.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.rendering import print_json, print_table, say
from cli.system import system_actor
from cli.wiring import DEFAULT_LEDGER, JsonOption, LedgerOption, reading, writing
from ledger.errors import BadInputError
from ledger.events.base import Payload
from ledger.protocol.state import ProtocolState
from ledger.session import Session

if TYPE_CHECKING:
    from scoring.report import Report

OutOption = Annotated[Path | None, typer.Option("--out", help="Write the tables into this folder.")]
CompareOption = Annotated[
    list[str] | None,
    typer.Option("--compare", help="Compare two methods besides the plan: A:B. Exploratory."),
]


def replay(
    ledger: LedgerOption = DEFAULT_LEDGER,
    out: OutOption = None,
    compare: CompareOption = None,
    json: JsonOption = False,
) -> None:
    """Recompute every score and table from the log alone.

    The same bytes on every replay.
    """
    from scoring.report import build_report, write_report  # noqa: PLC0415

    with reading(ledger) as store:
        report_ = build_report(store, compare=_pairs(compare))
        names = write_report(report_, store, out) if out is not None else []
    if json:
        print_json(report_.scores)
        return
    print_scores(report_.scores)
    if names:
        say(f"wrote {len(names)} files to {out}")


def report(
    ledger: LedgerOption = DEFAULT_LEDGER,
    out: OutOption = None,
    compare: CompareOption = None,
) -> None:
    """Replay, and record in the log what is published.

    Scores, digests of the tables and the number of looks.
    """
    from scoring.report import write_report  # noqa: PLC0415

    with writing(ledger) as session:
        report_, seq = publish_replay(session, _pairs(compare))
        names = write_report(report_, session.store, out) if out is not None else []
    print_scores(report_.scores)
    say(f"event {seq}: report published, with the digests of its tables")
    if names:
        say(f"wrote {len(names)} files to {out}")


def publish_replay(session: Session, compare: Sequence[tuple[str, str]] = ()) -> tuple[Report, int]:
    """Replay and append `report.published`; return the replay and the event's seq.

    The replay is part of the decision: an event that another writer appends meanwhile makes it
    anew, so that what is published was computed from exactly the events before it.
    """
    from scoring.report import build_report, publish_report  # noqa: PLC0415

    replays: list[Report] = []

    def decide(_state: ProtocolState) -> list[Payload]:
        replays.append(build_report(session.store, compare=compare))
        return [publish_report(replays[-1], session.store, authority=system_actor())]

    (seq,) = session.commit(decide)
    return replays[-1], seq


def print_scores(scores: dict[str, Any]) -> None:
    """Print the score table in the order of the leaderboard, and the primary comparison."""
    rows = [
        (method, *(scores["scores"][method][name] for name in ("n", "brier", "log", "ece", "auc")))
        for method in scores["leaderboard"]
    ]
    print_table(("method", "n", "Brier", "log", "ECE", "AUC"), rows)
    cards = scores["cards"]
    if cards["excluded"]:
        reasons = sorted(set(cards["excluded"].values()))
        say(f"{len(cards['excluded'])} cards are not scored: {'; '.join(reasons)}")
    for pair in scores["paired"]:
        if pair["primary"] and pair["n"]:
            sign = pair["sign"][0]
            low, high = pair["bootstrap"]["limit"]
            say(
                f"{pair['a']} against {pair['b']}: mean difference"
                f" {pair['mean_difference']:.4f}, lower on {sign['a_lower']} of {pair['n']} cards,"
                f" sign test p = {sign['p']:.3f}, exact-limit interval [{low:.3f}, {high:.3f}]"
            )


def _pairs(compare: list[str] | None) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for text in compare or []:
        a, colon, b = text.partition(":")
        if not colon or not a or not b or a == b:
            raise BadInputError(
                f"{text!r} does not name two methods", where="--compare", remedy="Write A:B."
            )
        pairs.append((a, b))
    return pairs
