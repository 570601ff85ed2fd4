"""A model server as a child process: started, waited for, and ended with certainty."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from medhop_dspy.errors import ServerError, ServerUnavailableError

HOST: Final = "127.0.0.1"
STOP_TIMEOUT: Final = 10.0
_POLL: Final = 0.1
_KEPT_LOGS: Final = 9


class ServerProcess:
    """A child that serves HTTP on loopback. Use as a context manager, or call :meth:`stop`.

    The child leads a process group of its own: Ctrl-C at the terminal reaches only the parent, which then ends the
    whole group, workers included. Its standard input is a pipe that closes when the parent dies, even by SIGKILL;
    a server that is ours leaves then.

    Attributes:
        url: Root of the server.
        log: File with everything that the child prints.
    """

    def __init__(self, command: Sequence[str], *, port: int, log: Path, env: Mapping[str, str] | None = None) -> None:
        """Start ``command``; call :meth:`wait_until_healthy` next.

        Raises:
            ServerError: the program cannot be started.
        """
        self.url = f"http://{HOST}:{port}"
        self.log = log
        self._address = (HOST, port)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as output:
            try:
                self._child = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=output,
                    env={**os.environ, **(env or {})},
                    start_new_session=True,
                )
            except OSError as error:
                raise ServerError(f"cannot start {command[0]}: {error.strerror}") from error

    @property
    def pid(self) -> int:
        """Process id of the child."""
        return self._child.pid

    @property
    def running(self) -> bool:
        """Whether the child is alive."""
        return self._child.poll() is None

    def wait_until_healthy(self, timeout: float, *, path: str = "/health") -> None:
        """Block until ``path`` answers 200.

        Args:
            timeout: Seconds to wait at most.
            path: Page that answers 200 once the model is loaded.

        Raises:
            ServerError: the child ended; the message shows the end of its log.
            ServerUnavailableError: not ready in time.
        """
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if not self.running:
                raise ServerError(
                    f"the model server ended with code {self._child.returncode}: {self._last_words()}",
                    hint=f"Its log is {self.log}.",
                )
            if self._status(path) == 200:
                return
            time.sleep(_POLL)
        raise ServerUnavailableError(
            f"the model server was not ready after {timeout:g} s: {self._last_words()}", hint=f"Its log is {self.log}."
        )

    def wait(self) -> int:
        """Block until the child ends; its exit code."""
        return self._child.wait()

    def stop(self) -> None:
        """End the child and its workers: SIGTERM, and SIGKILL after ten seconds. Safe to call again."""
        if self._child.stdin:
            with contextlib.suppress(OSError):
                self._child.stdin.close()
        self._signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(STOP_TIMEOUT)
        # Workers can outlive their leader; the group id stays theirs as long as one of them is alive.
        self._signal(signal.SIGKILL)
        self._child.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child.pid, number)

    def _status(self, path: str) -> int:
        """HTTP status of ``path``; 0 where nothing answers. Never through a proxy."""
        connection = http.client.HTTPConnection(*self._address, timeout=2.0)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            connection.close()

    def _last_words(self) -> str:
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return " | ".join(lines[-3:]) or "its log is empty"


def new_log(home: Path, name: str) -> Path:
    """``home/logs/name.log``; all but the newest nine other logs there are removed."""
    folder = home / "logs"
    logs = sorted(folder.glob("*.log"), key=_modified, reverse=True)
    for old in logs[_KEPT_LOGS:]:
        old.unlink(missing_ok=True)
    return folder / f"{name}.log"


def _modified(log: Path) -> float:
    try:
        return log.stat().st_mtime
    except FileNotFoundError:  # removed by another process meanwhile
        return 0.0


def bindable(port: int) -> int:
    """``port`` if this process can listen on it, or a free one for 0.

    Raises:
        ServerError: the port is taken or not allowed.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise ServerError(
                f"cannot listen on {HOST}:{port}: {error.strerror}",
                hint="Set port to a free one, or stop what uses it.",
            ) from error
        return int(probe.getsockname()[1])
