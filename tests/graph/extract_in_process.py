"""Run as ``python -m tests.graph.extract_in_process FOLDER DIE_AFTER``, or without ``tests.``.

Extracts ten passages with a scripted language model into the cache in FOLDER, kills itself once DIE_AFTER of them are
done, and writes how many requests the model got.
"""

import json
import os
import signal
import sys
from pathlib import Path

import dspy

from medhop_dspy.graph.cache import ExtractionCache
from medhop_dspy.graph.extraction import ModelExtractor, extract_all
from medhop_dspy.trace import Passage

from ..conftest import ScriptedEngine, prompt_of

PASSAGES = [
    Passage(f"d#{n}", "d", f"Disease {n}", "", f"Disease {n} is caused by mutations in GENE{n}.") for n in range(10)
]


def scripted_reply(request) -> str:
    """The entities of the passage that the prompt holds, or the triple between them."""
    prompt = prompt_of(request)
    number = prompt.partition("[1] Disease ")[2].partition(":")[0]
    disease, gene = f"Disease {number}", f"GENE{number}"
    if "Entities: " in prompt:
        return json.dumps({"triples": [{"subject": disease, "relation": "is caused by", "object": gene}]})
    return json.dumps({"entities": [{"name": disease, "type": "disease"}, {"name": gene, "type": "gene"}]})


def scripted(reply) -> tuple[dspy.LM, ScriptedEngine]:
    engine = ScriptedEngine(reply)
    return dspy.LM("scripted/model", engine=engine, cache=False, num_retries=0), engine


def main(folder: str, die_after: str) -> None:
    lm, engine = scripted(scripted_reply)

    def progress(done: int, total: int) -> None:
        if done == int(die_after):
            os.kill(os.getpid(), signal.SIGKILL)

    extractor = ModelExtractor(lm, "scripted")
    with ExtractionCache(Path(folder), [extractor.digest]) as cache:
        extract_all(PASSAGES, extractor, cache, progress=progress)
    sys.stdout.write(str(len(engine.requests)))


if __name__ == "__main__":
    main(*sys.argv[1:])
