"""Personalised PageRank over a sparse weighted graph, for several questions at once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from medhop_dspy.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array, sparray

    from medhop_dspy.graph.index import GraphIndex

TOLERANCE: Final = 1e-10


class PageRank:
    """The random walk of HippoRAG over one graph.

    At each step the walker follows an edge with probability ``damping`` (``alpha`` in networkx, 0.5 in HippoRAG),
    chosen by weight among the edges that leave the node; otherwise, and where no edge leaves, it jumps back to a seed.
    """

    def __init__(self, weights: sparray, damping: float, tolerance: float = TOLERANCE) -> None:
        """Normalise the edges.

        Args:
            weights: (n, n), the weight of the edge from row to column; finite, 0 or more.
            damping: Probability of following an edge, above 0 and below 1.
            tolerance: Largest L1 distance of a result to the exact one, above 0.

        Raises:
            InputError: if a value is out of bounds or the matrix is not square.
        """
        from scipy.sparse import csr_array

        matrix = csr_array(weights, dtype=np.float64, copy=True)  # its values are changed below
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise InputError(f"edge weights have the shape {matrix.shape}, wanted a square matrix")
        if not (np.isfinite(matrix.data) & (matrix.data >= 0)).all():
            raise InputError("an edge weight is negative or not a number, wanted 0 or more")
        if not 0 < damping < 1:
            raise InputError(f"damping must be above 0 and below 1, got {damping}")
        if not 0 < tolerance < 1:
            raise InputError(f"tolerance must be above 0 and below 1, got {tolerance}")
        leaving = np.asarray(matrix.sum(axis=1)).ravel()
        matrix.data /= np.repeat(np.where(leaving > 0, leaving, 1.0), np.diff(matrix.indptr))
        self._incoming = csr_array(matrix.T)
        self._stuck = csr_array((leaving == 0).astype(np.float64)[None, :])  # (1, n)
        self._damping = damping
        # Two distributions are at most 2 apart in L1, and each step brings them nearer by the factor `damping`. The
        # number of steps follows: it always suffices, and no question's result depends on those beside it.
        self._steps = max(1, math.ceil(math.log(tolerance / 2) / math.log(damping)))

    def scores(self, seeds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where the walker is in the long run.

        Args:
            seeds: (n_questions, n) weights of the nodes to jump to, finite, 0 or more; need not sum to 1.

        Returns:
            (n_questions, n) probabilities; each row sums to 1, or is all 0 where the row of ``seeds`` is.

        Raises:
            InputError: if ``seeds`` is of another shape or holds a value out of bounds.
        """
        n = self._incoming.shape[0]
        if seeds.ndim != 2 or seeds.shape[1] != n:
            raise InputError(f"seeds have the shape {seeds.shape}, wanted (questions, {n})")
        if not (np.isfinite(seeds) & (seeds >= 0)).all():
            raise InputError("the weight of a seed is negative or not a number, wanted 0 or more")
        totals = seeds.sum(axis=1, keepdims=True)
        jumps = np.ascontiguousarray((seeds / np.where(totals > 0, totals, 1.0)).T)  # (n, n_questions)
        state = jumps
        for _ in range(self._steps):
            jumping = 1 - self._damping + self._damping * (self._stuck @ state)  # (1, n_questions)
            state = self._damping * (self._incoming @ state) + jumping * jumps
        return np.ascontiguousarray(state.T)


def adjacency(graph: GraphIndex) -> csr_array:
    """Symmetric weights of the graph's edges, for :class:`PageRank`.

    Each fact of G_ent counts 1 in both directions, so that entities joined by several relations are nearer; a synonym
    counts the cosine of the two names, as in HippoRAG. G_link counts 1, G_doc its similarity.

    Returns:
        (n, n) float64: entities, then passages.
    """
    from scipy.sparse import block_array, coo_array, csr_array

    entities, passages = graph.mentions.shape
    heads, tails = graph.edges[:, 0], graph.edges[:, 2]
    counted = graph.edge_weights.astype(np.float64)
    facts = coo_array((counted, (heads, tails)), shape=(entities, entities)).tocsr()
    facts = facts + facts.T
    left, right = graph.passage_edges[:, 0], graph.passage_edges[:, 1]
    weights = graph.passage_weights.astype(np.float64)
    similar = coo_array((weights, (left, right)), shape=(passages, passages)).tocsr()
    similar = similar + similar.T
    links = csr_array(graph.mentions, dtype=np.float64)
    return csr_array(block_array([[facts, links], [links.T, similar]]))
