"""The command line: help, exit codes, output; as real processes where start-up or exit matters."""

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import dspy
import pytest
from typer.testing import CliRunner

from medhop_dspy import signatures
from medhop_dspy.cli import app
from medhop_dspy.cli.options import program_settings
from medhop_dspy.cli.progress import StepReporter
from medhop_dspy.graph import signatures as graph_signatures
from medhop_dspy.pipelines.single_pass import SinglePass
from medhop_dspy.retrieval.manifest import EncoderRecord, Manifest, Recipe
from medhop_dspy.settings import Settings
from tests.conftest import ROOT, script_app
from tests.pipelines.conftest import LexicalRetriever

MEDHOP = str(Path(sys.executable).parent / "medhop")


def medhop(*arguments, home, stdin=None, **environment):
    env = {k: v for k, v in os.environ.items() if not k.startswith("MEDHOP_")}
    env |= {"MEDHOP_HOME": str(home), **environment}
    return subprocess.run(
        [MEDHOP, *arguments], capture_output=True, text=True, check=False, env=env, input=stdin, cwd=ROOT, timeout=120
    )


def test_help_starts_fast():
    """In seconds of the processor, which do not depend on what else the machine does."""

    def spent():
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime

    times = []
    for _ in range(6):  # the first one reads the files from the disk
        start = spent()
        subprocess.run([MEDHOP, "--help"], capture_output=True, check=True)
        times.append(spent() - start)
    assert 0 < min(times) < 0.5


COMMANDS = [
    "ask", "doctor", "programs", "settings", "index build", "index add", "index check", "index info", "models list",
    "models fetch", "models verify", "lm serve", "lm status", "lm install-sglang",
    "graph build", "graph add", "graph info", "graph show", "graph train",
    "data check", "data recall", "analyse disagreement", "analyse errors", "analyse strategies", "report", "submit",
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command):
    result = CliRunner().invoke(app, [*command.split(), "--help"])
    assert result.exit_code == 0
    assert len(result.output.splitlines()) > 4


FAULTS = {
    "no question": (["ask"], 2, "standard input holds no question"),
    "blank file": (["ask", "--file", os.devnull], 2, "holds no row"),
    "two sources": (["ask", "Q?", "--file", "x.txt"], 2, "not both"),
    "unknown preset": (["ask", "Q?", "--preset", "huge"], 3, "unknown preset 'huge'"),
    "unknown setting": (["ask", "Q?", "--set", "evidense=3"], 3, "evidense"),
    "bad override": (["ask", "Q?", "--set", "evidence"], 3, "NAME=VALUE"),
    "bad value": (["settings", "--set", "evidence=0"], 3, "greater than or equal to 1"),
    "two that clash": (["settings", "--set", "evidence=2"], 3, "hop_evidence (4) must not exceed evidence (2)\n"),
    "unknown program": (["ask", "Q?", "--program", "nope.json"], 3, "cannot read program"),
    "no model files": (["ask", "Q?"], 6, "medhop models fetch"),
    "no server": (["lm", "status", "--set", "port=1"], 4, "no model server answers"),
    "no artefact": (["models", "verify"], 6, "is missing"),
    "unknown artefact": (["models", "fetch", "gpt-9"], 6, "gpt-9"),
    "no corpus": (["index", "build", "no/such/folder"], 6, "medhop models fetch"),
    "no index": (["index", "info"], 5, "there is no index in"),
    "no graph": (["graph", "info"], 5, "there is no graph in"),
}


@pytest.mark.parametrize(("arguments", "code", "message"), FAULTS.values(), ids=FAULTS)
def test_an_expected_error_is_one_message_and_its_exit_code(arguments, code, message, tmp_path, in_process):
    ended, output, errors = in_process(app, *arguments, home=tmp_path)
    assert (ended, output) == (code, ""), errors
    assert errors.count("the-command: ") == 1 and message in errors


def test_as_a_process_an_expected_error_is_one_message_and_its_exit_code(tmp_path):
    done = medhop("ask", home=tmp_path, stdin="")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "medhop: standard input holds no question\n")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("medhop", ["ask", "Q?", "--program"]),
        ("evaluate", ["--data", "data/dev.jsonl", "--out", "run"]),
        ("compile", ["--data", "data/dev.jsonl", "--out", "x.json", "--optimizer", "labeled"]),
    ],
)
def test_a_preset_for_a_saved_program_is_refused(name, arguments, tmp_path, in_process):
    saved = tmp_path / "p.json"
    SinglePass(LexicalRetriever(), Settings()).save(saved)
    command = app if name == "medhop" else script_app(name)
    ended, output, errors = in_process(command, *arguments, saved, "--preset", "paper", home=tmp_path)
    assert (ended, output) == (2, "")
    assert "brings its own settings, --preset paper cannot change them" in errors


