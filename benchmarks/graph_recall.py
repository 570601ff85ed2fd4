"""Document recall of dense search, of the knowledge graph, and of both fused, from the questions alone.

Recall@k is the share of a question's supporting documents, by title, among the first k different documents found. The
question is the only query string and its names in the graph are where the graph starts; nothing is reranked, and BM25
has no part. A question that names nothing in the graph is searched for by vectors alone, in every row.

    medhop graph build --index INDEX --out GRAPH
    medhop graph train --graph GRAPH --questions data/dev.jsonl --out WEIGHTS
    python benchmarks/graph_recall.py data/test.jsonl --index INDEX --graph GRAPH --gfm WEIGHTS

Questions are JSON lines as in data/, or a .json file of HotpotQA. Prints each recall and its difference from that of
dense search, by question, both with 95 % bootstrap intervals: first over all questions, then over those that the graph
ranked documents for.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from medhop_dspy.evaluation.datasets import read_gold, read_hotpotqa
from medhop_dspy.evaluation.statistics import bootstrap_ci
from medhop_dspy.runtime import open_retriever
from medhop_dspy.settings import Settings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from medhop_dspy.evaluation.records import GoldQuestion
    from medhop_dspy.graph.retriever import GraphRetriever
    from medhop_dspy.trace import Passage

SCORERS = {"pagerank": "PageRank", "gfm": "GFM"}


def recall(question: GoldQuestion, passages: Iterable[Passage], k: int) -> float:
    """Share of the supporting documents among the first ``k`` different titles of ``passages``."""
    first = list(dict.fromkeys(passage.title for passage in passages))[:k]
    wanted = set(question.supporting_titles)
    return len(wanted.intersection(first)) / len(wanted)


def measure(
    settings: Settings, questions: Sequence[GoldQuestion], scorers: Iterable[str], k: int
) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.bool_]]:
    """Recalls (n_questions,) by retriever, and for which questions the graph ranked documents."""
    recalls: dict[str, NDArray[np.float64]] = {}
    linked = np.zeros(len(questions), bool)
    for scorer in scorers:
        opened = cast("GraphRetriever", open_retriever(settings.replace(retriever="hybrid", graph_scorer=scorer)))
        with closing(opened.index):
            plain = opened.ranked_by_itself()
            if not recalls:
                found = [plain.dense.search([each.text], settings.candidates) for each in questions]
                recalls["dense"] = _recalls(questions, found, k)
            for mode, name in (("graph", "graph"), ("hybrid", "fused")):
                searches = [plain.in_mode(mode).find([each.text], settings.candidates) for each in questions]
                recalls[f"{name}, {SCORERS[scorer]}"] = _recalls(questions, (each.passages for each in searches), k)
                linked |= [each.graph_used for each in searches]
    return recalls, linked


def _recalls(questions: Sequence[GoldQuestion], found: Iterable[Sequence[Passage]], k: int) -> NDArray[np.float64]:
    return np.array([recall(question, passages, k) for question, passages in zip(questions, found, strict=True)])


def main() -> None:
    """Measure and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("questions", type=Path)
    parser.add_argument("--index", required=True)
    parser.add_argument("--graph", type=Path, required=True)
    parser.add_argument("--gfm", type=Path, help="folder of weights; without it PageRank alone is measured")
    parser.add_argument("--k", type=int, default=5)
    options = parser.parse_args()
    read = read_hotpotqa if options.questions.suffix == ".json" else read_gold
    questions = [each for each in read(options.questions) if each.supporting_titles]
    settings = Settings.load("local", index=options.index, graph=options.graph, gfm_model=options.gfm)
    scorers = list(SCORERS) if options.gfm else ["pagerank"]
    recalls, linked = measure(settings, questions, scorers, options.k)
    for title, some in (("all", np.ones_like(linked)), ("ranked by the graph", linked)):
        print(f"\n{some.sum()} of {len(questions)} questions, {title}")
        print(f"{'':16} {f'recall@{options.k}':20}   less dense")
        for name, values in recalls.items() if some.any() else ():
            less = values - recalls["dense"]
            print(f"{name:16} {bootstrap_ci(values[some].tolist())}   {bootstrap_ci(less[some].tolist())}")


if __name__ == "__main__":
    main()
