"""From a vector index to a knowledge graph: extract, resolve, embed, compare, write.

Work is kept as it is done, extractions by passage and name vectors by block, so that a build that was killed goes on
and ends with the same files. Time grows linearly with the passages, but for the two comparisons by cosine, which are
products of matrices.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from medhop_dspy.errors import GraphError
from medhop_dspy.graph.cache import ExtractionCache
from medhop_dspy.graph.files import check_folder, read_graph, write_graph
from medhop_dspy.graph.index import EXTRACTIONS, LOCK, GraphIndex, complete_manifest
from medhop_dspy.graph.manifest import GraphManifest, GraphRecipe, encoder_difference, find_manifest
from medhop_dspy.graph.name_vectors import NameVectors
from medhop_dspy.graph.neighbours import nearest_pairs
from medhop_dspy.graph.records import Extraction
from medhop_dspy.graph.resolve import Resolved, resolve
from medhop_dspy.graph.synonyms import synonyms, with_synonyms
from medhop_dspy.retrieval.locking import writer_lock
from medhop_dspy.retrieval.manifest import EncoderRecord

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from medhop_dspy.graph.records import Extractor
    from medhop_dspy.retrieval.embedding import Encoder
    from medhop_dspy.retrieval.retriever import PassageIndex
    from medhop_dspy.trace import Passage

Stage = Literal["extracting", "embedding names", "comparing names", "comparing passages"]
# Stage, how much of it is done, how much there is.
Progress = Callable[[Stage, int, int], None]
NAME_VECTORS: Final = "names"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build did.

    Attributes:
        extracted: Passages that the extractor read.
        reused: Passages whose title and text were read before, or with another passage.
        failed: Passages whose extraction failed; they have no entities until a later build succeeds with them.
        rejected: Malformed or empty entities and triples that extractions left out.
        embedded: Names that went through the embedding model.
        changed: In what the graph that was there was made otherwise; empty for a new one, too.
        written: Whether there was anything to do; False where all that could be read had been read.
    """

    extracted: int = 0
    reused: int = 0
    failed: int = 0
    rejected: int = 0
    embedded: int = 0
    changed: tuple[str, ...] = ()
    written: bool = True


def build(
    folder: Path,
    index: PassageIndex,
    embedder: Encoder,
    extractor: Extractor,
    recipe: GraphRecipe | None = None,
    *,
    workers: int = 1,
    progress: Progress | None = None,
) -> tuple[GraphIndex, BuildReport]:
    """Bring the graph in ``folder`` to the state of the index, as if it were built anew.

    A graph that is there can be read until the new one takes its place in one step. What this extractor has read
    before, in whatever build, is not read again.

    Args:
        folder: Empty, absent, or with a graph.
        index: The passages, in the order of their ids as strings.
        embedder: What embeds the names of entities.
        extractor: What reads the passages.
        recipe: Thresholds; default: those of :class:`~medhop_dspy.graph.manifest.GraphRecipe`.
        workers: Passages read at once.
        progress: Called with a stage and how much of it is done.

    Raises:
        GraphError: the folder holds something else.
        StoreLockedError: another process writes to it.
        ReplyError: too many extractions fail.
        ServerError: the model server is down.
        DiskFullError: no space is left.
    """
    check_folder(folder)
    with writer_lock(folder / LOCK, str(folder)):
        old = _last(folder)
        wanted = _manifest(index, embedder, extractor, (extractor.digest,), recipe or GraphRecipe())
        return _Builder(folder, index, embedder, extractor, workers, progress or (lambda *_: None)).make(old, wanted)


def add(
    folder: Path,
    index: PassageIndex,
    embedder: Encoder,
    extractor: Extractor,
    *,
    workers: int = 1,
    progress: Progress | None = None,
) -> tuple[GraphIndex, BuildReport]:
    """Bring the graph in ``folder`` to the state of the index, reading nothing but new passages.

    The other passages keep their entities and triples, also where a dictionary has got new names since; ``build``
    would look for those everywhere. Passages that the index has no longer are left out. Adding twice changes nothing.

    Args and errors are those of :func:`build`; the recipe is the graph's own.

    Raises:
        GraphError: there is no complete graph, or it was made with another embedder, kind of extractor, model or
            prompt.
    """
    complete_manifest(folder)  # before the lock, whose file must not be put where there is no graph
    with writer_lock(folder / LOCK, str(folder)):
        old = complete_manifest(folder)
        # A dictionary grows with the corpus; another model or prompt would make a graph of two kinds of triples.
        grows = old.source == extractor.source == "dictionary"
        earlier = [digest for digest in old.extractors if grows and digest != extractor.digest]
        extractors = (*earlier, extractor.digest)
        wanted = _manifest(index, embedder, extractor, extractors, old.recipe)
        comparable = replace(old, extractors=extractors) if grows else old
        if differences := comparable.differences(wanted):
            raise GraphError(
                f"cannot add to the graph {folder}: it has {'; '.join(differences)}",
                hint="`medhop graph build` makes it anew; passages that this extractor has read are not read again.",
            )
        builder = _Builder(folder, index, embedder, extractor, workers, progress or (lambda *_: None))
        graph, report = builder.make(old, wanted)
        return graph, replace(report, changed=())  # but for new names in the dictionary, nothing did


