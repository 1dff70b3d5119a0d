"""Ledgers that break one order rule of worlds each (see broken_ledgers)."""

from __future__ import annotations

from collections.abc import Callable

from builders import Book
from evaluations import ready
from plans import FORKY

Case = Callable[[], tuple[Book, int | None]]
"""Returns a book and the seq of the event that breaks the rule, None for the end of the log."""


def in_world(act: Callable[[Book], int]) -> Case:
    """An act in a world that has just begun."""

    def build() -> tuple[Book, int]:
        book = ready(FORKY)
        book.world("forky", "a")
        return book, act(book)

    return build


def fork_and(act: Callable[[Book], int]) -> Case:
    """An act after a fork of the root into x and itself."""

    def forked(book: Book) -> int:
        book.fork("forky", "a", {"root": -400_000_000, "x": 400_000_000})
        return act(book)

    return in_world(forked)


def endpoint_nowhere(book: Book) -> int:
    book.end("forky", "a", "root", 1_000_000_000)
    return book.settle("forky", "a")


def tick_after_end(book: Book) -> int:
    book.end("forky", "a", "root", 1_000_000_000)
    return book.tick("forky", "a")


WORLD_BROKEN: tuple[tuple[str, Case], ...] = (
    ("order.mass-balance", in_world(lambda b: b.fork("forky", "a", {"root": -5, "x": 4}))),
    ("order.mass-balance", in_world(lambda b: b.fork("forky", "a", {"root": 0, "x": 0}))),
    (
        "order.mass-balance",
        in_world(
            lambda b: b.fork(
                "forky", "a", {"root": -1_000_000_000, "x": 400_000_000, "y": 600_000_000, "z": 0}
            )
        ),
    ),
    (
        "order.mass-balance",
        fork_and(lambda b: b.fork("forky", "a", {"x": -400_000_001, "y": 400_000_001}, parent="x")),
    ),
    (
        "order.mass-balance",
        fork_and(lambda b: b.fork("forky", "a", {"x": -1, "root": -1, "y": 2}, ["y"], parent="x")),
    ),
    ("order.mass-balance", in_world(lambda b: b.end("forky", "a", "root", 999_999_999))),
    ("order.timeline", in_world(lambda b: b.tick("forky", "a", "nowhere"))),
    ("order.timeline", in_world(tick_after_end)),
    ("order.timeline", in_world(endpoint_nowhere)),
    (
        "order.timeline",
        fork_and(lambda b: b.fork("forky", "a", {"root": -2, "x": 2})),
    ),
)
