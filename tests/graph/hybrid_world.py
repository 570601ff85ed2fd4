"""The small world's index with a graph over it, opened for searching and for every program."""

from contextlib import ExitStack
from pathlib import Path

from medhop_dspy.graph.build import build
from medhop_dspy.graph.index import GraphIndex
from medhop_dspy.graph.linking import EntityLinker
from medhop_dspy.graph.retriever import GraphRetriever
from medhop_dspy.graph.scoring import GFMScorer, PageRankScorer
from medhop_dspy.pipelines.program import Program
from medhop_dspy.pipelines.registry import build as build_program
from medhop_dspy.pipelines.registry import program_class
from medhop_dspy.retrieval.corpus import Document
from medhop_dspy.retrieval.rerank import NoReranker
from medhop_dspy.retrieval.retriever import Retriever
from medhop_dspy.settings import Settings
from tests.graph.small_world import SentenceExtractor, documents, index_of, settings_at
from tests.retrieval.hashing_encoder import HashingEncoder


class QueryEncoder(HashingEncoder):
    """The same vectors for questions; keeps what was searched for."""

    def __init__(self):
        super().__init__()
        self.asked: list[str] = []

    def embed_queries(self, texts):
        self.asked += texts
        return self.embed(texts)


class HybridWorld:
    """Index and graph of all sentences, or of a corpus, in ``folder``; ``close`` it."""

    def __init__(self, folder: Path, corpus: list[Document] | None = None, **overrides) -> None:
        self._open = ExitStack()
        self.encoder = QueryEncoder()
        self.index = self._open.enter_context(index_of(folder, corpus or documents(), **overrides))
        build(folder / "graph", self.index, self.encoder, SentenceExtractor())
        self.graph = GraphIndex.open(folder / "graph", self.index, self.encoder)
        self.settings = settings_at(folder).replace(
            graph=folder / "graph",
            index=str(folder / "index"),
            retriever="hybrid",
            reranker="none",
            lexical=False,
            neighbours_of=0,
            candidates=5,
            pool=20,
            evidence=4,
            first_evidence=None,
            hop_evidence=2,
            plan_by="model",
            use_expansion=False,
            **overrides,
        )

    def close(self) -> None:
        self._open.close()

    def dense(self, settings: Settings | None = None) -> Retriever:
        return Retriever(self.index, self.encoder, NoReranker(), settings or self.settings)

    def retriever(self, settings: Settings | None = None, **overrides) -> GraphRetriever:
        chosen = (settings or self.settings).replace(**overrides)
        linker = EntityLinker(self.graph, self.encoder, chosen.link_floor)
        return GraphRetriever(self.dense(chosen), self.graph, linker, self.scorer(chosen), chosen)

    def program(self, name: str, **overrides) -> Program:
        """Any program of the registry, opened with what it asks for."""
        settings = program_class(name).adjusted(self.settings.replace(**overrides))
        retriever = self.dense(settings) if settings.retriever == "dense" else self.retriever(settings)
        return build_program(name, retriever, settings)

    def scorer(self, settings: Settings) -> PageRankScorer | GFMScorer:
        if settings.graph_scorer == "pagerank":
            return PageRankScorer(self.graph, settings.damping)
        import torch

        from medhop_dspy.graph.gfm import GFM

        with torch.random.fork_rng():
            torch.manual_seed(0)
            return GFMScorer(self.graph, GFM(self.encoder.dimension, 8, 2), self.encoder)
