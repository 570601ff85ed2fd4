"""What the wording of a question gives away: its answer type, its strategy, and what cannot be its answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from medhop_dspy.answers import canonical
from medhop_dspy.answers.grounding import occurs
from medhop_dspy.answers.quantities import parse_quantity
from medhop_dspy.answers.question_nouns import DETERMINERS, HEADS, NP_ENDS, OCCUPATIONS, TRANSPARENT, VERBS
from medhop_dspy.answers.textnorm import fold, sentences, tokens, word_set
from medhop_dspy.answers.types import AnswerType, Strategy


@dataclass(frozen=True, slots=True)
class RouteOverride:
    """What the rules decide about a question; None where they leave it to the router."""

    strategy: Strategy | None = None
    answer_type: AnswerType | None = None


_AUXILIARY = (
    r"(?:is|are|was|were|am|do|does|did|can|could|will|would|shall|should|may|might|must|has|have|had|"
    r"(?:is|are|was|were|do|does|did|ca|could|wo|would|should|has|have)n't)"
)
_OPENS_WITH_AUXILIARY = re.compile(rf"(?:(?:and|so|but|also|then|please|true or false:)[\s,]+)?{_AUXILIARY}\s")
_WH: Final = r"(?:which|what|whose|whom|who|where|when|why|how)"
_AUXILIARY_AFTER_CLAUSE = re.compile(
    r"(?:if|in|although|though|for|when|given|considering|with|among|amongst|as|since|assuming|while|despite|during|"
    r"besides|unlike|due|because|based|after|before|according|compared|similar|like|beyond|other|whether|on|at|under|to|"
    rf"by|from)\b(?!(?:\s\S+)*?\s{_WH}\b.*?,).*?,\s*{_AUXILIARY}\s"
)
_TRUE_OR_FALSE = re.compile(r"\btrue or false\b\W*$|^true or false\b")
_HOW = re.compile(r"\bhow (?:does|do|can|is|are)\b")
_CAUSAL = re.compile(r"\b(?:contribut\w*|affect\w*|caus(?:e|es|ed|ing))\b")
# The two sides of a choice that a yes-or-no question may end with.
_PAIRS: Final = (
    "primary|secondary benign|malignant dominant|recessive congenital|acquired acute|chronic inherited|acquired "
    "increase|decrease increased|decreased higher|lower more|less autosomal|x-linked proximal|distal left|right "
    "hereditary|sporadic upper|lower anterior|posterior males|females men|women male|female "
    "dna|rna open|closed temporary|permanent true|false agonist|antagonist rapid|slow early|late"
)
_EITHER = [pair.split("|") for pair in _PAIRS.split()]
_CHOICE = re.compile(
    # normal or abnormal, syndromic or non-syndromic; a structural disorder or a functional disorder
    r"\b(\w{3,})(?:\s\S+)?\sor\s(?:an?\s)?(?:non|un|in|im|dis|ab|a)-?\1\b|\b(\w{3,})\sor\s(?:an?\s)?\w+\s\2\b|"
    + "|".join(rf"\b{a}\b(?:\s\S+){{0,2}}\sor\s(?:an?\s)?{b}\b" for x in _EITHER for a, b in (x, x[::-1]))
)


def focus(question: str) -> str:
    """The folded sentence that asks: the last one with a question mark, otherwise the last one."""
    found = sentences(question)
    asking = [s for s in found if s.rstrip("\"')]").endswith("?")]
    return fold((asking or found or [""])[-1]).strip(" \"'([")


def is_yes_no(question: str) -> bool:
    """Whether the question opens with an auxiliary verb, at once or after a clause, and offers no choice of two."""
    asked = focus(question)
    if _TRUE_OR_FALSE.search(fold(question)):
        return True
    opens = _OPENS_WITH_AUXILIARY.match(asked) or _AUXILIARY_AFTER_CLAUSE.match(asked)
    return opens is not None and not _CHOICE.search(asked[-80:])


def route_overrides(question: str) -> RouteOverride:
    """Decide what the wording decides for certain, and leave the rest to the router."""
    asked = focus(question)
    if is_yes_no(question):
        return RouteOverride(answer_type=AnswerType.YES_NO)
    if _OPENS_WITH_AUXILIARY.match(asked):
        return RouteOverride(answer_type=AnswerType.OTHER)
    if _HOW.search(asked):
        return RouteOverride(Strategy.MULTIHOP if _CAUSAL.search(asked) else None, AnswerType.OTHER)
    if re.search(r"\bmedical special(?:i?ty|ties|ities)\b", asked):
        return RouteOverride(Strategy.DEFINITION, AnswerType.FIELD_OF_BIOLOGY)
    if re.search(r"\bhalf[- ]li(?:fe|ves)\b", asked):
        return RouteOverride(Strategy.MULTIHOP, AnswerType.DURATION)
    if re.search(r"\bterms? for\b", asked):
        return RouteOverride(Strategy.DEFINITION)
    return RouteOverride()


# --- the type from the noun that is asked for

_FIXED: Final[tuple[tuple[re.Pattern[str], AnswerType], ...]] = tuple(
    (re.compile(pattern), answer_type)
    for pattern, answer_type in (
        (r"\bhow many\b|\bhow much\b|\bhow old\b", AnswerType.NUMBER),
        (
            r"\b(?:what|which) (?:is the |was the )?(?:\w+ )?(?:percentage|proportion|fraction|number)\b",
            AnswerType.NUMBER,
        ),
        (r"^(?:in |during |by |since )?(?:what|which) year\b|\bin (?:what|which) year\b", AnswerType.NUMBER),
        (
            r"\bhow long (?:does|do|did|is|can|will|has|have)\b(?!.*\b(?:gene|protein|chromosome|bone)\b)",
            AnswerType.DURATION,
        ),
        (r"\b(?:mode|pattern)s? of inheritance\b|\binheritance (?:mode|pattern)", AnswerType.OTHER),
        (r"\bwhat does .* stand for\b", AnswerType.OTHER),
        (
            r"\b(?:which|what) (?:is the )?(?:\w+ )?(?:region|part|portion|band|arm|segment|area|site) (?:of|on) "
            r"(?:the|chromosome)\b",
            AnswerType.LOCATION,
        ),
        (r"^who\b", AnswerType.PERSON),
        (r"^where\b", AnswerType.LOCATION),
    )
)
_WH_PHRASE = re.compile(r"\b(?:which|what)\b(?! if\b)")
_COPULA = re.compile(r"(?:'s|\s+(?:is|are|was|were))\s+(?:(?:also|currently|generally|commonly|usually)\s+)?")
_NAME_OF = re.compile(
    r"(?:the|this|that|these|an?)\s+(?:\w+\s+)?(?:names?|terms?|designation|title)\s+(?:of|for|given to|used for)\s+"
)
_PERSON_DEED = re.compile(
    r"\b(?:discover|describ|invent|nam|publish|identif|coin|propos|recogni[sz]|isolat|born|first|report)"
)
_SPECIALIST_DEED = re.compile(r"\b(?:treat|manag|diagnos|consult|see|care|visit|refer)")


def type_from_question(question: str) -> AnswerType | None:
    """The answer type that the question's wording names for certain, otherwise None.

    The noun phrase after the interrogative *which* or *what* decides by its head: *which gene on chromosome 7*
    asks for a gene, *on which chromosome is the gene* for a chromosome.
    """
    if (override := route_overrides(question)).answer_type is not None:
        return override.answer_type
    asked = focus(question)
    for pattern, answer_type in _FIXED:
        if pattern.search(asked):
            return answer_type
    for phrase in _noun_phrases(asked):
        return _type_of(phrase, asked)
    return None


def _noun_phrases(asked: str) -> Iterator[list[str]]:
    """The noun phrases that are asked for, the most certain first."""
    found = []
    for match in _WH_PHRASE.finditer(asked):
        rest = asked[match.end() :]
        if match[0] == "what" and (copula := _COPULA.match(rest)):
            rest = rest[copula.end() :]
            if name := _NAME_OF.match(rest):
                rest = rest[name.end() :]
            elif not re.match(r"(?:the|this|that|these|those|an?)\s", rest):
                continue
        elif re.match(r"\s+(?:of\s+)?(?:the|this|these|an?|its|their)\b(?! following)", rest):
            # 'of which the ...' is a relative clause, 'which of the ...' leaves the kind to what follows.
            if not re.match(r"\s+of\s+(?:the|these)\s", rest):
                continue
            rest = re.sub(r"^\s+of\s+", "", rest)
        if phrase := _noun_phrase(rest):
            found.append((match.start(), phrase))
    # Inside a sentence, a 'which' at the end of it asks and one in the middle only relates.
    yield from (phrase for start, phrase in sorted(found, key=lambda f: (len(asked[: f[0]].split()) > 3, -f[0])))


def _noun_phrase(rest: str) -> list[str]:
    """Words from the start of a text up to the first that cannot belong to its first noun phrase."""
    words: list[str] = []
    adverb = False  # 'which commonly prescribed drug'
    for raw in rest.split():
        word = raw.strip("\"'()[]?.!:;,")
        if not words and word in DETERMINERS:
            continue
        if not words and _is_adverb(word):
            adverb = True
            continue
        if adverb and not words and word.endswith("ed"):
            continue
        if word in {"and", "or"} and words and words[-1] in _ADJECTIVES:
            continue
        if _ends_phrase(words, raw, word):
            break
        words += re.sub(r"'s$", "", word).replace("-", " ").split()
        if raw[-1] in ",?.!:;)":
            # 'rare, inherited disorder' goes on, 'gene, located on' does not.
            if raw[-1] == "," and words[-1:] and words[-1] in _ADJECTIVES:
                continue
            break
    return words


_ADJECTIVES: Final = word_set(
    "rare common inherited genetic chronic acute severe benign malignant congenital autosomal progressive painful "
    "large small long thin thick multisystemic inflammatory infectious neurological extremely potentially serious "
    "fatal aggressive underlying imaging"
)


def _is_adverb(word: str) -> bool:
    return word.endswith("ly") and not word.endswith(("family", "anomaly", "assembly", "supply", "fly", "belly"))


def _ends_phrase(words: list[str], raw: str, word: str) -> bool:
    if raw[:1] in "([" or word in VERBS:
        return True
    if words and words[-1] in HEADS and word.endswith("ed"):
        return True
    if words and (_is_adverb(word) or (word.endswith("ing") and word not in _ADJECTIVES)):
        return True
    return word in NP_ENDS and not _transparent(words, word)


def _transparent(words: list[str], word: str) -> bool:
    """Whether ``of`` goes on to the real head, as in ``type of disease``."""
    return word == "of" and bool(words) and words[-1] in TRANSPARENT


def _type_of(words: list[str], asked: str) -> AnswerType | None:
    while "of" in words:
        words = words[words.index("of") + 1 :]
        words = words[1:] if words[:1] and words[0] in DETERMINERS else words
    for length in (3, 2, 1):
        head = " ".join(words[-length:]) if len(words) >= length else ""
        if head in HEADS:
            return HEADS[head]
    last = words[-1] if words else ""
    if last in OCCUPATIONS or re.search(r"(?:ologist|iatrist|iatrician)s?$", last):
        if _PERSON_DEED.search(asked):
            return AnswerType.PERSON
        return AnswerType.MEDICAL_SPECIALIST if _SPECIALIST_DEED.search(asked) else None
    if last in {"antibody", "inhibitor", "agent", "supplement", "blocker"}:
        return AnswerType.MEDICATION if re.search(r"\btreat|\bapproved\b", asked) else None
    if re.search(r"\w{3,}ases?$", last) and not re.search(r"(?:phase|base|crease|release|case)s?$", last):
        return AnswerType.ENZYME
    if re.search(
        r"\w{3,}(?:itis|oma|omas|(?<!cyt)(?<!apopt)(?<!mei)(?<!osm)(?<!hypn)osis|a?emia|pathy|pathies|plasia|trophy|porphyria|ataxia|phobia)$",
        last,
    ):
        return AnswerType.DISEASE_OR_SYNDROME
    return None


# --- answers that only repeat the question

_COMPARES = re.compile(
    r"\bor\b|\bbetween\b|\bthan\b|\bwhich (?:one )?of\b|\bamong\b|\bfollowing\b|\bversus\b|\bvs\b|\bsuch as\b"
)

_BOUNDARIES: Final = NP_ENDS | VERBS | {"", "when", "both", "having"}


def offers_choice(question: str) -> bool:
    """Whether the question may name its own answer, as in *which of* and *or*."""
    return _COMPARES.search(fold(question)) is not None


def check_self_reference(answer: str, question: str) -> bool | None:
    """Whether the answer merely repeats what the question names; None where Python cannot decide.

    True only where it stands in the question word for word, not inside a longer name, and the question offers
    no choice: trimethadione may well be the drug behind *fetal trimethadione syndrome*. Numbers and chromosomes
    are never decided: the chromosome of one gene may be asked and that of another be given.
    """
    if canonical.yes_no(answer) or is_yes_no(question):
        return False
    name = canonical.text(answer) or ""
    words, known = tokens(name), set(tokens(question))
    if not known.intersection(words):
        return False
    if parse_quantity(name) or canonical.chromosome(name):
        return None
    if occurs(name, question):
        sure = _stands_alone(words, question) and not offers_choice(question) and len("".join(words)) > 2
        return True if sure else None
    share = sum(w in known for w in words) / len(words)
    return None if share >= 0.5 else False


def _stands_alone(words: list[str], question: str) -> bool:
    """Whether the words stand in the question as a noun phrase of their own, once at least."""
    for part in re.split(r"[,;:?!()\"]|\.\s", question):
        known = ["", *tokens(part), ""]
        for start in range(1, len(known) - len(words)):
            around = {known[start - 1], known[start + len(words)]}
            if known[start : start + len(words)] == words and around <= _BOUNDARIES:
                return True
    return False
