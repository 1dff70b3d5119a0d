"""Showing text that came out of a ledger: short, and harmless on any terminal."""

from __future__ import annotations


def show(value: object, limit: int = 80) -> str:
    """Write a value of unknown origin in printable ASCII, at most about `limit` characters.

    Control sequences, bidirectional marks and look-alike letters come out as escapes, so a ledger
    cannot rewrite the terminal on which its own verdict is printed.
    """
    if isinstance(value, str):
        text = ascii(value[:limit])
        return f"{text}..." if len(value) > limit else text
    text = ascii(value)
    return f"{text[:limit]}..." if len(text) > limit else text


def plural(count: int, noun: str) -> str:
    """Write a count with its noun: 1 event, 2 events."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
