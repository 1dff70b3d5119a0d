"""The store in memory: for tests, for worked examples, and as the oracle of the SQLite store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from ledger.clock import Clock, format_moment
from ledger.envelope import parse_envelope
from ledger.errors import BadInputError, HeadMovedError
from ledger.ids import Entropy
from ledger.store.port import EMPTY_HEAD, Draft, Head, Record
from ledger.store.sequence import Stamp, place_drafts, same_body


class MemoryStore:
    """A list of records behind the store port; one thread, no file."""

    def __init__(self, *, log_id: str, clock: Clock, entropy: Entropy) -> None:
        self._log = log_id
        self._clock = clock
        self._entropy = entropy
        self._records: list[Record] = []
        self._keys: dict[str, int] = {}
        self._streams: Counter[str] = Counter()

    def head(self) -> Head:
        """Return the present head."""
        if not self._records:
            return EMPTY_HEAD
        return Head(len(self._records), self._records[-1].leaf)

    def append(
        self, drafts: Iterable[Draft], *, expected_head: Head | None = None
    ) -> Sequence[int]:
        """Append all drafts or none (see Store.append)."""
        if expected_head is not None and expected_head != self.head():
            raise HeadMovedError("another writer appended first. Read the log again and retry.")
        seqs: list[int] = []
        fresh: list[Draft] = []
        keys: set[str] = set()
        for draft in drafts:
            key = draft.idem_key
            if key is not None and key in self._keys:
                seqs.append(same_body(self._records[self._keys[key]], draft).seq)
                continue
            if key is not None and key in keys:
                raise BadInputError("an idempotency key stands twice in one append")
            if key is not None:
                keys.add(key)
            seqs.append(len(self._records) + len(fresh))
            fresh.append(draft)
        self._place(fresh)
        return seqs

    def _place(self, drafts: list[Draft]) -> None:
        moment = self._clock()
        stamp = Stamp(format_moment(moment), int(moment.timestamp() * 1000), self._entropy)
        placed = list(
            place_drafts(
                drafts,
                log=self._log,
                head=self.head(),
                stamp=stamp,
                stream_size=self._streams.__getitem__,
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
        """Yield the records with start <= seq < stop."""
        yield from self._records[start:stop]

    def redact(self, target_seq: int, draft: Draft) -> int:
        """Append `draft` and forget salt and bytes of the target."""
        if not 0 <= target_seq < len(self._records):
            raise BadInputError(f"there is no event {target_seq} to redact")
        (seq,) = self.append([draft])
        self._records[target_seq] = replace(self._records[target_seq], salt=None, payload=None)
        return seq

    def close(self) -> None:
        """Nothing to release."""
