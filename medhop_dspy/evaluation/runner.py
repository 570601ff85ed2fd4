"""Evaluation runs: a program over questions with gold answers, one line a question, resumable at any moment.

The questions are all open or all multiple-choice.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from medhop_dspy.errors import InputError, ServerUnavailableError
from medhop_dspy.evaluation.choice_summary import ChoiceSummary, summarise_choices
from medhop_dspy.evaluation.outcomes import AnyResult, ChoiceResult, Outcome, Q, Result
from medhop_dspy.evaluation.records import ChoiceQuestion
from medhop_dspy.evaluation.results import ResultsFile
from medhop_dspy.evaluation.run_folder import DataFile, check_done, describe_run, open_run, question_key, served_model
from medhop_dspy.evaluation.scoring import ask, beside_their_kin
from medhop_dspy.evaluation.summary import Summary, summarise
from medhop_dspy.evaluation.tally import last_summary, write_summary
from medhop_dspy.rows import by_id
from medhop_dspy.threads import in_threads
from medhop_dspy.trace import Usage

if TYPE_CHECKING:
    from medhop_dspy.evaluation.records import Question
    from medhop_dspy.pipelines.program import Program

Order = Literal["evidence", "file"]

UNAVAILABLE_IN_A_ROW: Final = 3
MOST_WORKERS: Final = 32  # by default: SGLang counts thousands of slots, and each worker also searches
UNAVAILABLE: Final = f"{ServerUnavailableError.__name__}: "  # what the error of such a line begins with


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is. Times, tokens and ``asked`` are of this call; the other counts are of the questions chosen.

    Attributes:
        total: Questions chosen.
        done: Those with a result, failed ones of this call included.
        correct: Those that are right.
        failed: Those whose program or metric failed in this call.
        asked: Questions that this call has asked so far.
        usage: Tokens of these.
        seconds: Since the first question was asked.
        measure: What the share of right answers is called.
    """

    total: int
    done: int
    correct: int = 0
    failed: int = 0
    asked: int = 0
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    measure: str = Result.measure

    def after(self, result: Outcome[Any], seconds: float) -> Progress:
        """The progress once ``result`` has come in."""
        return replace(
            self,
            done=self.done + 1,
            correct=self.correct + bool(result.right),
            failed=self.failed + (not result.scored),
            asked=self.asked + 1,
            usage=self.usage + result.usage,
            seconds=seconds,
        )


def choose(questions: Sequence[Q], *, limit: int | None = None, min_hops: int = 0) -> list[Q]:
    """The first ``limit`` questions that need at least ``min_hops`` hops.

    Raises:
        InputError: nothing is left, an id occurs twice, or ``limit`` is below 1; there are open questions beside
            multiple-choice ones, or some of the latter whose answer is kept back; hops are asked for where no question
            states any.
    """
    if not questions:
        raise InputError("the question set is empty", hint="Give a file with at least one question.")
    if limit is not None and limit < 1:
        raise InputError(f"limit must be at least 1, got {limit}")
    by_id(((f"place {n}", each.id, each) for n, each in enumerate(questions, start=1)), "the question set", "QIDX")
    choices = [question for question in questions if isinstance(question, ChoiceQuestion)]
    if choices:
        _check_choices(choices, len(questions), min_hops)
    chosen = [each for each in questions if isinstance(each, ChoiceQuestion) or each.hops >= min_hops][:limit]
    if not chosen:
        raise InputError(
            f"none of the {len(questions)} questions has {min_hops} hops or more", hint="Lower the number of hops."
        )
    return chosen


def _check_choices(choices: Sequence[ChoiceQuestion], questions: int, min_hops: int) -> None:
    if len(choices) < questions:
        raise InputError(
            f"{len(choices)} multiple-choice questions among {questions}", hint="Run them apart from the open ones."
        )
    if min_hops:
        raise InputError(
            f"hops are to be {min_hops} or more, and multiple-choice questions state none", hint="Leave that out."
        )
    kept_back = [each.id for each in choices if not each.answer]
    if kept_back:
        raise InputError(
            f"the answers of {len(kept_back)} of the {questions} questions are kept back, the first is {kept_back[0]}",
            hint="Take a split with answers, or leave these questions out.",
        )


def evaluate(
    program: Program,
    questions: Sequence[Question],
    folder: Path | str,
    *,
    data: DataFile | None = None,
    workers: int | None = None,
    order: Order = "evidence",
    progress: Callable[[Progress], None] = lambda state: None,
) -> Summary | ChoiceSummary:
    """Ask every question that ``folder`` has no answer to yet; the summary of all that stands there.

    Call it inside :func:`medhop_dspy.session` or ``dspy.context(lm=...)``. Killed at any moment and called again, it
    asks only what is missing or has failed. A question that fails is a line, and the run goes on.

    Args:
        program: An opened program.
        questions: With gold answers, see :func:`choose`; later calls may bring more of them. The options of a
            multiple-choice question are handed over as ``options``.
        folder: Of the run, made where it is absent.
        data: The file that the questions are from; a folder takes those of one file only.
        workers: Questions asked at once; default: as many as the model server handles at once, 1 where it is silent.
        order: ``evidence`` asks questions about the same document one after the other, ``file`` as they are given.
        progress: Called in this thread, once at the start and after every question.

    Raises:
        InputError: as :func:`choose`; another run writes to the folder, or a file in it is damaged or of the other kind
            of questions.
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
    kind: type[AnyResult] = ChoiceResult if isinstance(chosen[0], ChoiceQuestion) else Result
    with open_run(folder, about, kind) as (file, begun):
        check_done(file.results, chosen, about)
        before, start = last_summary(folder)[1], time.monotonic()

        def summed_up() -> Summary | ChoiceSummary:
            pending = sum(question.id not in file.results for question in chosen)
            seconds = before + time.monotonic() - start
            summary = _summary(kind, list(file.results.values()), begun, pending, seconds)
            write_summary(folder, summary)
            return summary

        summed_up()  # a run that is killed has told how many questions there are
        try:
            _ask_missing(program, chosen, file, about, workers or default_workers(served.slots), order, progress)
        finally:  # also when interrupted: what stands is worth a summary
            summary = summed_up()
    return summary


def _summary(
    kind: type[AnyResult], results: Sequence[AnyResult], run: Mapping[str, Any], pending: int, seconds: float
) -> Summary | ChoiceSummary:
    if kind is ChoiceResult:
        choices = [each for each in results if isinstance(each, ChoiceResult)]
        return summarise_choices(choices, run, pending=pending, wall_seconds=seconds)
    opened = [each for each in results if isinstance(each, Result)]
    return summarise(opened, run, pending=pending, wall_seconds=seconds)


def default_workers(slots: int) -> int:
    """Questions asked at once where nobody says how many: the server's slots, at most 32."""
    return min(max(slots, 1), MOST_WORKERS)


def _ask_missing(
    program: Program,
    chosen: Sequence[Question],
    file: ResultsFile[AnyResult],
    about: Mapping[str, Any],
    workers: int,
    order: Order,
    progress: Callable[[Progress], None],
) -> None:
    done = [file.results[each.id] for each in chosen if each.id in file.results and file.results[each.id].answered]
    answered = {result.id for result in done}
    pending = [question for question in chosen if question.id not in answered]
    right = sum(bool(result.right) for result in done)
    state = Progress(len(chosen), len(done), right, measure=file.kind.measure)
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
