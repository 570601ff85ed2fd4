"""Which names are one entity: by key and kind, whatever the order in which passages are read."""

from __future__ import annotations

from collections import ChainMap, Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from medhop_dspy.graph.index import SYNONYM, sparse_rows
from medhop_dspy.graph.names import key, kind

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from medhop_dspy.graph.records import Extraction

# Key and kind of an entity.
_Node = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Resolved:
    """Entities, the triples between them and where they are mentioned; as in
    :class:`~medhop_dspy.graph.index.GraphIndex`, without synonyms. ``keys`` are those of the names.
    """  # noqa: D205

    keys: tuple[str, ...]
    names: tuple[str, ...]
    types: tuple[str, ...]
    relations: tuple[str, ...]
    edges: NDArray[np.int64]
    support: csr_array
    mentions: csr_array


def resolve(extractions: Sequence[Extraction]) -> Resolved:
    """Join the names of all passages.

    Names of one key are one entity, unless their types are of different kinds (see
    :func:`medhop_dspy.graph.names.kind`): then there is an entity for each kind. A name of no kind, such as the end of
    a triple, has the kind of its key in the same passage, or else the most frequent one of its key. An entity has its
    most frequent spelling and type. Ties go to the first in the alphabet. Triples of an entity with itself, which
    spellings of one name bring, are left out.

    Args:
        extractions: (n_passages,) what each passage says; empty where nothing is known.
    """
    kinds = _frequent_kinds(extractions)
    spellings: dict[_Node, Counter[str]] = defaultdict(Counter)
    types: dict[_Node, Counter[str]] = defaultdict(Counter)
    mentioned: dict[_Node, set[int]] = defaultdict(set)
    said: dict[tuple[_Node, str, _Node], set[int]] = defaultdict(set)
    for passage, extraction in enumerate(extractions):
        known = ChainMap(_kinds_within(extraction), kinds)  # no copy of all keys for each passage
        for name, entity_type in _names(extraction):
            node = key(name), kind(entity_type) or known.get(key(name), "")
            if node[0]:
                spellings[node][" ".join(name.split())] += 1
                mentioned[node].add(passage)
                if entity_type.strip():
                    types[node][_plain(entity_type)] += 1
        for triple in extraction.triples:
            head, tail = ((key(name), known.get(key(name), "")) for name in (triple.subject, triple.object))
            relation = _plain(triple.relation)
            if head[0] and tail[0] and relation and head != tail:
                said[head, relation, tail].add(passage)
    nodes = sorted(spellings)
    relations = sorted({relation for _, relation, _ in said} | {SYNONYM})
    edges, support = _edges(said, nodes, relations, len(extractions))
    return Resolved(
        keys=tuple(entity for entity, _ in nodes),
        names=tuple(_most_frequent(spellings[each]) for each in nodes),
        types=tuple(_most_frequent(types[each]) if types[each] else "" for each in nodes),
        relations=tuple(relations),
        edges=edges,
        support=support,
        mentions=rows_of([mentioned[each] for each in nodes], len(extractions)),
    )


def rows_of(sets: Sequence[set[int]], width: int) -> csr_array:
    """The 0/1 matrix (n, ``width``) with ones of row i in the columns of the i-th set."""
    starts = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    columns = np.fromiter((column for each in sets for column in sorted(each)), np.int64, int(starts[-1]))
    return sparse_rows(starts, columns, width)


def _frequent_kinds(extractions: Sequence[Extraction]) -> dict[str, str]:
    """The most frequent kind of each key that has one, as counted over entities of passages."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for extraction in extractions:
        for entity in extraction.entities:
            if found := kind(entity.type):
                counts[key(entity.name)][found] += 1
    return {name: _most_frequent(found) for name, found in counts.items()}


def _kinds_within(extraction: Extraction) -> dict[str, str]:
    """The first kind of each key that has one in one passage."""
    kinds: dict[str, str] = {}
    for entity in extraction.entities:
        if found := kind(entity.type):
            kinds.setdefault(key(entity.name), found)
    return kinds


def _names(extraction: Extraction) -> Iterator[tuple[str, str]]:
    """Every entity with its type, then the ends of triples that are not among them."""
    seen = {key(entity.name) for entity in extraction.entities}
    yield from ((entity.name, entity.type) for entity in extraction.entities)
    for triple in extraction.triples:
        for name in (triple.subject, triple.object):
            if key(name) not in seen:
                seen.add(key(name))
                yield name, ""


def _edges(
    said: dict[tuple[_Node, str, _Node], set[int]], nodes: Sequence[_Node], relations: Sequence[str], passages: int
) -> tuple[NDArray[np.int64], csr_array]:
    number = {each: row for row, each in enumerate(nodes)}
    relation_number = {relation: row for row, relation in enumerate(relations)}
    found: dict[tuple[int, int, int], set[int]] = defaultdict(set)
    for (head, relation, tail), where in said.items():
        ends = number[head], number[tail]
        # A passage may say in words what is undirected here.
        first, last = sorted(ends) if relation == SYNONYM else ends
        found[first, relation_number[relation], last] |= where
    edges = sorted(found)
    return np.array(edges, np.int64).reshape(-1, 3), rows_of([found[edge] for edge in edges], passages)


def _most_frequent(counts: Counter[str]) -> str:
    return min(counts, key=lambda text: (-counts[text], text))


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
