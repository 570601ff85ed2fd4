"""Candidate programs: copies that share everything heavy, the view that optimisers get, and scores that are kept."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import dspy

from medhop_dspy.errors import MedhopError, ServerUnavailableError
from medhop_dspy.evaluation.outcomes import Result
from medhop_dspy.evaluation.predictor_metrics import PredictorCall, RecordedRun, calls_of
from medhop_dspy.evaluation.results import ResultsFile
from medhop_dspy.evaluation.run_folder import DataFile, Served, describe_run, open_run, question_key
from medhop_dspy.evaluation.runner import UNAVAILABLE, Progress, default_workers
from medhop_dspy.evaluation.scoring import ask, beside_their_kin
from medhop_dspy.threads import in_threads

if TYPE_CHECKING:
    from medhop_dspy.evaluation.records import GoldQuestion
    from medhop_dspy.pipelines.program import Program

_CALLS = "predictor_calls"


def digest_of(program: Program) -> str:
    """Hex SHA-256 of what an optimiser can change: instructions, fields and demos of every predictor."""
    digest: str = describe_run(program, Served(""), None)["program"]["digest"]
    return digest


class Focus(dspy.Module):
    """A program of which an optimiser sees some predictors only: those that its questions ever reach.

    Args:
        program: Copied with the view.
        names: The predictors to see.
        answer: How a question is answered, given the program as it stands.
    """

    def __init__(
        self, program: Program, names: Collection[str], answer: Callable[[Program, str], dspy.Prediction]
    ) -> None:
        super().__init__()
        self.program = program
        self.names = names
        self.answer = answer

    def forward(self, question: str) -> dspy.Prediction:
        """Answer ``question``."""
        return self.answer(self.program, question)

    def named_parameters(self) -> list[tuple[str, Any]]:
        """The chosen predictors, by their names in the program."""
        return [(name, each) for name, each in self.program.named_parameters() if name in self.names]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)(copy.deepcopy(self.program), self.names, self.answer)


class _Recorded:
    """A program that also keeps what its predictors were asked, and searches once for what scoring repeats."""

    def __init__(self, program: Program, found: dict[tuple[str, int], Any]) -> None:
        self._program = program
        self.settings = program.settings
        self._found = found
        self.calls: tuple[PredictorCall, ...] = ()

    @property
    def retriever(self) -> Self:
        return self

    def search(self, queries: list[str], k: int) -> Any:  # noqa: ANN401
        """What retrieval finds for the question alone: the same for every candidate."""
        key = (queries[0], k)
        if key not in self._found:
            retriever = self._program.retriever
            bare = retriever.without_neighbours() if hasattr(retriever, "without_neighbours") else retriever
            self._found[key] = bare.search(queries, k)
        return self._found[key]

    def __call__(self, question: str) -> dspy.Prediction:
        with dspy.context(trace=[]):
            prediction = self._program(question=question)
            self.calls = calls_of(self._program, dspy.settings.trace)
        return prediction


class Scores:
    """Answers of candidates, each in a run folder of its own under ``folder``; what stands there is not asked again.

    Folders are named by the candidate's digest and can be read like those of an evaluation. Use it as a context
    manager; its methods may be called from several threads. Make it inside ``dspy.context(lm=...)``: that model is
    asked, whatever the context of a later call holds, so that what stands does not depend on who asked first.
    """

    def __init__(self, folder: Path, served: Served, data: DataFile | None) -> None:
        self._folder, self._served, self._data = folder, served, data
        self._open: dict[str, ResultsFile[Result]] = {}
        self._asked: set[str] = set()
        self._found: dict[tuple[str, int], Any] = {}
        self._lock = threading.RLock()
        self._stack = ExitStack()
        self._lm = dspy.settings.lm

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def result(self, program: Program, question: GoldQuestion) -> Result:
        """What stands about the question, or what the program says now. A failure stands until the scores are closed.

        Raises:
            ServerUnavailableError: the server is down; no line is written.
        """
        return self._result(program, question)[0]

    def ask_all(
        self,
        wanted: Sequence[tuple[Program, Sequence[GoldQuestion]]],
        progress: Callable[[Progress], None] = lambda state: None,
    ) -> list[dict[str, Result]]:
        """Results by QIDX for each program, which are asked their questions in the order that a prefix cache likes.

        That is question by question, and all programs about one before the next: they differ behind the evidence.
        After an error nothing more is asked; answers under way still end, and are kept.

        Raises:
            ServerUnavailableError: the server is down; call it again later.
            DiskFullError, InputError: a line cannot be written.
        """
        questions = {each.id: each for _, some in wanted for each in some}
        askers = {i: [n for n, (_, some) in enumerate(wanted) if i in {q.id for q in some}] for i in questions}
        state = Progress(sum(map(len, askers.values())), 0)
        start = time.monotonic()
        found: list[dict[str, Result]] = [{} for _ in wanted]
        progress(state)

        failures: list[MedhopError] = []

        def work(question: GoldQuestion) -> list[tuple[int, Result, bool]]:
            done: list[tuple[int, Result, bool]] = []
            try:
                for n in askers[question.id]:
                    if not failures:
                        done.append((n, *self._result(wanted[n][0], question)))
            except MedhopError as error:
                failures.append(error)
            return done

        order = beside_their_kin(wanted[0][0].retriever, list(questions.values())) if wanted else []
        for done in in_threads(work, order, default_workers(self._served.slots), lambda: bool(failures)):
            for number, result, asked in done:
                found[number][result.id] = result
                state = _after(state, result, time.monotonic() - start, asked=asked)
                progress(state)
        if failures:
            raise failures[0]
        return found

    def _result(self, program: Program, question: GoldQuestion) -> tuple[Result, bool]:
        """The result, and whether it was asked for just now."""
        about = describe_run(program, self._served, self._data)
        key = question_key(about, question)
        file = self._file(about)
        stored = file.results.get(question.id)
        if stored is not None and stored.key == key and (stored.answered or key in self._asked):
            return stored, False
        recorded = _Recorded(program, self._found)
        with dspy.context(lm=self._lm):
            line = ask(cast("Program", recorded), question, key)
        if line["error"].startswith(UNAVAILABLE):
            raise ServerUnavailableError(
                line["error"].removeprefix(UNAVAILABLE),
                hint="Start the server and run the same command again; it goes on where it stopped.",
            )
        line[_CALLS] = [[call.predictor, call.inputs, call.outputs] for call in recorded.calls]
        with self._lock:
            self._asked.add(key)
            return file.append(line), True

    def _file(self, about: Mapping[str, Any]) -> ResultsFile[Result]:
        digest = about["program"]["digest"]
        with self._lock:
            if digest not in self._open:
                opened = self._stack.enter_context(open_run(self._folder / digest[:16], about, Result))
                self._open[digest] = opened[0]
            return self._open[digest]


def recorded_run(result: Result, question: GoldQuestion) -> RecordedRun:
    """The run behind a result of :class:`Scores`."""
    calls = (PredictorCall(*parts) for parts in result.extra.get(_CALLS, ()))
    return RecordedRun(question, result.answer, tuple(calls))


def _after(state: Progress, result: Result, seconds: float, *, asked: bool) -> Progress:
    after = state.after(result, seconds)
    if asked:
        return after
    return replace(after, asked=state.asked, usage=state.usage, seconds=state.seconds)
