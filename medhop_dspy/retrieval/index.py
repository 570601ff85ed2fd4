"""The vector index: built from a corpus, opened only if it fits, searched exactly or approximately."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np

from medhop_dspy.errors import InputError, StoreError
from medhop_dspy.retrieval.connection import chroma_version
from medhop_dspy.retrieval.corpus import ReadReport, read_corpus
from medhop_dspy.retrieval.location import parse_location
from medhop_dspy.retrieval.locking import writer_lock
from medhop_dspy.retrieval.manifest import IndexInfo
from medhop_dspy.retrieval.metadata import passage_number
from medhop_dspy.retrieval.opening import AGAIN, check_count, check_fit, open_complete, open_for_build
from medhop_dspy.retrieval.snapshot import Snapshot, in_order, load_snapshot
from medhop_dspy.retrieval.store import READ_BATCH, find_manifest, query_rows
from medhop_dspy.retrieval.sync import Progress, Synchroniser, UpdateReport, distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from medhop_dspy.retrieval.corpus import Document
    from medhop_dspy.retrieval.embedding import Encoder
    from medhop_dspy.retrieval.manifest import Manifest
    from medhop_dspy.retrieval.store import Store
    from medhop_dspy.settings import Settings
    from medhop_dspy.trace import Passage


class Index:
    """Passages of a corpus and their vectors.

    ``exact`` search holds all of them in memory and gives the same result each time; ``hnsw`` asks Chroma.
    Reading is safe for threads, also while another thread or process writes: an exact index goes on with what it
    has read. There is one writer at a time.
    """

    def __init__(self, store: Store, manifest: Manifest, encoder: Encoder, settings: Settings) -> None:
        """Hold an open store; use :meth:`open` or :meth:`build`."""
        self._store = store
        self._manifest = manifest
        self._encoder = encoder
        self._settings = settings
        self._snapshot: Snapshot | None = None
        self._snapshot_lock = threading.Lock()

    @classmethod
    def open(cls, location: str, embedder: Encoder, settings: Settings) -> Self:
        """The complete index at ``location``, for reading and small changes.

        Args:
            location: A folder, or ``http(s)://host:port/collection`` of a Chroma server.
            embedder: The model that made its vectors.
            settings: ``chunk_size``, ``chunk_overlap``, ``embed_title`` and ``index_search``.

        Raises:
            SettingsError: if ``location`` is neither folder nor server.
            StoreError: if there is no index, if it is not complete, was made by another model, other settings or
                another version, or does not hold what its manifest says.
        """
        store, manifest = open_complete(parse_location(location), embedder, settings)
        index = cls(store, manifest, embedder, settings)
        if settings.index_search == "exact":
            index._exact()  # now, before another process changes what the manifest tells of
        return index

    @classmethod
    def build(
        cls,
        location: str,
        corpus: Path,
        embedder: Encoder,
        settings: Settings,
        progress: Progress | None = None,
        report: ReadReport | None = None,
    ) -> tuple[Self, UpdateReport]:
        """Bring the index at ``location`` to the state of ``corpus``.

        A new index is made where there is none. One that is there, complete or not, is continued: documents that it
        holds are not embedded again, changed ones are replaced, and those that the corpus lacks are deleted. A build
        that was killed at any moment and run again ends with the same ids, vectors and digest as one that was not.

        Args:
            location: As for :meth:`open`; a folder must be empty, absent or an index.
            corpus: File or folder, see :func:`medhop_dspy.retrieval.corpus.read_corpus`.
            embedder: The model that makes the vectors.
            settings: As for :meth:`open`, and ``home``.
            progress: Called now and then with the documents seen and the chunks embedded so far.
            report: Where unreadable records of the corpus are noted.

        Raises:
            CorpusError: if the corpus cannot be read.
            SettingsError: if ``location`` is neither folder nor server.
            StoreError: if something else is at ``location``, or an index made in another way.
            StoreLockedError: if another process writes to it.
            DiskFullError: if no space is left.
        """
        documents = read_corpus(corpus, report or ReadReport())
        place = parse_location(location)
        # Checked before and under the lock: the lock's file must not be put among files of somebody else.
        find_manifest(place)
        with writer_lock(place.lock_file(settings.home), str(place)):
            store, manifest = open_for_build(place, embedder, settings)
            index = cls(store, manifest, embedder, settings)
            try:
                return index, index._synchronise(documents, prune=True, progress=progress)
            except BaseException:
                store.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __copy__(self) -> Self:
        """Itself, as :meth:`__deepcopy__`."""
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Itself: optimisers copy the modules that hold it, and a client is to be shared."""
        return self

    def close(self) -> None:
        """Release files and connections; a second call does nothing."""
        self._store.close()

    @property
    def count(self) -> int:
        """Number of passages."""
        return self._store.count

    @property
    def digest(self) -> str:
        """Hex SHA-256 of model, chunking and documents: what a result depends on."""
        return self._manifest.digest

    def info(self) -> IndexInfo:
        """What the index is made of, as of the last complete state."""
        return IndexInfo(str(self._store.location), self._settings.index_search, self.digest, self._manifest)

    def search(self, vectors: NDArray[np.float32], k: int) -> list[list[Passage]]:
        """The nearest passages of each query vector.

        Args:
            vectors: (n, d) finite rows with a direction; their length does not matter.
            k: How many passages, at least 1.

        Returns:
            For each row, ``min(k, count)`` passages with their cosine similarity, -1 to 1, ordered by (-score, id).

        Raises:
            InputError: if a vector or ``k`` cannot be searched with.
        """
        queries = query_rows(vectors, k, self._encoder.dimension)
        if self._settings.index_search == "exact":
            return self._exact().search(queries, k)
        if not len(queries) or not self.count:
            return [[] for _ in queries]
        return [in_order(found) for found in self._store.nearest(queries, k)]

    def check_recall(self, k: int, sample: int = 100, vectors: NDArray[np.float32] | None = None) -> float:
        """Mean share, 0 to 1, of the exact ``k`` nearest passages that approximate search finds.

        Args:
            k: Neighbours per query, at least 1.
            sample: How many stored vectors, evenly spread over the index, are searched with.
            vectors: (n, d) vectors of real questions to search with instead; they are harder to find for.

        Raises:
            InputError: if there is nothing to search with, or in.
        """
        exact = self._exact()
        if vectors is None:
            rows = np.unique(np.linspace(0, len(exact.vectors) - 1, max(sample, 0)).astype(int))
            vectors = exact.vectors[rows] if exact.passages else exact.vectors
        queries = query_rows(vectors, k, self._encoder.dimension)
        if not len(queries) or not exact.passages:
            raise InputError(f"cannot measure recall with {len(queries)} queries in {len(exact.passages)} passages")
        found = self._store.nearest_ids(queries, k)
        shares = [exact.recall(query, ids, k) for query, ids in zip(queries, found, strict=True)]
        return float(np.mean(shares))

    def vectors(self, ids: Sequence[str]) -> NDArray[np.float32]:
        """(n, d) stored unit vectors of the passages ``ids``, in their order.

        Raises:
            InputError: if one is not in the index.
        """
        if self._settings.index_search == "exact":
            exact = self._exact()
            known = {i: exact.vectors[exact.rows[i]] for i in ids if i in exact.rows}
        else:
            known = self._store.vectors(list(dict.fromkeys(ids)))
        if missing := [i for i in ids if i not in known]:
            raise InputError(f"{len(missing)} passages are not in the index, such as {missing[0]!r}")
        return np.array([known[i] for i in ids], np.float32).reshape(-1, self._encoder.dimension)

    def by_ids(self, ids: Sequence[str]) -> dict[str, Passage]:
        """The passages of these ids; those that are not in the index are left out."""
        if self._settings.index_search != "exact":
            return self._store.passages(list(dict.fromkeys(ids)))
        exact = self._exact()
        return {i: exact.passages[exact.rows[i]] for i in ids if i in exact.rows}

    def passages(self, doc_id: str) -> list[Passage]:
        """The passages of one document in the order of its text; none if it is not in the index."""
        return sorted(self._store.passages_of(doc_id), key=lambda p: passage_number(p.id))

    def all_passages(self) -> Iterator[Passage]:
        """Every passage, in the order of the ids as strings."""
        if self._settings.index_search == "exact":
            yield from self._exact().passages
            return
        ids = self._store.ids()
        for start in range(0, len(ids), READ_BATCH):
            page = ids[start : start + READ_BATCH]
            found = self._store.passages(page)
            yield from (found[i] for i in page if i in found)

    def update(self, documents: Iterable[Document], progress: Progress | None = None) -> UpdateReport:
        """Make the index hold these documents and no others; only new and changed ones are embedded.

        Raises:
            CorpusError: if two documents have the same id and differ.
            StoreLockedError: if another process writes to the index.
            DiskFullError: if no space is left. The index is then incomplete until the update is run again.
        """
        with self._writing(repairs=True):
            return self._synchronise(documents, prune=True, progress=progress)

    def add(self, documents: Iterable[Document], progress: Progress | None = None) -> UpdateReport:
        """Add new documents, all held in memory, and replace changed ones; otherwise as :meth:`update`."""
        with self._writing():
            return self._synchronise(distinct(documents), prune=False, progress=progress)

    def delete(self, doc_ids: Iterable[str]) -> UpdateReport:
        """Delete documents; ids that are not there are passed over. Errors as for :meth:`update`."""
        with self._writing():
            return self._synchronise((), prune=False, doomed=doc_ids)

    @contextmanager
    def _writing(self, *, repairs: bool = False) -> Iterator[None]:
        """The lock, with the manifest as another process, or an update that failed, may have left it."""
        place = self._store.location
        with writer_lock(place.lock_file(self._settings.home), str(place)):
            manifest = find_manifest(place)
            if manifest is None:
                raise StoreError(f"the index {place} is gone", hint="Build it again with `medhop index build`.")
            if manifest.state != "complete" and not repairs:
                raise StoreError(f"the index {place} is half changed: an update was interrupted", hint=AGAIN)
            check_fit(manifest, place, self._encoder, self._settings)
            self._manifest = manifest
            yield

    def _synchronise(
        self,
        documents: Iterable[Document],
        *,
        prune: bool,
        doomed: Iterable[str] = (),
        progress: Progress | None = None,
    ) -> UpdateReport:
        if self._manifest.state == "complete":
            self._store.write_manifest(replace(self._manifest, state="updating"))
        sync = Synchroniser(self._store, self._encoder, self._manifest.recipe, progress)
        sync.put(documents)
        sync.remove(doomed)
        if prune:
            sync.remove_unseen()
        manifest = replace(
            self._manifest,
            state="complete",
            chroma=chroma_version(self._store.location),
            documents=sync.documents,
            chunks=sync.chunks,
            corpus_digest=sync.digest,
        )
        check_count(manifest, self._store)
        self._store.write_manifest(manifest)
        with self._snapshot_lock:
            self._manifest = manifest
            self._snapshot = None
        return sync.report

    def _exact(self) -> Snapshot:
        with self._snapshot_lock:
            if self._snapshot is None:
                self._snapshot = load_snapshot(self._store, self._manifest)
            return self._snapshot
