"""Compile a program on questions with gold answers: ``python programs/compile.py --help``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medhop_dspy.cli import run_script
from medhop_dspy.cli.options import Override, Preset, SettingsFile, program_settings
from medhop_dspy.evaluation.exports import DISCLAIMER

if TYPE_CHECKING:
    from medhop_dspy.evaluation.records import GoldQuestion
    from medhop_dspy.evaluation.run_folder import DataFile

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def compile_program(
    program: Annotated[str, typer.Argument(help="A name of `medhop programs`, or a saved program (.json).")],
    data: Annotated[Path, typer.Option(help="JSONL with gold answers, such as data/dev.jsonl.")],
    optimizer: Annotated[
        str, typer.Option(help="labeled, bootstrap, bootstrap_random_search, copro, mipro, gepa or simba.")
    ],
    out: Annotated[Path, typer.Option(help="The frozen program (.json).")],
    work: Annotated[
        Path | None, typer.Option(help="Folder of candidates and scores, where an interrupted run goes on.")
    ] = None,
    test: Annotated[
        list[Path] | None,
        typer.Option(help="Questions that it must not see; default: test.jsonl beside DATA, if it is there."),
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Parts, each scored by a program compiled on the others.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Of folds and optimiser.")] = 42,
    freeze: Annotated[
        bool, typer.Option("--freeze", help="Write a program even where no gain is shown: the one that scored better.")
    ] = False,
    demos: Annotated[int, typer.Option(min=0, help="Demos of one predictor at most.")] = 3,
    bootstrapped: Annotated[int, typer.Option(min=0, help="Of these, from questions just answered right.")] = 2,
    candidates: Annotated[int, typer.Option(min=1, help="Demo sets, instructions or programs to try.")] = 4,
    rounds: Annotated[int, typer.Option(min=1, help="copro, simba: times that the best are worked on.")] = 1,
    metric_calls: Annotated[int, typer.Option(min=1, help="gepa: questions that it may ask in all.")] = 100,
    reflection_url: Annotated[
        str | None, typer.Option(help="gepa: server of the model that writes instructions; default: that of PROGRAM.")
    ] = None,
    predictor: Annotated[
        list[str] | None,
        typer.Option(help="Change only this one, such as answer_hop; may be given again. Default: all in use."),
    ] = None,
    preset: Preset = None,
    settings_file: SettingsFile = None,
    override: Override = None,
) -> None:
    """Compile PROGRAM on DATA, compare it with the uncompiled one by cross-validation, and freeze it if it is better.

    The comparison goes to standard output.
    """
    from medhop_dspy import saving
    from medhop_dspy.evaluation import compiling
    from medhop_dspy.evaluation.compile_report import table
    from medhop_dspy.evaluation.datasets import read_gold
    from medhop_dspy.evaluation.folds import check_apart
    from medhop_dspy.evaluation.live import live_progress
    from medhop_dspy.evaluation.optimisers import find_optimiser
    from medhop_dspy.evaluation.run_folder import DataFile
    from medhop_dspy.evaluation.tasks import Budget
    from medhop_dspy.lm.connect import connect
    from medhop_dspy.runtime import session

    found = find_optimiser(optimizer)
    budget = Budget(demos, bootstrapped, candidates, rounds, metric_calls)
    questions, file = read_gold(data), DataFile.of(data)
    found.check(len(questions))
    tests = _tests(data, test)
    for held_out in tests.values():
        check_apart(questions, held_out)
    settings = program_settings(program, preset, settings_file, override)
    saving.prepare(out)
    work = work or Path("runs") / f"compile-{out.stem}"
    with session(program, settings) as opened, live_progress() as progress:
        reflecting = connect(settings.replace(lm_url=reflection_url, lm_model="")) if reflection_url else None
        plan = compiling.Plan(found, budget, folds, seed, file, tuple(predictor or ()), reflecting)
        report = compiling.cross_validate(opened, questions, plan, work, progress=progress)
        typer.echo(table(report))
        if report.better or freeze:
            compiling.freeze(
                opened, questions, plan, work, out, report,
                reason="better" if report.better else "asked", tests=tests, progress=progress,
            )  # fmt: skip
            typer.echo(f"frozen: {out}, {report.winner}")
        else:
            typer.echo("nothing frozen; --freeze writes the one that scored better all the same", err=True)
    typer.echo(DISCLAIMER)


def _tests(data: Path, given: list[Path] | None) -> dict[DataFile, list[GoldQuestion]]:
    from medhop_dspy.evaluation.datasets import read_gold
    from medhop_dspy.evaluation.run_folder import DataFile

    beside = data.with_name("test.jsonl")
    paths = given if given is not None else [beside] if beside.exists() else []
    return {DataFile.of(path): read_gold(path) for path in paths}


if __name__ == "__main__":
    run_script(app, "compile")
