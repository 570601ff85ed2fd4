"""Hops by rules: the things that a question describes instead of naming them, innermost first.

"On which chromosome is the gene mutated in Marfan syndrome located?" describes a gene. The rules turn it into
"What is the gene mutated in Marfan syndrome?" and "On which chromosome is #1 located?". They read English word
order only, and stand in for the HopPlanner where the model is too small to plan (``plan_by = "rules"``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from medhop_dspy.signatures import HopType, PlannedHop

_NOUNS: Final = {
    HopType.GENE: "gene",
    HopType.PROTEIN: "protein receptor hormone antibody peptide",
    HopType.ENZYME: "enzyme",
    HopType.DISEASE: "disease disorder condition illness infection cancer tumour tumor ataxia dystrophy anaemia "
    "anemia leukaemia leukemia lymphoma carcinoma neuropathy deficiency pneumoconiosis diabetes",
    HopType.SYNDROME: "syndrome",
    HopType.ORGANISM: "organism parasite bacterium virus fungus microbe pathogen spirochaete genus species plant "
    "mosquito tick animal vector agent",
    HopType.CHEMICAL: "drug medication medicine antibiotic anticoagulant compound chemical substance substrate "
    "vitamin cofactor lotion vaccine toxin mineral metal",
    HopType.OTHER: "procedure test fluid gland bone organ tissue physician scientist pharmacologist person group "
    "chromosome lesion",
}
_TYPE_OF: Final = {noun: kind for kind, nouns in _NOUNS.items() for noun in nouns.split()}
_NOUN: Final = "|".join(sorted(_TYPE_OF, key=len, reverse=True))
_REFERENCE: Final = re.compile(r"#\d")
_KIND_OF: Final = "(?:form|type|kind|subtype|member|stage)"
_RELATIVE: Final = (
    r"that|which|who|whose|whom|where|(?:for|in|to|from|by|with|of|on|against|during) (?:which|whom|whose)"
)
_PARTICIPLE: Final = (
    "mutated|defective|deficient|deleted|expanded|missing|lacking|absent|altered|affected|responsible|encoded|encoding|"
    "inhibited|inhibiting|given|used|treated|caused|causing|complicated|described|discovered|named|marked|"
    r"characteri[sz]ed|associated|linked|implicated|involved|known(?!\s+as)|produced|secreted|transmitted|collected|underlying|"
    "derived|isolated|developed|approved|required|prescribed|carried|targeted|most often|usually|most commonly|leading"
)
_BEFORE_NOUN: Final = r"\bthe\s+(?:(?!(?:the|an?|of|in|for|to|is|are)\b)[\w'’-]+\s+){0,4}?"
# Nouns that stand for the question's own answer, or for no thing at all.
_NO_THING: Final = "one|term|name|kind|type|form|reason|fact|extent|number|amount|hypothesis|theory|idea|last|only|most"
_DESCRIPTION: Final = re.compile(
    rf"{_BEFORE_NOUN}(?:{_KIND_OF}\s+of\s+)?(?:"
    rf"(?P<noun>{_NOUN})(?P<plural>s?)\s+(?:(?P<relative>{_RELATIVE})|{_PARTICIPLE}|with|of|in|for|behind)"
    # Any other single thing, where a clause of its own describes it: its verb must be singular too.
    rf"|(?!(?:{_NO_THING})\b)(?P<thing>[a-z]{{3,}}[^\W_s])\s+"
    r"(?P<clause>whose|(?:that|who)(?=\s(?:\w+(?:s|ed)|can|could|may|first)\b)))\b",
    re.IGNORECASE,
)
_AUXILIARIES: Final = "is|are|was|were|has|have|had|does|do|did|can|could|will|would|may|might|should|must"
_AUXILIARY: Final = re.compile(rf"(?:{_AUXILIARIES})", re.IGNORECASE)
# In "does the gene mutated in X encode Y" and "is the gene mutated in X located" the last verb is the question's.
_INVERTED: Final = re.compile(rf"\b(?:{_AUXILIARIES})\b", re.IGNORECASE)
_VERBS: Final = (
    "lie|belong|encode|have|share|involve|leave|derive|cause|affect|occur|contain|act|bind|require|need|produce|inhibit|"
    "block|target|treat|prevent|regulate|arise|appear|come"
)
_PREDICATE: Final = re.compile(
    rf"(?:located|situated|mapped|found|born|first|be|(?:{_VERBS})(?P<third_person>s?))", re.IGNORECASE
)
# "does the protein have whose gene is mutated in X": the relative clause moved behind the verb.
_MOVED: Final = re.compile(
    rf"\b(do|does|did|is|are|was|were)\s+(the\s+(?:[\w-]+\s+){{0,3}}?(?:{_NOUN})s?)\s+"
    rf"(located|situated|mapped|found|{_VERBS})\s+((?:whose|that|which)\s[^?]+)",
    re.IGNORECASE,
)
# "is the protein whose gene is mutated in X an enzyme?"
_IS_A: Final = re.compile(
    r"\b(?!(?:by|in|of|with|for|to|as|is|are|was|were)\s)\w+(?P<gap>\s)(?=an?\s[\w\s-]+\?$)", re.IGNORECASE
)
_STARTS_WITH_BE: Final = re.compile(r"(?:is|are|was|were)\b", re.IGNORECASE)
_APPOSITION: Final = re.compile(r",\s(?:an?|the)\s[^,?;]+")
# "Which bone is the one that ...", "known as the drug for ...": the thing described is the answer itself.
_IDENTITY: Final = re.compile(
    r"(?:^(?:which|what)\s(?:\S+\s){1,4}(?:is|are|was|were)|\bas|\bwho (?:is|was)|\b(?:name|term) (?:of|for))\s*$",
    re.IGNORECASE,
)
# Where only a noun of the list can be told from the rest of the sentence.
_LISTED_ONLY: Final = re.compile(r"^what (?:is|are)\b|\b(?:do|does|did)\b", re.IGNORECASE)
_STOP: Final = re.compile(r"[?;]|[,.]\s|\s(?=into (?:its|their)\b)")
_COORDINATION: Final = re.compile(
    r"^(?P<head>.*\b(?:in|for|by|with|of|cause|causes))\s+(?P<one>.+?)\s+and\s+(?P<two>.+)$"
)
_ASKING: Final = re.compile(r"what|which|who|whose|where|is|are|was|were|the|an?|of|in|on|does|do|did|name")
_MAX_CHARS: Final = 140  # of a description; PlannedHop.question holds 160
# A phrase that ends like this was cut in the middle.
_DANGLING: Final = re.compile(
    r"\b(?:to|is|are|was|were|that|which|who|whose|of|by|in|for|with|the|an?|and|or|as)$", re.IGNORECASE
)
_ANAPHORA: Final = re.compile(r"\b(?:these|this|those|such)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Decomposition:
    """Bridging hops in the order to ask them, and the question with their answers as ``#1``, ``#2`` ..."""

    hops: tuple[PlannedHop, ...]
    question: str


