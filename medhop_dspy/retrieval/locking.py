"""One writer at a time."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from medhop_dspy.errors import StoreLockedError
from medhop_dspy.retrieval.disk import disk_errors

PATIENCE: Final = 3.0
_log = logging.getLogger(__name__)


@contextmanager
def writer_lock(file: Path, location: str, *, patience: float = PATIENCE) -> Iterator[None]:
    """Hold the lock on ``location``.

    The operating system drops the lock when its holder dies, however it dies; nothing is ever stale. Who holds it
    is in ``FILE.pid``, beside the lock itself, because a waiting process may truncate the file it locks.

    Args:
        file: The lock's file; its folder is created.
        location: For messages.
        patience: Seconds to wait for another writer.

    Raises:
        StoreLockedError: naming location and process, if another writer holds the lock.
        StoreError: if the file cannot be written.
    """
    import filelock

    with disk_errors(location):
        file.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(file, thread_local=False)
    try:
        lock.acquire(timeout=patience)
    except (filelock.Timeout, RuntimeError):  # RuntimeError: held by this very thread, so waiting is useless
        raise StoreLockedError(
            f"{location} is being written by process {holder(file) or 'unknown'}",
            hint="Wait until it has finished, or end it. Reading is allowed meanwhile.",
        ) from None
    except OSError:
        with disk_errors(location):
            raise
    try:
        _note_holder(file)
        yield
    finally:
        lock.release()


def is_locked(file: Path) -> bool:
    """Whether a living process on this machine writes."""
    import filelock

    if not file.exists():
        return False
    lock = filelock.FileLock(file, thread_local=False)
    try:
        with lock.acquire(timeout=0):
            return False
    except (filelock.Timeout, RuntimeError):
        return True
    except OSError as error:  # such as a folder that may only be read
        _log.debug("cannot look at the lock %s: %s", file, error)
        return False


def holder(file: Path) -> int | None:
    """Process id of the last one that held the lock, if it was noted."""
    try:
        return int(json.loads(_pid_file(file).read_bytes())["pid"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _note_holder(file: Path) -> None:
    try:
        _pid_file(file).write_text(json.dumps({"pid": os.getpid()}), encoding="ascii")
    except OSError as error:  # only a message loses by it
        _log.debug("cannot note the writer of %s: %s", file, error)


def _pid_file(file: Path) -> Path:
    return file.with_name(file.name + ".pid")
