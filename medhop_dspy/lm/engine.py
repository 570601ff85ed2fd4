"""DSPy engines that make one HTTP request a call and record what it cost.

Retries are DSPy's (``num_retries`` of the LM, set by :func:`medhop_dspy.lm.connect.connect`): an engine never repeats
a request, so that every try is one request and one :class:`~medhop_dspy.trace.LMCall`.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlsplit

import dspy
from dspy.clients.engines import AsyncLM15Engine, LM15Engine
from dspy.lm15 import Config, Message, Request, Response, RouterConfig, TextPart

from medhop_dspy.lm.failures import describe, translate
from medhop_dspy.lm.reply import final_text
from medhop_dspy.lm.transport import AsyncTransport, Transport
from medhop_dspy.replies import PHRASE
from medhop_dspy.trace import LMCall, Usage

# The wire dialect: Chat Completions with `max_tokens`, as llama.cpp, SGLang and vLLM take it alike.
_DIALECT: Final = "sglang"
_RECORDERS: Final = "medhop_call_recorders"
# The request key of a grammar; both servers read the same notation.
_GRAMMARS: Final = {"llamacpp": "grammar", "sglang": "ebnf"}


@contextmanager
def record_calls() -> Iterator[list[LMCall]]:
    """Collect the calls of every LM of this package made inside the block, in the order they ended.

    Kept in DSPy's own context, the only one that ``dspy.Parallel``, ``Module.batch``, ``dspy.Evaluate`` and
    ``dspy.asyncify`` hand to their threads. Blocks nest: an outer one also gets the calls of the inner one.
    A reply from DSPy's cache is no call.
    """
    calls: list[LMCall] = []
    outer: tuple[list[LMCall], ...] = dspy.settings.get(_RECORDERS, ())
    with dspy.context(**{_RECORDERS: (*outer, calls)}):
        yield calls


def _record(call: LMCall) -> None:
    for calls in dspy.settings.get(_RECORDERS, ()):
        calls.append(call)


class _Call:
    """One request under way: its timing, its reply and its record."""

    def __init__(self, server: _Server, request: Request) -> None:
        self._server = server
        self._limit = request.config.max_tokens
        config = _plain_phrases(request.config, server.backend)
        if server.backend == "llamacpp" and not server.prefix_cache:
            config = replace(config, extensions={**(config.extensions or {}), "cache_prompt": False})
        self.request = replace(request, model=f"{_DIALECT}:{server.model}", config=config)
        self._usage = Usage()
        self._finish_reason = ""
        self.response: Response | None = None

    def accept(self, response: Response) -> None:
        """Check and keep ``response``; its usage is recorded even if it is refused."""
        body = response.provider_data or {}
        self._usage = _usage(response)
        text = final_text(body, limit=self._limit)
        self._finish_reason = str(body["choices"][0].get("finish_reason") or response.finish_reason)
        self.response = replace(response, message=Message.assistant([TextPart(text)]))

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Time the block, raise its errors as the package's own, and record the call in any case."""
        start = time.perf_counter()
        error = ""
        try:
            yield
        except Exception as caught:
            raised = translate(caught, server=self._server.address, timeout=self._server.timeout)
            error = describe(raised)
            if raised is caught:
                raise
            raise raised from caught
        except BaseException as caught:  # cancelled or interrupted: the server did the work all the same
            error = describe(caught)
            raise
        finally:
            reason = "" if error else self._finish_reason
            _record(LMCall(self._usage, time.perf_counter() - start, reason, error))


