"""The names that a corpus gives things: titles, aliases, abbreviations, gene symbols, chromosomes."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING, Final, Protocol

from medhop_dspy.answers.canonical import CHROMOSOMES
from medhop_dspy.answers.textnorm import sentences, word_set
from medhop_dspy.graph.names import key, kind, words
from medhop_dspy.graph.triples import usable_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from medhop_dspy.knowledge.orphanet import Orphanet

_MAX_WORDS: Final = 12  # of a name
_BRACKETS_END: Final = re.compile(r"\s*[(\[][^()\[\]]*[)\]]\s*$")
_SYMBOL: Final = r"(?:[A-Z][A-Z0-9]+(?:-[A-Z0-9]+)?|C\d+orf\d+)"
_IS_SYMBOL: Final = re.compile(_SYMBOL)
_GENE: Final = re.compile(
    rf"\b(?:genes?(?: called)? (?P<after>{_SYMBOL})|(?P<before>{_SYMBOL}) genes?|(?P<subject>{_SYMBOL}) encodes"
    rf"|(?i:mutations?|variants?|deletions?) (?:in|of) (?:the )?(?:gene )?(?P<mutated>{_SYMBOL}))(?![\w-])"
)
_BAND: Final = re.compile(r"(?<![\w.])(?:[1-9]|1\d|2[0-2]|[XY])[pq]\d{1,2}(?:\.\d+)?(?!\w)")
_DEFINITION: Final = re.compile(r"\b(?:is|are|was|were)\s+(?:an?|the|one of the)\s+(?P<phrase>(?:[\w-]+\s*){1,8})")
_PHRASE_END: Final = re.compile(r"\b(?:of|that|which|who|in|on|by|for|from|with|and|to|made|found|caused)\b")
_DISEASE: Final = re.compile(
    r"\w+(?:(?<!mit)(?<!mei)(?<!apopt)(?<!cyt)osis|itis|oma|a?emia|uria|philia|pathy|plasia|trophy|ataxia|palsy|plegia|algia)"
)
_COUNT: Final = re.compile(r"(?:,?\s+type)?\s+[\dIVX]+[A-Z]?\d*$")
_ENZYME: Final = re.compile(r"\w{3}(?<!dise)(?<!rele)ase(?: [\dA-Z]{1,3})?$")
_PERSON: Final = re.compile(r"(?:ist|ician|surgeon|physician|scientist|nurse|king)$")

_SHORT: Final = re.compile(r"\(([^\s()]{2,10})(?:[;,][^()]*)?\)")
_LEAD: Final = re.compile(
    r"\s*(?:\((?P<brackets>[^()]{2,80})\)"
    r"|,\s*(?:or|(?:also|otherwise|formerly|commonly)\s+(?:known\s+as|called|named|termed))\s+(?P<other>[^,;.()]{2,60})[,(])"
)
_CUE: Final = re.compile(
    r"\b(?:(?:known|written|listed|appears) as|written|called|termed|abbreviated(?: as| to)?|goes by|symbol(?: is)?"
    r"|(?P<names>(?:names|symbols|terms|synonyms|aliases)(?: (?:for|in|used) \w+)? (?:include|are)))\s+"
    r"(?P<list>[^;:]+?)(?: too)?(?P<end>\.?)$",
    re.IGNORECASE,
)
_FULL_NAME: Final = re.compile(
    r"(?:\b(?P<it>(?:its |the )?(?:full name(?: is)?|name is written out as))|stands for)\s+(?P<name>[^;:]+?)"
    r"(?:,\s+an?\s[^,]*)?\.$",
    re.IGNORECASE,
)
_FOLLOWED: Final = re.compile(r"^(?P<list>[^;:]+?) (?:can|may) stand for it\b")
# Between what is called something and the cue: "..., also", "is sometimes", "can be".
_BETWEEN: Final = (
    r"(?:\s*\([^()]*\))?(?P<comma>,?)(?:\s+(?:is|are|was|were|has|have|been|can|may|be|also|often|then|therefore|hence"
    r"|sometimes|long|first|now|once|otherwise|under|the|[a-z]+ly))*\s*$"
)
_PRONOUN: Final = re.compile(rf"\b(?:it|its|they){_BETWEEN}", re.IGNORECASE)
_OTHER: Final = re.compile(r"^(?:\w+\s+){0,2}(?P<comma>)$")  # "Other names for it include"
_DEFINITE: Final = re.compile(rf"^(?:The|This)\s+(?:\w+\s+)??(?P<noun>\w+){_BETWEEN}")
_SEPARATOR: Final = re.compile(r",\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+|;\s*")
_LAST: Final = re.compile(r"\s(?:and|or)\s")
_NO_NAME: Final = re.compile(
    r"\b(?:is|are|was|were|has|have|which|that|who|it|after|because|when|in|by|\d{4})\b|^an?\s|^\W|\W$(?<![)+])",
    re.IGNORECASE,
)
# What goes on behind a list: "must not be confused with", "after John Sipple", "blocks the start".
_NO_ITEM: Final = re.compile(
    r"(?:after|before|although|though|because|which|who|when|while|but|so|as|not|must|can|may|does?|in"
    r"|[a-z]+(?:al|us|nt|ve|[iosa]n|st|lar)ly)\s"
    r"|\w+s\s+(?:the|an?|its|their|up|out)\s"
)
# What is left of a name that holds a comma itself: "X-linked", "autosomal recessive", "type 2", "mild".
_MODIFIERS: Final = word_set(
    "x linked autosomal dominant recessive congenital hereditary familial sporadic juvenile infantile neonatal adult "
    "early late onset mild severe slow type form member subunit family chain classic classical not with and due to"
)
_LEADING: Final = re.compile(
    r"^(?:also|or|formerly|abbreviated|short|hence|the|(?:trade|brand)\s+names?)\s+", re.IGNORECASE
)
_NO_LONG_FORM: Final = re.compile(
    r"[.;:()]|\b(?:is|are|was|were|has|have|which|that|who)\b|^(?:against|of|in|for|with|by|from|and)\s|^\d+\s",
    re.IGNORECASE,
)


class Titled(Protocol):
    """A document or passage. A document's ``aliases`` are read too."""

    @property
    def title(self) -> str:
        """Its subject."""
        ...

    @property
    def text(self) -> str:
        """Its text."""
        ...


