"""What a graph model learns from: facts of the graph with an end masked, and questions with their passages.

Importing this module loads PyTorch, so import it where a model is trained.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol

import numpy as np
import torch

from medhop_dspy.errors import InputError
from medhop_dspy.graph.linking import seed_rows
from medhop_dspy.graph.scoring import specificity

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from medhop_dspy.graph.index import GraphIndex
    from medhop_dspy.graph.linking import EntityLinker
    from medhop_dspy.graph.messages import Edges
    from medhop_dspy.retrieval.embedding import Encoder

Stage = Literal["completion", "questions"]
# Facts whose loss chooses the best state, at most: more would make every epoch longer and the choice hardly surer.
_VALIDATED_FACTS: Final = 128


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """Sizes and schedule. The defaults are for a graph of some thousand entities on two CPU cores.

    Attributes:
        hidden: Length of a node's state.
        layers: Steps of message passing.
        completion_epochs: Epochs on facts; 0 skips the stage.
        facts_per_epoch: Facts of one such epoch at most, drawn anew each time.
        negatives: Wrong entities that each fact's masked end competes with.
        question_epochs: Epochs on questions; 0 skips the stage.
        batch: Examples scored together.
        learning_rate: Of AdamW.
        validation: Share of facts and questions, between 0 and 1, that is never trained on and chooses the best state.
        link_floor: Cosine below which a name in a question links to nothing.
        seed: Of weights, order and negatives.
    """

    hidden: int = 32
    layers: int = 3
    completion_epochs: int = 4
    facts_per_epoch: int = 500
    negatives: int = 128
    question_epochs: int = 10
    batch: int = 8
    learning_rate: float = 1e-3
    validation: float = 0.1
    link_floor: float = 0.8
    seed: int = 42

    def __post_init__(self) -> None:
        for name in ("hidden", "layers", "facts_per_epoch", "negatives", "batch"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("completion_epochs", "question_epochs", "seed"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} must not be negative, got {getattr(self, name)}")
        if not (0 < self.validation < 1 and self.learning_rate > 0):
            raise InputError(
                f"got validation {self.validation} and learning_rate {self.learning_rate}, "
                "wanted the first between 0 and 1 and the second above 0"
            )


@dataclass(frozen=True, eq=False, slots=True)
class Batch:
    """Some examples that are scored together.

    Attributes:
        questions: (b, features) vectors.
        seeds: (b, n_entities) weights of the entities to start from.
        edges: Where messages may run.
        columns: (b, c) entities that count in the loss; None: all of them, in order.
        targets: (b, c) bool, which of those are right; at least one in each row.
    """

    questions: Tensor
    seeds: Tensor
    edges: Edges
    columns: Tensor | None
    targets: Tensor

    def parts(self, size: int) -> list[Batch]:
        """The same examples in order, ``size`` at a time."""
        places = [slice(start, start + size) for start in range(0, len(self.questions), size)]
        return [
            Batch(
                self.questions[p],
                self.seeds[p],
                self.edges,
                None if self.columns is None else self.columns[p],
                self.targets[p],
            )
            for p in places
        ]


class Examples(Protocol):
    """One stage of training."""

    @property
    def stage(self) -> Stage:
        """Its name."""
        ...

    @property
    def epochs(self) -> int:
        """How often :meth:`training` is gone through."""
        ...

    def training(self, epoch: int) -> Iterator[Batch]:
        """The batches of an epoch, from 1. The same epoch gives the same batches, whatever ran before."""
        ...

    def validation(self) -> Iterator[Batch]:
        """Batches that are never trained on, always the same."""
        ...


class Facts:
    """Knowledge-graph completion: from one end of a fact and its relation find the other end.

    The relation's text takes the place of the question. All edges between the two ends are taken away ('easy' edges),
    so that the answer has to be found by another way. It competes with random entities that no fact names there.
    """

    stage: Final[Stage] = "completion"

    def __init__(self, graph: GraphIndex, relations: Tensor, edges: Edges, options: TrainingOptions) -> None:
        """Set some facts aside for validation.

        Args:
            graph: Whose facts these are.
            relations: (2 R, features) of :func:`medhop_dspy.graph.weights.relation_features`.
            edges: The graph's edges.
            options: ``completion_epochs``, ``facts_per_epoch``, ``negatives``, ``batch``, ``validation``, ``seed``.
        """
        self.epochs = options.completion_epochs
        self._relations = relations
        self._edges = edges
        self._options = options
        self._entities = len(graph.names)
        facts = np.array(graph.edges, np.int64).reshape(-1, 3)
        inverse = np.stack([facts[:, 2], facts[:, 1] + len(graph.relations), facts[:, 0]], axis=1)
        self._both = np.stack([facts, inverse])  # (2, n_facts, 3), forwards and backwards
        self._kinds = 2 * len(graph.relations)
        # Where a head and relation lead, each tail once: sorted keys (n,) and the tails (n,) beside them.
        known = np.stack([self._key(self._both), self._both[..., 2]]).reshape(2, -1)
        self._keys, self._tails = np.unique(known, axis=1)
        first, last = self._places(self._both)
        usable = np.flatnonzero((last - first < self._entities).all(axis=0))
        self._training, validated = _split(usable, options)
        self._validation = validated[:_VALIDATED_FACTS]

    def __len__(self) -> int:
        """How many facts are trained on."""
        return len(self._training)

    def training(self, epoch: int) -> Iterator[Batch]:
        """See :class:`Examples`."""
        rng = np.random.default_rng([self._options.seed, 1, epoch])
        return self._batches(rng.permutation(self._training)[: self._options.facts_per_epoch], rng)

    def validation(self) -> Iterator[Batch]:
        """See :class:`Examples`."""
        return self._batches(self._validation, np.random.default_rng([self._options.seed, 1, 0]))

    def _batches(self, numbers: NDArray[np.int64], rng: np.random.Generator) -> Iterator[Batch]:
        for start in range(0, len(numbers), self._options.batch):
            chosen = numbers[start : start + self._options.batch]
            yield self._batch(self._both[rng.integers(2, size=len(chosen)), chosen], rng)

    def _batch(self, facts: NDArray[np.int64], rng: np.random.Generator) -> Batch:
        columns = np.stack([np.append(fact[2], self._negatives(fact, rng)) for fact in facts])
        targets = np.zeros(columns.shape, bool)
        targets[:, 0] = True
        seeds = seed_rows([[head] for head in facts[:, 0].tolist()], self._entities)
        return Batch(
            self._relations[torch.from_numpy(facts[:, 1].copy())],
            torch.from_numpy(seeds.astype(np.float32)),
            self._edges.without(torch.from_numpy(facts[:, [0, 2]].copy())),
            torch.from_numpy(columns),
            torch.from_numpy(targets),
        )

    def _negatives(self, fact: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """(negatives,) entities that do not end a known fact of this head and relation, drawn with replacement."""
        free = np.ones(self._entities, bool)
        first, last = self._places(fact)
        free[self._tails[first:last]] = False
        candidates = np.flatnonzero(free)
        return candidates[rng.integers(len(candidates), size=self._options.negatives)]

    def _key(self, facts: NDArray[np.int64]) -> NDArray[np.int64]:
        """(...,) one number for head and relation of ``facts`` (..., 3)."""
        return facts[..., 0] * self._kinds + facts[..., 1]

    def _places(self, facts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(...,) where the tails begin and end that share head and relation with ``facts`` (..., 3)."""
        keys = self._key(facts)
        return np.searchsorted(self._keys, keys), np.searchsorted(self._keys, keys, side="right")


