"""Files that an evaluation leaves behind: CSV as bytes, cells that a spreadsheet will not run, writing in one step."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from medhop_dspy.errors import DiskFullError, InputError
from medhop_dspy.retrieval.disk import is_disk_full, write_atomically

# What a spreadsheet takes for the beginning of a formula, in its usual and its full width; white space and control
# characters before it are passed over by some.
_FORMULA: Final = re.compile(r"[\s\x00-\x1f]*[=+\-@\uff1d\uff0b\uff0d\uff20]")
# A signed number, alone or with its unit, calls nothing.
_SIGNED_NUMBER: Final = re.compile(r"\s*[+-]\s?\d[\d.,]*(?:[eE][+-]?\d+)?[\w\s%°]*")

DISCLAIMER: Final = "Not a medical device. Answers can be wrong; read the sources before you rely on one."
"""Said wherever answers are shown."""


def csv_bytes(header: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    """CSV in UTF-8 without a byte order mark, every cell as it is; lines end as in RFC 4180, with CR LF.

    Raises:
        InputError: a cell holds half of a surrogate pair, which UTF-8 cannot write.
    """
    text = io.StringIO(newline="")
    # With a bare LF, Python before 3.13 would leave a lone CR inside a cell unquoted.
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow(row)
        if any("\ud800" <= c <= "\udfff" for cell in row for c in cell):
            raise InputError(
                f"the row of {header[0]} {row[0]} holds half of a surrogate pair, which is no character",
                hint="Ask the question again, or mend its answer.",
            )
    return text.getvalue().encode()


def defused(cell: str) -> str:
    """A cell for people to read: one that a spreadsheet would run as a formula begins with an apostrophe.

    >>> [defused(cell) for cell in ("=cmd|'x'!A0", "-5.2", "+3", "-20 °C", "-A1", "FBN1")]
    ["'=cmd|'x'!A0", '-5.2', '+3', '-20 °C', "'-A1", 'FBN1']
    """
    cell = cell.encode("utf-8", "replace").decode()
    return f"'{cell}" if _FORMULA.match(cell) and not _SIGNED_NUMBER.fullmatch(cell) else cell


def write_file(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path`` in one step: afterwards the file is whole, or as it was before.

    Raises:
        DiskFullError: no space is left.
        InputError: the path cannot be written.
    """
    try:
        write_atomically(path, lambda stream: stream.write(data))
    except OSError as error:
        if is_disk_full(error):
            raise DiskFullError(f"no space left for {path}", hint="Free some space.") from error
        raise InputError(f"cannot write {path}: {error.strerror}", hint="Give the path of a writable file.") from error
