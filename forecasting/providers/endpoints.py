"""The endpoints that are known by name: where each is, which routes and keys it takes.

To add one: one row. An address in the environment replaces the usual one, so that any compatible
server (vLLM, a proxy, a test server) can stand in for a named one; `compatible` is for servers that
are none of the named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from forecasting.providers.chat import ChatWire
from forecasting.providers.openai_sdk import MonotonicS, OpenAIProvider
from forecasting.providers.responses import ResponsesWire
from forecasting.providers.wire import Wire
from ledger.errors import BadInputError

LOCAL_EXTRA = {"cache_prompt": False}
"""With its prompt cache on, the first of several equal calls to llama.cpp differs from the rest."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One endpoint.

    Args:
        name: the provider's name in plans and events, and the price list's id of it.
        wires: its wire formats, the usual one first.
        base_url: where it is; None where the environment has to say it.
        base_url_variable: the environment variable that replaces the address.
        key_variable: the environment variable of the API key; None where none is needed.
    """

    name: str
    wires: tuple[Wire, ...]
    base_url: str | None
    base_url_variable: str
    key_variable: str | None


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "openai",
        (ResponsesWire(), ChatWire()),
        "https://api.openai.com/v1",
        "OPENAI_BASE_URL",
        "OPENAI_API_KEY",
    ),
    Endpoint(
        "openrouter",
        (ChatWire(max_tokens_key="max_tokens"),),
        "https://openrouter.ai/api/v1",
        "OPENROUTER_BASE_URL",
        "OPENROUTER_API_KEY",
    ),
    Endpoint(
        "deepseek",
        (ChatWire(max_tokens_key="max_tokens", schema_as="json_object"),),
        "https://api.deepseek.com/v1",
        "DEEPSEEK_BASE_URL",
        "DEEPSEEK_API_KEY",
    ),
    Endpoint(
        "compatible",
        (ChatWire(max_tokens_key="max_tokens"), ResponsesWire()),
        None,
        "COMPATIBLE_BASE_URL",
        "COMPATIBLE_API_KEY",
    ),
    Endpoint(
        "local",
        (ChatWire(max_tokens_key="max_tokens", extra=LOCAL_EXTRA),),
        "http://127.0.0.1:8091/v1",
        "LOCAL_BASE_URL",
        None,
    ),
)

KEY_OPTIONAL = frozenset({"compatible"})
"""Endpoints whose server may ask for no key."""


def find_endpoint(name: str) -> Endpoint:
    """Return the endpoint of that name.

    Raises:
        BadInputError: there is none.
    """
    for endpoint in ENDPOINTS:
        if endpoint.name == name:
            return endpoint
    known = ", ".join(endpoint.name for endpoint in ENDPOINTS)
    raise BadInputError(
        f"there is no provider {name!r}", where="provider", remedy=f"Known are {known}."
    )


def find_wire(endpoint: Endpoint, route: str | None) -> Wire:
    """Return the wire format of a route; the endpoint's usual one where none is named.

    Raises:
        BadInputError: the endpoint has no such route.
    """
    for wire in endpoint.wires:
        if route in (None, wire.route):
            return wire
    known = " and ".join(wire.route for wire in endpoint.wires)
    raise BadInputError(
        f"{endpoint.name} has no route {route!r}", where="route", remedy=f"It has {known}."
    )


def open_provider(
    name: str,
    route: str | None,
    environment: Mapping[str, str],
    *,
    monotonic_s: MonotonicS,
    max_connections: int = 64,
) -> OpenAIProvider:
    """Open the provider that a plan registers.

    Args:
        name: the endpoint.
        route: its route; None for the usual one.
        environment: where key and address are looked up.
        monotonic_s: for latencies.
        max_connections: calls in flight at most.

    Raises:
        BadInputError: an unknown name or route, no key, or no address. No key is ever shown.
    """
    endpoint = find_endpoint(name)
    wire = find_wire(endpoint, route)
    base_url = environment.get(endpoint.base_url_variable) or endpoint.base_url
    if base_url is None:
        raise BadInputError(
            f"the address of {name} is not known", remedy=f"Set {endpoint.base_url_variable}."
        )
    key = environment.get(endpoint.key_variable) if endpoint.key_variable else None
    if not key and endpoint.key_variable and name not in KEY_OPTIONAL:
        raise BadInputError(
            f"there is no API key for {name}",
            remedy=f"Set {endpoint.key_variable} in the environment or in .env.",
        )
    return OpenAIProvider(
        provider=name,
        wire=wire,
        base_url=base_url,
        api_key=key or None,
        monotonic_s=monotonic_s,
        max_connections=max_connections,
    )
