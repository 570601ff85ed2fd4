"""The HTTP client of the engines. The one module that reaches into DSPy's vendored ``lm15``.

Two things differ from its own transports: a server on this machine is never reached through a proxy, and an error
body of any server becomes the OpenAI envelope, the only one whose words ``lm15`` keeps (SGLang and FastAPI send
others, and with them the reason for the refusal would be lost).
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from dspy._vendor.lm15.transports import (
    AsyncTransportResponse,
    StdlibAsyncTransport,
    StdlibTransport,
    TransportRequest,
    TransportResponse,
)


def is_loopback(url: str) -> bool:
    """Whether ``url`` points to this machine's loopback interface."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def openai_error_body(body: bytes) -> bytes:
    """``body`` of an HTTP error in the form ``{"error": {"message": ..., "type": ..., "code": ...}}``.

    A body that has this form already, or that is not a JSON object, is returned unchanged.
    """
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return body
    if not isinstance(data, dict) or data.get("error"):
        return body
    message = data.get("message") or data.get("detail") or data
    text = message if isinstance(message, str) else json.dumps(message)
    return json.dumps({"error": {"message": text, "type": data.get("type"), "code": data.get("code")}}).encode()


def _options(url: str, timeout: float) -> dict[str, Any]:
    return {
        "connect_timeout": min(timeout, 10.0),
        "read_timeout": timeout,
        "write_timeout": timeout,
        "pool_timeout": None,
        "user_agent": "medhop-dspy",
        "trust_env": not is_loopback(url),
    }


class Transport(StdlibTransport):
    """Synchronous client for one server."""

    def __init__(self, url: str, timeout: float) -> None:
        super().__init__(**_options(url, timeout))

    def stream(self, request: TransportRequest) -> TransportResponse:
        """Send ``request``; see the base class."""
        response = super().stream(request)
        if response.status < 400:
            return response
        with response:
            body = openai_error_body(response.read())
        return TransportResponse(chunks=iter([body]), release=lambda complete: None, **_head(response))


class AsyncTransport(StdlibAsyncTransport):
    """Asynchronous client for one server, confined to one event loop."""

    def __init__(self, url: str, timeout: float) -> None:
        super().__init__(**_options(url, timeout))

    @asynccontextmanager
    async def stream(self, request: TransportRequest) -> AsyncIterator[AsyncTransportResponse]:
        """Send ``request``; see the base class."""
        async with super().stream(request) as response:
            if response.status < 400:
                yield response
            else:
                body = openai_error_body(await response.read())
                yield AsyncTransportResponse(chunks=_once(body), release=_released, **_head(response))


def _head(response: Any) -> dict[str, Any]:  # noqa: ANN401  (either of the two untyped response classes)
    return {name: getattr(response, name) for name in ("status", "reason", "headers", "http_version")}


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def _released(complete: bool) -> None:
    return None
