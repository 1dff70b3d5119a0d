"""The one loop with effects: read the log, decide, append, and try again if another was faster.

    state = fold(events);  payloads = decide(state);  guard each;  append(expected_head)

`decide` is pure: it gets the protocol state and returns payloads. Nothing reaches the store without
passing the order rules, and nothing is half-written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from ledger.clock import Clock, format_moment
from ledger.errors import BugError, HeadMovedError, LedgerError
from ledger.events.anchor import PayloadRedacted
from ledger.events.base import Payload
from ledger.events.codec import Event, draft_event, read_event
from ledger.protocol.guard import guard
from ledger.protocol.state import ProtocolState, apply
from ledger.store.port import Draft, Head, Store

Decide = Callable[[ProtocolState], Iterable[Payload]]

_RETRIES = 100


class Session:
    """A writer's view of one ledger: its protocol state, and the way to add to it."""

    def __init__(self, store: Store, *, clock: Clock, actor: str) -> None:
        self._store = store
        self._clock = clock
        self._actor = actor
        self._state = ProtocolState()
        self._head = Head(0, b"")

    @property
    def store(self) -> Store:
        """The store behind the session."""
        return self._store

    def state(self) -> ProtocolState:
        """Return the protocol state at the present head; reads only what is new."""
        head = self._store.head()
        for record in self._store.read(self._state.size, head.size):
            self._state = apply(self._state, read_event(record))
        self._head = head
        return self._state

    def commit(self, decide: Decide, *, correlation: str | None = None) -> Sequence[int]:
        """Decide on the present state and append what was decided, all or nothing.

        Returns:
            The seq of each payload, in order; empty where nothing was decided.

        Raises:
            OrderError: an order rule forbids one of the payloads.
            HeadMovedError: other writers were faster a hundred times in a row.
        """
        for _ in range(_RETRIES):
            try:
                return self._try_commit(decide, correlation)
            except HeadMovedError:
                self._forget()
        raise HeadMovedError("the ledger is too busy: another writer was faster each time.")

    def redact(self, target_seq: int, *, reason: str, authority: str) -> int:
        """Append `payload.redacted` and delete the target's salt and bytes; return its seq.

        Raises:
            OrderError: event 0, an event that does not exist, or one that is redacted already.
        """
        state = self.state()
        record = next(iter(self._store.read(target_seq, target_seq + 1)), None)
        payload = PayloadRedacted(
            target_seq=target_seq,
            commitment=record.fields["payload"]["commitment"] if record else "0" * 64,
            reason=reason,
            authority=authority,
        )
        guard(state, payload, recorded_at=format_moment(self._clock()))
        return self._store.redact(target_seq, draft_event(payload, actor=self._actor))

    def _try_commit(self, decide: Decide, correlation: str | None) -> Sequence[int]:
        state = self.state()
        now = self._clock()
        head = self._head
        try:
            drafts = [self._admit(state, p, now, correlation) for p in decide(state)]
            if not drafts:
                return ()
            seqs = self._store.append(drafts, expected_head=head)
        except LedgerError:
            # The state already holds what was not written: read it again next time.
            self._forget()
            raise
        if len(seqs) != len(drafts) or seqs[0] != head.size:
            raise BugError("the store placed guarded events elsewhere than behind the head")
        self._head = self._store.head()
        return seqs

    def _admit(
        self, state: ProtocolState, payload: Payload, now: datetime, correlation: str | None
    ) -> Draft:
        recorded_at = format_moment(now)
        guard(state, payload, recorded_at=recorded_at)
        draft = draft_event(payload, actor=self._actor, correlation=correlation)
        apply(state, Event(state.size, draft.type, recorded_at, payload, "read"))
        return draft

    def _forget(self) -> None:
        self._state = ProtocolState()
