"""Entities and triples without a language model: a dictionary of names, and patterns between their mentions."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from medhop_dspy.answers.textnorm import sentences
from medhop_dspy.errors import SettingsError
from medhop_dspy.graph import names as name_rules
from medhop_dspy.graph import phrases, vocabulary
from medhop_dspy.graph.names import key, words
from medhop_dspy.graph.records import Entity, Extraction, Triple
from medhop_dspy.graph.triples import usable_name
from medhop_dspy.graph.vocabulary import aliases, collect, title_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from types import ModuleType

    from medhop_dspy.graph.records import Source
    from medhop_dspy.graph.vocabulary import Titled
    from medhop_dspy.knowledge.orphanet import Orphanet
    from medhop_dspy.trace import Passage

ALSO_KNOWN_AS: Final = "also known as"
WEAK: Final = "mentioned with"
"""The relation of a passage's title to entities that no sentence of the passage relates to anything."""

# Raise it where the rules below, or those of names, phrases, vocabulary or triples change in more than a regular
# expression: cached extractions are stale.
_RULES: Final = 4
_SYMBOL: Final = re.compile(r"(?=\S*(?:\S[A-Z]|\d))\S+")
_FOLDABLE: Final = 4  # a symbol with a digit and at least so many characters is no word in lower case either
_LONGEST_ACRONYM: Final = 7  # letters; a longer one is no word in lower case
_NUMBERED: Final = re.compile(r"\+|[-\u2010-\u2013](?:\d|[α-ω](?!\w)|(?:alpha|beta|gamma|delta|kappa)\b)")
_MAX_GROUP: Final = 6  # coordinated mentions that share a relation


class Mention(NamedTuple):
    """Where a text holds a name: ``text[start:end]``, whose spelling may differ from the dictionary's ``name``."""

    start: int
    end: int
    name: str


class Matcher:
    """Finds the names of a dictionary in texts; safe for threads.

    Names match as whole words, whatever their case, hyphens, diacritics, Greek letters and possessive ``'s``, see
    :func:`~medhop_dspy.graph.names.key`; ``IL`` is not in "IL-2". Symbols that could be words, such as ``CAT``, ``WAS``
    or ``C3``, match in their exact case only. Pronouns and words such as "patient" never match.
    """

    def __init__(self, names: Iterable[str]) -> None:
        """Look for ``names``; of those with one key the exact spelling is reported, or else the first.

        Raises:
            SettingsError: the library pyahocorasick is not installed.
        """
        try:
            import ahocorasick
        except ImportError as error:
            raise SettingsError(
                "the dictionary needs the library pyahocorasick, which is not installed",
                hint="Install medhop-dspy with its extra `graph`.",
            ) from error
        spellings: defaultdict[str, list[str]] = defaultdict(list)
        for name in dict.fromkeys(names):
            if usable_name(name) and len(key(name)) > 1:  # a lone letter or digit names nothing
                spellings[_joined(name)[0]].append(name)
        self._automaton = ahocorasick.Automaton()
        for joined, group in spellings.items():
            self._automaton.add_word(joined, (len(joined), group))
        self._automaton.make_automaton()

    def find(self, text: str) -> list[Mention]:
        """Mentions in the order of the text, none overlapping: the leftmost counts, then the longest."""
        chosen: list[Mention] = []
        for mention in sorted(self._all(text), key=lambda m: (m.start, -m.end)):
            if not chosen or mention.start >= chosen[-1].end:
                chosen.append(mention)
        return chosen

    def _all(self, text: str) -> Iterator[Mention]:
        if not len(self._automaton):  # an empty one cannot be searched
            return
        joined, starts, ends = _joined(text)
        for last, (length, group) in self._automaton.iter(joined):
            start, end = starts.get(last - length + 2), ends.get(last)
            if start is None or end is None or not _whole(text, start, end):
                continue
            surface = text[start:end]
            fitting = [name for name in group if not _is_symbol(name) or _plain(name) == _plain(surface)]
            if fitting:
                yield Mention(start, end, surface if surface in fitting else fitting[0])


def _joined(text: str) -> tuple[str, dict[int, int], dict[int, int]]:
    """The parts of all words with a space around each; where words begin and end there, by their places in it."""
    pieces, starts, ends, length = [" "], {}, {}, 1
    for word in words(text):
        piece = " ".join(word.parts) + " "
        starts[length] = word.start
        length += len(piece)
        ends[length - 1] = word.end
        pieces.append(piece)
    return "".join(pieces), starts, ends


def _whole(text: str, start: int, end: int) -> bool:
    """Whether no letter, digit or number of a sibling stands directly beside the span."""
    return not (
        (_joins(text[start - 1 : start]) and _joins(text[start]))
        or (_joins(text[end : end + 1]) and _joins(text[end - 1]))
        or _NUMBERED.match(text, end)
    )


def _joins(char: str) -> bool:
    """Whether a character belongs to the word of its neighbours; Chinese and Japanese ones stand alone."""
    return char.isalnum() and not "\u3040" <= char <= "\u9fff"


def _is_symbol(name: str) -> bool:
    """Whether a name is a symbol or acronym that could be an ordinary word, or chemistry, in another case."""
    if not (name.isascii() and _SYMBOL.fullmatch(name)):
        return False
    if any(c.isdigit() for c in name):
        return len(name) < _FOLDABLE
    return len(name) <= _LONGEST_ACRONYM


