"""The phrases of the evidence that could be an answer, found by form alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from medhop_dspy.answers import canonical
from medhop_dspy.answers.filters import is_generic, is_placeholder
from medhop_dspy.answers.quantities import find_quantities, parse_quantity
from medhop_dspy.answers.question_nouns import NP_ENDS, VERBS
from medhop_dspy.answers.question_rules import offers_choice
from medhop_dspy.answers.textnorm import sentences, tokens, word_set
from medhop_dspy.answers.types import AnswerType

_WORDS: Final = 6  # of a phrase, at most
# No phrase goes across a mark behind a word, brackets around words, quotation marks or a dash between words.
_BREAK = re.compile(
    r"(?<=[\w)])[,;:?!]\s|\s[-\u2013\u2014]\s|(?:^|\s)[(\[]|[)\]](?=[\s.,;:]|$)|[\"\u201c\u201d]|(?<![A-Z])\.\s"
)
_END = re.compile(r"[.!?:;)\]\"\u201d]\s*$")
_MARKS: Final = ".,;:()[]'\u2019"
_EDGES: Final = (NP_ENDS | VERBS) - word_set("essential critical")  # 'essential tremor'
_LINKS: Final = word_set("of and the in for to with by a at on")  # may stand inside a phrase
# 'hydrocephaly', 'acromegaly', 'anomaly' and 'sandfly' are names.
_PARTICIPLE = re.compile(r"(?!.*(?:dacty|cepha|mega|noma|(?<!ie)f)ly$)[a-z]{3,}(?:ed|ly)")
_SYMBOL = re.compile(r"[A-Z][A-Z0-9]+(?:-[A-Z0-9]{1,4})?|C(?:\d{1,2}|X)orf\d{1,4}")
_QUANTITIES: Final = frozenset({AnswerType.NUMBER, AnswerType.DURATION})
# Types whose names nearly all have a form of their own: only what surely is of the type is a candidate.
_SURE: Final = frozenset(
    {
        AnswerType.ENZYME,
        AnswerType.MEDICAL_SPECIALIST,
        AnswerType.FIELD_OF_BIOLOGY,
        AnswerType.BONE,
        AnswerType.FLUID_TYPE,
    }
)


def candidates(
    passages: Sequence[str],
    question: str,
    answer_type: AnswerType,
    check: Callable[[str], bool | None],
    refused: Sequence[str] = (),
) -> list[str]:
    """Phrases of ``passages`` that have the form of an answer, in the order in which they occur.

    Chromosomes, quantities and gene symbols are read as such. For anything else a phrase is a run of one to six words
    between words that cannot belong to a name: function words, verbs, category words and the question's own.

    Args:
        passages: Texts of the evidence.
        question: Whatever is made of its words alone is no answer, unless it offers a choice.
        answer_type: What is asked for; yes_no has no candidates.
        check: Format check of the type; what it refuses is left out.
        refused: Names that are no answers.
    """
    if answer_type is AnswerType.YES_NO:
        return []
    asked = frozenset() if offers_choice(question) else frozenset(tokens(question))
    known = {canonical.name_key(name) for name in refused}
    found = dict.fromkeys(phrase for passage in passages for phrase in _phrases(passage, answer_type, asked))
    return [
        p
        for p in found
        if p.isprintable()
        and canonical.name_key(p) not in known
        and not _says_nothing(p, asked)
        and _fits(p, answer_type, check)
    ]


def _fits(phrase: str, answer_type: AnswerType, check: Callable[[str], bool | None]) -> bool:
    verdict = check(phrase)
    return verdict is True if answer_type in _SURE else verdict is not False


def _says_nothing(phrase: str, asked: frozenset[str]) -> bool:
    return asked.issuperset(tokens(phrase)) or is_generic(phrase) or is_placeholder(phrase)


def _phrases(passage: str, answer_type: AnswerType, asked: frozenset[str]) -> Iterator[str]:
    if not _END.search(passage):
        passage = passage.rpartition(" ")[0]  # a chunk may end inside a word
    if answer_type is AnswerType.CHROMOSOME:
        yield from (f"Chromosome {name}" for name in canonical.chromosomes_in(passage) if name)
    elif answer_type in _QUANTITIES:
        yield from (quantity.text for quantity in find_quantities(passage))
    elif answer_type is AnswerType.GENE:
        yield from (word for word in re.findall(r"[\w-]+", passage) if _SYMBOL.fullmatch(word))
    else:
        for sentence in sentences(passage):
            for part in _BREAK.split(sentence):
                for phrase in _runs(part.split(), asked):
                    # '503 amino acids' is no name.
                    if answer_type is AnswerType.OTHER or not parse_quantity(phrase):
                        yield phrase


def _runs(words: list[str], asked: frozenset[str]) -> Iterator[str]:
    """Runs of one to six words that begin and end where a name may."""
    bare = ["", *(word.strip(_MARKS) for word in words), ""]
    # A capital A may end a name: 'vitamin A'.
    plain = [word if word == "A" and n > 1 else word.casefold() for n, word in enumerate(bare)]
    bound = [_bounds(word, asked) for word in plain]
    for start in range(1, len(words) + 1):
        # A capital behind a small letter begins a name too: 'the chemist Walter Schindler'.
        begins = bound[start - 1] or (bare[start][:1].isupper() and bare[start - 1][:1].islower())
        if not begins or plain[start].casefold() in _EDGES or not plain[start]:
            continue
        for end in range(start, min(start + _WORDS, len(words) + 1)):
            if plain[end] in _EDGES:
                if plain[end] not in _LINKS:
                    break
            elif bound[end + 1] and plain[end] and not _PARTICIPLE.fullmatch(plain[end]):
                yield canonical.trim(" ".join(words[start - 1 : end])).strip(",;:")


def _bounds(word: str, asked: frozenset[str]) -> bool:
    """Whether a name may begin behind ``word`` and end before it."""
    return (
        not word
        or word in _EDGES
        or _PARTICIPLE.fullmatch(word) is not None
        or is_generic(word)
        or asked.issuperset(tokens(word))
    )
