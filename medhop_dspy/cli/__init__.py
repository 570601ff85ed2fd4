"""The command ``medhop``: parse, call one function of the library, print. Data on stdout, everything else on stderr."""

from __future__ import annotations

import logging
import signal
import sys
from typing import Annotated

import typer

from medhop_dspy.cli import analyse, ask, data, doctor, graph, index, lm, models, overview, report, submit
from medhop_dspy.errors import MedhopError

INTERRUPTED = 130

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: rich would double the start-up time
    help="Multi-hop biomedical question answering on this machine. Not a medical device.",
)
app.command("ask")(ask.ask)
app.command("doctor")(doctor.doctor)
app.command("programs")(overview.programs)
app.command("settings")(overview.settings)
app.command("report")(report.report)
app.command("submit")(submit.submit)
app.add_typer(analyse.app, name="analyse")
app.add_typer(index.app, name="index")
app.add_typer(graph.app, name="graph")
app.add_typer(data.app, name="data")
app.add_typer(models.app, name="models")
app.add_typer(lm.app, name="lm")


@app.callback()
def _options(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log what the parts do, to stderr.")] = False,
) -> None:
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        stream=sys.stderr,
        format="%(levelname)s %(name)s: %(message)s",
    )


def run(command: typer.Typer, name: str) -> None:
    """Run a command line: expected errors become one message and an exit code of :mod:`medhop_dspy.errors`."""
    try:
        command()
    except MedhopError as error:
        typer.echo(f"{name}: {error}", err=True)
        if error.hint:
            typer.echo(f"{' ' * len(name)}  {error.hint}", err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def run_script(command: typer.Typer, name: str) -> None:
    """:func:`run` for the scripts in ``programs/``: ended from outside, they too write summaries and stop servers."""
    logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    run(command, name)


def main() -> None:
    """Entry point."""
    run(app, "medhop")
