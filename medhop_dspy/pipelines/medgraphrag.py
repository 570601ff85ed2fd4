"""MedGraphRAG: from summaries of the documents' graphs down to passages, and back up to refine the answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, cast

import dspy
import numpy as np

from medhop_dspy import signatures
from medhop_dspy.answers import is_placeholder
from medhop_dspy.graph.index import SYNONYM
from medhop_dspy.graph.retriever import GraphRetriever, GraphSearch
from medhop_dspy.graph.signatures import QueryEntities
from medhop_dspy.pipelines.conclude import Concluding
from medhop_dspy.pipelines.evidence import line
from medhop_dspy.retrieval.lexical import LexicalIndex
from medhop_dspy.retrieval.retriever import Retriever, checked_queries
from medhop_dspy.signatures import HopType
from medhop_dspy.threads import made_once
from medhop_dspy.trace import Hop, Passage

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from medhop_dspy.graph.index import GraphIndex
    from medhop_dspy.pipelines.run import Run
    from medhop_dspy.retrieval.retriever import PassageIndex
    from medhop_dspy.settings import Settings

_TAGS: Final = 12  # entities in a summary
_FACTS: Final = 8  # triples in a summary
_SUMMARIES: Final = 3  # in the last prompt


class MedGraphRAG(Concluding):
    """U-shaped retrieval over the graph of each document.

    Down: the question and its entities choose among summaries of the documents' graphs, and those documents give the
    passages of a first answer. Up: that answer is refined beside the summaries of the documents that were read.

    The published system has a language model tag each graph; here a summary is made of the graph itself, its most
    specific entities with their types and the triples between them, which costs no call.
    """

    name = "medgraphrag"
    overrides: ClassVar = {**Concluding.overrides, "retriever": "hybrid", "graph_scorer": "pagerank"}
    final = signatures.FinalAnswer

    def __init__(
        self, retriever: Retriever | GraphRetriever, settings: Settings, adapter: dspy.Adapter | None = None
    ) -> None:
        super().__init__(retriever, settings, adapter)
        self.summaries = SummaryRetriever(cast("GraphRetriever", self.retriever))
        self.query_entities = dspy.Predict(QueryEntities)
        self.first_answer = dspy.Predict(signatures.SubAnswer)

    @classmethod
    def max_lm_calls(cls, settings: Settings) -> int:
        """The entities of the question where the model names them, a first answer and the refined one."""
        return 2 + (settings.plan_by == "model")

    async def _collect(self, run: Run) -> Sequence[str]:
        named = await run.entities(self.query_entities, self.retriever, run.question)
        shown = await run.search(self.summaries, [run.question], run.question, entities=named)
        evidence = [line(p) for p in shown]
        reply = await run.ask("first_answer", self.first_answer, evidence=evidence, question=run.question)
        answer = "" if reply is None or is_placeholder(reply.answer) else reply.answer
        reason = run.failures[-1].reason if reply is None else ""
        run.hops.append(Hop(run.question, HopType.OTHER.value, answer, attempts=1, reason=reason))
        return [run.question, *(named or ())]

    def _known(self, run: Run) -> list[str]:
        """The first answer, and what the graphs of the documents read say; the best passages' documents first."""
        documents = list(dict.fromkeys(p.doc_id for p in reversed(run.shown)))[:_SUMMARIES]
        return [*super()._known(run), *filter(None, map(self.summaries.summary, documents))]


