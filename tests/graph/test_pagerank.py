import numpy as np
import pytest
from scipy.sparse import csr_array

from medhop_dspy.errors import InputError
from medhop_dspy.graph.pagerank import PageRank, adjacency

from .graphs import empty_graph, make_graph, random_graph


def random_weights(rng: np.random.Generator, n: int) -> np.ndarray:
    """Directed and weighted, with nodes that no edge leaves or enters."""
    return rng.random((n, n)) * (rng.random((n, n)) < rng.uniform(0.05, 0.4))


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("damping", [0.5, 0.85])
def test_it_agrees_with_networkx(seed, damping):
    networkx = pytest.importorskip("networkx")
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    weights = random_weights(rng, n)
    seeds = rng.random((3, n)) * (rng.random((3, n)) < 0.3)
    seeds[:, rng.integers(n)] += 0.1
    found = PageRank(csr_array(weights), damping).scores(seeds)
    graph = networkx.from_numpy_array(weights, create_using=networkx.DiGraph)
    for row, own in zip(seeds, found, strict=True):
        wanted = networkx.pagerank(graph, damping, dict(enumerate(row.tolist())), max_iter=10_000, tol=1e-15)
        assert max(abs(own[node] - value) for node, value in wanted.items()) < 1e-8


@pytest.mark.parametrize("damping", [0.1, 0.5, 0.95])
def test_the_tolerance_is_kept(damping):
    rng = np.random.default_rng(1)
    weights = random_weights(rng, 30) + np.eye(30, k=1)  # no node that no edge leaves but the last
    weights[-1, 0] = 1.0
    seeds = np.zeros((1, 30))
    seeds[0, 3] = 1.0
    transition = weights / weights.sum(axis=1, keepdims=True)
    exact = (1 - damping) * np.linalg.solve(np.eye(30) - damping * transition.T, seeds[0])
    for tolerance in (1e-2, 1e-6, 1e-10):
        found = PageRank(csr_array(weights), damping, tolerance).scores(seeds)[0]
        assert np.abs(found - exact).sum() <= tolerance


def test_the_weights_given_are_left_as_they_were():
    weights = csr_array(np.array([[0.0, 4.0], [2.0, 2.0]]))
    PageRank(weights, 0.5)
    assert weights.toarray().tolist() == [[0, 4], [2, 2]]


def test_a_question_does_not_depend_on_those_beside_it():
    rng = np.random.default_rng(2)
    walk = PageRank(csr_array(random_weights(rng, 50)), 0.5)
    seeds = rng.random((4, 50)) * (rng.random((4, 50)) < 0.1)
    seeds[1] = 0
    together = walk.scores(seeds)
    assert all(np.array_equal(together[[n]], walk.scores(seeds[[n]])) for n in range(4))
    assert together.sum(axis=1) == pytest.approx([1, 0, 1, 1])


def test_an_empty_graph_has_no_scores():
    assert PageRank(adjacency(empty_graph()), 0.5).scores(np.zeros((2, 0))).shape == (2, 0)
    only_passages = adjacency(empty_graph(["a#0", "b#0"]))
    assert PageRank(only_passages, 0.5).scores(np.zeros((1, 2))).tolist() == [[0, 0]]


def test_edges_of_all_three_kinds_have_weights():
    graph = make_graph(
        ["a", "b", "c"],
        [("a", "treats", "b"), ("b", "is treated by", "a"), ("c", "causes", "a"), ("b", "synonym", "c")],
        {"p": ["a"], "q": ["a", "c"]},
        {("p", "q"): 0.75},
        [1, 1, 1, 0.875],
    )
    assert adjacency(graph).toarray().tolist() == [
        [0, 2, 1, 1, 1],
        [2, 0, 0.875, 0, 0],
        [1, 0.875, 0, 0, 1],
        [1, 0, 0, 0, 0.75],
        [1, 0, 1, 0.75, 0],
    ]


def test_weights_are_symmetric():
    weights = adjacency(random_graph(3, 20, 40))
    assert (weights != weights.T).nnz == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones((2, 3)), 0.5), r"shape \(2, 3\), wanted a square matrix"),
        ((-np.ones((2, 2)), 0.5), "an edge weight is negative"),
        ((np.full((2, 2), np.nan), 0.5), "or not a number"),
        ((np.ones((2, 2)), 1.0), "damping must be above 0 and below 1, got 1.0"),
        ((np.ones((2, 2)), 0.0), "damping must be above 0 and below 1, got 0.0"),
        ((np.ones((2, 2)), 0.5, 0.0), "tolerance must be above 0 and below 1, got 0.0"),
    ],
)
def test_unusable_graphs_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        PageRank(csr_array(arguments[0]), *arguments[1:])


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        (np.ones(2), r"shape \(2,\), wanted \(questions, 2\)"),
        (np.ones((1, 3)), r"shape \(1, 3\), wanted \(questions, 2\)"),
        (np.array([[1.0, -1.0]]), "a seed is negative"),
        (np.array([[1.0, np.inf]]), "or not a number"),
    ],
)
def test_unusable_seeds_are_refused(seeds, message):
    with pytest.raises(InputError, match=message):
        PageRank(csr_array(np.ones((2, 2))), 0.5).scores(seeds)
