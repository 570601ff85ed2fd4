"""``programs/evaluate.py``: exit codes; as a real process output and interruption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from medhop_dspy.evaluation.results import read_any_results, read_results
from medhop_dspy.evaluation.tally import SUMMARY
from tests.conftest import ROOT, script_app
from tests.lm.conftest import MODEL, Remote, completion
from tests.pipelines.conftest import FACTS
from tests.retrieval.tiny_encoder import make_encoder

QUESTION = {"QIDX": "1", "Question": "Which gene is mutated in Marfan syndrome?", "answer": "FBN1", "hops": 1}


def start(*arguments, home):
    env = {k: v for k, v in os.environ.items() if not k.startswith("MEDHOP_")} | {"MEDHOP_HOME": str(home)}
    return subprocess.Popen(
        [sys.executable, "programs/evaluate.py", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        cwd=ROOT,
    )


def finished(process):
    output, errors = process.communicate(timeout=120)
    return process.returncode, output, errors


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "dev.jsonl"
    path.write_text("".join(json.dumps(QUESTION | {"QIDX": str(n)}) + "\n" for n in range(3)))
    return path


FAULTS = {
    "no file": (["--data", "no.jsonl"], 2, "cannot read no.jsonl"),
    "no question": (["--data", os.devnull], 2, "holds no row"),
    "a filter that leaves nothing": (["--min-hops", "5"], 2, "none of the 3 questions has 5 hops or more"),
    "no such program": (["nope.json"], 3, "cannot read program nope.json"),
    "no such setting": (["--set", "evidense=3"], 3, "evidense"),
    "no models": ([], 6, "medhop models fetch"),
}


@pytest.mark.parametrize(("arguments", "code", "message"), FAULTS.values(), ids=FAULTS)
def test_an_expected_error_is_one_message_and_its_exit_code(data, tmp_path, in_process, arguments, code, message):
    program = [] if "nope.json" in arguments else ["single_pass"]
    given = [*program, "--data", data, "--out", tmp_path / "run", *arguments]
    ended, output, errors = in_process(script_app("evaluate"), *given, home=tmp_path)
    assert (ended, output) == (code, ""), errors
    assert message in errors
    assert not (tmp_path / "run").exists()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Options for an index of a few passages, embedded by a random model that needs no download."""
    from medhop_dspy.retrieval.embedding import Embedder
    from medhop_dspy.retrieval.index import Index
    from medhop_dspy.settings import Settings

    folder = tmp_path_factory.mktemp("world")
    encoder = make_encoder(folder / "encoder")
    corpus = folder / "corpus.jsonl"
    pages = [{"id": title, "title": title, "url": "", "text": text} for title, text in FACTS.items()]
    corpus.write_text("".join(json.dumps(page) + "\n" for page in pages))
    settings = Settings.load("local", home=folder, embedder=str(encoder), reranker="none")
    Index.build(str(folder / "index"), corpus, Embedder.from_settings(settings), settings)[0].close()
    places = {"index": folder / "index", "embedder": encoder, "reranker": "none", "backend": "openai", "retries": 0}
    return [part for name, value in places.items() for part in ("--set", f"{name}={value}")]


def test_ended_from_outside_and_resumed(world, data, make_remote, tmp_path):
    remote = make_remote()

    def slow(handler):
        time.sleep(0.5)
        Remote._send(handler, completion("FBN1"))

    remote.replies = [completion("FBN1"), slow]
    server = ["--set", f"lm_url={remote.url}", "--set", f"lm_model={MODEL}"]
    command = ["single_pass", "--data", data, "--out", tmp_path / "run", *world]
    process = start(*command, *server, home=tmp_path)
    while remote.requests < 2 and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    code, output, errors = finished(process)
    assert (code, output) == (130, "") and "Traceback" not in errors, errors
    assert json.loads((tmp_path / "run" / SUMMARY).read_text())["pending"] == 2

    code, output, errors = finished(start(*command, *server, home=tmp_path))
    assert code == 0, errors
    assert "3: 3 answered, 0 failed" in output and output.endswith("before you rely on one.\n")
    assert "Not a medical device." in output
    assert errors.startswith("1/3 EM 1.000 (1 of 1)")
    assert [result.id for result in read_results(tmp_path / "run")] == ["0", "1", "2"]


def test_multiple_choice_and_no_choice(world, make_remote, tmp_path):
    remote = make_remote()
    remote.replies = [completion("FBN1"), completion("none of them"), completion("FBN2")]
    rows = [{"question": QUESTION["Question"], "options": {"A": "FBN2", "B": "FBN1"}, "answer_idx": "B"}] * 3
    data = tmp_path / "mcq.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    server = ["--set", f"lm_url={remote.url}", "--set", f"lm_model={MODEL}"]
    command = ["single_pass", "--data", data, "--out", tmp_path / "run", *world, *server]
    code, output, errors = finished(start(*command, home=tmp_path))
    assert code == 0, errors
    assert "accuracy               0.333 [0.000, 1.000] (1 of 3)" in output
    assert "no choice              1 of 3" in output and "exact match" not in output
    assert "Not a medical device." in output and errors.startswith("0/3 \n")
    assert [(result.choice, result.right) for result in read_any_results(tmp_path / "run")] == [
        ("B", True), (None, False), ("A", False),
    ]  # fmt: skip
    assert all("FBN2" in body["messages"][-1]["content"] for body in remote.bodies)
