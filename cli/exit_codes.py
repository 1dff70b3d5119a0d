"""Every exit code of the `ledger` command and what it means; docs/cli.md shows this table."""

from __future__ import annotations

DONE = 0
FOUND = 1
USAGE = 2
CANNOT_TELL = 3
DEVIATED = 4
INCOMPLETE = 5
BUG = 70
INTERRUPTED = 130

MEANINGS: tuple[tuple[int, str], ...] = (
    (DONE, "done; for `verify`: sound, withheld or unanchored"),
    (FOUND, "the ledger was tampered with or is damaged; for `cards lint` and `doctor`: a finding"),
    (USAGE, "refused: wrong input, wrong order or a file that cannot be used; nothing was written"),
    (CANNOT_TELL, "`verify` cannot tell: the file, a key or a library is missing"),
    (DEVIATED, "`verify`: the bytes are whole, and the protocol was not followed"),
    (INCOMPLETE, "a run stopped at its cost ceiling; raise it and go on with `--resume`"),
    (BUG, "a fault of forecast-ledger itself; please report it"),
    (INTERRUPTED, "interrupted from the keyboard; nothing was half-written"),
)