class SummaryRetriever:
    """Finds documents by the summaries of their graphs (BM25), and in them passages as the dense retriever does it.

    Where no summary shares a word with a query string, dense search serves alone. Safe for threads.
    """

    def __init__(self, retriever: GraphRetriever) -> None:
        """Hold the graph's retriever; summaries are made when they are first needed."""
        self._retriever = retriever

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Itself, as the retriever that it holds."""
        return self

    @property
    def index(self) -> PassageIndex:
        """The vector index."""
        return self._retriever.index

    def search(self, queries: Sequence[str], k: int, rerank_query: str | None = None) -> list[Passage]:
        """The best passages of the documents found; see :meth:`find`."""
        return list(self.find(queries, k, rerank_query).passages)

    def find(
        self,
        queries: Sequence[str],
        k: int,
        rerank_query: str | None = None,
        *,
        entities: Sequence[str] | None = None,
    ) -> GraphSearch:
        """The best passages of the documents whose summaries fit, and whether there were such documents.

        Each query string contributes ``k`` documents, and each document a ranking of its passages by their cosine
        with the first string; the rankings are merged and reranked as the dense retriever does it.

        Args:
            queries: As for :meth:`medhop_dspy.retrieval.retriever.Retriever.search`.
            k: Likewise.
            rerank_query: Likewise.
            entities: Names that are searched for as further query strings.

        Raises:
            InputError: if no query is left, ``queries`` is one string, or ``k`` is below 1.
        """
        wanted = checked_queries([*checked_queries(queries, k), *(entities or ())], k)
        dense = self._retriever.dense
        documents = list(dict.fromkeys(p.doc_id for found in self._index.search(wanted, k) for p in found))
        rankings = self._ranked(wanted[0], documents) if documents else dense.rankings(wanted)
        passages = tuple(dense.select(rankings, k, wanted, rerank_query))
        return GraphSearch(passages, tuple(entities or ()), graph_used=bool(documents))

    def summary(self, doc_id: str) -> str:
        """What the graph of a document says; empty for a document without entities."""
        return self._summaries.get(doc_id, "")

    def _ranked(self, query: str, documents: Sequence[str]) -> list[list[Passage]]:
        """For each document, at most ``settings.candidates`` of its passages, the nearest to ``query`` first."""
        passages = [each for doc_id in documents for each in self._retriever.index.passages(doc_id)]
        rankings: dict[str, list[Passage]] = {doc_id: [] for doc_id in documents}
        for each in self._retriever.dense.by_cosine(query, passages):
            rankings[each.doc_id].append(each)
        return [ranking[: self._retriever.settings.candidates] for ranking in rankings.values()]

    @made_once
    def _summaries(self) -> dict[str, str]:
        return summaries(self._retriever.graph)

    @made_once
    def _index(self) -> LexicalIndex:
        entries = [Passage(doc_id, doc_id, "", "", text) for doc_id, text in self._summaries.items()]
        return LexicalIndex(entries)


def summaries(graph: GraphIndex) -> dict[str, str]:
    """For each document with entities, in the order of the ids: ``name (type), ...: subject relation object; ...``.

    Its entities are those that weigh most: passages of the document that mention one, divided by all passages that
    do; among equal ones the first in the graph. Its triples are stated in one of its passages and lead between such
    entities.
    """
    from scipy.sparse import csr_array

    documents = list(dict.fromkeys(each.rpartition("#")[0] for each in graph.passage_ids))
    place = {doc_id: n for n, doc_id in enumerate(documents)}
    columns = [place[each.rpartition("#")[0]] for each in graph.passage_ids]
    rows = np.arange(len(columns))
    of_document = csr_array((np.ones(len(columns)), (rows, columns)), shape=(len(columns), len(documents)))
    mentions = csr_array(graph.mentions @ of_document).tocsc()  # (n_entities, n_documents)
    support = csr_array(graph.support @ of_document).tocsc()  # (n_edges, n_documents)
    totals = np.maximum(graph.passage_counts, 1)
    made = {}
    for number, doc_id in enumerate(documents):
        entities, counts = _column(mentions, number)
        order = np.lexsort((entities, -counts / totals[entities]))
        if chosen := entities[order][:_TAGS].tolist():
            made[doc_id] = _summary(graph, chosen, np.sort(_column(support, number)[0]))
    return made


def _column(matrix: csr_array, number: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows and values of one column of a matrix in CSC form."""
    part = slice(matrix.indptr[number], matrix.indptr[number + 1])
    return matrix.indices[part], matrix.data[part]


def _summary(graph: GraphIndex, entities: Sequence[int], edges: NDArray[np.int64]) -> str:
    chosen = set(entities)
    facts = [
        f"{graph.names[head]} {graph.relations[relation]} {graph.names[tail]}"
        for head, relation, tail in graph.edges[edges].tolist()
        if {head, tail} <= chosen and graph.relations[relation] != SYNONYM
    ]
    return ": ".join(filter(None, [", ".join(map(graph.label, entities)), "; ".join(facts[:_FACTS])]))
