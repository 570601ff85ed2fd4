"""The real local model, the real index of the bundled corpus: built once for all tests of this folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from medhop_dspy.errors import ArtefactError
from medhop_dspy.lm import artefacts
from medhop_dspy.settings import Settings
from tests.conftest import ROOT

SMALL = "smollm2-135m-instruct-q4_1"


def _require(name: str, home: Path) -> None:
    try:
        artefacts.path(name, home)
    except ArtefactError as error:
        pytest.skip(f"{error} ({error.hint})")


@pytest.fixture(scope="session")
def real() -> Settings:
    """The ``local`` preset over an index of ``data/corpus`` kept beside the models (building it again is a no-op)."""
    settings = Settings.load("local")
    for name in artefacts.needed(settings):
        _require(name, settings.home)
    settings = settings.replace(index=str(settings.home / "test-index"), orphanet=ROOT / "data" / "orphanet")
    from medhop_dspy.retrieval.embedding import Embedder
    from medhop_dspy.retrieval.index import Index

    index, _ = Index.build(settings.index, ROOT / "data" / "corpus", Embedder.from_settings(settings), settings)
    index.close()
    return settings


@pytest.fixture(scope="session")
def served(real):
    """Settings of one running embedded server with the 0.5B model."""
    from medhop_dspy.lm.serve import model_server

    with model_server(real) as settings:
        yield settings


@pytest.fixture(scope="session")
def served_small(real):
    """Settings of one running embedded server with SmolLM2-135M."""
    from medhop_dspy.lm.serve import model_server

    _require(SMALL, real.home)
    with model_server(real.replace(lm_model=SMALL, port=30001)) as settings:
        yield settings


@pytest.fixture
def copied_index(real, tmp_path):
    """A copy of the index that a test may damage."""
    target = tmp_path / "index"
    shutil.copytree(real.index, target)
    return real.replace(index=str(target))
