"""The integrity pass on several cores: ranges by seq, a connection each, roots put together.

Ranges begin at multiples of 4096, where every subtree is a node of the whole tree. The first range
is done in this process; the others in processes that are spawned, so that nothing is inherited.
"""

from __future__ import annotations

import multiprocessing

from ledger.verify.integrity import RangeResult, check_range
from ledger.verify.reading import DamagedError, LedgerFile, Place, UnreadableError
from ledger.verify.tree import CHUNK

MIN_EVENTS_A_WORKER = 32_768
"""Below it, starting a process costs more than it saves."""


def check_whole(file: LedgerFile, first: int, last: int, workers: int) -> RangeResult:
    """Check all events from `first` to `last`, with up to `workers` processes.

    Raises:
        DamagedError: SQLite cannot read some page.
    """
    ranges = _split(last + 1, workers) if first == 0 else []
    if len(ranges) < 2:
        return check_range(file, first, last + 1)
    context = multiprocessing.get_context("spawn")
    with context.Pool(len(ranges) - 1) as pool:
        waiting = [pool.apply_async(_check_part, (file.place, *part)) for part in ranges[1:]]
        parts = [check_range(file, *ranges[0]), *(each.get() for each in waiting)]
    if sum(part.count for part in parts) != last + 1:
        # With rows missing, positions are not seqs and the parts' subtrees do not fit together.
        return check_range(file, first, last + 1)
    whole = RangeResult()
    for part in parts:
        whole.count += part.count
        whole.payloads += part.payloads
        whole.chunk_roots += part.chunk_roots
        whole.breaches += part.breaches
    return whole


def _split(size: int, workers: int) -> list[tuple[int, int]]:
    parts = max(1, min(workers, size // MIN_EVENTS_A_WORKER))
    step = -(-size // parts)
    step += -step % CHUNK
    return [(start, min(start + step, size)) for start in range(0, size, step)]


def _check_part(place: Place, start: int, stop: int) -> RangeResult:
    try:
        file = LedgerFile(place)
    except UnreadableError as error:
        raise DamagedError(str(error)) from error
    try:
        return check_range(file, start, stop)
    finally:
        file.close()
