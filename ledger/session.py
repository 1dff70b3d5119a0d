"""The one loop with effects: read the log, decide, append, and try again if another was faster.

    state = fold(events);  payloads = decide(state);  guard each;  append(expected_head)

`decide` is pure: it gets the protocol state and returns payloads. Nothing reaches the store without
passing the order rules, and nothing is half-written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ledger.clock import Clock, format_moment
from ledger.envelope import FIRST_PREV
from ledger.errors import (
    BadInputError,
    BugError,
    HeadMovedError,
    LedgerError,
    OrderError,
    WithheldError,
)
from ledger.events.anchor import PayloadRedacted
from ledger.events.base import Payload
from ledger.events.codec import Event, draft_event, read_event
from ledger.protocol.guard import guard
from ledger.protocol.state import ProtocolState, apply
from ledger.store.port import EMPTY_HEAD, Draft, Head, Store

Decide = Callable[[ProtocolState], Iterable[Payload]]
DecideOne = Callable[[ProtocolState], Payload]

_RETRIES = 100


class Session:
    """A writer's view of one ledger: its protocol state, and the way to add to it.

    The state holds what is written and nothing else, whatever a `decide` or an append raises, so
    that each stored event is read and folded once.
    """

    def __init__(self, store: Store, *, clock: Clock, actor: str) -> None:
        self._store = store
        self._clock = clock
        self._actor = actor
        self._state = ProtocolState()
        self._head = EMPTY_HEAD

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

        Args:
            decide: gets the state and returns payloads. The state of a generator goes on with what
                it has yielded, so that a closing can count the blends decided just before it.
            correlation: a token for all the events, or None.

        Returns:
            The seq of each payload, in order; empty where nothing was decided.

        Raises:
            OrderError: an order rule forbids one of the payloads.
            WithheldError: a redacted payload would have to answer.
            HeadMovedError: other writers were faster a hundred times in a row.
        """
        for _ in range(_RETRIES):
            try:
                return self._try_commit(decide, correlation)
            except HeadMovedError:
                continue
        raise HeadMovedError("the ledger is too busy: another writer was faster each time.")

    def commit_each(self, decides: Sequence[DecideOne]) -> list[int | LedgerError]:
        """Decide one event each and append all together; a refused one disturbs none of the others.

        Each `decide` sees the state that the ones before it lead to. One append, hence one fsync,
        for all: this is the group commit of whoever writes for many at once.

        Returns:
            For each `decide`, in order, the seq of its event or the OrderError, WithheldError or
            BadInputError that refused it; a refused one wrote nothing.

        Raises:
            HeadMovedError: other writers were faster a hundred times in a row.
        """
        for _ in range(_RETRIES):
            try:
                return self._try_commit_each(decides)
            except HeadMovedError:
                continue
        raise HeadMovedError("the ledger is too busy: another writer was faster each time.")

    def redact(self, target_seq: int, *, reason: str, authority: str) -> int:
        """Append `payload.redacted` and delete the target's salt and bytes; return its seq.

        Raises:
            OrderError: event 0, an event that does not exist, or one that is redacted already.
            HeadMovedError: other writers were faster a hundred times in a row.
        """
        for _ in range(_RETRIES):
            try:
                return self._try_redact(target_seq, reason, authority)
            except HeadMovedError:
                continue
        raise HeadMovedError("the ledger is too busy: another writer was faster each time.")

    def _try_commit(self, decide: Decide, correlation: str | None) -> Sequence[int]:
        state, head = self.state(), self._head
        recorded_at = format_moment(self._clock())
        decided = decide(state)
        # A list of one is judged and appended before the state changes: nothing to go back to.
        is_one = isinstance(decided, list) and len(decided) == 1
        before = state if is_one else state.copy()
        drafts: list[Draft] = []
        events: list[Event] = []
        try:
            for payload in decided:
                if isinstance(payload, PayloadRedacted):
                    # It would say that bytes are gone, and they would not be.
                    raise BugError("a redaction is written by Session.redact alone")  # noqa: TRY301
                guard(state, payload, recorded_at=recorded_at)
                draft = draft_event(payload, actor=self._actor, correlation=correlation)
                seq = head.size + len(drafts)
                events.append(Event(seq, draft.type, recorded_at, payload, "read"))
                drafts.append(draft)
                if not is_one:
                    apply(state, events[-1])
            if not drafts:
                return ()
            seqs = self._append(drafts, head)
        except BaseException:
            self._state = before
            raise
        if is_one:
            apply(state, events[0])
        return seqs

    def _try_commit_each(self, decides: Sequence[DecideOne]) -> list[int | LedgerError]:
        state, head = self.state(), self._head
        recorded_at = format_moment(self._clock())
        before = state.copy()
        drafts: list[Draft] = []
        outcomes: list[int | LedgerError] = []
        try:
            for decide in decides:
                try:
                    payload = decide(state)
                    if isinstance(payload, PayloadRedacted):
                        raise BugError("a redaction is written by Session.redact alone")
                    guard(state, payload, recorded_at=recorded_at)
                    draft = draft_event(payload, actor=self._actor)
                except (OrderError, WithheldError, BadInputError) as refusal:
                    outcomes.append(refusal)
                    continue
                seq = head.size + len(drafts)
                apply(state, Event(seq, draft.type, recorded_at, payload, "read"))
                drafts.append(draft)
                outcomes.append(seq)
            if drafts:
                self._append(drafts, head)
        except BaseException:
            self._state = before
            raise
        return outcomes

    def _append(self, drafts: list[Draft], head: Head) -> Sequence[int]:
        seqs = self._store.append(drafts, expected_head=head)
        if list(seqs) != list(range(head.size, head.size + len(drafts))):
            raise BugError("the store placed guarded events elsewhere than behind the head")
        return seqs

    def _try_redact(self, target_seq: int, reason: str, authority: str) -> int:
        state = self.state()
        record = next(iter(self._store.read(target_seq, target_seq + 1)), None)
        payload = PayloadRedacted(
            target_seq=target_seq,
            commitment=record.fields["payload"]["commitment"] if record else FIRST_PREV,
            reason=reason,
            authority=authority,
        )
        guard(state, payload, recorded_at=format_moment(self._clock()))
        if record is None or record.payload is None:
            raise OrderError(
                "order.redaction",
                f"the payload of event {target_seq} is gone already",
                seq=target_seq,
                remedy="Name an event that still has its payload.",
            )
        draft = draft_event(payload, actor=self._actor)
        try:
            return self._store.redact(target_seq, draft, expected_head=self._head)
        finally:
            # What the target said must not weigh here any more: no other writer can read it.
            self._state = ProtocolState()
