"""What a knowledge graph is made of, kept beside it, so that it is never used with another index or embedder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter, ValidationError

from medhop_dspy.errors import GraphError, InputError
from medhop_dspy.graph.records import Source
from medhop_dspy.retrieval.manifest import EncoderRecord

if TYPE_CHECKING:
    from pathlib import Path

FORMAT: Final = 2
BUILD: Final = "Run `medhop graph build`; passages that were read before are not read again."
# Files that hold rounded results of the embedding model: they may differ in the last digit between machines.
_ROUNDED: Final = frozenset({"vectors.npy", "passage_weights.npy", "edge_weights.npy"})
_OWN: Final = frozenset({"index_digest", "extractors"})  # fields that no other manifest has


@dataclass(frozen=True, slots=True)
class GraphRecipe:
    """Everything besides passages, extractor and embedder that decides what is in the graph.

    Attributes:
        synonym_floor: Cosine of two names, above 0 to 1, from which they are synonyms; 0.85 in the paper.
        neighbours: Most similar passages of other documents that a passage is linked to, at most; 0: none.
        neighbour_floor: Cosine of two passages, above 0 to 1, from which they are linked.
        limit: Only the first passages, in the order of their ids; none: all.
    """

    synonym_floor: float = 0.85
    neighbours: int = 5
    neighbour_floor: float = 0.6
    limit: int | None = None

    def __post_init__(self) -> None:
        for name in ("synonym_floor", "neighbour_floor"):
            if not 0 < (value := getattr(self, name)) <= 1:
                raise InputError(f"{name} is {value}, wanted a cosine above 0, at most 1")
        if self.neighbours < 0 or (self.limit is not None and self.limit < 1):
            raise InputError(f"neighbours is {self.neighbours} and limit {self.limit}, wanted 0 or more and 1 or more")


@dataclass(frozen=True, slots=True)
class GraphManifest:
    """The record beside a complete graph.

    Attributes:
        index_digest: Of the vector index whose passages the graph is about.
        source: Kind of extractor.
        extractors: Digests of the extractors that read the passages; more than one where documents were added to
            a graph later. Each passage was read by the first of them that could have read it.
        encoder: The model of the name vectors.
        recipe: Thresholds and limits.
        counts: How many there are of each part, and of the passages whose extraction ``failed``.
        files: SHA-256 of each file in the graph's folder of data.
        software: Version of this package that wrote it.
        format: Version of this record and of the files' layout.
    """

    index_digest: str
    source: Source
    extractors: tuple[str, ...]
    encoder: EncoderRecord
    recipe: GraphRecipe
    counts: Mapping[str, int] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    software: str = field(default_factory=lambda: version("medhop-dspy"))
    format: int = FORMAT

    @property
    def digest(self) -> str:
        """Hex SHA-256 of what a result depends on: passages, extractor, embedder, recipe, entities and edges.

        The last digits of vectors, which differ between machines, do not count; nor does the embedder's name.
        """
        encoder = asdict(self.encoder)
        del encoder["name"]
        files = {name: digest for name, digest in self.files.items() if name not in _ROUNDED}
        state = [self.format, self.index_digest, self.source, self.extractors, encoder, asdict(self.recipe), files]
        return _sha256(state)

    @property
    def failed(self) -> int:
        """Passages whose extraction failed, and is to be tried again."""
        return self.counts.get("failed", 0)

    @property
    def data_folder(self) -> str:
        """Name of the folder that holds the files: another for other contents, so that one replaces the other whole."""
        return f"data-{_sha256(dict(self.files))[:16]}"

    def to_json(self) -> str:
        """One JSON object; keys in a fixed order."""
        return json.dumps(asdict(self) | {"digest": self.digest}, indent=1)

    @classmethod
    def from_json(cls, text: str | bytes, place: object) -> GraphManifest:
        """Inverse of :meth:`to_json`.

        Raises:
            GraphError: if the text is damaged or of another format; ``place`` is for the message.
        """
        try:
            state = json.loads(text)
            found = state["format"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise GraphError(f"the manifest of the graph {place} is damaged: {error}", hint=BUILD) from error
        if not state.keys() >= _OWN:
            raise GraphError(f"the manifest in {place} is not that of a graph", hint="Give the folder of a graph.")
        if found != FORMAT:
            raise GraphError(f"the graph {place} has format {found!r}, wanted {FORMAT}", hint=BUILD)
        try:
            return TypeAdapter(cls).validate_python(state)
        except (ValidationError, InputError) as error:
            first = str(error).splitlines()[0]
            raise GraphError(f"the manifest of the graph {place} is damaged: {first}", hint=BUILD) from error

    def differences(self, wanted: GraphManifest) -> tuple[str, ...]:
        """What was made in another way than ``wanted``: a phrase each, as it is and as it is wanted."""
        found = []
        if self.source != wanted.source:
            found.append(f"extractor {self.source}, wanted {wanted.source}")
        elif self.extractors != wanted.extractors:
            found.append(f"{self.source} extractor {_short(self.extractors)}, wanted {_short(wanted.extractors)}")
        if (difference := encoder_difference(self.encoder, wanted.encoder)) is not None:
            found.append(difference)
        for each in fields(GraphRecipe):
            old, new = getattr(self.recipe, each.name), getattr(wanted.recipe, each.name)
            if old != new:
                found.append(f"{each.name} {old}, wanted {new}")
        return tuple(found)


def find_manifest(folder: Path) -> GraphManifest | None:
    """The manifest of the graph in ``folder``; None where no build has come to its end.

    Raises:
        GraphError: if it cannot be read, is damaged or of another format.
    """
    try:
        text = (folder / "manifest.json").read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise GraphError(f"cannot read the graph {folder}: {error.strerror}", hint=BUILD) from error
    return GraphManifest.from_json(text, folder)


def has_manifest(folder: Path) -> bool:
    """Whether the manifest in ``folder`` is a graph's, of whatever format.

    Raises:
        OSError: if it cannot be read.
    """
    try:
        state = json.loads((folder / "manifest.json").read_bytes())
    except (FileNotFoundError, ValueError, RecursionError):
        return False
    return isinstance(state, dict) and state.keys() >= _OWN


def encoder_difference(stored: EncoderRecord, wanted: EncoderRecord) -> str | None:
    """How the embedders differ in what makes vectors; None where they only have different names, or none."""
    if (stored.revision, stored.digest, stored.dimension) == (wanted.revision, wanted.digest, wanted.dimension):
        return None
    return f"name vectors of {_model(stored)}, wanted {_model(wanted)}"


def _model(record: EncoderRecord) -> str:
    weights, configuration = record.digest[:12], record.revision[:12]
    return f"{record.name} ({record.dimension}-d, weights {weights}, configuration {configuration})"


def _short(digests: tuple[str, ...]) -> str:
    return "+".join(digest[:12] for digest in digests)


def _sha256(state: Any) -> str:  # noqa: ANN401  (anything that JSON can hold)
    return hashlib.sha256(json.dumps(state, sort_keys=True).encode()).hexdigest()
