"""When two names are one entity: words, keys and kinds of names.

Nothing made here is shown to a user.
"""

from __future__ import annotations

import re
import unicodedata
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final, NamedTuple

from medhop_dspy.answers.textnorm import compact, fold, spell_greek, strip_article, word_set

# Marks are no letters to Python, yet parts of words in scripts whose vowels are marks.
_MARKS: Final = (
    "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0900-\u0903\u093a-\u094f\u0981-\u0dff\u0e31-\u0e4e\u0eb1-\u0ece"
    "\u0f71-\u0f84\u102b-\u103e\u17b4-\u17d3\u3099\u309a"
)
_GREEK: Final = "\u0370-\u03ff\u1f00-\u1fff"
_LETTER: Final = rf"(?:[^\W\d_]|[{_MARKS}])"
_WORD: Final = re.compile(
    # Chinese and Japanese have no spaces: every character may begin or end a name.
    rf"[\u3040-\u3098\u309b-\u30ff\u3400-\u9fff]|[{_GREEK}]+|(?:(?![{_GREEK}\u3040-\u30ff\u3400-\u9fff]){_LETTER})+"
    r"|\d+(?:\.\d+)*|\+"
)
_PART: Final = re.compile(rf"\d+(?:\.\d+)*|{_LETTER}+|\+")
_POSSESSIVE: Final = re.compile(r"['’ʼ`´＇]s(?![^\W_])")
_NUMERALS: Final = "i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx"
_ROMAN: Final = {numeral: str(number) for number, numeral in enumerate(_NUMERALS.split(), start=1)}
_ROMAN_WITH_LETTER: Final = re.compile(rf"({'|'.join(sorted(_ROMAN, key=len, reverse=True))})([a-h]?)")
# Words before which a letter out of i, v and x is a numeral.
_COUNTED: Final = word_set("type types subtype factor class grade stage group form complex phase")
_GREEK_NAMES: Final = frozenset(spell_greek("α β γ δ ε ζ η θ ι κ λ μ ν ξ ο π ρ σ τ υ φ χ ψ ω").split())
_SYMBOL: Final = re.compile(r"(?=.*[A-Z])[A-Z0-9][A-Za-z0-9]*[A-Z0-9][A-Za-z0-9]*|[A-Z]")
_ALIKE: Final = 0.8  # share of letters that two spellings of one word have in common

# What may be told apart by kind. Gene and product share names, and so do a drug and its substance: they are one kind.
_KINDS: Final = {
    "disease": "disease disorder syndrome condition illness infection cancer tumour tumor symptom sign phenotype "
    "finding deficiency",
    "gene": "gene protein enzyme receptor peptide antibody hormone allele variant mutation locus rna",
    "chemical": "chemical drug medication medicine compound substance vitamin metabolite treatment therapy vaccine",
    "organism": "organism animal species bacterium bacteria virus parasite fungus plant insect vector",
    "anatomy": "anatomy organ tissue cell bone muscle nerve fluid gland vessel structure",
    "chromosome": "chromosome chromosomal cytogenetic",
    "procedure": "procedure test surgery operation imaging examination method technique",
    "person": "person scientist physician researcher author people",
    "place": "place country city region institution organization organisation company journal publisher",
}
_KIND_OF: Final = {word: kind for kind, words in _KINDS.items() for word in words.split()}
_BAND_OF: Final = re.compile(r" bands?$")  # of a chromosome or of musicians: the word before it tells
KINDS: Final = tuple(_KINDS)
"""What :func:`kind` can return besides the empty string."""


class Word(NamedTuple):
    """A word of a text, from ``start`` to ``end``; ``parts`` are its folded letter and digit runs."""

    parts: tuple[str, ...]
    start: int
    end: int


