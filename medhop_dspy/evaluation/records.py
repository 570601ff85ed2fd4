"""Questions with gold answers, as everything that evaluates takes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from medhop_dspy.answers import AnswerType, Strategy

LETTERS: Final = "ABCDEFGHIJ"


@dataclass(frozen=True, slots=True)
class GoldQuestion:
    """An open question with a short gold answer.

    Attributes:
        id: QIDX, a string; leading zeros are kept.
        text: The question.
        answer: The gold answer, written as a grader would.
        synonyms: Other answers that count as equal.
        answer_type: What kind of thing the answer is; None where the set does not say.
        strategy: How evidence is best looked for; None where the set does not say.
        hops: Facts that are needed one after the other, from 1; 0 where the set does not say.
        supporting_titles: Titles of the articles with these facts, in hop order; the last one holds the answer.
        subject: The words of the question that lead to the first of these articles; may be empty.
        rare_disease: Whether the question is about a rare disease; None where the set does not say.
    """

    id: str
    text: str
    answer: str
    synonyms: tuple[str, ...] = ()
    answer_type: AnswerType | None = None
    strategy: Strategy | None = None
    hops: int = 0
    supporting_titles: tuple[str, ...] = ()
    subject: str = ""
    rare_disease: bool | None = None

    @property
    def golds(self) -> tuple[str, ...]:
        """Every accepted answer, the gold answer first."""
        return (self.answer, *self.synonyms)


@dataclass(frozen=True, slots=True)
class ChoiceQuestion:
    """A multiple-choice question.

    Attributes:
        id: Unique in its set.
        text: The question without its options.
        options: Texts by letter, from A, in the order of the source.
        answer: The letter of the right option; empty where the source keeps it back.
        context: Text that the source gives with the question, such as a PubMedQA abstract; may be empty.
        source: Name of the set or, in MMLU, of the subject.
    """

    id: str
    text: str
    options: dict[str, str]
    answer: str
    context: str = ""
    source: str = ""


Question = GoldQuestion | ChoiceQuestion
