"""Forked children for tests that kill writers or let several of them race."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable


def in_child(work: Callable[[], object]) -> int:
    """Fork, work, and leave without running any of the parent's clean-up; return the pid."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
    except BaseException:  # noqa: BLE001 - a child must never return into pytest
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
