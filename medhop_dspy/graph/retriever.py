"""Search through the knowledge graph, alone or fused with the vector index (Hybrid-IR, Eqs. 3 to 5)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from medhop_dspy.errors import GraphError, SettingsError
from medhop_dspy.graph.linking import seed_rows
from medhop_dspy.retrieval.fusion import reciprocal_rank_fusion
from medhop_dspy.retrieval.retriever import checked_queries

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from medhop_dspy.graph.index import GraphIndex
    from medhop_dspy.graph.linking import EntityLinker
    from medhop_dspy.graph.scoring import EntityScorer
    from medhop_dspy.retrieval.embedding import Embedder
    from medhop_dspy.retrieval.retriever import PassageIndex, Retriever
    from medhop_dspy.settings import Settings
    from medhop_dspy.trace import Passage

Mode = Literal["graph", "hybrid"]


@dataclass(frozen=True, slots=True)
class GraphSearch:
    """What one search found, and how.

    Attributes:
        passages: Best first.
        entities: Names that it started from in the graph, each once.
        graph_used: Whether the graph ranked passages for at least one query string; if not, the vector index served
            alone.
    """

    passages: tuple[Passage, ...]
    entities: tuple[str, ...]
    graph_used: bool


class GraphRetriever:
    """The graph's ranking S_graph, or its fusion with that of the dense retriever, for several query strings at once.

    For each query string: its entities are linked to the graph (Eq. 3), the scorer spreads from them over the graph,
    and entities score the passages that mention them. In mode ``hybrid`` this ranking is fused with the
    dense one, S_vec (Eq. 4), by reciprocal rank with eta = 60 (Eq. 5). Where ``lexical`` is on, BM25 is part of the
    dense ranking. A string of which nothing links is searched for by vectors alone.

    The strings' rankings are then merged and reranked as the dense retriever does it; with ``reranker`` none the
    order is that of Eq. 5. The same call gives the same passages in the same order. Safe for threads.
    """

    def __init__(
        self, dense: Retriever, graph: GraphIndex, linker: EntityLinker, scorer: EntityScorer, settings: Settings
    ) -> None:
        """Hold the parts.

        Args:
            dense: Search in the index that the graph was built over.
            graph: What ``linker`` and ``scorer`` work on.
            linker: Finds the entities of a query string.
            scorer: Spreads from them.
            settings: ``retriever`` (``graph`` or ``hybrid``), ``candidates``, ``top_entities``.

        Raises:
            SettingsError: if ``settings.retriever`` is ``dense`` or None.
        """
        self.dense = dense
        self.graph = graph
        self.settings = settings
        self.mode = _mode(settings.retriever)
        self._linker = linker
        self._scorer = scorer
        self._ids = np.array(graph.passage_ids, dtype=object)

    @classmethod
    def open(cls, dense: Retriever, embedder: Embedder, settings: Settings) -> Self:
        """The graph in ``settings.graph_folder``, beside ``dense``.

        Raises:
            GraphError: there is no complete graph, or it is of another index or embedding model.
            ArtefactError: the scorer's weights are missing or damaged.
            SettingsError: ``settings.retriever`` is ``dense`` or None.
        """
        from medhop_dspy.graph.index import GraphIndex
        from medhop_dspy.graph.linking import EntityLinker
        from medhop_dspy.graph.scoring import make_scorer

        graph = GraphIndex.open(settings.graph_folder, dense.index, embedder)
        linker = EntityLinker(graph, embedder, settings.link_floor)
        return cls(dense, graph, linker, make_scorer(graph, settings, embedder), settings)

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Itself: optimisers copy the modules that hold it, and graphs and models are to be shared."""
        return self

    @property
    def index(self) -> PassageIndex:
        """The vector index."""
        return self.dense.index

    @property
    def digest(self) -> str:
        """Hex SHA-256 of what a result depends on besides the settings: index, graph and the scorer's weights."""
        parts = [self.dense.digest, self.graph.digest, self._scorer.digest]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def search(self, queries: Sequence[str], k: int, rerank_query: str | None = None) -> list[Passage]:
        """The best passages for all query strings together; see :meth:`find`."""
        return list(self.find(queries, k, rerank_query).passages)

    def find(
        self,
        queries: Sequence[str],
        k: int,
        rerank_query: str | None = None,
        *,
        entities: Sequence[str] | None = None,
    ) -> GraphSearch:
        """The best passages for all query strings together, and whether the graph had a part in it.

        Args:
            queries: As for :meth:`medhop_dspy.retrieval.retriever.Retriever.search`.
            k: Likewise.
            rerank_query: Likewise.
            entities: Names that every query string starts from; none given: those of the graph that stand in it.

        Raises:
            InputError: if no query is left, ``queries`` is one string, or ``k`` is below 1.
            GraphError: if a passage of the graph is not in the index.
        """
        wanted = checked_queries(queries, k)
        seeds = self._seeds(wanted, entities)
        rankings = self._rankings(wanted, seeds)
        linked = np.flatnonzero(seeds.any(axis=0))
        return GraphSearch(
            passages=tuple(self.dense.select(rankings, k, wanted, rerank_query)),
            entities=tuple(self.graph.names[n] for n in linked),
            graph_used=bool(len(linked)),
        )

    def without_neighbours(self) -> GraphRetriever:
        """The same retriever with ``neighbours_of`` at 0: every passage stands at the rank of its own score."""
        return self._view(self.dense.without_neighbours())

    def ranked_by_itself(self) -> GraphRetriever:
        """The same retriever without reranking and neighbours: the order is that of its own scores."""
        return self._view(self.dense.fused())

    def in_mode(self, mode: str | None) -> GraphRetriever:
        """The same parts in mode ``graph`` or ``hybrid``.

        Raises:
            SettingsError: it is neither.
        """
        view = self._view(self.dense)
        view.mode = _mode(mode)
        return view

    def _view(self, dense: Retriever) -> GraphRetriever:
        view = copy(self)
        view.dense = dense
        return view

    def _seeds(self, queries: Sequence[str], entities: Sequence[str] | None) -> NDArray[np.float64]:
        """(n_queries, n_entities) 1 for an entity that a query string starts from, else 0."""
        named = [list(self._linker.spot(q)) if entities is None else list(entities) for q in queries]
        names = list(dict.fromkeys(name for some in named for name in some if name.strip()))
        number = dict(zip(names, self._linker.link(names), strict=True))
        return seed_rows([[number.get(name) for name in some] for some in named], len(self.graph.names))

    def _rankings(self, queries: Sequence[str], seeds: NDArray[np.float64]) -> list[list[Passage]]:
        """For each query string, at most ``settings.candidates`` passages, best first."""
        linked = [bool(row.any()) for row in seeds]
        by_graph = self._by_graph([q for q, use in zip(queries, linked, strict=True) if use], seeds[linked])
        dense = [n for n, use in enumerate(linked) if not use or self.mode == "hybrid"]
        by_vector = dict(zip(dense, self.dense.rankings([queries[n] for n in dense]) if dense else [], strict=True))
        rankings = []
        for number, use in enumerate(linked):
            vector = by_vector.get(number, [])
            graph = next(by_graph) if use else []
            rankings.append(reciprocal_rank_fusion([graph, vector]) if graph and vector else graph or vector)
        return [ranking[: self.settings.candidates] for ranking in rankings]

    def _by_graph(self, queries: Sequence[str], seeds: NDArray[np.float64]) -> Iterator[list[Passage]]:
        """S_graph: for each query string, at most ``settings.candidates`` passages with scores above 0, best first."""
        if not len(queries):
            return
        scores = self._scorer.passages(self._scorer.scores(queries, seeds), self.settings.top_entities)
        best = [self._best(row) for row in scores]
        known = self._read(list(dict.fromkeys(passage_id for row in best for passage_id, _ in row)))
        for row in best:
            yield [replace(known[passage_id], score=score) for passage_id, score in row]

    def _best(self, scores: NDArray[np.float64]) -> list[tuple[str, float]]:
        """Ids of the best positive scores (n_passages,) by descending score, then id."""
        hits, k = np.flatnonzero(scores > 0), self.settings.candidates
        if len(hits) > k:
            hits = hits[scores[hits] >= np.partition(scores[hits], -k)[-k]]  # every tie at the cut
        order = sorted(hits.tolist(), key=lambda n: (-scores[n], self._ids[n]))
        return [(self._ids[n], float(scores[n])) for n in order[:k]]

    def _read(self, ids: Sequence[str]) -> dict[str, Passage]:
        """The passages of the graph with these ids."""
        found = self.index.by_ids(ids)
        if missing := [each for each in ids if each not in found]:
            raise GraphError(
                f"passage {missing[0]!r} of the graph is not in the index",
                hint="Bring the graph to the state of the index with `medhop graph build`.",
            )
        return found


def _mode(retriever: str | None) -> Mode:
    if retriever == "graph":
        return "graph"
    if retriever == "hybrid":
        return "hybrid"
    raise SettingsError(
        f"retriever is {retriever!r}, a graph is searched with 'graph' or 'hybrid'",
        hint="Set retriever=hybrid, or search the index without a graph.",
    )
