"""What an optimiser gets to work on: program, questions, budget, and metrics that see every predictor."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import dspy

from medhop_dspy.errors import InputError, ServerUnavailableError
from medhop_dspy.evaluation.candidates import Focus
from medhop_dspy.evaluation.metrics import answer_metric
from medhop_dspy.evaluation.predictor_metrics import RecordedRun, calls_of, judge_call, misled

if TYPE_CHECKING:
    from medhop_dspy.evaluation.outcomes import Result
    from medhop_dspy.evaluation.records import GoldQuestion
    from medhop_dspy.pipelines.program import Program


@dataclass(frozen=True, slots=True)
class Budget:
    """How much an optimiser may try; small by default, for a laptop.

    Attributes:
        demos: Demos of one predictor at most.
        bootstrapped: Of these, at most so many from questions that the program has just answered right.
        candidates: Demo sets (bootstrap_random_search), instructions (copro, mipro) or programs (simba) to try.
        rounds: Times that new candidates are made from the best (copro, simba).
        metric_calls: Questions that gepa may ask in all.

    Raises:
        InputError: a number is negative, or one of the last three is 0.
    """

    demos: int = 3
    bootstrapped: int = 2
    candidates: int = 4
    rounds: int = 1
    metric_calls: int = 100

    def __post_init__(self) -> None:
        for each in fields(self):
            least = 0 if each.name in {"demos", "bootstrapped"} else 1
            if getattr(self, each.name) < least:
                raise InputError(f"{each.name} must be at least {least}, got {getattr(self, each.name)}")


@dataclass
class Task:
    """What an optimiser works on.

    Attributes:
        program: The uncompiled program, never changed.
        train: Questions to learn from.
        validation: Questions to choose between candidates by, none of ``train``.
        runs: What ``program`` did with the questions of ``train``.
        budget: How much to try.
        seed: Of every random choice.
        ask: Result of a program for a question, remembered.
        compare: Results of several programs for the same questions, remembered.
        only: Predictors to change; empty: all that the questions reach.
        reflection_lm: Model that writes instructions; None: the one that answers.
        outage: The error that ended the server, once it has.
    """

    program: Program
    train: Sequence[GoldQuestion]
    validation: Sequence[GoldQuestion]
    runs: Sequence[RecordedRun]
    budget: Budget
    seed: int
    ask: Callable[[Program, GoldQuestion], Result]
    compare: Callable[[Sequence[Program], Sequence[GoldQuestion]], list[int]]
    only: Collection[str] = ()
    reflection_lm: dspy.BaseLM | None = None
    outage: ServerUnavailableError | None = field(default=None, init=False)

    @property
    def names(self) -> list[str]:
        """The predictors to change, in the order of the program."""
        used = {call.predictor for run in self.runs for call in run.calls}
        wanted = used.intersection(self.only or used)
        return [name for name, _ in self.program.named_predictors() if name in wanted]

    def view(self, *, remembered: bool = False) -> Focus:
        """A copy of the program for an optimiser; ``remembered`` answers come without a trace."""
        return Focus(deepcopy(self.program), self.names, self._remembered if remembered else self._asked)

    def _asked(self, program: Program, question: str) -> dspy.Prediction:
        return self._guarded(lambda: program(question=question))

    def _remembered(self, program: Program, question: str) -> dspy.Prediction:
        gold = next(each for each in (*self.train, *self.validation) if each.text == question)
        return self._guarded(lambda: dspy.Prediction(answer=self.ask(program, gold).answer))

    def _guarded(self, call: Callable[[], dspy.Prediction]) -> dspy.Prediction:
        """Optimisers count an error as a wrong answer; one of the server must end them all the same."""
        if self.outage:
            raise self.outage
        try:
            return call()
        except ServerUnavailableError as error:
            self.outage = error
            raise


def example_of(question: GoldQuestion) -> dspy.Example:
    """A question as DSPy takes it."""
    kind = question.answer_type.value if question.answer_type else None
    return dspy.Example(
        qidx=question.id, question=question.text, answer=question.answer, synonyms=question.synonyms, answer_type=kind
    ).with_inputs("question")


def bootstrap_metric(task: Task) -> Callable[..., bool]:
    """Exact match, right or wrong and nothing between.

    While bootstrapping, DSPy makes a demo of every call in the trace of a right answer. Those that were wrong by
    themselves, or misled by a wrong hop, are taken out of the trace first.
    """
    golds = {each.id: each for each in (*task.train, *task.validation)}

    def metric(example: Any, prediction: Any, trace: list[Any] | None = None) -> bool:  # noqa: ANN401
        right = answer_metric(example, prediction)
        if right and trace:
            run = RecordedRun(golds[example.qidx], prediction.answer, calls_of(task.program, trace))
            trace[:] = [
                step
                for index, step in enumerate(trace)
                if judge_call(run, index).right is not False and not misled(run, index)
            ]
        return right

    return metric


def feedback_metric(task: Task) -> Callable[..., Any]:
    """Exact match of the answer as the score, and what the predictor in question did as the feedback."""
    golds = {each.id: each for each in (*task.train, *task.validation)}

    def metric(
        example: Any,  # noqa: ANN401
        prediction: Any,  # noqa: ANN401
        trace: Any = None,  # noqa: ANN401
        pred_name: str | None = None,
        pred_trace: Any = None,  # noqa: ANN401
    ) -> dspy.Prediction:
        right = answer_metric(example, prediction)
        feedback = f"The final answer was {prediction.answer!r}, wanted {example.answer!r}."
        run = RecordedRun(golds[example.qidx], prediction.answer, calls_of(task.program, trace or ()))
        for index, call in enumerate(run.calls):
            if call.predictor == pred_name:
                feedback += f" In this step {judge_call(run, index).feedback}."
        return dspy.Prediction(score=float(right), feedback=feedback)

    return metric
