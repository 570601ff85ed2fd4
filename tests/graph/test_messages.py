import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from medhop_dspy.graph.messages import BLOCK, Bags, Edges, propagate

from .graphs import empty_graph, make_graph, random_graph


class LargestTensor(TorchDispatchMode):
    """Notes how many numbers the largest tensor holds that any operation makes."""

    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        tensors = [t for t in (made if isinstance(made, tuple | list) else [made]) if isinstance(t, torch.Tensor)]
        # An expanded tensor is a view, so what counts is what is stored.
        self.numbers = max([self.numbers, *(t.untyped_storage().nbytes() // t.element_size() for t in tensors)])
        return made


def test_gradients_are_right():
    edges = Edges.of(random_graph(5, 6, 14))
    torch.manual_seed(0)
    states = torch.randn(6, 2, 3, dtype=torch.float64, requires_grad=True)
    relations = torch.randn(8, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda s, r: propagate(s, r, edges), (states, relations))


def large_graph(edges=40_000, entities=60, relations=2000):
    """Edges, relations (2000, 64) and states (entities, 1, 64) in double precision."""
    rng = np.random.default_rng(6)
    ends = [torch.from_numpy(rng.integers(bound, size=edges)) for bound in (entities, relations, entities)]
    vectors = [torch.from_numpy(rng.standard_normal(shape)) for shape in ((relations, 64), (entities, 1, 64))]
    return Edges(*ends), *vectors


def plain(states, relations, edges):
    """The same with a message for each edge."""
    return torch.zeros_like(states).index_add(0, edges.tails, states[edges.heads] * relations[edges.relations][:, None])


@pytest.mark.parametrize("relations", [2000, 2])
def test_sums_and_gradients_are_those_of_single_messages(relations):
    edges, vectors, states = large_graph(relations=relations)
    assert len(list(edges.incoming.blocks(64))) == {2000: 9, 2: 1}[relations]
    found = []
    for method in (propagate, plain):
        s, r = states.clone().requires_grad_(), vectors.clone().requires_grad_()
        sums = method(s, r, edges)
        (sums * torch.linspace(-1, 1, sums.numel(), dtype=torch.float64).view_as(sums)).sum().backward()
        found.append((sums.detach(), s.grad, r.grad))
    for ours, wanted in zip(*found, strict=True):
        torch.testing.assert_close(ours, wanted, rtol=0, atol=1e-9)


def test_no_tensor_grows_with_edges_times_hidden():
    edges, vectors, states = large_graph()
    vectors, states = vectors.float().requires_grad_(), states.float().requires_grad_()
    largest = []
    for method in (propagate, plain):
        with LargestTensor() as measured:
            method(states, vectors, edges).sum().backward()
        largest.append(measured.numbers)
    assert largest[0] <= BLOCK < largest[1] == 40_000 * 64


def test_a_hub_has_no_tensor_of_its_edges_either():
    edges, vectors, states = large_graph(relations=3)
    to_one = Edges(edges.heads, edges.relations, torch.zeros_like(edges.tails))
    with LargestTensor() as measured:
        received = propagate(states, vectors, to_one)
    torch.testing.assert_close(received, plain(states, vectors, to_one), rtol=0, atol=1e-9)
    assert measured.numbers <= 2 * 40_000  # numbers of nodes, not states


def test_every_fact_runs_both_ways():
    graph = make_graph(["a", "b", "c"], [("c", "causes", "a"), ("a", "treats", "b")], {})
    assert graph.relations == ("causes", "synonym", "treats")
    edges = Edges.of(graph)
    found = list(zip(edges.heads.tolist(), edges.relations.tolist(), edges.tails.tolist(), strict=True))
    assert sorted(found) == [(0, 2, 1), (0, 3, 2), (1, 5, 0), (2, 0, 0)]


def test_edges_between_given_pairs_are_left_out():
    facts = [("a", "r", "b"), ("b", "s", "a"), ("a", "r", "c"), ("b", "r", "c"), ("a", "r", "a")]
    edges = Edges.of(make_graph(["a", "b", "c"], facts, {}))
    kept = edges.without(torch.tensor([[1, 0], [2, 2]]))
    pairs = set(zip(kept.heads.tolist(), kept.tails.tolist(), strict=True))
    assert pairs == {(0, 2), (2, 0), (1, 2), (2, 1), (0, 0)}
    assert len(edges.without(torch.zeros(0, 2, dtype=torch.long)).heads) == len(edges.heads)
    assert len(Edges.of(empty_graph()).without(torch.tensor([[0, 1]])).heads) == 0


@pytest.mark.parametrize(("width", "blocks"), [(0, 1), (1, 1), (64, 9), (2 * BLOCK, None)])
def test_blocks_hold_every_edge_once(width, blocks):
    edges, _, _ = large_graph(edges=40_000 if blocks else 200)
    parts = list(edges.incoming.blocks(width))
    assert len(parts) == (blocks or len(edges.incoming.relations))
    told = []
    for part in parts:
        sizes = part.starts.diff()
        ends = [ends.repeat_interleave(sizes).tolist() for ends in (part.relations, part.receivers)]
        told += zip(part.senders.tolist(), *ends, strict=True)
    assert sorted(told) == sorted(
        zip(edges.heads.tolist(), edges.relations.tolist(), edges.tails.tolist(), strict=True)
    )


def test_bags_are_made_once_by_however_many_threads(monkeypatch):
    made, of = [], Bags.of

    def counted(*ends):
        made.append(ends)
        time.sleep(0.05)
        return of(*ends)

    monkeypatch.setattr(Bags, "of", counted)
    edges, _, _ = large_graph(edges=200)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: (edges.incoming, edges.outgoing), range(4)))
    assert len(made) == 2
    assert all(pair[0] is edges.incoming and pair[1] is edges.outgoing for pair in found)


def test_bags_join_edges_of_one_relation_and_receiver():
    bags = Bags.of(torch.tensor([5, 6, 7, 8]), torch.tensor([1, 0, 1, 0]), torch.tensor([2, 2, 2, 0]))
    assert bags.senders.tolist() == [8, 6, 5, 7]
    assert bags.starts.tolist() == [0, 1, 2, 4]
    assert bags.relations.tolist() == [0, 0, 1]
    assert bags.receivers.tolist() == [0, 2, 2]


def test_without_edges_nothing_is_received():
    none = Edges.of(empty_graph())
    states = torch.ones(3, 1, 4, requires_grad=True)
    relations = torch.ones(2, 4, requires_grad=True)
    received = propagate(states, relations, none)
    received.sum().backward()
    assert not received.any()
    assert not states.grad.any()
    assert not relations.grad.any()
