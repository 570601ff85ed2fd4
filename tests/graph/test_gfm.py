from dataclasses import replace

import numpy as np
import pytest
import torch

from medhop_dspy.graph.gfm import GFM
from medhop_dspy.graph.messages import BLOCK, Edges

from .graphs import empty_graph, random_graph
from .test_messages import LargestTensor, large_graph

PUBLISHED = {
    "question_mlp": (512, 768),
    "rel_mlp": (512, 768),
    **{f"entity_model.layers.{n}.linear": (512, 1024) for n in range(6)},
    **{f"entity_model.layers.{n}.layer_norm": (512,) for n in range(6)},
    **{f"entity_model.layers.{n}.relation_projection.{m}": (512, 512) for n in range(6) for m in (0, 2)},
    "entity_model.mlp.0": (1024, 1024),
    "entity_model.mlp.2": (1, 1024),
}


def linear(state, name, vector):
    return state[f"{name}.weight"] @ vector + state[f"{name}.bias"]


def reference(state, layers, question, seeds, relation_vectors, facts):
    """The model's equations for one question, node by node and edge by edge, on numpy arrays."""
    inverse = len(relation_vectors) // 2
    both = [*facts, *((t, r + inverse, h) for h, r, t in facts)]
    query = linear(state, "question_mlp", question)
    relations = [linear(state, "rel_mlp", vector) for vector in relation_vectors]
    initial = [weight * query for weight in seeds]
    nodes = list(initial)
    for n in range(layers):
        layer = f"entity_model.layers.{n}"
        hidden = [np.maximum(linear(state, f"{layer}.relation_projection.0", r), 0) for r in relations]
        own = [linear(state, f"{layer}.relation_projection.2", r) for r in hidden]
        sums = [start.copy() for start in initial]
        for head, relation, tail in both:
            sums[tail] += nodes[head] * own[relation]
        updates = [linear(state, f"{layer}.linear", np.concatenate(pair)) for pair in zip(nodes, sums, strict=True)]
        normal = [(u - u.mean()) / np.sqrt(u.var() + 1e-5) for u in updates]
        scaled = [u * state[f"{layer}.layer_norm.weight"] + state[f"{layer}.layer_norm.bias"] for u in normal]
        nodes = [before + np.maximum(u, 0) for before, u in zip(nodes, scaled, strict=True)]
    hidden = [np.maximum(linear(state, "entity_model.mlp.0", np.concatenate([node, query])), 0) for node in nodes]
    return [linear(state, "entity_model.mlp.2", h)[0] for h in hidden]


def model_of(seed, features=5, hidden=4, layers=3, dtype=torch.float64):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = GFM(features, hidden, layers).to(dtype)
        for layer in model.entity_model.layers:  # as they are after training, not 1 and 0
            torch.nn.init.uniform_(layer.layer_norm.weight)
            torch.nn.init.uniform_(layer.layer_norm.bias)
    return model


@pytest.mark.parametrize(("seed", "entities", "facts"), [(0, 6, 9), (1, 12, 40), (2, 3, 0), (3, 1, 1), (4, 8, 60)])
def test_it_computes_the_equations(seed, entities, facts):
    graph = random_graph(seed, entities, facts)
    rng = np.random.default_rng(seed)
    model = model_of(seed)
    questions = rng.standard_normal((3, 5))
    seeds = rng.random((3, entities)) * (rng.random((3, entities)) < 0.5)
    relations = rng.standard_normal((2 * len(graph.relations), 5))
    found = model(*map(torch.from_numpy, (questions, seeds, relations)), Edges.of(graph)).detach().numpy()
    state = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    for n in range(3):
        wanted = reference(state, 3, questions[n], seeds[n], relations, graph.edges.tolist())
        assert found[n] == pytest.approx(wanted, abs=1e-9)


def test_names_and_sizes_are_those_of_the_published_weights():
    with torch.device("meta"):
        model = GFM()
    found = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    assert {name.removesuffix(".weight"): shape for name, shape in found.items() if ".weight" in name} == PUBLISHED
    assert {name for name in found if ".bias" in name} == {f"{name}.bias" for name in PUBLISHED}
    assert 8_000_000 < sum(tensor.numel() for tensor in model.parameters()) < 8_500_000


def test_a_whole_training_step_stays_within_nodes_times_hidden():
    edges, _, _ = large_graph(entities=500)
    model = model_of(7, features=16, hidden=32, dtype=torch.float32)
    with LargestTensor() as measured:
        model(torch.ones(2, 16), torch.ones(2, 500), torch.randn(2000, 16), edges).sum().backward()
    assert measured.numbers <= BLOCK < 2 * 40_000 * 32


def test_a_graph_without_entities_has_no_scores():
    model = model_of(8, dtype=torch.float32)
    assert model(torch.ones(2, 5), torch.zeros(2, 0), torch.zeros(2, 5), Edges.of(empty_graph())).shape == (2, 0)


def test_the_numbers_of_the_nodes_do_not_matter():
    graph = random_graph(9, 7, 20)
    order = np.random.default_rng(9).permutation(7)
    edges = graph.edges.copy()
    edges[:, [0, 2]] = np.argsort(order)[edges[:, [0, 2]]]
    moved = replace(graph, names=tuple(graph.names[n] for n in order), edges=edges)
    model = model_of(10)
    question, relations = torch.ones(1, 5, dtype=torch.float64), torch.randn(2 * len(graph.relations), 5).double()
    seeds = torch.rand(1, 7).double()
    before = model(question, seeds, relations, Edges.of(graph))
    after = model(question, seeds[:, torch.from_numpy(order)], relations, Edges.of(moved))
    torch.testing.assert_close(after, before[:, torch.from_numpy(order)], rtol=0, atol=1e-9)
