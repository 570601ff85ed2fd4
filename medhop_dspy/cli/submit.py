"""``medhop submit``: the answers of a run as a CodaBench submission."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_LARGEST = 2**20  # bytes of Team.txt


def submit(
    run: Annotated[Path, typer.Argument(help="Folder of the run.")],
    questions: Annotated[Path, typer.Option(help="Template: its questions, and no others, in its order.")],
    team: Annotated[Path, typer.Option(help="Team.txt, taken as it is.")],
    out: Annotated[Path, typer.Option(help="Zip to write.")] = Path("submission.zip"),
    name: Annotated[str | None, typer.Option(help="Name in README.md; default: that of the run's folder.")] = None,
    number: Annotated[int, typer.Option(min=1, help="Number in README.md.")] = 1,
    three_columns: Annotated[
        bool, typer.Option("--three-columns", help="QIDX,Question,Answer, without long answers.")
    ] = False,
    allow_missing: Annotated[
        bool, typer.Option("--allow-missing", help="Write a partial submission, and name it so.")
    ] = False,
) -> None:
    """Write a flat zip with README.md, submission.csv and Team.txt.

    Refused, without a file, where an answer is missing or a question failed, unless --allow-missing. Not a medical
    device: answers can be wrong.
    """
    from medhop_dspy.errors import InputError
    from medhop_dspy.evaluation.exports import write_file
    from medhop_dspy.evaluation.results import read_results
    from medhop_dspy.evaluation.submission import MAX_WORDS, fill, pack, read_template

    try:
        if team.stat().st_size > _LARGEST or not team.is_file():
            raise InputError(
                f"{team} is no file of at most {_LARGEST:,} bytes", hint="Name the team's file with --team."
            )
        members = team.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {team}: {error.strerror}", hint="Name the team's file with --team.") from error
    if not members.strip():
        raise InputError(f"{team} is empty", hint="Write the team's name and members into it.")
    submission = fill(read_template(questions), read_results(run), allow_missing=allow_missing)
    label = name or run.resolve().name
    write_file(out, pack(submission, members, name=label, number=number, three_columns=three_columns))
    if submission.wordy:
        typer.echo(f"more than {MAX_WORDS} words: {', '.join(submission.wordy)}", err=True)
    if submission.missing:
        typer.echo(f"partial submission, no answer: {', '.join(submission.missing)}", err=True)
    typer.echo(f"{out}: {len(submission.rows) - len(submission.missing):,} of {len(submission.rows):,} answered")
