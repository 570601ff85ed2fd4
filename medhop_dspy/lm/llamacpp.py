"""The embedded model server: llama.cpp (package ``xllamacpp``) in a child process that listens on loopback.

A process of its own, because a crash in native code must not take the caller along, and because its HTTP interface is
the one that SGLang has too. Run as ``python -m medhop_dspy.lm.llamacpp`` it is that child.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from medhop_dspy.errors import ServerError
from medhop_dspy.lm.process import HOST, ServerProcess, bindable, new_log

if TYPE_CHECKING:
    from medhop_dspy.settings import Settings

START_TIMEOUT: Final = 300.0
_MODULE: Final = "medhop_dspy.lm.llamacpp"
# The key travels in the environment: a command line is open to every user of the machine.
_KEY_VARIABLE: Final = "MEDHOP_LLAMACPP_KEY"

_MAX_PROMPT_CACHE_MIB: Final = 8192


def start(settings: Settings, model: Path, *, port: int = 0, log: Path | None = None) -> ServerProcess:
    """Start the embedded server and wait until the model is loaded.

    Args:
        settings: Served name (``lm_model``), ``context_tokens`` of one request, ``slots`` and ``api_key``.
        model: The GGUF file.
        port: Loopback port; 0 picks a free one.
        log: File for the server's log; default ``home/logs/llamacpp-PORT.log``.

    Raises:
        ServerError: xllamacpp is missing, the port is taken, or the server ended early.
        ServerUnavailableError: not ready within :data:`START_TIMEOUT` seconds.
    """
    if importlib.util.find_spec("xllamacpp") is None:
        raise ServerError("the package xllamacpp is missing", hint="Run `pip install 'medhop-dspy[local]'`.")
    port = bindable(port)
    server = ServerProcess(
        command(settings, model, port),
        port=port,
        log=log or new_log(settings.home, f"llamacpp-{port}"),
        env=_environment(settings),
    )
    try:
        server.wait_until_healthy(START_TIMEOUT)
    except BaseException:
        server.stop()
        raise
    return server


def _environment(settings: Settings) -> dict[str, str]:
    # Threads that wait for one another by spinning starve on a busy machine: with four other processes on two cores
    # the 0.5B model wrote 1 token a second, and 6 with this.
    environment = {"OMP_WAIT_POLICY": os.environ.get("OMP_WAIT_POLICY", "PASSIVE")}
    if settings.api_key:
        environment[_KEY_VARIABLE] = settings.api_key.get_secret_value()
    return environment


def command(settings: Settings, model: Path, port: int) -> list[str]:
    """The command line of the child.

    llama.cpp divides its context among its slots, so it is given ``context_tokens`` times ``slots``.
    """
    return [
        *(sys.executable, "-m", _MODULE),
        *("--model", str(model)),
        *("--alias", settings.lm_model),
        *("--port", str(port)),
        *("--ctx-size", str(settings.context_tokens * settings.slots)),
        *("--parallel", str(settings.slots)),
    ]


def _params(arguments: argparse.Namespace) -> Any:  # noqa: ANN401  (an untyped extension class)
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = arguments.model
    params.model_alias = {arguments.alias}
    params.model_tags = {f"xllamacpp-{xllamacpp.__version__}"}  # its build_info does not tell builds apart
    params.hostnames = [HOST]
    params.port = arguments.port
    params.n_ctx = arguments.ctx_size
    params.n_parallel = arguments.parallel
    params.fit_params = False  # never another context than the one asked for
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = len(os.sched_getaffinity(0))
    # Prompts that left their slot stay in memory, so that asking the same again costs next to nothing. Their
    # pieces are not shifted to other positions (n_cache_reuse), which would change what the model computes.
    params.cache_ram_mib = _prompt_cache_mib()
    params.use_jinja = True
    params.warmup = True
    params.endpoint_metrics = True
    params.endpoint_slots = False  # it would show the prompts of others
    params.ui = False
    params.cors_origins = f"http://{HOST}"  # no web page may ask this server
    params.cors_origins_explicit = True
    if key := os.environ.pop(_KEY_VARIABLE, ""):
        params.api_keys = [key]
    return params


def _prompt_cache_mib() -> int:
    """A quarter of the machine's memory, 8 GiB at most."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(memory // 4 // 2**20, _MAX_PROMPT_CACHE_MIB)


def _leave_with_parent() -> None:
    sys.stdin.buffer.read()  # returns when the other end closes, that is, when the parent is gone
    os._exit(0)


def main(argv: list[str] | None = None) -> None:
    """Serve until terminated or until standard input closes."""
    parser = argparse.ArgumentParser(prog=f"python -m {_MODULE}")
    parser.add_argument("--model", required=True)
    parser.add_argument("--alias", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--ctx-size", type=int, required=True, help="context of all slots together, in tokens")
    parser.add_argument("--parallel", type=int, required=True, help="slots")
    arguments = parser.parse_args(argv)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    import xllamacpp

    server = xllamacpp.Server(_params(arguments))  # keep the reference: the server lives as long as the object
    while server.listening_address:
        signal.pause()


if __name__ == "__main__":
    main()
