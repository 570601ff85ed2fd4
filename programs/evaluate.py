"""Evaluate a program on questions with gold answers: ``python programs/evaluate.py --help``."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medhop_dspy.cli import run_script
from medhop_dspy.cli.options import Limit, MinHops, Order, Override, Preset, SettingsFile, Workers, program_settings
from medhop_dspy.errors import ProgramError, ServerUnavailableError
from medhop_dspy.evaluation.exports import DISCLAIMER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from medhop_dspy.evaluation.records import Question

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def evaluate(
    program: Annotated[str, typer.Argument(help="A saved program (.json), or a name of `medhop programs`.")],
    data: Annotated[Path, typer.Option(help="Questions with answers, such as data/dev.jsonl or data/mcq.jsonl.")],
    out: Annotated[Path, typer.Option(help="Folder of the run. An interrupted run goes on in its folder.")],
    limit: Limit = None,
    min_hops: MinHops = 0,
    workers: Workers = None,
    order: Order = "evidence",
    preset: Preset = None,
    settings_file: SettingsFile = None,
    override: Override = None,
) -> None:
    """Ask PROGRAM every question of DATA, and write the answers, their scores and a summary to OUT.

    DATA's columns say what it is: open questions with QIDX, Question and answer, or multiple choice as MedQA, MedMCQA,
    MMLU (a file, or the folder) and PubMedQA are published.
    """
    from medhop_dspy.evaluation import runner
    from medhop_dspy.evaluation.datasets import read_set
    from medhop_dspy.evaluation.live import live_progress
    from medhop_dspy.evaluation.run_folder import DataFile
    from medhop_dspy.evaluation.tally import table
    from medhop_dspy.runtime import session

    questions = runner.choose(read_set(data), limit=limit, min_hops=min_hops)
    settings = program_settings(program, preset, settings_file, override)
    if program.endswith(".json"):
        _tell_if_seen(program, questions)
    with ExitStack() as stack:
        try:
            opened = stack.enter_context(session(program, settings))
        except ServerUnavailableError:
            typer.echo(f"in this call: 0 answered, {len(questions)} failed", err=True)
            raise
        progress = stack.enter_context(live_progress())
        summary = runner.evaluate(
            opened, questions, out, data=DataFile.of(data), workers=workers, order=order, progress=progress
        )
    typer.echo(table(summary))
    typer.echo(DISCLAIMER)
    raise typer.Exit(summary.exit_code)


def _tell_if_seen(program: str, questions: Sequence[Question]) -> None:
    """A word on stderr where the program was compiled on what it is about to be measured on."""
    from medhop_dspy import saving
    from medhop_dspy.evaluation.demonstrations import check_demos

    try:
        check_demos(saving.read(program), questions)
    except ProgramError as error:
        typer.echo(f"no test score: {error}", err=True)


if __name__ == "__main__":
    run_script(app, "evaluate")
