"""The structure pass: numbering, index columns, and the form of each envelope and payload.

It turns rows into events for the order rules. What cannot be read stays an event without payload:
its type still counts.

Cost: about 25 us an event of 1 kB.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from ledger.verify.canonical import JsonError, is_canonical, parse_json
from ledger.verify.envelope import JSON_MEDIA, Envelope, Flaw, read_envelope
from ledger.verify.integrity import SALT_BYTES
from ledger.verify.payloads import FORMS
from ledger.verify.reading import Row
from ledger.verify.report import Findings
from ledger.verify.text import plural, show


class RowSource(Protocol):
    """Where the structure pass reads from: a file, or rows in memory."""

    def rows(self) -> Iterator[Row]:
        """Yield all rows in order of seq."""


class Event(NamedTuple):
    """An event as the order rules see it; `payload` is None where it cannot be read."""

    seq: int
    envelope: Envelope
    payload: dict[str, Any] | None

    @property
    def type(self) -> str:
        """Wire name."""
        return self.envelope.type


@dataclass(slots=True)
class Seen:
    """What the structure pass remembers from one event to the next."""

    log: str | None = None
    next_row: int = 0
    offset: int = 0
    recorded_at: str = ""
    ids: set[int] = field(default_factory=set)
    streams: dict[str, int] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Hidden:
    """A payload that is not there.

    Attributes:
        commitment: what the envelope says of it.
        leftovers: whether salt or bytes are there nevertheless.
        has_row: whether there is a row for it.
    """

    commitment: str
    leftovers: bool
    has_row: bool


@dataclass(slots=True)
class Structure:
    """One structure pass: iterate `events`, then read `hidden`."""

    source: RowSource
    findings: Findings
    seen: Seen = field(default_factory=Seen)
    hidden: dict[int, Hidden] = field(default_factory=dict)

    def events(self) -> Iterator[Event]:
        """Yield every event whose envelope can be read, reporting on all rows."""
        for row in self.source.rows():
            self._check_row_number(row.seq)
            if not isinstance(row.envelope, bytes):
                message = f"no envelope of bytes that could be read: {show(row.envelope)}"
                self.findings.add("envelope.size", row.seq, message)
                continue
            envelope, flaws = read_envelope(row.envelope)
            self._report(row.seq, flaws)
            if envelope is None:
                continue
            self._check_columns(row, envelope)
            self._check_sequence(row.seq, envelope)
            yield Event(row.seq, envelope, self._read_payload(row, envelope))

    def judge_hidden(self, redactions: dict[int, int]) -> None:
        """Tell redacted payloads from lost ones, once all redactions are known.

        Args:
            redactions: seq of each redacted event and of the `payload.redacted` that names it.
        """
        for seq, hidden in self.hidden.items():
            by = redactions.get(seq)
            if not hidden.has_row:
                self.findings.add("payload.lost", seq, "the event has no row in payloads")
            elif by is None:
                self.findings.add(
                    "payload.lost", seq, "salt or bytes are gone and no payload.redacted says so"
                )
            else:
                self.findings.add("payload.withheld", seq, f"redacted by event {by}")
                if hidden.leftovers:
                    self._note_leftovers(seq, by)
        for seq, by in redactions.items():
            if seq not in self.hidden and 0 <= seq < self.seen.next_row:
                self._note_leftovers(seq, by)

    def _note_leftovers(self, seq: int, by: int) -> None:
        self.findings.add(
            "redaction.present", seq, f"redacted by event {by}, and bytes of it are still stored"
        )

    def _report(self, seq: int, flaws: Iterable[Flaw]) -> None:
        for flaw in flaws:
            self.findings.add(flaw.rule, seq, flaw.message)

    def _check_row_number(self, seq: int) -> None:
        due = self.seen.next_row
        if seq != due:
            gone = f"events {due} to {seq - 1} are" if seq - due > 1 else f"event {due} is"
            what = f"{gone} missing" if seq > due else f"a row {seq} stands before row {due}"
            self.findings.add("log.seq", due, what)
        self.seen.next_row = seq + 1

    def _check_columns(self, row: Row, envelope: Envelope) -> None:
        index = (
            ("prev", row.prev, bytes.fromhex(envelope.prev)),
            ("type", row.type, envelope.type.encode()),
            ("stream", row.stream, envelope.stream.encode()),
            ("stream_seq", row.stream_seq, envelope.stream_seq),
            ("idem_key", row.idem_key, None if (k := envelope.idem_key) is None else k.encode()),
        )
        for name, stored, said in index:
            if stored != said:
                self.findings.add(
                    "store.column", row.seq, f"the column {name} differs from the envelope"
                )

    def _check_sequence(self, seq: int, envelope: Envelope) -> None:
        seen, add = self.seen, self.findings.add
        # A shift is reported where it begins, and not again for each event after it.
        if envelope.seq - seq != seen.offset:
            add("log.seq", seq, f"row {seq} holds the envelope of event {envelope.seq}")
            seen.offset = envelope.seq - seq
        if seen.log is None:
            seen.log = envelope.log
        elif envelope.log != seen.log:
            add("log.log", seq, f"the event is of the log {envelope.log}, not {seen.log}")
        number = int(envelope.id.replace("-", ""), 16)
        if number in seen.ids:
            add("log.id", seq, f"the id {envelope.id} is an earlier event's")
        seen.ids.add(number)
        due = seen.streams.get(envelope.stream, 0)
        if envelope.stream_seq != due:
            stream = show(envelope.stream)
            add("log.stream", seq, f"number {envelope.stream_seq} of {stream}, where {due} is due")
        seen.streams[envelope.stream] = envelope.stream_seq + 1
        if envelope.idem_key is not None:
            if envelope.idem_key in seen.keys:
                add("log.key", seq, f"the key {show(envelope.idem_key)} is an earlier event's")
            seen.keys.add(envelope.idem_key)
        if envelope.recorded_at < seen.recorded_at:
            add("time.backwards", seq, f"{envelope.recorded_at} is before {seen.recorded_at}")
        seen.recorded_at = envelope.recorded_at

    def _read_payload(self, row: Row, envelope: Envelope) -> dict[str, Any] | None:
        form = FORMS.get((envelope.type, envelope.type_v))
        if form is None:
            kind = f"{show(envelope.type)} version {envelope.type_v}"
            self.findings.add("event.unknown", row.seq, f"{kind} is not in the vocabulary")
        data = self._payload_bytes(row, envelope)
        if data is None or (form is None and envelope.media != JSON_MEDIA):
            return None
        if envelope.media != JSON_MEDIA:
            message = f"a payload of media type {show(envelope.media)}, not {JSON_MEDIA}"
            self.findings.add("payload.form", row.seq, message)
            return None
        try:
            value = parse_json(data)
        except JsonError as error:
            self.findings.add("payload.json", row.seq, f"the payload is not strict JSON: {error}")
            return None
        if not is_canonical(data, value):
            message = "the payload is not in its canonical form"
            self.findings.add("payload.canonical", row.seq, message)
        if form is None:
            return None
        wrong = form(value)
        if wrong is not None:
            message = f"{envelope.type}: {wrong.lstrip('.').strip()}"
            self.findings.add("payload.form", row.seq, message)
            return None
        payload: dict[str, Any] = value
        return payload

    def _payload_bytes(self, row: Row, envelope: Envelope) -> bytes | None:
        salt, data = row.salt, row.data
        if isinstance(data, int):
            self.findings.add("payload.size", row.seq, f"{plural(data, 'byte')} are not read")
            return None
        if not isinstance(salt, bytes) or not isinstance(data, bytes):
            leftovers = isinstance(salt, bytes) or isinstance(data, bytes)
            has_row = row.payload_seq is not None
            self.hidden[row.seq] = Hidden(envelope.commitment, leftovers, has_row)
            return None
        if len(salt) != SALT_BYTES:
            message = f"the salt has {plural(len(salt), 'byte')}, not {SALT_BYTES}"
            self.findings.add("payload.commitment", row.seq, message)
        return data
