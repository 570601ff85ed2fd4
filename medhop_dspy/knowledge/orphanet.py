"""Rare-disease names and genes from Orphanet: they steer queries and are never evidence."""

from __future__ import annotations

import logging
import re
import unicodedata
from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, NamedTuple

from medhop_dspy.errors import CorpusError, InputError
from medhop_dspy.knowledge.readers import READERS, read_file
from medhop_dspy.knowledge.records import Disorder, GeneLink, code_of, merge

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from medhop_dspy.settings import Settings

__all__ = ["Disorder", "Expansion", "GeneLink", "Orphanet"]

_log = logging.getLogger(__name__)

_OBSOLETE: Final = "OBSOLETE:"
_ACRONYM_LENGTH: Final = 4
_APOSTROPHES: Final = str.maketrans(
    dict.fromkeys("\u2019\u2018\u201b\u02bc\u2032`\u00b4\uff07", "'") | dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060")
)
# Letters that Unicode does not decompose, and Greek ones, which names spell out as often as not.
_LETTERS: Final = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "æ": "ae", "œ": "oe", "\u0131": "i"}
    | {chr(c): unicodedata.name(chr(c)).split()[-1].lower() for c in range(0x3B1, 0x3CA)}
)
_TOKEN = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_ROMAN = re.compile(r"(x?(?:ix|iv|v?i{0,3}))([a-h]?)")
_ROMAN_VALUES: Final = {"i": 1, "v": 5, "x": 10}


@dataclass(frozen=True, slots=True)
class Expansion:
    """What Orphanet adds to one question; empty if it names no known disorder.

    Attributes:
        disorders: Disorders named in the question, in the order of :meth:`Orphanet.find`.
        terms: Search terms: the first term of each disorder, then the second of each, and so on, without repetition.
            A disorder's terms are its name, then synonyms and causal gene symbols in turn; acronyms of up to four
            characters are too ambiguous to search for and left out.
        genes: Causal gene symbols to offer to a gene hop: the first of each disorder, then the second of each, ...
    """

    disorders: tuple[Disorder, ...] = ()
    terms: tuple[str, ...] = ()
    genes: tuple[str, ...] = ()


