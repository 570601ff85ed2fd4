"""What the summaries of all runs hold, whatever was asked; ``summary.json``, and a short table for people."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from medhop_dspy.evaluation.outcomes import Outcome
from medhop_dspy.evaluation.results import file_errors
from medhop_dspy.evaluation.run_folder import write_json
from medhop_dspy.evaluation.statistics import Interval, bootstrap_ci
from medhop_dspy.trace import Usage

SUMMARY: Final = "summary.json"
NOT_STATED: Final = "not stated"


@dataclass(frozen=True, slots=True)
class Failures:
    """Ids of the questions that failed, in the order of their first lines.

    Attributes:
        program: Those whose program failed.
        metric: Those that were answered and a measure of which could not be taken.
        by_class: All of them by the class of the error.
    """

    program: tuple[str, ...]
    metric: tuple[str, ...]
    by_class: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Effort:
    """What the answers cost; tokens and calls of failed questions included.

    Attributes:
        lm_calls: Predictor calls.
        requests: Requests to the model server of questions with a trace, tries that failed included.
        prompt_tokens: Of which ``cached_tokens`` came from the server's prefix cache and ``computed_tokens`` did not.
        cached_share: Cached tokens among the prompt tokens, 0 to 1.
        seconds_mean: Of a question that was answered; like median and maximum without the retrieval for recall@k.
        wall_seconds: Of all calls for this folder together; one that was killed left no time behind.
    """

    lm_calls: int
    requests: int
    prompt_tokens: int
    computed_tokens: int
    cached_tokens: int
    completion_tokens: int
    cached_share: float
    seconds_mean: float
    seconds_median: float
    seconds_max: float
    wall_seconds: float


@dataclass(frozen=True, slots=True)
class Tally(ABC):
    """A run in numbers, whatever was asked.

    ``n`` is the denominator of all measures: ``correct + wrong + failed``. A failed question counts as not right, and
    is named in ``failures``, so that a broken metric never looks like bad answers.

    Attributes:
        n: Questions with a line.
        pending: Questions chosen in the last call that have no line yet.
        answered: Those with an answer or, where nothing passed the checks, with none, and known to be right or not.
        failed: The others: the program failed, or the measure did.
        correct: Those that are right.
        wrong: Those that were answered and are not right.
        failures: Which failed, and why.
        effort: What it cost.
        unusable_replies: How many replies of the model could not be used, by step.
        run: The manifest, ``run.json``.
    """

    n: int
    pending: int
    answered: int
    failed: int
    correct: int
    wrong: int
    failures: Failures
    effort: Effort
    unusable_replies: dict[str, int]
    run: Mapping[str, Any]

    @property
    @abstractmethod
    def share_right(self) -> Interval | None:
        """Share of right answers with its 95 % interval; None for a run without a line."""

    @abstractmethod
    def measures(self) -> list[tuple[str, str]]:
        """Name and value of each measure, for people."""

    @abstractmethod
    def groups(self) -> list[tuple[str, str]]:
        """Kinds of questions and the share of each that is right, for people."""

    @property
    def exit_code(self) -> int:
        """0, or 1 if a question or one of its measures failed, as :mod:`medhop_dspy.errors` says."""
        return int(bool(self.failures.by_class))


def tallied(results: Sequence[Outcome[Any]], run: Mapping[str, Any], pending: int, wall: float) -> dict[str, Any]:
    """The fields of a :class:`Tally` over ``results``, each question once."""
    scored = [result for result in results if result.scored]
    correct = sum(bool(result.right) for result in scored)
    return {
        "n": len(results),
        "pending": pending,
        "answered": len(scored),
        "failed": len(results) - len(scored),
        "correct": correct,
        "wrong": len(scored) - correct,
        "failures": _failures([result for result in results if result.failed_in or not result.answered]),
        "effort": _effort(results, [result.seconds for result in scored], wall),
        "unusable_replies": dict(Counter(f.step for r in results if r.trace for f in r.trace.failures)),
        "run": run,
    }


def interval(values: Iterable[float | None]) -> Interval | None:
    """Mean and interval of values of which None counts as 0; None where there are none."""
    known = [float(value or 0) for value in values]
    return bootstrap_ci(known) if known else None


def _failures(failed: Sequence[Outcome[Any]]) -> Failures:
    classes: dict[str, list[str]] = {}
    for result in failed:
        classes.setdefault(result.error.partition(":")[0], []).append(result.id)
    return Failures(
        program=tuple(result.id for result in failed if result.failed_in != "metric"),
        metric=tuple(result.id for result in failed if result.failed_in == "metric"),
        by_class={name: tuple(ids) for name, ids in classes.items()},
    )


def _effort(results: Sequence[Outcome[Any]], seconds: Sequence[float], wall: float) -> Effort:
    usage = sum((result.usage for result in results), Usage())
    return Effort(
        lm_calls=sum(result.lm_calls for result in results),
        requests=sum(len(result.trace.calls) for result in results if result.trace),
        prompt_tokens=usage.prompt_tokens,
        computed_tokens=usage.computed_tokens,
        cached_tokens=usage.cached_tokens,
        completion_tokens=usage.completion_tokens,
        cached_share=usage.cached_share,
        seconds_mean=sum(seconds) / len(seconds) if seconds else 0.0,
        seconds_median=median(seconds) if seconds else 0.0,
        seconds_max=max(seconds, default=0.0),
        wall_seconds=wall,
    )


def write_summary(folder: Path, summary: Tally) -> None:
    """Write ``summary.json`` in one step, the manifest last.

    Raises:
        DiskFullError, InputError: it cannot be written; what was there stays.
    """
    path, value = folder / SUMMARY, asdict(summary)
    value["run"] = value.pop("run")
    with file_errors(path):
        write_json(path, value)


def last_summary(folder: Path) -> tuple[int, float]:
    """What ``summary.json`` says of questions, those to be asked included, and seconds; 0 where there is none.

    A run writes it before it asks and when it ends. Killed in between, it has more lines than its summary counts, and
    only the sum of both kinds of questions still holds.
    """
    try:
        saved = json.loads((folder / SUMMARY).read_bytes())
        return int(saved["n"]) + int(saved["pending"]), float(saved["effort"]["wall_seconds"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return 0, 0.0


def table(summary: Tally) -> str:
    """The main numbers in lines of ``name  value``, each with what it is out of."""
    s, effort = summary, summary.effort
    rows = [
        ("questions", f"{s.n}: {s.answered} answered, {s.failed} failed" + (f", {s.pending} to ask" * bool(s.pending))),
        *s.measures(),
        *s.groups(),
        ("LM calls", f"{effort.lm_calls:,}"),
        ("prompt tokens", f"{effort.prompt_tokens:,}, {effort.cached_share:.0%} from the prefix cache"),
        ("seconds a question", f"{effort.seconds_mean:.1f} (median {effort.seconds_median:.1f})"),
        ("seconds in all", f"{effort.wall_seconds:.0f}"),
        *((f"failed: {name}", ", ".join(ids)) for name, ids in s.failures.by_class.items()),
    ]
    return "\n".join(f"{name:22} {value}" for name, value in rows)