class _Server:
    """Where requests go. ``repr`` never shows the key.

    Args:
        base_url: Server root, without ``/v1``.
        model: The name that the server knows the model by.
        api_key: Bearer token, if the server wants one.
        timeout: Seconds without a byte from the server before giving up.
        context_tokens: Tokens of prompt and reply together that callers may count on; 0 if unknown.
        backend: Kind of server, for what they do not have in common: grammars, and a request's say in the prefix cache.
        prefix_cache: Whether llama.cpp may use what it has read of other prompts.
    """

    # Read by DSPy's adapters: both servers honour a JSON schema.
    supports_response_schema = True
    supports_function_calling = False
    supports_reasoning = False
    supported_params = frozenset({"temperature", "max_tokens", "top_p", "stop", "seed", "response_format", "logprobs"})

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        timeout: float = 120.0,
        context_tokens: int = 0,
        backend: str = "openai",
        prefix_cache: bool = True,
    ) -> None:
        self.base_url = base_url.rstrip("/").removesuffix("/v1")
        self.model = model
        self.timeout = timeout
        self.context_tokens = context_tokens
        self.backend = backend
        self.prefix_cache = prefix_cache
        self._api_key = api_key or "none"

    @property
    def address(self) -> str:
        """The server's address for messages, without credentials."""
        parts = urlsplit(self.base_url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.address!r}, {self.model!r})"

    def __deepcopy__(self, memo: dict[int, Any]) -> _Server:
        # Optimisers copy programs; the connection pool behind an engine is shared, never copied.
        return self

    def _config(self, transport: Transport | AsyncTransport) -> RouterConfig:
        return RouterConfig(
            env={},  # no key or address from the environment
            api_keys={_DIALECT: self._api_key},
            base_urls={_DIALECT: f"{self.base_url}/v1"},
            transport=transport,
        )


class RecordingEngine(_Server):
    """A ``dspy.LM`` engine: exactly one HTTP request for each :meth:`complete`, recorded."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  (those of _Server)
        super().__init__(*args, **kwargs)
        self._transport = Transport(self.base_url, self.timeout)
        self._inner = LM15Engine(self._config(self._transport))

    def complete(self, request: Request) -> Response:
        """Send ``request`` to the server, whatever model it names.

        Raises:
            ServerUnavailableError: down, refusing, hanging, 5xx or 429.
            ContextOverflowError: the prompt is too long.
            ServerError: any other refusal, or a reply that is no chat completion.
            ReplyError: an empty, cut or unfinished reply.
        """
        call = _Call(self, request)
        with call.recorded():
            call.accept(self._inner.complete(call.request))
        return call.response

    def close(self) -> None:
        """Close idle connections."""
        self._inner.close()
        self._transport.close()


class AsyncRecordingEngine(_Server):
    """The asynchronous twin of :class:`RecordingEngine`, with one connection pool for each event loop."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  (those of _Server)
        super().__init__(*args, **kwargs)
        self._pools: dict[asyncio.AbstractEventLoop, tuple[AsyncTransport, AsyncLM15Engine]] = {}
        self._lock = threading.Lock()

    async def complete(self, request: Request) -> Response:
        """As :meth:`RecordingEngine.complete`; cancelling it closes the connection."""
        call = _Call(self, request)
        with call.recorded():
            call.accept(await self._engine().complete(call.request))
        return call.response

    def _engine(self) -> AsyncLM15Engine:
        loop = asyncio.get_running_loop()
        with self._lock:
            for closed in [each for each in self._pools if each.is_closed()]:
                del self._pools[closed]
            if loop not in self._pools:
                transport = AsyncTransport(self.base_url, self.timeout)
                self._pools[loop] = (transport, AsyncLM15Engine(self._config(transport)))
            return self._pools[loop][1]

    async def aclose(self) -> None:
        """Close the idle connections of the running event loop."""
        with self._lock:
            pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool:
            await pool[1].aclose()
            await pool[0].aclose()


def _plain_phrases(config: Config, backend: str) -> Config:
    """``config`` with the schema of :func:`medhop_dspy.replies.held_to` as a grammar of plain lines.

    A server without grammars keeps the schema and replies with a JSON string.
    """
    wanted = config.response_format or {}
    if wanted.get("name") != PHRASE or backend not in _GRAMMARS:
        return config
    alternatives = " | ".join(json.dumps(phrase, ensure_ascii=False) for phrase in wanted["schema"]["enum"])
    extensions = {**(config.extensions or {}), _GRAMMARS[backend]: f"root ::= {alternatives}"}
    return replace(config, response_format=None, extensions=extensions)


def _usage(response: Response) -> Usage:
    usage = response.usage
    return Usage(usage.input_tokens or 0, usage.cache_read_tokens or 0, usage.output_tokens or 0)
