"""Run an ablation over questions with gold answers: ``python programs/ablate.py --help``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medhop_dspy.cli import run_script
from medhop_dspy.cli.options import Limit, MinHops, Order, Override, Preset, SettingsFile, Workers, load_settings
from medhop_dspy.errors import InputError
from medhop_dspy.evaluation.exports import DISCLAIMER

if TYPE_CHECKING:
    from medhop_dspy.evaluation.runner import Progress

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def ablate(
    data: Annotated[Path, typer.Argument(help="Questions with answers, as for evaluate.py, such as data/dev.jsonl.")],
    out: Annotated[Path, typer.Option(help="Folder of all runs. An interrupted ablation goes on in its folder.")],
    configurations: Annotated[
        str, typer.Option(help='Groups (paper, factorial, hybrid_ir, all) and names, such as "paper lexical".')
    ] = "paper",
    seeds: Annotated[str, typer.Option(help='Such as "42 43 44 45 46"; several show how far answers repeat.')] = "42",
    limit: Limit = None,
    min_hops: MinHops = 0,
    workers: Workers = None,
    order: Order = "evidence",
    preset: Preset = None,
    settings_file: SettingsFile = None,
    override: Override = None,
) -> None:
    """Ask each configuration every question of DATA with every seed, into OUT/NAME/seed-N.

    Prints tables of exact match or accuracy, differences from `full` with their tests, cost, and agreement between
    seeds, and writes them to OUT/ablations.json. `full` is the program with the settings as given; one model server
    serves all. Where only Hybrid-IR is asked for, it stands in for `full`; a report on its runs draws them over rounds.
    """
    from medhop_dspy.evaluation import ablations, runner
    from medhop_dspy.evaluation.ablation_runs import SharedParts, run_ablations
    from medhop_dspy.evaluation.ablation_table import as_markdown, tabulate, write_table
    from medhop_dspy.evaluation.datasets import read_set
    from medhop_dspy.evaluation.run_folder import DataFile
    from medhop_dspy.lm.connect import connect, quiet_dspy
    from medhop_dspy.lm.serve import model_server

    quiet_dspy()
    questions = runner.choose(read_set(data), limit=limit, min_hops=min_hops)
    chosen, numbers = ablations.choose(_words(configurations)), _seeds(seeds)
    settings = load_settings(preset, settings_file, override)
    with SharedParts(settings) as parts, model_server(settings) as served:
        ablated, skipped = run_ablations(
            chosen,
            numbers,
            questions,
            out,
            served,
            build=parts.build,
            make_lm=connect,
            watch=_watch,
            data=DataFile.of(data),
            workers=workers,
            order=order,
        )
    ablation = tabulate(ablated, skipped, numbers, settings.temperature, data.name)
    write_table(out, ablation)
    typer.echo(as_markdown(ablation))
    typer.echo(DISCLAIMER)
    raise typer.Exit(int(ablation.failed > 0) or next((each.exit_code for each in skipped if each.exit_code), 0))


@contextmanager
def _watch(name: str, seed: int) -> Iterator[Callable[[Progress], None]]:
    """A headline and the progress of one run, on standard error."""
    from medhop_dspy.evaluation.live import live_progress

    typer.echo(f"{name}, seed {seed}", err=True)
    with live_progress() as progress:
        yield progress


def _words(text: str) -> list[str]:
    return re.split(r"[\s,]+", text.strip(" ,\t\n")) if text.strip(" ,\t\n") else []


def _seeds(text: str) -> list[int]:
    words = _words(text)
    if not words or not all(re.fullmatch("[0-9]+", word) for word in words):
        raise InputError(f"seeds are {text!r}, wanted whole numbers from 0", hint='For example: --seeds "42 43 44".')
    return [int(word) for word in words]


if __name__ == "__main__":
    run_script(app, "ablate")
