"""``medhop data``: check a data set, and measure what retrieval alone finds of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medhop_dspy.cli.options import Override, Preset, SettingsFile, load_settings

if TYPE_CHECKING:
    from medhop_dspy.evaluation.recall import Found

app = typer.Typer(no_args_is_help=True, help="Question sets with gold answers: check, recall.")


@app.command()
def check(
    folder: Annotated[Path, typer.Argument(help="Folder with corpus/, and dev, test, demo or mcq .jsonl.")] = Path(
        "data"
    ),
) -> None:
    """Check a data set: ids, titles, golds, their articles, chains, and that dev and test share nothing."""
    from medhop_dspy.errors import CorpusError
    from medhop_dspy.evaluation.check import check_data

    findings = check_data(folder)
    for finding in findings:
        typer.echo(f"{finding.place}: {finding.reason}")
    if findings:
        raise CorpusError(f"{len(findings)} findings in {folder}", hint="Mend the rows named on stdout.")
    typer.echo(f"{folder}: nothing to mend")


@app.command()
def recall(
    questions: Annotated[Path, typer.Argument(help="JSONL with gold answers, such as data/test.jsonl.")],
    k: Annotated[int, typer.Option(min=1, help="Passages a question.")] = 20,
    preset: Preset = None,
    settings_file: SettingsFile = None,
    override: Override = None,
) -> None:
    """Search with each question alone: how often are the gold answer and its article found?

    No language model is asked. What a question with several hops does not find this way is what hops are for.
    """
    from contextlib import closing

    from rich.console import Console

    from medhop_dspy.errors import InputError
    from medhop_dspy.evaluation.datasets import read_gold
    from medhop_dspy.evaluation.recall import find_golds, reach
    from medhop_dspy.runtime import open_retriever

    rows = read_gold(questions)
    settings = load_settings(preset, settings_file, override)
    if k > reach(settings):
        raise InputError(
            f"k is {k}, but a search ranks {reach(settings)} passages", hint="Raise candidates and pool with --set."
        )
    retriever = open_retriever(settings)
    with closing(retriever.index), Console(stderr=True).status("searching") as status:
        found = find_golds(retriever, rows, k, lambda done: status.update(f"searching: {done} of {len(rows)}"))
    typer.echo(f"hops  questions  gold answer in the first {k}  its article in the first {k}")
    for hops in sorted({each.question.hops for each in found}):
        _row(str(hops), [each for each in found if each.question.hops == hops])
    _row("all", found)
    two_hops = [each.article for each in found if each.question.hops == 2 and each.article is not None]
    missed = two_hops.count(False)
    typer.echo(f"answer article not found from the question alone, 2 hops: {_share(missed, len(two_hops))}")


def _row(name: str, found: Sequence[Found]) -> None:
    golds = [each.gold for each in found if each.gold is not None]
    articles = [each.article for each in found if each.article is not None]
    gold, article = _share(sum(golds), len(golds)), _share(sum(articles), len(articles))
    typer.echo(f"{name:4}  {len(found):9}  {gold:>27}  {article:>27}")


def _share(hits: int, n: int) -> str:
    return f"{hits} of {n} ({hits / n:.1%})" if n else "none asked"
