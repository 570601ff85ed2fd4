"""How alike several runs of the same thing are: the same questions, another seed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from medhop_dspy.answers import normalise
from medhop_dspy.errors import InputError
from medhop_dspy.evaluation.statistics import kappa

if TYPE_CHECKING:
    from medhop_dspy.evaluation.outcomes import AnyResult


@dataclass(frozen=True, slots=True)
class Determinism:
    """Runs of one configuration, compared by their answers as they are written; no answer is an answer of its own.

    Attributes:
        runs: How many.
        n: Questions that all of them answered; those that failed in one say nothing of its answers.
        identical: Share of these, 0 to 1, with one and the same answer in all runs.
        agreement: Share with the same answer in two runs, mean over all pairs of runs.
        kappa: Cohen's kappa, each different answer a category, mean over all pairs of runs.
        em_sd: Sample standard deviation over the runs of the share of right answers; here a failed question counts as
            not right.
    """

    runs: int
    n: int
    identical: float
    agreement: float
    kappa: float
    em_sd: float


def determinism(runs: Sequence[Sequence[AnyResult]]) -> Determinism:
    """What differs between ``runs``, each a list of results.

    Raises:
        InputError: there are fewer than two, or no question that all of them answered.
    """
    if len(runs) < 2:
        raise InputError(f"{len(runs)} runs cannot differ, at least 2 are needed", hint="Run with more seeds.")
    answers = shared_answers(runs)
    pairs = list(combinations(answers, 2))
    return Determinism(
        runs=len(runs),
        n=len(answers[0]),
        identical=fmean(len(set(each)) == 1 for each in zip(*answers, strict=True)),
        agreement=fmean(same(*pair) for pair in pairs),
        kappa=fmean(kappa(*pair) for pair in pairs),
        em_sd=stdev(fmean(bool(result.right) for result in run) for run in runs),
    )


def shared_answers(runs: Sequence[Sequence[AnyResult]]) -> list[list[str]]:
    """For each run, the answers to the questions that all of them answered, in the order of the first; "" for none.

    Raises:
        InputError: there is no such question.
    """
    by_id = [{result.id: result.answer or "" for result in run if result.answered} for run in runs]
    shared = [name for name in by_id[0] if all(name in answers for answers in by_id)]
    if not shared:
        raise InputError("no question is answered in all runs", hint="Compare runs over the same questions.")
    return [[answers[name] for name in shared] for answers in by_id]


def same_answers(pairs: Iterable[tuple[AnyResult, AnyResult]]) -> float | None:
    """Share of pairs, 0 to 1, with one and the same answer once both are normalised; None where there are none.

    Pairs of which one failed do not count; no answer is an answer of its own.
    """
    alike = [normalise(a.answer or "") == normalise(b.answer or "") for a, b in pairs if a.answered and b.answered]
    return fmean(alike) if alike else None


def same(first: Sequence[str], second: Sequence[str]) -> float:
    """Share of places, 0 to 1, where both lists hold the same text.

    >>> same(["FBN1", ""], ["FBN1", "15"])
    0.5
    """
    return fmean(one == other for one, other in zip(first, second, strict=True))
