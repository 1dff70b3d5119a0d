"""Where tests find third-party data: beside the repository, never inside it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).resolve().parent.parent


def shared_file(relative: str) -> Path:
    """Return a path under the shared data folder, or skip the test and say what is missing."""
    root = Path(os.environ.get("FORECAST_LEDGER_SHARED", _REPOSITORY.parent / "shared"))
    path = root / relative
    if not path.exists():
        pytest.skip(f"third-party data not here: {relative} (set FORECAST_LEDGER_SHARED)")
    return path
