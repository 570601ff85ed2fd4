"""A model server for the length of a block: the one that runs already, or one of our own."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from medhop_dspy.errors import ServerUnavailableError, SettingsError
from medhop_dspy.lm import artefacts, llamacpp, sglang
from medhop_dspy.lm.connect import PROBE_TIMEOUT, ServerInfo, probe
from medhop_dspy.lm.process import ServerProcess
from medhop_dspy.settings import Settings

_LOG = logging.getLogger(__name__)


def server_running(settings: Settings) -> ServerInfo | None:
    """What answers at ``settings.base_url``; ``None`` if nothing listens there.

    Raises:
        ServerError: something else than the wanted model answers.
    """
    key = settings.api_key.get_secret_value() if settings.api_key else None
    try:
        return probe(settings.base_url, key, min(settings.timeout, PROBE_TIMEOUT), model=settings.lm_model)
    except ServerUnavailableError:
        return None


@contextmanager
def model_server(settings: Settings) -> Iterator[Settings]:
    """Settings whose ``lm_url`` is a server that answers, for the length of the block.

    A server that runs at ``base_url`` is used and left alone. Otherwise, with ``backend = "llamacpp"`` and no
    ``lm_url``, the embedded one is started on a free port, and stopped at the end, whatever the end is.

    Raises:
        ServerUnavailableError: nothing answers, and this backend is not started here.
        ServerError: another model is served at ``base_url``, or our server ended early.
        ArtefactError: the model file is absent.
    """
    if info := server_running(settings):
        yield settings.replace(lm_url=info.url)
        return
    if settings.backend != "llamacpp" or settings.lm_url:
        raise ServerUnavailableError(
            f"no model server answers at {settings.base_url}", hint="Start it (`medhop lm serve`) or correct lm_url."
        )
    model = artefacts.path(settings.lm_model, settings.home)
    with llamacpp.start(settings, model) as server:
        _LOG.info("embedded model server at %s, log %s", server.url, server.log)
        yield settings.replace(lm_url=server.url)


@contextmanager
def serve(settings: Settings, *, gpus: int = 1) -> Iterator[ServerProcess]:
    """The configured server at ``settings.port``, ready, for ``medhop lm serve``; stopped at the end of the block.

    Call :meth:`~medhop_dspy.lm.process.ServerProcess.wait` inside to stay in the foreground. With several ``gpus``
    SGLang runs a copy of the model on each, behind its router.

    Raises:
        SettingsError: the backend is one that only others start.
        ServerError: the port is taken, a program is missing, or the server ended early.
        ServerUnavailableError: not ready in time.
        ArtefactError: the model file is absent.
    """
    if settings.backend == "llamacpp":
        model = artefacts.path(settings.lm_model, settings.home)
        server = llamacpp.start(settings, model, port=settings.port)
    elif settings.backend == "sglang":
        server = sglang.start(settings, gpus=gpus)
    else:
        raise SettingsError(
            "a server of backend 'openai' is not started here", hint="Choose --backend llamacpp or sglang."
        )
    with server:
        yield server
