import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from medhop_dspy.errors import StoreError, StoreLockedError
from medhop_dspy.retrieval.corpus import Document
from medhop_dspy.retrieval.index import Index
from medhop_dspy.retrieval.location import FolderLocation
from medhop_dspy.retrieval.manifest import Manifest, Recipe
from medhop_dspy.retrieval.store import WRITE_BATCH, Store
from medhop_dspy.retrieval.sync import Synchroniser
from medhop_dspy.settings import Settings

from .corpora import document, documents, state_of, write_corpus
from .hashing_encoder import HashingEncoder

TOP = Path(__file__).resolve().parents[len(__package__.split("."))]  # where the package of the tests is found


def run_build(location: Path, corpus: Path, home: Path, when: str) -> subprocess.Popen[str]:
    module = f"{__package__}.build_in_process"
    command = [sys.executable, "-m", module, str(location), str(corpus), str(home), when]
    return subprocess.Popen(command, cwd=TOP, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


class Limited:
    """A client and collection of Chroma that take few chunks at once and may fail, as some builds of SQLite do."""

    def __init__(self, real: Any, limit: int, fail_at: int = 0) -> None:
        self._real, self._limit, self._fail_at = real, limit, fail_at
        self.calls: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def get_max_batch_size(self) -> int:
        return self._limit

    def upsert(self, ids: list[str], **columns: Any) -> None:
        from chromadb.errors import InternalError

        self.calls.append(len(ids))
        if len(ids) > self._limit or len(self.calls) == self._fail_at:
            raise InternalError(f"batch of {len(ids)}")
        self._real.upsert(ids=ids, **columns)


def test_batches_keep_to_the_limit_of_the_client(tmp_path: Path, settings: Settings, encoder: HashingEncoder) -> None:
    corpus = [Document(f"d{n:02d}", "t", "", "gene") for n in range(20)] + [document(1, words=30)]
    recipe = Recipe.of(encoder, settings)
    location = FolderLocation(tmp_path / "index")

    def synchronise(fail_at: int = 0) -> Limited:
        real = Store.create(location, Manifest("building", "1.5.9", recipe))
        client, collection = Limited(real._client, 10), Limited(real._collection, 10, fail_at)
        try:
            Synchroniser(Store(location, client, collection), encoder, recipe).put(corpus)
        finally:
            real.close()
        return collection

    with pytest.raises(StoreError, match="batch of 10"):
        synchronise(fail_at=2)
    assert encoder.embedded == 20
    encoder.embedded = 0
    assert synchronise().calls == [10, 5]
    assert encoder.embedded == 15
    encoder.embedded = 0
    assert synchronise().calls == []
    shutil.rmtree(location.folder)
    assert synchronise().calls == [10, 10, 5]


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory, settings: Settings) -> tuple[Path, tuple[Any, ...]]:
    """A corpus of three batches and a bit, and the state of an index that was built without interruption."""
    folder = tmp_path_factory.mktemp("large")
    corpus = write_corpus(folder / "corpus.jsonl", documents(105))
    index, report = Index.build(str(folder / "index"), corpus, HashingEncoder(), settings)
    assert report.embedded > 3 * WRITE_BATCH
    with index:
        return corpus, state_of(index)


@pytest.mark.parametrize(
    ("when", "batches_kept"), [("first", {0}), ("batch", {1}), ("write", {1, 2, 3}), ("embed", {2})]
)
def test_a_killed_build_goes_on(
    large: tuple[Path, tuple[Any, ...]],
    tmp_path: Path,
    settings: Settings,
    encoder: HashingEncoder,
    when: str,
    batches_kept: set[int],
) -> None:
    corpus, (passages, vectors, digest) = large
    place = tmp_path / "index"
    process = run_build(place, corpus, tmp_path, when)
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == -signal.SIGKILL, errors
    with pytest.raises(StoreError, match="not complete: its build was interrupted"):
        Index.open(str(place), encoder, settings)
    index, report = Index.build(str(place), corpus, encoder, settings)
    with index:
        kept = len(passages) - report.embedded
        assert encoder.embedded == report.embedded
        assert kept in {min(WRITE_BATCH * n, len(passages)) for n in batches_kept}
        resumed = state_of(index)
        assert resumed[0] == passages
        np.testing.assert_array_equal(resumed[1], vectors)
        assert resumed[2] == digest
    with Index.open(str(place), encoder, settings.replace(index_search="hnsw")) as approximate:
        ends = vectors[[0, kept - 1, kept % len(passages), -1]]
        found = approximate.search(ends, 1)
        assert [f[0].score for f in found] == pytest.approx([1.0] * 4, abs=1e-5)


