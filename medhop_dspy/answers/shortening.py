"""From what a model wrote to the answer string in it."""

from __future__ import annotations

import re
from typing import Final

from medhop_dspy.answers import canonical
from medhop_dspy.answers.quantities import find_quantities, parse_quantity
from medhop_dspy.answers.textnorm import normalise, tidy
from medhop_dspy.answers.types import AnswerType

_BULLET = re.compile(r"^(?:[-*•>]|#+)\s+(?=\S)")
_LABEL = re.compile(
    r"(?:(?:the )?(?:(?:final|short|correct|best) )?answer(?: to (?:the|this) question)?(?: is|:| is:)"
    r"|(?:a|answer|response|output|result|gene|protein|enzyme|disease|chromosome|entity|so|therefore|thus|hence)\s*:"
    r"|(?:so|therefore|thus|hence),|it(?: is|'s)(?: called| known as)?|this is|that is)\s+",
    re.IGNORECASE,
)
# 'The gene that is mutated in X is FBN1': the last 'is' counts.
_SENTENCE = re.compile(
    r"(?:the|this|that|these|those|its?)\s+(?:\S+\s+){1,40}(?:is|are|was|were|would be)\s+"
    r"(?:(?:called|known as|named|probably|likely|most likely|caused by|due to)\s+)?(?P<answer>\S+(?:\s+\S+){0,5})",
    re.IGNORECASE,
)
# What follows a copula without being an answer: 'is located on', 'is not', 'is a'.
_NO_ANSWER = re.compile(
    r"(?:\w+ed|not|no|an?|known|found|due|in|on|at|by|for|from|also|one|part|because)\b", re.IGNORECASE
)
_CLAUSE = re.compile(
    r",?\s+(?:because|since|which|who|whose|where|as it|as they|also known as|aka)\s.*|\s[-\u2013\u2014]\s.*"
)
_EXPLANATION = re.compile(r"\s+[(\[](?P<inside>[^()\[\]]*)[)\]]$")
_ABBREVIATION = re.compile(
    r"(?=.*[A-Z].*[A-Z])[A-Z][\w-]{1,9}(?: (?:[IVX]+|\d+)[A-Za-z]?)?"
    r"|(?:also|a\.?k\.?a|i\.e|e\.g|or|formerly|previously)\b.*"
)

_NAMES: Final = frozenset(AnswerType) - {
    AnswerType.OTHER,
    AnswerType.YES_NO,
    AnswerType.NUMBER,
    AnswerType.DURATION,
    AnswerType.CHROMOSOME,
    AnswerType.LOCATION,
}
_ROUNDS: Final = 8


def shorten(answer: str, answer_type: AnswerType) -> str:
    """Trim a reply to its answer string: no label, sentence around it, quotes, explanation or full stop.

    Nothing inside the answer changes: ``1.5 hours``, ``HLA-B*57:01`` and ``t(9;22)`` stay. A chromosome becomes
    ``Chromosome 15``, yes or no ``Yes`` or ``No``, a specialist its field where a field is asked. Shortening
    twice gives the same as once. Only a reply without any letter or digit gives the empty string.
    """
    lines = [tidy(line) for line in answer.splitlines()]
    text = next((line for line in lines if normalise(line)), "")
    for _ in range(_ROUNDS):
        shorter = _once(text, answer_type)
        if shorter == text:
            break
        text = shorter
    return text


def _once(text: str, answer_type: AnswerType) -> str:
    text = canonical.trim(_BULLET.sub("", text))
    if (label := _LABEL.match(text)) and canonical.text(text[label.end() :]):
        return text[label.end() :]
    if answer_type is AnswerType.YES_NO:
        verdict = canonical.yes_no(text)
        return verdict.capitalize() if verdict else text
    if answer_type is AnswerType.CHROMOSOME:
        return _chromosome(text)
    if answer_type in {AnswerType.NUMBER, AnswerType.DURATION}:
        return _number(text)
    return _name(text, answer_type) if answer_type in _NAMES else text


def _chromosome(text: str) -> str:
    name = canonical.chromosome(text)
    return f"Chromosome {name}" if name and "|" not in name else text


def _number(text: str) -> str:
    """Leave out what a number counts; a sentence with a single number is cut down to it and its unit."""
    if (quantity := parse_quantity(text)) and (len(text.split()) <= 4 or text[:1].isdigit()):
        return quantity.text if quantity.counted else text
    found = list(find_quantities(text))
    return found[0].text if len(found) == 1 and len(text.split()) > 4 else text


def _name(text: str, answer_type: AnswerType) -> str:
    text = _unless_empty(_CLAUSE.sub("", text), text)
    if (inside := _EXPLANATION.search(text)) and (
        answer_type in {AnswerType.GENE, AnswerType.GENE_MUTATION}
        or len(inside["inside"].split()) > 2
        or _ABBREVIATION.fullmatch(inside["inside"])
    ):
        text = _unless_empty(text[: inside.start()], text)
    if (sentence := _SENTENCE.fullmatch(text)) and not _NO_ANSWER.match(sentence["answer"]):
        text = _unless_empty(sentence["answer"], text)
    if answer_type in {AnswerType.GENE, AnswerType.GENE_MUTATION}:
        return canonical.gene(text) or text
    if answer_type is AnswerType.FIELD_OF_BIOLOGY:
        return canonical.field(text) or text
    return canonical.text(text) or text


def _unless_empty(shorter: str, text: str) -> str:
    return shorter if normalise(shorter) else text
