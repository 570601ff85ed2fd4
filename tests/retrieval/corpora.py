"""Small corpora, and what an index of one holds."""

import json
import random
from pathlib import Path

import numpy as np

from medhop_dspy.retrieval.corpus import Document
from medhop_dspy.retrieval.index import Index
from medhop_dspy.trace import Passage

WORDS = ("gene", "protein", "syndrome", "chromosome", "mutation", "enzyme", "cell", "tissue", "disorder", "receptor")


def document(number: int, words: int = 60, version: int = 0) -> Document:
    """Text of about 7 characters a word; the same arguments give the same document."""
    draw = random.Random(f"{number} {version}")
    text = " ".join(f"{draw.choice(WORDS)}{draw.randrange(50)}" for _ in range(words))
    return Document(f"doc{number:04d}", f"Title {number}", f"https://x.example/{number}", text, (f"alias {number}",))


def documents(count: int, words: int = 60) -> list[Document]:
    return [document(number, words) for number in range(count)]


def write_corpus(path: Path, corpus: list[Document]) -> Path:
    records = [{"id": d.id, "title": d.title, "url": d.url, "text": d.text, "aliases": d.aliases} for d in corpus]
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def state_of(index: Index) -> tuple[list[Passage], np.ndarray, str]:
    passages = list(index.all_passages())
    return passages, index.vectors([p.id for p in passages]), index.digest
