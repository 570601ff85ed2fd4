"""The knowledge graph as arrays, opened only if it is complete and fits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from medhop_dspy.errors import GraphError
from medhop_dspy.graph.manifest import BUILD, GraphManifest, encoder_difference, find_manifest
from medhop_dspy.retrieval.locking import holder, is_locked
from medhop_dspy.retrieval.manifest import EncoderRecord

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from medhop_dspy.retrieval.embedding import Encoder
    from medhop_dspy.retrieval.retriever import PassageIndex

SYNONYM: Final = "synonym"
LOCK: Final = "writer.lock"
EXTRACTIONS: Final = "extractions"


@dataclass(frozen=True, eq=False)
class GraphIndex:
    """The heterogeneous graph G = G_ent + G_link + G_doc. Entities, relations and passages are numbered from 0.

    Its arrays are not to be changed. Safe for threads.

    Attributes:
        names: (n_entities,) the most frequent spelling of each entity.
        types: (n_entities,) in lower case; empty where unknown.
        relations: Texts, sorted; ``synonym`` is always one.
        edges: (n_edges, 3) int64, G_ent: head, relation, tail; sorted, each once and in its direction. Synonyms are
            undirected and stored once, the smaller number as head.
        edge_weights: (n_edges,) float32: 1 for what a passage says, else the cosine of two synonyms' names.
        support: (n_edges, n_passages) sparse 0/1: which passages say so; none for a synonym that the cosine tells.
        mentions: (n_entities, n_passages) sparse 0/1: the inverted index M, that is G_link.
        passage_ids: (n_passages,) sorted as strings.
        passage_titles: (n_passages,) of their documents.
        passage_edges: (n, 2) int64, G_doc, undirected: the smaller number first, sorted, each once.
        passage_weights: (n,) float32 cosine of the two passages.
        vectors: (n_entities, d) float32 unit vectors of the names.
        manifest: What all this was made of.
    """

    names: tuple[str, ...]
    types: tuple[str, ...]
    relations: tuple[str, ...]
    edges: NDArray[np.int64]
    edge_weights: NDArray[np.float32]
    support: csr_array
    mentions: csr_array
    passage_ids: tuple[str, ...]
    passage_titles: tuple[str, ...]
    passage_edges: NDArray[np.int64]
    passage_weights: NDArray[np.float32]
    vectors: NDArray[np.float32]
    manifest: GraphManifest

    def __post_init__(self) -> None:
        entities, passages, edges = len(self.names), len(self.passage_ids), len(self.edges)
        shapes = {
            "types": ((len(self.types),), (entities,)),
            "edges": (self.edges.shape, (edges, 3)),
            "edge_weights": (self.edge_weights.shape, (edges,)),
            "support": (self.support.shape, (edges, passages)),
            "mentions": (self.mentions.shape, (entities, passages)),
            "passage_titles": ((len(self.passage_titles),), (passages,)),
            "passage_edges": (self.passage_edges.shape, (len(self.passage_weights), 2)),
            "vectors": (self.vectors.shape, (entities, self.manifest.encoder.dimension)),
        }
        for name, (found, wanted) in shapes.items():
            if tuple(found) != wanted:
                raise GraphError(f"the graph's {name} has the shape {tuple(found)}, wanted {wanted}", hint=BUILD)
        bounds = np.array([entities, len(self.relations), entities])
        if (self.edges < 0).any() or (self.edges >= bounds).any():
            raise GraphError("an edge of the graph leads to an entity or relation that is not there", hint=BUILD)
        if (self.passage_edges < 0).any() or (self.passage_edges >= passages).any():
            raise GraphError("an edge of the graph leads to a passage that is not there", hint=BUILD)

    @classmethod
    def open(cls, folder: Path, index: PassageIndex | None = None, embedder: Encoder | None = None) -> GraphIndex:
        """The complete graph in ``folder``.

        Args:
            folder: Where :func:`medhop_dspy.graph.build.build` wrote it.
            index: The vector index that it is to be used with; none: any.
            embedder: The model that query names are to be embedded with; none: any.

        Raises:
            GraphError: there is no graph, its build was interrupted or is under way, it is of another index,
                embedder or format, or a file is not as it was written.
        """
        from medhop_dspy.graph.files import read_graph

        manifest = complete_manifest(folder)
        if index is not None and index.digest != manifest.index_digest:
            raise GraphError(
                f"the graph {folder} is of the index {manifest.index_digest[:12]}, wanted {index.digest[:12]}",
                hint="Run `medhop graph add` if the index has changed. For another index, build another graph: "
                "`medhop graph build --index INDEX --out FOLDER`, and then --set graph=FOLDER.",
            )
        if embedder is not None and (difference := encoder_difference(manifest.encoder, EncoderRecord.of(embedder))):
            raise GraphError(f"the graph {folder} has {difference}", hint=f"{BUILD} Or change the embedder back.")
        try:
            return read_graph(folder, manifest)
        except GraphError:
            # A build that ended meanwhile has put another graph in the place of this one.
            newer = find_manifest(folder)
            if newer is None or newer.files == manifest.files:
                raise
            return cls.open(folder, index, embedder)

    @property
    def digest(self) -> str:
        """Hex SHA-256 of what a result depends on; see :attr:`GraphManifest.digest`."""
        return self.manifest.digest

    @cached_property
    def passage_counts(self) -> NDArray[np.int64]:
        """(n_entities,) number of passages that mention each entity."""
        return np.asarray(np.diff(self.mentions.indptr), np.int64)

    @property
    def synonym(self) -> int:
        """Number of the relation ``synonym``."""
        return self.relations.index(SYNONYM)

    def label(self, entity: int) -> str:
        """Name and, where it is known, type of an entity: ``FBN1 (gene)``."""
        return label(self.names[entity], self.types[entity])


def label(name: str, type_: str) -> str:
    """A name with its type in brackets; the name alone where the type is empty."""
    return f"{name} ({type_})" if type_ else name


def sparse_rows(starts: NDArray[np.int64], columns: NDArray[np.int64], width: int) -> csr_array:
    """The 0/1 matrix (n, ``width``) whose row i has ones in ``columns[starts[i] : starts[i + 1]]``, sorted."""
    from scipy.sparse import csr_array

    ones: NDArray[Any] = np.ones(len(columns), np.float32)
    return csr_array((ones, columns, starts), shape=(len(starts) - 1, width))


def complete_manifest(folder: Path) -> GraphManifest:
    """The manifest of the complete graph in ``folder``.

    Raises:
        GraphError: there is none, or it is being built, or its build was killed; or the manifest cannot be read.
    """
    if manifest := find_manifest(folder):
        return manifest
    lock = folder / LOCK
    if not (folder / EXTRACTIONS).exists():
        raise GraphError(f"there is no graph in {folder}", hint="Build one with `medhop graph build`.")
    if is_locked(lock):
        doing, hint = f"process {holder(lock)} is building it", "Wait."
    else:
        doing, hint = "its build was interrupted", BUILD
    raise GraphError(f"the graph {folder} is not complete: {doing}", hint=hint)
