"""Which entities of a graph a question is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from medhop_dspy.errors import InputError
from medhop_dspy.graph.names import key, numbered_siblings
from medhop_dspy.threads import made_once

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from medhop_dspy.graph.dictionary import Matcher
    from medhop_dspy.graph.index import GraphIndex
    from medhop_dspy.retrieval.embedding import Encoder


class EntityLinker:
    """Finds entities by name (Eq. 3 of Hybrid-IR). Safe for threads."""

    def __init__(self, graph: GraphIndex, embedder: Encoder, floor: float) -> None:
        """Look up the keys of all names.

        Args:
            graph: Where entities are looked for.
            embedder: The model that embedded the graph's names.
            floor: Cosine below which a name links to nothing, 0 to 1.

        Raises:
            InputError: if ``floor`` is outside [0, 1].
        """
        if not 0 <= floor <= 1:
            raise InputError(f"the cosine below which names link to nothing must be from 0 to 1, got {floor}")
        self._graph = graph
        self._embedder = embedder
        self._floor = floor
        self._by_key = _most_mentioned(graph)

    def link(self, names: Sequence[str]) -> list[int | None]:
        """The entity that each name means.

        It is the one of the same key, among several the one that most passages mention; else the one of highest
        cosine, if that reaches the floor and the two names differ in more than a number or letter that counts them,
        as ``FBN1`` and ``FBN2`` do.

        Args:
            names: As a question or a model writes them; blank ones link to nothing.

        Returns:
            For each name an entity's number, or None.

        Raises:
            InputError: if ``names`` is one string.
        """
        if isinstance(names, str):
            raise InputError(f"got the one string {names[:80]!r} to link, wanted a list of names", hint="Wrap it.")
        found: dict[str, int | None] = {name: self._by_key.get(key(name)) if name.strip() else None for name in names}
        unknown = [name for name, entity in found.items() if entity is None and key(name)]
        if unknown and len(self._graph.names):
            vectors = self._embedder.embed(unknown)
            found |= {name: self._nearest(name, vector) for name, vector in zip(unknown, vectors, strict=True)}
        return [found[name] for name in names]

    def spot(self, question: str) -> list[str]:
        """Names of the graph that stand in the question as whole words, the longest ones; in its order, each once."""
        return list(dict.fromkeys(name for _, _, name in self._matcher.find(question)))

    @made_once
    def _matcher(self) -> Matcher:
        from medhop_dspy.graph.dictionary import Matcher

        return Matcher(self._graph.names)

    def _nearest(self, name: str, vector: NDArray[np.float32]) -> int | None:
        """The entity of highest cosine that ``name``, embedded as ``vector`` (d,), may mean."""
        cosines = self._graph.vectors @ vector  # (n_entities,)
        candidates = np.flatnonzero(cosines >= self._floor)
        for entity in candidates[np.argsort(-cosines[candidates], kind="stable")].tolist():
            if not numbered_siblings(name, self._graph.names[entity]):
                return int(entity)
        return None


def seed_rows(linked: Sequence[Sequence[int | None]], entities: int) -> NDArray[np.float64]:
    """(n_questions, ``entities``) 1 for the entities that the names of a question link to, else 0."""
    seeds = np.zeros((len(linked), entities))
    for row, found in zip(seeds, linked, strict=True):
        row[[entity for entity in found if entity is not None]] = 1
    return seeds


def _most_mentioned(graph: GraphIndex) -> dict[str, int]:
    """For each key the entity that most passages mention, the first of equals."""
    counts = graph.passage_counts
    by_key: dict[str, int] = {}
    for entity, name in enumerate(graph.names):
        best = by_key.setdefault(key(name), entity)
        if counts[entity] > counts[best]:
            by_key[key(name)] = entity
    by_key.pop("", None)
    return by_key
