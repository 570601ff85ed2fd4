"""Running an ablation: one evaluation run a configuration and seed, over parts that are opened once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from medhop_dspy.errors import InputError, MedhopError, ServerError
from medhop_dspy.evaluation.outcomes import AnyResult
from medhop_dspy.evaluation.results import read_any_results
from medhop_dspy.evaluation.runner import Order, Progress, choose, evaluate

if TYPE_CHECKING:
    import dspy

    from medhop_dspy.evaluation.ablations import Configuration
    from medhop_dspy.evaluation.records import Question
    from medhop_dspy.evaluation.run_folder import DataFile
    from medhop_dspy.graph.index import GraphIndex
    from medhop_dspy.graph.linking import EntityLinker
    from medhop_dspy.graph.retriever import GraphRetriever
    from medhop_dspy.graph.scoring import EntityScorer
    from medhop_dspy.knowledge.orphanet import Orphanet
    from medhop_dspy.pipelines.program import Program
    from medhop_dspy.retrieval.embedding import Embedder
    from medhop_dspy.retrieval.index import Index
    from medhop_dspy.retrieval.rerank import Reranker
    from medhop_dspy.retrieval.retriever import Retriever
    from medhop_dspy.settings import Settings

_log = logging.getLogger(__name__)
Build = Callable[[str, "Settings"], "Program"]
Watch = Callable[[str, int], AbstractContextManager[Callable[[Progress], None]]]


@dataclass(frozen=True, slots=True)
class Ablated:
    """A configuration and its results, one list a seed, each in the order of the questions.

    ``same_as`` names an earlier configuration that is the same under these settings; the results are then its own.
    """

    configuration: Configuration
    runs: tuple[tuple[AnyResult, ...], ...]
    same_as: str = ""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A configuration that could not be run, the reason, and the exit code of the error or 0 where there was none."""

    configuration: Configuration
    reason: str
    exit_code: int = 0


class SharedParts:
    """Programs over one embedding model and one graph, with one index a kind of search and one reranker a kind.

    How the graph is searched (``graph_scorer``, ``damping``, ``link_floor``) is the same for all of them too.
    """

    def __init__(self, settings: Settings) -> None:
        """Hold the settings that all programs have in common; nothing is opened yet."""
        self._settings = settings
        self._indexes: dict[str, Index] = {}
        self._rerankers: dict[tuple[str, str], Reranker] = {}
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def build(self, program: str, settings: Settings) -> Program:
        """The program of that name with ``settings``.

        Raises:
            ArtefactError, CorpusError, StoreError: a part of it cannot be opened.
            ProgramError: there is no such program.
            SettingsError: it searches the graph with another scorer than the one that all share.
        """
        from medhop_dspy.pipelines.registry import build, program_class

        adjusted = program_class(program).adjusted(settings)
        return build(program, self._retriever(adjusted), adjusted, self._orphanet)

    def _retriever(self, settings: Settings) -> Retriever | GraphRetriever:
        from medhop_dspy.retrieval.retriever import Retriever

        dense = Retriever(self._index(settings), self._embedder, self._reranker(settings), settings)
        if settings.retriever == "dense":
            return dense
        from medhop_dspy.graph.retriever import GraphRetriever

        return GraphRetriever(dense, self._graph, self._linker, self._scorer, settings)

    @cached_property
    def _graph(self) -> GraphIndex:
        from medhop_dspy.graph.index import GraphIndex

        return GraphIndex.open(self._settings.graph_folder, self._index(self._settings), self._embedder)

    @cached_property
    def _linker(self) -> EntityLinker:
        from medhop_dspy.graph.linking import EntityLinker

        return EntityLinker(self._graph, self._embedder, self._settings.link_floor)

    @cached_property
    def _scorer(self) -> EntityScorer:
        from medhop_dspy.graph.scoring import make_scorer

        return make_scorer(self._graph, self._settings, self._embedder)

    @cached_property
    def _embedder(self) -> Embedder:
        from medhop_dspy.retrieval.embedding import Embedder

        return Embedder.from_settings(self._settings)

    @cached_property
    def _orphanet(self) -> Orphanet | None:
        from medhop_dspy.runtime import open_orphanet

        return open_orphanet(self._settings)

    def _index(self, settings: Settings) -> Index:
        from medhop_dspy.retrieval.index import Index

        if settings.index_search not in self._indexes:
            index = Index.open(settings.index_location, self._embedder, settings)
            self._indexes[settings.index_search] = index
            self._open.callback(index.close)
        return self._indexes[settings.index_search]

    def _reranker(self, settings: Settings) -> Reranker:
        from medhop_dspy.retrieval.rerank import make_reranker

        kind = (settings.reranker, settings.reranker_model)
        if kind not in self._rerankers:
            self._rerankers[kind] = make_reranker(settings)
        return self._rerankers[kind]


