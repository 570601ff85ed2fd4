"""Combining rankings (reciprocal rank fusion) and spreading one out (maximal marginal relevance)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from medhop_dspy.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from medhop_dspy.trace import Passage

ETA: Final = 60.0


def reciprocal_rank_fusion(
    rankings: Sequence[Sequence[Passage]], eta: float = ETA, weights: Sequence[float] | None = None
) -> list[Passage]:
    """Fuse rankings of the same collection by rank, whatever their scores mean.

    A passage p gets ``sum_i w_i / (eta + rank_i(p))`` over the rankings i that hold it, with ranks from 1
    (Cormack, Clarke and Buettcher, 2009). A ranking that does not hold it adds nothing.

    Args:
        rankings: Best first. A passage is known by its id; repeated in one ranking, only its best rank counts.
        eta: Damping, at least 0; the larger, the less the top ranks stand out.
        weights: One per ranking, at least 0; all 1 by default.

    Returns:
        New records with the fused score, by descending score, then id.

    Raises:
        InputError: if ``eta`` or a weight is negative, or the weights are not one per ranking.
    """
    weights = [1.0] * len(rankings) if weights is None else weights
    if len(weights) != len(rankings):
        raise InputError(f"got {len(weights)} weights for {len(rankings)} rankings", hint="Give one per ranking.")
    if eta < 0 or any(w < 0 for w in weights):
        raise InputError(f"eta = {eta} and weights = {list(weights)} must not be negative")
    scores: dict[str, float] = {}
    first_seen: dict[str, Passage] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        unique = {p.id: p for p in reversed(ranking)}  # the first of equal ids wins
        for rank, passage_id in enumerate(dict.fromkeys(p.id for p in ranking), start=1):
            scores[passage_id] = scores.get(passage_id, 0.0) + weight / (eta + rank)
            first_seen.setdefault(passage_id, unique[passage_id])
    order = sorted(scores, key=lambda passage_id: (-scores[passage_id], passage_id))
    return [replace(first_seen[passage_id], score=scores[passage_id]) for passage_id in order]


def mmr(query_vector: NDArray[np.float32], vectors: NDArray[np.float32], k: int, lam: float) -> list[int]:
    """Pick rows that are relevant to the query and unlike one another.

    Each step takes the row i that is not yet picked with the largest
    ``lam * cos(query, i) - (1 - lam) * max over picked j of cos(i, j)`` (Carbonell and Goldstein, 1998).

    Args:
        query_vector: (d,), of unit length.
        vectors: (n, d), rows of unit length.
        k: How many to pick, at least 1.
        lam: 1 is relevance alone, 0 diversity alone.

    Returns:
        min(k, n) row numbers in the order of picking; equal values go to the smaller number.

    Raises:
        InputError: if ``k`` is below 1 or ``lam`` is outside [0, 1].
    """
    if k < 1:
        raise InputError(f"k must be at least 1, got {k}")
    if not 0 <= lam <= 1:
        raise InputError(f"lam must be from 0 to 1, got {lam}")
    if len(vectors) == 0:
        return []
    relevance = vectors @ query_vector  # (n,)
    redundancy = np.zeros_like(relevance)  # similarity to the closest picked row; nothing is picked yet
    free = np.ones(len(vectors), dtype=bool)
    picked: list[int] = []
    while len(picked) < min(k, len(vectors)):
        value = np.where(free, lam * relevance - (1 - lam) * redundancy, -np.inf)
        best = int(np.argmax(value))
        similarity = vectors @ vectors[best]  # (n,)
        redundancy = np.maximum(redundancy, similarity) if picked else similarity
        picked.append(best)
        free[best] = False
    return picked
