"""From whatever a language model returned to entities and triples that a graph can hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from medhop_dspy.answers import occurs
from medhop_dspy.answers.canonical import text
from medhop_dspy.answers.textnorm import tidy, word_set
from medhop_dspy.graph.names import key, kind
from medhop_dspy.graph.records import Entity, Extraction, Triple
from medhop_dspy.retrieval.records import has_half_pair

if TYPE_CHECKING:
    from medhop_dspy.graph.records import Source

MAX_NAME: Final = 120  # characters; what is longer is a sentence
MAX_RELATION: Final = 60  # characters

# Words that mean something else in every passage: as nodes they would join what has nothing to do with one another.
_PRONOUNS: Final = word_set(
    "i it its itself he him his she her hers they them their theirs we us our you your one ones this that these those "
    "who whom whose which what there here such both each either neither others other another some any none all no not"
)
_BOILERPLATE: Final = word_set(
    "patient patients person persons people individual individuals man men woman women child children adult adults "
    "case cases study studies author authors paper article figure table reference references evidence example "
    "disease diseases disorder disorders condition conditions gene genes protein proteins cause causes symptom "
    "symptoms treatment diagnosis type types form forms number way thing things entity unknown none null nan"
)
_POINTING: Final = word_set("this that these those such its their his her our each any some many most other")
_SUBJECT: Final = ("subject", "head", "source")
_RELATION: Final = ("relation", "predicate", "rel")
_OBJECT: Final = ("object", "tail", "target")


def clean(entities: object, triples: object, source: Source, passage: str | None = None) -> Extraction:
    """What is usable of a reply; whatever is malformed or empty of meaning is counted, nothing is an error.

    Args:
        entities: A list of names, or of objects with ``name`` and ``type``.
        triples: A list of lists of exactly three texts, or of objects with ``subject``, ``relation`` or ``predicate``,
            and ``object``.
        source: Who found them.
        passage: Where the names must occur: a small model names what its prompt gives as an example.

    Returns:
        Entities in the order of the reply, those that only triples name behind the others, each key and kind once, with
        the kind of :func:`~medhop_dspy.graph.names.kind` as type, which an entity of unknown type takes over from a
        later mention. Triples in the order of the reply, each once, with the spellings of the entities. Pronouns,
        words such as "the patient", names without a letter or digit or that do not occur in ``passage``, and texts that
        are not Unicode are rejected, and so are triples with one of them or of a thing with itself. Repetitions are
        left out and not counted.
    """
    found = _Found(passage)
    for item in _items(entities):
        found.add_entity(_fields(item, ("name", "entity"), ("type",)))
    for item in _items(triples):
        found.add_triple(_fields(item, _SUBJECT, _RELATION, _OBJECT))
    return Extraction(tuple(found.entities), tuple(found.triples), source, found.rejected)


def usable_name(name: object) -> str:
    """A name without quotes, article and full stop around it; empty where it names nothing of its own."""
    return _usable(name) if isinstance(name, str) else ""


@lru_cache(maxsize=65536)
def _usable(name: str) -> str:
    cleaned = text(name) or ""
    folded = cleaned.casefold()
    pronoun = folded in _PRONOUNS and cleaned != "NO"  # nitric oxide
    general = pronoun or folded in _BOILERPLATE or folded.partition(" ")[0] in _POINTING
    unusable = general or len(cleaned) > MAX_NAME or has_half_pair(cleaned) or not key(cleaned)
    return "" if unusable else cleaned


class _Found:
    """What a reply has brought so far."""

    def __init__(self, passage: str | None) -> None:
        self._passage = passage
        self.entities: list[Entity] = []
        self.triples: list[Triple] = []
        self.rejected = 0
        self._seen: set[tuple[str, str, str]] = set()

    def add_entity(self, fields: tuple[Any, ...]) -> None:
        name = self._name(fields[0]) if fields else ""
        if not name:
            self.rejected += 1
            return
        self._place(name, kind(fields[1]) if isinstance(fields[1], str) else "")

    def add_triple(self, fields: tuple[Any, ...]) -> None:
        if len(fields) != 3 or not all(isinstance(field, str) for field in fields):
            self.rejected += 1
            return
        subject, relation, object_ = self._name(fields[0]), _relation(fields[1]), self._name(fields[2])
        if not (subject and relation and object_) or key(subject) == key(object_):
            self.rejected += 1
            return
        triple = Triple(self._place(subject), relation, self._place(object_))
        identity = (key(subject), relation, key(object_))
        if identity not in self._seen:
            self._seen.add(identity)
            self.triples.append(triple)

    def _name(self, field: object) -> str:
        name = usable_name(field)
        return name if self._passage is None or (name and occurs(name, self._passage)) else ""

    def _place(self, name: str, type_: str = "") -> str:
        """Keep the entity; its spelling here."""
        for number, known in enumerate(self.entities):
            if key(known.name) == key(name) and (known.type == type_ or not (known.type and type_)):
                self.entities[number] = replace(known, type=known.type or type_)
                return known.name
        self.entities.append(Entity(name, type_))
        return name


def _items(reply: object) -> Iterable[object]:
    """The items of a list; anything else but nothing is one item, and malformed."""
    if isinstance(reply, list | tuple):
        return reply
    return () if reply is None else (None,)


def _fields(item: object, *names: tuple[str, ...]) -> tuple[Any, ...]:
    """The fields of an object by the first of their names that it has, or a list as it is; () for anything else.

    A bare name is the first field, where the others may be missing.
    """
    if isinstance(item, Mapping):
        return tuple(next((item[name] for name in options if name in item), None) for options in names)
    if isinstance(item, str):
        return (item, "") if len(names) == 2 else ()
    if isinstance(item, list | tuple):
        return tuple(item) if len(item) == len(names) else ()
    return ()


def _relation(phrase: str) -> str:
    words = tidy(phrase.replace("_", " ")).casefold().strip(" .,;:\"'")
    usable = any(c.isalpha() for c in words) and len(words) <= MAX_RELATION and not has_half_pair(words)
    return words if usable else ""
