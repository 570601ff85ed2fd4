"""A small real HTTP server that stands in for a remote model server."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from medhop_dspy.settings import Settings

MODEL = "test-model"


def completion(content: str | None, finish: str | None = "stop", **message: Any) -> dict[str, Any]:
    """A chat completion as servers send it."""
    return {
        "id": "c1",
        "object": "chat.completion",
        "model": MODEL,
        "choices": [
            {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
        ],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 7,
            "total_tokens": 107,
            "prompt_tokens_details": {"cached_tokens": 80},
        },
    }


class Remote:
    """Serves ``pages`` on GET and the scripted ``replies`` on POST, the last one again and again.

    A reply is a dict (sent as JSON), bytes (sent as they are), a ``(status, headers, body)`` triple, or a function
    that gets the handler and sends what it likes.
    """

    def __init__(self) -> None:
        self.pages: dict[str, Any] = {"/v1/models": {"object": "list", "data": [{"id": MODEL}]}}
        self.replies: list[Any] = [completion("15")]
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.release = threading.Event()
        self._lock = threading.Lock()
        remote = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args: Any) -> None:
                pass

            def do_GET(self) -> None:
                page = remote.pages.get(self.path)
                remote._send(self, (404, {}, b"") if page is None else page)

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with remote._lock:
                    reply = remote.replies[min(len(remote.bodies), len(remote.replies) - 1)]
                    remote.bodies.append(body)
                    remote.headers.append({k.lower(): v for k, v in self.headers.items()})
                remote._send(self, reply)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @staticmethod
    def _send(handler: BaseHTTPRequestHandler, reply: Any) -> None:
        if callable(reply):
            reply(handler)
            return
        status, headers, body = reply if isinstance(reply, tuple) else (200, {}, reply)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)

    @property
    def requests(self) -> int:
        """How many completions were asked for."""
        return len(self.bodies)

    def close(self) -> None:
        self.release.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def make_remote() -> Iterator[Callable[[], Remote]]:
    remotes: list[Remote] = []

    def make() -> Remote:
        remotes.append(Remote())
        return remotes[-1]

    yield make
    for remote in remotes:
        remote.close()


@pytest.fixture
def remote(make_remote: Callable[[], Remote]) -> Remote:
    return make_remote()


@pytest.fixture
def settings(remote: Remote, tmp_path) -> Settings:
    return Settings.load("local", home=tmp_path, lm_url=remote.url, lm_model=MODEL, timeout=5, retries=0)


@pytest.fixture
def closed_port() -> int:
    """A loopback port that nothing listens on."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
