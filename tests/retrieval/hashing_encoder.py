"""An embedding model of feature hashing, which needs no file: equal words give near vectors."""

import hashlib
from collections.abc import Callable, Sequence

import numpy as np


class HashingEncoder:
    """Each word adds a fixed random direction. ``embedded`` counts texts; ``before`` is called with that count."""

    def __init__(
        self,
        name: str = "hashing",
        dimension: int = 32,
        revision: str = "1",
        before: Callable[[int], None] | None = None,
    ) -> None:
        self.name = name
        self.dimension = dimension
        self.revision = revision
        self.digest = hashlib.sha256(name.encode()).hexdigest()
        self.max_tokens = 256
        self.embedded = 0
        self._before = before or (lambda count: None)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self._before(self.embedded)
        self.embedded += len(texts)
        vectors = np.array([self._vector(text) for text in texts], np.float64).reshape(-1, self.dimension)
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)

    def embed_names(self, texts: Sequence[str]) -> np.ndarray:
        return self.embed(texts)

    def truncated(self, texts: Sequence[str]) -> int:
        return sum(len(text.split()) > self.max_tokens for text in texts)

    def _vector(self, text: str) -> np.ndarray:
        seeds = [hashlib.sha256(f"{self.digest} {word}".encode()).digest() for word in text.lower().split()]
        return sum(np.random.default_rng(list(seed)).standard_normal(self.dimension) for seed in seeds)
