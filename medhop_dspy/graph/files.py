"""The files of a graph: plain NumPy arrays and JSON tables, the same bytes for the same graph."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from medhop_dspy.errors import GraphError
from medhop_dspy.graph.index import EXTRACTIONS, LOCK, GraphIndex, sparse_rows
from medhop_dspy.graph.manifest import BUILD, GraphManifest, has_manifest
from medhop_dspy.retrieval.disk import disk_errors, write_atomically

if TYPE_CHECKING:
    from numpy.typing import NDArray

_TABLES: Final = ("entities", "relations", "passages")
_ARRAYS: Final = (
    "edges",
    "edge_weights",
    "support_starts",
    "support_columns",
    "mentions_starts",
    "mentions_columns",
    "passage_edges",
    "passage_weights",
    "vectors",
)
_FILES: Final = frozenset({*(f"{name}.json" for name in _TABLES), *(f"{name}.npy" for name in _ARRAYS)})
_NEW: Final = ".new"
_DATA: Final = "data-" + 16 * "[0-9a-f]"  # folders of data, and nobody else's
_WEIGHTS: Final = "gfm"  # the folder of a graph model, which may be there before its graph is


def write_graph(folder: Path, graph: GraphIndex) -> GraphIndex:
    """Put ``graph`` in the place of what is in ``folder``; a crash leaves one or the other. The caller has the lock.

    Returns:
        The graph with the files' digests in its manifest.

    Raises:
        DiskFullError: if no space is left.
        StoreError: if a file cannot be written.
    """
    with disk_errors(folder):
        for left in folder.glob(f".*{_NEW}"):  # of a build that was killed
            shutil.rmtree(left)
        staging = folder / f".{os.getpid()}{_NEW}"
        staging.mkdir()
        for name, table in _tables(graph).items():
            _write_table(staging / f"{name}.json", table)
        for name, array in _arrays(graph).items():
            _write_array(staging / f"{name}.npy", array)
        manifest = replace(graph.manifest, files={file: _digest(staging / file) for file in sorted(_FILES)})
        place = folder / manifest.data_folder
        place.mkdir(exist_ok=True)
        for file in _FILES:
            (staging / file).replace(place / file)
        staging.rmdir()
        write_atomically(folder / "manifest.json", lambda stream: stream.write(manifest.to_json().encode("ascii")))
        for old in folder.glob(_DATA):
            if old != place:
                shutil.rmtree(old)
    return replace(graph, manifest=manifest)


def read_graph(folder: Path, manifest: GraphManifest) -> GraphIndex:
    """The graph that ``manifest`` is about.

    Raises:
        GraphError: if a file is missing or not as it was written.
    """
    place = folder / manifest.data_folder
    if manifest.files.keys() != _FILES:
        raise GraphError(f"the manifest of the graph {folder} names other files than it should", hint=BUILD)
    try:
        for file, wanted in manifest.files.items():
            if _digest(place / file) != wanted:
                raise GraphError(f"{place / file} was changed after it was written", hint=BUILD)
        tables = {name: json.loads((place / f"{name}.json").read_bytes()) for name in _TABLES}
        arrays = {name: np.load(place / f"{name}.npy", allow_pickle=False) for name in _ARRAYS}
    except OSError as error:
        raise GraphError(f"cannot read the graph {folder}: {error}", hint=BUILD) from error
    return _graph(tables, arrays, manifest)


def check_folder(folder: Path) -> None:
    """Never write among files of somebody else: a vector index has a manifest, too.

    Raises:
        GraphError: naming some of them.
    """
    with disk_errors(folder):
        found = sorted(file.name for file in folder.iterdir()) if folder.exists() else []
        ours = EXTRACTIONS in found or has_manifest(folder)
    foreign = [name for name in found if not name.startswith((LOCK, ".")) and name != _WEIGHTS]
    if foreign and not ours:
        raise GraphError(
            f"the folder {folder} is not empty and holds no graph: {', '.join(foreign[:3])}",
            hint="Choose an empty folder or a new one.",
        )


def _write_table(file: Path, table: object) -> None:
    write_atomically(file, lambda stream: stream.write(json.dumps(table, indent=0).encode("ascii")))


def _write_array(file: Path, array: NDArray[Any]) -> None:
    write_atomically(file, lambda stream: np.save(stream, array, allow_pickle=False))


def _tables(graph: GraphIndex) -> dict[str, Any]:
    return {
        "entities": list(zip(graph.names, graph.types, strict=True)),
        "relations": list(graph.relations),
        "passages": list(zip(graph.passage_ids, graph.passage_titles, strict=True)),
    }


def _arrays(graph: GraphIndex) -> dict[str, NDArray[Any]]:
    return {
        "edges": graph.edges,
        "edge_weights": graph.edge_weights,
        "support_starts": graph.support.indptr.astype(np.int64),
        "support_columns": graph.support.indices.astype(np.int64),
        "mentions_starts": graph.mentions.indptr.astype(np.int64),
        "mentions_columns": graph.mentions.indices.astype(np.int64),
        "passage_edges": graph.passage_edges,
        "passage_weights": graph.passage_weights,
        "vectors": graph.vectors,
    }


def _graph(tables: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], manifest: GraphManifest) -> GraphIndex:
    passages = tables["passages"]
    return GraphIndex(
        names=tuple(name for name, _ in tables["entities"]),
        types=tuple(kind for _, kind in tables["entities"]),
        relations=tuple(tables["relations"]),
        edges=arrays["edges"],
        edge_weights=arrays["edge_weights"],
        support=sparse_rows(arrays["support_starts"], arrays["support_columns"], len(passages)),
        mentions=sparse_rows(arrays["mentions_starts"], arrays["mentions_columns"], len(passages)),
        passage_ids=tuple(identifier for identifier, _ in passages),
        passage_titles=tuple(title for _, title in passages),
        passage_edges=arrays["passage_edges"],
        passage_weights=arrays["passage_weights"],
        vectors=arrays["vectors"],
        manifest=manifest,
    )


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
