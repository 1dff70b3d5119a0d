"""The HTTP client under the SDK: connections in several small pools instead of one large one.

A pool looks at each of its connections on every request, polling the idle ones, so its cost grows
with its size. Eight pools of eight save a tenth of the CPU of a call against one of 64
(benchmarks/calls.py). Imported late: httpx2 takes 0.1 s to load.
"""

from __future__ import annotations

from urllib.parse import urlsplit
from urllib.request import getproxies

import httpx2

POOL_SIZE = 8
IDLE_S = 60.0
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


class SpreadTransport(httpx2.AsyncBaseTransport):
    """Sends each request through the pool with the fewest in flight.

    Args:
        connections: at least this many at once, over all pools.
    """

    def __init__(self, connections: int) -> None:
        # One context for all: each takes 0.1 s to read the certificates.
        context = httpx2.create_ssl_context()
        count = -(-connections // POOL_SIZE)
        self._pools = [
            httpx2.AsyncHTTPTransport(verify=context, limits=_limits(POOL_SIZE))
            for _ in range(count)
        ]
        self._in_flight = [0] * count

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; it waits for a connection where more are in flight than were asked."""
        which = min(range(len(self._pools)), key=self._in_flight.__getitem__)
        self._in_flight[which] += 1
        try:
            return await self._pools[which].handle_async_request(request)
        finally:
            self._in_flight[which] -= 1

    async def aclose(self) -> None:
        """Close all pools."""
        for pool in self._pools:
            await pool.aclose()


def open_http_client(base_url: str, connections: int) -> httpx2.AsyncClient:
    """Return a client for one address and that many connections.

    Where the environment names proxies, the plain client is used, which obeys them; but a proxy is
    for the outside world and never for a server on this machine.
    """
    is_here = urlsplit(base_url).hostname in _LOOPBACK
    if not is_here and any(name in getproxies() for name in ("http", "https", "all")):
        return httpx2.AsyncClient(limits=_limits(connections))
    return httpx2.AsyncClient(transport=SpreadTransport(connections))


def _limits(connections: int) -> httpx2.Limits:
    return httpx2.Limits(
        max_connections=connections,
        max_keepalive_connections=connections,
        keepalive_expiry=IDLE_S,
    )