def run_ablations(
    configurations: Sequence[Configuration],
    seeds: Sequence[int],
    questions: Sequence[Question],
    folder: Path,
    settings: Settings,
    *,
    build: Build,
    make_lm: Callable[[Settings], dspy.BaseLM],
    watch: Watch,
    data: DataFile | None = None,
    workers: int | None = None,
    order: Order = "evidence",
) -> tuple[list[Ablated], list[Skipped]]:
    """Run every configuration with every seed, into ``folder/NAME/seed-N``; interrupted, it goes on where it stopped.

    The response cache is off throughout, or another seed would only read what the first one was told. All
    configurations are run with one seed before the next one begins. Several seeds at temperature 0, where nothing is
    sampled, are logged as a warning.

    Args:
        configurations: The first is the one that others are compared with, and must be runnable.
        seeds: Different from one another.
        questions: With gold answers, open or multiple-choice.
        folder: Of all runs.
        settings: What configurations are relative to, with ``lm_url`` of a running server.
        build: A program by name, such as :meth:`SharedParts.build`.
        make_lm: The language model of some settings, such as :func:`medhop_dspy.lm.connect.connect`; one a seed.
        watch: For a configuration's name and a seed, a context whose value takes the progress of that run.
        data: As for :func:`medhop_dspy.evaluation.runner.evaluate`.
        workers: Likewise.
        order: Likewise.

    Returns:
        What was run, and what could not be: a configuration whose settings contradict one another or whose parts are
        not there, or one about rare diseases where ``settings.orphanet`` is not set.

    Raises:
        InputError: no seed, or one twice; and all that ``evaluate`` raises.
        MedhopError: the first configuration cannot be opened.
    """
    import dspy

    if not seeds or len(set(seeds)) < len(seeds):
        raise InputError(f"seeds are {list(seeds)}, wanted at least one, each once", hint="For example: 42 43 44.")
    if len(seeds) > 1 and not settings.temperature:
        _log.warning("%d seeds at temperature 0: they show what batching at the server does, if anything", len(seeds))
    chosen = choose(questions)
    programs, same_as, skipped = _open(configurations, settings.replace(lm_cache=False, seed=seeds[0]), build)
    runs: dict[str, list[tuple[AnyResult, ...]]] = {name: [] for name in programs}
    for seed in seeds:
        with dspy.context(lm=make_lm(settings.replace(lm_cache=False, seed=seed))):
            for name, (program, configured) in programs.items():
                opened, place = build(program, configured.replace(seed=seed)), folder / name / f"seed-{seed}"
                with watch(name, seed) as progress:
                    evaluate(opened, chosen, place, data=data, workers=workers, order=order, progress=progress)
                results = {result.id: result for result in read_any_results(place)}
                runs[name].append(tuple(results[question.id] for question in chosen))
    left_out = {each.configuration.name for each in skipped}
    ablated = [
        Ablated(each, tuple(runs[same_as.get(each.name, each.name)]), same_as.get(each.name, ""))
        for each in configurations
        if each.name not in left_out
    ]
    return ablated, skipped


def _open(
    configurations: Sequence[Configuration], settings: Settings, build: Build
) -> tuple[dict[str, tuple[str, Settings]], dict[str, str], list[Skipped]]:
    """Programs and settings by name, names that are the same as an earlier one, and what cannot be opened."""
    programs: dict[str, tuple[str, Settings]] = {}
    same_as: dict[str, str] = {}
    skipped: list[Skipped] = []
    names: dict[tuple[str, str], str] = {}
    for each in configurations:
        if each.needs_tables and settings.orphanet is None:
            skipped.append(Skipped(each, "no rare-disease tables are set (orphanet), so it would change nothing"))
            continue
        try:
            configured = each.apply(settings)
            first = names.setdefault((each.program, configured.digest()), each.name)
            if first != each.name:
                same_as[each.name] = first
                continue
            build(each.program, configured)  # fails now, not after hours of other runs
        except ServerError:
            raise
        except MedhopError as error:
            if not programs:
                raise
            skipped.append(Skipped(each, f"{error} {error.hint}".strip(), error.exit_code))
            continue
        programs[each.name] = (each.program, configured)
    return programs, same_as, skipped
