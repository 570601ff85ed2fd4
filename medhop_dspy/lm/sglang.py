"""SGLang as a child process on this machine's GPUs.

SGLang pins its own torch, transformers and openai, so it lives in an environment of its own; this module finds that
environment or makes it, builds the command line, and leaves all else to :class:`~medhop_dspy.lm.process.ServerProcess`.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from medhop_dspy.errors import ServerError
from medhop_dspy.lm.process import HOST, ServerProcess, bindable, new_log

if TYPE_CHECKING:
    from medhop_dspy.settings import Settings

_LOG = logging.getLogger(__name__)

# Weights are downloaded and CUDA graphs captured before the server is healthy.
START_TIMEOUT: Final = 1800.0
REQUIREMENTS: Final = ("sglang>=0.5.3", "sglang-router>=0.2")
# One of the back-ends that SGLang's deterministic mode supports, and the one that runs on every GPU generation.
ATTENTION_BACKEND: Final = "triton"
MEMORY_SHARE: Final = 0.85
_ENVIRONMENT: Final = "sglang"


def start(
    settings: Settings,
    *,
    gpus: int = 1,
    revision: str | None = None,
    start_timeout: float = START_TIMEOUT,
    log: Path | None = None,
) -> ServerProcess:
    """Start SGLang at ``settings.port`` and wait until it is healthy.

    Args:
        settings: Model, port, context, seed and ``sglang_python``.
        gpus: Copies of the model, one a GPU, behind SGLang's router.
        revision: Commit of the model on its hub.
        start_timeout: Seconds to wait at most.
        log: File for the server's log; default ``home/logs/sglang-PORT.log``.

    Raises:
        ServerError: no GPU, no SGLang, the port is taken, or SGLang ended early.
        ServerUnavailableError: not healthy in time.
    """
    python = find_python(settings)
    require_gpus(gpus)
    port = bindable(settings.port)
    log = log or new_log(settings.home, f"sglang-{port}")
    server = ServerProcess(command(settings, python, gpus=gpus, revision=revision), port=port, log=log)
    try:
        server.wait_until_healthy(start_timeout)
    except BaseException:
        server.stop()
        raise
    return server


def command(settings: Settings, python: Path, *, gpus: int = 1, revision: str | None = None) -> list[str]:
    """The exact command line, deterministic and with cached tokens reported.

    Several GPUs get one copy each behind the router, which sends a prompt to the copy that knows its prefix;
    SGLang's own data parallelism does not.
    """
    module = "sglang.launch_server" if gpus == 1 else "sglang_router.launch_server"
    line = [
        *(str(python), "-m", module),
        *("--model-path", settings.lm_model),
        *("--served-model-name", settings.lm_model),
        *("--host", HOST),
        *("--port", str(settings.port)),
        *("--context-length", str(settings.context_tokens)),
        *("--random-seed", str(settings.seed)),
        *("--attention-backend", ATTENTION_BACKEND),
        *("--grammar-backend", "xgrammar"),
        *("--mem-fraction-static", str(MEMORY_SHARE)),
        "--enable-deterministic-inference",
        "--enable-cache-report",
        # Its grammar allows any amount of white space, which models can write until max_tokens.
        "--constrained-json-disable-any-whitespace",
    ]
    if gpus > 1:
        line += ["--dp-size", str(gpus)]
    if revision:
        line += ["--revision", revision]
    if settings.api_key:
        # SGLang takes its key on the command line only.
        line += ["--api-key", settings.api_key.get_secret_value()]
    return line


def find_python(settings: Settings) -> Path:
    """Python of the environment that holds SGLang: ``sglang_python``, or ``home/envs/sglang``.

    Raises:
        ServerError: there is none.
    """
    python = settings.sglang_python or environment(settings.home) / "bin" / "python"
    if not os.access(python, os.X_OK):
        raise ServerError(
            f"no SGLang: {python} is not an executable Python",
            hint="Run `medhop lm install-sglang`, or set sglang_python to the Python of an environment that has it.",
        )
    return python


def environment(home: Path) -> Path:
    """Folder of the environment that :func:`install` makes."""
    return home / "envs" / _ENVIRONMENT


def install(home: Path, progress: Callable[[str], None] = _LOG.info) -> Path:
    """Make the environment ``home/envs/sglang`` and install SGLang and its router into it with pip.

    Args:
        home: Cache folder.
        progress: Called with a line of text for each step.

    Returns:
        The environment's Python.

    Raises:
        ServerError: a step failed; the message ends with what it printed last.
    """
    folder = environment(home)
    python = folder / "bin" / "python"
    folder.parent.mkdir(parents=True, exist_ok=True)
    progress(f"creating {folder}")
    _run([sys.executable, "-m", "venv", "--without-pip", str(folder)])
    progress(f"installing {', '.join(REQUIREMENTS)}")
    _run([sys.executable, "-m", "pip", "--python", str(python), "install", *REQUIREMENTS])
    return python


def require_gpus(wanted: int) -> None:
    """Check that NVIDIA's driver lists at least ``wanted`` GPUs.

    Raises:
        ServerError: fewer, or no driver.
    """
    tool = shutil.which("nvidia-smi")
    hint = "SGLang needs an NVIDIA GPU. Without one use `--preset local`, or set lm_url to a server that has one."
    if tool is None:
        raise ServerError("no GPU: nvidia-smi is not installed", hint=hint)
    listing = subprocess.run([tool, "--list-gpus"], capture_output=True, text=True, timeout=60, check=False)
    found = sum(line.startswith("GPU ") for line in listing.stdout.splitlines())
    if listing.returncode or found < wanted:
        raise ServerError(
            f"{found} GPUs, wanted {wanted}: {listing.stderr.strip() or listing.stdout.strip()}", hint=hint
        )


def _run(line: list[str]) -> None:
    result = subprocess.run(line, capture_output=True, text=True, check=False)
    if result.returncode:
        words = (result.stderr or result.stdout).strip().splitlines()[-3:]
        raise ServerError(f"`{' '.join(line)}` failed with code {result.returncode}: {' | '.join(words)}")
