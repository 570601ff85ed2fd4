"""Everything that a question needs, opened together and closed together."""

from __future__ import annotations

from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medhop_dspy.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from medhop_dspy.graph.retriever import GraphRetriever
    from medhop_dspy.knowledge.orphanet import Orphanet
    from medhop_dspy.pipelines.program import Program
    from medhop_dspy.retrieval.embedding import Embedder
    from medhop_dspy.retrieval.index import Index
    from medhop_dspy.retrieval.rerank import Reranker
    from medhop_dspy.retrieval.retriever import Retriever


def open_retriever(settings: Settings) -> Retriever | GraphRetriever:
    """The retriever over the index at ``settings.index_location``, with the graph where ``settings.retriever`` says so.

    Where that is None, as programs decide it, there is no graph; :meth:`Program.adjusted` gives the settings that a
    program needs.

    Raises:
        StoreError: the index is missing, half-built, or was built with other settings.
        GraphError: likewise the graph; or it is of another index.
        ArtefactError: a model file is missing or damaged.
    """
    from medhop_dspy.retrieval.embedding import Embedder
    from medhop_dspy.retrieval.index import Index
    from medhop_dspy.retrieval.rerank import make_reranker

    embedder = Embedder.from_settings(settings)
    index = Index.open(settings.index_location, embedder, settings)
    try:
        return make_retriever(index, embedder, make_reranker(settings), settings)
    except BaseException:
        index.close()
        raise


def make_retriever(
    index: Index, embedder: Embedder, reranker: Reranker, settings: Settings
) -> Retriever | GraphRetriever:
    """What :func:`open_retriever` returns, over parts that are open already.

    Raises:
        GraphError: the graph is missing, half-built, or of another index.
        ArtefactError: the weights of the graph's scorer are missing or damaged.
    """
    from medhop_dspy.retrieval.retriever import Retriever

    dense = Retriever(index, embedder, reranker, settings)
    if settings.retriever in {None, "dense"}:
        return dense
    from medhop_dspy.graph.retriever import GraphRetriever

    return GraphRetriever.open(dense, embedder, settings)


def open_orphanet(settings: Settings) -> Orphanet | None:
    """The rare-disease tables, or None where ``settings.orphanet`` is not set."""
    from medhop_dspy.knowledge.orphanet import Orphanet

    return Orphanet.load(settings.orphanet) if settings.orphanet else None


def load(
    path: Path | str, settings: Settings | None = None, *, retriever: Retriever | GraphRetriever | None = None
) -> Program:
    """A saved program, ready to be called inside ``dspy.context(lm=...)``.

    Args:
        path: A file written by :meth:`Program.save`.
        settings: Must agree with the saved ones in everything that changes answers; default: the saved ones.
        retriever: Default: the index at ``settings.index_location``.

    Raises:
        ProgramError: the file does not fit this code, these settings or this index.
        StoreError: see :func:`open_retriever`.
    """
    from medhop_dspy import saving

    document = saving.read(path)
    settings = settings or saving.saved_settings(document)
    return _build(document["medhop"]["program"], settings, retriever, document)


@contextmanager
def session(program: str | Path = "medhopper", settings: Settings | None = None, **context: Any) -> Iterator[Program]:  # noqa: ANN401
    """A program with index and model server, ready to be called.

    A model server that answers at ``settings.base_url`` is used; otherwise the embedded one is started, and stopped
    at the end.

    Args:
        program: A name of :data:`medhop_dspy.pipelines.registry.PROGRAMS`, or the path of a saved program.
        settings: Default: those of a saved program, or ``Settings.load()``.
        **context: More for ``dspy.context``, such as ``callbacks``.

    Raises:
        MedhopError: whatever keeps a part from opening.
    """
    from medhop_dspy.lm.connect import connect, quiet_dspy

    quiet_dspy()
    import dspy

    from medhop_dspy.lm.serve import model_server

    if str(program).endswith(".json"):
        ready = load(program, settings)
    else:
        ready = _build(str(program), settings or Settings.load())
    with (
        closing(ready.retriever.index),
        model_server(ready.settings) as served,
        dspy.context(lm=connect(served), **context),
    ):
        yield ready


def _build(
    name: str,
    settings: Settings,
    retriever: Retriever | GraphRetriever | None = None,
    document: dict[str, Any] | None = None,
) -> Program:
    """A program with all that it needs: new, or in the state of a saved ``document``.

    Where no ``retriever`` is given, it is opened as the program asks, and closed where the program cannot be made.
    """
    from medhop_dspy import saving
    from medhop_dspy.pipelines.registry import build, program_class

    adjusted = program_class(name).adjusted(settings)  # a wrong name is told before anything is opened
    with ExitStack() as opened:
        if retriever is None:
            retriever = open_retriever(adjusted)
            opened.callback(retriever.index.close)
        program = build(name, retriever, adjusted, open_orphanet(adjusted))
        if document is not None:
            saving.restore(program, document)
        opened.pop_all()
    return program
