"""From settings to a language model: find out what a server really serves, then hand out a ``dspy.LM`` for it."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from medhop_dspy.errors import ServerError, ServerUnavailableError
from medhop_dspy.settings import Settings

if TYPE_CHECKING:
    import dspy
    import httpx

_LOG = logging.getLogger(__name__)

PROBE_TIMEOUT: Final = 10.0


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What a model server says about itself.

    Attributes:
        url: Server root, without ``/v1``.
        backend: ``llamacpp``, ``sglang`` or ``openai``.
        model: The name that requests must carry.
        fingerprint: 16 hex digits that change when other weights, another build or another context are served;
            the same server started again has the same one.
        context_tokens: Tokens of prompt and reply together that one request may have; 0 where the server is silent.
        slots: Requests handled at once; 0 where the server is silent.
    """

    url: str
    backend: str
    model: str
    fingerprint: str
    context_tokens: int = 0
    slots: int = 0


def quiet_dspy() -> None:
    """Keep DSPy and LiteLLM from fetching their price map over the network. Call before the first LM call."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")


def probe(base_url: str, api_key: str | None = None, timeout: float = PROBE_TIMEOUT, *, model: str = "") -> ServerInfo:
    """Ask the server at ``base_url`` what it serves.

    Args:
        base_url: Server root or its ``/v1``.
        api_key: Bearer token, if the server wants one.
        timeout: Seconds for connecting and for each answer.
        model: The model wanted, where a server offers several.

    Raises:
        ServerUnavailableError: nothing listens, no answer in time, or the server is still loading (503).
        ServerError: an answer that is not a model server's, or ``model`` is not offered.
    """
    import httpx

    from medhop_dspy.lm.transport import is_loopback

    url = base_url.rstrip("/").removesuffix("/v1")
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    with httpx.Client(base_url=url, headers=headers, timeout=timeout, trust_env=not is_loopback(url)) as client:
        models = _get(client, "/v1/models")
        if models is None:
            raise ServerError(f"{url} has no /v1/models", hint="lm_url must be an OpenAI-compatible model server.")
        served = _pick(models, model, url)
        props = _get(client, "/props")
        if props and "default_generation_settings" in props:
            return _llamacpp(url, served, props)
        info = _get(client, "/server_info") or _get(client, "/get_server_info")
        if info and "model_path" in info:
            return _sglang(url, served, info)
        return _openai(url, served)


def connect(settings: Settings, server: ServerInfo | None = None) -> dspy.LM:
    """A language model on the configured server.

    With ``lm_cache`` the model string carries the server's fingerprint, so that DSPy's cache, which knows nothing of
    servers, keeps the replies of each apart. ``lm.engine.context_tokens`` is the context budget of one request.

    Args:
        settings: ``base_url``, ``lm_model``, sampling, time limits and caching.
        server: What :func:`probe` found, if it was asked already.

    Raises:
        ServerUnavailableError: the server does not answer.
        ServerError: it serves another model than ``lm_model``.
    """
    quiet_dspy()
    import dspy

    from medhop_dspy.lm.engine import AsyncRecordingEngine, RecordingEngine

    key = settings.api_key.get_secret_value() if settings.api_key else None
    server = server or probe(settings.base_url, key, min(settings.timeout, PROBE_TIMEOUT), model=settings.lm_model)
    options: dict[str, Any] = {
        "api_key": key,
        "timeout": settings.timeout,
        "context_tokens": _budget(settings, server),
        "backend": server.backend,
        "prefix_cache": settings.prefix_cache,
    }
    if settings.lm_cache:
        _use_cache_of(settings.home)
    return dspy.LM(
        f"{server.model}@{server.fingerprint}" if settings.lm_cache else server.model,
        temperature=settings.temperature,
        seed=settings.seed,
        cache=settings.lm_cache,
        num_retries=settings.retries,
        engine=RecordingEngine(server.url, server.model, **options),
        async_engine=AsyncRecordingEngine(server.url, server.model, **options),
    )


def _budget(settings: Settings, server: ServerInfo) -> int:
    if not server.context_tokens or server.context_tokens >= settings.context_tokens:
        return settings.context_tokens
    _LOG.warning(
        "%s has a context of %d tokens per request, below context_tokens = %d; using the server's",
        server.url,
        server.context_tokens,
        settings.context_tokens,
    )
    return server.context_tokens


def _use_cache_of(home: Path) -> None:
    import dspy

    folder = str(home / "replies")
    # Configuring anew would drop the entries in memory.
    if getattr(dspy.cache, "disk_cache_dir", None) != folder:
        dspy.configure_cache(disk_cache_dir=folder, restrict_pickle=True)


def _get(client: httpx.Client, path: str) -> dict[str, Any] | None:
    """The JSON object at ``path``; ``None`` where the server has no such page."""
    import httpx

    where = f"{client.base_url}".rstrip("/")
    try:
        reply = client.get(path)
    except httpx.TransportError as error:
        raise ServerUnavailableError(
            f"no model server answers at {where}: {type(error).__name__}: {error}",
            hint="Start one (`medhop lm serve`) or correct lm_url.",
        ) from error
    if reply.status_code in (401, 403):
        raise ServerError(f"{where} refused the key: HTTP {reply.status_code}", hint="Set api_key (MEDHOP_API_KEY).")
    if reply.status_code == 429 or (reply.status_code >= 500 and reply.status_code not in (501, 505)):
        raise ServerUnavailableError(f"{where} is not ready: HTTP {reply.status_code} for {path}")
    if reply.status_code != 200:
        return None
    try:
        data = reply.json()
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


def _pick(models: Mapping[str, Any], wanted: str, url: str) -> dict[str, Any]:
    """The entry of ``/v1/models`` to use."""
    entries = [m for m in models.get("data") or [] if isinstance(m, dict) and isinstance(m.get("id"), str)]
    if not entries:
        raise ServerError(f"{url} lists no model in /v1/models", hint="lm_url must be a server with a model loaded.")
    fitting = [m for m in entries if any(_plain(n) == _plain(wanted) for n in (m["id"], *(m.get("aliases") or ())))]
    if fitting:
        return fitting[0]
    if not wanted and len(entries) == 1:
        return entries[0]
    names = ", ".join(repr(m["id"]) for m in entries)
    raise ServerError(
        f"{url} serves {names}, wanted {wanted!r}", hint="Set lm_model to a served name, or lm_url to another server."
    )


def _plain(name: str) -> str:
    """A name without folder, owner, file ending and case: servers and users spell one model in many ways."""
    return name.replace("\\", "/").rstrip("/").rpartition("/")[2].removesuffix(".gguf").casefold()


def _llamacpp(url: str, served: Mapping[str, Any], props: Mapping[str, Any]) -> ServerInfo:
    context = int(props["default_generation_settings"].get("n_ctx") or 0)
    path = str(props.get("model_path") or "")
    weights = _weights_on_disk(url, path)
    identity = {
        "weights": weights or [url, path],
        "meta": served.get("meta"),
        "tags": served.get("tags"),
        "build": props.get("build_info"),
        "template": props.get("chat_template"),
        "context": context,
    }
    slots = int(props.get("total_slots") or 0)
    return ServerInfo(url, "llamacpp", served["id"], _digest(identity), context, slots)


def _weights_on_disk(url: str, path: str) -> list[Any]:
    """Path, size and time of the weights, if the server is this machine and reads them from here.

    They name the weights better than an address does: the embedded server has another port each time.
    """
    from medhop_dspy.lm.transport import is_loopback

    if not path or not is_loopback(url):
        return []
    try:
        stat = Path(path).stat()
    except OSError:
        return []
    return [path, stat.st_size, stat.st_mtime_ns]


# What of SGLang's report decides an answer; the rest (loads, queues, internal states) changes all the time.
_SGLANG_IDENTITY: Final = (
    "model_path",
    "revision",
    "tokenizer_path",
    "version",
    "dtype",
    "quantization",
    "kv_cache_dtype",
    "context_length",
    "chat_template",
    "attention_backend",
    "grammar_backend",
    "enable_deterministic_inference",
    "random_seed",
)


def _sglang(url: str, served: Mapping[str, Any], info: Mapping[str, Any]) -> ServerInfo:
    context = int(served.get("max_model_len") or info.get("context_length") or 0)
    identity = {"url": url, "model": served["id"], **{name: info.get(name) for name in _SGLANG_IDENTITY}}
    slots = int(info.get("max_running_requests") or 0)
    return ServerInfo(url, "sglang", served["id"], _digest(identity), context, slots)


def _openai(url: str, served: Mapping[str, Any]) -> ServerInfo:
    context = int(served.get("max_model_len") or served.get("context_length") or 0)
    identity = {"url": url, "model": served["id"], "context": context, "root": served.get("root")}
    return ServerInfo(url, "openai", served["id"], _digest(identity), context)


def _digest(identity: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(identity, sort_keys=True, default=str).encode()).hexdigest()[:16]
