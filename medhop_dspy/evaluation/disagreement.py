"""How much several runs disagree on each question: entropy of their answers, bins of it, typical questions.

Runs are files of answers or run folders, such as those of an ablation. No gold answer is needed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from medhop_dspy.answers import normalise
from medhop_dspy.errors import InputError
from medhop_dspy.evaluation.exports import csv_bytes, defused
from medhop_dspy.evaluation.results import read_results
from medhop_dspy.rows import by_id, csv_records, read_utf8

if TYPE_CHECKING:
    from numpy.typing import NDArray

BINS: Final = 5
_DECIMALS: Final = 12  # kept of a score: equal ones must be equal on every machine, or bins would differ


@dataclass(frozen=True, slots=True)
class AnswerSet:
    """The answers of one run.

    Attributes:
        source: The file or folder.
        questions: Texts by QIDX, in order.
        answers: Answers by QIDX, for the same ids; empty where there is none.
        strategies: Strategies by QIDX, as far as the run tells.
    """

    source: Path
    questions: Mapping[str, str]
    answers: Mapping[str, str]
    strategies: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Asked:
    """One question and its answers, one a run in the order of the runs; empty where a run has none."""

    id: str
    text: str
    answers: tuple[str, ...]
    strategy: str = ""


@dataclass(frozen=True, slots=True)
class Scored:
    """One question, its disagreement from 0 to 1, and its bin, from 1 (least) up."""

    id: str
    text: str
    score: float
    bin: int
    strategy: str = ""


@dataclass(frozen=True, slots=True)
class Bin:
    """Questions with scores above ``low`` (in the first bin: from it) up to ``high``.

    Attributes:
        number: From 1.
        low: Lower edge.
        high: Upper edge, which belongs to the bin.
        median: Median score.
        questions: How many there are.
        nearest: Those nearest to the median, best first; of equally near ones those that stand first.
    """

    number: int
    low: float
    high: float
    median: float
    questions: int
    nearest: tuple[Scored, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Questions that have something in common: how many, their mean score, and how many of each bin."""

    name: str
    questions: int
    mean: float
    per_bin: tuple[int, ...]


def read_answer_set(path: Path) -> AnswerSet:
    """The answers of a CSV file with QIDX, Question and Answer, or of the run folder ``path``.

    A question that failed, or whose answer was withheld, has an empty answer.

    Raises:
        InputError: the file or folder cannot be read as such, or is empty.
    """
    if not path.is_dir():
        records = csv_records(read_utf8(path), path, ("QIDX", "Question", "Answer"))
        rows = by_id(((f"line {line}", record["qidx"].strip(), record) for line, record in records), path, "QIDX")
        questions = {key: row["question"] for key, row in rows.items()}
        return AnswerSet(path, questions, {key: row["answer"] for key, row in rows.items()}, {})
    results = read_results(path)
    return AnswerSet(
        path,
        {result.id: result.question for result in results},
        {result.id: (result.answered and result.answer) or "" for result in results},
        {result.id: result.strategy for result in results if result.strategy},
    )


def join(runs: Sequence[AnswerSet]) -> list[Asked]:
    """The questions that all runs hold, in the order of the first run.

    The strategy is that of the first run that tells it.

    Raises:
        InputError: there are fewer than two runs, they share no question, or one QIDX has two different questions.
    """
    if len(runs) < 2:
        raise InputError(f"{len(runs)} runs cannot disagree, at least 2 are needed", hint="Name more files.")
    first = runs[0]
    rows = []
    for key, text in first.questions.items():
        if not all(key in run.questions for run in runs):
            continue
        for run in runs:
            if normalise(run.questions[key]) != normalise(text):
                raise InputError(
                    f"QIDX {key} is another question in {run.source} than in {first.source}: "
                    f"{run.questions[key]!r} and {text!r}",
                    hint="Compare runs over the same questions.",
                )
        strategy = next((run.strategies[key] for run in runs if key in run.strategies), "")
        rows.append(Asked(key, text, tuple(run.answers[key] for run in runs), strategy))
    if not rows:
        raise InputError("no question stands in every file", hint="Compare runs over the same questions.")
    return rows


