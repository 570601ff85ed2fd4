"""What a run of open questions comes to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medhop_dspy.evaluation.metrics import exact_match
from medhop_dspy.evaluation.outcomes import Result
from medhop_dspy.evaluation.scoring import RECALL_AT
from medhop_dspy.evaluation.statistics import Interval
from medhop_dspy.evaluation.tally import NOT_STATED, Tally, interval, tallied


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

    def __str__(self) -> str:
        return "none asked" if self.share is None else f"{self.share:.3f} of {self.n}"


@dataclass(frozen=True, slots=True)
class Summary(Tally):
    """A run of open questions in numbers; right is what lenient exact match says.

    Attributes:
        em: Lenient exact match; like the three after it with a 95 % interval, None for a run without a line.
        em_strict: Exact match of the trimmed string.
        em_official: Exact match as MedHopQA's organisers describe it.
        f1: Token F1.
        em_of_drafts: Lenient exact match of the last drafts, whether or not they passed the checks.
        validated: Answered questions whose answer passed every check.
        null_answers: Answered questions without an answer.
        recall: By k, see :class:`~medhop_dspy.evaluation.outcomes.Result`.
        gold_in_evidence: Likewise.
        article_in_evidence: Likewise.
        by_answer_type: By the gold answer's type.
        by_strategy: By the strategy that the question set states.
        by_hops: By the number of hops that the question set states.
    """

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

    @property
    def share_right(self) -> Interval | None:
        """Lenient exact match."""
        return self.em

    def measures(self) -> list[tuple[str, str]]:
        """See :meth:`Tally.measures`."""
        return [
            ("exact match", f"{self.em} ({self.correct} of {self.n})"),
            ("  strict", str(self.em_strict)),
            ("  official", str(self.em_official)),
            ("token F1", str(self.f1)),
            ("exact match of drafts", f"{self.em_of_drafts or 0:.3f}"),
            ("validated", f"{self.validated}, {self.null_answers} without an answer"),
            ("gold in the evidence", str(self.gold_in_evidence)),
            *((f"recall@{k}, one search", str(share)) for k, share in self.recall.items()),
        ]

    def groups(self) -> list[tuple[str, str]]:
        """See :meth:`Tally.groups`."""
        return [(f"{hops} hops", f"{group.em:.3f} of {group.n}") for hops, group in self.by_hops.items()]


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
    return Summary(
        **tallied(results, run, pending, wall_seconds),
        em=interval(result.em for result in results),
        em_strict=interval(result.em_strict for result in results),
        em_official=interval(result.em_official for result in results),
        f1=interval(result.f1 for result in results),
        em_of_drafts=sum(map(_draft_is_right, answered)) / len(results) if results else None,
        validated=_share([result.validated for result in answered]),
        null_answers=sum(result.answer is None for result in answered),
        recall={k: _share([result.recall.get(k) for result in results if result.recall]) for k in RECALL_AT},
        gold_in_evidence=_share([result.gold_in_evidence for result in results]),
        article_in_evidence=_share([result.article_in_evidence for result in results]),
        by_answer_type=_groups(results, lambda result: result.gold.answer_type),
        by_strategy=_groups(results, lambda result: result.gold.strategy),
        by_hops=_groups(results, lambda result: result.gold.hops),
    )


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
