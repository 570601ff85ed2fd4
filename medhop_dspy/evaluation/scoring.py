"""One question of a run: ask the program, score what it says, and make a line of it, whatever happens."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from medhop_dspy.answers import AnswerType
from medhop_dspy.evaluation.metrics import measures, recall_at
from medhop_dspy.evaluation.outcomes import Q, gold_fields
from medhop_dspy.evaluation.recall import ranked, reach
from medhop_dspy.evaluation.records import ChoiceQuestion
from medhop_dspy.journal import encode
from medhop_dspy.pipelines.evidence import line
from medhop_dspy.retrieval.retriever import Retriever
from medhop_dspy.trace import Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    import dspy

    from medhop_dspy.evaluation.records import GoldQuestion, Question
    from medhop_dspy.pipelines.program import Program

RECALL_AT: Final = (1, 5, 10, 20)
_UNSCORED: Final = dict.fromkeys(
    ("em", "em_strict", "em_official", "f1", "gold_in_evidence", "article_in_evidence", "recall")
)


def ask(program: Program, question: Question, key: str) -> dict[str, Any]:
    """The line of one question; an error of the program makes it a failed one, one of a metric leaves it unscored.

    A multiple-choice question comes with its options, which the program keeps from its searches, and without its
    context, as retrieval is to find what answers it.

    Retrieval for recall@k comes after the program has answered, so that ``seconds`` does not hold it.
    """
    import dspy

    from medhop_dspy.lm.engine import record_calls
    from medhop_dspy.lm.failures import describe
    from medhop_dspy.pipelines.program import as_record

    line: dict[str, Any] = {
        "QIDX": question.id,
        "Question": question.text,
        "key": key,
        "status": "failed",
        "error": "",
        "failed_in": "program",
        "gold": gold_fields(question),
        "answer": None,
        **({} if isinstance(question, ChoiceQuestion) else _UNSCORED),
    }
    start = time.perf_counter()
    # DSPy keeps up to 10,000 prompts and replies in its trace and its history: nothing here reads them.
    with record_calls() as calls, dspy.context(trace=[], disable_history=True):
        try:
            answered = line | as_record(_called(program, question))
            encode(answered)  # a program of somebody else may return what JSON cannot hold
        except Exception as error:  # noqa: BLE001  (case by case, the record says what it was)
            usage = asdict(sum((call.usage for call in calls), Usage()))
            seconds = round(time.perf_counter() - start, 3)
            return line | {"error": describe(error), "lm_calls": len(calls), "usage": usage, "seconds": seconds}
    try:
        return answered | {"status": "answered", "failed_in": ""} | _scores(program, question, answered)
    except Exception as error:  # noqa: BLE001  (a wrong metric must not look like a wrong answer)
        return answered | {"status": "answered", "failed_in": "metric", "error": describe(error)}


def _called(program: Program, question: Question) -> dspy.Prediction:
    if isinstance(question, ChoiceQuestion):
        return program(question=question.text, options=dict(question.options))
    return program(question=question.text)


def _scores(program: Program, question: Question, answered: dict[str, Any]) -> dict[str, Any]:
    if isinstance(question, ChoiceQuestion):
        return {}  # whether it is right follows from answer and gold
    golds, kind = question.golds, question.answer_type
    evidence = [f"{passage['title']}: {passage['text']}" for passage in answered["evidence"]]
    titles = {passage["title"] for passage in answered["evidence"]}
    in_text = kind is not AnswerType.YES_NO
    return {
        **measures(answered["answer"], question),
        "gold_in_evidence": recall_at(len(evidence), evidence, golds, kind) if in_text else None,
        "article_in_evidence": question.supporting_titles[-1] in titles if question.supporting_titles else None,
        "recall": _recall(program, question) if in_text else None,
    }


def _recall(program: Program, question: GoldQuestion) -> dict[str, bool]:
    reached = [k for k in RECALL_AT if k <= reach(program.settings)]
    texts = [line(passage) for passage in ranked(program.retriever, question.text, max(RECALL_AT))]
    return {str(k): recall_at(k, texts, question.golds, question.answer_type) for k in reached}


def beside_their_kin(retriever: object, questions: Sequence[Q]) -> list[Q]:
    """The questions with those whose nearest passage is of the same document next to one another.

    They will share evidence, and a model server that has just read it need not read it again. One dense search for
    all together; groups come in the order of their first question. Another retriever than ours leaves the order.
    """
    dense = getattr(retriever, "dense", None)
    if not isinstance(dense, Retriever):
        return list(questions)
    nearest = dense.nearest([question.text for question in questions], 1)
    groups: dict[str, list[Q]] = {}
    for question, found in zip(questions, nearest, strict=True):
        groups.setdefault(found[0].doc_id if found else "", []).append(question)
    return [question for group in groups.values() for question in group]