def test_one_writer_many_readers(place: Path, tmp_path: Path, settings: Settings, encoder: HashingEncoder) -> None:
    corpus = write_corpus(tmp_path / "c.jsonl", documents(25))
    with Index.open(str(place), encoder, settings) as index:
        before = index.search(encoder.embed(["gene7"]), 5)
    process = run_build(place, corpus, settings.home, "wait")
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        for mode in ("exact", "hnsw"):
            with Index.open(str(place), encoder, settings.replace(index_search=mode)) as reader:
                found = reader.search(encoder.embed(["gene7"]), 5)
                assert [p.id for p in found[0]] == [p.id for p in before[0]]
        started = time.monotonic()
        with pytest.raises(StoreLockedError, match=f"{place} is being written by process {process.pid}") as caught:
            Index.build(str(place), corpus, encoder, settings)
        assert time.monotonic() - started < 5
        assert caught.value.retryable
    finally:
        process.kill()
        process.communicate()
    with pytest.raises(StoreError, match="half changed"):
        Index.open(str(place), encoder, settings)
    index, report = Index.build(str(place), corpus, encoder, settings)
    index.close()
    assert (report.added, report.unchanged) == (5, 20)


def test_a_build_in_progress_is_not_read(tmp_path: Path, settings: Settings, encoder: HashingEncoder) -> None:
    corpus = write_corpus(tmp_path / "c.jsonl", documents(3))
    process = run_build(tmp_path / "index", corpus, settings.home, "wait")
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        with pytest.raises(StoreError, match=f"not complete: process {process.pid} is building it"):
            Index.open(str(tmp_path / "index"), encoder, settings)
    finally:
        process.kill()
        process.communicate()


def test_a_second_writer_in_the_same_thread_is_refused_too(
    place: Path, settings: Settings, encoder: HashingEncoder
) -> None:
    with Index.open(str(place), encoder, settings) as first, Index.open(str(place), encoder, settings) as second:

        def nested() -> Iterator[Document]:
            with pytest.raises(StoreLockedError, match=f"process {os.getpid()}"):
                second.delete(["doc0001"])
            yield document(30)

        assert first.add(nested()).added == 1


_FULL_DISK = """
import subprocess, sys
from pathlib import Path
from medhop_dspy.errors import DiskFullError
from medhop_dspy.retrieval.index import Index
from medhop_dspy.settings import Settings
from {package}.hashing_encoder import HashingEncoder

disk, corpus, home = map(Path, sys.argv[1:])
settings = Settings.load("local", home=home, chunk_size=64, chunk_overlap=8)
try:
    Index.build(str(disk / "index"), corpus, HashingEncoder(), settings)
except DiskFullError as error:
    sys.stdout.write(f"{{type(error).__name__}}: {{error}}|{{error.hint}}\\n")
subprocess.run(["mount", "-o", "remount,size=200m", str(disk)], check=True)
index, report = Index.build(str(disk / "index"), corpus, HashingEncoder(), settings)
sys.stdout.write(index.digest)
"""


@pytest.mark.parametrize("size", ["1m", "2m"])
def test_a_full_disk(large: tuple[Path, tuple[Any, ...]], tmp_path: Path, size: str) -> None:
    corpus, (_, _, digest) = large
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f"mount -t tmpfs -o size={size} tmpfs {disk}"
    if (
        not shutil.which("unshare")
        or subprocess.run(["unshare", "-rm", "sh", "-c", mount], capture_output=True).returncode
    ):
        pytest.skip("cannot mount a small file system here")
    script = tmp_path / "full_disk.py"
    script.write_text(_FULL_DISK.format(package=__package__), encoding="utf-8")
    run = f'{mount} && exec "{sys.executable}" {script} {disk} {corpus} {tmp_path}'
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", run],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(TOP)},
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    full, resumed = done.stdout.splitlines()
    assert full.startswith(f"DiskFullError: no space left while writing {disk}/index")
    assert "run the same command again" in full
    assert resumed == digest


_QUIET = """
import sys
events = []
names = {{"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"}}
sys.addaudithook(lambda event, args: events.append((event, args)) if event in names else None)
from pathlib import Path
from medhop_dspy.retrieval.index import Index
from medhop_dspy.settings import Settings
from {package}.hashing_encoder import HashingEncoder

place, corpus, home = map(Path, sys.argv[1:])
encoder = HashingEncoder()
for mode in ("exact", "hnsw"):
    settings = Settings.load("local", home=home, chunk_size=64, chunk_overlap=8, index_search=mode)
    Index.build(str(place), corpus, encoder, settings)[0].close()
    with Index.open(str(place), encoder, settings) as index:
        index.search(encoder.embed(["gene7"]), 5)
sys.stdout.write(repr(events))
"""


def test_no_connection_and_no_word_of_telemetry(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "c.jsonl", documents(3))
    script = tmp_path / "quiet.py"
    script.write_text(_QUIET.format(package=__package__), encoding="utf-8")
    (tmp_path / ".env").write_text("anonymized_telemetry=true\nchroma_otel_collection_endpoint=http://203.0.113.9\n")
    command = [sys.executable, str(script), str(tmp_path / "index"), str(corpus), str(tmp_path)]
    # Without a network, native code cannot connect either, and whatever tries would be slow or loud.
    if shutil.which("unshare") and not subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode:
        command = ["unshare", "-rn", *command]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(TOP)},
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]"
    assert done.stderr == ""
