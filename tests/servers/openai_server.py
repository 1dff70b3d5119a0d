"""A loopback server that speaks Chat Completions and Responses, with faults on demand.

It checks what a real endpoint checks (method, path, authorization, JSON, known members) and answers
with whole documents of the real format. Faults are named and taken in order, one a request; after
them it answers well. Calls are counted by idempotency key, so that a test can compare what was sent
with what was recorded. One asyncio protocol, no framework: a thousand answers a second on one core.

Run by itself for measurements: python tests/servers/openai_server.py --delay-s 0.05
It prints its port, and at the end of its standard input stops.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import threading
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

MODEL = "gpt-5.4-2026-03-05"
ANSWER = '{"rationale":"base rates","p_yes":0.35}'

_CHAT_KEYS = frozenset(
    {"model", "messages", "temperature", "top_p", "presence_penalty", "frequency_penalty", "seed"}
    | {"max_tokens", "max_completion_tokens", "reasoning_effort", "verbosity", "service_tier"}
    | {"store", "provider", "response_format", "tools", "cache_prompt"}
)
_RESPONSES_KEYS = frozenset(
    {"model", "input", "instructions", "temperature", "top_p", "max_output_tokens", "reasoning"}
    | {"text", "service_tier", "store", "tools"}
)
_REASONS = {200: "OK", 400: "Bad Request", 429: "Too Many Requests", 500: "Internal Server Error"}


@dataclass
class Reply:
    """An answer as it goes out, and what happens on the way."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    media: str = "application/json"
    delay_s: float = 0.0
    cut: int | None = None
    """Close the connection after that many octets of the body."""
    drop: bool = False
    hang: bool = False
    drip: bool = False
    """One octet every 20 ms: each read succeeds, the answer never ends in time."""

    def octets(self) -> bytes:
        """Head and body."""
        lines = [
            f"HTTP/1.1 {self.status} {_REASONS.get(self.status, 'Other')}",
            f"content-type: {self.media}",
            f"content-length: {len(self.body)}",
            *(f"{name}: {value}" for name, value in self.headers.items()),
        ]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + self.body[: self.cut]


@dataclass
class Arrived:
    """A request as it arrived; header names in lower case."""

    path: str
    headers: dict[str, str]
    body: bytes

    def document(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


def chat_document(text: str = ANSWER, **changed: Any) -> dict[str, Any]:
    """A whole chat completion; `changed` replaces members of its one choice."""
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop", **changed}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_772_668_800,
        "model": MODEL,
        "choices": [choice],
        "usage": {
            "prompt_tokens": 1000,
            "completion_tokens": 100,
            "total_tokens": 1100,
            "prompt_tokens_details": {"cached_tokens": 200, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 40, "audio_tokens": 0},
        },
        "service_tier": "default",
        "system_fingerprint": "fp_abc",
    }


def responses_document(text: str = ANSWER, **changed: Any) -> dict[str, Any]:
    """A whole response; `changed` replaces members of it."""
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    message = {
        "id": "msg_1",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [part],
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_772_668_800,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": MODEL,
        "output": [{"id": "rs_1", "type": "reasoning", "summary": []}, message],
        "usage": {
            "input_tokens": 1000,
            "input_tokens_details": {"cached_tokens": 200},
            "output_tokens": 100,
            "output_tokens_details": {"reasoning_tokens": 40},
            "total_tokens": 1100,
        },
        **changed,
    }


def error_reply(status: int, code: str | None = None, said: str = "boom", **headers: str) -> Reply:
    """An error as OpenAI writes it; underscores in header names become hyphens."""
    document = {"error": {"message": said, "type": "t", "code": code, "param": None}}
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, json.dumps(document).encode(), {"x-request-id": "req_err", **names})


