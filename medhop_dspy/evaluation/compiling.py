"""Compile a program: cross-validated on its questions against the uncompiled one, resumable, frozen with its score."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import dspy

from medhop_dspy import saving
from medhop_dspy.errors import InputError
from medhop_dspy.evaluation.candidates import Scores, digest_of, recorded_run
from medhop_dspy.evaluation.compile_report import Report, few
from medhop_dspy.evaluation.demonstrations import check_demos, tidy_demos
from medhop_dspy.evaluation.folds import check_apart, make_folds, split
from medhop_dspy.evaluation.optimisers import Optimiser
from medhop_dspy.evaluation.results import file_errors
from medhop_dspy.evaluation.run_folder import DataFile, Served, served_model
from medhop_dspy.evaluation.runner import Progress, choose
from medhop_dspy.evaluation.sampling import sampling
from medhop_dspy.evaluation.statistics import bootstrap_ci, compare
from medhop_dspy.evaluation.tasks import Budget, Task
from medhop_dspy.lm.engine import record_calls
from medhop_dspy.trace import Usage

if TYPE_CHECKING:
    from medhop_dspy.evaluation.outcomes import Result
    from medhop_dspy.evaluation.predictor_metrics import RecordedRun
    from medhop_dspy.evaluation.records import GoldQuestion
    from medhop_dspy.pipelines.program import Program

TRAIN_SHARE: Final = 0.8  # of the questions to compile on, where some are kept to choose between candidates
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Plan:
    """How to compile.

    Attributes:
        optimiser: What changes the program.
        budget: How much it may try.
        folds: Parts of the questions; each is scored by a program compiled on the others.
        seed: Of folds and optimiser.
        data: The file that the questions are from; a work folder takes those of one file only.
        predictors: Those to change, by their names in the program; empty: all that the questions reach.
        reflection_lm: Model that writes instructions for gepa; None: the one that answers.
    """

    optimiser: Optimiser
    budget: Budget = field(default_factory=Budget)
    folds: int = 5
    seed: int = 42
    data: DataFile | None = None
    predictors: tuple[str, ...] = ()
    reflection_lm: dspy.BaseLM | None = None


def cross_validate(
    program: Program,
    questions: Sequence[GoldQuestion],
    plan: Plan,
    work: Path,
    *,
    progress: Callable[[Progress], None] = lambda state: None,
) -> Report:
    """Score the optimiser on questions that it did not see. Call it inside ``dspy.context(lm=...)``.

    Killed at any moment and called again with the same arguments, it goes on: candidates stand in
    ``work/candidates`` and answers in ``work/runs``.

    Raises:
        InputError: no question or one twice, too few for the folds or the optimiser, a predictor is unknown or
            never reached, or a package is missing.
        ProgramError: a folder in ``work`` is of another program, settings, index, model or question file, or a
            candidate there cannot be read or written.
        ServerUnavailableError: the server is down; what was done is kept.
        DiskFullError: no space is left.
    """
    with _Compiler(program, choose(questions), plan, work, progress) as compiler:
        return compiler.report()


def freeze(
    program: Program,
    questions: Sequence[GoldQuestion],
    plan: Plan,
    work: Path,
    out: Path,
    report: Report,
    *,
    reason: Literal["better", "asked"],
    tests: Mapping[DataFile, Sequence[GoldQuestion]] | None = None,
    progress: Callable[[Progress], None] = lambda state: None,
) -> None:
    """Write the better of the two by ``report`` to ``out`` with what is known about it.

    That is the program compiled on all questions, or the uncompiled one where compiling did not raise the score.

    Args:
        program: The uncompiled program.
        questions: To compile on.
        plan: As for ``report``.
        work: As for ``report``.
        out: A ``.json`` file.
        report: From :func:`cross_validate`: the score is the optimiser's, on questions that it did not see.
        reason: Why the program is frozen; it stands in the manifest.
        tests: Questions that the program must not have seen, by their files.
        progress: As for :func:`cross_validate`.

    Raises:
        InputError: a test question is among ``questions``.
        ProgramError: a demo holds a test question, or ``out`` cannot be written; and as :func:`cross_validate`.
        ServerUnavailableError: the server is down; what was done is kept.
    """
    for test in (tests or {}).values():
        check_apart(questions, test)
    saving.prepare(out)
    with _Compiler(program, choose(questions), plan, work, progress) as compiler:
        final = compiler.candidate(compiler.questions) if report.winner == "compiled" else program
        facts = {
            **compiler.facts(report),
            "frozen": report.winner,
            "frozen_because": reason,
            "tests": [asdict(file) for file in tests or {}],
        }
        document = {"state": final.dump_state(), "medhop": {"compiling": facts}}
        for test in (tests or {}).values():
            check_demos(document, test)
        final.save(out, compiling=facts)


class _Compiler:
    """One program, its questions and its work folder."""

    def __init__(
        self,
        program: Program,
        questions: Sequence[GoldQuestion],
        plan: Plan,
        work: Path,
        progress: Callable[[Progress], None],
    ) -> None:
        plan.optimiser.check(len(questions))
        unknown = sorted(set(plan.predictors) - {name for name, _ in program.named_predictors()})
        if unknown:
            known = ", ".join(name for name, _ in program.named_predictors())
            raise InputError(f"{program.name} has no predictor {', '.join(unknown)}", hint=f"It has {known}.")
        self.questions = list(questions)
        self.folds = make_folds(self.questions, plan.folds, plan.seed)
        for fold in self.folds:
            plan.optimiser.check(len(questions) - len(fold))
        self._program, self._plan, self._work = program, plan, work
        self._progress = progress
        self._served: Served = served_model(program.settings)
        self._scores = Scores(work / "runs", self._served, plan.data)

    def __enter__(self) -> _Compiler:
        return self

    def __exit__(self, *error: object) -> None:
        self._scores.__exit__(*error)

    def report(self) -> Report:
        """Baseline, one candidate a fold, and the comparison."""
        after: dict[str, Result] = {}
        with record_calls() as calls:
            (before,) = self._scores.ask_all([(self._program, self.questions)], self._progress)
            candidates = [(self.candidate(self._without(fold)), fold) for fold in self.folds]
            for found in self._scores.ask_all(candidates, self._progress):
                after |= found
        pairs = [(before[each.id], after[each.id]) for each in self.questions]
        first, second = [bool(one.em) for one, _ in pairs], [bool(other.em) for _, other in pairs]
        return Report(
            optimiser=self._plan.optimiser.name,
            before=bootstrap_ci(first, seed=self._plan.seed),
            after=bootstrap_ci(second, seed=self._plan.seed),
            comparison=compare(first, second),
            questions=len(pairs),
            failed=sum(not each.scored for pair in pairs for each in pair),
            usage=sum((call.usage for call in calls), Usage()),
        )

    def candidate(self, train: Sequence[GoldQuestion]) -> Program:
        """The program compiled on ``train``, out of the work folder where it stands there already."""
        path = self._work / "candidates" / f"{self._plan.optimiser.name}-{self._identity(train)[:16]}.json"
        if not path.exists():
            with file_errors(path):
                path.parent.mkdir(parents=True, exist_ok=True)
            self._built(train).save(path, compiling={"train": [each.id for each in train]})
        candidate = deepcopy(self._program)
        candidate.load(path)  # also a new one: what is scored is what a file gives back
        return candidate

    def facts(self, report: Report) -> dict[str, Any]:
        """What the manifest of the frozen program says about its making."""
        plan = self._plan
        return {
            "optimiser": plan.optimiser.name,
            "meaning": plan.optimiser.meaning,
            "budget": asdict(plan.budget),
            "seed": plan.seed,
            "predictors": list(plan.predictors),
            "data": asdict(plan.data) if plan.data else None,
            "train": [each.id for each in self.questions],
            "folds": [[each.id for each in fold] for fold in self.folds],
            "score": "exact match of each question by a program compiled without its fold, this one aside",
            "before": asdict(report.before),
            "after": asdict(report.after),
            "comparison": asdict(report.comparison),
            "better": report.better,
            "note": few(report.questions),
            "uncompiled": digest_of(self._program),
            "model": asdict(self._served),
            "reflection_model": plan.reflection_lm.model if plan.reflection_lm else None,
        }

    def _without(self, fold: Sequence[GoldQuestion]) -> list[GoldQuestion]:
        held_out = {each.id for each in fold}
        return [each for each in self.questions if each.id not in held_out]

    def _runs(self, questions: Sequence[GoldQuestion]) -> list[RecordedRun]:
        found = self._scores.ask_all([(self._program, questions)], self._progress)[0]
        return [recorded_run(found[each.id], each) for each in questions]

    def _identity(self, train: Sequence[GoldQuestion]) -> str:
        """Hex SHA-256 of everything that a candidate depends on."""
        plan = self._plan
        reflecting = plan.reflection_lm.model if plan.reflection_lm else ""
        about = saving.manifest(self._program)
        parts = {
            "made by": [plan.optimiser.name, asdict(plan.budget), plan.seed, plan.predictors, reflecting],
            "from": [digest_of(self._program), self._program.settings.digest(), asdict(replace(self._served, slots=0))],
            "with": [about["index_digest"], about["versions"]],
            "questions": [asdict(each) for each in train],
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def _built(self, train: Sequence[GoldQuestion]) -> Program:
        """Run the optimiser; what it prints goes to standard error.

        Raises:
            ServerUnavailableError: the server went down meanwhile.
        """
        plan = self._plan
        learn, choose_by = split(train, TRAIN_SHARE, plan.seed) if plan.optimiser.validates else (list(train), [])
        task = Task(
            program=self._program,
            train=learn,
            validation=choose_by,
            runs=self._runs(learn),
            budget=plan.budget,
            seed=plan.seed,
            ask=self._scores.result,
            compare=self._right,
            only=plan.predictors,
            reflection_lm=sampling(plan.reflection_lm) if plan.reflection_lm else None,
        )
        if not task.names and plan.predictors:
            raise InputError(
                f"no question reaches {', '.join(plan.predictors)}", hint="Name a predictor that these settings use."
            )
        _log.info("%s: compiling on %d questions", plan.optimiser.name, len(train))
        # The adapter is that of the optimisers' own prompts: a program brings its own. A failed question is a wrong
        # answer to them, however many fail; only the loss of the server ends them (Task.outage).
        adapter = dspy.JSONAdapter(use_native_function_calling=False)
        with (
            contextlib.redirect_stdout(sys.stderr),
            dspy.context(lm=sampling(dspy.settings.lm), adapter=adapter, disable_history=True, max_errors=sys.maxsize),
        ):
            built = plan.optimiser.build(task)
        if task.outage:
            raise task.outage
        tidy_demos(built)
        return built

    def _right(self, programs: Sequence[Program], questions: Sequence[GoldQuestion]) -> list[int]:
        """How many of ``questions`` each program answers right."""
        found = self._scores.ask_all([(each, questions) for each in programs], self._progress)
        return [sum(bool(result.em) for result in results.values()) for results in found]
