"""Evaluations of the tests: beginnings of one, and a complete one with every event type."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from builders import Book
from plans import DIRECT, FORKY, MIX, RUNNER, UNIFORM

from ledger.decimals import format_units
from ledger.events import prediction
from ledger.events.anchor import PublishedScore


def ready(*methods: dict[str, object], cards: tuple[str, ...] = ("a",), **plan: object) -> Book:
    """Opened, cards frozen and sealed, plan registered."""
    book = Book()
    book.open()
    for card_id in cards:
        book.card(card_id)
        book.seal(card_id)
    book.plan(methods or (DIRECT, UNIFORM), cards, **plan)
    return book


def closed(cards: tuple[str, ...] = ("a",)) -> Book:
    """Ready, predicted and closed."""
    book = ready(cards=cards)
    for card_id in cards:
        book.predict("direct", card_id, "0.7")
    book.close()
    return book


def score_row(method: str, pairs: Sequence[tuple[str, int]]) -> PublishedScore:
    """A published row by hand: exact Brier, log loss clipped to 0.01 and 0.99."""
    values = [(Fraction(p), y) for p, y in pairs]
    brier = sum((p - y) ** 2 for p, y in values) / len(values)
    clipped = [min(max(float(p), 0.01), 0.99) for p, _ in values]
    losses = [-math.log(p if y else 1 - p) for p, (_, y) in zip(clipped, values, strict=True)]
    return PublishedScore(
        method=method,
        n=len(pairs),
        brier=format_units(round(brier * 10**9)),
        log=format_units(round(math.fsum(losses) / len(losses) * 10**9)),
    )


def honest_book() -> Book:
    """One complete evaluation with every event type, and nothing to object to."""
    book = Book()
    book.open()
    for name in ("a", "b"):
        book.card(name)
        book.seal(name, "yes" if name == "a" else "no")
    book.card("c", kind="dossier")
    methods = [DIRECT, RUNNER, FORKY, MIX, UNIFORM]
    book.plan([DIRECT], ["a"])
    book.amend(methods, ["a", "b", "c"])
    book.predict("direct", "a", "0.7")
    book.predict("direct", "b", "0.25")
    for name in ("a", "b"):
        book.start("runner", name)
        book.model_call("runner", name)
        if name == "a":
            book.fail("runner", name)
            book.start("runner", name)
        book.tool_call("runner", name, [{}, {"kept": False, "published": None}])
        book.predict("runner", name, "0.6", kind="run")
        book.start("runner", name, 2)
        book.predict("runner", name, "0.333333333", 2, kind="run")
    secret = _run_world(book, "a")
    _run_world(book, "b")
    mixed = {}
    for name, direct in (("a", "0.7"), ("b", "0.25")):
        mean = Fraction("0.4666666665")
        value = Fraction(direct) * Fraction(2, 5) + round(mean * 10**9) * Fraction(3, 5 * 10**9)
        mixed[name] = format_units(round(value * 10**9))
        book.predict("mix", name, mixed[name], kind="rule")
    book.redact(secret)
    cells = [("direct", 1), ("runner", 1), ("runner", 2), ("forky", 1), ("mix", 1)]
    book.close(*[(method, "c", draw) for method, draw in cells])
    book.anchor()
    book.unseal("a")
    opened = book.unseal("b")
    book.revise("b", opened, "yes")
    book.report(
        score_row("direct", [("0.7", 1), ("0.25", 1)]),
        score_row("runner", [("0.466666666", 1), ("0.466666666", 1)]),
        score_row("forky", [("0.8", 1), ("0.8", 1)]),
        score_row("mix", [(mixed["a"], 1), (mixed["b"], 1)]),
        score_row("uniform", [("0.5", 1), ("0.5", 1)]),
    )
    book.annul("c")
    return book


def _run_world(book: Book, name: str) -> int:
    book.start("forky", name)
    secret = book.model_call("forky", name, prompt_version="narrator-2")
    book.world("forky", name)
    book.tick("forky", name)
    book.fork("forky", name, {"root": -600_000_000, "left": 400_000_000, "right": 200_000_000})
    book.touch_endpoints("forky", name)
    for timeline, mass in (("root", 400_000_000), ("left", 400_000_000), ("right", 200_000_000)):
        book.end("forky", name, timeline, mass)
    book.claim("forky", name)
    book.predict(
        "forky",
        name,
        "0.8",
        kind="run",
        extraction_rule="candidate-status/1",
        interval=prediction.Interval(low="0.8", high="1"),
        unresolved_mass_units=200_000_000,
        rejected_endpoints=(prediction.RejectedEndpoint(endpoint="aux", reason="Not binary."),),
    )
    return secret
