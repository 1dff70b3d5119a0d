"""The integrity pass on several cores: ranges by seq, a connection each, roots put together.

Ranges begin at multiples of 4096, where every subtree is a node of the whole tree. The first range
is done in this process, the others by `python -I -S -m ledger.verify.workers`: an interpreter that
loads the standard library alone starts in 50 ms, whatever program called the verifier.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from ledger.verify.integrity import Breach, RangeResult, check_range
from ledger.verify.reading import DamagedError, LedgerFile, Place, TooLongError, UnreadableError
from ledger.verify.tree import CHUNK

MIN_EVENTS_A_WORKER = 32_768
"""Below it, starting a process costs more than it saves."""

_ROOT = Path(__file__).resolve().parents[2]
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]);"
    " from ledger.verify.workers import main; main(sys.argv[2:])"
)


def check_whole(file: LedgerFile, first: int, last: int, workers: int) -> RangeResult:
    """Check all events from `first` to `last`, with up to `workers` processes.

    Raises:
        DamagedError: SQLite cannot read some page.
    """
    ranges = _split(last + 1, workers) if first == 0 else []
    if len(ranges) > 1 and sys.executable:
        whole = _merge(_check_parts(file, ranges))
        # With rows missing, positions are not seqs and the parts' subtrees do not fit together.
        if whole is not None and whole.count == last + 1:
            return whole
    return _check_part(file, first, last + 1)


def main(arguments: list[str]) -> None:
    """Check one range and write the result as JSON: path, immutable, start, stop."""
    path, immutable, start, stop = arguments
    file = LedgerFile(Place(Path(path), immutable == "1"))
    try:
        result = _check_part(file, int(start), int(stop))
    finally:
        file.close()
    json.dump(asdict(result) | {"chunk_roots": [r.hex() for r in result.chunk_roots]}, sys.stdout)


def _split(size: int, workers: int) -> list[tuple[int, int]]:
    parts = max(1, min(workers, size // MIN_EVENTS_A_WORKER))
    step = -(-size // parts)
    step += -step % CHUNK
    return [(start, min(start + step, size)) for start in range(0, size, step)]


def _check_parts(file: LedgerFile, ranges: list[tuple[int, int]]) -> list[RangeResult | None]:
    path, immutable = str(file.place.path.absolute()), str(int(file.place.immutable))
    started = [
        subprocess.Popen(  # noqa: S603 - our own interpreter on our own module
            [
                sys.executable,
                "-I",
                "-S",
                "-c",
                _START,
                str(_ROOT),
                path,
                immutable,
                *map(str, part),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for part in ranges[1:]
    ]
    try:
        own = _check_part(file, *ranges[0])
    except (DamagedError, UnreadableError):
        for process in started:
            process.kill()
        raise
    finally:
        answers = [process.communicate()[0] for process in started]
    return [own, *map(_read_answer, answers)]


def _check_part(file: LedgerFile, start: int, stop: int) -> RangeResult:
    try:
        return check_range(file, start, stop)
    except TooLongError:
        return check_range(file, start, stop)


def _read_answer(text: bytes) -> RangeResult | None:
    """Read a worker's result; None where it died, and this process does its work again."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return RangeResult(
        count=value["count"],
        chunk_roots=[bytes.fromhex(root) for root in value["chunk_roots"]],
        breaches=[Breach(*breach) for breach in value["breaches"]],
        payloads=value["payloads"],
    )


def _merge(parts: list[RangeResult | None]) -> RangeResult | None:
    whole = RangeResult()
    for part in parts:
        if part is None:
            return None
        whole.count += part.count
        whole.payloads += part.payloads
        whole.chunk_roots += part.chunk_roots
        whole.breaches += part.breaches
    return whole
