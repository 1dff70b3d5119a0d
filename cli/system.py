"""The outside world, in one place: time, randomness and the environment."""

from __future__ import annotations

import os
import secrets
from datetime import UTC, datetime


def system_clock() -> datetime:
    """Return the present moment in UTC."""
    return datetime.now(UTC)  # noqa: TID251 - the one place where time comes from


def system_entropy(count: int) -> bytes:
    """Return random bytes from the operating system."""
    return secrets.token_bytes(count)


def system_actor() -> str:
    """Return who writes: $LEDGER_ACTOR, else `operator`."""
    return os.environ.get("LEDGER_ACTOR", "operator")
