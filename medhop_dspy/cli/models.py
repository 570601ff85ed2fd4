"""``medhop models``: model files on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from medhop_dspy.cli.options import Override, Preset, SettingsFile, load_settings

app = typer.Typer(no_args_is_help=True, help="Model files: list, fetch, verify.")
Names = Annotated[
    list[str] | None, typer.Argument(help="Names from `medhop models list`; default: what the preset uses.")
]


@app.command("list")
def list_models(preset: Preset = None, settings_file: SettingsFile = None, override: Override = None) -> None:
    """Show every known model file and whether it is here."""
    from medhop_dspy.lm import artefacts

    for status in artefacts.status(load_settings(preset, settings_file, override).home):
        size = f"{status.size / 1e6:,.0f} MB" if status.size else "-"
        typer.echo(f"{status.state:9} {size:>8}  {status.name}  ({status.licence})")
        typer.echo(f"{'':20}{status.location if status.state == 'ready' else status.command}")


@app.command()
def fetch(
    names: Names = None, preset: Preset = None, settings_file: SettingsFile = None, override: Override = None
) -> None:
    """Bring model files here; only their hashes are trusted, and what is here already is not fetched again."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    from medhop_dspy.lm import artefacts

    settings = load_settings(preset, settings_file, override)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bars:
        for name in names or artefacts.needed(settings):
            bar = bars.add_task(name, total=None)
            location = artefacts.fetch(
                name,
                settings.home,
                lambda step, done, total, bar=bar, name=name: bars.update(  # type: ignore[misc]
                    bar, description=f"{name}: {step}", completed=done, total=total
                ),
            )
            bars.update(bar, description=f"{name}: ready")
            typer.echo(location)


@app.command()
def verify(
    names: Names = None, preset: Preset = None, settings_file: SettingsFile = None, override: Override = None
) -> None:
    """Read model files in full and compare their hashes."""
    from medhop_dspy.lm import artefacts

    settings = load_settings(preset, settings_file, override)
    for name in names or artefacts.needed(settings):
        typer.echo(f"ok  {artefacts.verify(name, settings.home)}")