class Questions:
    """Fine-tuning: from a question find the entities that its answer's passages mention."""

    stage: Final[Stage] = "questions"

    def __init__(
        self,
        graph: GraphIndex,
        pairs: Sequence[tuple[str, Sequence[str]]],
        linker: EntityLinker,
        embedder: Encoder,
        edges: Edges,
        options: TrainingOptions,
    ) -> None:
        """Find out what the questions name, and set some aside for validation.

        Args:
            graph: What is searched.
            pairs: Questions and the ids of the passages that answer them. A question is left out where the graph
                knows nothing that it names, or none of its passages, or nothing in them.
            linker: Finds what the questions name.
            embedder: Gives the questions' vectors.
            edges: The graph's edges.
            options: ``question_epochs``, ``batch``, ``validation``, ``seed``.
        """
        self.epochs = options.question_epochs
        self._edges = edges
        self._options = options
        number = {passage: n for n, passage in enumerate(graph.passage_ids)}
        weights = specificity(graph)
        by_passage = graph.mentions.tocsc()
        texts, self._seeds, self._targets = [], [], []
        for text, answers in pairs:
            seeds = seed_rows([linker.link(linker.spot(text))], len(graph.names))[0] * weights
            columns = by_passage[:, [number[a] for a in dict.fromkeys(answers) if a in number]]
            targets = np.asarray(columns.sum(axis=1)).ravel() > 0
            if seeds.any() and targets.any():
                texts.append(text)
                self._seeds.append(np.flatnonzero(seeds))
                self._targets.append(np.flatnonzero(targets))
        self._weights = weights
        self._vectors = np.array(embedder.embed(texts) if texts else np.zeros((0, embedder.dimension)), np.float32)
        self._training, self._validation = _split(np.arange(len(texts)), options)

    def __len__(self) -> int:
        """How many questions are trained on."""
        return len(self._training)

    @property
    def usable(self) -> int:
        """How many questions are not left out, those for validation included."""
        return len(self._vectors)

    def training(self, epoch: int) -> Iterator[Batch]:
        """See :class:`Examples`."""
        rng = np.random.default_rng([self._options.seed, 2, epoch])
        return self._batches(rng.permutation(self._training))

    def validation(self) -> Iterator[Batch]:
        """See :class:`Examples`."""
        return self._batches(self._validation)

    def _batches(self, numbers: NDArray[np.int64]) -> Iterator[Batch]:
        for start in range(0, len(numbers), self._options.batch):
            chosen = numbers[start : start + self._options.batch]
            entities = len(self._weights)
            seeds = seed_rows([self._seeds[n].tolist() for n in chosen], entities) * self._weights
            targets = seed_rows([self._targets[n].tolist() for n in chosen], entities) > 0
            yield Batch(
                torch.from_numpy(self._vectors[chosen]),
                torch.from_numpy(seeds.astype(np.float32)),
                self._edges,
                None,
                torch.from_numpy(targets),
            )


def _split(numbers: NDArray[np.int64], options: TrainingOptions) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Training and validation, at least one each; of a single example, the same one for both."""
    shuffled = np.random.default_rng([options.seed, 0]).permutation(numbers)
    if len(shuffled) < 2:
        return shuffled, shuffled
    held = min(max(1, round(options.validation * len(shuffled))), len(shuffled) - 1)
    return shuffled[held:], shuffled[:held]