@dataclass(frozen=True, eq=False)
class _Builder:
    """One build, under the writer's lock; its fields are the arguments of :func:`build`."""

    folder: Path
    index: PassageIndex
    embedder: Encoder
    extractor: Extractor
    workers: int
    progress: Progress

    def make(self, old: GraphManifest | None, wanted: GraphManifest) -> tuple[GraphIndex, BuildReport]:
        """The graph that ``wanted`` asks for: the one that is there, or a new one in its place."""
        changed = old.differences(wanted) if old else ()
        last = _readable(self.folder, old)
        same = last if last and not changed and last.manifest.index_digest == wanted.index_digest else None
        if same and not same.manifest.failed:
            return same, BuildReport(reused=len(same.passage_ids), written=False)
        passages = list(islice(self.index.all_passages(), wanted.recipe.limit))
        extractions, report = self._extract(passages, wanted.extractors)
        if same and not report.extracted and report.failed == same.manifest.failed:
            return same, replace(report, written=False)
        known = _vectors_of(last, wanted.encoder)
        del last, same  # not two graphs in memory
        resolved = resolve(extractions)
        names = NameVectors(self.folder / NAME_VECTORS, self.embedder, known)
        vectors = names.embed(resolved.names, lambda done, total: self.progress("embedding names", done, total))
        graph = self._graph(passages, resolved, vectors, wanted)
        graph = write_graph(self.folder, replace(graph, manifest=replace(wanted, counts=_counts(graph, report.failed))))
        names.clear()
        return graph, replace(report, embedded=names.embedded, changed=changed)

    def _extract(
        self, passages: Sequence[Passage], extractors: tuple[str, ...]
    ) -> tuple[list[Extraction], BuildReport]:
        """What each passage says, in their order: what the first of ``extractors`` found, of which the last is ours."""
        from medhop_dspy.graph.extraction import extract_all

        with ExtractionCache(self.folder / EXTRACTIONS, extractors) as cache:
            found = extract_all(
                passages,
                self.extractor,
                cache,
                self.workers,
                lambda done, total: self.progress("extracting", done, total),
            )
        extractions = [found.get(passage.id, Extraction(source=self.extractor.source)) for passage in passages]
        return extractions, BuildReport(
            extracted=cache.added,
            reused=len(found) - cache.added,
            failed=len(passages) - len(found),
            rejected=sum(extraction.rejected for extraction in extractions),
        )

    def _graph(
        self,
        passages: Sequence[Passage],
        resolved: Resolved,
        vectors: NDArray[np.float32],
        wanted: GraphManifest,
    ) -> GraphIndex:
        recipe = wanted.recipe
        pairs, cosines = synonyms(
            resolved,
            vectors,
            recipe.synonym_floor,
            lambda done: self.progress("comparing names", done, len(resolved.names)),
        )
        edges, support, edge_weights = with_synonyms(resolved, pairs, cosines)
        links, weights = nearest_pairs(
            self.index.vectors([p.id for p in passages]),
            [p.doc_id for p in passages],
            recipe.neighbours,
            recipe.neighbour_floor,
            lambda done: self.progress("comparing passages", done, len(passages)),
        )
        return GraphIndex(
            names=resolved.names,
            types=resolved.types,
            relations=resolved.relations,
            edges=edges,
            edge_weights=edge_weights,
            support=support,
            mentions=resolved.mentions,
            passage_ids=tuple(p.id for p in passages),
            passage_titles=tuple(p.title for p in passages),
            passage_edges=links,
            passage_weights=weights,
            vectors=vectors,
            manifest=wanted,
        )


def _counts(graph: GraphIndex, failed: int) -> dict[str, int]:
    """How many there are of each part, for the manifest."""
    return {
        "passages": len(graph.passage_ids),
        "failed": failed,
        "entities": len(graph.names),
        "relations": len(graph.relations),
        "edges": len(graph.edges),
        "synonyms": int((graph.edges[:, 1] == graph.synonym).sum()),
        "mentions": int(graph.mentions.nnz),
        "passage_edges": len(graph.passage_edges),
    }


def _manifest(
    index: PassageIndex, embedder: Encoder, extractor: Extractor, extractors: tuple[str, ...], recipe: GraphRecipe
) -> GraphManifest:
    return GraphManifest(index.digest, extractor.source, extractors, EncoderRecord.of(embedder), recipe)


def _last(folder: Path) -> GraphManifest | None:
    """The manifest of the graph that is to be replaced; one that cannot be read is as good as none."""
    try:
        return find_manifest(folder)
    except GraphError as error:
        _log.warning("%s; building anew", error)
        return None


def _readable(folder: Path, manifest: GraphManifest | None) -> GraphIndex | None:
    try:
        return read_graph(folder, manifest) if manifest else None
    except GraphError as error:
        _log.warning("%s; building anew", error)
        return None


def _vectors_of(graph: GraphIndex | None, encoder: EncoderRecord) -> dict[str, NDArray[np.float32]]:
    """Vectors (d,) of the names that ``graph`` has, as far as this model made them."""
    if graph is None or encoder_difference(graph.manifest.encoder, encoder):
        return {}
    return dict(zip(graph.names, graph.vectors, strict=True))
