"""Whether an answer occurs in the evidence, and the sentence that holds it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from medhop_dspy.answers import canonical
from medhop_dspy.answers.quantities import Quantity, find_quantities, parse_quantity, same_quantity
from medhop_dspy.answers.textnorm import compact, sentences, tokens, word_set
from medhop_dspy.answers.types import AnswerType

_FIELD_ENDING = re.compile(
    r"(?<=olog)(?:y|ists?|ical)$|(?<=iatr)(?:y|ists?|ics?|icians?)$|(?<=surg)(?:ery|eons?|ical)$|(?<=genetic)(?:s|ists?)$"
)
_CHR = re.compile(r"\bchr(?=[\dXY])", re.IGNORECASE)

_CONTENT_WORD = re.compile(r"[^\W\d_]{4,}")
_QUESTION_WORDS = word_set("what which that this with from does name type used")


@dataclass(frozen=True, slots=True)
class Quote:
    """Where an answer occurs.

    Attributes:
        passage: Position of the passage in the evidence, from 0.
        text: The sentence that holds the answer, as written; the passage where no single sentence does.
    """

    passage: int
    text: str


def grounded(answer: str, passages: Sequence[str], answer_type: AnswerType | None = None) -> Quote | None:
    """The first sentence of the evidence in which the answer occurs, or None.

    Case, dashes, Greek letters, diacritics, spaces and number format do not matter; token boundaries do:
    IL2 does not occur in IL2RA, nor 1 in 15. A chromosome occurs where it or one of its bands is named, a
    number where an equal quantity is, a field where its specialist is. Always None for yes and no, which
    evidence need not contain.
    """
    return next(_quotes(answer, passages, answer_type), None)


def supporting_quote(
    answer: str, question: str, passages: Sequence[str], answer_type: AnswerType | None = None
) -> Quote | None:
    """Of the sentences in which the answer occurs, the one that shares most words with the question, or None.

    Occurs as for :func:`grounded`; the first of equals.
    """
    found = list(_quotes(answer, passages, answer_type))
    return max(found, key=lambda quote: len(shared_words(quote.text, question, answer)), default=None)


def shared_words(sentence: str, question: str, answer: str) -> set[str]:
    """Words of four letters or more that ``sentence`` and ``question`` share, those of ``answer`` aside."""
    said, asked, given = (set(_CONTENT_WORD.findall(text.casefold())) for text in (sentence, question, answer))
    return (said & asked) - given - _QUESTION_WORDS


def _quotes(answer: str, passages: Sequence[str], answer_type: AnswerType | None) -> Iterator[Quote]:
    """Every sentence in which the answer occurs, and every passage where it does though in no one sentence."""
    if answer_type is AnswerType.YES_NO:
        return
    holds = _finder(answer, answer_type)
    for i, passage in enumerate(passages):
        if not holds(passage):
            continue
        whole = True  # unless a sentence holds it: the splitter may have cut through a name
        for sentence in sentences(passage):
            if holds(sentence):
                whole = False
                yield Quote(i, sentence)
        if whole:
            yield Quote(i, passage.strip())


def occurs(answer: str, text: str) -> bool:
    """Whether the words of an answer occur in a text, next to one another and on token boundaries."""
    return _holds_name(spelling(answer), text)


def spelling(text: str) -> str:
    """The tokens of a text in one run, for a quick look through many texts.

    A name can only be :func:`grounded` where its :func:`name_spelling` is part of the text's spelling.
    """
    return compact(tokens(text))


def name_spelling(name: str) -> str:
    """The :func:`spelling` that is looked for: that of a name without its article and enclosing marks."""
    return spelling(canonical.text(name) or "")


def _finder(answer: str, answer_type: AnswerType | None) -> Callable[[str], bool]:
    if answer_type is AnswerType.CHROMOSOME:
        wanted = set((canonical.chromosome(answer) or "").split("|"))
        return lambda text: wanted <= set(canonical.chromosomes_in(text))
    if answer_type in {AnswerType.NUMBER, AnswerType.DURATION} and (quantity := parse_quantity(answer)):
        return partial(_holds_quantity, quantity)
    if answer_type is AnswerType.LOCATION and (band := canonical.cytoband(answer)):
        forms = {spelling(band), name_spelling(answer)}
        return lambda text: any(_holds_name(form, _CHR.sub("", text)) for form in forms)
    if answer_type in {AnswerType.FIELD_OF_BIOLOGY, AnswerType.MEDICAL_SPECIALIST}:
        stem = compact(_field_stems(tokens(canonical.text(answer) or "")))
        return lambda text: _spells(stem, _field_stems(tokens(text)))
    bare = canonical.gene(answer) if answer_type in {AnswerType.GENE, AnswerType.GENE_MUTATION} else None
    return partial(_holds_name, spelling(bare) if bare else name_spelling(answer))


def _holds_quantity(wanted: Quantity, text: str) -> bool:
    return any(same_quantity(found, wanted) for found in find_quantities(text))


def _field_stems(words: list[str]) -> list[str]:
    """Cardiology, cardiologist and cardiological have one stem."""
    return [_FIELD_ENDING.sub("", word) for word in words]


def _holds_name(wanted: str, text: str) -> bool:
    return _spells(wanted, tokens(text))


def _spells(wanted: str, words: list[str]) -> bool:
    """Whether consecutive words, put together, spell ``wanted``."""
    if not wanted:
        return False
    for start, word in enumerate(words):
        if not wanted.startswith(word):
            continue
        end, joined = start + 1, word
        while len(joined) < len(wanted) and end < len(words):
            joined = compact((joined, words[end]))
            end += 1
        if joined == wanted:
            return True
    return False
