"""What became of one question, open or multiple-choice: the record behind a line of a run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Final, Generic, Literal, Self, TypeVar

from medhop_dspy.answers import AnswerType, Strategy, normalise
from medhop_dspy.evaluation.metrics import measures
from medhop_dspy.evaluation.records import ChoiceQuestion, GoldQuestion, Question
from medhop_dspy.rows import scalar_text
from medhop_dspy.trace import Hop, Passage, Trace, Usage

Q = TypeVar("Q", bound=Question)


@dataclass(frozen=True, slots=True)
class Outcome(ABC, Generic[Q]):
    """What became of one question. A line has these fields and those of its kind, with QIDX and Question in front.

    Attributes:
        gold: The question with its gold answer, as far as the line keeps it; see :func:`gold_fields`.
        key: Hash of question, program, settings, index and model; see :func:`run_folder.question_key`.
        status: ``answered``, also without an answer that passed the checks, or ``failed``.
        error: ``Class: message`` of what failed, or empty.
        failed_in: ``program``; ``metric`` where an answer is there and a measure could not be taken; or empty.
        answer: As in :func:`medhop_dspy.pipelines.program.as_record`, like all fields down to ``trace``.
        trace: None where the program failed.
        extra: Fields of the line that this version does not know.
    """

    gold: Q
    key: str
    status: Literal["answered", "failed"]
    error: str = ""
    failed_in: Literal["", "program", "metric"] = ""
    answer: str | None = None
    draft: str = ""
    validated: bool = False
    strategy: str = ""
    answer_type: str = ""
    hops: tuple[Hop, ...] = ()
    evidence: tuple[Passage, ...] = ()
    quote: str = ""
    long_answer: str = ""
    lm_calls: int = 0
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    trace: Trace | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    measure: ClassVar[str]
    """What the share of right answers is called."""

    @property
    @abstractmethod
    def right(self) -> bool | None:
        """Whether the answer is right; None where that is not known, as the question or its measure failed."""

    @property
    @abstractmethod
    def same_question(self) -> tuple[object, ...]:
        """Equal for what two runs were asked alike, case and punctuation aside."""

    @classmethod
    @abstractmethod
    def from_line(cls, line: Mapping[str, Any]) -> Self:
        """The record of a line; fields that an older version did not write have their defaults.

        Raises:
            KeyError, TypeError, ValueError, AttributeError: the line is not one of a run.
        """

    @property
    def id(self) -> str:
        """QIDX."""
        return self.gold.id

    @property
    def question(self) -> str:
        """The question as it was asked, without options."""
        return self.gold.text

    @property
    def answered(self) -> bool:
        """Whether the question need not be asked again."""
        return self.status == "answered"

    @property
    def scored(self) -> bool:
        """Whether it is known if the answer is right."""
        return self.answered and self.right is not None


@dataclass(frozen=True, slots=True)
class Result(Outcome[GoldQuestion]):
    """What became of an open question; of ``gold``, ``subject`` is not kept.

    Attributes:
        em: Lenient exact match of the answer; None where the question failed, like all measures below. It and the
            next three are taken whenever a line is read, so that all runs are measured alike.
        em_strict: Exact match of the trimmed string.
        em_official: Exact match as MedHopQA's organisers describe it.
        f1: Token F1, 0 to 1.
        gold_in_evidence: Whether the program's evidence holds a gold answer; None for yes and no.
        article_in_evidence: Whether a passage of the last supporting title is in the evidence; None without titles.
        recall: By k, whether the first k passages for the question alone hold a gold answer; None for yes and no. A k
            that the retriever's settings cannot reach is left out.
    """

    em: bool | None = None
    em_strict: bool | None = None
    em_official: bool | None = None
    f1: float | None = None
    gold_in_evidence: bool | None = None
    article_in_evidence: bool | None = None
    recall: dict[int, bool] | None = None

    measure: ClassVar[str] = "EM"

    @property
    def right(self) -> bool | None:
        """Lenient exact match."""
        return self.em

    @property
    def same_question(self) -> tuple[object, ...]:
        """QIDX and the normalised question."""
        return (self.id, normalise(self.question))

    @classmethod
    def from_line(cls, line: Mapping[str, Any]) -> Self:
        """See :meth:`Outcome.from_line`; the four measures of the answer are taken now."""
        values, gold = _values(line, cls), line["gold"]
        question = GoldQuestion(
            id=_qidx(line),
            text=line["Question"],
            answer=gold["answer"],
            synonyms=tuple(gold.get("synonyms", ())),
            answer_type=AnswerType(gold["answer_type"]) if gold.get("answer_type") else None,
            strategy=Strategy(gold["strategy"]) if gold.get("strategy") else None,
            hops=gold.get("hops", 0),
            supporting_titles=tuple(gold.get("supporting_titles", ())),
            rare_disease=gold.get("rare_disease"),
        )
        if values["status"] == "answered":
            values |= _measured(values.get("answer"), question)
        return cls(gold=question, **values)


@dataclass(frozen=True, slots=True)
class ChoiceResult(Outcome[ChoiceQuestion]):
    """What became of a multiple-choice question; of ``gold``, ``context`` is not kept."""

    measure: ClassVar[str] = "accuracy"

    @property
    def choice(self) -> str | None:
        """The letter that was chosen; None where the answer names no option of the question."""
        return self.answer if self.answer in self.gold.options else None

    @property
    def right(self) -> bool | None:
        """Whether the right option was chosen; no choice is not right."""
        return self.choice == self.gold.answer if self.answered else None

    @property
    def same_question(self) -> tuple[object, ...]:
        """Id, normalised question, and options."""
        return (self.id, normalise(self.question), *self.gold.options.items())

    @classmethod
    def from_line(cls, line: Mapping[str, Any]) -> Self:
        """See :meth:`Outcome.from_line`."""
        values, gold = _values(line, cls), line["gold"]
        question = ChoiceQuestion(
            id=_qidx(line),
            text=line["Question"],
            options=dict(gold["options"]),
            answer=gold["answer"],
            source=gold.get("source", ""),
        )
        return cls(gold=question, **values)


AnyResult = Result | ChoiceResult


def is_choice(line: Mapping[str, Any]) -> bool:
    """Whether a line is of a multiple-choice question.

    Raises:
        AttributeError, TypeError: the line is not one of a run.
    """
    return "options" in (line.get("gold") or {})


def gold_fields(question: Question) -> dict[str, Any]:
    """The field ``gold`` of a line."""
    if isinstance(question, ChoiceQuestion):
        return {"options": dict(question.options), "answer": question.answer, "source": question.source}
    return {
        "answer": question.answer,
        "synonyms": list(question.synonyms),
        "answer_type": question.answer_type,
        "strategy": question.strategy,
        "hops": question.hops,
        "supporting_titles": list(question.supporting_titles),
        "rare_disease": question.rare_disease,
    }


def _qidx(line: Mapping[str, Any]) -> str:
    return scalar_text(line["QIDX"], "QIDX").strip()  # 7 and "7" are one id


def _values(line: Mapping[str, Any], kind: type[Outcome[Any]]) -> dict[str, Any]:
    """Fields of a record, ``gold`` apart, as its line has them."""
    if line["status"] not in {"answered", "failed"}:
        raise ValueError(f"status is {line['status']!r}, not answered or failed")
    names = {each.name for each in fields(kind)} - {"gold", "key", "extra"}
    values = {name: line[name] for name in names - _READERS.keys() if name in line}
    for name in names & _READERS.keys():
        if line.get(name) is not None:
            values[name] = _READERS[name](line[name])
    if line.get("failed_in") == "metric":
        values["status"] = "answered"
    known = names | {"gold", "key", "QIDX", "Question", "right"}  # older versions wrote "right" of multiple choice
    extra = {name: value for name, value in line.items() if name not in known}
    return values | {"key": str(line["key"]), "extra": extra}


def _measured(answer: str | None, gold: GoldQuestion) -> dict[str, Any]:
    try:
        return measures(answer, gold)
    except Exception as error:  # noqa: BLE001  (a wrong metric must not look like a wrong answer, nor hide the run)
        from medhop_dspy.lm.failures import describe

        unscored = dict.fromkeys(("em", "em_strict", "em_official", "f1"))
        return unscored | {"failed_in": "metric", "error": describe(error)}


def _passage(values: Mapping[str, Any]) -> Passage:
    return Passage(doc_id=values["id"].rpartition("#")[0], **values)


_READERS: Final[dict[str, Any]] = {
    "hops": lambda hops: tuple(Hop(**hop) for hop in hops),
    "evidence": lambda passages: tuple(map(_passage, passages)),
    "usage": lambda usage: Usage(**usage),
    "trace": Trace.from_dict,
    "recall": lambda recall: {int(k): hit for k, hit in recall.items()},
}
