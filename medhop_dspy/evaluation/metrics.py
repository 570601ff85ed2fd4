"""How right an answer is, in the measures that papers of the field report.

``strict_match`` and ``exact_match`` are those of :mod:`medhop_dspy.answers`: the paper's local exact match, and the one
with synonyms and typed canonical forms.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from medhop_dspy.answers import AnswerType, exact_match, grounded, normalise, strict_match

if TYPE_CHECKING:
    from medhop_dspy.evaluation.records import GoldQuestion

__all__ = ["answer_metric", "exact_match", "measures", "official_match", "recall_at", "strict_match", "token_f1"]

_PUNCTUATION: Final = re.compile(f"[{re.escape(string.punctuation)}]")


def official_match(pred: str | None, golds: Sequence[str]) -> bool:
    """Exact match as MedHopQA's organisers describe it: lower case, punctuation removed, any synonym counts.

    They do not say whether a hyphen leaves a space; here both readings count.

    >>> official_match("Alpha-synuclein.", ["α-synuclein", "alpha synuclein"])
    True
    >>> official_match("chr15", ["15", "chromosome 15"])
    False
    """
    if not pred or not pred.strip():
        return False
    return bool(_official_forms(pred) & set().union(*map(_official_forms, golds)))


def _official_forms(text: str) -> set[str]:
    lower = text.casefold()
    forms = (_PUNCTUATION.sub(to, lower) for to in ("", " "))
    return {" ".join(form.split()) for form in forms} - {""}


def token_f1(pred: str | None, golds: Sequence[str]) -> float:
    """Best F1, 0 to 1, of the words of the answer against any gold answer, as in SQuAD but with our normal form.

    >>> token_f1("the Hunter syndrome", ["Hunter syndrome"])
    1.0
    >>> token_f1("Hunter disease", ["Hunter syndrome"])
    0.5
    >>> token_f1(None, ["Hunter syndrome"])
    0.0
    """
    words = normalise(pred or "").split()
    return max((_f1(words, normalise(gold).split()) for gold in golds), default=0.0)


def _f1(pred: list[str], gold: list[str]) -> float:
    shared = sum((Counter(pred) & Counter(gold)).values())
    return 2 * shared / (len(pred) + len(gold)) if shared else 0.0


def recall_at(k: int, passages: Sequence[str], golds: Sequence[str], answer_type: AnswerType | None = None) -> bool:
    """Whether a gold answer or synonym occurs in the first ``k`` passages, best first.

    A chromosome, number or duration must occur as such: an age of 15 years is no chromosome 15.

    >>> recall_at(1, ["FBN1 lies on chromosome 15.", "It is large."], ["15"], AnswerType.CHROMOSOME)
    True
    >>> recall_at(5, ["It begins at 15 years."], ["15"], AnswerType.CHROMOSOME)
    False
    """
    return any(grounded(gold, passages[:k], answer_type) is not None for gold in golds)


def measures(answer: str | None, gold: GoldQuestion) -> dict[str, Any]:
    """All that answer and gold alone decide: ``em``, ``em_strict`` and ``em_official``, true or false, and ``f1``.

    Raises:
        InputError: a gold answer is empty.
    """
    return {
        "em": exact_match(answer, gold.golds, gold.answer_type),
        "em_strict": strict_match(answer, gold.golds),
        "em_official": official_match(answer, gold.golds),
        "f1": token_f1(answer, gold.golds),
    }


def answer_metric(example: Any, prediction: Any, trace: object = None) -> bool:  # noqa: ANN401  (DSPy's records)
    """Exact match as a metric of ``dspy.Evaluate`` and DSPy's optimisers, which want a plain right or wrong.

    ``example`` has ``answer`` and, where known, ``synonyms`` and ``answer_type``; ``prediction`` has ``answer``.
    """
    kind = example.get("answer_type")
    golds = [example["answer"], *example.get("synonyms", ())]
    return exact_match(prediction.answer, golds, AnswerType(kind) if kind else None)