def collect(documents: Iterable[Titled], orphanet: Orphanet | None = None) -> dict[str, str]:
    """Names, each with its kind or the empty string.

    They are the titles and aliases of documents, other names and abbreviations that texts state, gene symbols in the
    company of words such as "gene" or "mutations in", bands and chromosomes, and names and genes of ``orphanet``. A
    title that is a question or longer than twelve words names nothing. Of several kinds a name has the first, those
    that it has by itself before those of what it is another name of: a symbol can be that of a gene and its disease.
    """
    found: dict[str, str] = {}
    others: dict[str, str] = {}
    for document in documents:
        title = title_name(document.title)
        type_ = title_kind(title, document.text) if title else ""
        _add(found, title, type_)
        for name in getattr(document, "aliases", ()):
            _add(others, name, type_)
        for name, alias in aliases(title, document.text):
            known = type_ if name == title else kind(name)
            _add(others, name, known)
            _add(others, alias, known)
        for match in _GENE.finditer(document.text):
            _add(found, match[match.lastgroup or 0], "gene")
        for match in _BAND.finditer(document.text):
            _add(found, match[0], "chromosome")
    for name, type_ in (*others.items(), *_known(orphanet)):
        _add(found, name, type_)
    by_key = {key(name): type_ for name, type_ in found.items() if type_}
    return {name: type_ or by_key.get(key(name), "") for name, type_ in found.items()}


def _add(found: dict[str, str], name: str, type_: str) -> None:
    if name == usable_name(name) and name.count(" ") < _MAX_WORDS and any(c.isalpha() for c in name):
        found[name] = found.get(name) or type_


def _known(orphanet: Orphanet | None) -> Iterator[tuple[str, str]]:
    yield from ((f"chromosome {name}", "chromosome") for name in CHROMOSOMES)
    for disorder in orphanet or ():
        yield from ((name, "disease") for name in (disorder.name, *disorder.synonyms) if name)
        for gene in disorder.genes:
            yield from ((name, "gene") for name in (gene.symbol, gene.name) if name)


def title_name(title: str) -> str:
    """What a title names, without an explanation in brackets; empty where it is a question or a sentence."""
    name = _BRACKETS_END.sub("", title).strip()
    return "" if title.rstrip().endswith("?") or name.count(" ") >= _MAX_WORDS else usable_name(name)


def title_kind(title: str, text: str) -> str:
    """The kind of a document's subject, by its title or by the sentence that defines it; empty if neither tells."""
    if by_title := kind(title) or kind(_COUNT.sub("", title)):
        return by_title
    if kind(title.partition(" ")[0]) == "chromosome":
        return "chromosome"
    if _DISEASE.search(title):
        return "disease"
    if _ENZYME.search(title):
        return "gene"
    lead = " ".join(sentences(text[:600])[:2])
    if _IS_SYMBOL.fullmatch(title) and re.search(r"gene\b|encod", lead):
        return "gene"
    definition = _DEFINITION.search(lead)
    if not definition:
        return ""
    nouns = _PHRASE_END.split(definition["phrase"])[0].split()
    if " " in title and title.istitle() and any(_PERSON.search(noun) for noun in nouns):
        return "person"
    return next((found for noun in reversed(nouns) if (found := kind(noun))), "")


