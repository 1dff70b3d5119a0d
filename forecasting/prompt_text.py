"""Prompts as versioned text files: `NAME.VERSION.txt` beside this module, our own wording.

A file has parts `=== system ===` and `=== user ===` and ends with `=== end ===`. `<<name>>` is
replaced in one pass, so that text put in is never read as a placeholder again: a card or an article
cannot reach the instructions around it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from forecasting.ports import Message
from ledger.errors import BadInputError, BugError

FOLDER = Path(__file__).resolve().parent / "prompts"
_NAME = re.compile(r"[a-z0-9_]+\.[1-9][0-9]*")
_PLACE = re.compile(r"<<([a-z_]+)>>")
_PART = re.compile(r"^=== (system|user|end) ===$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Prompt:
    """One version of a prompt: `version` such as `direct_json.1`, digest of the file's bytes."""

    version: str
    digest: str
    parts: tuple[tuple[str, str], ...]

    def fill(self, values: Mapping[str, str]) -> tuple[Message, ...]:
        """Return the messages with every placeholder replaced.

        Raises:
            BugError: a placeholder has no value, or a value no placeholder.
        """
        names = {name for _, text in self.parts for name in _PLACE.findall(text)}
        if names != set(values):
            raise BugError(
                f"prompt {self.version} takes {sorted(names)}, was given {sorted(values)}"
            )
        return tuple(
            Message(
                role="system" if role == "system" else "user",
                content=_PLACE.sub(lambda match: values[match[1]], text),
            )
            for role, text in self.parts
        )


def load_prompt(version: str, folder: Path = FOLDER) -> Prompt:
    """Read a prompt by its version name.

    Raises:
        BadInputError: no such prompt, or a file without its parts.
    """
    path = folder / f"{version}.txt"
    if not _NAME.fullmatch(version) or not path.is_file():
        known = ", ".join(sorted(file.stem for file in folder.glob("*.txt")))
        raise BadInputError(f"no prompt {version!r}", remedy=f"Known: {known}.")
    data = path.read_bytes()
    pieces = _PART.split(data.decode("utf-8"))
    # split() gives: text before, then name and text by turns; the last name is `end`.
    names, texts = pieces[1::2], pieces[2::2]
    if pieces[0].strip() or not names or names[-1] != "end" or "end" in names[:-1]:
        raise BadInputError("has no parts or no end", where=str(path))
    parts = tuple((name, text.strip()) for name, text in zip(names[:-1], texts[:-1], strict=True))
    return Prompt(version, hashlib.sha256(data).hexdigest(), parts)
