"""`python -m ledger.verify FILE`: the standalone verifier on the command line.

Needs Python 3.11 and nothing else; see docs/spec/verification.md.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ledger.verify.check import verify_file
from ledger.verify.note import MAX_NOTE_BYTES, NoteError, parse_key
from ledger.verify.report import Finding, Verdict, Verification

_MEANINGS: dict[Verdict, str] = {
    "tampered": "the bytes are not those that were written",
    "deviated": "the bytes are whole, and the protocol was not followed",
    "unverifiable": "something needed for a verdict is missing",
    "unanchored": "consistent in itself, and so is a ledger that its operator rewrote",
    "withheld": "all that can be read holds; parts are redacted or sealed",
    "sound": "all holds, and the log continues the checkpoint that you hold",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Verify, print and return the exit code: 0, 1 tampered, 2 usage, 3 cannot tell, 4 deviated."""
    parser = _parser()
    options = parser.parse_args(arguments)
    checkpoint_text = None
    if options.checkpoint is not None:
        try:
            checkpoint_text = _read_checkpoint(options.checkpoint)
        except OSError as error:
            parser.error(f"the checkpoint cannot be read: {error}")
    result = verify_file(
        options.file,
        checkpoint_text=checkpoint_text,
        keys=options.key,
        require_anchor=options.require_anchor,
        workers=options.workers,
    )
    lines = [result.to_json()] if options.json else format_lines(result)
    try:
        for line in lines:
            # A path or an error of the system may hold what this terminal cannot show.
            print(line.encode("ascii", "backslashreplace").decode("ascii"))
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has seen enough; the exit code still counts.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return result.exit_code


def format_lines(result: Verification) -> list[str]:
    """Write a result for people: verdict first, then findings, then what is proved and what not."""
    lines = [f"{result.verdict}: {_MEANINGS[result.verdict]}"]
    if result.size is not None:
        lines.append(f"  {result.size:,} events, root {result.root or 'none'}")
    if result.findings:
        lines += ["", "Findings"]
        lines += [_format_finding(finding) for finding in result.findings]
    for title, sentences in (("Proved", result.proved), ("Not proved", result.not_proved)):
        if sentences:
            lines += ["", title, *(f"  {sentence}" for sentence in sentences)]
    return lines


def _format_finding(finding: Finding) -> str:
    where = "ledger" if finding.seq is None else f"event {finding.seq}"
    return f"  {finding.severity:12} {where:>12}  {finding.rule}: {finding.message}"


def _read_checkpoint(path: Path) -> str:
    with path.open("rb") as stream:
        data = stream.read(MAX_NOTE_BYTES + 1)
    # Bytes that are no UTF-8 become lone surrogates, which no checkpoint may hold.
    return data.decode("utf-8", "surrogateescape")


def _verifier_key(text: str) -> str:
    try:
        parse_key(text)
    except NoteError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def _positive(text: str) -> int:
    if len(text) > 3 or not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 256:
        raise argparse.ArgumentTypeError("not a number from 1 to 256")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m ledger.verify",
        description="Verify a forecast ledger. Exit codes: 0 sound, withheld or unanchored;"
        " 1 tampered; 2 usage; 3 cannot tell; 4 deviated.",
    )
    parser.add_argument("file", type=Path, metavar="FILE", help="the ledger file")
    parser.add_argument(
        "--checkpoint", type=Path, metavar="FILE", help="a checkpoint that you kept elsewhere"
    )
    parser.add_argument(
        "--key",
        type=_verifier_key,
        action="append",
        default=[],
        metavar="VKEY",
        help="a verifier key that you trust; may be given again",
    )
    parser.add_argument(
        "--require-anchor", action="store_true", help="exit 3 where no held checkpoint matches"
    )
    parser.add_argument("--json", action="store_true", help="write one JSON object")
    parser.add_argument(
        "--workers", type=_positive, default=1, metavar="N", help="processes for hashing"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
