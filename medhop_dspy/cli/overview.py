"""``medhop programs`` and ``medhop settings``: what there is to choose from."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from medhop_dspy.cli.options import Override, Preset, SettingsFile, load_settings


def programs() -> None:
    """List the programs that `medhop ask --program` takes."""
    from medhop_dspy.pipelines.registry import PROGRAMS

    width = max(map(len, PROGRAMS))
    for entry in PROGRAMS.values():
        typer.echo(f"{entry.name:{width}}  {entry.description}")


def settings(
    preset: Preset = None,
    settings_file: SettingsFile = None,
    override: Override = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for scripts.")] = False,
) -> None:
    """Show every setting, its value and its meaning."""
    chosen = load_settings(preset, settings_file, override)
    values = chosen.model_dump(mode="json")
    if as_json:
        typer.echo(json.dumps(values, ensure_ascii=False))
        return
    for name, field in type(chosen).model_fields.items():
        typer.echo(f"{name} = {json.dumps(values[name], ensure_ascii=False)}\n    {field.description}")