def words(text: str) -> list[Word]:
    """The words of a text, in order: runs of letters or of digits, single Chinese characters, and plus signs.

    Case, diacritics, dashes, possessive ``'s`` and the way in which Greek letters are written do not matter, nor
    whether the number after a word such as "type" is Roman.
    """
    found: list[Word] = []
    text = _POSSESSIVE.sub(lambda m: " " * len(m[0]), text)
    for match in _WORD.finditer(text):
        parts = _parts(match[0])
        if found and len(parts) == 1 and found[-1].parts[-1] in _COUNTED:
            parts = _arabic(parts[0])
        if parts:
            found.append(Word(parts, match.start(), match.end()))
    return found


@lru_cache(maxsize=65536)
def _parts(word: str) -> tuple[str, ...]:
    return tuple(_PART.findall(spell_greek(fold(word))))


def _arabic(word: str) -> tuple[str, ...]:
    """``iiia`` as ``3``, ``a``; anything but a numeral up to 20, with a letter at most, unchanged."""
    match = _ROMAN_WITH_LETTER.fullmatch(word)
    return tuple(filter(None, (_ROMAN[match[1]], match[2]))) if match else (word,)


@lru_cache(maxsize=65536)
def key(name: str) -> str:
    """The key under which the spellings of a name meet; for comparison only.

    Case, diacritics, spaces, hyphens, possessive ``'s`` and a leading article do not matter, a Greek letter is its
    name, a Roman numeral after "type" and its like a number: ``TNF-α`` and ``TNF alpha`` are one, ``IL2`` and ``IL-2``
    too; ``TNF-α`` and ``TNF-β`` are two. Not empty for any name that holds a letter or a digit of any script.
    """
    parts = [part for word in words(strip_article(name.strip())) for part in word.parts]
    if not parts and any(c.isalnum() for c in name):
        return unicodedata.normalize("NFKC", name).casefold().strip()
    return compact(parts)


def kind(name: str) -> str:
    """The kind that the name of an entity type means, out of nine; empty where it means none or anything.

    ``enzyme`` is ``gene``, as gene and product share their names; ``animal`` is ``organism``.
    """
    folded = _BAND_OF.sub("", name.casefold().replace("_", " "))
    word = folded.rpartition(" ")[2]
    return next((_KIND_OF[form] for form in (word, word[:-1], word[:-2]) if form in _KIND_OF), "")


def numbered_siblings(one: str, other: str) -> bool:
    """Whether two names differ in a number, single letter or Greek letter while their words are alike.

    Such names are never synonyms, however close their embeddings: type 1 and type 2, ``FBN1`` and ``FBN2``,
    ``TNF-alpha`` and ``TNF-beta``, ``HEXA`` and ``HEXB``, but also a disease and its type 1. Symmetric; False for two
    spellings of one name.
    """
    if key(one) == key(other):
        return False
    if _SYMBOL.fullmatch(one) and _SYMBOL.fullmatch(other) and _one_letter_apart(one.casefold(), other.casefold()):
        return True
    (first, first_marks), (second, second_marks) = _split(one), _split(other)
    return sorted(first_marks) != sorted(second_marks) and _alike(first, second)


def _split(name: str) -> tuple[list[str], list[str]]:
    """The words that carry a name's sense, and the numbers and letters that count it."""
    parts = [part for word in words(strip_article(name)) for part in word.parts]
    marks = [part for part in parts if part[0].isdigit() or (len(part) == 1 and part != "+") or part in _GREEK_NAMES]
    return [part for part in parts if part not in marks and part not in _COUNTED], marks


def _alike(first: list[str], second: list[str]) -> bool:
    """Whether one has all words of the other, or both are spelled nearly alike."""
    one, other = set(first), set(second)
    return one <= other or other <= one or SequenceMatcher(None, " ".join(first), " ".join(second)).ratio() >= _ALIKE


def _one_letter_apart(one: str, other: str) -> bool:
    return len(one) == len(other) and sum(a != b for a, b in zip(one, other, strict=True)) == 1
