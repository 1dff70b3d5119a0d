"""The journal: many coroutines write to one ledger through one thread, in groups.

A ledger file has one connection and one thread. What arrives while an append is under way goes out
together in the next one, so that a thousand calls do not cost a thousand fsyncs, and a lone call
still waits for nobody. Whoever is told a seq can rely on it: the event is on disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Self, TypeVar

from ledger.errors import LedgerError
from ledger.session import DecideOne, Session

T = TypeVar("T")


class Journal:
    """An asyncio front to one `Session`; use it in an `async with` statement.

    Args:
        open_session: opens the session, in the journal's own thread.
    """

    def __init__(self, open_session: Callable[[], Session]) -> None:
        self._open_session = open_session
        self._session: Session | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="journal")
        self._waiting: list[tuple[DecideOne, asyncio.Future[int]]] = []
        self._pump: asyncio.Task[None] | None = None
        self._appends = 0

    @property
    def appends(self) -> int:
        """How many groups were appended."""
        return self._appends

    async def __aenter__(self) -> Self:
        """Open the session.

        Raises:
            LedgerFileError, DamagedLedgerError: as opening the store does.
        """
        try:
            self._session = await self._call(self._open_session)
        except BaseException:
            self._thread.shutdown()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Write what still waits, then close the store."""
        try:
            while self._pump is not None and not self._pump.done():
                await asyncio.wait([self._pump])
            await self._call(self._opened().store.close)
        finally:
            self._thread.shutdown()

    async def write(self, decide: DecideOne) -> int:
        """Decide on the state as it will be, append one event, and return its seq once on disk.

        A caller that is cancelled meanwhile does not stop its event: it was paid for.

        Raises:
            OrderError, WithheldError, BadInputError: this event was refused; nothing was written.
            LedgerFileError: the ledger cannot be written.
        """
        done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append((decide, done))
        if self._pump is None or self._pump.done():
            self._pump = asyncio.get_running_loop().create_task(self._write_groups())
        return await done

    async def read(self, look: Callable[[Session], T]) -> T:
        """Run a function over the session in its thread, between two appends."""
        session = self._opened()
        return await self._call(lambda: look(session))

    async def _write_groups(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting, []
            outcomes: Sequence[int | Exception]
            try:
                decides = [decide for decide, _ in group]
                outcomes = await self._call(lambda d=decides: self._opened().commit_each(d))  # type: ignore[misc]
                self._appends += 1
            except Exception as error:  # noqa: BLE001 - each writer is told, none waits for ever
                outcomes = [error] * len(group)
            for (_, done), outcome in zip(group, outcomes, strict=True):
                _tell(done, outcome)

    async def _call(self, work: Callable[[], T]) -> T:
        # Shielded: a cancelled waiter must not leave a thread at work on a store that is closed.
        loop = asyncio.get_running_loop()
        return await asyncio.shield(loop.run_in_executor(self._thread, work))

    def _opened(self) -> Session:
        if self._session is None:
            raise LedgerError("the journal is not open")
        return self._session


def _tell(done: asyncio.Future[int], outcome: int | Exception) -> None:
    if done.done():
        return
    if isinstance(outcome, int):
        done.set_result(outcome)
    else:
        done.set_exception(outcome)