def decompose(question: str, max_hops: int) -> Decomposition:
    """At most ``max_hops`` bridging hops; none where the question describes nothing but its own answer."""
    # The comma marks the end of the clause that is moved back.
    text = _MOVED.sub(r"\1 \2 \4, \3", " ".join(question.split()))
    hops: list[PlannedHop] = []
    if _REFERENCE.search(text):  # "the #1 complication": the user's own sign would be taken for a reference
        return Decomposition((), question)
    while len(hops) < max_hops:
        found = _innermost(text)
        if found is None:
            break
        start, end, match = found
        phrases = _coordinated(text[start:end], match) if match["plural"] else [text[start:end]]
        references = [f"#{len(hops) + n}" for n in range(1, len(phrases) + 1)]
        shorter = text[:start] + " and ".join(references) + re.sub(r"^,(?= \w+\?$)", "", text[end:])
        if len(hops) + len(phrases) > max_hops or not _asks_more(shorter):
            break
        kind = _TYPE_OF.get((match["noun"] or "").lower(), HopType.OTHER)
        hops += [PlannedHop(question=f"What is {_with_the(p)}?", type=kind) for p in phrases]
        text = shorter
    return Decomposition(tuple(hops), text if hops else question)


def _innermost(text: str) -> tuple[int, int, re.Match[str]] | None:
    """The last description of ``text``: its start, its end and its match."""
    for match in reversed(_overlapping(text)):
        end = _end(text, match)
        described = text[match.end() : end].split()
        phrase = text[match.start() : end]
        alone = not match["plural"] or _COORDINATION.match(phrase)
        before = text[: match.start()]
        answer_itself = _IDENTITY.search(before) or (match["thing"] and _LISTED_ONLY.search(before))
        unfit = len(phrase) > _MAX_CHARS or _ANAPHORA.search(phrase) or _DANGLING.search(phrase)
        if described and alone and not answer_itself and not unfit:
            return match.start(), end, match
    return None


def _overlapping(text: str) -> list[re.Match[str]]:
    """Every description, also those that stand inside the words of another."""
    found: list[re.Match[str]] = []
    position = 0
    while match := _DESCRIPTION.search(text, position):
        found.append(match)
        position = match.start() + 1
    return found


def _end(text: str, match: re.Match[str]) -> int:
    """Where the description ends: at punctuation, or before the verb that belongs to the question itself."""
    stop = _STOP.search(text, match.end())
    end = stop.start() if stop else len(text)
    if apposition := _APPOSITION.match(text, end):
        end = apposition.end()
    if _STARTS_WITH_BE.match(text) and (is_a := _IS_A.search(text, match.end(), end + 1)):
        return is_a.start("gap")
    inverted = _INVERTED.search(text[: match.start()])
    relative = (match["relative"] or match["clause"] or "").lower()
    own_verb = bool(relative)  # "the gene that is mutated": the first verb is the description's own
    before = ""
    for word in re.finditer(r"[^\s,]+", text[match.end() : end]):
        auxiliary = _AUXILIARY.fullmatch(word[0])
        own = not inverted or before == "to" or _AUXILIARY.fullmatch(before)
        predicate = None if own else _PREDICATE.fullmatch(word[0])
        if own_verb:
            own_verb = relative not in {"that", "which", "who"} and not (auxiliary or predicate)
        elif auxiliary or (predicate and not predicate["third_person"]):
            end = match.end() + word.start()
            break
        before = word[0].lower()
    return match.start() + len(text[match.start() : end].rstrip(" ,."))


def _coordinated(phrase: str, match: re.Match[str]) -> list[str]:
    """``the genes mutated in A and B`` as two descriptions of one gene each."""
    noun = match["noun"]
    single = re.sub(rf"\b(?:two\s+)?{noun}s\b", noun, phrase, count=1, flags=re.IGNORECASE)
    parts = _COORDINATION.match(single)
    return [f"{parts['head']} {parts[side]}" for side in ("one", "two")] if parts else [phrase]


def _asks_more(text: str) -> bool:
    """Whether anything is left to ask beside the references."""
    words = re.findall(r"[\w-]+", re.sub(r"#\d", "", text).lower())
    return any(not _ASKING.fullmatch(w) for w in words)


def _with_the(phrase: str) -> str:
    return f"the {phrase[4:]}"
