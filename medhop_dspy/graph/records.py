"""What extraction finds in a passage, as everything that builds a graph takes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from medhop_dspy.trace import Passage

Source = Literal["model", "dictionary"]


@dataclass(frozen=True, slots=True)
class Entity:
    """A name as the text writes it; ``type`` is empty where it is not known."""

    name: str
    type: str = ""


@dataclass(frozen=True, slots=True)
class Triple:
    """Subject and object are entity names; ``relation`` is a short verb phrase in lower case."""

    subject: str
    relation: str
    object: str


@dataclass(frozen=True, slots=True)
class Extraction:
    """What one passage says.

    Attributes:
        entities: In the order of the text, each once, those of the triples included.
        triples: In the order of the text, each once.
        source: Who found them.
        rejected: How many entities and triples of a reply were malformed or empty of meaning.
    """

    entities: tuple[Entity, ...] = ()
    triples: tuple[Triple, ...] = ()
    source: Source = "dictionary"
    rejected: int = 0


class Extractor(Protocol):
    """Finds entities and triples, one passage at a time; safe for threads."""

    @property
    def source(self) -> Source:
        """What it marks its extractions with."""
        ...

    @property
    def digest(self) -> str:
        """Hex SHA-256 of everything that decides what it finds: names and patterns, or model and prompts."""
        ...

    def extract(self, passage: Passage) -> Extraction:
        """Entities and triples of ``passage``; none is a result like any other.

        Raises:
            ReplyError: the model's reply cannot be read.
            ServerError: the model server is down.
        """
        ...
