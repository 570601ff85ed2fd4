"""Bringing a store to the state of a corpus, embedding only what is new."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from medhop_dspy.errors import CorpusError
from medhop_dspy.retrieval.chunking import chunk_document
from medhop_dspy.retrieval.manifest import corpus_digest
from medhop_dspy.retrieval.metadata import Chunk
from medhop_dspy.retrieval.store import StoredDocument

if TYPE_CHECKING:
    from medhop_dspy.retrieval.corpus import Document
    from medhop_dspy.retrieval.embedding import Encoder
    from medhop_dspy.retrieval.manifest import Recipe
    from medhop_dspy.retrieval.store import Store

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class UpdateReport:
    """What an update did.

    Attributes:
        added: New documents. One whose chunks an interrupted run left unfinished counts as new.
        replaced: Documents of which another version was there.
        unchanged: Documents that were there already.
        deleted: Documents that were removed.
        empty: Documents without any text, which are not stored.
        embedded: Chunks that went through the embedding model.
        truncated: Those of them that are longer than the model reads, so that it ignored their ends.
    """

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    deleted: int = 0
    empty: int = 0
    embedded: int = 0
    truncated: int = 0


class Synchroniser:
    """One update of a store.

    The store itself is the journal: every chunk carries its document's digest and number of chunks, so
    whatever an interrupted run had written is found again and not embedded twice.
    """

    def __init__(self, store: Store, encoder: Encoder, recipe: Recipe, progress: Progress | None = None) -> None:
        """Read what the store holds.

        Args:
            store: Where to write.
            encoder: The model that ``recipe`` names.
            recipe: How documents become chunks.
            progress: Called after each written batch with the documents seen and the chunks embedded so far.
        """
        self._store = store
        self._encoder = encoder
        self._recipe = recipe
        self._progress = progress or (lambda documents, chunks: None)
        self._stored = store.documents()
        self._seen: dict[str, str] = {}
        self._waiting: list[Chunk] = []
        self._outdated: list[str] = []
        self._batch = store.write_batch
        self._counts = dict.fromkeys(UpdateReport.__dataclass_fields__, 0)

    @property
    def documents(self) -> int:
        """Number of documents in the store, after the last :meth:`put` or :meth:`remove`."""
        return len(self._stored)

    @property
    def chunks(self) -> int:
        """Number of chunks that the store should hold now."""
        return sum(len(numbers) for d in self._stored.values() for numbers in d.numbers.values())

    @property
    def digest(self) -> str:
        """Digest of ids and digests of all documents in the store."""
        return corpus_digest((doc_id, digest) for doc_id, d in self._stored.items() for digest in d.numbers)

    @property
    def report(self) -> UpdateReport:
        """What was done so far."""
        return UpdateReport(**self._counts)

    def put(self, documents: Iterable[Document]) -> None:
        """Add new documents and replace changed ones.

        Raises:
            CorpusError: if two documents have the same id and differ.
        """
        for document in documents:
            digest = _note(document, self._seen)
            self._put_one(document, digest)
        self._flush()

    def remove(self, doc_ids: Iterable[str]) -> None:
        """Delete documents; those that are not there are passed over."""
        for doc_id in dict.fromkeys(doc_ids):
            if doc_id in self._stored:
                self._drop(doc_id)
                self._counts["deleted"] += 1
        self._flush()

    def remove_unseen(self) -> None:
        """Delete the documents that :meth:`put` did not meet."""
        self.remove([doc_id for doc_id in self._stored if doc_id not in self._seen])

    def _put_one(self, document: Document, digest: str) -> None:
        stored = self._stored.get(document.id, StoredDocument())
        if stored.is_complete(digest):
            self._counts["unchanged"] += 1
            return
        passages = chunk_document(document, self._recipe.chunk_size, self._recipe.chunk_overlap)
        if not passages:
            self._counts["empty"] += 1
            self._drop(document.id)
            return
        self._counts["replaced" if stored.numbers.keys() - {digest} else "added"] += 1
        there = stored.numbers.get(digest, set())
        self._drop(document.id, keep=digest)
        self._stored[document.id] = StoredDocument(len(passages), {digest: set(range(len(passages)))})
        chunks = (Chunk(p, digest, len(passages), document.aliases) for p in passages)
        for chunk in chunks:
            if chunk.number not in there:
                self._waiting.append(chunk)
                if len(self._waiting) == self._batch:
                    self._flush()

    def _drop(self, doc_id: str, *, keep: str = "") -> None:
        """Mark all chunks of a document for deletion, but those of the version ``keep``."""
        stored = self._stored.pop(doc_id, StoredDocument())
        for digest, numbers in stored.numbers.items():
            if digest != keep:
                self._outdated += [f"{doc_id}#{number}" for number in sorted(numbers)]

    def _flush(self) -> None:
        # Deleted first: Chroma takes 40 times as long to replace a vector as to delete it and add another.
        self._store.remove(self._outdated)
        self._outdated = []
        if not self._waiting:
            return
        chunks, self._waiting = self._waiting, []
        texts = [self._text(chunk) for chunk in chunks]
        self._store.put(chunks, self._encoder.embed(texts))
        self._counts["embedded"] += len(chunks)
        self._counts["truncated"] += self._encoder.truncated(texts)
        self._progress(len(self._seen), self._counts["embedded"])

    def _text(self, chunk: Chunk) -> str:
        """What is embedded; what is stored and read is always the bare chunk."""
        p = chunk.passage
        return f"{p.title}: {p.text}" if self._recipe.embed_title and p.title else p.text


def distinct(documents: Iterable[Document]) -> list[Document]:
    """The documents, if no two of them have the same id and differ.

    Raises:
        CorpusError: naming the id.
    """
    checked, seen = list(documents), dict[str, str]()
    for document in checked:
        _note(document, seen)
    return checked


def _note(document: Document, seen: dict[str, str]) -> str:
    digest = document.digest
    if seen.setdefault(document.id, digest) != digest:
        raise CorpusError(f"two documents have the id {document.id!r}", hint="Give each an id of its own.")
    return digest
