"""How many calls may be in flight to one provider: a limit that learns from 429s.

Additive increase, multiplicative decrease, as TCP does it (RFC 5681): from a modest start the
limit grows by one a success until the first 429, after that by one a full round of successes; a 429
halves it. All calls that were in flight when it halved answer for the old limit: their 429s do not
halve it again. A limit that is not reached does not grow, since nothing was learnt about it. A 429
that says how long to wait closes the gate for everybody until then: the quota is the account's and
not the call's.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from forecasting.ports import CallFailure
from forecasting.retry import Sleep
from ledger.errors import BadInputError, BugError

DEFAULT_START = 20
"""Calls at once before anything is known of the provider."""


@dataclass(slots=True)
class Slot:
    """The right to have one call in flight; `epoch` counts the halvings before it began."""

    epoch: int
    failure: CallFailure | None = None


class AdaptiveLimit:
    """A first-come-first-served gate in front of one provider. One event loop; not thread-safe.

    Args:
        ceiling: calls in flight at most, as the user asked.
        monotonic_s: seconds that never go back.
        sleep: waits that many seconds.
        start: calls in flight at first; by default 20, or the ceiling where that is lower.

    Raises:
        BadInputError: a ceiling or start below 1, or a start above the ceiling.
    """

    def __init__(
        self,
        ceiling: int,
        *,
        monotonic_s: Callable[[], float],
        sleep: Sleep,
        start: int | None = None,
    ) -> None:
        first = min(ceiling, DEFAULT_START) if start is None else start
        if not 1 <= first <= ceiling:
            raise BadInputError(
                f"a limit that starts at {first} and ends at {ceiling} is none",
                where="concurrency",
                remedy="Give a whole number from 1.",
            )
        self._ceiling = ceiling
        self._monotonic_s = monotonic_s
        self._sleep = sleep
        self._limit = first
        self._in_flight = 0
        self._epoch = 0
        self._successes = 0
        self._closed_until_s = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._opener: asyncio.Task[None] | None = None

    @property
    def limit(self) -> int:
        """Calls that may be in flight now."""
        return self._limit

    @property
    def in_flight(self) -> int:
        """Calls that are in flight now."""
        return self._in_flight

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[Slot]:
        """Wait for a slot and hold it; say on it how the call went (`slot.failure`).

        A call that raises, such as a cancelled one, teaches nothing.
        """
        held = await self._acquire()
        try:
            yield held
        except BaseException:
            self._free()
            raise
        self._learn(held)
        self._free()

    async def _acquire(self) -> Slot:
        if self._in_flight < self._limit and not self._waiting and self._is_open():
            self._in_flight += 1
            return Slot(self._epoch)
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._let_in()
        try:
            await turn
        except asyncio.CancelledError:
            # Cancelled with the slot already given: pass it on, else it would be lost.
            if turn.done() and not turn.cancelled():
                self._free()
            elif turn in self._waiting:
                self._waiting.remove(turn)
            raise
        return Slot(self._epoch)

    def _free(self) -> None:
        if self._in_flight < 1:
            raise BugError("a slot was given back twice")
        self._in_flight -= 1
        self._let_in()

    def _let_in(self) -> None:
        """Give free slots to those who wait, in order."""
        while self._waiting and self._in_flight < self._limit:
            if not self._is_open():
                self._open_later()
                return
            turn = self._waiting.popleft()
            if not turn.done():
                self._in_flight += 1
                turn.set_result(None)

    def _learn(self, held: Slot) -> None:
        failure = held.failure
        if failure is None:
            self._grow()
        elif failure.kind == "rate_limited":
            self._shrink(held.epoch)
            wait_s = (failure.retry_after_ms or 0) / 1000
            self._closed_until_s = max(self._closed_until_s, self._monotonic_s() + wait_s)

    def _grow(self) -> None:
        self._successes += 1
        # Before the first 429 every success counts: the limit doubles a round (slow start).
        is_due = self._epoch == 0 or self._successes >= self._limit
        is_reached = self._waiting or self._in_flight >= self._limit
        if is_due and is_reached and self._limit < self._ceiling:
            self._limit += 1
            self._successes = 0

    def _shrink(self, epoch: int) -> None:
        if epoch == self._epoch:
            self._limit = max(1, self._limit // 2)
            self._epoch += 1
            self._successes = 0

    def _is_open(self) -> bool:
        return self._closed_until_s <= self._monotonic_s()

    def _open_later(self) -> None:
        if self._opener is None or self._opener.done():
            self._opener = asyncio.get_running_loop().create_task(self._open_when_due())

    async def _open_when_due(self) -> None:
        # Again and again: another 429 may have moved the moment while this slept.
        while self._waiting and not self._is_open():
            await self._sleep(self._closed_until_s - self._monotonic_s())
        self._opener = None
        self._let_in()
