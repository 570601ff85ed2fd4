"""What the checks of a draft are worth alone and together: a full factorial of four switches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np

from medhop_dspy.errors import InputError
from medhop_dspy.evaluation.ablations import VALIDATORS
from medhop_dspy.evaluation.statistics import Interval, bootstrap_ci

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from medhop_dspy.evaluation.outcomes import AnyResult
    from medhop_dspy.trace import CheckName

# The verdict in which a check shows. Two share one; they are told apart by which of them was on.
_VERDICTS: Final[dict[str, CheckName]] = {
    "generic": "type",
    "kind": "type",
    "grounding": "grounding",
    "self_reference": "self_reference",
}


@dataclass(frozen=True, slots=True)
class Effect:
    """What one check (main effect) or two of them together (interaction) do to exact match; see :func:`effects`."""

    validators: tuple[str, ...]
    em: Interval


@dataclass(frozen=True, slots=True)
class Overlap:
    """First drafts that two checks refuse, each on its own: those that both refuse, and those that either does."""

    validators: tuple[str, str]
    both: int
    either: int

    @property
    def share(self) -> float | None:
        """``both / either`` (Jaccard), 0 to 1; None where neither refuses any."""
        return self.both / self.either if self.either else None


@dataclass(frozen=True, slots=True)
class Factorial:
    """The outcome of the sixteen configurations.

    Attributes:
        n: Questions.
        effects: Four main effects, then six interactions.
        drafts: First drafts, over all seeds, of the runs with one check alone, each once.
        refused: How many of them each check alone refuses.
        overlaps: Of each pair.
    """

    n: int
    effects: tuple[Effect, ...]
    drafts: int
    refused: Mapping[str, int]
    overlaps: tuple[Overlap, ...]


def effects(cells: Mapping[frozenset[str], Sequence[float]]) -> tuple[Effect, ...]:
    """Main effects and pairwise interactions of a complete 2 x 2 x 2 x 2 design, each paired by question.

    With y the exact match of a question (its mean over seeds), x_A = +1 where check A is on and -1 where it is off::

        main effect of A      = mean of y where x_A = +1  -  mean of y where x_A = -1
        interaction of A, B   = mean of y where x_A x_B = +1  -  mean of y where x_A x_B = -1

    each over the eight cells of that kind. The interaction is half of the difference between A's effect with B on and
    with B off: negative where each does in part what the other does (they overlap), 0 where they add up. Intervals come
    from resampling questions.

    Args:
        cells: For each set of checks that are on, y by question: (n,) numbers from 0 to 1, the same questions in the
            same order everywhere.

    Raises:
        InputError: a cell is missing, there are no questions, or cells differ in their number.
    """
    wanted = [frozenset(on) for size in range(len(VALIDATORS) + 1) for on in combinations(VALIDATORS, size)]
    missing = [on for on in wanted if on not in cells]
    if missing or len({len(cells[on]) for on in wanted}) != 1:
        raise InputError(
            f"{len(missing)} of the {len(wanted)} combinations of checks are missing, or their questions differ",
            hint="Run all configurations of the group factorial over the same questions.",
        )
    outcomes = np.array([cells[on] for on in wanted], float)  # (16, n)
    signs = {v: np.array([1 if v in on else -1 for on in wanted]) for v in VALIDATORS}  # (16,)
    pairs = combinations(VALIDATORS, 2)
    return (
        *(Effect((v,), _contrast(signs[v], outcomes)) for v in VALIDATORS),
        *(Effect((a, b), _contrast(signs[a] * signs[b], outcomes)) for a, b in pairs),
    )


def _contrast(signs: NDArray[np.int64], outcomes: NDArray[np.float64]) -> Interval:
    return bootstrap_ci((signs @ outcomes / (len(signs) / 2)).tolist())


def overlaps(alone: Mapping[str, Sequence[Sequence[AnyResult]]]) -> tuple[int, dict[str, int], tuple[Overlap, ...]]:
    """First drafts, how many of them each check refuses, and how far the refused ones of each pair are the same.

    Only the first draft of a question counts: later ones depend on what was refused before. A draft is known by
    its place among the seeds, its question and its text, so that two checks meet only where they were shown the same.
    The check of quotes is none of the four and stays on: what it refuses by Python never gets to the model's verdicts.

    Args:
        alone: For each check, the results with no other of the four on, one list a seed in the order of the seeds.
    """
    drafts: dict[str, set[tuple[int, str, str]]] = {v: set() for v in VALIDATORS}
    refused: dict[str, set[tuple[int, str, str]]] = {v: set() for v in VALIDATORS}
    for validator, runs in alone.items():
        for place, run in enumerate(runs):
            for result in run:
                first = result.trace.attempts[0] if result.trace and result.trace.attempts else None
                if first is None or not first.draft:
                    continue
                key = (place, result.id, first.draft)
                drafts[validator].add(key)
                if any(v.check == _VERDICTS[validator] and not v.passed for v in first.verdicts):
                    refused[validator].add(key)
    pairs = tuple(
        Overlap((a, b), len(refused[a] & refused[b]), len(refused[a] | refused[b]))
        for a, b in combinations(VALIDATORS, 2)
    )
    return len(set().union(*drafts.values())), {v: len(refused[v]) for v in VALIDATORS}, pairs
