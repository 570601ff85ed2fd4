"""Run as ``python -m tests.graph.build_graph_in_process FOLDER GRAPH WHEN``.

Builds a graph over the index in FOLDER, and kills the process at a moment: ``extract`` after six extractions,
``embed`` while names are embedded, ``compare`` before the files are written, ``write`` while they are; or waits to be
killed after six extractions (``wait``), or does neither (``never``).
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

from medhop_dspy.graph.build import build
from medhop_dspy.retrieval.index import Index
from tests.graph.small_world import SentenceExtractor, settings_at
from tests.retrieval.hashing_encoder import HashingEncoder


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def when_there(folder: Path) -> None:
    """Die as soon as the first files of the graph are being written."""
    while not list(folder.glob(".*.new/*.npy")):
        time.sleep(0.0002)
    die()


def main(folder: str, graph: str, when: str) -> None:
    def before_passage(passage: object) -> None:
        if len(extractor.read) == 6 and when == "extract":
            die()
        if len(extractor.read) == 6 and when == "wait":
            sys.stdout.write("waiting\n")
            sys.stdout.flush()
            time.sleep(60)

    def before_names(count: int) -> None:
        if when == "embed":
            die()

    def progress(stage: str, done: int, total: int) -> None:
        if when == "compare" and stage == "comparing passages":
            die()
        if when == "write" and stage == "comparing passages":
            threading.Thread(target=when_there, args=[Path(graph)], daemon=True).start()

    extractor = SentenceExtractor(before=before_passage)
    settings = settings_at(Path(folder))
    with Index.open(str(Path(folder) / "index"), HashingEncoder(), settings) as index:
        build(Path(graph), index, HashingEncoder(before=before_names), extractor, progress=progress)


if __name__ == "__main__":
    main(*sys.argv[1:])
