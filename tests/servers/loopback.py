"""A loopback HTTP server with a script of replies, for tests of clients of real wire formats.

One reply a request, in order; the last one is repeated. A reply may be late, cut off, dropped or
endless. Requests are kept with method, path, query, headers and body.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Reply:
    """One answer and what goes wrong with it.

    Attributes:
        body: sent as JSON unless it is bytes already.
        hang_s: wait before the first byte (the wait ends early when the server stops).
        cut: send the length of the whole body and only this many bytes, then close.
        trickle: send the body a byte at a time, a tenth of a second apart.
        drop: close the connection without an answer.
    """

    body: Any = None
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    media: str = "application/json"
    hang_s: float = 0.0
    cut: int | None = None
    trickle: bool = False
    drop: bool = False

    def octets(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass(frozen=True)
class Seen:
    """A request as it arrived; header names in lower case."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Loopback:
    """A running server. `script` maps a path to its replies, `seen` lists what came."""

    url: str
    script: dict[str, list[Reply]] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def reply(self, path: str, *replies: Reply) -> None:
        self.script[path] = list(replies)

    def at(self, path: str) -> list[Seen]:
        return [request for request in self.seen if request.path == path]

    def take(self, request: Seen) -> Reply:
        with self.lock:
            self.seen.append(request)
            replies = self.script.get(request.path, [])
            if not replies:
                return Reply({"error": f"no route {request.path}"}, status=404)
            return replies.pop(0) if len(replies) > 1 else replies[0]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    loopback: Loopback

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Say nothing."""

    def _answer(self) -> None:
        with suppress(ConnectionError):
            self._write(self.loopback.take(self._read()))

    def _read(self) -> Seen:
        address = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {key.lower(): value for key, value in self.headers.items()}
        return Seen(self.command, address.path, parse_qs(address.query), headers, body)

    def _write(self, reply: Reply) -> None:
        self.loopback.stopped.wait(reply.hang_s)
        if reply.drop:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        body = reply.octets()
        self.send_response(reply.status)
        self.send_header("content-type", reply.media)
        self.send_header("content-length", str(len(body)))
        for name, value in reply.headers:
            self.send_header(name, value)
        self.end_headers()
        if reply.trickle:
            for index in range(len(body)):
                self.wfile.write(body[index : index + 1])
                if self.loopback.stopped.wait(0.1):
                    return
        self.wfile.write(body[: reply.cut])
        if reply.cut is not None:
            self.close_connection = True


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    # The default of 5 resets connections where a test asks many things at once.
    request_queue_size = 256


@contextmanager
def serve() -> Iterator[Loopback]:
    """Run a server on a free port of the loopback address while the block runs."""
    handler = type("Handler", (_Handler,), {})
    server = _Server(("127.0.0.1", 0), handler)
    loopback = Loopback(f"http://127.0.0.1:{server.server_address[1]}")
    handler.loopback = loopback  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield loopback
    finally:
        loopback.stopped.set()
        server.shutdown()
        thread.join()
        server.server_close()
