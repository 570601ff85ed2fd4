"""Intervals and tests for shares of right answers, paired by question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from medhop_dspy.errors import InputError

RESAMPLES = 10_000
_BLOCK = 1_000  # resamples drawn at once, so that memory stays small


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its 95 % percentile bootstrap interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two programs on the same questions.

    Attributes:
        difference: Mean of the second less mean of the first, with its paired bootstrap interval.
        gained: Questions that only the second answers right.
        lost: Questions that only the first answers right.
        p: Two-sided exact McNemar test, 1.0 where the two agree on every question.
    """

    difference: Interval
    gained: int
    lost: int
    p: float


def bootstrap_ci(values: Sequence[float], *, seed: int = 0) -> Interval:
    """Mean and 95 % percentile interval from 10,000 resamples of the questions.

    >>> print(bootstrap_ci([1, 1, 1, 0]))
    0.750 [0.250, 1.000]

    Raises:
        InputError: there are no values.
    """
    if not len(values):
        raise InputError("no values to average: the set of questions is empty")
    array = np.asarray(values, float)
    means = _resampled_means(array, seed)
    low, high = np.percentile(means, (2.5, 97.5))
    return Interval(float(array.mean()), float(low), float(high))


def _resampled_means(values: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """(RESAMPLES,) means of resamples of ``values`` with replacement."""
    random = np.random.default_rng(seed)
    blocks = (random.integers(0, len(values), (_BLOCK, len(values))) for _ in range(RESAMPLES // _BLOCK))
    return np.concatenate([values[block].mean(axis=1) for block in blocks])


def compare(first: Sequence[bool], second: Sequence[bool]) -> Comparison:
    """Exact McNemar test and paired interval of two lists of right and wrong, question by question.

    >>> result = compare([False] * 6 + [True] * 4, [True] * 10)
    >>> result.gained, result.lost, result.p
    (6, 0, 0.03125)

    Raises:
        InputError: the lists are empty or of different lengths.
    """
    from scipy.stats import binomtest

    if len(first) != len(second):
        raise InputError(f"cannot pair {len(first)} with {len(second)} answers")
    one, other = np.asarray(first, bool), np.asarray(second, bool)
    gained, lost = int((~one & other).sum()), int((one & ~other).sum())
    p = float(binomtest(gained, gained + lost, 0.5).pvalue) if gained + lost else 1.0
    return Comparison(bootstrap_ci(other.astype(float) - one.astype(float)), gained, lost, p)


def kappa(first: Sequence[str], second: Sequence[str]) -> float:
    """Cohen's kappa of two runs' answers, each different answer a category; 1.0 where all agree.

    >>> kappa(["a", "b", "a", "b"], ["a", "b", "a", "b"])
    1.0
    >>> kappa(["a", "a", "b", "b"], ["a", "b", "a", "b"])
    0.0

    Raises:
        InputError: the lists are empty or of different lengths.
    """
    if len(first) != len(second) or not len(first):
        raise InputError(f"cannot pair {len(first)} with {len(second)} answers")
    n, one, other = len(first), Counter(first), Counter(second)
    agreement = sum(a == b for a, b in zip(first, second, strict=True)) / n
    chance = sum(count * other[category] for category, count in one.items()) / n**2
    return 1.0 if chance == 1 else (agreement - chance) / (1 - chance)
