"""Keep an API key out of every event, log line and error.

Servers echo: OpenAI's 401 quotes the key with its middle starred out, gateways quote whole headers.
What comes back is searched before anything is made of it, so that whatever is built from the
scrubbed octets is clean too.
"""

from __future__ import annotations

from ledger.errors import BadInputError

HIDDEN = "[redacted]"
_CHUNK = 12
"""Echoes of 23 characters or more hold a whole aligned chunk of 12 and are found; `sk-proj-` alone,
which is no secret, is shorter than a chunk and is left."""


class Scrubber:
    """Removes one API key, and long parts of it, from text.

    Raises:
        BadInputError: the key is not printable ASCII without blanks, which would break the header
            that carries it and put it into the client's error message. The key is not shown.
    """

    def __init__(self, key: str | None) -> None:
        self._key = key or ""
        if not (self._key.isascii() and self._key.isprintable()) or " " in self._key:
            raise BadInputError(
                "the API key holds characters that a header cannot",
                remedy="Check the environment variable for line breaks and blanks.",
            )
        size = len(self._key)
        starts = range(0, size - _CHUNK + 1, _CHUNK) if size > _CHUNK else range(min(size, 1))
        self._chunks = tuple(self._key[at : at + _CHUNK] for at in starts)
        self._octets = tuple(chunk.encode() for chunk in self._chunks)

    def text(self, text: str) -> str:
        """Return the text with the key, or whatever part of it stands there, replaced."""
        for chunk in self._chunks:
            while (at := text.find(chunk)) >= 0:
                start, stop = self._widest(text, at, chunk)
                text = f"{text[:start]}{HIDDEN}{text[stop:]}"
        return text

    def octets(self, data: bytes) -> bytes:
        """Return the octets with the key replaced; the same object where it does not occur."""
        if not self.is_in(data):
            return data
        # latin-1 maps each octet to one character and back; the key is ASCII.
        return self.text(data.decode("latin-1")).encode("latin-1")

    def is_in(self, data: bytes) -> bool:
        """Say whether the key or a long part of it occurs (about 0.2 us a chunk and kilobyte)."""
        return any(chunk in data for chunk in self._octets)

    def is_whole_in(self, data: bytes) -> bool:
        """Say whether the whole key occurs."""
        return bool(self._key) and self._key.encode() in data

    def _widest(self, text: str, at: int, chunk: str) -> tuple[int, int]:
        """Grow a hit to both sides as far as text and key agree."""
        in_key = self._key.index(chunk)
        start, stop, left, right = at, at + len(chunk), in_key, in_key + len(chunk)
        while start > 0 and left > 0 and text[start - 1] == self._key[left - 1]:
            start, left = start - 1, left - 1
        while stop < len(text) and right < len(self._key) and text[stop] == self._key[right]:
            stop, right = stop + 1, right + 1
        return start, stop
