"""Training of a small graph model on a CPU: first on the graph's own facts, then on questions and their passages.

Importing this module loads PyTorch, so import it where a model is trained.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import torch
from torch.nn import functional

from medhop_dspy.errors import GraphError, InputError, SettingsError
from medhop_dspy.graph import weights
from medhop_dspy.graph.examples import Batch, Examples, Facts, Questions, Stage, TrainingOptions
from medhop_dspy.graph.gfm import GFM
from medhop_dspy.graph.index import LOCK
from medhop_dspy.graph.linking import EntityLinker
from medhop_dspy.graph.messages import Edges
from medhop_dspy.retrieval.disk import disk_errors, write_atomically
from medhop_dspy.retrieval.embedding import single_threaded_pool
from medhop_dspy.retrieval.locking import writer_lock
from medhop_dspy.retrieval.manifest import EncoderRecord

if TYPE_CHECKING:
    from torch import Tensor

    from medhop_dspy.graph.index import GraphIndex
    from medhop_dspy.retrieval.embedding import Encoder

FORMAT: Final = 1
CHECKPOINT: Final = "checkpoint.pt"
BINARY_SHARE: Final = 0.3
_PART: Final = 4  # examples to a thread; fixed, so that the number of threads changes no digit
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Epoch:
    """What one pass over the examples of a stage came to; ``number`` counts from 1 in each stage."""

    stage: Stage
    number: int
    loss: float
    validation_loss: float


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """What was trained.

    Attributes:
        epochs: All, in order, those before an interruption included.
        best: The one whose weights were kept: of the last stage, with the lowest validation loss.
        facts: How many facts of the graph were trained on.
        questions: How many questions could be used, for training or validation.
        left_out: How many questions name nothing that the graph knows, or have no passage in it.
    """

    epochs: tuple[Epoch, ...]
    best: Epoch
    facts: int
    questions: int
    left_out: int


# Called after each epoch with how many of all are done, and how many there are.
Progress = Callable[[Epoch, int, int], object]


def train(
    graph: GraphIndex,
    folder: Path,
    embedder: Encoder,
    questions: Sequence[tuple[str, Sequence[str]]] = (),
    options: TrainingOptions | None = None,
    progress: Progress | None = None,
) -> TrainingResult:
    """Train a model for ``graph`` and write it to ``folder``, where :func:`medhop_dspy.graph.weights.load` finds it.

    Killed and started again with the same arguments it goes on after the last finished epoch and ends with the same
    weights. Weights that are there stay until the new ones are complete.

    Args:
        graph: Its facts are what is learnt first.
        folder: Gets ``model.safetensors``, and for people ``config.json``. Empty, absent, or with an earlier model.
        embedder: Gives the vectors of questions and relations; the model will work with this one alone. It has to be
            the one of the graph's names, too.
        questions: Question texts, each with the ids of the passages that answer it.
        options: Default: those of :class:`TrainingOptions`.
        progress: See :data:`Progress`.

    Raises:
        InputError: there is nothing to learn from.
        SettingsError: the loss is no number any more.
        GraphError: the folder holds something else.
        StoreLockedError: another process trains in this folder.
        DiskFullError: no space is left.
        StoreError: the folder cannot be written.
    """
    options = options or TrainingOptions()
    if not options.completion_epochs + options.question_epochs:
        raise InputError("no epochs on facts and none on questions train nothing", hint="Ask for one at least.")
    _check_folder(folder)
    with writer_lock(folder / LOCK, str(folder)):
        edges = Edges.of(graph)
        relations = weights.relation_features(graph.relations, embedder, folder)
        facts = Facts(graph, relations, edges, options)
        asked = Questions(graph, questions, EntityLinker(graph, embedder, options.link_floor), embedder, edges, options)
        stages: list[Examples] = [each for each in (facts, asked) if len(each) and each.epochs]
        if not stages:
            raise InputError(
                f"a graph of {len(graph.edges)} facts and {len(questions)} questions, {asked.usable} of them usable, "
                "give a model nothing to learn from",
                hint="Build the graph over more passages, or give questions about what is in it.",
            )
        data = _signature(graph, embedder, questions, options)
        run = _Run(_new_model(embedder, options), relations, options)
        run.go(stages, folder / CHECKPOINT, data, progress)
        result = TrainingResult(tuple(run.epochs), run.best, len(facts), asked.usable, len(questions) - asked.usable)
        weights.save(run.model, folder, _record(graph, embedder, options, data, result))
        (folder / CHECKPOINT).unlink(missing_ok=True)
    return result


def loss(logits: Tensor, targets: Tensor) -> Tensor:
    """0.3 of the binary and 0.7 of the list-wise cross-entropy, the mean over the rows.

    Binary: the mean over the right entities of -log p and the mean over the others of -log(1 - p), with equal weight,
    as the right ones are few. List-wise: the mean over the right ones of -log(p / sum of all p). p is the sigmoid.

    Args:
        logits: (b, c).
        targets: (b, c) bool, at least one true in each row.
    """
    truth = targets.to(logits.dtype)
    right, wrong = truth.sum(1, keepdim=True), (1 - truth).sum(1, keepdim=True)
    each = functional.binary_cross_entropy_with_logits(logits, truth, reduction="none")
    shares = torch.where(targets, 1 / right, 1 / wrong)  # an infinite share of no wrong entity is never taken
    binary = (each * shares).sum(1) / shares.sum(1)
    logs = functional.logsigmoid(logits)
    listed = -torch.where(targets, logs - logs.logsumexp(1, keepdim=True), 0).sum(1) / right.squeeze(1)
    return (BINARY_SHARE * binary + (1 - BINARY_SHARE) * listed).mean()


class _Run:
    """The state of a training; all of it is in the checkpoint."""

    def __init__(self, model: GFM, relations: Tensor, options: TrainingOptions) -> None:
        self.model = model
        self.epochs: list[Epoch] = []
        self._relations = relations
        self._options = options
        self._optimiser = self._new_optimiser()
        self._best_state: dict[str, Tensor] = {}
        # Threads that share one small product wait for each other, many times as long where the cores are busy.
        self._pool = single_threaded_pool()

    @property
    def best(self) -> Epoch:
        """Of the epochs of the last stage, the first with the lowest validation loss."""
        return min((e for e in self.epochs if e.stage == self.epochs[-1].stage), key=lambda e: e.validation_loss)

    def go(self, stages: Iterable[Examples], checkpoint: Path, data: str, progress: Progress | None) -> None:
        """Train through all stages, each from the best state of the one before; the best of the last stays."""
        plan = [(stage, number) for stage in stages for number in range(1, stage.epochs + 1)]
        self._resume(checkpoint, data)
        for stage, number in plan[len(self.epochs) :]:
            if number == 1:
                self._back_to_best()
                self._optimiser = self._new_optimiser()
            self.epochs.append(Epoch(stage.stage, number, self._train(stage.training(number)), self._validate(stage)))
            if self.best is self.epochs[-1]:
                self._best_state = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
            self._keep(checkpoint, data)
            if progress:
                progress(self.epochs[-1], len(self.epochs), len(plan))
        self._back_to_best()

    def _new_optimiser(self) -> torch.optim.AdamW:
        return torch.optim.AdamW(self.model.parameters(), lr=self._options.learning_rate)

    def _back_to_best(self) -> None:
        if self._best_state:
            self.model.load_state_dict(self._best_state)

    def _train(self, batches: Iterable[Batch]) -> float:
        self.model.train()
        losses = []
        for batch in batches:
            value, gradients = self._gradients(batch)
            for parameter, gradient in zip(self.model.parameters(), gradients, strict=True):
                parameter.grad = gradient
            self._optimiser.step()
            losses.append(self._finite(value))
        return math.fsum(losses) / len(losses)

    def _gradients(self, batch: Batch) -> tuple[float, list[Tensor]]:
        """Loss and gradients of the mean over a batch, a part of it to a thread, added up in a fixed order."""
        parts = batch.parts(_PART)
        shares = [len(part.questions) / len(batch.questions) for part in parts]
        values, gradients = zip(*self._pool.map(self._part, parts), strict=True)
        mean = [sum(g * share for g, share in zip(each, shares, strict=True)) for each in zip(*gradients, strict=True)]
        return math.fsum(v * share for v, share in zip(values, shares, strict=True)), cast("list[Tensor]", mean)

    def _part(self, batch: Batch) -> tuple[float, tuple[Tensor, ...]]:
        value = self._loss(batch)
        return value.item(), torch.autograd.grad(value, tuple(self.model.parameters()))

    def _validate(self, stage: Examples) -> float:
        self.model.eval()
        losses: list[float] = []
        count = 0
        for batch in stage.validation():
            losses += self._pool.map(self._sum, batch.parts(_PART))
            count += len(batch.questions)
        return self._finite(math.fsum(losses) / count)

    def _finite(self, value: float) -> float:
        if not math.isfinite(value):
            raise SettingsError(
                f"the loss of the graph model became {value}",
                hint=f"Train with a learning rate below {self._options.learning_rate}.",
            )
        return value

    def _sum(self, batch: Batch) -> float:
        with torch.no_grad():
            return self._loss(batch).item() * len(batch.questions)

    def _loss(self, batch: Batch) -> Tensor:
        logits = self.model(batch.questions, batch.seeds, self._relations, batch.edges)
        return loss(logits if batch.columns is None else logits.gather(1, batch.columns), batch.targets)

    def _keep(self, checkpoint: Path, data: str) -> None:
        state = {
            "data": data,
            "epochs": [asdict(epoch) for epoch in self.epochs],
            "model": self.model.state_dict(),
            "optimiser": self._optimiser.state_dict(),
            "best": self._best_state,
        }
        buffer = io.BytesIO()  # PyTorch makes a full disk an error without a name
        torch.save(state, buffer)
        kept = buffer.getvalue()
        with disk_errors(checkpoint.parent):
            write_atomically(checkpoint, lambda stream: stream.write(hashlib.sha256(kept).digest() + kept))

    def _resume(self, checkpoint: Path, data: str) -> None:
        """Take over the checkpoint of the same data and options, if there is one."""
        if not checkpoint.is_file():
            return
        with disk_errors(checkpoint):
            read = checkpoint.read_bytes()
        size = hashlib.sha256().digest_size
        if hashlib.sha256(read[size:]).digest() != read[:size]:
            _log.warning("the checkpoint %s is damaged, so training begins anew", checkpoint)
            return
        state = torch.load(io.BytesIO(read[size:]), weights_only=True)
        if state["data"] != data:
            _log.info("the checkpoint %s is of another training, so training begins anew", checkpoint)
            return
        self.epochs = [Epoch(**epoch) for epoch in state["epochs"]]
        self.model.load_state_dict(state["model"])
        self._optimiser.load_state_dict(state["optimiser"])
        self._best_state = state["best"]


def _check_folder(folder: Path) -> None:
    """Never write among files of somebody else, such as another model's weights.

    Raises:
        GraphError: naming some of them.
    """
    ours = {CHECKPOINT, weights.RELATIONS, *((weights.WEIGHTS, weights.CONFIG) if weights.saved_in(folder) else ())}
    with disk_errors(folder):
        found = sorted(file.name for file in folder.iterdir()) if folder.exists() else []
    foreign = [name for name in found if not name.startswith((LOCK, ".")) and name not in ours]
    if foreign:
        raise GraphError(
            f"the folder {folder} is not empty and holds no graph model of ours: {', '.join(foreign[:3])}",
            hint="Choose an empty folder or a new one.",
        )


def _new_model(embedder: Encoder, options: TrainingOptions) -> GFM:
    """Random weights that depend on the seed alone; the generator of the process is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(options.seed)
        return GFM(embedder.dimension, options.hidden, options.layers)


def _signature(
    graph: GraphIndex,
    embedder: Encoder,
    questions: Sequence[tuple[str, Sequence[str]]],
    options: TrainingOptions,
) -> str:
    """Hex SHA-256 of everything that decides the weights."""
    pairs = [[text, list(answers)] for text, answers in questions]
    facts = [FORMAT, graph.digest, embedder.digest, embedder.revision, pairs, asdict(options)]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _record(
    graph: GraphIndex, embedder: Encoder, options: TrainingOptions, data: str, result: TrainingResult
) -> dict[str, Any]:
    """What is known of the weights."""
    return {
        "format": FORMAT,
        "features": embedder.dimension,
        "embedder": asdict(EncoderRecord.of(embedder)),
        "graph": graph.digest,
        "data": data,
        "options": asdict(options),
        **asdict(result),
    }
