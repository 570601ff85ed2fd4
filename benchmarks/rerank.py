"""What a reranker and BM25 add to dense search, in quality and in time, on questions with a known place.

Collection: pages of MedQuAD, each section's answer cut into chunks. Query: a section's question. Right: a chunk of that
section, so that the other sections of the same page are wrong. The questions themselves are not in the collection.

    python benchmarks/rerank.py [--pages 200] [--questions 100]

MRR is the mean reciprocal rank of the first right chunk in the whole ranked pool; hit@k is the share of questions with
a right chunk among the first k. Seconds are per question, with an empty cache and again with the cache that the first
time left (it holds 1,024 passages).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from medhop_dspy.errors import ArtefactError
from medhop_dspy.retrieval.chunking import chunk_text
from medhop_dspy.retrieval.embedding import Embedder
from medhop_dspy.retrieval.rerank import make_reranker, passage_text
from medhop_dspy.retrieval.retriever import Retriever
from medhop_dspy.settings import Settings
from medhop_dspy.trace import Passage

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHARED = Path(os.environ.get("MEDHOP_SHARED", Path(__file__).parent.parent.parent / "shared"))

ROWS = (
    ("dense", {"reranker": "none"}),
    ("BM25 + dense", {"reranker": "none", "lexical": True}),
    ("dense, late interaction", {"reranker": "late_interaction"}),
    ("BM25 + dense, late interaction", {"reranker": "late_interaction", "lexical": True}),
    ("dense, FlashRank MiniLM-L-12", {"reranker": "flashrank"}),
)


class ExactIndex:
    """Brute-force search over vectors in memory."""

    def __init__(self, passages: Sequence[Passage], vectors: NDArray[np.float32]) -> None:
        self._passages = passages
        self._vectors = vectors
        self.digest = ""
        self._row = {p.id: i for i, p in enumerate(passages)}

    def search(self, vectors: NDArray[np.float32], k: int) -> list[list[Passage]]:
        """At most ``k`` passages for each row, best first."""
        return [
            [replace(self._passages[i], score=float(row[i])) for i in np.argsort(-row, kind="stable")[:k]]
            for row in vectors @ self._vectors.T
        ]

    def all_passages(self) -> Iterator[Passage]:
        """Every passage."""
        return iter(self._passages)

    def passages(self, doc_id: str) -> list[Passage]:
        """The passages of one document."""
        return [p for p in self._passages if p.doc_id == doc_id]

    def by_ids(self, ids: Sequence[str]) -> dict[str, Passage]:
        """The passages of these ids."""
        return {i: self._passages[self._row[i]] for i in ids if i in self._row}

    def close(self) -> None:
        """Nothing to release."""

    def vectors(self, ids: Sequence[str]) -> NDArray[np.float32]:
        """Stored vectors."""
        return self._vectors[[self._row[i] for i in ids]]


def collection(pages: int, seed: int) -> tuple[list[Passage], list[tuple[str, frozenset[str]]]]:
    """Passages, and questions with the ids of the chunks that are right."""
    records = [
        json.loads(line)
        for file in sorted((SHARED / "data" / "medquad").glob("*.jsonl"))
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    passages: list[Passage] = []
    questions: list[tuple[str, frozenset[str]]] = []
    for page in random.Random(seed).sample(records, min(pages, len(records))):
        number = 0
        for section in page["sections"]:
            chunks = chunk_text(" ".join((section["answer"] or "").split()))
            own = [
                Passage(f"{page['id']}#{number + i}", page["id"], page["title"], page["url"], text)
                for i, text in enumerate(chunks)
            ]
            number += len(own)
            passages += own
            if own:
                questions.append((section["question"], frozenset(p.id for p in own)))
    random.Random(seed).shuffle(questions)
    return passages, questions


def measure(retriever: Retriever, questions: Sequence[tuple[str, frozenset[str]]], k: int) -> tuple[float, ...]:
    """MRR, hit@k, seconds per question the first and the second time."""
    retriever.search(["warm up"], 1)
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        found = [retriever.search([question], 1000) for question, _ in questions]
        seconds.append((time.perf_counter() - start) / len(questions))
    ranks = [
        next((n for n, p in enumerate(ranked, start=1) if p.id in right), None)
        for ranked, (_, right) in zip(found, questions, strict=True)
    ]
    mrr = sum(1 / rank for rank in ranks if rank) / len(ranks)
    hits = sum(bool(rank and rank <= k) for rank in ranks) / len(ranks)
    return mrr, hits, *seconds


def main() -> None:
    """Measure every row of the table and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--candidates", type=int, default=60)
    parser.add_argument("--k", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    base = Settings.load(
        candidates=arguments.candidates, pool=arguments.candidates, lexical=False, neighbours_of=0
    )  # a row says what it adds
    passages, questions = collection(arguments.pages, arguments.seed)
    questions = questions[: arguments.questions]
    embedder = Embedder.from_settings(base)
    vectors = embedder.embed([passage_text(p, with_title=base.embed_title) for p in passages])
    index = ExactIndex(passages, vectors)
    print(f"{len(questions)} questions, {len(passages)} chunks, {arguments.candidates} candidates\n")
    print(f"{'':32} {'MRR':>6} {f'hit@{arguments.k}':>6} {'s first':>8} {'s again':>8}", flush=True)
    for name, overrides in ROWS:
        settings = base.replace(**overrides)
        try:
            reranker = make_reranker(settings)
        except ArtefactError as error:
            print(f"{name:32} not measured: {error}", flush=True)
            continue
        mrr, hits, first, again = measure(Retriever(index, embedder, reranker, settings), questions, arguments.k)
        print(f"{name:32} {mrr:6.3f} {hits:6.2f} {first:8.3f} {again:8.3f}", flush=True)


if __name__ == "__main__":
    main()
