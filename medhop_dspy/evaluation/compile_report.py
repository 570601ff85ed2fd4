"""What compiling has brought, in numbers and in words that claim no more than they carry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from medhop_dspy.evaluation.statistics import Comparison, Interval
    from medhop_dspy.trace import Usage

SIGNIFICANT: Final = 0.05
FEW: Final = 200  # questions below which a report says what one of them weighs


@dataclass(frozen=True, slots=True)
class Report:
    """The uncompiled program against what the optimiser makes of it, on questions it did not see.

    Attributes:
        optimiser: Its name.
        before: Exact match of the uncompiled program on all questions.
        after: The same for each question's own candidate, compiled without it.
        comparison: The two, paired by question.
        questions: How many.
        failed: Answers, of both together, that failed and count as wrong.
        usage: Tokens of this call, those of the optimiser included.
    """

    optimiser: str
    before: Interval
    after: Interval
    comparison: Comparison
    questions: int
    failed: int
    usage: Usage

    @property
    def better(self) -> bool:
        """Whether the gain is outside what chance does: its interval above 0, and p below 0.05."""
        return self.comparison.difference.low > 0 and self.comparison.p < SIGNIFICANT

    @property
    def winner(self) -> Literal["compiled", "uncompiled"]:
        """The one that scored better; the uncompiled program of equals."""
        return "compiled" if self.after.mean > self.before.mean else "uncompiled"


def table(report: Report) -> str:
    """The report as text, without a claim that its numbers do not carry."""
    change = report.comparison
    lines = [
        f"{report.optimiser}, cross-validated on {report.questions} questions, exact match [95 % interval]",
        f"  uncompiled  {report.before}",
        f"  compiled    {report.after}",
        f"  change      {change.difference.mean:+.3f} [{change.difference.low:+.3f}, {change.difference.high:+.3f}], "
        f"{change.gained} gained, {change.lost} lost, McNemar p {_shown(change.p)}",
        f"  failed      {report.failed} answers, counted as wrong",
        f"  tokens      {report.usage.prompt_tokens:,} of prompts, {report.usage.cached_share:.0%} of them cached, "
        f"{report.usage.completion_tokens:,} of replies",
        _verdict(report),
    ]
    return "\n".join(filter(None, [*lines, few(report.questions)]))


def _shown(p: float) -> str:
    return f"= {p:.3f}" if p >= 0.001 else "< 0.001"


def _verdict(report: Report) -> str:
    if report.better:
        return "The gain is larger than chance explains."
    if report.comparison.difference.high < 0 and report.comparison.p < SIGNIFICANT:
        return "The loss is larger than chance explains."
    return "No gain is shown: the change is within what chance does."


def few(questions: int) -> str:
    """What one question weighs; empty where there are 200 or more."""
    if questions >= FEW:
        return ""
    return f"{questions} questions are few: each weighs {100 / questions:.1f} points."
