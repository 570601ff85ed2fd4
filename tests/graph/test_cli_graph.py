"""The commands of ``medhop graph`` on a small corpus, with a real embedding model of one layer."""

import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from typer.testing import CliRunner

from medhop_dspy.cli import app
from medhop_dspy.errors import CorpusError, GraphError, InputError, ProgramError, SettingsError
from medhop_dspy.graph.index import GraphIndex
from medhop_dspy.pipelines.registry import build as build_program
from medhop_dspy.retrieval.embedding import Embedder
from medhop_dspy.retrieval.index import Index
from medhop_dspy.runtime import load, open_retriever, session
from medhop_dspy.settings import Settings
from tests.lm.conftest import MODEL, completion
from tests.lm.conftest import make_remote as make_remote
from tests.lm.conftest import remote as remote
from tests.retrieval.tiny_encoder import make_encoder

CORPUS = {
    "Marfan syndrome": "Marfan syndrome affects connective tissue. It is caused by mutations in the gene FBN1.",
    "FBN1": "FBN1 encodes fibrillin-1. The gene FBN1 lies on chromosome 15.",
    "Losartan": "Losartan is a drug. Losartan treats Marfan syndrome.",
}


def write(file: Path, corpus: dict[str, str]) -> Path:
    rows = [{"id": title.lower(), "title": title, "text": text} for title, text in corpus.items()]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that is MEDHOP_HOME, with an index and a graph; to be copied by tests that change it."""
    home = tmp_path_factory.mktemp("home")
    make_encoder(home / "models" / "tiny")
    write(home / "corpus.jsonl", CORPUS)
    assert medhop(home, "index", "build", str(home / "corpus.jsonl")).exit_code == 0
    result = medhop(home, "graph", "build")
    assert result.exit_code == 0, result.output
    return home


@pytest.fixture
def home(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "home"))


def medhop(home: Path, *arguments: str):
    env = {"MEDHOP_HOME": str(home), "MEDHOP_EMBEDDER": "tiny", "MEDHOP_SETTINGS": "", "MEDHOP_PRESET": ""}
    return CliRunner().invoke(app, list(arguments), env=env)


@pytest.mark.parametrize(
    ("command", "first"),
    [
        ("build", "Make the graph hold what the passages of the vector index say."),
        ("add", "Add the documents that the vector index has gained;"),
        ("info", "Show what the graph is made of:"),
        ("show", "Show what lies around an entity:"),
        ("train", "Train the graph model (graph_scorer gfm)"),
    ],
)
def test_every_command_explains_itself(command: str, first: str) -> None:
    result = CliRunner().invoke(app, ["graph", command, "--help"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    assert first in " ".join(result.output.split())


def test_a_dictionary_graph_is_built_and_shown(built: Path) -> None:
    graph = GraphIndex.open(built / "graph")
    assert {"Marfan syndrome", "FBN1", "Losartan"} <= set(graph.names)
    result = medhop(built, "graph", "info")
    assert result.exit_code == 0, result.output
    assert f"digest      {graph.digest}" in result.stdout
    assert f"entities    {len(graph.names):,} by dictionary" in result.stdout
    assert "in 3 passages" in result.stdout
    state = json.loads(medhop(built, "graph", "info", "--json", "--hubs", "1").stdout)
    assert (state["entities"], len(state["hubs"]), state["digest"]) == (len(graph.names), 1, graph.digest)


def test_building_again_says_that_nothing_is_to_do_and_other_thresholds_what_they_were(home: Path) -> None:
    again = medhop(home, "graph", "build")
    assert "nothing to do" in again.stderr and "0 read, 3 read before" in again.stdout
    other = medhop(home, "graph", "build", "--synonyms", "0.9", "--neighbours", "1", "--similarity", "0.5")
    assert "synonym_floor 0.85, wanted 0.9; neighbours 5, wanted 1; neighbour_floor 0.6, wanted 0.5" in other.stderr
    assert "0 read, 3 read before" in other.stdout


def test_a_new_document_is_added(home: Path) -> None:
    write(home / "more.jsonl", {"Losartan potassium": "Losartan potassium treats hypertension."})
    assert medhop(home, "index", "add", str(home / "more.jsonl")).exit_code == 0
    settings = Settings.load(home=home, embedder="tiny")
    with (
        Index.open(settings.index_location, Embedder.from_settings(settings), settings) as index,
        pytest.raises(GraphError, match="is of the index"),
    ):
        GraphIndex.open(home / "graph", index)
    result = medhop(home, "graph", "add")
    assert "passages: 1 read, 3 read before" in result.stdout, result.output
    assert "losartan potassium#0" in GraphIndex.open(home / "graph").passage_ids
    assert "nothing to do" in medhop(home, "graph", "add").stderr


def test_other_places_than_those_of_the_settings(home: Path) -> None:
    index = home / "elsewhere"
    shutil.move(home / "index", index)
    result = medhop(home, "graph", "build", "--index", str(index), "--out", str(home / "other"), "--limit", "2")
    assert result.exit_code == 0, result.output
    assert len(GraphIndex.open(home / "other").passage_ids) == 2
    assert f"folder      {home / 'other'}" in medhop(home, "graph", "info", "--graph", str(home / "other")).stdout


def test_show_tells_relations_and_draws_them(built: Path, tmp_path: Path) -> None:
    picture = tmp_path / "fbn1.svg"
    result = medhop(built, "graph", "show", "fbn-1", "--hops", "2", "--picture", str(picture))
    assert result.exit_code == 0, result.output
    first, *rest = result.stdout.splitlines()
    assert first.startswith("FBN1 (gene): ") and "Marfan syndrome" in first
    assert any("chromosome 15" in line and "[FBN1]" in line for line in rest)
    assert "FBN1" in "".join(ET.parse(picture).getroot().itertext())
    few = medhop(built, "graph", "show", "FBN1", "--hops", "2", "--limit", "1")
    assert len(few.stdout.splitlines()) == 2
    assert "more edges not shown" in few.stderr


def test_an_unknown_entity_is_one_message_with_suggestions(built: Path) -> None:
    result = medhop(built, "graph", "show", "Marfan")
    assert isinstance(result.exception, InputError)
    assert "Nearest names: Marfan syndrome" in result.exception.hint


def test_an_unfinished_graph_is_one_message_and_exit_code_5(built: Path, tmp_path: Path) -> None:
    (tmp_path / "graph" / "extractions").mkdir(parents=True)
    env = {k: v for k, v in os.environ.items() if not k.startswith("MEDHOP_")} | {"MEDHOP_HOME": str(tmp_path)}
    command = [str(Path(sys.executable).parent / "medhop"), "graph", "info"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env, timeout=60)
    assert done.returncode == 5
    assert "its build was interrupted" in done.stderr and "medhop graph build" in done.stderr
    assert (done.stdout, "Traceback" in done.stderr) == ("", False)
    with pytest.raises(GraphError, match="there is no graph"):
        raise medhop(built, "graph", "add", "--graph", str(tmp_path / "none")).exception


def test_a_model_graph_counts_its_calls_and_tokens(home: Path, remote) -> None:
    entities = {"entities": [{"name": "FBN1", "type": "gene"}, {"name": "Marfan syndrome", "type": "disease"}]}
    triples = {"triples": [{"subject": "FBN1", "relation": "causes", "object": "Marfan syndrome"}]}
    remote.replies = [completion(json.dumps(reply)) for _ in range(3) for reply in (entities, triples)]
    server = ["--set", f"lm_url={remote.url}", "--set", f"lm_model={MODEL}"]
    out = str(home / "by-model")
    result = medhop(home, "graph", "build", "--extractor", "model", "--out", out, *server)
    assert result.exit_code == 0, (result.output, result.exception)
    assert "6 LM calls, 600 prompt tokens, 42 generated" in result.stderr
    graph = GraphIndex.open(Path(out))
    assert (graph.names, graph.types, graph.manifest.source) == (
        ("FBN1", "Marfan syndrome"),
        ("gene", "disease"),
        "model",
    )
    again = medhop(home, "graph", "add", "--graph", out, *server)
    assert "nothing to do" in again.stderr and "LM calls" not in again.stderr
    assert remote.requests == 6


def test_a_model_is_trained_on_the_graph_and_on_questions(home: Path) -> None:
    rows = [
        {"QIDX": str(n), "Question": f"Which gene is mutated in Marfan syndrome, {n}?", "answer": "FBN1",
         "supporting_titles": ["Marfan syndrome", "FBN1"]}
        for n in range(4)
    ]  # fmt: skip
    (home / "dev.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    sizes = ["--hidden", "4", "--layers", "1", "--fact-epochs", "1", "--question-epochs", "2"]
    result = medhop(home, "graph", "train", "--questions", str(home / "dev.jsonl"), *sizes)
    assert result.exit_code == 0, (result.output, result.exception)
    assert f"weights at {home / 'graph' / 'gfm'}" in result.stdout
    assert "4 questions, 0 left out" in result.stdout
    config = json.loads((home / "graph" / "gfm" / "config.json").read_bytes())
    assert config["options"]["hidden"] == 4
    assert (home / "graph" / "gfm" / "model.safetensors").is_file()
    assert "only its facts" not in result.stderr
    (home / "dev.jsonl").write_text(json.dumps(rows[0] | {"supporting_titles": ["Of no graph"]}), encoding="utf-8")
    result = medhop(home, "graph", "train", "--questions", str(home / "dev.jsonl"), *sizes)
    assert "no question has a name and a passage in this graph; only its facts were trained on" in result.stderr


def test_an_index_is_closed_where_its_program_cannot_be_made(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[Index] = []
    close = Index.close
    monkeypatch.setattr(Index, "close", lambda index: (closed.append(index), close(index))[1])
    settings = Settings.load(home=built, embedder="tiny", reranker="none")
    with pytest.raises(CorpusError), session("single_pass", settings.replace(orphanet=tmp_path / "none")):
        pass
    assert len(closed) == 1

    retriever = open_retriever(settings)
    build_program("single_pass", retriever, settings).save(tmp_path / "p.json")
    retriever.index.close()
    document = json.loads((tmp_path / "p.json").read_text(encoding="utf-8"))
    document["medhop"]["index_digest"] = "0" * 64
    (tmp_path / "p.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(ProgramError, match="index: saved for 000000000000"):
        load(tmp_path / "p.json", settings)
    assert len(closed) == 3 and closed[1] is retriever.index


def test_a_bad_threshold_is_refused_before_anything_is_opened(tmp_path: Path) -> None:
    assert isinstance(medhop(tmp_path, "graph", "build", "--synonyms", "2").exception, InputError)
    assert isinstance(medhop(tmp_path, "graph", "build", "--set", "nope").exception, SettingsError)
