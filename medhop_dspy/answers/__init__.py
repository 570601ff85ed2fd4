"""The table of answer types, and everything that Python alone can say about a short answer.

Plain Python: importing this module loads neither DSPy nor any model library. It is the one place from which
the other rooms import answer rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from medhop_dspy.answers import canonical, checks, phrases
from medhop_dspy.answers.canonical import AliasTable
from medhop_dspy.answers.checks import Check
from medhop_dspy.answers.filters import GENERIC_WORDS, is_generic, is_placeholder
from medhop_dspy.answers.grounding import (
    Quote,
    grounded,
    name_spelling,
    occurs,
    shared_words,
    spelling,
    supporting_quote,
)
from medhop_dspy.answers.quantities import parse_quantity, same_quantity
from medhop_dspy.answers.question_rules import (
    RouteOverride,
    check_self_reference,
    route_overrides,
    type_from_question,
)
from medhop_dspy.answers.repair_rules import enforce_repair_query
from medhop_dspy.answers.shortening import shorten
from medhop_dspy.answers.textnorm import normalise, sentences, tidy, tokens
from medhop_dspy.answers.types import AnswerType, Strategy
from medhop_dspy.errors import InputError

__all__ = [
    "ANSWER_TYPES",
    "GENERIC_WORDS",
    "AliasTable",
    "AnswerType",
    "FormatVerdict",
    "Quote",
    "RouteOverride",
    "Strategy",
    "TypeSpec",
    "candidates",
    "canon",
    "check_format",
    "check_self_reference",
    "enforce_repair_query",
    "exact_match",
    "grounded",
    "is_generic",
    "is_placeholder",
    "is_specific",
    "name_spelling",
    "normalise",
    "occurs",
    "route_overrides",
    "sentences",
    "shared_words",
    "shorten",
    "spelling",
    "strict_match",
    "supporting_quote",
    "type_from_question",
]

MAX_ENTITY_WORDS: Final = 10
MAX_ANSWER_WORDS: Final = 15


@dataclass(frozen=True, slots=True)
class TypeSpec:
    """What is known about one answer type.

    Attributes:
        meaning: What such an answer is, for prompts.
        format_rule: How it has to be written, one imperative sentence for prompts.
        check: True for a text surely of the type, False for one surely not, None where Python cannot decide.
        canonical: The canonical form of an answer, or None if it is no answer of the type.
        key: Form for comparison; equal keys mean equal answers.
    """

    meaning: str
    format_rule: str
    check: Check
    canonical: Callable[[str], str | None] = canonical.text
    key: Callable[[str], str] = normalise


ANSWER_TYPES: Final[dict[AnswerType, TypeSpec]] = {
    AnswerType.CHROMOSOME: TypeSpec(
        "a human chromosome",
        "Write 'Chromosome' and its number or letter only.",
        checks.chromosome,
        canonical.chromosome,
    ),
    AnswerType.GENE: TypeSpec(
        "a gene",
        "Write the official gene symbol only.",
        checks.gene,
        canonical.gene,
        canonical.name_key,
    ),
    AnswerType.GENE_MUTATION: TypeSpec(
        "a gene mutation or mutated gene",
        "Write the gene symbol or the variant only.",
        checks.gene_mutation,
        canonical.gene,
        canonical.name_key,
    ),
    AnswerType.PROTEIN: TypeSpec(
        "a protein, peptide or receptor", "Write the name of the protein only.", checks.protein, key=canonical.name_key
    ),
    AnswerType.ENZYME: TypeSpec(
        "an enzyme", "Write the name of the enzyme only.", checks.enzyme, key=canonical.name_key
    ),
    AnswerType.DISEASE_OR_SYNDROME: TypeSpec(
        "a disease, syndrome, disorder or other condition",
        "Write the full name of the one disease or syndrome only.",
        checks.disease,
    ),
    AnswerType.SYMPTOM: TypeSpec("a symptom or sign", "Write the name of the symptom only.", checks.symptom),
    AnswerType.MEDICATION: TypeSpec(
        "a drug, drug class or vaccine", "Write the generic name of the drug only, without a dose.", checks.medication
    ),
    AnswerType.PROCEDURE: TypeSpec(
        "a medical test, operation or other procedure", "Write the name of the procedure only.", checks.procedure
    ),
    AnswerType.ORGANISM: TypeSpec(
        "an organism, virus or taxon", "Write the name of the organism only.", checks.organism
    ),
    AnswerType.FLUID_TYPE: TypeSpec("a body fluid", "Write the name of the fluid only.", checks.fluid),
    AnswerType.PHASE: TypeSpec("a phase or stage", "Write the name of the phase or stage only.", checks.phase),
    AnswerType.NUMBER: TypeSpec(
        "a number, percentage or year",
        "Write the number in digits only, with its unit if it is a measure.",
        checks.number,
        canonical.number,
    ),
    AnswerType.LOCATION: TypeSpec(
        "a place in the body, genome or world",
        "Write the name of the place only.",
        checks.location,
        canonical.location,
    ),
    AnswerType.MEDICAL_SPECIALIST: TypeSpec(
        "a kind of doctor", "Write the name of the specialist only.", checks.specialist
    ),
    AnswerType.FIELD_OF_BIOLOGY: TypeSpec(
        "a field of science or medical specialty",
        "Write the name of the field only.",
        checks.field_of_biology,
        canonical.field,
    ),
    AnswerType.PRESS_OR_PUBLISHER: TypeSpec(
        "a press, publisher or journal", "Write the name of the publisher only.", checks.press
    ),
    AnswerType.PERSON: TypeSpec(
        "a named person", "Write the full name of the person only, without titles.", checks.person
    ),
    AnswerType.BONE: TypeSpec("a bone", "Write the name of the bone only.", checks.bone),
    AnswerType.CHEMICAL: TypeSpec(
        "a chemical, vitamin or nutrient",
        "Write the name of the chemical only.",
        checks.chemical,
        key=canonical.name_key,
    ),
    AnswerType.DURATION: TypeSpec(
        "a length of time",
        "Write the number in digits and its unit of time only.",
        checks.duration,
        canonical.number,
    ),
    AnswerType.YES_NO: TypeSpec("yes or no", "Write exactly Yes or No.", checks.yes_no, canonical.yes_no),
    AnswerType.OTHER: TypeSpec(
        "a short answer of any kind", "Write the shortest complete answer, at most five words.", checks.other
    ),
}


@dataclass(frozen=True, slots=True)
class FormatVerdict:
    """Whether an answer has the form of its type: yes, no, or None where Python cannot decide."""

    ok: bool | None
    reason: str = ""


def canon(answer_type: AnswerType, answer: str) -> str | None:
    """The canonical form of an answer, such as ``15``, ``FBN1``, ``20%`` or ``yes``; None if it has none."""
    return ANSWER_TYPES[answer_type].canonical(answer)


def check_format(answer: str, answer_type: AnswerType) -> FormatVerdict:
    """Judge an answer by its form alone: not empty, not a placeholder, not long, and as its type demands."""
    if is_placeholder(answer):
        return FormatVerdict(False, "a placeholder, not an answer")
    if answer_type is not AnswerType.OTHER and len(answer.split()) > MAX_ANSWER_WORDS:
        return FormatVerdict(False, f"longer than {MAX_ANSWER_WORDS} words")
    ok = ANSWER_TYPES[answer_type].check(answer)
    return FormatVerdict(ok, "" if ok else f"not {ANSWER_TYPES[answer_type].meaning}" if ok is False else "undecided")


def candidates(
    passages: Sequence[str], question: str, answer_type: AnswerType, refused: Sequence[str] = ()
) -> list[str]:
    """Phrases of ``passages`` that have the form of an answer, in the order in which they occur; empty for yes_no.

    None is made of the question's words alone, unless it offers a choice, and none is one of ``refused``. See
    :mod:`medhop_dspy.answers.phrases`.
    """
    return phrases.candidates(passages, question, answer_type, ANSWER_TYPES[answer_type].check, refused)


def is_specific(answer: str, hop_type: str) -> bool:
    """Whether a hop's answer may steer later retrieval.

    Never for a ``yes_no`` hop or an answer yes or no, a placeholder, a category word, or more than ten words.
    A one-character number and ``Chromosome 7`` are specific; a ``number`` hop needs a number.
    """
    if hop_type == AnswerType.YES_NO or canonical.yes_no(answer) or is_placeholder(answer) or is_generic(answer):
        return False
    if hop_type == AnswerType.NUMBER and checks.number(answer) is False:
        return False
    return bool(tokens(answer)) and len(answer.split()) <= MAX_ENTITY_WORDS


def exact_match(
    pred: str | None,
    golds: str | bool | float | Sequence[str | bool | float],
    answer_type: AnswerType | None = None,
    aliases: AliasTable | None = None,
) -> bool:
    """Lenient exact match: whether a prediction equals any gold answer once both are normalised.

    Case, dashes, diacritics, Greek letters, leading articles, number format and the typed spellings of
    :data:`ANSWER_TYPES` do not matter. Without a type, the gold answer's own form decides between yes/no,
    number, chromosome, cytogenetic location and text. An empty prediction matches nothing.

    Args:
        pred: The prediction; None and text without letters or digits never match.
        golds: One gold answer or several; a plain string is one and is never split. True and False are
            yes and no, as YAML readers hand them out.
        answer_type: The type of the question, where known.
        aliases: Names that count as equal; without it HER2 and ERBB2 are two genes.

    Raises:
        InputError: if there is no gold answer or one is empty.
    """
    names = _gold_names(golds)
    if pred is None or not normalise(pred):
        return False
    return any(
        _equal(pred, gold, answer_type or _type_of(gold)) or (aliases is not None and aliases.same(pred, gold))
        for gold in names
    )


def strict_match(pred: str | None, golds: str | bool | float | Sequence[str | bool | float]) -> bool:
    """Exact match of the trimmed string itself with any gold answer. Raises like :func:`exact_match`."""
    names = _gold_names(golds)
    return pred is not None and bool(pred.strip()) and any(pred.strip() == gold.strip() for gold in names)


def _gold_names(golds: str | bool | float | Sequence[str | bool | float]) -> list[str]:
    given = [golds] if isinstance(golds, str | bool | int | float) else list(golds)
    names = [("yes" if g else "no") if isinstance(g, bool) else str(g) for g in given if g is not None]
    if not names or not all(tidy(n) for n in names):
        raise InputError(
            f"gold answers are {golds!r}, but every question needs at least one and none may be empty",
            hint="Fill in or remove the row.",
        )
    return names


def _equal(pred: str, gold: str, answer_type: AnswerType) -> bool:
    if answer_type in {AnswerType.NUMBER, AnswerType.DURATION}:
        one, other = parse_quantity(pred), parse_quantity(gold)
        if one and other:
            return same_quantity(one, other)
    spec = ANSWER_TYPES[answer_type]
    one_form, other_form = spec.canonical(pred), spec.canonical(gold)
    if one_form and other_form:
        return spec.key(one_form) == spec.key(other_form)
    return normalise(pred) == normalise(gold) != ""


def _type_of(gold: str) -> AnswerType:
    """The type that the form of a gold answer gives away, otherwise ``other``."""
    if canonical.yes_no(gold) and len(gold.split()) == 1:
        return AnswerType.YES_NO
    if canonical.cytoband(gold):
        return AnswerType.LOCATION
    if canonical.chromosome(gold) and "chr" in gold.casefold():
        return AnswerType.CHROMOSOME
    quantity = parse_quantity(gold)
    return AnswerType.NUMBER if quantity and not quantity.counted else AnswerType.OTHER
