"""Exact search: all vectors and passages of an index in memory."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import astuple, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from medhop_dspy.errors import MedhopError
from medhop_dspy.retrieval.disk import disk_errors, write_atomically
from medhop_dspy.retrieval.location import FolderLocation
from medhop_dspy.retrieval.store import READ_BATCH, find_manifest
from medhop_dspy.trace import Passage

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from medhop_dspy.retrieval.manifest import Manifest
    from medhop_dspy.retrieval.store import Store

# Scores are rounded, so that equal vectors tie and the order among them is that of their ids. The last digits of
# a float32 dot product depend on where in the matrix a row stands.
SCORE_DIGITS: Final = 6
_TIE: Final = 1e-6
_log = logging.getLogger(__name__)


class Snapshot:
    """Passages in the order of their ids as strings, and their unit vectors (N, d), which are not to be changed."""

    def __init__(self, passages: Sequence[Passage], vectors: NDArray[np.float32]) -> None:
        """Hold both; row i of ``vectors`` belongs to passage i."""
        self.passages = tuple(passages)
        self.vectors = vectors
        self.rows = {p.id: row for row, p in enumerate(self.passages)}

    def search(self, vectors: NDArray[np.float32], k: int) -> list[list[Passage]]:
        """For each row of ``vectors`` (n, d), the ``min(k, N)`` best by (-score, id)."""
        return [self._best(row, k) for row in vectors]

    def recall(self, query: NDArray[np.float32], found: Sequence[str], k: int) -> float:
        """Share, 0 to 1, of the ``min(k, N)`` best passages for ``query`` (d,) among the ids ``found``.

        A passage that ties with the last of the best counts as found in its place.
        """
        scores = self.vectors @ query  # (N,)
        wanted = min(k, len(scores))
        floor = np.partition(scores, -wanted)[-wanted] - _TIE
        hits = sum(1 for i in found if i in self.rows and scores[self.rows[i]] >= floor)
        return min(hits, wanted) / wanted

    def _best(self, query: NDArray[np.float32], k: int) -> list[Passage]:
        # One query at a time: the scores of one do not depend on which others are asked together with it.
        if not self.passages:
            return []
        scores = np.round((self.vectors @ query).astype(np.float64), SCORE_DIGITS)  # (N,)
        rows = np.arange(len(scores))
        if k < len(scores):
            rows = np.flatnonzero(scores >= np.partition(scores, -k)[-k])  # ties with the k-th included
        rows = rows[np.argsort(-scores[rows], kind="stable")][:k]
        return [replace(self.passages[i], score=float(scores[i])) for i in rows]


def load_snapshot(store: Store, manifest: Manifest) -> Snapshot:
    """The exact search of a store in the state of ``manifest``, out of a file in its folder if there is one."""
    dimension, location = manifest.recipe.encoder.dimension, store.location
    if not isinstance(location, FolderLocation):
        return read_snapshot(store, dimension)
    cache = SnapshotCache(location.folder / "exact", manifest.digest)
    # While another process updates the index, this is still its last complete state.
    snapshot = cache.load(manifest.chunks)
    if snapshot is None:
        snapshot = read_snapshot(store, dimension)
        if find_manifest(location) == manifest and manifest.state == "complete":
            cache.save(snapshot)
    return snapshot


def read_snapshot(store: Store, dimension: int) -> Snapshot:
    """Everything in the store, whose vectors have ``dimension`` numbers. Chunks that a writer deletes meanwhile are
    left out.
    """  # noqa: D205
    passages: list[Passage] = []
    vectors: list[NDArray[np.float32]] = []
    ids = store.ids()
    for start in range(0, len(ids), READ_BATCH):
        page = ids[start : start + READ_BATCH]
        by_id, vector_of = store.passages(page), store.vectors(page)
        kept = [i for i in page if i in by_id and i in vector_of]
        passages += [by_id[i] for i in kept]
        vectors += [vector_of[i] for i in kept]
    return Snapshot(passages, np.array(vectors, np.float32).reshape(-1, dimension))


class SnapshotCache:
    """Snapshots as files in a folder, named after the digest of the index: opening takes a tenth of the time."""

    def __init__(self, folder: Path, digest: str) -> None:
        """Nothing is read yet."""
        self._folder = folder
        self._vectors = folder / f"{digest}.npy"
        self._passages = folder / f"{digest}.jsonl"

    def load(self, count: int) -> Snapshot | None:
        """The snapshot of ``count`` passages, or None where there is none or it is damaged."""
        try:
            vectors = np.load(self._vectors, mmap_mode="r", allow_pickle=False)
            with self._passages.open(encoding="utf-8", newline="\n") as lines:
                passages = [Passage(*json.loads(line)) for line in lines]
        except (OSError, EOFError, ValueError, TypeError, RecursionError) as error:
            _log.debug("no cached vectors: %s", error)
            return None
        if not len(passages) == len(vectors) == count or vectors.dtype != np.float32:
            return None
        return Snapshot(passages, vectors)

    def save(self, snapshot: Snapshot) -> None:
        """Keep ``snapshot`` and forget others. A cache that cannot be written is no error: the store has it all."""
        lines = (json.dumps(astuple(p), ensure_ascii=False).encode() + b"\n" for p in snapshot.passages)
        try:
            with disk_errors(self._folder):
                self._folder.mkdir(exist_ok=True)
                for old in self._folder.iterdir():
                    old.unlink()
                write_atomically(self._passages, lambda stream: stream.writelines(lines))
                write_atomically(self._vectors, lambda stream: np.save(stream, snapshot.vectors))
        except MedhopError as error:
            _log.warning("exact search will be slow to open: %s", error)


def in_order(passages: Iterable[Passage]) -> list[Passage]:
    """By rounded score, descending, then id."""
    rounded = (replace(p, score=round(p.score, SCORE_DIGITS)) for p in passages)
    return sorted(rounded, key=lambda p: (-p.score, p.id))