def _plain(name: str) -> str:
    return "".join(c for c in name if c.isalnum())


class DictionaryExtractor:
    """Entities are mentions of known names; triples are verb phrases between mentions that stand close together.

    The subject of a sentence such as "It is caused by ..." is the passage's title. Entities that no phrase relates to
    anything are related to the title by :data:`WEAK`.
    """

    source: Source = "dictionary"

    def __init__(self, names: Mapping[str, str]) -> None:
        """Look for ``names``, each with its type or the empty string.

        Raises:
            SettingsError: the library pyahocorasick is not installed.
        """
        self.names = dict(names)
        self._matcher = Matcher(self.names)

    @classmethod
    def for_corpus(cls, documents: Iterable[Titled], orphanet: Orphanet | None = None) -> DictionaryExtractor:
        """With the names that ``documents`` give things, see :func:`~medhop_dspy.graph.vocabulary.collect`.

        Args:
            documents: Documents or all their passages.
            orphanet: Its disorders and genes are known too.
        """
        return cls(collect(documents, orphanet))

    @property
    def digest(self) -> str:
        """Hex SHA-256 of names, types and rules."""
        rules = [_RULES, *map(_patterns, (sys.modules[__name__], name_rules, phrases, vocabulary))]
        state = [rules, sorted(self.names.items())]
        return hashlib.sha256(json.dumps(state).encode()).hexdigest()

    def extract(self, passage: Passage) -> Extraction:
        """The title, where it is a known name, and all names in the text, with the triples between them."""
        subject = title_name(passage.title)
        title = self._known(subject)
        mentioned = {title: None} if title else {}
        found = _Pairs()
        for name, alias in aliases(subject, passage.text):
            if (one := self._known(name)) and (other := self._known(alias)) and self._may_be_one(one, other):
                found.add(one, ALSO_KNOWN_AS, other)
        for sentence in sentences(passage.text):
            mentions = self._matcher.find(sentence)
            mentioned |= dict.fromkeys(m.name for m in mentions)
            for triple in _stated(sentence, mentions, title, self.names.get(title, "")):
                found.add(*triple)
        for name in mentioned:
            if title and not found.has(name):
                found.add(title, WEAK, name)
        names = dict.fromkeys([*mentioned, *found.names()])
        return Extraction(tuple(Entity(name, self.names[name]) for name in names), found.triples(), self.source)

    def _known(self, text: str) -> str:
        """The name that ``text`` is a spelling of, if it is one; else the empty string."""
        found = self._matcher.find(text)
        return found[0].name if found and found[0][:2] == (0, len(text)) else ""

    def _may_be_one(self, one: str, other: str) -> bool:
        """False for a gene and the disease that has its symbol."""
        return len({self.names[one], self.names[other]} - {""}) < 2


def _patterns(module: ModuleType) -> list[list[object]]:
    """Name, text and flags of every regular expression of a module, by name."""
    found = [(name, value) for name, value in vars(module).items() if isinstance(value, re.Pattern)]
    return [[name, pattern.pattern, pattern.flags] for name, pattern in sorted(found, key=lambda item: item[0])]


class _Pairs:
    """The first relation between any two names, whose keys differ."""

    def __init__(self) -> None:
        self._by_pair: dict[frozenset[str], Triple] = {}

    def add(self, subject: str, relation: str, object_: str) -> None:
        if key(subject) != key(object_):
            self._by_pair.setdefault(frozenset((key(subject), key(object_))), Triple(subject, relation, object_))

    def has(self, name: str) -> bool:
        return any(key(name) in pair for pair in self._by_pair)

    def triples(self) -> tuple[Triple, ...]:
        return tuple(self._by_pair.values())

    def names(self) -> Iterator[str]:
        return (name for triple in self._by_pair.values() for name in (triple.subject, triple.object))


def _stated(sentence: str, mentions: Sequence[Mention], title: str, title_type: str) -> Iterator[tuple[str, str, str]]:
    """Subject, relation and object of what the phrases between the mentions of a sentence say."""
    named, has = {key(m.name) for m in mentions}, False
    if title and key(title) not in named:
        end, whole = phrases.implicit_subject(sentence, title_type)
        if end and not (mentions and mentions[0].start < end):
            mentions, has = [Mention(0, end, title), *mentions], not whole
        elif mentions and (relation := phrases.before_mention(sentence[: mentions[0].start])):
            yield title, relation, mentions[0].name
    groups = _coordinated(sentence, mentions)
    for number, (before, after) in enumerate(pairwise(groups)):
        gap = sentence[before[-1].end : after[0].start]
        # Of "The cause lies in A and is found in B" only the first is about the title.
        if relation := (phrases.role if has and not number else phrases.relation)(gap):
            subjects = groups[0] if phrases.continues(gap) and not has else before
            yield from (
                (one.name, relation, other.name) for one in subjects[:_MAX_GROUP] for other in after[:_MAX_GROUP]
            )


def _coordinated(sentence: str, mentions: Sequence[Mention]) -> list[list[Mention]]:
    """Mentions in groups: those that only a comma, "and" or "or" parts belong together."""
    groups: list[list[Mention]] = []
    for mention in mentions:
        if groups and phrases.is_conjunction(sentence[groups[-1][-1].end : mention.start]):
            groups[-1].append(mention)
        else:
            groups.append([mention])
    return groups