def disagreement(answers: Iterable[str], *, raw: bool = False) -> float:
    """Shannon entropy of the answers to one question over its largest possible value, 0 to 1.

    With n answers that are not empty, of which k_i are the same i-th one::

        H = -sum_i (k_i / n) log2(k_i / n)        score = H / log2(n)

    and 0 where n < 2. It is 0 where all agree, 1 where no two do, and rounded to 12 decimals.

    Args:
        answers: One a run; blank ones do not count.
        raw: Compare answers as they are written, surrounding white space aside, as the published scores of MedHopper's
            ablations do. Otherwise :func:`medhop_dspy.answers.normalise` makes ``Townes-Brocks`` and ``townes brocks``
            one, and what has no letter or digit counts as blank.

    >>> disagreement(["a", "a", "b", "b"])
    0.5
    >>> disagreement(["Coma", "coma"]), disagreement(["Coma", "coma"], raw=True)
    (0.0, 1.0)
    """
    forms = [answer.strip() if raw else normalise(answer) for answer in answers]
    counts = Counter(form for form in forms if form)
    n = counts.total()
    if n < 2:
        return 0.0
    # The same as above, rearranged so that 0 and 1 come out exactly.
    return round(1 - math.fsum(k * math.log2(k) for k in counts.values()) / (n * math.log2(n)), _DECIMALS)


def quantile_bins(scores: Sequence[float], count: int = BINS) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Bins with about equally many scores, as ``pandas.qcut(scores, count, duplicates="drop")`` makes them.

    Many equal scores give equal edges; these are dropped, so that there can be fewer bins than asked for. Where all
    scores are equal there is one.

    Returns:
        (n,) numbers of the bins, from 1, and the ascending edges, one more than bins.

    Raises:
        InputError: there are no scores, or ``count`` is below 1.
    """
    if count < 1 or not len(scores):
        raise InputError(f"cannot make {count} bins of {len(scores)} scores", hint="Ask for at least one bin.")
    values = np.asarray(scores, float)
    edges = np.unique(np.quantile(values, np.linspace(0, 1, count + 1)))
    if len(edges) == 1:
        edges = np.repeat(edges, 2)
    return np.searchsorted(edges, values, side="left").clip(1), edges


def score(rows: Sequence[Asked], *, raw: bool = False, bins: int = BINS) -> tuple[list[Scored], list[float]]:
    """Every question with its score and bin, in order, and the edges of the bins.

    Raises:
        InputError: as :func:`quantile_bins`.
    """
    scores = [disagreement(row.answers, raw=raw) for row in rows]
    numbers, edges = quantile_bins(scores, bins)
    scored = [
        Scored(row.id, row.text, value, int(number), row.strategy)
        for row, value, number in zip(rows, scores, numbers, strict=True)
    ]
    return scored, edges.tolist()


def describe_bins(scored: Sequence[Scored], edges: Sequence[float], per_bin: int = 1) -> list[Bin]:
    """The bins in order, each with the ``per_bin`` questions nearest to its median score; empty ones are left out."""
    described = []
    for number, (low, high) in enumerate(pairwise(edges), start=1):
        members = [each for each in scored if each.bin == number]
        if not members:
            continue
        median = float(np.median([each.score for each in members]))
        distances = np.abs(np.array([each.score for each in members]) - median).round(_DECIMALS)
        nearest = tuple(members[i] for i in np.argsort(distances, kind="stable")[:per_bin])
        described.append(Bin(number, low, high, median, len(members), nearest))
    return described


def group(name: str, scored: Sequence[Scored], bins: int) -> Group:
    """What ``scored``, some of the questions, look like over the ``bins`` bins; mean 0 where there are none."""
    per_bin = Counter(each.bin for each in scored)
    mean = math.fsum(each.score for each in scored) / len(scored) if scored else 0.0
    return Group(name, len(scored), mean, tuple(per_bin[number] for number in range(1, bins + 1)))


def scores_csv(scored: Iterable[Scored]) -> bytes:
    """One row a question: QIDX, Question, disagreement_score, bin; fit to be opened in a spreadsheet."""
    rows = ((defused(s.id), defused(s.text), repr(s.score), str(s.bin)) for s in scored)
    return csv_bytes(("QIDX", "Question", "disagreement_score", "bin"), rows)
