"""Optimisers by name: DSPy's, held to exact match, to small budgets and to the predictors that are in use."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import dspy

from medhop_dspy.errors import InputError
from medhop_dspy.evaluation.demonstrations import predictor_examples, tidy_demos
from medhop_dspy.evaluation.metrics import answer_metric
from medhop_dspy.evaluation.tasks import Task, bootstrap_metric, example_of, feedback_metric

if TYPE_CHECKING:
    from medhop_dspy.evaluation.records import GoldQuestion
    from medhop_dspy.pipelines.program import Program

_BREADTH: Final = 2  # instructions that COPRO needs at least, the present one among them
_SIMBA_BATCH: Final = 32


def labelled(task: Task) -> Program:
    """Demos out of gold labels and of calls known to be right, see :func:`predictor_examples`."""
    program = deepcopy(task.program)
    examples, names = predictor_examples(task.runs), task.names
    for name, predictor in program.named_predictors():
        if name in names:
            predictor.demos = examples.get(name, [])[: task.budget.demos]
    return program


def bootstrap(task: Task, train: Sequence[GoldQuestion] | None = None, size: int | None = None) -> Program:
    """The calls of right answers as demos, filled up with labelled ones."""
    train, size = task.train if train is None else train, task.budget.bootstrapped if size is None else size
    size = min(size, task.budget.demos)
    # DSPy's own labelled demos are the questions with their answers, which fit no predictor's fields.
    maker = dspy.BootstrapFewShot(
        metric=bootstrap_metric(task),
        metric_threshold=1.0,
        max_bootstrapped_demos=size,
        max_labeled_demos=0,
    )
    program: Program = maker.compile(task.view(), trainset=[example_of(each) for each in train]).program
    tidy_demos(program)
    for (_, predictor), (_, other) in zip(program.named_predictors(), labelled(task).named_predictors(), strict=True):
        new = [demo for demo in other.demos if demo.inputs() not in [known.inputs() for known in predictor.demos]]
        predictor.demos = [*predictor.demos, *new][: task.budget.demos]
    return program


def random_search(task: Task) -> Program:
    """The best on ``validation`` of no demos, labelled ones, and bootstrapped ones from shuffled questions.

    DSPy's class of that name scores one candidate after the other and remembers nothing; here all are made first, so
    that the scores are kept and the candidates share what a server has read. The first of equals wins.
    """
    candidates = [deepcopy(task.program), labelled(task)]
    for number in range(task.budget.candidates if task.budget.bootstrapped else 0):
        chance = random.Random(f"{task.seed} {number}")
        shuffled = list(task.train)
        chance.shuffle(shuffled)
        candidates.append(bootstrap(task, shuffled, chance.randint(1, task.budget.bootstrapped)))
    scores = task.compare(candidates, task.validation)
    return candidates[scores.index(max(scores))]


def copro(task: Task) -> Program:
    """Instructions that the model rewrites, chosen by exact match on all questions.

    DSPy takes a rewritten instruction also where it is no better; here the program must gain, or stays as it is.
    """
    breadth = max(task.budget.candidates, _BREADTH)
    maker = dspy.COPRO(metric=answer_metric, breadth=breadth, depth=task.budget.rounds, init_temperature=1.0)
    questions = [*task.train, *task.validation]
    options = {"num_threads": 1, "display_progress": False, "display_table": False}
    compiled = maker.compile(
        task.view(remembered=True), trainset=[example_of(each) for each in questions], eval_kwargs=options
    )
    same = deepcopy(task.program)
    before, after = task.compare([same, compiled.program], questions)
    program: Program = compiled.program if after > before else same
    return program


def mipro(task: Task) -> Program:
    """Instructions and demo sets together, searched by MIPROv2."""
    maker = dspy.MIPROv2(
        metric=bootstrap_metric(task),
        metric_threshold=1.0,
        auto=None,
        num_candidates=task.budget.candidates,
        max_bootstrapped_demos=min(task.budget.bootstrapped, task.budget.demos),
        max_labeled_demos=0,
        num_threads=1,
        seed=task.seed,
    )
    compiled = maker.compile(
        task.view(),
        trainset=[example_of(each) for each in task.train],
        valset=[example_of(each) for each in task.validation],
        num_trials=2 * task.budget.candidates,
        minibatch=False,
        program_aware_proposer=False,
    )
    program: Program = compiled.program
    return program


def gepa(task: Task) -> Program:
    """Instructions rewritten after reflection on what each predictor did wrong.

    One example a reflection: three with their evidence would not fit a window of 4,096 tokens.
    """
    maker = dspy.GEPA(
        metric=feedback_metric(task),
        max_metric_calls=task.budget.metric_calls,
        reflection_minibatch_size=1,
        reflection_lm=(task.reflection_lm or dspy.settings.lm).copy(temperature=1.0),
        num_threads=1,
        warn_on_score_mismatch=False,
        seed=task.seed,
    )
    compiled = maker.compile(
        task.view(),
        trainset=[example_of(each) for each in task.train],
        valset=[example_of(each) for each in task.validation],
    )
    program: Program = compiled.program
    return program


def simba(task: Task) -> Program:
    """Rules and demos out of questions that sampling answers now right, now wrong."""
    maker = dspy.SIMBA(
        metric=lambda example, prediction: float(prediction is not None and answer_metric(example, prediction)),
        bsize=_SIMBA_BATCH,
        num_candidates=task.budget.candidates,
        max_steps=task.budget.rounds,
        max_demos=task.budget.demos,
        num_threads=1,
    )
    questions = [example_of(each) for each in (*task.train, *task.validation)]
    program: Program = maker.compile(task.view(), trainset=questions, seed=task.seed).program
    return program


@dataclass(frozen=True, slots=True)
class Optimiser:
    """One optimiser.

    Attributes:
        name: As on the command line.
        meaning: What it changes and how it chooses, in a line.
        build: The compiled program; its predictors have no language model.
        needs: Questions to compile on, at least.
        validates: Whether a part of them is kept apart to choose between candidates.
        package: What it needs beyond DSPy, also the name of the extra that installs it; empty: nothing.
    """

    name: str
    meaning: str
    build: Callable[[Task], Program]
    needs: int = 1
    validates: bool = False
    package: str = ""

    def check(self, questions: int) -> None:
        """Refuse what cannot be built.

        Raises:
            InputError: too few questions, or a package is missing.
        """
        if self.package and importlib.util.find_spec(self.package) is None:
            raise InputError(
                f"the optimiser {self.name} needs the package {self.package}, which is not installed",
                hint=f"pip install 'medhop-dspy[{self.package}]'",
            )
        if questions < self.needs:
            raise InputError(
                f"the optimiser {self.name} needs {self.needs} questions to compile on, got {questions}",
                hint="Give more questions, more --folds, or choose another optimiser.",
            )


OPTIMISERS: Final = {
    each.name: each
    for each in (
        Optimiser("labeled", "demos from gold labels and right calls; asks the model nothing more", labelled),
        Optimiser("bootstrap", "demos from questions answered right, filled up with labelled ones", bootstrap),
        Optimiser(
            "bootstrap_random_search", "several such demo sets, the best on held-out questions", random_search, 2, True
        ),
        Optimiser("copro", "instructions rewritten by the model, the best on the training questions", copro),
        Optimiser("mipro", "instructions and demo sets together, by Bayesian search", mipro, 2, True, "optuna"),
        Optimiser("gepa", "instructions rewritten after reflection on every predictor's faults", gepa, 2, True),
        Optimiser("simba", "rules and demos from questions of changing outcome", simba, _SIMBA_BATCH),
    )
}


def find_optimiser(name: str) -> Optimiser:
    """The optimiser of that name.

    Raises:
        InputError: there is none.
    """
    if name not in OPTIMISERS:
        raise InputError(f"unknown optimiser {name!r}", hint=f"Choose one of {', '.join(OPTIMISERS)}.")
    return OPTIMISERS[name]
