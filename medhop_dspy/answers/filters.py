"""Answers that are none: category words and placeholders."""

from __future__ import annotations

import re
from typing import Final

from medhop_dspy.answers.textnorm import normalise, tidy, tokens, word_set

GENERIC_WORDS: Final = word_set(
    "gene protein enzyme disease disorder syndrome condition illness sickness ailment abnormality deficiency defect "
    "mutation variant allele chromosome locus genotype phenotype symptom sign manifestation complication medication "
    "medicine drug treatment therapy procedure technique organism species pathogen microorganism microbe phase stage "
    "number amount quantity location place site specialist doctor physician clinician field specialty speciality "
    "discipline press publisher journal organization organisation company person scientist researcher patient "
    "individual chemical compound substance molecule element nutrient vitamin hormone receptor antibody factor cell "
    "tissue organ duration period name term answer entity type kind form class group family category cause "
    "anomaly malformation product process pathway inhibitor agent body structure test"
)
_FILLERS: Final = word_set(
    "a an the this that these those its their his her some any certain specific particular one same other another of "
    "in the by for from with to and or genetic inherited hereditary congenital rare common medical clinical human "
    "biological biomedical autosomal dominant recessive xlinked associated related affected mutated defective "
    "responsible causative causal corresponding respective underlying main primary which what is it"
)

_NO_ANSWER: Final = (
    "unknown|n a|none|nil|null|nan|not sure|unsure|uncertain|unclear|undetermined|unspecified|undefined|unavailable|"
    "idk|tbd|tba|nothing|nobody|nowhere|not|no answer|no data|no info|no information|no evidence|no idea|no one|noone|"
    "insufficient information|insufficient evidence|insufficient data|none of the above|not enough information|"
    "nothing found|does not say|cant say|cannot say|cant tell|cannot tell|error"
)
# What small models write when they echo the form instead of filling it.
_ECHOES: Final = "answer|short answer|your answer|your answer here|string|text|json|str|entity|value|placeholder"
_PLACEHOLDERS: Final = frozenset(f"{_NO_ANSWER}|{_ECHOES}".split("|"))
_PLACEHOLDER = re.compile(
    r"(?:(?:it )?(?:is|are|was|information) )?(?:not|cannot be|can not be|could not be|cant be|couldnt be) (?:yet |"
    r"explicitly |directly |clearly |currently |be )?(?:known|sure|certain|specified|stated|mentioned|given|provided|"
    r"available|applicable|found|determined|clear|answered|listed|identified|reported|described|defined|established|inferred|"
    r"present in)\b.*"
    r"|(?:unable|impossible) to .*|none (?:unknown|given|found|specified|mentioned|provided|stated|listed|available)"
    r"|(?:unknown|unspecified|unclear) (?:gene|protein|disease|cause|chromosome|person|organism|at present|currently)s?"
    r"|(?:i|we) (?:do not|dont|cannot|cant|am not|are not|could not) .*|(?:i am|im) (?:not sure|unsure|sorry)\b.*"
    r"|(?:there is )?(?:no|not enough|insufficient) (?:relevant |specific |sufficient |such )?(?:information|evidence|"
    r"answer|data|mention|context)(?: (?:is|was|available|found|given|provided|about|on|in|to)\b.*)?"
    r"|(?:the )?(?:passages?|evidence|text|context|question|information|documents?)(?: provided| given)? "
    r"(?:do|does|did|is|are|was)(?: not|nt)\b.*"
)


def is_generic(answer: str) -> bool:
    """Whether the answer is only a category, such as ``the protein`` or ``a rare genetic disorder``.

    A name, number or letter of its own makes an answer specific: ``Chromosome 7``, ``vitamin A``.
    """
    words = " ".join(tokens(answer)).replace("x linked", "xlinked").split()
    if words[-1:] == ["a"]:
        return False
    return any(_singular(w) in GENERIC_WORDS for w in words) and all(
        _singular(w) in GENERIC_WORDS or w in _FILLERS for w in words
    )


def _singular(word: str) -> str:
    if word in GENERIC_WORDS:
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word.removesuffix("s") if word.removesuffix("s") in GENERIC_WORDS else word.removesuffix("es")


def is_placeholder(answer: str) -> bool:
    """Whether the answer says that there is none: empty, a sign, ``unknown``, ``N/A``, ``not specified``...

    ``NA`` counts in capitals only, for Na is sodium.
    """
    if not any(c.isalnum() for c in answer) or tidy(answer).strip(" .[]()<>\"'") in {"NA", "NaN", "N.A", "n.a"}:
        return True
    plain = normalise(answer)
    return plain in _PLACEHOLDERS or _PLACEHOLDER.fullmatch(plain) is not None
