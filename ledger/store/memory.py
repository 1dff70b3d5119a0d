"""The store in memory: for tests, for worked examples, and as the oracle of the SQLite store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ledger.clock import Clock
from ledger.envelope import check_log_id, parse_envelope
from ledger.errors import BadInputError, HeadMovedError, LedgerFileError
from ledger.ids import Entropy
from ledger.store.port import EMPTY_HEAD, Draft, Head, Record
from ledger.store.sequence import (
    Stamp,
    check_same_body,
    check_target,
    place_drafts,
    twice_in_one_append,
)


class MemoryStore:
    """A list of records behind the store port; one thread, no file."""

    def __init__(self, *, log_id: str, clock: Clock, entropy: Entropy) -> None:
        self._log = check_log_id(log_id)
        self._clock = clock
        self._entropy = entropy
        self._records: list[Record] = []
        self._keys: dict[str, int] = {}
        self._streams: Counter[str] = Counter()
        self._is_closed = False

    def head(self) -> Head:
        """Return the present head."""
        self._check_open()
        if not self._records:
            return EMPTY_HEAD
        return Head(len(self._records), self._records[-1].leaf)

    def append(
        self, drafts: Iterable[Draft], *, expected_head: Head | None = None
    ) -> Sequence[int]:
        """Append all drafts or none (see Store.append)."""
        self._expect(expected_head)
        seqs: list[int] = []
        fresh: list[Draft] = []
        keys: set[str] = set()
        for draft in drafts:
            key = draft.idem_key
            if key is not None:
                if key in keys:
                    raise twice_in_one_append(key)
                keys.add(key)
            if key is not None and key in self._keys:
                check_same_body(self._records[self._keys[key]], draft)
                seqs.append(self._keys[key])
            else:
                seqs.append(len(self._records) + len(fresh))
                fresh.append(draft)
        self._place(fresh)
        return seqs

    def _place(self, drafts: list[Draft]) -> None:
        placed = list(
            place_drafts(
                drafts,
                log=self._log,
                head=self.head(),
                stamp=Stamp.take(self._clock, self._entropy),
                stream_size=self._streams.__getitem__,
                checked=set(),
            )
        )
        for event in placed:
            fields = parse_envelope(event.envelope)
            self._records.append(
                Record(event.envelope, event.leaf, event.salt, event.payload, fields)
            )
            self._streams[event.stream] += 1
            if event.idem_key is not None:
                self._keys[event.idem_key] = event.seq

    def read(self, start: int = 0, stop: int | None = None) -> Iterator[Record]:
        """Yield the records with start <= seq < stop (see Store.read)."""
        size = self.head().size
        last = size if stop is None else min(stop, size)
        yield from self._records[max(start, 0) : max(last, 0)]

    def redact(self, target_seq: int, draft: Draft, *, expected_head: Head | None = None) -> int:
        """Append `draft` and forget salt and bytes of the target (see Store.redact)."""
        self._expect(expected_head)
        check_target(next(self.read(target_seq, target_seq + 1), None), target_seq)
        if draft.idem_key in self._keys:
            raise BadInputError(f"the key {draft.idem_key!r} of a redaction is used already")
        (seq,) = self.append([draft])
        self._records[target_seq] = replace(self._records[target_seq], salt=None, payload=None)
        return seq

    def close(self) -> None:
        """Refuse everything from here on."""
        self._is_closed = True

    def _expect(self, head: Head | None) -> None:
        present = self.head()
        if head is not None and head != present:
            raise HeadMovedError("another writer appended first. Read the log again and retry.")

    def _check_open(self) -> None:
        if self._is_closed:
            raise LedgerFileError("this ledger is closed. Open it again.")
