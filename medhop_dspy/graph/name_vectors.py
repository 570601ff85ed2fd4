"""Vectors of entity names, each name embedded once in the life of a graph."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final
from zipfile import BadZipFile

import numpy as np

from medhop_dspy.retrieval.disk import disk_errors, write_atomically

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from medhop_dspy.retrieval.embedding import Encoder

BLOCK: Final = 2048


class NameVectors:
    """A journal of the vectors made so far: a file for each block, kept until the graph is written.

    A build that was killed loses a block of work at most.
    """

    def __init__(self, folder: Path, embedder: Encoder, known: Mapping[str, NDArray[np.float32]]) -> None:
        """Read what an interrupted build has left.

        Args:
            folder: Of the journal.
            embedder: The model; a journal of another one is thrown away.
            known: Vectors (d,) of names, by the same model.
        """
        self._folder = folder
        self._embedder = embedder
        self._about = f"{embedder.digest} {embedder.revision} {embedder.dimension}"
        self._known = dict(known)
        self.embedded = 0
        for file in sorted(folder.glob("*.npz")):
            self._read(file)

    def embed(
        self, names: Sequence[str], progress: Callable[[int, int], object] = lambda done, total: None
    ) -> NDArray[np.float32]:
        """(n, d) unit vectors of ``names``, in their order; ``progress`` gets names done and to do.

        Raises:
            DiskFullError: if no space is left.
        """
        # Names of like length stand together, which makes for full batches of equal token counts.
        missing = sorted({name for name in names if name not in self._known}, key=lambda name: (len(name), name))
        for start in range(0, len(missing), BLOCK):
            block = missing[start : start + BLOCK]
            vectors = self._embedder.embed_names(block)
            self._write(block, vectors)
            self._known |= zip(block, vectors, strict=True)
            self.embedded += len(block)
            progress(self.embedded, len(missing))
        return np.array([self._known[name] for name in names], np.float32).reshape(-1, self._embedder.dimension)

    def clear(self) -> None:
        """Throw the journal away: the graph holds it all."""
        with disk_errors(self._folder):
            shutil.rmtree(self._folder, ignore_errors=True)

    def _read(self, file: Path) -> None:
        try:
            with np.load(file, allow_pickle=False) as block:
                about, names, vectors = str(block["about"]), block["names"].tolist(), block["vectors"]
        except (OSError, EOFError, ValueError, KeyError, BadZipFile):
            about, names, vectors = "", [], np.zeros((0, 0), np.float32)
        if about != self._about or vectors.shape != (len(names), self._embedder.dimension):
            with disk_errors(file):
                file.unlink(missing_ok=True)
            return
        self._known |= zip(names, vectors, strict=True)

    def _write(self, names: Sequence[str], vectors: NDArray[np.float32]) -> None:
        with disk_errors(self._folder):
            self._folder.mkdir(exist_ok=True)
            number = max((int(file.stem) for file in self._folder.glob("*.npz")), default=-1) + 1
            write_atomically(
                self._folder / f"{number:06d}.npz",
                lambda stream: np.savez(stream, about=np.array(self._about), names=np.array(names), vectors=vectors),
            )
