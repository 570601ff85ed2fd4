"""Canonical forms of typed answers: one spelling for every way to write the same answer.

Each function takes an answer as written and returns its canonical form, fit to be shown, or None where
the text is not an answer of that type. ``*_key`` functions return forms for comparison only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from medhop_dspy.answers.quantities import parse_quantity, words_to_digits
from medhop_dspy.answers.textnorm import compact, fold, normalise, strip_article, tidy, tokens

CHROMOSOMES: Final = (*map(str, range(1, 23)), "X", "Y", "MT")

_END = re.compile(r"(?<!\b[^\W\d_]\.[^\W\d_])[\s.,;:]+$|[\s,;:]+$")
_PAREN_END = re.compile(r"\s+[(\[][^()\[\]]*[)\]]\s*$")


def text(answer: str) -> str | None:
    """Free text without invisible characters, enclosing quotes, a full stop or a small leading article."""
    bare = _until_stable(_bare, tidy(answer))
    return bare if normalise(bare) else None


def _bare(answer: str) -> str:
    cleaned = trim(answer)
    bare = strip_article(cleaned)
    # 'the liver' is the liver, but 'The Lancet' is a name.
    return bare if cleaned[:1].islower() or bare[:1].islower() else cleaned


def _until_stable(step: Callable[[str], str], text: str) -> str:
    """Apply a step that only ever shortens until it changes nothing."""
    while (shorter := step(text)) != text:
        text = shorter
    return text


def trim(answer: str) -> str:
    """Remove enclosing quotes and emphasis, and sentence marks at the end, but not the last dot of ``U.S.``."""
    return _END.sub("", unquote(_END.sub("", answer)))


def unquote(answer: str) -> str:
    """Remove quotation or emphasis marks that enclose the whole text, and nothing inside it."""
    answer = answer.strip()
    for opening, closing in ('""', "''", "“”", "‘’", "``", "«»", ("**", "**"), "**", "__"):
        inner = answer[len(opening) : len(answer) - len(closing)]
        if answer.startswith(opening) and answer.endswith(closing) and inner and opening not in inner:
            return unquote(inner) if closing not in inner else answer
    return answer


# --- yes or no

_YES_NO_LEAD = re.compile(
    r"(?:(?:the )?(?:(?:final|short|correct) )?answer(?: is|:)?|(?:it|this|that) is)\s*[:,]?\s*[\"']?"
)
_YES_NO = re.compile(r"(yes|no|true|false)\b(?!['-]\w)(.*)", re.DOTALL)
_BOTH = re.compile(r"\W*(?:and|or|but|maybe)?\W*(?:yes|no|true|false)\W*(?:$|,|depend)")
_AFTER_NO = re.compile(r"\s*(?:$|[,.;:!\"')(\]-])|\s+(?:it|they|this|that|these|he|she|there|because|not|the)\b")


def yes_no(answer: str) -> str | None:
    """``yes`` or ``no``, or None for anything that is neither or both. ``True`` and ``False`` count."""
    folded = fold(answer).strip(" \"'*_([")
    if lead := _YES_NO_LEAD.match(folded):
        folded = folded[lead.end() :]
    match = _YES_NO.match(folded)
    if not match or _BOTH.match(match[2]):
        return None
    if match[1] in {"yes", "true"}:
        return "yes"
    return "no" if _AFTER_NO.match(match[2]) else None


# --- chromosomes and cytogenetic bands

_CHROMOSOME_NAME = r"(?:\d{1,3}|x|y|mt|m|[a-z])"
_MENTION = re.compile(
    rf"\b(?:chromosomes?|chr|chrom)[\s.:-]*(?:(?:no\.?|number|nr\.?|\#)\s*)?"
    rf"(?P<names>{_CHROMOSOME_NAME}(?![\w'])(?:\s*(?:,|\||/|and|or|&)\s*{_CHROMOSOME_NAME}(?![\w'-]))*)"
    r"|\b(?P<ordinal>\d{1,2})(?:st|nd|rd|th) chromosome\b"
    # An arm alone is read after a number only: XP is a disease.
    r"|(?<![\w.-])(?:chromosome\s*|chr)?(?P<band>\d{1,2}(?=[pq])|[xy](?=[pq](?:\d|ter|cen)))[pq](?:\d[\d.]*|ter|cen)?"
    r"(?:-?[pq]?(?:\d[\d.]*|ter|cen))?(?!\w)"
    r"|(?P<letter>\b[xy])[\s-]chromosome\b"
    r"|\b(?P<mito>mitochondri(?:al|on)(?=$|[\s-](?:dna|genome|chromosome))|mtdna)\b"
)
_BARE = re.compile(
    rf"(?:(?:human|autosome)\s+)?(?:chr(?:om)?\.?\s*)?{_CHROMOSOME_NAME}(?:\s*(?:,|\||/|;|and|or|&)+\s*{_CHROMOSOME_NAME})*"
)
# After 'chromosome', these are words of a sentence and not names.
_NOT_NAMES: Final = frozenset({"a"})


def _chromosome(name: str) -> str | None:
    name = {"M": "MT"}.get(name.upper(), name.upper().lstrip("0"))
    return name if name in CHROMOSOMES else None


def chromosomes_in(prose: str) -> list[str | None]:
    """Chromosomes that a text names as such or by a band, in order; None for a name that does not exist."""
    found: list[str | None] = []
    for match in _MENTION.finditer(words_to_digits(fold(prose))):
        if match["mito"]:
            found.append("MT")
            continue
        names = match["names"] or match["ordinal"] or match["band"] or match["letter"]
        found += [_chromosome(n) for n in re.findall(rf"\b{_CHROMOSOME_NAME}\b", names) if n not in _NOT_NAMES]
    return found


def chromosome(answer: str) -> str | None:
    """``1`` to ``22``, ``X``, ``Y`` or ``MT``; several, sorted and joined by ``|``; None for anything else."""
    folded = words_to_digits(fold(answer)).strip(" .,;:\"'()*")
    if _BARE.fullmatch(folded):
        names = re.findall(
            rf"\b{_CHROMOSOME_NAME}\b", re.sub(r"^(?:human |autosome )?\s*(?:chr(?:om)?\.?\s*)?", "", folded)
        )
        found = [_chromosome(n) for n in names]
    else:
        found = chromosomes_in(folded)
    if not found or None in found:
        return None
    return "|".join(sorted({c for c in found if c}, key=CHROMOSOMES.index))


_BAND_PART = r"[pq](?:\d{1,2}(?:\.\d{1,3})?|ter|cen)?"
_BAND = re.compile(
    rf"(?:chromosome\s*|chr\s*)?(?P<chr>\d{{1,2}}|x|y)[\s,:-]*(?:band\s*)?(?P<low>{_BAND_PART})"
    rf"(?:\s*-?\s*(?:(?P=chr))?(?P<high>{_BAND_PART}))?"
)
_ARM = re.compile(
    r"(?:on )?(?:the )?(long|short) (?:\([pq]\) )?arm of (?:the )?(?:human )?(?:chromosome )?(\d{1,2}|x|y)"
    r"(?: chromosome)?"
)


def cytoband(answer: str) -> str | None:
    """A cytogenetic location such as ``15q21.1`` or ``Xp21.2-p11.23``; a range over one band is that band."""
    folded = fold(answer).strip(" .,;:\"'()*")
    if arm := _ARM.fullmatch(folded):
        return f"{arm[2].upper()}{'q' if arm[1] == 'long' else 'p'}" if _chromosome(arm[2]) else None
    match = _BAND.fullmatch(folded)
    if not match or not (name := _chromosome(match["chr"])):
        return None
    low, high = match["low"], match["high"]
    return f"{name}{low}-{high}" if high and high != low else f"{name}{low}"


def location(answer: str) -> str | None:
    """A cytogenetic location in its standard spelling, any other place as free text."""
    return cytoband(answer) or text(answer)


# --- genes and other names

_GENE_WORDS = re.compile(
    r"^(?:(?:mutations?|variants?|defects?|deletions?) (?:in|of) )?(?:the )?(?:human )?(?:gene (?=\S+$))?"
    r"(.+?)(?: (?:genes?|locus))?$",
    re.IGNORECASE,
)
# 'CFTR mutation' names a gene, 'missense mutation' a kind of mutation.
_MUTATION_OF = re.compile(r"^(?:the )?([A-Z][A-Za-z]*[A-Z0-9][\w-]*)(?: gene)? (?:mutations?|variants?)$")


def gene(answer: str) -> str | None:
    """A gene name without article, the words gene and mutation, or an explanation in brackets at its end."""
    bare = _until_stable(_gene_name, tidy(answer))
    return bare if normalise(bare) else None


def _gene_name(answer: str) -> str:
    cleaned = text(answer) or ""
    bare = _PAREN_END.sub("", cleaned) or cleaned
    match = _MUTATION_OF.match(bare) or _GENE_WORDS.match(bare)
    return match[1] if match and normalise(match[1]) else bare


_FIELDS: Final = (
    (re.compile(r"ologists?$"), "ology"),
    (re.compile(r"iatrists?$"), "iatry"),
    (re.compile(r"(?<=ediatric)ians?$"), "s"),
    (re.compile(r"(?<=[Ss]urg)eons?$"), "ery"),
    (re.compile(r"(?<=[Gg]enetic)ists?$"), "s"),
    (re.compile(r"(?<=[Oo]bstetric)ians?$"), "s"),
    (re.compile(r"(?<=[Dd]ent)ists?$"), "istry"),
)


def field(answer: str) -> str | None:
    """The field of a specialist, Cardiology for Cardiologist; any other name as free text."""
    name = text(answer)
    for ending, field_ending in _FIELDS:
        if name and ending.search(name):
            return ending.sub(field_ending, name)
    return name


def name_key(answer: str) -> str:
    """Comparison key of a molecule's name: IL-2, IL2, il-2 and IL 2 are one, IL2 and IL12 are two."""
    return compact(tokens(answer))


def number(answer: str) -> str | None:
    """The number with bound, range and unit as digits: ``1300``, ``20%``, ``5-10 kb``; None if there is none."""
    quantity = parse_quantity(answer)
    return quantity.text if quantity else None


class AliasTable:
    """Groups of names that mean the same, for lenient comparison.

    A name of at most three characters matches only in its exact spelling: folding it would make the alias
    ``H-B`` equal to the word ``Hb``.
    """

    def __init__(self, groups: Iterable[Iterable[str]]) -> None:
        self._groups: dict[str, set[int]] = {}
        for i, group in enumerate(groups):
            for name in group:
                self._groups.setdefault(self._key(name), set()).add(i)

    @staticmethod
    def _key(name: str) -> str:
        name = tidy(name)
        # The sign keeps exact spellings apart from folded ones.
        return "=" + name if len(name) <= 3 else name_key(name)

    def same(self, one: str, other: str) -> bool:
        """Whether a group holds both names."""
        return not self._groups.get(self._key(one), set()).isdisjoint(self._groups.get(self._key(other), set()))
