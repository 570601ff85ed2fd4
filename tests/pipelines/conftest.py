"""A small world: real BM25 over a few passages, and a language model that follows a script."""

from __future__ import annotations

import pytest

from medhop_dspy.retrieval.lexical import LexicalIndex
from medhop_dspy.settings import Settings
from medhop_dspy.trace import Passage
from tests.conftest import task_of

FACTS = {
    "Marfan syndrome": "Marfan syndrome is a connective tissue disorder. It is caused by mutations in the FBN1 gene.",
    "FBN1": "The FBN1 gene encodes fibrillin-1. It is located on the long arm of chromosome 15 at 15q21.1.",
    "FBN2": "The FBN2 gene encodes fibrillin-2 and is located on chromosome 5.",
    "Metformin": "Metformin lowers blood glucose and is the first-line therapy of type 2 diabetes.",
    "Insulin": "Insulin lowers blood glucose and is injected under the skin.",
    "Ochronosis": "Ochronosis is the blue-black pigmentation of connective tissue in alkaptonuria.",
    "Nephrology": "Nephrology is the medical specialty that deals with the kidneys. Nephrologists manage dialysis.",
    "Digoxin": "Digoxin is a heart drug from foxglove. Its elimination half-life is about 36 hours.",
}
PASSAGES = [Passage(f"{t}#0", t, t, f"https://example.org/{t}", text) for t, text in FACTS.items()]
MULTIHOP = "On which chromosome is the gene that is mutated in Marfan syndrome located?"


class LexicalRetriever:
    """The retriever's ``search`` over BM25 alone, and what it does where there is no reranker."""

    def __init__(self, passages=PASSAGES):
        self.index = LexicalIndex(passages)
        self.searches: list[tuple[tuple[str, ...], int, str | None]] = []

    def search(self, queries, k, rerank_query=None):
        self.searches.append((tuple(queries), k, rerank_query))
        merged = dict.fromkeys(p for found in self.index.search(list(queries), k) for p in found)
        unique = {p.id: p for p in merged}
        return list(unique.values())[:k]

    @property
    def dense(self):
        return self

    def by_best_sentence(self, query, passages):
        return list(passages)

    def __deepcopy__(self, memo):
        return self


SCRIPT = {
    "Classify": '{"strategy": "multihop", "answer_type": "chromosome"}',
    "Copy from the question": '{"constraints": []}',
    "Split the question": '{"hops": [{"question": "Which gene is mutated in Marfan syndrome?", "type": "gene"}, '
    '{"question": "On which chromosome is #1 located?", "type": "other"}]}',
    "Answer the question from the evidence with one": "FBN1",
    "Answer the question from the evidence. Give": "Chromosome 15",
    "Does the answer merely": '"no"',
    "Is the answer of the required": '"yes"',
    "Does the evidence support": '"yes"',
    "The last search did not": "FBN1 chromosome location",
    "Cut the answer down": "15",
    "Is the question about a rare": '"yes"',
}


def script(changes=None):
    """A reply function: the first entry that the task starts with; a callable entry gets the request."""
    replies = {**SCRIPT, **(changes or {})}

    def reply(request):
        task = task_of(request).removeprefix("Task: ")
        value = next(v for start, v in replies.items() if task.startswith(start))
        return value(request) if callable(value) else value

    return reply


@pytest.fixture
def settings():
    return Settings(evidence=3, hop_evidence=2, pool=10, use_expansion=False)
