"""From seed entities to scores of all entities, and from those to scores of passages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np

from medhop_dspy.errors import ArtefactError, InputError
from medhop_dspy.graph.pagerank import TOLERANCE, PageRank, edge_weights

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from medhop_dspy.graph.gfm import GFM
    from medhop_dspy.retrieval.embedding import Encoder
    from medhop_dspy.settings import Settings


class KnowledgeGraph(Protocol):
    """What linking and scoring need of a graph; :class:`medhop_dspy.graph.index.GraphIndex` has it."""

    @property
    def names(self) -> tuple[str, ...]:
        """(n_entities,)."""
        ...

    @property
    def relations(self) -> tuple[str, ...]:
        """(n_relations,) texts."""
        ...

    @property
    def edges(self) -> NDArray[np.int64]:
        """(n_edges, 3) head, relation, tail: G_ent, each fact once."""
        ...

    @property
    def mentions(self) -> csr_array:
        """(n_entities, n_passages) 0/1: the inverted index M, that is, G_link."""
        ...

    @property
    def passage_ids(self) -> tuple[str, ...]:
        """(n_passages,)."""
        ...

    @property
    def passage_edges(self) -> NDArray[np.int64]:
        """(n, 2) pairs of passages, each once: G_doc."""
        ...

    @property
    def passage_weights(self) -> NDArray[np.float32]:
        """(n,) similarity of each pair, above 0."""
        ...

    @property
    def vectors(self) -> NDArray[np.float32]:
        """(n_entities, d) unit vectors of the names."""
        ...

    @property
    def digest(self) -> str:
        """Changes when the graph does."""
        ...


class EntityScorer(Protocol):
    """Scores every entity of a graph for a question. Safe for threads."""

    @property
    def digest(self) -> str:
        """Hex SHA-256 of what decides the scores besides the graph."""
        ...

    def scores(self, questions: Sequence[str], seeds: NDArray[np.float64]) -> NDArray[np.float64]:
        """How much each entity has to do with each question.

        Args:
            questions: Texts, not blank.
            seeds: (n_questions, n_entities) weights of the entities that each question names, 0 or more.

        Returns:
            (n_questions, n_entities), each from 0 to 1; a row without seeds is all 0. A row does not depend on the
            others.

        Raises:
            InputError: if ``seeds`` is not of that shape.
        """
        ...


class PageRankScorer:
    """Personalised PageRank over entities and passages, as in HippoRAG.

    A seed weighs its node specificity, 1 / (number of its passages).
    """

    def __init__(self, graph: KnowledgeGraph, damping: float = 0.5, *, with_passages: bool = True) -> None:
        """Normalise the graph's edges.

        Args:
            graph: What is walked on.
            damping: Probability of following an edge rather than jumping to a seed, above 0 and below 1.
            with_passages: Whether passages are nodes, with G_link and G_doc; else the walk is over G_ent alone.

        Raises:
            InputError: if ``damping`` is out of bounds.
        """
        self._specificity = specificity(graph)
        self._walk = PageRank(edge_weights(graph, with_passages=with_passages), damping)
        self._more_nodes = len(graph.passage_ids) if with_passages else 0
        self.digest = _digest("pagerank", damping, with_passages, TOLERANCE)

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Itself: optimisers copy the modules that hold it, and it never changes."""
        return self

    def scores(self, questions: Sequence[str], seeds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Probability of meeting each entity; see :class:`EntityScorer`. The words of the questions play no part."""
        entities = len(self._specificity)
        _check(questions, seeds, entities)
        nodes = np.pad(seeds * self._specificity, ((0, 0), (0, self._more_nodes)))
        return self._walk.scores(nodes)[:, :entities]


class GFMScorer:
    """The query-dependent graph neural network of GFM-RAG over G_ent."""

    def __init__(self, graph: KnowledgeGraph, model: GFM, embedder: Encoder, cache: Path | None = None) -> None:
        """Embed the relations.

        Args:
            graph: What the messages run over.
            model: Trained weights.
            embedder: The model whose vectors of questions and relations the weights were trained on.
            cache: See :func:`medhop_dspy.graph.weights.relation_features`.

        Raises:
            ArtefactError: if the vectors are not as long as the model's input.
        """
        from medhop_dspy.graph import weights
        from medhop_dspy.graph.messages import Edges
        from medhop_dspy.retrieval.embedding import single_threaded_pool

        if embedder.dimension != model.features:
            raise ArtefactError(
                f"the graph model reads vectors of {model.features} numbers, {embedder.name} gives "
                f"{embedder.dimension}",
                hint="Use the embedding model that it was trained with, or train it with `medhop graph train`.",
            )
        self._model = model.eval()
        self._embedder = embedder
        self._specificity = specificity(graph)
        self._edges = Edges.of(graph)
        # One question to a thread. In a batch the last digits would depend on the questions beside it, and threads
        # that share one small product wait for each other, many times as long where the cores are busy.
        self._pool = single_threaded_pool()
        self._relations = weights.relation_features(graph.relations, embedder, cache)
        self.digest = _digest("gfm", weights.weights_digest(model), embedder.digest, embedder.revision)

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Itself: optimisers copy the modules that hold it, and a model is to be shared."""
        return self

    def scores(self, questions: Sequence[str], seeds: NDArray[np.float64]) -> NDArray[np.float64]:
        """The model's probability that each entity serves the answer; see :class:`EntityScorer`."""
        _check(questions, seeds, len(self._specificity))
        scores = np.zeros(seeds.shape)
        weighted = (seeds * self._specificity).astype(np.float32)
        rows = np.flatnonzero(weighted.any(axis=1)).tolist()
        if rows:
            vectors = self._embedder.embed([questions[row] for row in rows])
            scores[rows] = list(self._pool.map(self._score, vectors, weighted[rows]))
        return scores

    def _score(self, vector: NDArray[np.float32], seeds: NDArray[np.float32]) -> NDArray[np.float64]:
        """(n_entities,) scores for the question ``vector`` (d,) from weighted ``seeds`` (n_entities,)."""
        import torch

        question, start = torch.from_numpy(np.array(vector)), torch.from_numpy(seeds)
        with torch.inference_mode():
            logits = self._model(question[None], start[None], self._relations, self._edges)
            # Doubles, because single precision would round high probabilities to equal ones.
            probabilities: NDArray[np.float64] = torch.sigmoid(logits[0].double()).numpy()
        return probabilities


def specificity(graph: KnowledgeGraph) -> NDArray[np.float64]:
    """(n_entities,) weight 1 / (number of its passages) of each entity; 0 where it has none."""
    counts = np.asarray(graph.mentions.sum(axis=1), np.float64).ravel()
    return np.divide(1.0, counts, out=np.zeros_like(counts), where=counts > 0)


def document_scores(graph: KnowledgeGraph, entity_scores: NDArray[np.float64], top: int) -> NDArray[np.float64]:
    """Scores of passages from those of entities, as in GFM-RAG: S = F M.

    F holds, for the ``top`` entities of a question, 1 / (number of its passages), and 0 for the others. So the
    entities' scores only choose who counts.

    Args:
        graph: Whose entities and passages these are.
        entity_scores: (n_questions, n_entities), 0 or more. An entity of score 0 never counts; among equal scores
            the smaller number does.
        top: How many entities count, at least 1.

    Returns:
        (n_questions, n_passages), 0 for a passage that mentions none of them.

    Raises:
        InputError: if ``top`` is below 1 or ``entity_scores`` of another shape.
    """
    entities = graph.mentions.shape[0]
    if top < 1:
        raise InputError(f"the number of entities that score passages must be at least 1, got {top}")
    if entity_scores.ndim != 2 or entity_scores.shape[1] != entities:
        raise InputError(f"entity scores have the shape {entity_scores.shape}, wanted (questions, {entities})")
    best = np.argsort(-entity_scores, axis=1, kind="stable")[:, :top]
    chosen = np.zeros_like(entity_scores)
    np.put_along_axis(chosen, best, specificity(graph)[best], axis=1)
    chosen[entity_scores <= 0] = 0
    return np.ascontiguousarray((graph.mentions.T.astype(np.float64) @ chosen.T).T)


def gfm_folder(settings: Settings) -> Path:
    """Where the weights of the scorer ``gfm`` are: ``settings.gfm_model``, or ``gfm`` in the graph's folder."""
    return settings.gfm_model or settings.graph_folder / "gfm"


def make_scorer(graph: KnowledgeGraph, settings: Settings, embedder: Encoder) -> EntityScorer:
    """The scorer that ``settings.graph_scorer`` names.

    Args:
        graph: What it scores.
        settings: ``graph_scorer``, ``damping``, ``graph``, ``gfm_model``, ``home``.
        embedder: The model of the vector index. Weights that were trained on another get that one from
            ``settings.home``.

    Raises:
        ArtefactError: if the weights or their embedding model are missing, damaged or do not fit.
    """
    if settings.graph_scorer == "pagerank":
        return PageRankScorer(graph, settings.damping)
    from medhop_dspy.graph import weights

    folder = gfm_folder(settings)
    model, record = weights.load(folder)
    fitting = weights.fitting_embedder(record, embedder, settings.home)
    return GFMScorer(graph, model, fitting, folder)


def _check(questions: Sequence[str], seeds: NDArray[np.float64], entities: int) -> None:
    if seeds.shape != (len(questions), entities):
        raise InputError(f"seeds have the shape {seeds.shape}, wanted ({len(questions)}, {entities})")


def _digest(*facts: object) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()