class Orphanet:
    """An immutable table of disorders with search by code and by name; safe to share between threads.

    Build it with :meth:`load`, or from records. The same files always give the same table and answers.
    """

    def __init__(self, disorders: Iterable[Disorder]) -> None:
        self._by_code = merge(disorders)

    @classmethod
    def load(cls, path: Path) -> Orphanet:
        """Read a file, or all XML, xlsx, CSV and TSV files of a folder (not of its subfolders) by ascending name.

        Read are Orphadata's nomenclature (product 1, or the workbook of the nomenclature pack), its genes (product 6)
        and GARD's gene table; records of one code are joined. GARD's rows that have an OMIM number instead of an
        ORPHAcode are left out.

        Raises:
            CorpusError: if nothing is there, or a file cannot be read or holds no disorder.
        """
        files = _files(path)
        table = cls(record for file in files for record in read_file(file))
        nameless = sum(not d.name for d in table)
        if nameless:
            _log.warning("%s: %d of %d disorders have no name and cannot be found by it", path, nameless, len(table))
        return table

    def __deepcopy__(self, memo: dict[int, object]) -> Orphanet:
        """Itself: optimisers copy the modules that hold it, and nothing in it changes."""
        return self

    def __len__(self) -> int:
        return len(self._by_code)

    def __iter__(self) -> Iterator[Disorder]:
        """Disorders by ascending code."""
        return iter(self._by_code.values())

    def lookup(self, code: str | int) -> Disorder:
        """The disorder of an ORPHAcode: ``558``, ``"558"``, ``"ORPHA:558"``, ``"ORPHA558"`` or ``"Orphanet_558"``.

        Raises:
            InputError: if that is no ORPHAcode, or none of this table.
        """
        digits = code_of(code)
        if not digits:
            raise InputError(f"{code!r} is not an ORPHAcode", hint="Write it as 558 or ORPHA:558.")
        if digits not in self._by_code:
            raise InputError(f"ORPHA:{digits} is not among the {len(self)} disorders read", hint="Check the number.")
        return self._by_code[digits]

    def find(self, text: str, limit: int) -> list[Disorder]:
        """Disorders that ``text`` names, at most ``limit``, by position, then code; each once.

        Names and synonyms match as whole words, whatever their case, hyphens, dashes, apostrophes, possessive ``'s``,
        diacritics, Greek letters or Roman numerals after "type"; names written as acronyms of up to four characters
        match in their exact case only. Of overlapping names the leftmost counts, then the longest.

        Raises:
            InputError: if ``limit`` is negative.
        """
        if limit < 0:
            raise InputError(f"limit is {limit}, wanted 0 or more", hint="Give the largest number of disorders.")
        codes = dict.fromkeys(self._names.mentions(text))
        return [self._by_code[c] for c in list(codes)[:limit]]

    def subtypes(self, disorder: Disorder) -> list[Disorder]:
        """Other disorders with a name that continues or ends in this one's preferred name, by ascending code.

        "Marfan syndrome type 1" and "Neonatal Marfan syndrome" are subtypes of "Marfan syndrome".
        """
        codes = self._names.extensions(disorder.name) - {disorder.code}
        return [self._by_code[c] for c in sorted(codes, key=int)]

    def gene_symbols(self, disorder: Disorder) -> tuple[str, ...]:
        """Symbols of its causal genes in their order or, if it has none, of its subtypes' causal genes.

        Orphanet records genes at the most specific level: Marfan syndrome itself has none, its types 1 and 2 have.
        """
        holders = [disorder] if disorder.causal_genes else self.subtypes(disorder)
        return tuple(dict.fromkeys(g.symbol for d in holders for g in d.causal_genes))

    def expand(self, question: str, settings: Settings) -> Expansion:
        """Names and causal genes of the disorders named in ``question``, within the ``expansion_*`` caps.

        ``gene_candidates`` caps the genes. Whether to expand at all (``use_expansion``, ``use_gene_hints``) is the
        caller's decision.
        """
        disorders = self.find(question, settings.expansion_disorders)
        genes = [self.gene_symbols(d)[: settings.expansion_genes] for d in disorders]
        terms = [_terms(d, symbols) for d, symbols in zip(disorders, genes, strict=True)]
        return Expansion(
            disorders=tuple(disorders),
            terms=_in_turn(terms)[: settings.expansion_terms],
            genes=_in_turn(genes)[: settings.gene_candidates],
        )

    @cached_property
    def _names(self) -> _NameIndex:
        return _NameIndex(self)


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise CorpusError(f"{path}: no such file or folder", hint="Point the setting `orphanet` at Orphadata files.")
    # Office programs keep a hidden "~$name.xlsx" beside an open workbook.
    files = [f for f in path.iterdir() if f.suffix.lower() in READERS and not f.name.startswith((".", "~$"))]
    if not files:
        raise CorpusError(
            f"{path}: holds none of {', '.join(READERS)} files, 0 disorders parsed", hint="See Orphadata."
        )
    return sorted(files, key=lambda f: f.name)


def _terms(disorder: Disorder, symbols: Sequence[str]) -> tuple[str, ...]:
    names = [s for s in disorder.synonyms if not _is_acronym(s)]
    return (disorder.name, *_in_turn([names, symbols]))


