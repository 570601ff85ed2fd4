"""Extractions on disk, one line a passage, so that no passage is paid for twice."""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from medhop_dspy.graph.records import Entity, Extraction, Triple
from medhop_dspy.journal import Journal, encode
from medhop_dspy.retrieval.disk import disk_errors

if TYPE_CHECKING:
    from collections.abc import Iterable

    from medhop_dspy.trace import Passage

_log = logging.getLogger(__name__)

FILE: Final = "extractions.jsonl"


def extraction_key(passage: Passage, extractor: str) -> str:
    """Hex SHA-256 of a passage's title and text and of the extractor's digest; ids and links do not matter."""
    return hashlib.sha256(json.dumps([passage.title, passage.text, extractor]).encode()).hexdigest()


class ExtractionCache:
    """``extractions.jsonl`` of a folder, open for the one writer that a build has.

    A line that a crash has damaged is left out, so that its passage is extracted again; see
    :class:`~medhop_dspy.journal.Journal` for what a crash can do.

    Raises:
        StoreError: from all methods, if the file cannot be read or written.
        DiskFullError: from the constructor and :meth:`add`, if no space is left; no part of the line stays.
    """

    def __init__(self, folder: Path) -> None:
        """Open the file, or make it and the folder; a last line that is not whole is cut off."""
        self.path = folder / FILE
        self._found: dict[str, Extraction] = {}
        with disk_errors(self.path):
            folder.mkdir(parents=True, exist_ok=True)
            self._journal = Journal(self.path)
            self._read(self._journal.lines)
            self._journal.mend()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        """Extractions of all extractors."""
        return len(self._found)

    def get(self, passage: Passage, extractor: str) -> Extraction | None:
        """What the extractor of that digest found in a passage with this title and text; None if it was not asked."""
        return self._found.get(extraction_key(passage, extractor))

    def add(self, passage: Passage, extractor: str, extraction: Extraction) -> None:
        """Keep what the extractor of that digest found."""
        key = extraction_key(passage, extractor)
        with disk_errors(self.path):
            self._journal.append(encode({"key": key, **asdict(extraction)}))
        self._found[key] = extraction

    def close(self) -> None:
        """Wait until all lines are on the disk, and close the file."""
        with disk_errors(self.path):
            self._journal.close()

    def _read(self, lines: Iterable[bytes]) -> None:
        damaged = 0
        for line in filter(None, lines):
            try:
                key, extraction = _parsed(line)
            except (ValueError, TypeError, KeyError):
                damaged += 1
                continue
            self._found[key] = extraction
        if damaged:
            _log.warning("%s: %d damaged lines; their passages are extracted again", self.path, damaged)


def _parsed(line: bytes) -> tuple[str, Extraction]:
    fields: dict[str, Any] = json.loads(line)
    key = fields.pop("key")
    entities = tuple(Entity(**entity) for entity in fields.pop("entities"))
    triples = tuple(Triple(**triple) for triple in fields.pop("triples"))
    return key, Extraction(entities=entities, triples=triples, **fields)
