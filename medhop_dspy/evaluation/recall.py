"""What retrieval alone finds: the gold answer and its article, from the question as it is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from medhop_dspy.answers import AnswerType
from medhop_dspy.evaluation.metrics import recall_at
from medhop_dspy.pipelines.evidence import line

if TYPE_CHECKING:
    from medhop_dspy.evaluation.records import GoldQuestion
    from medhop_dspy.graph.retriever import GraphRetriever
    from medhop_dspy.retrieval.retriever import Retriever
    from medhop_dspy.settings import Settings
    from medhop_dspy.trace import Passage


@dataclass(frozen=True, slots=True)
class Found:
    """What the first ``k`` passages for one question hold.

    Attributes:
        question: The question, whose text was the only query.
        gold: Whether the gold answer or a synonym occurs in a passage; numbers, chromosomes and the like as such, so
            that the age of 15 years is no chromosome 15. None for yes and no, which no passage need hold.
        article: Whether a passage of the answer's article, the last supporting title, is among them; None if the
            question names no article.
    """

    question: GoldQuestion
    gold: bool | None
    article: bool | None


def ranked(retriever: Retriever | GraphRetriever, query: str, k: int) -> list[Passage]:
    """The first ``k`` passages at the ranks of their own scores.

    Neighbours, which the prompt shows beside the best passages, would push the last ones out of the first ``k``.
    """
    plain = getattr(retriever, "without_neighbours", lambda: retriever)()
    found: list[Passage] = plain.search([query], k)
    return found


def reach(settings: Settings) -> int:
    """How many passages one query string can bring at most; recall at a higher k would be recall at this one."""
    return min(settings.candidates, settings.pool)


def find_golds(
    retriever: Retriever | GraphRetriever,
    questions: Sequence[GoldQuestion],
    k: int = 20,
    progress: Callable[[int], None] = lambda done: None,
) -> list[Found]:
    """Search with each question as it stands, one search a question, in order.

    Args:
        retriever: Opened index with its reranker.
        questions: What to search for.
        k: Passages a question, at least 1.
        progress: Called with the number of questions done.
    """
    found = []
    for number, question in enumerate(questions, start=1):
        passages = ranked(retriever, question.text, k)
        texts = [line(passage) for passage in passages]
        gold = None
        if question.answer_type is not AnswerType.YES_NO:
            gold = recall_at(k, texts, question.golds, question.answer_type)
        titles = {passage.title for passage in passages}
        article = question.supporting_titles[-1] in titles if question.supporting_titles else None
        found.append(Found(question, gold, article))
        progress(number)
    return found
