"""What a run comes to: ``summary.json``, and a short table for people."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from medhop_dspy.evaluation.metrics import exact_match
from medhop_dspy.evaluation.results import Result, file_errors
from medhop_dspy.evaluation.run_folder import write_json
from medhop_dspy.evaluation.scoring import RECALL_AT
from medhop_dspy.evaluation.statistics import Interval, bootstrap_ci
from medhop_dspy.trace import Usage

SUMMARY: Final = "summary.json"
NOT_STATED: Final = "not stated"


@dataclass(frozen=True, slots=True)
class Group:
    """Questions of one kind, and the share of them that is right; failed ones count as not right."""

    n: int
    em: float


@dataclass(frozen=True, slots=True)
class Share:
    """A share, 0 to 1, of the ``n`` questions that can have the property; None where there is none."""

    n: int
    share: float | None


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
class Summary:
    """A run in numbers.

    ``n`` is the denominator of all measures: ``correct + wrong + failed``. A failed question counts as not right, and
    is named in ``failures``, so that a broken metric never looks like bad answers.

    Attributes:
        n: Questions with a line.
        pending: Questions chosen in the last call that have no line yet.
        answered: Those with an answer or, where nothing passed the checks, with none, and known to be right or not.
        failed: The others: the program failed, or exact match did.
        correct: Those that are right by lenient exact match.
        wrong: Those that were answered and are not right.
        failures: Which failed, and why.
        em: Lenient exact match; like the three after it with a 95 % interval, None for a run without a line.
        em_strict: Exact match of the trimmed string.
        em_official: Exact match as MedHopQA's organisers describe it.
        f1: Token F1.
        em_of_drafts: Lenient exact match of the last drafts, whether or not they passed the checks.
        validated: Answered questions whose answer passed every check.
        null_answers: Answered questions without an answer.
        recall: By k, see :class:`~medhop_dspy.evaluation.results.Result`.
        gold_in_evidence: Likewise.
        article_in_evidence: Likewise.
        by_answer_type: By the gold answer's type.
        by_strategy: By the strategy that the question set states.
        by_hops: By the number of hops that the question set states.
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
    em: Interval | None
    em_strict: Interval | None
    em_official: Interval | None
    f1: Interval | None
    em_of_drafts: float | None
    validated: Share
    null_answers: int
    recall: dict[int, Share]
    gold_in_evidence: Share
    article_in_evidence: Share
    by_answer_type: dict[str, Group]
    by_strategy: dict[str, Group]
    by_hops: dict[str, Group]
    effort: Effort
    unusable_replies: dict[str, int]
    run: Mapping[str, Any]

    @property
    def exit_code(self) -> int:
        """0, or 1 if a question or one of its measures failed, as :mod:`medhop_dspy.errors` says."""
        return int(bool(self.failures.by_class))


def summarise(
    results: Sequence[Result], run: Mapping[str, Any], *, pending: int = 0, wall_seconds: float = 0.0
) -> Summary:
    """The summary of ``results``, each question once.

    Args:
        results: See :func:`medhop_dspy.evaluation.results.read_results`.
        run: The manifest of the run.
        pending: Questions that are still to be asked.
        wall_seconds: Time that the run has taken.
    """
    answered = [result for result in results if result.scored]
    correct = sum(bool(result.em) for result in answered)
    return Summary(
        n=len(results),
        pending=pending,
        answered=len(answered),
        failed=len(results) - len(answered),
        correct=correct,
        wrong=len(answered) - correct,
        failures=_failures([result for result in results if result.failed_in or not result.answered]),
        em=_interval(result.em for result in results),
        em_strict=_interval(result.em_strict for result in results),
        em_official=_interval(result.em_official for result in results),
        f1=_interval(result.f1 for result in results),
        em_of_drafts=sum(map(_draft_is_right, answered)) / len(results) if results else None,
        validated=_share([result.validated for result in answered]),
        null_answers=sum(result.answer is None for result in answered),
        recall={k: _share([result.recall.get(k) for result in results if result.recall]) for k in RECALL_AT},
        gold_in_evidence=_share([result.gold_in_evidence for result in results]),
        article_in_evidence=_share([result.article_in_evidence for result in results]),
        by_answer_type=_groups(results, lambda result: result.gold.answer_type),
        by_strategy=_groups(results, lambda result: result.gold.strategy),
        by_hops=_groups(results, lambda result: result.gold.hops),
        effort=_effort(results, [result.seconds for result in answered], wall_seconds),
        unusable_replies=dict(Counter(f.step for r in results if r.trace for f in r.trace.failures)),
        run=run,
    )