def aliases(title: str, text: str) -> list[tuple[str, str]]:
    """Pairs of a name and another name of the same thing that ``text`` states, in order.

    Stated are other names of the title, behind it or in sentences such as "It is also known as A, B and C", and
    abbreviations in brackets behind what they abbreviate.
    """
    found = [(title, name) for name in _title_aliases(title, text)] if title else []
    for match in _SHORT.finditer(text):
        if long := long_form(match[1], text[: match.start()]):
            found.append((long, match[1]))
    return [pair for pair in dict.fromkeys(found) if key(pair[0]) != key(pair[1])]


def _title_aliases(title: str, text: str) -> Iterator[str]:
    at = text.find(title)
    if 0 <= at <= len("The ") and (lead := _LEAD.match(text, at + len(title))):
        yield from _names(_SEPARATOR.split(lead["brackets"] or lead["other"]))
    for sentence in sentences(text):
        if full := _FULL_NAME.search(sentence):
            if full["it"] or sentence[: full.start()].endswith(f"{title} "):
                yield from _names([full["name"]])
        elif followed := _FOLLOWED.match(sentence):
            yield from _listed(_parts(followed["list"], title, text))
        elif cue := _CUE.search(sentence):
            yield from _listed(_called(cue, sentence[: cue.start()], title, text))


def _called(cue: re.Match[str], before: str, title: str, text: str) -> list[str]:
    """The items behind a cue, if those are names of the title."""
    owner = (_OTHER.search(before) if cue["names"] else None) or _owner(before, title, text)
    listed = cue["list"]
    if owner is None or re.match(rf"{re.escape(title)},?\s(?:is|was|counts)\b", listed, re.IGNORECASE):
        return []  # "the condition known as" the title
    if owner["comma"]:  # "X, also called A, grows in B" lists names up to the comma
        return _parts(listed.partition(",")[0], title, text)
    items = _parts(listed, title, text)
    if not _LAST.search(listed):
        return items[:1]
    return items if cue["end"] else items[:-1]  # the text of a passage may end within a name


def _owner(before: str, title: str, text: str) -> re.Match[str] | None:
    """The end of what stands before a cue, if it is the title, or a pronoun or noun that refers to it."""
    if found := _PRONOUN.search(before) or re.search(re.escape(title) + _BETWEEN, before, re.IGNORECASE):
        return found
    definite = _DEFINITE.search(before)
    if definite and (noun := kind(definite["noun"])) and title_kind(title, text) in {noun, ""}:
        return definite
    return None


def _parts(names: str, title: str, text: str) -> list[str]:
    """The items of a list. An "and" or comma that stands between the same two words elsewhere too is part of a name."""
    whole, here, parts, start = f"{title}\n{text}".casefold(), names.casefold(), [], 0
    for separator in _SEPARATOR.finditer(names):
        before, after = names[: separator.start()].split()[-1:], names[separator.end() :].split()[:1]
        phrase = "".join((*before, separator[0], *after))
        if not (phrase.islower() and whole.count(phrase) > here.count(phrase)):
            parts.append(names[start : separator.start()])
            start = separator.end()
    return [*parts, names[start:]]


def _listed(items: Iterable[str]) -> Iterator[str]:
    """Names out of a list; a single word in small letters is left out, as it is the rest of another name."""
    listed = takewhile(lambda item: not _NO_ITEM.match(item), items)
    return (name for name in _names(listed) if " " in name or not name.islower())


def _names(items: Iterable[str]) -> Iterator[str]:
    for item in items:
        name = usable_name(_LEADING.sub("", item.strip(" \"'“”.")))
        parts = [part for word in words(name) for part in word.parts]
        telling = [part for part in parts if len(part) > 1 and not part[0].isdigit() and part not in _MODIFIERS]
        symbol = _IS_SYMBOL.fullmatch(name)
        balanced = name.count("(") == name.count(")")
        if (telling or symbol) and balanced and name.count(" ") < _MAX_WORDS and not _NO_NAME.search(name):
            yield name


def long_form(short: str, before: str) -> str:
    """What ``short``, in brackets behind ``before``, abbreviates; empty if it is no abbreviation.

    The algorithm of Schwartz and Hearst (2003): the letters of the abbreviation, from its last, occur in this order in
    the words before it, its first at the beginning of a word.
    """
    letters = [c for c in short.casefold() if c.isalnum()]
    if not (short[:1].isalnum() and any(c.isupper() for c in short) and len(letters) > 1):
        return ""
    window = before.rstrip().split()[-min(len(letters) + 5, 2 * len(letters)) :]
    candidate = " ".join(window)
    at = len(candidate)
    for number, letter in enumerate(reversed(letters), start=1):
        at -= 1
        first = number == len(letters)
        while at >= 0 and (candidate[at].casefold() != letter or (first and at and candidate[at - 1].isalnum())):
            at -= 1
        if at < 0:
            return ""
    long = candidate[at:]
    return long if len(long) > len(short) and usable_name(long) == long and not _NO_LONG_FORM.search(long) else ""