def test_a_preset_from_the_environment_gives_way_to_a_saved_program(tmp_path, monkeypatch):
    saved = tmp_path / "p.json"
    SinglePass(LexicalRetriever(), Settings(evidence=5, hop_evidence=2)).save(saved)
    monkeypatch.setenv("MEDHOP_PRESET", "paper")
    settings = program_settings(str(saved), "paper", None, ["port=7777"])
    assert (settings.evidence, settings.preset, settings.port) == (5, "local", 7777)


@pytest.mark.parametrize(("state", "told"), [("building", True), ("updating", True), ("complete", False)])
def test_index_info_needs_no_model_and_tells_what_is_not_complete(state, told, tmp_path):
    recipe = Recipe(EncoderRecord("m", "r", "d", 3), 512, 32, embed_title=True)
    made = Manifest(state, "1.5", recipe, documents=2, chunks=7, corpus_digest="c")
    (tmp_path / "manifest.json").write_text(made.to_json())
    places = ["--set", f"index={tmp_path}", "--set", f"home={tmp_path / 'empty'}"]
    done = CliRunner().invoke(app, ["index", "info", *places])
    assert done.exit_code == 0, done.exception
    head, brace, rest = done.stdout.partition("{")
    assert json.loads(brace + rest) == json.loads(made.to_json())
    lines = dict(line.split(maxsplit=1) for line in head.splitlines())
    assert (lines["location"], lines["digest"]) == (str(tmp_path), made.digest)
    assert lines.get("state") == (f"{state}, not complete" if told else None)


def test_settings_as_json_and_from_the_environment(tmp_path):
    done = medhop("settings", "--json", "--set", "evidence=5", home=tmp_path, MEDHOP_SEED="7")
    values = json.loads(done.stdout)
    assert (values["evidence"], values["seed"], values["home"]) == (5, 7, str(tmp_path))


def test_settings_tell_what_is_allowed(tmp_path):
    lines = medhop("settings", home=tmp_path).stdout.splitlines()
    assert 'search = "similarity"   (similarity, mmr)' in lines
    assert "evidence = 12   (at least 1, at most 100)" in lines
    assert "retriever = null   (dense, graph, hybrid)" in lines


def test_settings_never_show_a_key(tmp_path):
    done = medhop("settings", home=tmp_path, MEDHOP_API_KEY="sk-test-000")
    assert done.returncode == 0
    assert "sk-test-000" not in done.stdout


def test_every_prompt_has_words_for_those_who_wait():
    prompts = {
        name
        for module in (signatures, graph_signatures)
        for name, each in vars(module).items()
        if isinstance(each, type) and issubclass(each, dspy.Signature) and each.__module__ == module.__name__
    }
    told = []
    reporter = StepReporter(told.append)
    for name in prompts:
        module = signatures if hasattr(signatures, name) else graph_signatures
        reporter.on_module_start("1", dspy.Predict(getattr(module, name)), {"kwargs": {"question": "Why?"}})
    assert len(told) == len(prompts) > 15
    assert not {text.strip() for text in told} & prompts  # the name alone is no words
    assert "  answering sub-question: Why?" in told


def test_programs_are_listed():
    output = CliRunner().invoke(app, ["programs"]).output
    assert "medhopper" in output and "single_pass" in output


def test_doctor_names_every_fault_and_its_remedy(tmp_path):
    done = medhop("doctor", home=tmp_path)
    assert done.returncode == 6
    assert "ok    packages" in done.stdout
    assert "FAULT models" in done.stdout and "medhop models fetch" in done.stdout
    assert "FAULT index" in done.stdout and "FAULT model server" in done.stdout


def test_models_list_says_how_to_get_each(tmp_path):
    done = medhop("models", "list", home=tmp_path)
    assert done.returncode == 0
    assert "missing" in done.stdout and "medhop models fetch all-MiniLM-L6-v2" in done.stdout


def test_a_backend_that_others_serve_is_not_started(tmp_path):
    done = medhop("lm", "serve", "--set", "backend=openai", home=tmp_path)
    assert done.returncode == 3
    assert "not started here" in done.stderr


@pytest.mark.parametrize(
    ("question", "message"),
    [("", "empty"), ("  ", "empty"), ("🧬🧬", "no letters"), ("a" * 20_000, "20,000 characters")],
    ids=["empty", "blank", "emoji", "long"],
)
def test_an_unusable_question_is_refused_before_anything_is_opened(question, message, tmp_path):
    start = time.perf_counter()
    done = medhop("ask", "--json", question, home=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert time.perf_counter() - start < 15
