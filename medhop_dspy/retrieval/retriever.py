"""From query strings to the passages that the model reads."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, Protocol, Self

from medhop_dspy.answers import sentences
from medhop_dspy.errors import InputError
from medhop_dspy.retrieval.fusion import mmr, reciprocal_rank_fusion
from medhop_dspy.retrieval.lexical import LexicalIndex
from medhop_dspy.retrieval.rerank import NoReranker
from medhop_dspy.retrieval.snapshot import in_order

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from medhop_dspy.retrieval.rerank import Reranker
    from medhop_dspy.settings import Settings
    from medhop_dspy.trace import Passage

_DUPLICATE_PREFIX: Final = 160


class QueryEmbedder(Protocol):
    """What the retriever needs of an embedding model."""

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n, d) unit vectors."""
        ...


class PassageIndex(Protocol):
    """What the retriever needs of a vector index."""

    @property
    def digest(self) -> str:
        """Changes when the passages do."""
        ...

    def search(self, vectors: NDArray[np.float32], k: int) -> list[list[Passage]]:
        """For each row of ``vectors`` (n, d), at most ``k`` passages by descending score, then id."""
        ...

    def all_passages(self) -> Iterator[Passage]:
        """Every passage, in a stable order."""
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...

    def passages(self, doc_id: str) -> list[Passage]:
        """The passages of one document in the order of its text."""
        ...

    def by_ids(self, ids: Sequence[str]) -> dict[str, Passage]:
        """The passages of these ids; those that are not there are left out."""
        ...

    def vectors(self, ids: Sequence[str]) -> NDArray[np.float32]:
        """(n, d) stored unit vectors of the passages ``ids``, in their order."""
        ...


