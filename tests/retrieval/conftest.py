"""An index of 20 documents, and what it takes to open it."""

import shutil
from pathlib import Path

import pytest

from medhop_dspy.retrieval.index import Index
from medhop_dspy.settings import Settings

from .corpora import documents, write_corpus
from .hashing_encoder import HashingEncoder


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings.load("local", home=tmp_path_factory.mktemp("home"), chunk_size=64, chunk_overlap=8)


@pytest.fixture
def encoder() -> HashingEncoder:
    return HashingEncoder()


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, settings: Settings) -> Path:
    """An index of 20 documents, to be copied by tests that change it."""
    folder = tmp_path_factory.mktemp("built")
    corpus = write_corpus(folder / "corpus.jsonl", documents(20))
    Index.build(str(folder / "index"), corpus, HashingEncoder(), settings)[0].close()
    return folder


@pytest.fixture
def place(built: Path, tmp_path: Path) -> Path:
    """A copy of the index that a test may change."""
    return Path(shutil.copytree(built / "index", tmp_path / "index"))
