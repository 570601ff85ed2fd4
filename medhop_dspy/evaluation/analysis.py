"""What a run with gold answers got wrong, and how, and which strategies it took. Everything is decided by Python."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from medhop_dspy.answers import AnswerType, Strategy, check_format, exact_match, is_placeholder, route_overrides
from medhop_dspy.answers.textnorm import compact, normalise, word_set
from medhop_dspy.errors import InputError
from medhop_dspy.evaluation.exports import csv_bytes, defused
from medhop_dspy.evaluation.statistics import Interval, bootstrap_ci

if TYPE_CHECKING:
    from medhop_dspy.evaluation.outcomes import Result

UNTYPED: Final = "not stated"
MAX_HOPS: Final = 3  # of the rules, as in the paper
LONGER_F1: Final = 0.5  # at least, of an answer that ends in the whole gold answer
SHORTER_F1: Final = 0.8  # at least, of an answer that is the end of the gold answer

# Words that say what kind of thing a name is: with and without them it is the same thing.
_KINDS: Final = word_set("the disease disorder syndrome condition gene protein enzyme chromosome human")
# Words before a name that make another thing of it, or add a second one.
_CHANGES: Final = word_set(
    "no not non without anti pro pre pseudo hypo hyper and or nor versus vs than less more fewer under over < > ≤ ≥ "
    "of to by from with in for"
)
_BRACKETED: Final = re.compile(r"[(\[]([^()\[\]]*)[)\]]")


class ErrorClass(StrEnum):
    """What became of one question with a gold answer: the first of these that applies.

    Members:
        FAILED: The question ended in an error, or its answer cannot be judged.
        RIGHT: Lenient exact match with a gold answer or synonym (:func:`medhop_dspy.answers.exact_match`).
        NO_ANSWER: Null, empty, or a placeholder such as "unknown".
        SURFACE_FORM: No exact match, but :func:`same_entity` finds the gold answer or a synonym in other words.
        WRONG_TYPE: The form says that it is not of the question's type (``check_format`` says no): a disease where a
            chromosome is asked for.
        WRONG_ENTITY: The rest: of the right type, as far as Python can tell, and something else.
    """

    RIGHT = "right"
    SURFACE_FORM = "surface form"
    WRONG_ENTITY = "wrong entity"
    WRONG_TYPE = "wrong type"
    NO_ANSWER = "no answer"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Judged:
    """One question of a run and its class."""

    result: Result
    error_class: ErrorClass

    @property
    def answer_type(self) -> str:
        """The type that the gold answer is said to be of, or ``not stated``."""
        return self.result.gold.answer_type or UNTYPED


@dataclass(frozen=True, slots=True)
class StrategyShare:
    """Questions of a run that took one strategy.

    Attributes:
        strategy: The run's; what the rules say of the question where the run does not tell.
        questions: How many.
        by_rules: For how many of them the rules decided.
        as_gold: For how many the gold strategy is the same; None where no gold strategy is known.
        em: Lenient exact match over the questions that were answered; None where none was.
    """

    strategy: Strategy
    questions: int
    by_rules: int
    as_gold: int | None
    em: Interval | None


def judge(results: Iterable[Result]) -> list[Judged]:
    """Each question with its class, in order.

    Raises:
        InputError: there are no results, or one has no gold answer.
    """
    judged = [Judged(result, _class_of(result)) for result in results]
    if not judged:
        raise InputError("the run holds no results", hint="Run the questions first.")
    return judged


def _class_of(result: Result) -> ErrorClass:
    if not result.scored:
        return ErrorClass.FAILED
    return classify(result.answer, result.gold.golds, result.gold.answer_type)


def classify(answer: str | None, golds: Sequence[str], answer_type: AnswerType | None = None) -> ErrorClass:
    """The class of an answer; see :class:`ErrorClass`.

    Args:
        answer: None where it was withheld.
        golds: Every accepted answer.
        answer_type: None leaves the match to the form of the gold answers; then no answer is of a wrong type.

    >>> golds = ["FBN1", "fibrillin gene"]
    >>> [classify(answer, golds, AnswerType.GENE).value for answer in ("fbn1", "fibrillin-1 (FBN1)", "FBN2", None)]
    ['right', 'surface form', 'wrong entity', 'no answer']
    >>> classify("Marfan syndrome", golds, AnswerType.GENE).value
    'wrong type'

    Raises:
        InputError: there is no gold answer, or one is empty.
    """
    if exact_match(answer, golds, answer_type):
        return ErrorClass.RIGHT
    if answer is None or is_placeholder(answer):
        return ErrorClass.NO_ANSWER
    if any(same_entity(answer, gold, answer_type) for gold in golds):
        return ErrorClass.SURFACE_FORM
    if check_format(answer, answer_type or AnswerType.OTHER).ok is False:
        return ErrorClass.WRONG_TYPE
    return ErrorClass.WRONG_ENTITY


def same_entity(answer: str, gold: str, answer_type: AnswerType | None = None) -> bool:
    """Whether an answer that is no exact match names the same thing, by its words. Never for yes and no.

    That is so if one of these holds:

    * what stands in brackets in one of them, or what is left without them, is an exact match: *fibrillin-1 (FBN1)*;
    * without words such as *disease*, *gene* and *the*, both are spelled alike, spaces and plurals aside:
      *Townes-Brocks disease*, *TownesBrocks syndrome*;
    * then the words of one are the last words of the other, its head, and what is before them holds no number, no
      *and*, *not*, *anti*, *due to* and the like. An answer with more words than gold needs a token F1 of at least
      0.5 (*primary hyperparathyroidism* for *hyperparathyroidism*), one with fewer at least 0.8, since it may say
      less (*kidney disease* is not *polycystic kidney disease*).
    """
    if answer_type is AnswerType.YES_NO:
        return False
    if any(exact_match(part, gold, answer_type) for part in _parts(answer)):
        return True
    if any(exact_match(answer, part, answer_type) for part in _parts(gold)):
        return True
    names = _names(answer), _names(gold)
    if compact(names[0]) == compact(names[1]):
        return bool(names[0])
    given, wanted = (_singular(words) for words in names)
    shorter, longer = sorted((given, wanted), key=len)
    before = longer[: len(longer) - len(shorter)]
    if longer[len(before) :] != shorter or any(word[0].isdigit() or word in _CHANGES for word in before):
        return False
    # Token F1 of these words: all of the shorter text are in the longer one.
    f1 = 2 * len(shorter) / (len(shorter) + len(longer))
    return f1 >= (LONGER_F1 if longer is given else SHORTER_F1)


def _parts(text: str) -> list[str]:
    """What is in brackets and what is not; nothing for a text without brackets."""
    inside = _BRACKETED.findall(text)
    return [part for part in (*inside, _BRACKETED.sub(" ", text)) if normalise(part)] if inside else []


def _names(text: str) -> list[str]:
    """Words for comparison, without those of :data:`_KINDS` unless there are no others."""
    words = normalise(text).split()
    return [word for word in words if word.removesuffix("s") not in _KINDS] or words


def _singular(words: Sequence[str]) -> list[str]:
    return [word.removesuffix("s") if len(word) > 3 else word for word in words]


def count_by_type(judged: Iterable[Judged]) -> dict[str, Counter[ErrorClass]]:
    """How many questions of each class, by answer type in alphabetical order."""
    counts: dict[str, Counter[ErrorClass]] = {}
    for each in sorted(judged, key=lambda j: j.answer_type):
        counts.setdefault(each.answer_type, Counter())[each.error_class] += 1
    return counts


def errors_csv(judged: Iterable[Judged]) -> bytes:
    """Every question that is not right, for people to read in a spreadsheet; what would run there is defused."""
    header = ("QIDX", "Question", "Type", "Class", "Answer", "Draft", "Gold", "Error")
    rows = (
        (
            result.id,
            result.question,
            each.answer_type,
            each.error_class,
            result.answer or "",
            result.draft,
            " | ".join(result.gold.golds),
            result.error,
        )
        for each in judged
        if each.error_class is not ErrorClass.RIGHT
        for result in (each.result,)
    )
    return csv_bytes(header, ([defused(cell) for cell in row] for row in rows))


def strategy_by_rules(question: str) -> Strategy:
    """What the rules say: multihop where they find hops, else what the wording decides, else direct."""
    from medhop_dspy.pipelines.decompose import decompose

    if decompose(question, MAX_HOPS).hops:
        return Strategy.MULTIHOP
    return route_overrides(question).strategy or Strategy.DIRECT


def strategy_shares(results: Sequence[Result]) -> list[StrategyShare]:
    """The strategies that occur, in the order of :class:`medhop_dspy.answers.Strategy`.

    Raises:
        InputError: there are no results, or a strategy is none of ours.
    """
    if not results:
        raise InputError("the run holds no results", hint="Run the questions first.")
    groups: dict[Strategy, list[Result]] = {}
    for result in results:
        strategy = strategy_of(result.id, result.question, result.strategy)
        groups.setdefault(strategy, []).append(result)
    return [_share(strategy, groups[strategy]) for strategy in Strategy if strategy in groups]


def strategy_of(qidx: str, question: str, told: str) -> Strategy:
    """The strategy that a run tells of a question, or, where ``told`` is empty, what the rules say.

    Raises:
        InputError: it is none of ours.
    """
    if not told:
        return strategy_by_rules(question)
    try:
        return Strategy(told)
    except ValueError:
        raise InputError(
            f"QIDX {qidx} has the strategy {told!r}, not one of {', '.join(Strategy)}",
            hint="Ask the question again.",
        ) from None


def _share(strategy: Strategy, results: Sequence[Result]) -> StrategyShare:
    golds = [result.gold.strategy for result in results if result.gold.strategy]
    matches = [result.em for result in results if result.em is not None]
    return StrategyShare(
        strategy,
        questions=len(results),
        by_rules=sum(not result.strategy for result in results),
        as_gold=sum(gold is strategy for gold in golds) if golds else None,
        em=bootstrap_ci(matches) if matches else None,
    )
