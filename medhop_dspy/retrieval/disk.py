"""Files that are either whole or not there, and a full disk as an error of its own."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from medhop_dspy.errors import DiskFullError, StoreError

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_TOO_LITTLE: Final = 2**24
_FULL_WORDS: Final = ("database or disk is full", "no space left", "disk quota exceeded")


@contextmanager
def disk_errors(place: object) -> Iterator[None]:
    """Turn operating system errors about ``place`` into ours.

    Raises:
        DiskFullError: if no space is left.
        StoreError: for everything else.
    """
    try:
        yield
    except OSError as error:
        if is_disk_full(error):
            raise DiskFullError(
                f"no space left while writing {place}: {error}",
                hint="Free some space and run the same command again; it goes on where it stopped.",
            ) from error
        raise StoreError(
            f"cannot read or write {place}: {error}",
            hint="Check that it is where it should be, and who may read and write it.",
        ) from error


def is_disk_full(error: BaseException) -> bool:
    """Whether an error or what caused it, of the system or of a database that has only words, means a full disk."""
    words = str(error).lower()
    if (isinstance(error, OSError) and error.errno in _FULL) or any(part in words for part in _FULL_WORDS):
        return True
    cause = error.__cause__ or error.__context__
    return cause is not None and is_disk_full(cause)


def is_nearly_full(folder: Path) -> bool:
    """Whether so little space is left that a database which failed for an unknown reason failed for want of it.

    Chroma 1.5 drops the system's error: on a full disk it says "Failed to apply logs to the metadata segment".
    """
    try:
        return shutil.disk_usage(folder).free < _TOO_LITTLE
    except OSError:
        return False


def write_atomically(file: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Replace ``file`` with what ``write`` writes; a crash leaves the old file or the new one.

    A link is followed. Whatever else is no file, such as a folder or a device, is refused.

    Raises:
        OSError: if that fails; the old file is untouched then.
    """
    file = file.resolve()
    if file.exists() and not file.is_file():
        raise OSError(errno.EINVAL, "not a regular file", str(file))
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(file)
        folder = os.open(file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    finally:
        temporary.unlink(missing_ok=True)
