"""Every error of the project, one class per decision that a caller can make.

LedgerError
├── BadInputError        the caller's file or argument is wrong: correct it and call again
│   └── PlanFieldError   one field of a plan: its path and what is expected
├── OrderError           the protocol forbids this now: rule, colliding event, remedy
├── HeadMovedError       another writer appended first: read again, decide again
├── IdempotencyError     the key was used before with another body: choose a new key
├── LedgerFileError      the file cannot be used as a ledger: name another one
├── DamagedLedgerError   the log does not verify: run `ledger verify`, do not trust its numbers
├── WithheldError        the bytes asked for are redacted or sealed
└── BugError             a broken invariant of ours: report it
"""

from __future__ import annotations


class LedgerError(Exception):
    """Root of all errors. The message is one sentence or two: what, where, what to do."""


class BadInputError(LedgerError, ValueError):
    """Input from outside is wrong; nothing was written.

    Args:
        what: what is wrong, with the offending value where it is safe to show.
        where: file and line, field path or argument; empty when the message says it.
        remedy: what to do about it.
    """

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        self.what = what
        self.where = where
        self.remedy = remedy
        place = f"{where}: " if where else ""
        stop = "" if what.endswith((".", "!", "?")) else "."
        advice = f"{stop} {remedy}" if remedy else ""
        super().__init__(f"{place}{what}{advice}")


class PlanFieldError(BadInputError):
    """A field of a pre-registration plan is missing or wrong; `where` is the field's path."""


class OrderError(LedgerError):
    """An order rule of the event log refuses a command.

    Args:
        rule: stable rule id, as in docs/spec/events.md.
        what: what was refused.
        seq: the event it collides with, or None where the collision is an absence.
        remedy: what to do.
    """

    def __init__(self, rule: str, what: str, *, seq: int | None = None, remedy: str = "") -> None:
        self.rule = rule
        self.what = what
        self.seq = seq
        self.remedy = remedy
        place = f" (event {seq})" if seq is not None else ""
        advice = f" {remedy}" if remedy else ""
        super().__init__(f"[{rule}] {what}{place}.{advice}")


class HeadMovedError(LedgerError):
    """The log grew between reading and appending; nothing was written."""


class IdempotencyError(LedgerError):
    """An idempotency key came back with another body; nothing was written."""


class LedgerFileError(LedgerError):
    """The file is missing, is not a ledger, or is held by another writer for too long."""


class DamagedLedgerError(LedgerError):
    """Stored bytes do not match their hashes or cannot be read back as events."""


class WithheldError(LedgerError):
    """The payload was redacted, or a label is still sealed."""


class BugError(LedgerError):
    """An invariant of this project is broken; the ledger refuses to go on."""
