"""Synonym edges of the knowledge graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from medhop_dspy.graph.index import SYNONYM, sparse_rows
from medhop_dspy.graph.names import numbered_siblings
from medhop_dspy.graph.neighbours import Pairs, similar_pairs

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from medhop_dspy.graph.resolve import Resolved


def synonyms(
    resolved: Resolved,
    vectors: NDArray[np.float32],
    floor: float,
    progress: Callable[[int], object] = lambda done: None,
) -> Pairs:
    """Pairs of entities whose names mean the same.

    They are not joined further: a chain of near names leads far from where it began. Numbered siblings never are
    synonyms, nor entities of one name, which stayed apart because their types differ.

    Args:
        resolved: The entities.
        vectors: (n_entities, d) unit vectors of their names.
        floor: Cosine, above 0 to 1, from which names mean the same; 0.85 in the paper.
        progress: Called with the number of entities done.

    Returns:
        (n, 2) int64, the smaller number first, sorted; and their (n,) float32 cosines.
    """
    pairs, cosines = similar_pairs(vectors, floor, progress)
    keys, names = resolved.keys, resolved.names
    kept = [
        keys[one] != keys[other] and not numbered_siblings(names[one], names[other]) for one, other in pairs.tolist()
    ]
    chosen = np.array(kept, bool)
    return pairs[chosen], cosines[chosen]


def with_synonyms(
    resolved: Resolved, pairs: NDArray[np.int64], cosines: NDArray[np.float32]
) -> tuple[NDArray[np.int64], csr_array, NDArray[np.float32]]:
    """Triples and synonyms together.

    Args:
        resolved: The triples; a passage may have said a synonym in words.
        pairs: (n, 2) as of :func:`synonyms`.
        cosines: (n,) likewise.

    Returns:
        (n_edges, 3) sorted edges, each once; the (n_edges, n_passages) passages that say so; and (n_edges,) float32
        weights: 1 for what a passage says, the cosine for a synonym that none says.
    """
    from scipy.sparse import vstack

    relation = resolved.relations.index(SYNONYM)
    said = set(map(tuple, resolved.edges[resolved.edges[:, 1] == relation][:, [0, 2]].tolist()))
    new = np.array([pair not in said for pair in map(tuple, pairs.tolist())], bool)
    heads, tails = pairs[new].T
    edges = np.concatenate([resolved.edges, np.stack([heads, np.full_like(heads, relation), tails], axis=1)])
    weights = np.concatenate([np.ones(len(resolved.edges), np.float32), cosines[new]])
    unsaid = sparse_rows(np.zeros(len(heads) + 1, np.int64), np.zeros(0, np.int64), resolved.support.shape[1])
    order = np.lexsort((edges[:, 2], edges[:, 1], edges[:, 0]))
    return edges[order], vstack([resolved.support, unsaid], format="csr")[order], weights[order]
