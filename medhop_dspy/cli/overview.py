"""``medhop programs`` and ``medhop settings``: what there is to choose from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Literal, get_args, get_origin

import typer

from medhop_dspy.cli.options import Override, Preset, SettingsFile, load_settings

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo


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
        allowed = ", ".join(_allowed(field))
        typer.echo(f"{name} = {json.dumps(values[name], ensure_ascii=False)}{f'   ({allowed})' if allowed else ''}")
        typer.echo(f"    {field.description}")


def _allowed(field: FieldInfo) -> list[str]:
    """The values or bounds of a setting, in words."""
    kinds = [field.annotation, *get_args(field.annotation)]  # as in Literal[...] | None
    choices = [str(value) for kind in kinds if get_origin(kind) is Literal for value in get_args(kind)]
    words = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    bounds = [
        f"{words[name]} {getattr(each, name)}" for each in field.metadata for name in words if hasattr(each, name)
    ]
    return choices + bounds
