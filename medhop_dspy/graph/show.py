"""What is in a knowledge graph, for people: its size and shape, and what lies around an entity."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from medhop_dspy.errors import InputError
from medhop_dspy.graph.index import label
from medhop_dspy.graph.names import key

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from medhop_dspy.graph.index import GraphIndex

QUANTILES: Final = (0.0, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)
_SUGGESTIONS: Final = 5


@dataclass(frozen=True, slots=True)
class Hub:
    """An entity with its number of edges, synonyms included, and of passages that mention it."""

    name: str
    type: str
    degree: int
    passages: int

    @property
    def label(self) -> str:
        """Name and, where it is known, type."""
        return label(self.name, self.type)


@dataclass(frozen=True, slots=True)
class GraphSummary:
    """Numbers about a graph.

    Attributes:
        entities: How many, and who found them.
        source: ``dictionary`` or ``model``.
        types: Entities of each type, most frequent first; the empty type is unknown.
        relations: Triples of each relation, most frequent first, synonyms apart.
        synonyms: Undirected edges between names that mean the same.
        links: Mentions of an entity in a passage (G_link), each once.
        passages: How many.
        passage_edges: Undirected edges between passages (G_doc).
        degrees: Edges of an entity, synonyms included, at each of :data:`QUANTILES`.
        components: Entities and passages in each connected part of the whole graph, largest first.
        hubs: Entities with most edges, then with most passages.
    """

    entities: int
    source: str
    types: tuple[tuple[str, int], ...]
    relations: tuple[tuple[str, int], ...]
    synonyms: int
    links: int
    passages: int
    passage_edges: int
    degrees: tuple[float, ...]
    components: tuple[int, ...]
    hubs: tuple[Hub, ...]

    @property
    def triples(self) -> int:
        """Directed edges of G_ent."""
        return sum(count for _, count in self.relations)


@dataclass(frozen=True, slots=True)
class Step:
    """An edge that leads from an entity to another.

    Attributes:
        entity: Number of the entity that it starts from here.
        relation: As text.
        forward: Whether the triple is read in this direction; synonyms always are.
        neighbour: Number of the other entity.
        edge: Number of the edge.
    """

    entity: int
    relation: str
    forward: bool
    neighbour: int
    edge: int


def describe(graph: GraphIndex, hubs: int = 10) -> GraphSummary:
    """Count what is in the graph, and name its ``hubs`` largest hubs."""
    degrees = degrees_of(graph)
    counts = Counter(graph.edges[:, 1].tolist())
    synonyms = counts.pop(graph.synonym, 0)
    largest = sorted(
        range(len(graph.names)), key=lambda e: (-degrees[e], -graph.passage_counts[e], graph.names[e], graph.types[e])
    )
    return GraphSummary(
        entities=len(graph.names),
        source=graph.manifest.source,
        types=_ranked(Counter(graph.types)),
        relations=_ranked(Counter({graph.relations[r]: count for r, count in counts.items()})),
        synonyms=synonyms,
        links=graph.mentions.nnz,
        passages=len(graph.passage_ids),
        passage_edges=len(graph.passage_edges),
        degrees=tuple(np.quantile(degrees, QUANTILES).tolist()) if len(degrees) else (),
        components=_components(graph),
        hubs=tuple(
            Hub(graph.names[e], graph.types[e], int(degrees[e]), int(graph.passage_counts[e])) for e in largest[:hubs]
        ),
    )


def degrees_of(graph: GraphIndex) -> NDArray[np.int64]:
    """(n_entities,) edges of G_ent at each entity, in either direction."""
    return np.bincount(graph.edges[:, [0, 2]].ravel(), minlength=len(graph.names))


def find(graph: GraphIndex, name: str) -> tuple[int, ...]:
    """The entities of this name, however it is spelled; several where it has several types.

    Raises:
        InputError: there is none; the hint has the nearest names.
    """
    wanted = key(name)
    found = tuple(row for row, each in enumerate(graph.names) if key(each) == wanted) if wanted else ()
    if not found:
        near = suggestions(graph, name)
        hint = f"Nearest names: {'; '.join(near)}." if near else "`medhop graph info` shows the largest hubs."
        raise InputError(f"the graph has no entity {name!r}", hint=hint)
    return found


def suggestions(graph: GraphIndex, name: str, count: int = _SUGGESTIONS) -> list[str]:
    """At most ``count`` names that hold ``name`` or are spelled like it, the nearest first."""
    wanted = key(name)
    names: dict[str, str] = {}
    for each in graph.names:
        names.setdefault(key(each), each)
    inside = sorted((k for k in names if wanted and wanted in k), key=lambda k: (len(k), k))
    like = difflib.get_close_matches(wanted, names, n=count, cutoff=0.6)
    return [names[k] for k in dict.fromkeys([*inside[: count - 1], *like, *inside])][:count]


def neighbourhood(graph: GraphIndex, start: int, hops: int = 1) -> Iterator[Step]:
    """The edges around an entity, breadth first; each once, from the end that is met first.

    Edges of one entity come in the order of relation, direction and neighbour's name.

    Args:
        graph: Opened graph.
        start: Number of an entity.
        hops: How far to go, at least 1.

    Raises:
        InputError: ``hops`` is below 1.
    """
    if hops < 1:
        raise InputError(f"hops is {hops}, wanted 1 or more")
    around = _edges_around(graph)
    reached, ring, used = {start}, [start], set[int]()
    for _ in range(hops):
        following: list[int] = []
        for entity in ring:
            for step in _steps(graph, entity, around(entity)):
                if step.edge not in used:
                    used.add(step.edge)
                    yield step
                    if step.neighbour not in reached:
                        reached.add(step.neighbour)
                        following.append(step.neighbour)
        ring = following


def mentioning(graph: GraphIndex, entity: int) -> list[str]:
    """Titles of the documents that mention an entity, each once, in the order of the passages."""
    return _titles(graph, graph.mentions, entity)


def stating(graph: GraphIndex, step: Step) -> list[str]:
    """Titles of the documents that say what a step does, each once, in the order of the passages."""
    return _titles(graph, graph.support, step.edge)


def _edges_around(graph: GraphIndex) -> Callable[[int], list[int]]:
    """A function that gives the numbers of the edges at an entity, without looking at all others each time."""
    ends = graph.edges[:, [0, 2]].ravel()  # edge n has the places 2 n and 2 n + 1
    order = np.argsort(ends, kind="stable")
    starts = np.searchsorted(ends[order], np.arange(len(graph.names) + 1))

    def around(entity: int) -> list[int]:
        # Of a thing with itself, an edge is there twice.
        numbers: list[int] = np.unique(order[starts[entity] : starts[entity + 1]] // 2).tolist()
        return numbers

    return around


def _steps(graph: GraphIndex, entity: int, edges: Iterable[int]) -> list[Step]:
    """The ``edges`` at an entity, in order."""
    found = []
    for edge in edges:
        head, relation, tail = graph.edges[edge].tolist()
        forward = head == entity or relation == graph.synonym
        found.append(Step(entity, graph.relations[relation], forward, tail if head == entity else head, edge))
    return sorted(found, key=lambda step: _order(graph, step))


def _order(graph: GraphIndex, step: Step) -> tuple[str, bool, str, int]:
    return step.relation, not step.forward, graph.names[step.neighbour], step.neighbour


def _titles(graph: GraphIndex, matrix: csr_array, row: int) -> list[str]:
    starts, columns = matrix.indptr, matrix.indices
    passages: Sequence[int] = columns[starts[row] : starts[row + 1]].tolist()
    names = (graph.passage_titles[p] or graph.passage_ids[p] for p in passages)
    return list(dict.fromkeys(names))


def _components(graph: GraphIndex) -> tuple[int, ...]:
    """Sizes of the connected parts of G, whose nodes are the entities and, after them, the passages."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    entities, nodes = len(graph.names), len(graph.names) + len(graph.passage_ids)
    if not nodes:
        return ()
    links = graph.mentions.tocoo()
    rows = np.concatenate([graph.edges[:, 0], links.row, graph.passage_edges[:, 0] + entities])
    columns = np.concatenate([graph.edges[:, 2], links.col + entities, graph.passage_edges[:, 1] + entities])
    adjacency = coo_array((np.ones(len(rows)), (rows, columns)), shape=(nodes, nodes)).tocsr()
    _, parts = connected_components(adjacency, directed=False)
    return tuple(sorted(np.bincount(parts).tolist(), reverse=True))


def _ranked(counts: Counter[str]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
