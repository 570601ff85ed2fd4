"""Parts of a question set that do not share a question."""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from medhop_dspy.answers import normalise
from medhop_dspy.errors import InputError

if TYPE_CHECKING:
    from medhop_dspy.evaluation.records import GoldQuestion

_NAMED: Final = 5  # shared questions that a message names
_log = logging.getLogger(__name__)


def make_folds(questions: Sequence[GoldQuestion], count: int, seed: int) -> list[list[GoldQuestion]]:
    """``count`` parts of sizes that differ by at most one, each question in exactly one.

    Questions of one answer type and number of hops are spread over as many parts as they can be. The same questions
    in the same order, with the same seed, give the same parts.

    Raises:
        InputError: fewer than two parts, or fewer questions than parts.
    """
    if count < 2:
        raise InputError(f"cross-validation needs 2 folds or more, got {count}")
    if len(questions) < count:
        raise InputError(
            f"{len(questions)} questions cannot fill {count} folds", hint="Give more questions, or fewer --folds."
        )
    dealt = _by_kind(questions, seed)
    return [dealt[start::count] for start in range(count)]


def split(questions: Sequence[GoldQuestion], share: float, seed: int) -> tuple[list[GoldQuestion], list[GoldQuestion]]:
    """A training and a validation part with no question in common; ``share`` (0 to 1) goes to training.

    A single question goes to training, with a warning: nothing is left to validate on.
    """
    if len(questions) < 2:
        _log.warning("%d question to train on: none is left for validation", len(questions))
        return list(questions), []
    dealt = _by_kind(questions, seed)
    held_out = min(max(round(len(dealt) * (1 - share)), 1), len(dealt) - 1)
    step = len(dealt) / held_out
    chosen = {int(number * step) for number in range(held_out)}  # evenly over the kinds
    return (
        [question for place, question in enumerate(dealt) if place not in chosen],
        [question for place, question in enumerate(dealt) if place in chosen],
    )


def check_apart(train: Sequence[GoldQuestion], test: Sequence[GoldQuestion]) -> None:
    """Refuse questions to train on that are also to be tested on.

    Raises:
        InputError: a QIDX or a wording, case and punctuation aside, stands in both.
    """
    ids = {question.id for question in test}
    wordings = {normalise(question.text) for question in test}
    shared = [question.id for question in train if question.id in ids or normalise(question.text) in wordings]
    if shared:
        more = f" and {len(shared) - _NAMED} more" if len(shared) > _NAMED else ""
        raise InputError(
            f"{len(shared)} questions to train on are test questions: QIDX {', '.join(shared[:_NAMED])}{more}",
            hint="Take them out of one of the two files; a test question that was trained on measures nothing.",
        )


def _by_kind(questions: Sequence[GoldQuestion], seed: int) -> list[GoldQuestion]:
    """The questions shuffled, then those of one kind next to one another."""
    shuffled = list(questions)
    random.Random(seed).shuffle(shuffled)
    return sorted(shuffled, key=lambda question: (str(question.answer_type or ""), question.hops))
