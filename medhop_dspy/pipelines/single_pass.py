"""Programs of at most one search and one answer: what hops, rounds and checks are measured against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

import dspy

from medhop_dspy.graph.retriever import GraphRetriever
from medhop_dspy.graph.signatures import QueryEntities
from medhop_dspy.pipelines.conclude import Concluding
from medhop_dspy.signatures import DirectAnswer

if TYPE_CHECKING:
    from medhop_dspy.pipelines.run import Run
    from medhop_dspy.retrieval.retriever import Retriever
    from medhop_dspy.settings import Settings


class SinglePass(Concluding):
    """Retrieve with the question, draft once, report the draft; nothing is validated."""

    name = "single_pass"
    passages: ClassVar[int | None] = None
    """How many the model reads; None: as many as the settings say."""

    async def _collect(self, run: Run) -> Sequence[str]:
        await run.search(self.retriever, [run.question], run.question, k=self.passages)
        return [run.question]


class ZeroShot(Concluding):
    """The model alone: no retrieval."""

    name = "zero_shot"
    overrides: ClassVar = {**Concluding.overrides, "retriever": "dense"}
    final = DirectAnswer

    async def _collect(self, run: Run) -> Sequence[str]:
        return []


class MedCPT(SinglePass):
    """The one nearest passage by cosine, without reranking.

    The published baseline has MedCPT's query and article encoders; here the index's own embedding model takes their
    place, whichever it is.
    """

    name = "medcpt"
    overrides: ClassVar = {**SinglePass.overrides, "retriever": "dense"}
    passages = 1
    fusion: ClassVar = {"dense": 1}


class MedRAG(SinglePass):
    """Several rankings of the corpus fused by reciprocal rank: BM25, dense search and the reranker's order."""

    name = "medrag"
    overrides: ClassVar = {**SinglePass.overrides, "retriever": "dense"}
    fusion: ClassVar = {"dense": 1, "lexical": 1, "reranked": 1}


class GraphRAG(SinglePass):
    """One search through the graph alone, from the entities of the question; in the order of the graph's scores.

    With ``plan_by`` model, the model names the entities; by rules, they are the graph's names in the question.
    """

    def __init__(
        self, retriever: Retriever | GraphRetriever, settings: Settings, adapter: dspy.Adapter | None = None
    ) -> None:
        super().__init__(retriever, settings, adapter)
        # The overrides of every such program ask for a graph, so the retriever has one.
        self.retriever = cast("GraphRetriever", self.retriever).ranked_by_itself()
        self.query_entities = dspy.Predict(QueryEntities)

    @classmethod
    def max_lm_calls(cls, settings: Settings) -> int:
        """The entities of the question where the model names them, and one answer."""
        return 1 + (settings.plan_by == "model")

    async def _collect(self, run: Run) -> Sequence[str]:
        entities = await run.entities(self.query_entities, self.retriever, run.question)
        await run.search(self.retriever, [run.question], run.question, entities=entities)
        return [run.question]


class HippoRAG(GraphRAG):
    """Personalised PageRank from the entities of the question."""

    name = "hipporag"
    overrides: ClassVar = {**SinglePass.overrides, "retriever": "graph", "graph_scorer": "pagerank"}


class GFMRAG(GraphRAG):
    """The graph foundation model: a graph neural network that reads the question."""

    name = "gfm_rag"
    overrides: ClassVar = {**SinglePass.overrides, "retriever": "graph", "graph_scorer": "gfm"}
