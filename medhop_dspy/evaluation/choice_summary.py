"""What a run of multiple-choice questions comes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medhop_dspy.evaluation.choices import MMLU_MED
from medhop_dspy.evaluation.outcomes import ChoiceResult
from medhop_dspy.evaluation.published import MMLU
from medhop_dspy.evaluation.statistics import Interval, bootstrap_ci
from medhop_dspy.evaluation.tally import NOT_STATED, Tally, interval, tallied


@dataclass(frozen=True, slots=True)
class SourceAccuracy:
    """The ``n`` questions of one set or subject, and the share of them that is right, with its 95 % interval."""

    n: int
    accuracy: Interval


@dataclass(frozen=True, slots=True)
class ChoiceSummary(Tally):
    """A run of multiple-choice questions in numbers; it has no exact match and no recall, which need open answers.

    Attributes:
        accuracy: Share of questions whose right option was chosen; None for a run without a line.
        no_choice: Answered questions whose answer names no option; they count as wrong.
        by_source: By the set or, in MMLU, the subject, in alphabetical order.
    """

    accuracy: Interval | None
    no_choice: int
    by_source: dict[str, SourceAccuracy]

    @property
    def share_right(self) -> Interval | None:
        """Accuracy."""
        return self.accuracy

    @property
    def set_name(self) -> str:
        """Name of the one set that all questions are of, its subjects together in MMLU-Med; empty for several sets."""
        names = {MMLU if source in MMLU_MED else source for source in self.by_source}
        return names.pop() if len(names) == 1 else ""

    def measures(self) -> list[tuple[str, str]]:
        """See :meth:`Tally.measures`."""
        return [
            ("accuracy", f"{self.accuracy} ({self.correct} of {self.n})"),
            ("no choice", f"{self.no_choice} of {self.answered}"),
        ]

    def groups(self) -> list[tuple[str, str]]:
        """See :meth:`Tally.groups`."""
        return [(f"  {name}", f"{source.accuracy} of {source.n}") for name, source in self.by_source.items()]


def summarise_choices(
    results: Sequence[ChoiceResult], run: Mapping[str, Any], *, pending: int = 0, wall_seconds: float = 0.0
) -> ChoiceSummary:
    """The summary of ``results``, each question once; see :func:`medhop_dspy.evaluation.summary.summarise`."""
    sources: dict[str, list[bool]] = {}
    for result in results:
        sources.setdefault(result.gold.source or NOT_STATED, []).append(bool(result.right))
    return ChoiceSummary(
        **tallied(results, run, pending, wall_seconds),
        accuracy=interval(result.right for result in results),
        no_choice=sum(result.answered and result.choice is None for result in results),
        by_source={name: SourceAccuracy(len(right), bootstrap_ci(right)) for name, right in sorted(sources.items())},
    )
