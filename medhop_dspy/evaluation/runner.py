"""Evaluation runs: a program over questions with gold answers, one line a question, resumable at any moment."""

from __future__ import annotations

import contextvars
import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from medhop_dspy.errors import InputError, ServerUnavailableError
from medhop_dspy.evaluation.results import Result, ResultsFile
from medhop_dspy.evaluation.run_folder import DataFile, check_done, describe_run, open_run, question_key, served_model
from medhop_dspy.evaluation.scoring import ask, beside_their_kin
from medhop_dspy.evaluation.summary import Summary, last_summary, summarise, write_summary
from medhop_dspy.rows import by_id
from medhop_dspy.trace import Usage

if TYPE_CHECKING:
    from medhop_dspy.evaluation.records import GoldQuestion
    from medhop_dspy.pipelines.program import Program

Order = Literal["evidence", "file"]

UNAVAILABLE_IN_A_ROW: Final = 3
MOST_WORKERS: Final = 32  # by default: SGLang counts thousands of slots, and each worker also searches
UNAVAILABLE: Final = f"{ServerUnavailableError.__name__}: "  # what the error of such a line begins with
_Task = TypeVar("_Task")
_Done = TypeVar("_Done")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is. Times, tokens and ``asked`` are of this call; the other counts are of the questions chosen.

    Attributes:
        total: Questions chosen.
        done: Those with a result, failed ones of this call included.
        correct: Those that are right by lenient exact match.
        failed: Those whose program or metric failed in this call.
        asked: Questions that this call has asked so far.
        usage: Tokens of these.
        seconds: Since the first question was asked.
    """

    total: int
    done: int
    correct: int = 0
    failed: int = 0
    asked: int = 0
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0

    def after(self, result: Result, seconds: float) -> Progress:
        """The progress once ``result`` has come in."""
        return Progress(
            self.total,
            self.done + 1,
            self.correct + bool(result.em),
            self.failed + (not result.scored),
            self.asked + 1,
            self.usage + result.usage,
            seconds,
        )


def choose(questions: Sequence[GoldQuestion], *, limit: int | None = None, min_hops: int = 0) -> list[GoldQuestion]:
    """The first ``limit`` questions that need at least ``min_hops`` hops.

    Raises:
        InputError: nothing is left, an id occurs twice, or ``limit`` is below 1.
    """
    if not questions:
        raise InputError("the question set is empty", hint="Give a file with at least one question.")
    if limit is not None and limit < 1:
        raise InputError(f"limit must be at least 1, got {limit}")
    by_id(((f"place {n}", each.id, each) for n, each in enumerate(questions, start=1)), "the question set", "QIDX")
    chosen = [question for question in questions if question.hops >= min_hops][:limit]
    if not chosen:
        raise InputError(
            f"none of the {len(questions)} questions has {min_hops} hops or more", hint="Lower the number of hops."
        )
    return chosen


def evaluate(
    program: Program,
    questions: Sequence[GoldQuestion],
    folder: Path | str,
    *,
    data: DataFile | None = None,
    workers: int | None = None,
    order: Order = "evidence",
    progress: Callable[[Progress], None] = lambda state: None,
) -> Summary:
    """Ask every question that ``folder`` has no answer to yet; the summary of all that stands there.

    Call it inside :func:`medhop_dspy.session` or ``dspy.context(lm=...)``. Killed at any moment and called again, it
    asks only what is missing or has failed. A question that fails is a line, and the run goes on.

    Args:
        program: An opened program.
        questions: With gold answers, see :func:`choose`; later calls may bring more of them.
        folder: Of the run, made where it is absent.
        data: The file that the questions are from; a folder takes those of one file only.
        workers: Questions asked at once; default: as many as the model server handles at once, 1 where it is silent.
        order: ``evidence`` asks questions about the same document one after the other, ``file`` as they are given.
        progress: Called in this thread, once at the start and after every question.

    Raises:
        InputError: no question, an id twice, another run writes to the folder, or a file in it is damaged.
        ProgramError: the folder is of another program, settings, index, model or question file, or a finished
            question was asked in another way.
        ServerUnavailableError: the server is down, or was for three questions in a row; what was answered is kept.
        DiskFullError: no space is left.
    """
    chosen = choose(questions)
    if workers is not None and workers < 1:
        raise InputError(f"workers must be at least 1, got {workers}")
    served = served_model(program.settings)
    about = describe_run(program, served, data)
    folder = Path(folder)
    with open_run(folder, about) as (file, begun):
        check_done(file.results, chosen, about)
        before, start = last_summary(folder)[1], time.monotonic()

        def summed_up() -> Summary:
            pending = sum(question.id not in file.results for question in chosen)
            seconds = before + time.monotonic() - start
            summary = summarise(list(file.results.values()), begun, pending=pending, wall_seconds=seconds)
            write_summary(folder, summary)
            return summary

        summed_up()  # a run that is killed has told how many questions there are
        try:
            _ask_missing(program, chosen, file, about, workers or default_workers(served.slots), order, progress)
        finally:  # also when interrupted: what stands is worth a summary
            summary = summed_up()
    return summary


def default_workers(slots: int) -> int:
    """Questions asked at once where nobody says how many: the server's slots, at most 32."""
    return min(max(slots, 1), MOST_WORKERS)


