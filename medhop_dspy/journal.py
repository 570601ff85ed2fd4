"""Files of JSON lines that only grow, and of which a crash costs the last line at most."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

_log = logging.getLogger(__name__)


class Journal:
    """A file of lines, open for its one writer; whatever is in it stays as it is until :meth:`mend`.

    A line is in the hands of the operating system once :meth:`append` returns: a process that is killed loses nothing.

    Raises:
        OSError: from all methods, if the file cannot be read or written.
    """

    def __init__(self, path: Path, *, sync: bool = False) -> None:
        """Open or make the file.

        Args:
            path: The file; its folder exists.
            sync: Wait with every line until it is on the disk, so that losing power loses nothing either; else only
                :meth:`close` waits.
        """
        self._path = path
        self._sync = sync
        self._file = path.open("ab", buffering=0)
        try:
            self._found = path.read_bytes()
        except BaseException:
            self._file.close()
            raise

    @property
    def lines(self) -> list[bytes]:
        """What stood in the file when it was opened, without a last line that is cut; to be read before mending."""
        return self._found[: whole(self._found)].split(b"\n")

    def mend(self) -> None:
        """Cut off a last line that is not whole, and end the file with a newline."""
        size = whole(self._found)
        if size < len(self._found):
            cut = len(self._found) - size
            _log.warning("%s: the last line was cut by a crash; its %d bytes are dropped", self._path, cut)
            os.ftruncate(self._file.fileno(), size)
        if size and self._found[size - 1 : size] != b"\n":
            self.append(b"\n")
        self._found = b""

    def append(self, line: bytes) -> None:
        """Add ``line``, which ends in a newline; of one that does not fit on the disk, no part stays."""
        size = os.fstat(self._file.fileno()).st_size
        try:
            while line:
                line = line[self._file.write(line) :]
            if self._sync:
                os.fsync(self._file.fileno())
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._file.fileno(), size)
            raise

    def close(self) -> None:
        """Wait until all lines are on the disk, and close the file."""
        if not self._file.closed:
            with self._file:
                os.fsync(self._file.fileno())


def encode(line: Mapping[str, Any]) -> bytes:
    """``line`` as UTF-8 with its newline.

    Raises:
        TypeError, ValueError: it holds what JSON cannot.
    """
    try:
        return json.dumps(line, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair, in a model's reply
        return json.dumps(line, allow_nan=False).encode() + b"\n"


def whole(data: bytes) -> int:
    """How many bytes are left without a last line that is cut, and without the zeros that a power failure leaves."""
    end = len(data.rstrip(b"\0 \t\r\n"))
    start = data.rfind(b"\n", 0, end) + 1
    try:
        json.loads(data[start:end] or b"{}")
    except (ValueError, RecursionError):
        return start
    return end if b"\0" in data[end:] else len(data)
