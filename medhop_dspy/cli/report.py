"""``medhop report``: one or several runs as a page to read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs; all others are compared with the first.")],
    out: Annotated[Path, typer.Option(help="HTML to write: one file, which loads nothing.")] = Path("report.html"),
    markdown: Annotated[Path | None, typer.Option(help="The same as Markdown, without the drawings.")] = None,
) -> None:
    """Write a report: measures, differences with their tests, errors, costs, published results.

    Published numbers stand in a column of their own: they are of other questions. Not a medical device: answers can
    be wrong.
    """
    from medhop_dspy.evaluation import documents
    from medhop_dspy.evaluation.exports import write_file
    from medhop_dspy.evaluation.report import report as sections_of
    from medhop_dspy.evaluation.report_runs import read_runs

    opened = read_runs(runs)
    title, sections = f"Report on {', '.join(run.name for run in opened)}", sections_of(opened)
    write_file(out, documents.html_page(title, sections).encode())
    if markdown:
        write_file(markdown, documents.markdown(title, sections).encode())
    typer.echo("\n".join(str(path) for path in (out, markdown) if path))