class Retriever:
    """Dense search for several query strings at once, optionally spread out or fused with BM25, then reranked.

    The same call on the same index gives the same passages in the same order. Safe for threads.
    """

    def __init__(self, index: PassageIndex, embedder: QueryEmbedder, reranker: Reranker, settings: Settings) -> None:
        """Hold the parts; nothing is read or built yet.

        Args:
            index: Where passages are found.
            embedder: The model whose vectors the index holds.
            reranker: What orders the pool.
            settings: ``candidates``, ``search``, ``mmr_lambda``, ``mmr_fetch``, ``lexical``, ``embed_title``, ``pool``,
                ``neighbours_of``.
        """
        self.index = index
        self._embedder = embedder
        self._reranker = reranker
        self._settings = settings
        self._weights = (0.5, 0.5)  # of dense search and BM25, where both are fused
        self._fused_reranker: tuple[Reranker, float] | None = None  # whose order joins the fusion, and its weight
        self._words = _Words(index, with_title=settings.embed_title)

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Itself: optimisers copy the modules that hold it, and clients and models are to be shared."""
        return self

    @property
    def digest(self) -> str:
        """What a result depends on besides the settings: the index."""
        return self.index.digest

    @property
    def dense(self) -> Retriever:
        """Itself: the part of any retriever that does without a graph."""
        return self

    def search(self, queries: Sequence[str], k: int, rerank_query: str | None = None) -> list[Passage]:
        """The best passages for all query strings together.

        Every string contributes its own candidates. They are merged by their best rank with any string, then by the
        string's position, so that no string crowds out the others when the pool is cut. Passages whose texts
        begin alike (160 characters, ignoring case and white space) count as one.

        Args:
            queries: Strings to search with; blank and repeated ones are dropped.
            k: How many passages to return, at least 1.
            rerank_query: What the pool is ordered by; by default, or if blank, the first query.

        Returns:
            At most ``k`` passages in the reranker's order, with its scores.

        Raises:
            InputError: if no query is left, ``queries`` is one string, or ``k`` is below 1.
        """
        wanted = checked_queries(queries, k)
        return self.select(self.rankings(wanted), k, wanted, rerank_query)

    def rankings(self, queries: Sequence[str]) -> list[list[Passage]]:
        """For each query string, at most ``settings.candidates`` passages, best first; the strings as they are."""
        vectors = self._embedder.embed_queries(queries)  # (n_queries, d)
        if self._settings.search == "mmr":
            fetched = self.index.search(vectors, self._settings.mmr_fetch)
            rankings = [self._spread(v, found) for v, found in zip(vectors, fetched, strict=True)]
        else:
            rankings = self.index.search(vectors, self._settings.candidates)
        if not self._settings.lexical and self._fused_reranker is None:
            return rankings
        by_words = (
            self._words.index().search(queries, self._settings.candidates)
            if self._settings.lexical
            else [[]] * len(queries)
        )
        return [self._fused(*parts) for parts in zip(queries, rankings, by_words, strict=True)]

    def select(
        self,
        rankings: Sequence[Sequence[Passage]],
        k: int,
        queries: Sequence[str],
        rerank_query: str | None = None,
    ) -> list[Passage]:
        """The best ``k`` passages of several rankings: merged, reranked, with their neighbours.

        Args:
            rankings: Of passages of the index, best first.
            k: How many passages, at least 1.
            queries: What was searched with, of :func:`checked_queries`.
            rerank_query: As for :meth:`search`.
        """
        by = " ".join((rerank_query or "").split()) or queries[0]
        return self._with_neighbours(self._reranker.rank(by, merge(rankings, self._settings.pool)), k)

    def by_cosine(self, query: str, passages: Sequence[Passage]) -> list[Passage]:
        """``passages`` of the index with their cosine similarity to ``query``, -1 to 1, ordered by (-score, id)."""
        if not passages:
            return []
        vector = self._embedder.embed_queries([query])[0]  # (d,)
        cosines = self.index.vectors([p.id for p in passages]) @ vector  # (n,)
        return in_order(replace(p, score=float(cosine)) for p, cosine in zip(passages, cosines, strict=True))

    def by_best_sentence(self, query: str, passages: Sequence[Passage]) -> list[Passage]:
        """``passages``, those first whose best sentence the reranker puts first; without a reranker, as they are."""
        parts = [replace(p, id=f"{n}", text=s) for n, p in enumerate(passages) for s in sentences(p.text) or [p.text]]
        ranked = self._reranker.rank(query, parts)
        return [passages[n] for n in dict.fromkeys(int(part.id) for part in ranked)]

    def nearest(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """For each query string, at most ``k`` passages by cosine similarity alone; one search for all of them."""
        return self.index.search(self._embedder.embed_queries(queries), k)

    def without_neighbours(self) -> Retriever:
        """The same retriever with ``neighbours_of`` at 0: every passage stands at the rank of its own score."""
        return self._view(self._settings.replace(neighbours_of=0))

    def fused(self, *, dense: float = 1.0, lexical: float = 0.0, reranked: float = 0.0) -> Retriever:
        """The same index searched by reciprocal rank fusion alone: nothing is reranked, no neighbours are added.

        Args:
            dense: Weight of dense search, at least 0.
            lexical: Weight of BM25's ranking, 0 to leave it out.
            reranked: Weight of the order that the reranker gives what the other rankings found, 0 to leave it out.
        """
        view = self._view(self._settings.replace(neighbours_of=0, search="similarity", lexical=lexical > 0))
        view._weights = (dense, lexical)
        view._fused_reranker = (self._reranker, reranked) if reranked else None
        view._reranker = NoReranker()
        return view

    def _view(self, settings: Settings) -> Retriever:
        view = copy(self)
        view._settings = settings
        return view

    def _with_neighbours(self, ranked: list[Passage], k: int) -> list[Passage]:
        """The first ``k`` of ``ranked``, the best of them inside the text around them.

        A chunk ends where its characters run out, often before the fact that it leads to. So the chunks next to
        each of the ``settings.neighbours_of`` best ones are put beside it, in the order of the text.
        """
        groups = [self._around(p) if n < self._settings.neighbours_of else [p] for n, p in enumerate(ranked[:k])]
        by_worth = [each.id for best, group in zip(ranked, groups, strict=False) for each in (best, *group)]
        kept = set(list(dict.fromkeys(by_worth))[:k])
        in_text_order: dict[str, Passage] = {}
        for each in (each for group in groups for each in group if each.id in kept):
            in_text_order.setdefault(each.id, each)
        return list(in_text_order.values())

    def _around(self, passage: Passage) -> list[Passage]:
        """``passage`` between the chunks before and after it, which get its score."""
        document = self.index.passages(passage.doc_id)
        position = next((n for n, p in enumerate(document) if p.id == passage.id), 0)
        return [replace(p, score=passage.score) for p in document[max(position - 1, 0) : position + 2]] or [passage]

    def _fused(self, query: str, by_vector: list[Passage], by_words: list[Passage]) -> list[Passage]:
        """The rankings of one query string as one, at most ``settings.candidates`` passages."""
        rankings, weights = [by_vector, by_words], [*self._weights]
        if self._fused_reranker:
            reranker, weight = self._fused_reranker
            found = merge(rankings, self._settings.pool)
            rankings, weights = [*rankings, reranker.rank(query, found)], [*weights, weight]
        return reciprocal_rank_fusion(rankings, weights=weights)[: self._settings.candidates]

    def _spread(self, vector: NDArray[np.float32], found: list[Passage]) -> list[Passage]:
        """The candidates that maximal marginal relevance picks from ``found``, in its order."""
        if not found:
            return []
        stored = self.index.vectors([p.id for p in found])
        return [found[i] for i in mmr(vector, stored, self._settings.candidates, self._settings.mmr_lambda)]


class _Words:
    """BM25 over the passages that an index holds now, built when it is first asked for; views share it."""

    def __init__(self, index: PassageIndex, *, with_title: bool) -> None:
        self._index = index
        self._with_title = with_title
        self._lexical: tuple[str, LexicalIndex] | None = None  # with the digest of the passages in it
        self._lock = threading.Lock()

    def index(self) -> LexicalIndex:
        with self._lock:
            digest = self._index.digest
            if self._lexical is None or self._lexical[0] != digest:
                self._lexical = (digest, LexicalIndex(self._index.all_passages(), with_title=self._with_title))
            return self._lexical[1]


def checked_queries(queries: Sequence[str], k: int) -> list[str]:
    """The different ``queries`` that hold text, white space made single.

    Raises:
        InputError: none is left, ``queries`` is one string, or ``k`` is below 1.
    """
    if k < 1:
        raise InputError(f"k must be at least 1, got {k}")
    if isinstance(queries, str):
        raise InputError(f"got the one string {queries[:80]!r}, wanted a list of strings", hint="Wrap it: [query].")
    cleaned = list(dict.fromkeys(filter(None, (" ".join(q.split()) for q in queries))))
    if not cleaned:
        raise InputError(f"none of the {len(queries)} query strings holds any text", hint="Give at least one.")
    return cleaned


def merge(rankings: Sequence[Sequence[Passage]], limit: int) -> list[Passage]:
    """The first ``limit`` different passages, rank by rank over all rankings.

    All first ranks in the order of the rankings, then all second ranks, and so on. Of passages with one id or
    with texts that begin alike, the first stays.
    """
    seen: set[str] = set()
    merged: list[Passage] = []
    for rank in zip_longest(*rankings):
        for passage in rank:
            if passage is None:
                continue
            beginning = " ".join(passage.text.split()).casefold()[:_DUPLICATE_PREFIX]
            if beginning in seen:
                continue
            seen.add(beginning)
            merged.append(passage)
            if len(merged) == limit:
                return merged
    return merged
