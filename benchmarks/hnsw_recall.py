"""Recall and speed of approximate against exact search on clustered random vectors.

    python benchmarks/hnsw_recall.py                # the software's settings, 100,000 vectors, k = 90
    python benchmarks/hnsw_recall.py --defaults     # Chroma's own

Recall depends on the data; `medhop index check` measures it on a real index.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from medhop_dspy.retrieval.location import FolderLocation
from medhop_dspy.retrieval.manifest import EncoderRecord, HnswParameters, Manifest, Recipe
from medhop_dspy.retrieval.metadata import Chunk
from medhop_dspy.retrieval.snapshot import Snapshot
from medhop_dspy.retrieval.store import Store, unit_rows
from medhop_dspy.trace import Passage

CHROMA_DEFAULTS = HnswParameters(ef_construction=100, ef_search=100, max_neighbors=16)
BATCH = 5000


def clustered(rows: int, dimension: int, spread: float, seed: int) -> np.ndarray:
    """(rows, dimension) unit vectors around one centre for every 500 of them.

    ``spread`` is the distance to the centre relative to the centre's own length: the larger, the less there is to
    navigate by. Without centres (independent directions) graph search is at its worst.
    """
    draw = np.random.default_rng(seed)
    centres = draw.standard_normal((max(rows // 500, 1), dimension))
    noise = spread * draw.standard_normal((rows, dimension))
    return unit_rows((centres[draw.integers(len(centres), size=rows)] + noise).astype(np.float32))


def main() -> None:
    """Build, search, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", type=int, default=100_000)
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--k", type=int, default=90)
    parser.add_argument("--spread", type=float, default=2.5)
    parser.add_argument("--defaults", action="store_true", help="Chroma's own settings")
    options = parser.parse_args()

    everything = clustered(options.vectors + options.queries, options.dimension, options.spread, seed=42)
    vectors, queries = everything[options.queries :], everything[: options.queries]
    passages = [Passage(f"{n:07d}#0", f"{n:07d}", "", "", "") for n in range(len(vectors))]
    exact = Snapshot(passages, vectors)
    recipe = Recipe(EncoderRecord("random", "", "", options.dimension), 512, 32, embed_title=False)
    if options.defaults:
        recipe = replace(recipe, hnsw=CHROMA_DEFAULTS)

    with tempfile.TemporaryDirectory() as folder:
        store = Store.create(FolderLocation(Path(folder) / "index"), Manifest("building", "", recipe))
        start = time.perf_counter()
        for first in range(0, len(vectors), BATCH):
            chunks = [Chunk(p, "", 1) for p in passages[first : first + BATCH]]
            store.put(chunks, vectors[first : first + BATCH])
        build = time.perf_counter() - start
        store.nearest_ids(queries[:1], options.k)
        start = time.perf_counter()
        found = [store.nearest_ids(query[None], options.k)[0] for query in queries]
        approximate = time.perf_counter() - start
        start = time.perf_counter()
        exact.search(queries, options.k)
        brute = time.perf_counter() - start
        shares = [exact.recall(query, ids, options.k) for query, ids in zip(queries, found, strict=True)]
        store.close()

    print(f"{options.vectors:,} vectors, {options.dimension}-d, spread {options.spread}, {recipe.hnsw}")
    print(f"build   {len(vectors) / build:8.0f} vectors/s")
    print(f"hnsw    {1000 * approximate / len(queries):8.2f} ms a query, recall@{options.k} {np.mean(shares):.4f}")
    print(f"exact   {1000 * brute / len(queries):8.2f} ms a query, with the passages")


if __name__ == "__main__":
    main()
