"""``medhop ask``: one question, a file of them, or standard input."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from medhop_dspy.cli.options import Override, Preset, SettingsFile, program_settings
from medhop_dspy.errors import InputError, MedhopError
from medhop_dspy.evaluation.exports import DISCLAIMER

if TYPE_CHECKING:
    import dspy
    from rich.console import Console

    from medhop_dspy.questions import Question


def ask(
    question: Annotated[str | None, typer.Argument(help="The question; `-` or nothing reads standard input.")] = None,
    file: Annotated[
        Path | None, typer.Option("--file", help="Questions: .jsonl, .csv (QIDX,Question) or one a line.")
    ] = None,
    program: Annotated[str, typer.Option(help="A name of `medhop programs`, or a saved .json file.")] = "medhopper",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    trace: Annotated[bool, typer.Option("--trace", help="Also show every query, draft and verdict.")] = False,
    preset: Preset = None,
    settings_file: SettingsFile = None,
    override: Override = None,
) -> None:
    """Answer questions from the index with the local model.

    A running model server is used; without one, the embedded server is started and stopped again.
    """
    questions = _questions(question, file)
    settings = program_settings(program, preset, settings_file, override)
    from rich.console import Console

    from medhop_dspy.runtime import session

    steps = Console(stderr=True)
    failures: list[MedhopError] = []
    with (
        _steps(steps, show=steps.is_terminal or not as_json) as callback,
        session(program, settings, callbacks=[callback]) as answering,
    ):
        for item in questions:
            callback.begin(item.text)
            try:
                prediction = answering(question=item.text)
            except MedhopError as error:
                failures.append(error)
                _show_failure(item, error, as_json=as_json)
            else:
                _show(item, prediction, as_json=as_json, trace=trace)
    if not as_json:
        _echo(DISCLAIMER)
    if failures:
        raise typer.Exit(failures[0].exit_code if len(questions) == 1 else MedhopError.exit_code)


def _questions(question: str | None, file: Path | None) -> list[Question]:
    from medhop_dspy.questions import Question, read_questions

    if file and question:
        raise InputError("give a question or --file, not both")
    if file:
        return read_questions(file)
    if question is not None and question != "-":
        from medhop_dspy.pipelines.run import checked_question

        return [Question("1", checked_question(question))]  # before index and model are opened
    if sys.stdin.isatty():
        raise InputError(
            "no question given", hint='For example: medhop ask "Which gene is mutated in Marfan syndrome?"'
        )
    lines = [line.strip() for line in sys.stdin.read().split("\n") if line.strip()]
    if not lines:
        raise InputError("standard input holds no question")
    return [Question(str(number), line) for number, line in enumerate(lines, start=1)]


@contextmanager
def _steps(console: Console, *, show: bool) -> Iterator[Any]:
    """A DSPy callback that shows which step runs."""
    from medhop_dspy.cli.progress import StepReporter

    if not show:
        yield StepReporter(lambda text: None)
        return
    with console.status("opening index and model") as status:
        yield StepReporter(status.update if console.is_terminal else lambda text: console.print(text, style="dim"))


def _show(item: Question, prediction: dspy.Prediction, *, as_json: bool, trace: bool) -> None:
    from medhop_dspy.cli.show import as_text
    from medhop_dspy.pipelines.program import as_record

    if as_json:
        _echo(json.dumps({"QIDX": item.id, "question": item.text, **as_record(prediction)}, ensure_ascii=False))
    else:
        _echo(as_text(item.text, prediction, trace=trace) + "\n")


def _show_failure(item: Question, error: MedhopError, *, as_json: bool) -> None:
    if as_json:
        about = {"type": _public_name(error), "message": str(error), "hint": error.hint, "retryable": error.retryable}
        _echo(json.dumps({"QIDX": item.id, "question": item.text, "error": about}, ensure_ascii=False))
    else:
        _echo(f"Question  {item.text[:200]}\nFailed    {error}\n{f'          {error.hint}' if error.hint else ''}")


def _echo(text: str) -> None:
    """Print a line at once, whatever is in it; a reader that has left, as ``head`` does, ends the command quietly."""
    try:
        typer.echo(text.encode("utf-8", "replace").decode())
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing more can fail at exit
        raise typer.Exit(0) from None


def _public_name(error: MedhopError) -> str:
    """The leaf of :mod:`medhop_dspy.errors` that ``error`` is."""
    return next(c.__name__ for c in type(error).__mro__ if c.__module__ == MedhopError.__module__)
