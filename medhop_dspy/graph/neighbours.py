"""Near vectors, a block of rows at a time, so that the matrix of all cosines is never in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLOCK: Final = 512
_CELLS: Final = 2**26  # cosines in memory at once, 256 MB
# Cosines are rounded: the last digits of a float32 product depend on where in the matrix a row stands.
DIGITS: Final = 6
_TIE: Final = 1e-6

Progress = Callable[[int], object]
Pairs = tuple["NDArray[np.int64]", "NDArray[np.float32]"]


def similar_pairs(
    vectors: NDArray[np.float32], floor: float, progress: Progress = lambda done: None, *, block: int | None = None
) -> Pairs:
    """All pairs of rows with a cosine of ``floor`` or more.

    Args:
        vectors: (n, d) unit rows.
        floor: Cosine, above 0 to 1.
        progress: Called with the number of rows done.
        block: Rows compared with all others at once; default: :func:`block_rows`.

    Returns:
        (m, 2) int64 pairs, the smaller row first, sorted; and their (m,) float32 cosines, rounded.
    """
    block = block or block_rows(len(vectors))
    found, cosines = [np.zeros((0, 2), np.int64)], [np.zeros(0, np.float32)]
    for start in range(0, len(vectors), block):
        scores = vectors[start : start + block] @ vectors[start:].T  # (block, n - start)
        rows, columns = np.nonzero(scores >= floor - _TIE)
        values = _rounded(scores[rows, columns])
        kept = (columns > rows) & (values >= _floor(floor))
        found.append(np.stack([rows[kept], columns[kept]], axis=1) + start)
        cosines.append(values[kept])
        progress(min(start + block, len(vectors)))
    return np.concatenate(found), np.concatenate(cosines)


def nearest_pairs(
    vectors: NDArray[np.float32],
    groups: Sequence[str],
    count: int,
    floor: float,
    progress: Progress = lambda done: None,
    *,
    block: int | None = None,
) -> Pairs:
    """Each row with its ``count`` nearest rows of other groups, as far as their cosine is ``floor`` or more.

    Args:
        vectors: (n, d) unit rows.
        groups: (n,) rows of one group are never paired.
        count: Partners of a row, at most; a row can be the partner of more.
        floor: Cosine, above 0 to 1.
        progress: Called with the number of rows done.
        block: As for :func:`similar_pairs`.

    Returns:
        As :func:`similar_pairs`. Of equally near rows the first are taken.
    """
    if not count or not len(vectors):
        return np.zeros((0, 2), np.int64), np.zeros(0, np.float32)
    numbers = np.unique(np.asarray(groups), return_inverse=True)[1]
    parts = list(_nearest(vectors, numbers, count, floor, progress, block or block_rows(len(vectors))))
    pairs = np.sort(np.concatenate([pairs for pairs, _ in parts]), axis=1)
    unique, first = np.unique(pairs, axis=0, return_index=True)
    return unique, np.concatenate([values for _, values in parts])[first]


def block_rows(columns: int) -> int:
    """How many rows are compared with ``columns`` others at once: 512, or fewer where that would be 2**26 cosines."""
    return max(1, min(_BLOCK, _CELLS // max(1, columns)))


def _nearest(
    vectors: NDArray[np.float32],
    groups: NDArray[np.int64],
    count: int,
    floor: float,
    progress: Progress,
    block: int,
) -> Iterator[Pairs]:
    wanted = min(count, len(vectors))
    for start in range(0, len(vectors), block):
        scores = vectors[start : start + block] @ vectors.T  # (block, n)
        scores[groups[start : start + block, None] == groups[None, :]] = -1
        least = np.partition(scores, -wanted, axis=1)[:, -wanted, None]  # (block, 1) the count-th best
        rows, columns = np.nonzero((scores >= least - _TIE) & (scores >= floor - _TIE))
        values = _rounded(scores[rows, columns])
        order = np.lexsort((columns, -values, rows))
        rows, columns, values = rows[order], columns[order], values[order]
        rank = np.arange(len(rows)) - np.searchsorted(rows, rows)  # within its row, from 0
        kept = (rank < count) & (values >= _floor(floor))
        yield np.stack([rows[kept] + start, columns[kept]], axis=1), values[kept]
        progress(min(start + block, len(vectors)))


def _rounded(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
    # In float64: a rounded float32 is not the nearest one to the decimal number.
    return np.round(cosines.astype(np.float64), DIGITS).astype(np.float32)


def _floor(floor: float) -> np.float32:
    return np.float32(floor)
