"""Run as ``python -m tests.retrieval.build_in_process LOCATION CORPUS HOME WHEN``, or without ``tests.``.

Builds an index and, at a moment, kills the process (``first``: before anything is embedded; ``batch``: after the
first batch; ``write``: while the second is being written; ``embed``: while the third is being embedded), or waits to
be killed (``wait``), or does neither (``never``).
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

from medhop_dspy.retrieval.index import Index
from medhop_dspy.settings import Settings

from .hashing_encoder import HashingEncoder


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(location: str, corpus: str, home: str, when: str) -> None:
    batches = 0

    def before(embedded: int) -> None:
        nonlocal batches
        if when == "wait":
            sys.stdout.write("waiting\n")
            sys.stdout.flush()
            time.sleep(60)
        if when == "first" or (when == "embed" and batches == 2):
            die()

    def progress(documents: int, chunks: int) -> None:
        nonlocal batches
        batches += 1
        if when == "batch":
            die()
        if when == "write" and batches == 1:
            threading.Timer(0.25, die).start()

    settings = Settings.load("local", home=Path(home), chunk_size=64, chunk_overlap=8)
    Index.build(location, Path(corpus), HashingEncoder(before=before), settings, progress)


if __name__ == "__main__":
    main(*sys.argv[1:])
