"""Files of JSON lines that only grow, and of which a crash costs the last line at most."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

_log = logging.getLogger(__name__)
_BLANK: Final = b"\0 \t\r\n"


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
            start, end = _last_line(path)
        except BaseException:
            self._file.close()
            raise
        size = whole(end)
        self._whole = start + size  # bytes of the file without a last line that is cut
        self._cut = len(end) - size
        self._open_end = size > 0 and end[size - 1 : size] != b"\n"

    @property
    def lines(self) -> Iterator[bytes]:
        """What stood in the file when it was opened, without a last line that is cut and without the newlines.

        To be read before the first :meth:`append`; one line at a time is in memory.
        """
        left = self._whole
        with self._path.open("rb") as stream:
            for line in stream:
                if left <= 0:
                    return
                yield line[:left].removesuffix(b"\n")
                left -= len(line)

    def mend(self) -> None:
        """Cut off a last line that is not whole, and end the file with a newline."""
        if self._cut:
            _log.warning("%s: the last line was cut by a crash; its %d bytes are dropped", self._path, self._cut)
            os.ftruncate(self._file.fileno(), self._whole)
        if self._open_end:
            self.append(b"\n")
        self._cut, self._open_end = 0, False

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
    end = len(data.rstrip(_BLANK))
    start = data.rfind(b"\n", 0, end) + 1
    try:
        json.loads(data[start:end] or b"{}")
    except (ValueError, RecursionError):
        return start
    return end if b"\0" in data[end:] else len(data)


def _last_line(path: Path) -> tuple[int, bytes]:
    """Where the last line that is not blank begins, and everything from there to the end of the file."""
    start = offset = 0
    end: list[bytes] = []
    with path.open("rb") as stream:
        for line in stream:
            if line.strip(_BLANK):
                start, end = offset, []
            end.append(line)
            offset += len(line)
    return start, b"".join(end)
