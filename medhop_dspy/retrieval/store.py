"""Chunks and vectors in Chroma."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from medhop_dspy.errors import InputError, MedhopError, StoreError
from medhop_dspy.retrieval.connection import chroma_errors, connect, connection, disconnect
from medhop_dspy.retrieval.disk import disk_errors, write_atomically
from medhop_dspy.retrieval.location import FolderLocation, Location, ServerLocation
from medhop_dspy.retrieval.manifest import HnswParameters, Manifest
from medhop_dspy.retrieval.metadata import Chunk, passage_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from medhop_dspy.trace import Passage

FOLDER_COLLECTION: Final = "passages"
WRITE_BATCH: Final = 256  # at most: what a kill can cost, and far below the size of a request that a server refuses
READ_BATCH: Final = 5000
_MANIFEST_KEY: Final = "manifest"
_AGAIN: Final = "Delete it and build it again."
_ROUNDING: Final = 1e-6


@dataclass(slots=True)
class StoredDocument:
    """What the store holds of one document.

    Attributes:
        chunks: How many chunks its latest version has.
        numbers: For each version's digest, the numbers of the chunks that are there.
    """

    chunks: int = 0
    numbers: dict[str, set[int]] = field(default_factory=dict)

    def is_complete(self, digest: str) -> bool:
        """Whether every chunk of this version is there, and none of another."""
        return self.numbers.keys() == {digest} and len(self.numbers[digest]) == self.chunks


class Store:
    """A Chroma collection and its manifest. Vectors are brought to length 1 before they are stored.

    Every method raises StoreError if Chroma refuses or cannot be reached, and DiskFullError if the disk is full.
    """

    def __init__(self, location: Location, client: Any, collection: Any) -> None:  # noqa: ANN401
        """Hold an open client and collection; see :meth:`open` and :meth:`create`."""
        self.location = location
        self._client = client
        self._collection = collection

    @classmethod
    def open(cls, location: Location) -> Store:
        """The store at a place where :meth:`create` has been.

        Raises:
            StoreError: if there is none, or its distance is not cosine.
        """
        # Chroma would make an empty database where there is none.
        if isinstance(location, FolderLocation) and not (location.database / "chroma.sqlite3").is_file():
            raise StoreError(f"the index {location} has lost its database in {location.database}", hint=_AGAIN)
        with chroma_errors(location):
            client = connect(location)
        try:
            with chroma_errors(location):
                collection = client.get_collection(_collection_name(location), embedding_function=None)
            _check_space(location, collection)
        except MedhopError:
            disconnect(client)
            raise
        return cls(location, client, collection)

    @classmethod
    def create(cls, location: Location, manifest: Manifest) -> Store:
        """The store at a place, empty where there was none; a creation that was interrupted is finished.

        The manifest is there before anything else is.
        """
        if isinstance(location, FolderLocation):
            with disk_errors(location):
                location.folder.mkdir(parents=True, exist_ok=True)
            _write_manifest_file(location, manifest)
        metadata = {_MANIFEST_KEY: manifest.to_json()} if isinstance(location, ServerLocation) else None
        with chroma_errors(location):
            client = connect(location)
        try:
            with chroma_errors(location):
                collection = client.get_or_create_collection(
                    _collection_name(location),
                    embedding_function=None,
                    configuration={"hnsw": asdict(manifest.recipe.hnsw)},
                    metadata=metadata,
                )
            _check_space(location, collection)
        except MedhopError:
            disconnect(client)
            raise
        return cls(location, client, collection)

    def close(self) -> None:
        """Release files and connections; a second call does nothing."""
        disconnect(self._client)

    @property
    def count(self) -> int:
        """Number of chunks."""
        with chroma_errors(self.location):
            return int(self._collection.count())

    @property
    def write_batch(self) -> int:
        """How many chunks one call may write; the limit is the client's, and differs between builds."""
        with chroma_errors(self.location):
            return min(int(self._client.get_max_batch_size()), WRITE_BATCH)

    def write_manifest(self, manifest: Manifest) -> None:
        """Replace the manifest in one step."""
        if isinstance(self.location, FolderLocation):
            _write_manifest_file(self.location, manifest)
            return
        with chroma_errors(self.location):
            self._collection.modify(metadata={_MANIFEST_KEY: manifest.to_json()})

    def put(self, chunks: Sequence[Chunk], vectors: NDArray[np.float32]) -> None:
        """Add chunks, or replace those of the same id, in as few calls as the client allows.

        Args:
            chunks: n chunks, in any order.
            vectors: (n, d) rows of any length above 0.
        """
        unit = unit_rows(vectors)
        step = self.write_batch
        for start in range(0, len(chunks), step):
            part = chunks[start : start + step]
            with chroma_errors(self.location):
                self._collection.upsert(
                    ids=[c.passage.id for c in part],
                    embeddings=unit[start : start + step],
                    documents=[c.passage.text for c in part],
                    metadatas=[c.metadata() for c in part],
                )

    def remove(self, ids: Sequence[str]) -> None:
        """Delete chunks; ids that are not there are passed over."""
        step = self.write_batch
        for start in range(0, len(ids), step):
            with chroma_errors(self.location):
                self._collection.delete(ids=list(ids[start : start + step]))

    def ids(self) -> list[str]:
        """All chunk ids, sorted as strings."""
        with chroma_errors(self.location):
            return sorted(self._collection.get(include=[])["ids"])

    def passages(self, ids: Sequence[str]) -> dict[str, Passage]:
        """The chunks of these different ids; those that are not there are left out."""
        pages = self._pages(ids, ["documents", "metadatas"])
        return {i: passage_of(i, t, m) for page in pages for i, t, m in _rows(page)}

    def passages_of(self, doc_id: str) -> list[Passage]:
        """The chunks of one document, in any order."""
        with chroma_errors(self.location):
            found = self._collection.get(where={"doc_id": doc_id}, include=["documents", "metadatas"])
        return [passage_of(i, t, m) for i, t, m in _rows(found)]

    def vectors(self, ids: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """The unit vectors (d,) of these different ids; those that are not there are left out."""
        vectors: dict[str, NDArray[np.float32]] = {}
        for page in self._pages(ids, ["embeddings"]):
            vectors |= zip(page["ids"], np.asarray(page["embeddings"], np.float32), strict=True)
        return vectors

    def _pages(self, ids: Sequence[str], include: list[str]) -> Iterator[Mapping[str, Any]]:
        """What the collection holds of these ids, at most ``READ_BATCH`` at a time."""
        for start in range(0, len(ids), READ_BATCH):
            with chroma_errors(self.location):
                page = self._collection.get(ids=list(ids[start : start + READ_BATCH]), include=include)
            yield page

    def documents(self) -> dict[str, StoredDocument]:
        """What is there of every document, complete or not."""
        documents: dict[str, StoredDocument] = {}
        for start in range(0, self.count, READ_BATCH):
            with chroma_errors(self.location):
                page = self._collection.get(include=["metadatas"], limit=READ_BATCH, offset=start)
            for metadata in page["metadatas"]:
                document = documents.setdefault(metadata["doc_id"], StoredDocument())
                document.chunks = metadata["chunks"]
                document.numbers.setdefault(metadata["digest"], set()).add(metadata["number"])
        return documents

    def nearest(self, vectors: NDArray[np.float32], k: int) -> list[list[Passage]]:
        """Approximate search: for each row of ``vectors`` (n, d), at most ``k`` chunks with their cosine, unordered."""
        with chroma_errors(self.location):
            found = self._collection.query(
                query_embeddings=vectors, n_results=k, include=["documents", "metadatas", "distances"]
            )
        columns = zip(found["ids"], found["documents"], found["metadatas"], found["distances"], strict=True)
        # In a space of cosine distances, and only there, cosine is 1 - distance.
        return [[passage_of(i, t, m, 1 - d) for i, t, m, d in zip(*rows, strict=True)] for rows in columns]

    def nearest_ids(self, vectors: NDArray[np.float32], k: int) -> list[list[str]]:
        """As :meth:`nearest`, ids only."""
        with chroma_errors(self.location):
            found = self._collection.query(query_embeddings=vectors, n_results=k, include=[])
        return [list(ids) for ids in found["ids"]]


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of length 1 in the direction of ``vectors`` (n, d). Rows that already have it, to rounding, are kept."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    lengths[np.abs(lengths - 1) < _ROUNDING] = 1
    return np.ascontiguousarray(vectors / lengths, np.float32)


def query_rows(vectors: NDArray[np.float32], k: int, dimension: int) -> NDArray[np.float32]:
    """Query vectors (n, ``dimension``) as unit rows.

    Raises:
        InputError: if one has no direction, they are of another shape, or ``k`` is below 1.
    """
    if k < 1:
        raise InputError(f"k must be at least 1, got {k}")
    queries = np.asarray(vectors, np.float32)
    if queries.ndim != 2 or queries.shape[1] != dimension:
        raise InputError(f"query vectors have shape {queries.shape}, wanted (n, {dimension})")
    if not np.isfinite(queries).all() or not queries.any(axis=1).all():
        raise InputError("a query vector is not finite, or zero, and so has no direction")
    return unit_rows(queries)


def find_manifest(location: Location) -> Manifest | None:
    """The manifest of an index, complete or not; None where there is nothing yet.

    Raises:
        StoreError: if something else is there, or the manifest is damaged or of another format.
    """
    if isinstance(location, FolderLocation):
        if not location.manifest.is_file():
            _refuse_foreign(location)
            return None
        with disk_errors(location):
            return Manifest.from_json(location.manifest.read_bytes(), str(location))
    from chromadb.errors import NotFoundError

    with chroma_errors(location), connection(location) as client:
        try:
            metadata = client.get_collection(location.collection, embedding_function=None).metadata or {}
        except NotFoundError:
            return None
    if _MANIFEST_KEY not in metadata:
        raise StoreError(f"the collection {location} was not made by this software", hint="Choose another name.")
    return Manifest.from_json(metadata[_MANIFEST_KEY], str(location))


def _collection_name(location: Location) -> str:
    return FOLDER_COLLECTION if isinstance(location, FolderLocation) else location.collection


def _check_space(location: Location, collection: Any) -> None:  # noqa: ANN401
    space = (collection.configuration_json.get("hnsw") or {}).get("space")
    if space != HnswParameters().space:
        raise StoreError(f"the index {location} has the distance {space!r}, wanted 'cosine'", hint=_AGAIN)


def _refuse_foreign(location: FolderLocation) -> None:
    """Never write among files of somebody else; a lock file alone is ours."""
    with disk_errors(location):
        found = sorted(f.name for f in location.folder.iterdir()) if location.folder.exists() else []
    foreign = [name for name in found if not name.startswith((location.lock_file(location.folder).name, "."))]
    if foreign:
        raise StoreError(
            f"the folder {location} is not empty and holds no index: {', '.join(foreign[:3])}",
            hint="Choose an empty folder or a new one. If it was an index whose manifest is lost, delete it first.",
        )


def _write_manifest_file(location: FolderLocation, manifest: Manifest) -> None:
    with disk_errors(location):
        write_atomically(location.manifest, lambda stream: stream.write(manifest.to_json().encode()))


def _rows(found: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    return zip(found["ids"], found["documents"], found["metadatas"], strict=True)
