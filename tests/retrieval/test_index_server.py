import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from medhop_dspy.errors import StoreError
from medhop_dspy.retrieval.connection import connection
from medhop_dspy.retrieval.index import Index
from medhop_dspy.retrieval.location import parse_location
from medhop_dspy.retrieval.manifest import Manifest, Recipe
from medhop_dspy.retrieval.sync import UpdateReport
from medhop_dspy.settings import Settings

from .corpora import document, documents
from .hashing_encoder import HashingEncoder

TOP = Path(__file__).resolve().parents[len(__package__.split("."))]  # where the package of the tests is found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real Chroma server on the loopback interface."""
    program = shutil.which("chroma", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("the chroma program is not installed beside Python")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = tmp_path_factory.mktemp("server")
    with (folder / "log").open("wb") as log:
        command = [program, "run", "--path", str(folder / "data"), "--host", "127.0.0.1", "--port", str(port)]
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            _wait_for_port(port, process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


def _wait_for_port(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        if process.poll() is not None:
            break
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"the Chroma server did not start, exit status {process.poll()}")


def test_a_server_holds_the_same_index_as_a_folder(
    server: str, built: Path, settings: Settings, encoder: HashingEncoder
) -> None:
    place = f"{server}/same"
    index, report = Index.build(place, built / "corpus.jsonl", encoder, settings)
    assert report.added == 20
    queries = encoder.embed(["gene7 protein3", "enzyme1"])
    with index, Index.open(str(built / "index"), encoder, settings) as folder:
        assert index.digest == folder.digest
        assert [p.id for p in index.all_passages()] == [p.id for p in folder.all_passages()]
        assert index.search(queries, 10) == folder.search(queries, 10)
    with Index.open(place, encoder, settings.replace(index_search="hnsw")) as index:
        with Index.open(str(built / "index"), encoder, settings) as folder:
            expected = [[p.id for p in found] for found in folder.search(queries, 10)]
            assert [[p.id for p in found] for found in index.search(queries, 10)] == expected
        assert index.info().location == place
        assert index.add([document(30)]).added == 1
        assert index.delete(["doc0030"]).deleted == 1
        assert index.update(documents(20)) == UpdateReport(unchanged=20)
    with pytest.raises(StoreError, match=r"wanted other \(32-d"):
        Index.open(place, HashingEncoder("other"), settings)


def test_what_is_not_opened_on_a_server(server: str, settings: Settings, encoder: HashingEncoder) -> None:
    with connection(parse_location(server)) as client:
        client.create_collection("foreign", embedding_function=None)
        manifest = Manifest("building", "1.0.0", Recipe.of(encoder, settings))
        client.create_collection("begun", embedding_function=None, metadata={"manifest": manifest.to_json()})
        client.create_collection("broken", embedding_function=None, metadata={"manifest": "{"})
    for name, message in {
        "nothing": f"there is no index in {server}/nothing",
        "foreign": "was not made by this software",
        "begun": "not complete: its build was interrupted",
        "broken": "manifest of .* is damaged",
    }.items():
        with pytest.raises(StoreError, match=message):
            Index.open(f"{server}/{name}", encoder, settings)


def test_no_server(settings: Settings, encoder: HashingEncoder) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        place = f"http://127.0.0.1:{probe.getsockname()[1]}/genes"
    with pytest.raises(StoreError, match=f"the index {place}: .*refused") as caught:
        Index.open(place, encoder, settings)
    assert "server runs" in caught.value.hint


def test_a_server_that_never_answers(
    settings: Settings, encoder: HashingEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("medhop_dspy.retrieval.connection.SERVER_TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"http://127.0.0.1:{silent.getsockname()[1]}/genes"
        with pytest.raises(StoreError, match=f"the index {place}: timed out"):
            Index.open(place, encoder, settings)
