"""``programs/compile.py``: exit codes; as a real process output and what it writes."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from medhop_dspy import saving
from tests.conftest import ROOT, script_app
from tests.evaluation.test_evaluate_script import world  # noqa: F401  (a fixture)
from tests.lm.conftest import MODEL, completion


def compiled(*arguments, home):
    env = {k: v for k, v in os.environ.items() if not k.startswith("MEDHOP_")} | {"MEDHOP_HOME": str(home)}
    command = [sys.executable, "programs/compile.py", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env, cwd=ROOT, timeout=120)


def write(path, questions):
    rows = [{"QIDX": key, "Question": f"Which gene is mutated in {text}?", "answer": "FBN1", "answer_type": "gene"}
            for key, text in questions.items()]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def data(tmp_path):
    return write(tmp_path / "dev.jsonl", {n: f"Marfan syndrome {n}" for n in "abcd"})


FAULTS = {
    "no such optimiser": (["--optimizer", "adam"], 2, "unknown optimiser 'adam'"),
    "too few questions": (["--optimizer", "simba"], 2, "needs 32 questions to compile on, got 4"),
    "a bad budget": (["--optimizer", "labeled", "--demos", "-1"], 2, "--demos"),
    "no models": (["--optimizer", "labeled"], 6, "medhop models fetch"),
    "a program that is no .json": (["--optimizer", "labeled", "--out", "p.pkl"], 3, "ends in .json, not '.pkl'"),
    "a folder in a file": (["--optimizer", "labeled", "--out", "README.md/p.json"], 3, "cannot write program"),
}
if importlib.util.find_spec("optuna") is None:
    FAULTS["a missing package"] = (["--optimizer", "mipro"], 2, "pip install 'medhop-dspy[optuna]'")


@pytest.mark.parametrize(("arguments", "code", "message"), FAULTS.values(), ids=FAULTS)
def test_an_expected_error_is_one_message_and_its_exit_code(data, tmp_path, in_process, arguments, code, message):
    given = ["single_pass", "--data", data, "--out", tmp_path / "p.json", *arguments]
    ended, output, errors = in_process(script_app("compile"), *given, home=tmp_path)
    assert (ended, output) == (code, ""), errors
    assert message in errors
    assert not (tmp_path / "p.json").exists()


def test_a_test_file_beside_the_data_is_kept_apart(data, tmp_path, in_process):
    write(tmp_path / "test.jsonl", {"x": "Marfan syndrome b"})
    given = ["single_pass", "--data", data, "--optimizer", "labeled", "--out", tmp_path / "p.json"]
    ended, _, errors = in_process(script_app("compile"), *given, home=tmp_path)
    assert ended == 2 and "1 questions to train on are test questions: QIDX b" in errors


def test_it_freezes_only_what_is_better_or_asked_for(world, data, make_remote, tmp_path):  # noqa: F811
    remote = make_remote()
    remote.replies = [completion("FBN1")]
    write(tmp_path / "test.jsonl", {"x": "Ehlers-Danlos syndrome"})
    server = ["--set", f"lm_url={remote.url}", "--set", f"lm_model={MODEL}"]
    out = tmp_path / "compiled" / "p.json"
    command = ["single_pass", "--data", data, "--optimizer", "labeled", "--folds", "2", "--out", out]
    command += ["--work", tmp_path / "work", *world, *server]
    done = compiled(*command, home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "uncompiled  1.000 [1.000, 1.000]" in done.stdout and "No gain is shown" in done.stdout
    assert "4 questions are few: each weighs 25.0 points." in done.stdout and "Not a medical device." in done.stdout
    assert "nothing frozen" in done.stderr and not out.exists()

    asked = remote.requests
    done = compiled(*command, "--freeze", home=tmp_path)
    assert done.returncode == 0 and f"frozen: {out}, uncompiled" in done.stdout, done.stderr
    assert remote.requests == asked, "all answers stood in the work folder"
    made = saving.read(out)["medhop"]["compiling"]
    assert (made["frozen_because"], made["better"], made["model"]["name"]) == ("asked", False, MODEL)
    assert made["frozen"] == "uncompiled" and saving.read(out)["state"]["draft"]["demos"] == []
    assert [test["name"] for test in made["tests"]] == ["test.jsonl"]
    assert made["data"]["name"] == "dev.jsonl" and len(made["data"]["sha256"]) == 64
