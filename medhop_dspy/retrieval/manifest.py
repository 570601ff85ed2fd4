"""What an index is made of, kept beside it, so that nothing else is ever searched by mistake."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Final, Literal

from pydantic import TypeAdapter, ValidationError

from medhop_dspy.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from medhop_dspy.retrieval.embedding import Encoder
    from medhop_dspy.settings import Settings

FORMAT: Final = 1
_REBUILD: Final = "Build the index again in another place, or delete this one first."

# building: not complete yet, never searched. updating: complete before, being changed.
State = Literal["building", "updating", "complete"]


@dataclass(frozen=True, slots=True)
class HnswParameters:
    """Chroma's settings of the approximate search, fixed when a collection is created.

    Chroma's defaults (100, 100, 16) are made for about 10 neighbours. Recall of the 90 nearest among 100,000 loosely
    clustered vectors (benchmarks/hnsw_recall.py): 0.84 with the defaults, 0.92 with an ``ef_search`` of 400, 0.96 as
    here, for 12 ms a query.
    """

    space: str = "cosine"
    ef_construction: int = 200
    ef_search: int = 800
    max_neighbors: int = 32


@dataclass(frozen=True, slots=True)
class EncoderRecord:
    """Which model made the vectors; see :class:`medhop_dspy.retrieval.embedding.Encoder`."""

    name: str
    revision: str
    digest: str
    dimension: int

    @classmethod
    def of(cls, encoder: Encoder) -> EncoderRecord:
        """The record of a loaded encoder."""
        return cls(encoder.name, encoder.revision, encoder.digest, encoder.dimension)


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything besides the documents that decides what is stored.

    Attributes:
        encoder: The embedding model.
        chunk_size: Characters of a chunk.
        chunk_overlap: Characters that neighbouring chunks share.
        embed_title: Whether ``title: chunk`` is embedded instead of the chunk.
        hnsw: Settings of the approximate search.
    """

    encoder: EncoderRecord
    chunk_size: int
    chunk_overlap: int
    embed_title: bool
    hnsw: HnswParameters = HnswParameters()

    @classmethod
    def of(cls, encoder: Encoder, settings: Settings) -> Recipe:
        """What ``settings`` and a loaded encoder ask for."""
        return cls(EncoderRecord.of(encoder), settings.chunk_size, settings.chunk_overlap, settings.embed_title)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The record beside a store.

    Ids and digests of the single documents are not repeated here: every chunk carries those of its document.

    Attributes:
        state: Whether the store can be searched.
        chroma: Version of Chroma that wrote the store.
        recipe: What besides the documents decides what is stored.
        documents: How many documents have at least one chunk. Like the next two, of the last complete state.
        chunks: How many chunks there are.
        corpus_digest: Hex SHA-256 of the ids and digests of all documents, in any order.
        format: Version of this record and of the store's layout.
    """

    state: State
    chroma: str
    recipe: Recipe
    documents: int = 0
    chunks: int = 0
    corpus_digest: str = ""
    format: int = FORMAT

    @property
    def digest(self) -> str:
        """Hex SHA-256 of recipe and documents: the same for two builds of the same corpus.

        The encoder's name does not count, its weights and configuration do.
        """
        recipe = asdict(self.recipe)
        del recipe["encoder"]["name"]
        state = [self.format, recipe, self.corpus_digest]
        return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()

    def to_json(self) -> str:
        """One JSON object; keys in a fixed order."""
        return json.dumps(asdict(self) | {"digest": self.digest}, indent=1)

    @classmethod
    def from_json(cls, text: str | bytes, location: str) -> Manifest:
        """Inverse of :meth:`to_json`.

        Raises:
            StoreError: if the text is damaged or of another format; ``location`` is for the message.
        """
        try:
            state = json.loads(text)
            found = state["format"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise StoreError(f"the manifest of {location} is damaged: {error}", hint=_REBUILD) from error
        if found != FORMAT:
            raise StoreError(f"{location} has index format {found!r}, wanted {FORMAT}", hint=_REBUILD)
        try:
            return TypeAdapter(cls).validate_python(state)
        except ValidationError as error:
            problem = error.errors()[0]
            where = ".".join(map(str, problem["loc"]))
            raise StoreError(
                f"the manifest of {location} is damaged: {where}: {problem['msg']}", hint=_REBUILD
            ) from None


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """Where an index is, what it is made of, how it is searched."""

    location: str
    search: str
    digest: str
    manifest: Manifest


def check_recipe(stored: Recipe, wanted: Recipe, location: str) -> None:
    """Refuse an index that was made in another way than is asked for.

    Raises:
        StoreError: naming every difference, as stored and as wanted.
    """
    differences = []
    for field in fields(Recipe):
        old, new = getattr(stored, field.name), getattr(wanted, field.name)
        if field.name == "encoder":
            differences += _encoder_difference(old, new)
        elif old != new:
            differences.append(f"{field.name} {_shown(old)}, wanted {_shown(new)}")
    if differences:
        raise StoreError(
            f"the index {location} does not fit: it has {'; '.join(differences)}",
            hint="Change the settings back, or build another index in another place. This one was not changed.",
        )


def check_chroma(stored: str, running: str, location: str) -> None:
    """Refuse a store of another Chroma series: another patch of the same ``major.minor`` is fine.

    Raises:
        StoreError: naming both versions.
    """
    if stored.split(".")[:2] != running.split(".")[:2]:
        raise StoreError(
            f"the index {location} was written by Chroma {stored}, this is Chroma {running}",
            hint=f"Install chromadb {stored}, or build the index again in another place.",
        )


def corpus_digest(documents: Mapping[str, str] | Iterable[tuple[str, str]]) -> str:
    """Hex SHA-256 of pairs of document id and document digest, whatever their order."""
    pairs = sorted(dict(documents).items())
    return hashlib.sha256(json.dumps(pairs).encode("ascii")).hexdigest()


def _encoder_difference(stored: EncoderRecord, wanted: EncoderRecord) -> list[str]:
    """Names may differ, such as a hub id and the folder it was downloaded to; what makes vectors may not."""
    if stored == EncoderRecord(stored.name, wanted.revision, wanted.digest, wanted.dimension):
        return []
    return [f"vectors of {_model(stored)}, wanted {_model(wanted)}"]


def _model(record: EncoderRecord) -> str:
    weights, configuration = record.digest[:12], record.revision[:12]
    return f"{record.name} ({record.dimension}-d, weights {weights}, configuration {configuration})"


def _shown(value: object) -> str:
    return str(asdict(value)) if isinstance(value, HnswParameters) else repr(value)
