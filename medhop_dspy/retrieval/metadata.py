"""Chunks as Chroma stores them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from medhop_dspy.trace import Passage

_REST: Final = "json"
_FILTERED: Final = ("doc_id", "number", "digest", "chunks")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage with what the store has to know about its document.

    Attributes:
        passage: The passage; its score does not count.
        digest: Digest of the document.
        chunks: How many passages the document has.
        aliases: Other names of the document.
    """

    passage: Passage
    digest: str
    chunks: int
    aliases: tuple[str, ...] = ()

    @property
    def number(self) -> int:
        """Place in the document, from 0."""
        return passage_number(self.passage.id)

    def metadata(self) -> dict[str, Any]:
        """What is stored beside text and vector."""
        p = self.passage
        return encode_metadata(
            {
                "doc_id": p.doc_id,
                "number": self.number,
                "digest": self.digest,
                "chunks": self.chunks,
                "title": p.title,
                "url": p.url,
                "aliases": list(self.aliases),
            }
        )


def passage_number(passage_id: str) -> int:
    """The number in ``{doc_id}#{number}``; the id of a document may itself hold ``#``."""
    return int(passage_id.rsplit("#", 1)[1])


def passage_of(passage_id: str, text: str, metadata: Mapping[str, Any], score: float = 0.0) -> Passage:
    """Inverse of :meth:`Chunk.metadata`, as a passage."""
    values = decode_metadata(metadata)
    return Passage(passage_id, values["doc_id"], values["title"], values["url"], text, score)


def encode_metadata(values: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata that Chroma takes and :func:`decode_metadata` turns back.

    Chroma refuses empty records, empty or mixed lists and nested records, and an upsert keeps the keys
    that the new record lacks. So only what is filtered by is a key of its own; the rest is one JSON text. Values are
    whatever JSON holds; ``None`` is left out.
    """
    own = {key: values[key] for key in _FILTERED if values.get(key) is not None}
    rest = {key: value for key, value in values.items() if key not in own and value is not None}
    return {**own, _REST: json.dumps(rest, ensure_ascii=False)}


def decode_metadata(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Inverse of :func:`encode_metadata`; lists come back as lists, booleans as booleans."""
    own = {key: value for key, value in stored.items() if key != _REST}
    rest: dict[str, Any] = json.loads(stored[_REST])
    return own | rest
