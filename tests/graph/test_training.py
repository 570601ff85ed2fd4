import errno
import io
import json
import math
import os
import shutil
from dataclasses import replace

import numpy as np
import pytest
import safetensors.torch
import torch

from medhop_dspy.errors import DiskFullError, GraphError, InputError, SettingsError, StoreLockedError
from medhop_dspy.graph import training, weights
from medhop_dspy.graph.linking import EntityLinker, seed_rows
from medhop_dspy.graph.messages import Edges
from medhop_dspy.graph.scoring import GFMScorer
from medhop_dspy.graph.training import TrainingOptions, loss, train
from medhop_dspy.retrieval.locking import writer_lock
from tests.retrieval.hashing_encoder import HashingEncoder

from .graphs import empty_graph, gene_world, make_graph

SMALL = TrainingOptions(
    hidden=16, layers=2, completion_epochs=2, question_epochs=3, negatives=8, batch=4, validation=0.2
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A training on a small world that nothing interrupted: its folder and its result."""
    graph, questions = gene_world(8)
    folder = tmp_path_factory.mktemp("whole")
    return folder, train(graph, folder, HashingEncoder(), questions, SMALL)


class KilledError(Exception):
    pass


def kill_after(epochs):
    def progress(epoch, done, total):
        if done == epochs:
            raise KilledError

    return progress


def digest(folder):
    return weights.weights_digest(weights.load(folder)[0])


def hits(graph, scorer, questions):
    """Share of the questions whose answer is among the two best passages."""
    linker = EntityLinker(graph, HashingEncoder(), 0.8)
    texts = [text for text, _ in questions]
    seeds = seed_rows([linker.link(linker.spot(text)) for text in texts], len(graph.names))
    scores = scorer.passages(scorer.scores(texts, seeds), 3)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :2]
    answers = [[graph.passage_ids.index(answer) for answer in right] for _, right in questions]
    return np.mean([bool(set(row) & set(right)) for row, right in zip(best.tolist(), answers, strict=True)])


def test_it_learns_to_find_the_answers_of_unseen_questions(tmp_path):
    graph, questions = gene_world(30)
    seen, unseen = questions[:22], questions[22:]
    untrained = replace(SMALL, completion_epochs=1, facts_per_epoch=1, question_epochs=0, learning_rate=1e-9)
    train(graph, tmp_path / "untrained", HashingEncoder(), options=untrained)
    options = replace(SMALL, question_epochs=20, learning_rate=5e-3)
    result = train(graph, tmp_path / "trained", HashingEncoder(), seen, options)
    assert (result.questions, result.left_out) == (22, 0)

    def share(folder):
        return hits(graph, GFMScorer(graph, weights.load(folder)[0], HashingEncoder()), unseen)

    assert share(tmp_path / "untrained") < 0.5
    assert share(tmp_path / "trained") > 0.9


def test_completion_alone_finds_masked_ends_better_than_before(tmp_path):
    graph, _ = gene_world(20)
    result = train(graph, tmp_path, HashingEncoder(), options=replace(SMALL, completion_epochs=8))
    assert [e.stage for e in result.epochs] == ["completion"] * 8
    assert result.epochs[-1].loss < result.epochs[0].loss
    assert result.best.validation_loss == min(e.validation_loss for e in result.epochs)
    assert result.best.validation_loss < result.epochs[0].validation_loss


def test_the_same_call_gives_the_same_weights_and_another_seed_others(tmp_path, whole):
    graph, questions = gene_world(8)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    assert train(graph, tmp_path / "two", HashingEncoder(), questions, SMALL) == whole[1]
    assert torch.equal(torch.get_rng_state(), before)
    assert digest(tmp_path / "two") == digest(whole[0])
    assert (tmp_path / "two/config.json").read_bytes() == (whole[0] / "config.json").read_bytes()
    train(graph, tmp_path / "three", HashingEncoder(), questions, replace(SMALL, seed=1))
    assert digest(tmp_path / "three") != digest(whole[0])


class NoSpace(io.BytesIO):
    """Where nothing more can be written."""

    def write(self, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("epochs", [1, 2, 3, 5])
def test_a_training_that_was_killed_ends_as_one_that_was_not(tmp_path, whole, epochs):
    graph, questions = gene_world(8)
    with pytest.raises(KilledError):
        train(graph, tmp_path, HashingEncoder(), questions, SMALL, kill_after(epochs))
    assert not (tmp_path / "model.safetensors").exists()
    seen = []
    resumed = train(
        graph, tmp_path, HashingEncoder(), questions, SMALL, lambda epoch, done, total: seen.append((done, total))
    )
    assert seen == [(n, 5) for n in range(epochs + 1, 6)]
    assert resumed == whole[1]
    assert digest(tmp_path) == digest(whole[0])
    assert not (tmp_path / "checkpoint.pt").exists()


@pytest.mark.parametrize(
    "change", ["options", "questions", "graph", "embedder", "another kind", "one bit", "cut", "empty"]
)
def test_a_checkpoint_of_another_training_is_not_used(tmp_path, change):
    graph, questions = gene_world(8)
    with pytest.raises(KilledError):
        train(graph, tmp_path, HashingEncoder(), questions, SMALL, kill_after(1))
    options, encoder, checkpoint = SMALL, HashingEncoder(), tmp_path / "checkpoint.pt"
    match change:
        case "options":
            options = replace(SMALL, negatives=9)
        case "questions":
            questions = questions[:-1]
        case "graph":
            graph = gene_world(9)[0]
        case "embedder":
            encoder = HashingEncoder("other")
        case "another kind":
            checkpoint.write_bytes(b"hello world")
        case "one bit":
            read = bytearray(checkpoint.read_bytes())
            read[len(read) // 2] ^= 1
            checkpoint.write_bytes(read)
        case "cut":
            checkpoint.write_bytes(checkpoint.read_bytes()[:-1])
        case "empty":
            checkpoint.write_bytes(b"")
    seen = []
    train(graph, tmp_path, encoder, questions, options, lambda epoch, done, total: seen.append(done))
    assert seen == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("name", ["notes.txt", "model.safetensors", "config.json", "model.pth", "manifest.json"])
def test_weights_are_never_written_among_files_of_somebody_else(tmp_path, name):
    graph, questions = gene_world(8)
    (tmp_path / name).write_bytes(safetensors.torch.save({"weight": torch.zeros(2)}))
    before = (tmp_path / name).read_bytes()
    with pytest.raises(GraphError, match=f"holds no graph model of ours: {name}"):
        train(graph, tmp_path, HashingEncoder(), questions, SMALL)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == before


def test_damaged_weights_of_ours_can_be_trained_anew(tmp_path, whole):
    graph, questions = gene_world(8)
    shutil.copytree(whole[0], tmp_path / "copy")
    (tmp_path / "copy" / "model.safetensors").write_bytes(b"damaged")
    train(graph, tmp_path / "copy", HashingEncoder(), questions, SMALL)
    assert digest(tmp_path / "copy") == digest(whole[0])


def test_a_full_disk_is_named(tmp_path, monkeypatch):
    graph, questions = gene_world(8)

    def full(file, write):
        write(NoSpace())

    monkeypatch.setattr(training, "write_atomically", full)
    with pytest.raises(DiskFullError, match="no space left"):
        train(graph, tmp_path, HashingEncoder(), questions, SMALL)


def test_no_epochs_are_refused(tmp_path):
    graph, questions = gene_world(8)
    with pytest.raises(InputError, match="no epochs"):
        train(
            graph, tmp_path / "new", HashingEncoder(), questions, replace(SMALL, completion_epochs=0, question_epochs=0)
        )
    assert not (tmp_path / "new").exists()


def test_old_weights_stay_until_the_new_ones_are_complete(tmp_path):
    graph, questions = gene_world(8)
    train(graph, tmp_path, HashingEncoder(), questions, SMALL)
    before = digest(tmp_path)
    with pytest.raises(KilledError):
        train(graph, tmp_path, HashingEncoder(), questions, replace(SMALL, seed=1), kill_after(2))
    assert digest(tmp_path) == before


def test_the_record_tells_what_was_trained(tmp_path):
    graph, questions = gene_world(8)
    told = []
    result = train(graph, tmp_path, HashingEncoder(), questions, SMALL, lambda epoch, done, total: told.append(epoch))
    record = json.loads((tmp_path / "config.json").read_bytes())
    assert tuple(told) == result.epochs
    assert [(e.stage, e.number) for e in told] == [
        ("completion", 1), ("completion", 2), ("questions", 1), ("questions", 2), ("questions", 3)
    ]  # fmt: skip
    assert record["options"]["hidden"] == 16
    assert record["graph"] == graph.digest
    assert record["embedder"]["name"] == "hashing"
    assert len(record["epochs"]) == 5
    assert record["best"]["validation_loss"] == min(e.validation_loss for e in told[2:])
    assert record["weights"] == digest(tmp_path)


def test_questions_that_teach_nothing_are_left_out(tmp_path):
    graph, questions = gene_world(8)
    useless = [
        ("What is it?", ["gene G1x#0"]),
        ("On which chromosome is gene G1x?", ["unknown#0"]),
        ("On which chromosome is gene G1x?", []),
    ]
    result = train(graph, tmp_path, HashingEncoder(), [*useless, *questions], SMALL)
    assert (result.questions, result.left_out) == (8, 3)


@pytest.mark.parametrize("questions", [[], [("What is it?", ["p#0"])]])
def test_nothing_to_learn_from_is_an_error(tmp_path, questions):
    with pytest.raises(InputError, match=r"a graph of 0 facts and [01] questions, 0 of them usable"):
        train(empty_graph(["p#0"]), tmp_path, HashingEncoder(), questions, SMALL)


def test_a_single_fact_is_enough(tmp_path):
    graph = make_graph(["a", "b", "c"], [("a", "causes", "b")], {"p#0": ["a", "b"]})
    assert train(graph, tmp_path, HashingEncoder(), options=SMALL).facts == 1


def test_a_loss_that_is_no_number_ends_the_training(tmp_path):
    graph, _ = gene_world(8)
    with pytest.raises(SettingsError, match="the loss of the graph model became") as refused:
        train(graph, tmp_path, HashingEncoder(), options=replace(SMALL, learning_rate=1e30))
    assert "below 1e+30" in refused.value.hint


def test_two_trainings_in_one_folder_are_refused(tmp_path):
    graph, _ = gene_world(8)
    with writer_lock(tmp_path / "writer.lock", "gfm"), pytest.raises(StoreLockedError, match="is being written"):
        train(graph, tmp_path, HashingEncoder(), options=SMALL)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden": 0}, "hidden must be at least 1, got 0"),
        ({"batch": 0}, "batch must be at least 1, got 0"),
        ({"negatives": 0}, "negatives must be at least 1, got 0"),
        ({"question_epochs": -1}, "question_epochs must not be negative, got -1"),
        ({"validation": 1.0}, "got validation 1.0"),
        ({"learning_rate": 0.0}, "learning_rate 0.0"),
    ],
)
def test_impossible_options_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        TrainingOptions(**change)


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def loss_of_row(logits, right):
    """The loss in plain words."""
    p = [sigmoid(x) for x in logits]
    wrong = [n for n in range(len(p)) if n not in right]
    parts = [-sum(math.log(p[n]) for n in right) / len(right)]
    if wrong:
        parts.append(-sum(math.log(1 - p[n]) for n in wrong) / len(wrong))
    listed = -sum(math.log(p[n] / sum(p)) for n in right) / len(right)
    return 0.3 * sum(parts) / len(parts) + 0.7 * listed


def test_the_loss_is_that_of_the_paper():
    logits = [[2.0, -1.0, 0.5, -3.0], [0.1, 0.2, -0.3, 4.0], [1.0, 2.0, 3.0, 4.0]]
    right = [[0], [1, 3], [0, 1, 2, 3]]
    targets = torch.zeros(3, 4, dtype=torch.bool)
    for row, columns in zip(targets, right, strict=True):
        row[columns] = True
    wanted = sum(map(loss_of_row, logits, right)) / 3
    found = loss(torch.tensor(logits, dtype=torch.float64, requires_grad=True), targets)
    assert found.item() == pytest.approx(wanted, abs=1e-12)
    (gradient,) = torch.autograd.grad(loss(leaf := torch.tensor(logits, requires_grad=True), targets), leaf)
    assert gradient.isfinite().all()


def test_the_loss_of_extreme_scores_is_finite():
    logits = torch.tensor([[-1e4, 1e4, 0.0]], requires_grad=True)
    value = loss(logits, torch.tensor([[True, False, False]]))
    value.backward()
    assert value.isfinite()
    assert logits.grad.isfinite().all()


def facts_of(graph, **change):
    from medhop_dspy.graph.examples import Facts

    relations = weights.relation_features(graph.relations, HashingEncoder())
    return Facts(graph, relations, Edges.of(graph), replace(SMALL, **change)), relations


def described(batch, relations):
    """(relation, head, masked end, negatives) of each row of a batch of facts."""
    kinds = [int(np.flatnonzero((relations == question).all(1))[0]) for question in batch.questions]
    heads = batch.seeds.argmax(1).tolist()
    return [(k, h, row[0], row[1:]) for k, h, row in zip(kinds, heads, batch.columns.tolist(), strict=True)]


def test_masked_facts_cannot_be_looked_up():
    graph, _ = gene_world(10)
    facts, relations = facts_of(graph)
    known = {tuple(fact) for fact in graph.edges.tolist()}
    inverse = len(graph.relations)
    known |= {(t, r + inverse, h) for h, r, t in known}
    directions = set()
    for batch in [*facts.training(1), *facts.training(2), *facts.validation()]:
        pairs = set(zip(batch.edges.heads.tolist(), batch.edges.tails.tolist(), strict=True))
        for kind, head, tail, negatives in described(batch, relations):
            assert (head, kind, tail) in known
            assert not {(head, tail), (tail, head)} & pairs
            assert not any((head, kind, other) in known for other in negatives)
            assert len(negatives) == SMALL.negatives
            directions.add(kind < inverse)
        assert batch.targets.tolist() == [[True] + [False] * SMALL.negatives] * len(batch.targets)
    assert directions == {True, False}


def test_validation_is_apart_and_epochs_differ():
    graph, _ = gene_world(10)
    facts, relations = facts_of(graph)

    def ends(batches):
        return {frozenset(row[1:3]) for batch in batches for row in described(batch, relations)}

    assert len(facts) == 24
    assert len(ends(facts.training(1))) == 24
    assert len(ends(facts.validation())) == 6
    assert not ends(facts.validation()) & ends(facts.training(1))
    first, again, second = (next(iter(facts.training(n))).columns for n in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, second)


def test_an_epoch_has_so_many_facts_at_most():
    graph, _ = gene_world(10)
    facts, _ = facts_of(graph, facts_per_epoch=10)
    assert [len(batch.questions) for batch in facts.training(1)] == [4, 4, 2]


def test_facts_that_every_entity_completes_are_left_out():
    graph = make_graph(["a", "b"], [("a", "is", "a"), ("a", "is", "b"), ("b", "has", "a")], {})
    facts, _ = facts_of(graph)
    assert len(facts) == 1  # "is" leads from a to everything