def _ask_missing(
    program: Program,
    chosen: Sequence[GoldQuestion],
    file: ResultsFile,
    about: Mapping[str, Any],
    workers: int,
    order: Order,
    progress: Callable[[Progress], None],
) -> None:
    done = [file.results[each.id] for each in chosen if each.id in file.results and file.results[each.id].answered]
    answered = {result.id for result in done}
    pending = [question for question in chosen if question.id not in answered]
    state = Progress(len(chosen), len(done), sum(bool(result.em) for result in done))
    progress(state)
    if not pending:
        return
    if order == "evidence":
        pending = beside_their_kin(program.retriever, pending)
    start, in_a_row, gone = time.monotonic(), 0, threading.Event()
    tasks = [(question, question_key(about, question)) for question in pending]
    for line in in_threads(lambda task: ask(program, *task), tasks, workers, gone.is_set):
        result = file.append(line)
        state = state.after(result, time.monotonic() - start)
        progress(state)
        in_a_row = in_a_row + 1 if result.error.startswith(UNAVAILABLE) else 0
        if in_a_row == UNAVAILABLE_IN_A_ROW:
            reason = result.error.removeprefix(UNAVAILABLE)
            gone.set()  # questions under way still end, and their lines are kept
    if gone.is_set():
        raise ServerUnavailableError(
            f"{state.done - state.failed} answered, {state.failed} failed, then the model server was gone: {reason}",
            hint="Start the server and run the same command again; it goes on where it stopped.",
        )


def in_threads(
    work: Callable[[_Task], _Done], tasks: Iterable[_Task], workers: int, stopped: Callable[[], bool]
) -> Iterator[_Done]:
    """What ``work`` makes of each task, as it comes.

    A task is begun only once an earlier result has been dealt with, so no work piles up behind a caller who is about
    to stop; after ``stopped`` only what is under way still comes. Each thread runs in a copy of the caller's context,
    where DSPy keeps the language model. The threads are daemons: an interrupted run does not wait for a slow server.
    """
    waiting: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
    results: queue.SimpleQueue[tuple[_Done] | BaseException] = queue.SimpleQueue()

    def run() -> None:
        while (task := waiting.get()) is not None:
            try:
                results.put((work(task),))
            except BaseException as error:  # noqa: BLE001  (raised again by whoever waits for the result)
                results.put(error)

    todo = iter(tasks)
    under_way = 0
    for task in itertools.islice(todo, workers):
        waiting.put(task)
        under_way += 1
        threading.Thread(target=contextvars.copy_context().run, args=(run,), daemon=True).start()
    try:
        while under_way:
            result = results.get()
            if isinstance(result, BaseException):
                raise result
            yield result[0]
            under_way -= 1
            for task in itertools.islice(todo, 0 if stopped() else 1):
                waiting.put(task)
                under_way += 1
    finally:
        for _ in range(workers):
            waiting.put(None)