def _in_turn(lists: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The first item of each list, then the second of each, ...; items that differ in case only count once."""
    items = (item for rank in zip_longest(*lists) for item in rank if item)
    seen: dict[str, str] = {}
    for item in items:
        seen.setdefault(item.casefold(), item)
    return tuple(seen.values())


class _Token(NamedTuple):
    key: str
    start: int
    end: int


class _NameIndex:
    """Names as sequences of normalised tokens, so that a text costs (its tokens x the longest name) look-ups."""

    def __init__(self, disorders: Iterable[Disorder]) -> None:
        self._entries: dict[tuple[str, ...], list[tuple[str, str]]] = defaultdict(list)  # tokens: (code, exact form)
        self._longest: dict[str, int] = {}  # first token: number of tokens of the longest name
        for disorder in disorders:
            if not disorder.name.startswith(_OBSOLETE):
                for name in (disorder.name, *disorder.synonyms):
                    self._add(name, disorder.code)
        keys = [(k, {c for c, _ in entries}) for k, entries in self._entries.items()]
        self._forwards = sorted((" ".join(k), sorted(c)) for k, c in keys)
        self._backwards = sorted((" ".join(reversed(k)), sorted(c)) for k, c in keys)

    def _add(self, name: str, code: str) -> None:
        cleaned = _cleaned(name)
        key = tuple(t.key for t in _tokens(cleaned))
        if len("".join(key)) < 2:  # a lone letter or digit names nothing
            return
        self._entries[key].append((code, cleaned if _is_acronym(cleaned) else ""))
        self._longest[key[0]] = max(len(key), self._longest.get(key[0], 0))

    def mentions(self, text: str) -> Iterator[str]:
        """Codes of the names in ``text``, by position, then code."""
        cleaned = _cleaned(text)
        tokens = _tokens(cleaned)
        keys = tuple(t.key for t in tokens)
        start = 0
        while start < len(keys):
            end = min(len(keys), start + self._longest.get(keys[start], 0))
            codes: list[str] = []
            while end > start and not codes:
                surface = cleaned[tokens[start].start : tokens[end - 1].end].removesuffix("'s")
                entries = self._entries.get(keys[start:end], ())
                codes = [code for code, exact in entries if exact in ("", surface)]
                end -= not codes
            yield from sorted(codes, key=int)
            start = max(end, start + 1)

    def extensions(self, name: str) -> set[str]:
        """Codes of the names that start or end with ``name`` and have more tokens."""
        key = [t.key for t in _tokens(_cleaned(name))]
        if not key:
            return set()
        return {*_starting(self._forwards, " ".join(key)), *_starting(self._backwards, " ".join(reversed(key)))}


def _starting(names: list[tuple[str, list[str]]], prefix: str) -> Iterator[str]:
    for name, codes in names[bisect_left(names, (prefix + " ", [])) :]:
        if not name.startswith(prefix + " "):
            return
        yield from codes


def _cleaned(text: str) -> str:
    """One kind of apostrophe, no invisible characters, composed letters, so that a word is one run of letters."""
    return unicodedata.normalize("NFC", text.translate(_APOSTROPHES))


def _tokens(cleaned: str) -> list[_Token]:
    tokens: list[_Token] = []
    for match in _TOKEN.finditer(cleaned):
        key = _key(match[0])
        if tokens and tokens[-1].key == "type":
            key = _arabic(key)
        tokens.append(_Token(key, match.start(), match.end()))
    return tokens


def _key(word: str) -> str:
    bare = word.casefold().removesuffix("'s").replace("'", "")
    decomposed = unicodedata.normalize("NFKD", bare)
    return "".join(c for c in decomposed if not unicodedata.combining(c)).translate(_LETTERS)


def _arabic(key: str) -> str:
    """``iiia`` as ``3a``; anything that is no Roman numeral below 20 with at most one letter, unchanged."""
    match = _ROMAN.fullmatch(key)
    if not match or not match[1]:
        return key
    values = [_ROMAN_VALUES[c] for c in match[1]]
    total = sum(-v if v < max(values[i:]) else v for i, v in enumerate(values))
    return f"{total}{match[2]}"


def _is_acronym(name: str) -> bool:
    """Whether a name of up to four characters is written as no ordinary word is: ``CF``, ``vEDS``, ``C3G``."""
    return len(name) <= _ACRONYM_LENGTH and any(c.isupper() or c.isdigit() for c in name[1:])
