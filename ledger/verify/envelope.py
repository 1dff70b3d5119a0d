"""The form of an envelope, read from its stored bytes (docs/spec/event-log.md, rules 1 to 6).

All strings of an envelope are printable ASCII without quote and backslash, so its canonical form is
a regular language: one match says that an envelope is whole, canonical and of the right types. Only
what does not match is parsed, to say what is wrong.

Cost: 3 us an envelope.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import NamedTuple

from ledger.verify.canonical import MAX_INTEGER, JsonError, is_canonical, parse_json
from ledger.verify.text import show

MAX_ENVELOPE_BYTES = 16_384
JSON_MEDIA = "application/json"

_TOKEN = r"[ !#-\[\]-~]{1,300}"  # noqa: S105 - the form of an envelope's strings
_INTEGER = r"0|[1-9][0-9]{0,15}"
_HEX = r"[0-9a-f]{64}"
_UUID7 = r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
_MOMENT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]\.[0-9]{6}Z"
_FIELDS = {
    "v": r"1",
    "log": _UUID7,
    "seq": _INTEGER,
    "id": _UUID7,
    "type": _TOKEN,
    "type_v": _INTEGER,
    "stream": _TOKEN,
    "stream_seq": _INTEGER,
    "actor": _TOKEN,
    "recorded_at": _MOMENT,
    "idem_key": _TOKEN,
    "causation": _TOKEN,
    "correlation": _TOKEN,
    "prev": _HEX,
}
_PAYLOAD_FIELDS = {"commitment": _HEX, "length": _INTEGER, "media": _TOKEN}
_NULLABLE = frozenset({"idem_key", "causation", "correlation"})
_INTEGERS = frozenset({"v", "seq", "type_v", "stream_seq", "length"})


class Envelope(NamedTuple):
    """The fields of an envelope, those of its `payload` object among them."""

    actor: str
    causation: str | None
    correlation: str | None
    id: str
    idem_key: str | None
    log: str
    commitment: str
    length: int
    media: str
    prev: str
    recorded_at: str
    seq: int
    stream: str
    stream_seq: int
    type: str
    type_v: int


class Flaw(NamedTuple):
    """What is wrong with some bytes: a rule id and one sentence."""

    rule: str
    message: str


def read_envelope(data: bytes) -> tuple[Envelope | None, list[Flaw]]:
    """Read an envelope, and say everything that is wrong with its bytes.

    Returns:
        The envelope, None where its fields cannot be told; and the flaws, none for a good one. An
        envelope that is only too long or not in canonical form is returned with its flaw.
    """
    match = _CANONICAL.fullmatch(data.decode("latin-1"))
    if match is not None:
        envelope = _from_match(match)
        if envelope is not None and len(data) <= MAX_ENVELOPE_BYTES:
            return envelope, []
    flaws = []
    if len(data) > MAX_ENVELOPE_BYTES:
        flaws.append(Flaw("envelope.size", f"the envelope has {len(data)} bytes"))
    try:
        value = parse_json(data)
    except JsonError as error:
        flaws.append(Flaw("envelope.json", f"the envelope is not strict JSON: {error}"))
        return None, flaws
    envelope, wrong = _from_value(value)
    if wrong:
        flaws.append(Flaw("envelope.form", wrong))
    if not is_canonical(data, value):
        flaws.append(Flaw("envelope.canonical", "the envelope is not in its canonical form"))
    return envelope, flaws


def is_moment(text: str) -> bool:
    """Say whether the text is a moment in its one form, `YYYY-MM-DDTHH:MM:SS.ffffffZ`."""
    return _MOMENT_FORM.fullmatch(text) is not None and _is_in_calendar(text)


def _string(form: str) -> str:
    return f'"({form})"'


def _field(key: str) -> str:
    form = {**_FIELDS, **_PAYLOAD_FIELDS}[key]
    if key in _INTEGERS:
        return f'"{key}":({form})'
    if key in _NULLABLE:
        return f'"{key}":(?:null|{_string(form)})'
    return f'"{key}":{_string(form)}'


def _pattern() -> re.Pattern[str]:
    payload = ",".join(_field(key) for key in sorted(_PAYLOAD_FIELDS))
    parts = {key: _field(key) for key in _FIELDS} | {"payload": f'"payload":\\{{{payload}\\}}'}
    return re.compile("\\{" + ",".join(parts[key] for key in sorted(parts)) + "\\}")


_CANONICAL = _pattern()
_MOMENT_FORM = re.compile(_MOMENT)
_FORMS = {key: re.compile(form) for key, form in {**_FIELDS, **_PAYLOAD_FIELDS}.items()}


def _from_match(match: re.Match[str]) -> Envelope | None:
    fields = match.groups()
    seq, stream_seq, type_v, length = (int(fields[i]) for i in (11, 13, 15, 7))
    if max(seq, stream_seq, type_v, length) > MAX_INTEGER or not _is_in_calendar(fields[10]):
        return None
    return Envelope._make(
        (*fields[:7], length, *fields[8:11], seq, fields[12], stream_seq, fields[14], type_v)
    )


def _from_value(value: object) -> tuple[Envelope | None, str]:
    if not isinstance(value, dict) or value.keys() != {*_FIELDS, "payload"}:
        return None, f"the envelope does not have exactly the 15 keys: {_odd_keys(value)}"
    payload = value["payload"]
    if not isinstance(payload, dict) or payload.keys() != _PAYLOAD_FIELDS.keys():
        return None, "the envelope's payload does not have exactly commitment, length and media"
    fields = {**value, **payload}
    for key, form in _FORMS.items():
        item = fields[key]
        if item is None and key in _NULLABLE:
            continue
        kind = int if key in _INTEGERS else str
        if type(item) is not kind or form.fullmatch(str(item)) is None:
            return None, f"the envelope's {key} is {show(item)}"
    if not _is_in_calendar(fields["recorded_at"]):
        return None, f"the envelope's recorded_at is no time: {show(fields['recorded_at'])}"
    return Envelope(**{key: fields[key] for key in Envelope._fields}), ""


def _odd_keys(value: object) -> str:
    if not isinstance(value, dict):
        return "it is no object"
    return show(sorted(value.keys() ^ {*_FIELDS, "payload"}))


def _is_in_calendar(moment: str) -> bool:
    try:
        datetime.fromisoformat(moment)
    except ValueError:
        return False
    return True
