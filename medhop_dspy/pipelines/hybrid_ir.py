"""Hybrid-IR: rounds of sub-questions over the knowledge graph and the vector index together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import dspy

from medhop_dspy.graph.signatures import QueryEntities
from medhop_dspy.pipelines.subquestions import SubQuestioning

if TYPE_CHECKING:
    from medhop_dspy.graph.retriever import GraphRetriever
    from medhop_dspy.pipelines.run import Run
    from medhop_dspy.retrieval.retriever import Retriever
    from medhop_dspy.settings import Settings
    from medhop_dspy.trace import Passage


class HybridIR(SubQuestioning):
    """The program of the paper: T rounds (``rounds``) of m sub-questions (``sub_questions``).

    Each sub-question starts from its entities: the model names them, or with ``plan_by`` rules they are the graph's
    names in it. It searches graph and vectors (``retriever`` hybrid) unless set otherwise: ``retriever`` dense or
    graph, and ``rounds``, are the ablations. The order of passages is that of Eq. 5 where ``reranker`` is none.
    """

    name = "hybrid_ir"
    made_for = "hybrid"

    def __init__(
        self, retriever: Retriever | GraphRetriever, settings: Settings, adapter: dspy.Adapter | None = None
    ) -> None:
        super().__init__(retriever, settings, adapter)
        self.query_entities = dspy.Predict(QueryEntities)

    @classmethod
    def _calls_each(cls, settings: Settings) -> int:
        return 2 if settings.plan_by == "model" and settings.retriever != "dense" else 1

    async def _search(self, run: Run, question: str) -> Sequence[Passage]:
        entities = await run.entities(self.query_entities, self.retriever, question)
        k = run.settings.hop_evidence
        return await run.search(self.retriever, [question], question, k=k, entities=entities)