def write_summary(folder: Path, summary: Summary) -> None:
    """Write ``summary.json`` in one step.

    Raises:
        DiskFullError, InputError: it cannot be written; what was there stays.
    """
    path = folder / SUMMARY
    with file_errors(path):
        write_json(path, asdict(summary))


def last_summary(folder: Path) -> tuple[int, float]:
    """What ``summary.json`` says of questions, those to be asked included, and seconds; 0 where there is none.

    A run writes it before it asks and when it ends. Killed in between, it has more lines than its summary counts, and
    only the sum of both kinds of questions still holds.
    """
    try:
        saved = json.loads((folder / SUMMARY).read_bytes())
        return int(saved["n"]) + int(saved["pending"]), float(saved["effort"]["wall_seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0, 0.0


def _failures(failed: Sequence[Result]) -> Failures:
    classes: dict[str, list[str]] = {}
    for result in failed:
        classes.setdefault(result.error.partition(":")[0], []).append(result.id)
    return Failures(
        program=tuple(result.id for result in failed if result.failed_in != "metric"),
        metric=tuple(result.id for result in failed if result.failed_in == "metric"),
        by_class={name: tuple(ids) for name, ids in classes.items()},
    )


def _interval(values: Iterable[float | None]) -> Interval | None:
    known = [float(value or 0) for value in values]
    return bootstrap_ci(known) if known else None


def _share(values: Sequence[bool | None]) -> Share:
    known = [value for value in values if value is not None]
    return Share(len(known), sum(known) / len(known) if known else None)


def _groups(results: Sequence[Result], kind: Callable[[Result], object]) -> dict[str, Group]:
    groups: dict[str, list[bool]] = {}
    for result in results:
        groups.setdefault(str(kind(result) or NOT_STATED), []).append(bool(result.em))
    return {name: Group(len(right), sum(right) / len(right)) for name, right in sorted(groups.items())}


def _draft_is_right(result: Result) -> bool:
    return exact_match(result.draft, result.gold.golds, result.gold.answer_type)


def _effort(results: Sequence[Result], seconds: Sequence[float], wall: float) -> Effort:
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


def table(summary: Summary) -> str:
    """The main numbers in lines of ``name  value``, each with what it is out of."""
    s, effort = summary, summary.effort
    rows = [
        ("questions", f"{s.n}: {s.answered} answered, {s.failed} failed" + (f", {s.pending} to ask" * bool(s.pending))),
        ("exact match", f"{s.em} ({s.correct} of {s.n})"),
        ("  strict", str(s.em_strict)),
        ("  official", str(s.em_official)),
        ("token F1", str(s.f1)),
        ("exact match of drafts", f"{s.em_of_drafts or 0:.3f}"),
        ("validated", f"{_shown(s.validated)}, {s.null_answers} without an answer"),
        ("gold in the evidence", _shown(s.gold_in_evidence)),
        *((f"recall@{k}", _shown(share)) for k, share in s.recall.items()),
        *((f"{hops} hops", f"{group.em:.3f} of {group.n}") for hops, group in s.by_hops.items()),
        ("LM calls", f"{effort.lm_calls:,}"),
        ("prompt tokens", f"{effort.prompt_tokens:,}, {effort.cached_share:.0%} from the prefix cache"),
        ("seconds a question", f"{effort.seconds_mean:.1f} (median {effort.seconds_median:.1f})"),
        ("seconds in all", f"{effort.wall_seconds:.0f}"),
        *((f"failed: {name}", ", ".join(ids)) for name, ids in s.failures.by_class.items()),
    ]
    return "\n".join(f"{name:22} {value}" for name, value in rows)


def _shown(share: Share) -> str:
    return "none asked" if share.share is None else f"{share.share:.3f} of {share.n}"