@dataclass
class OpenAIServer:
    """The server's state: set `replies` or `text`, read `arrived` and `by_key`."""

    url: str = ""
    text: str = ANSWER
    delay_s: float = 0.0
    key: str | None = None
    most_in_flight: int | None = None
    """Above it, 429 with a Retry-After of zero: a provider with a concurrency limit."""
    replies: deque[Reply | dict[str, Any]] = field(default_factory=deque)
    arrived: list[Arrived] = field(default_factory=list)
    by_key: Counter[str] = field(default_factory=Counter)
    in_flight: int = 0
    peak: int = 0
    keeps: bool = True
    transports: set[asyncio.Transport] = field(default_factory=set)
    _good: dict[tuple[str, str], bytes] = field(default_factory=dict)

    def take(self, request: Arrived) -> Reply:
        """Decide how to answer."""
        if self.keeps:
            self.arrived.append(request)
            self.by_key[request.headers.get("idempotency-key", "")] += 1
        if self.replies:
            reply = self.replies.popleft()
            return reply if isinstance(reply, Reply) else Reply(body=json.dumps(reply).encode())
        if self.most_in_flight is not None and self.in_flight > self.most_in_flight:
            return error_reply(429, "rate_limit_exceeded", retry_after="0")
        refusal = self._check(request) if self.keeps else None
        return refusal or self._answer(request.path)

    def _check(self, request: Arrived) -> Reply | None:
        if self.key is not None and request.headers.get("authorization") != f"Bearer {self.key}":
            said = f"Incorrect API key provided: {request.headers.get('authorization')}"
            return error_reply(401, "invalid_api_key", said)
        if request.headers.get("content-type") != "application/json":
            return error_reply(400, None, "the content type is not JSON")
        known = _CHAT_KEYS if request.path.endswith("/chat/completions") else _RESPONSES_KEYS
        if unknown := sorted(set(request.document()) - known):
            return error_reply(400, "unknown_parameter", f"Unknown parameter: {unknown[0]}")
        return None

    def _answer(self, path: str) -> Reply:
        known = (path, self.text)
        if known not in self._good:
            whole = {
                "/v1/chat/completions": chat_document,
                "/v1/responses": responses_document,
            }.get(path)
            if whole is None:
                return error_reply(404, None, f"no route {path}")
            self._good[known] = json.dumps(whole(self.text)).encode()
        return Reply(body=self._good[known], headers={"x-request-id": "req_123"})


class _Connection(asyncio.Protocol):
    def __init__(self, server: OpenAIServer) -> None:
        self._server = server
        self._buffer = b""
        self._transport: asyncio.Transport | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.transports.add(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if self._transport is not None:
            self._server.transports.discard(self._transport)
        for task in self._tasks:
            task.cancel()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        size = int(headers.get("content-length", "0"))
        if len(rest) < size:
            return
        self._buffer = rest[size:]
        server = self._server
        server.in_flight += 1
        server.peak = max(server.peak, server.in_flight)
        reply = server.take(Arrived(first.split(" ")[1], headers, rest[:size]))
        loop = asyncio.get_running_loop()
        if reply.hang or reply.drip:
            task = loop.create_task(self._slowly(reply))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return
        delay_s = reply.delay_s or (server.delay_s if reply.status == 200 else 0.0)
        if delay_s:
            loop.call_later(delay_s, self._finish, reply)
        else:
            self._finish(reply)

    def _finish(self, reply: Reply) -> None:
        self._server.in_flight -= 1
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if not reply.drop:
            transport.write(reply.octets())
        if reply.drop or reply.cut is not None:
            transport.close()

    async def _slowly(self, reply: Reply) -> None:
        try:
            if reply.hang:
                await asyncio.Event().wait()
            for octet in reply.octets():
                if self._transport is not None:
                    self._transport.write(bytes([octet]))
                await asyncio.sleep(0.02)
        finally:
            self._server.in_flight -= 1


async def _listen(server: OpenAIServer) -> asyncio.Server:
    loop = asyncio.get_running_loop()
    listener = await loop.create_server(lambda: _Connection(server), "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
    return listener


@contextmanager
def serve_openai() -> Iterator[OpenAIServer]:
    """Run a server on a free port of the loopback address, in a thread, while the block runs."""
    server = OpenAIServer()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    # In its own thread from the first step, so that a test with a running loop can serve too.
    listener = asyncio.run_coroutine_threadsafe(_listen(server), loop).result()
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(_close(server, listener), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _close(server: OpenAIServer, listener: asyncio.Server) -> None:
    listener.close()
    for transport in tuple(server.transports):
        transport.abort()
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def _run_alone(delay_s: float) -> None:
    server = OpenAIServer(delay_s=delay_s, keeps=False)
    listener = await _listen(server)
    print(server.url, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    listener.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--delay-s", type=float, default=0.05)
    asyncio.run(_run_alone(parser.parse_args().delay_s))
