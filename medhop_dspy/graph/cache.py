"""Extractions on disk, one line a passage, so that no passage is paid for twice."""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from pydantic import TypeAdapter, ValidationError

from medhop_dspy.graph.records import Extraction
from medhop_dspy.journal import Journal, encode
from medhop_dspy.retrieval.disk import disk_errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from medhop_dspy.trace import Passage

_log = logging.getLogger(__name__)

FILE: Final = "extractions.jsonl"


@dataclass(frozen=True, slots=True)
class _Line:
    """What the extractor of that digest found in a passage of that key."""

    key: str
    extractor: str
    found: Extraction


# It reads no half of a surrogate pair, which could be neither embedded nor written to a graph.
_LINES: Final = TypeAdapter(_Line)


def passage_key(passage: Passage) -> str:
    """Hex SHA-256 of a passage's title and text; its id and link do not matter."""
    return hashlib.sha256(json.dumps([passage.title, passage.text]).encode()).hexdigest()


class ExtractionCache:
    """``extractions.jsonl`` of a folder, open for the one writer that a build has.

    The file holds what any extractor has ever found there; in memory is what some extractors found. A line that a
    crash has damaged is left out, so that its passage is extracted again; see :class:`~medhop_dspy.journal.Journal`
    for what a crash can do. Safe for threads.

    Attributes:
        added: Extractions added since it was opened.

    Raises:
        StoreError: from all methods, if the file cannot be read or written.
        DiskFullError: from the constructor and :meth:`add`, if no space is left; no part of the line stays.
    """

    def __init__(self, folder: Path, extractors: Sequence[str]) -> None:
        """Open the file, or make it and the folder; a last line that is not whole is cut off.

        Args:
            folder: Of the file.
            extractors: Digests of the extractors that count. Of a passage that several have read, what the first of
                them found.
        """
        self.path = folder / FILE
        self.added = 0
        self._found: dict[str, Extraction] = {}
        self._lock = threading.Lock()
        with disk_errors(self.path):
            folder.mkdir(parents=True, exist_ok=True)
            self._journal = Journal(self.path)
            self._read(self._journal.lines, {digest: rank for rank, digest in enumerate(extractors)})
            self._journal.mend()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Passages of which these extractors have read title and text."""
        return len(self._found)

    def get(self, key: str) -> Extraction | None:
        """What was found in a passage of this :func:`passage_key`; None if no one was asked."""
        return self._found.get(key)

    def add(self, key: str, extractor: str, extraction: Extraction) -> None:
        """Keep what the extractor of that digest found in a passage of that key."""
        with self._lock, disk_errors(self.path):
            self._journal.append(encode(asdict(_Line(key, extractor, extraction))))
            self._found[key] = extraction
            self.added += 1

    def close(self) -> None:
        """Wait until all lines are on the disk, and close the file."""
        with self._lock, disk_errors(self.path):
            self._journal.close()

    def _read(self, lines: Iterable[bytes], ranks: dict[str, int]) -> None:
        damaged = 0
        best: dict[str, int] = {}  # by key, the rank of the extractor whose line is kept
        for line in filter(None, lines):
            try:
                kept = _LINES.validate_json(line)
            except ValidationError:
                damaged += 1
                continue
            rank = ranks.get(kept.extractor)
            if rank is not None and rank <= best.get(kept.key, rank):
                best[kept.key] = rank
                self._found[kept.key] = kept.found
        if damaged:
            _log.warning("%s: %d lines cannot be read; their passages are extracted again", self.path, damaged)
