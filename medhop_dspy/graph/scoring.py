"""From seed entities to scores of all entities, and from those to scores of passages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from medhop_dspy.errors import ArtefactError, InputError
from medhop_dspy.graph.pagerank import TOLERANCE, PageRank, adjacency

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from medhop_dspy.graph.gfm import GFM
    from medhop_dspy.graph.index import GraphIndex
    from medhop_dspy.retrieval.embedding import Encoder
    from medhop_dspy.settings import Settings


class EntityScorer(Protocol):
    """Scores every entity of a graph for a question, and every passage by its entities. Safe for threads."""

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

    def passages(self, entity_scores: NDArray[np.float64], top: int) -> NDArray[np.float64]:
        """Scores of passages from those of their entities.

        Args:
            entity_scores: (n_questions, n_entities) of :meth:`scores`.
            top: How many entities count, at least 1, where not all do.

        Returns:
            (n_questions, n_passages), 0 or more. A row does not depend on the others.

        Raises:
            InputError: if ``top`` is below 1 or ``entity_scores`` of another shape.
        """
        ...


class PageRankScorer:
    """Personalised PageRank over entities and passages, as in HippoRAG.

    A seed weighs its node specificity, 1 / (number of its passages).
    """

    def __init__(self, graph: GraphIndex, damping: float = 0.5) -> None:
        """Normalise the graph's edges.

        Args:
            graph: What is walked on.
            damping: Probability of following an edge rather than jumping to a seed, above 0 and below 1.

        Raises:
            InputError: if ``damping`` is out of bounds.
        """
        self._specificity = specificity(graph)
        self._mentioned = _by_passage(graph)
        self._walk = PageRank(adjacency(graph), damping)
        self.digest = _digest("pagerank", "sum of all entities", damping, TOLERANCE)

    def scores(self, questions: Sequence[str], seeds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Probability of meeting each entity; see :class:`EntityScorer`. The words of the questions play no part."""
        passages, entities = self._mentioned.shape
        _check_seeds(questions, seeds, entities)
        nodes = np.pad(seeds * self._specificity, ((0, 0), (0, passages)))
        return self._walk.scores(nodes)[:, :entities]

    def passages(self, entity_scores: NDArray[np.float64], top: int) -> NDArray[np.float64]:
        """S = p M: the sum of the probabilities of all entities that a passage mentions, whatever ``top`` is."""
        _check_scores(entity_scores, self._mentioned.shape[1], top)
        return _sums(self._mentioned, entity_scores)


class GFMScorer:
    """The query-dependent graph neural network of GFM-RAG over G_ent."""

    def __init__(self, graph: GraphIndex, model: GFM, embedder: Encoder, cache: Path | None = None) -> None:
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
        self._mentioned = _by_passage(graph)
        self._edges = Edges.of(graph)
        # One question to a thread. In a batch the last digits would depend on the questions beside it, and threads
        # that share one small product wait for each other, many times as long where the cores are busy.
        self._pool = single_threaded_pool()
        self._relations = weights.relation_features(graph.relations, embedder, cache)
        self.digest = _digest("gfm", weights.weights_digest(model), embedder.digest, embedder.revision)

    def scores(self, questions: Sequence[str], seeds: NDArray[np.float64]) -> NDArray[np.float64]:
        """The model's probability that each entity serves the answer; see :class:`EntityScorer`."""
        _check_seeds(questions, seeds, len(self._specificity))
        scores = np.zeros(seeds.shape)
        weighted = (seeds * self._specificity).astype(np.float32)
        rows = np.flatnonzero(weighted.any(axis=1)).tolist()
        if rows:
            vectors = self._embedder.embed([questions[row] for row in rows])
            scores[rows] = list(self._pool.map(self._score, vectors, weighted[rows]))
        return scores

    def passages(self, entity_scores: NDArray[np.float64], top: int) -> NDArray[np.float64]:
        """S = F M, where F holds 1 / (number of its passages) for the ``top`` entities of a question, 0 for the others.

        So the entities' scores only choose who counts. An entity of score 0 never does; among equal scores the smaller
        number does.
        """
        _check_scores(entity_scores, len(self._specificity), top)
        best = np.argsort(-entity_scores, axis=1, kind="stable")[:, :top]
        chosen = np.zeros_like(entity_scores)
        np.put_along_axis(chosen, best, self._specificity[best], axis=1)
        chosen[entity_scores <= 0] = 0
        return _sums(self._mentioned, chosen)

    def _score(self, vector: NDArray[np.float32], seeds: NDArray[np.float32]) -> NDArray[np.float64]:
        """(n_entities,) scores for the question ``vector`` (d,) from weighted ``seeds`` (n_entities,)."""
        import torch

        question, start = torch.from_numpy(np.array(vector)), torch.from_numpy(seeds)
        with torch.inference_mode():
            logits = self._model(question[None], start[None], self._relations, self._edges)
            # Doubles, because single precision would round high probabilities to equal ones.
            probabilities: NDArray[np.float64] = torch.sigmoid(logits[0].double()).numpy()
        return probabilities


def specificity(graph: GraphIndex) -> NDArray[np.float64]:
    """(n_entities,) weight 1 / (number of its passages) of each entity; 0 where it has none."""
    counts = graph.passage_counts.astype(np.float64)
    return np.divide(1.0, counts, out=np.zeros_like(counts), where=counts > 0)


def make_scorer(graph: GraphIndex, settings: Settings, embedder: Encoder) -> EntityScorer:
    """The scorer that ``settings.graph_scorer`` names.

    Args:
        graph: What it scores.
        settings: ``graph_scorer``, ``damping``, ``gfm_folder``, ``home``.
        embedder: The model of the vector index. Weights that were trained on another get that one from
            ``settings.home``.

    Raises:
        ArtefactError: if the weights or their embedding model are missing, damaged or do not fit.
    """
    if settings.graph_scorer == "pagerank":
        return PageRankScorer(graph, settings.damping)
    from medhop_dspy.graph import weights

    model, record = weights.load(settings.gfm_folder)
    fitting = weights.fitting_embedder(record, embedder, settings.home)
    return GFMScorer(graph, model, fitting, settings.gfm_folder)


def _by_passage(graph: GraphIndex) -> csr_array:
    """(n_passages, n_entities) the inverted index M turned round, in the precision of the scores."""
    from scipy.sparse import csr_array

    return csr_array(graph.mentions.T, dtype=np.float64)


def _sums(mentioned: csr_array, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n_questions, n_passages) sums of the ``weights`` (n_questions, n_entities) of what each passage mentions."""
    return np.ascontiguousarray((mentioned @ weights.T).T)


def _check_seeds(questions: Sequence[str], seeds: NDArray[np.float64], entities: int) -> None:
    if seeds.shape != (len(questions), entities):
        raise InputError(f"seeds have the shape {seeds.shape}, wanted ({len(questions)}, {entities})")


def _check_scores(entity_scores: NDArray[np.float64], entities: int, top: int) -> None:
    if top < 1:
        raise InputError(f"the number of entities that score passages must be at least 1, got {top}")
    if entity_scores.ndim != 2 or entity_scores.shape[1] != entities:
        raise InputError(f"entity scores have the shape {entity_scores.shape}, wanted (questions, {entities})")


def _digest(*facts: object) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()
