"""Options that several commands share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from medhop_dspy.errors import InputError, SettingsError

if TYPE_CHECKING:
    from medhop_dspy.settings import Settings

Preset = Annotated[str | None, typer.Option("--preset", help="local, paper or released.", envvar="MEDHOP_PRESET")]
SettingsFile = Annotated[Path | None, typer.Option("--settings", help="TOML file of settings.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first questions.")]
MinHops = Annotated[int, typer.Option(min=0, help="Only questions with this many hops or more.")]
Workers = Annotated[int | None, typer.Option(min=1, help="Questions asked at once; default: the model server's slots.")]
Order = Annotated[
    Literal["evidence", "file"], typer.Option(help="evidence: kindred questions together; file: as they stand.")
]
Override = Annotated[
    list[str] | None, typer.Option("--set", help="One setting, such as evidence=6; may be given again.")
]


def load_settings(preset: str | None, file: Path | None, overrides: list[str] | None) -> Settings:
    """Settings from the options above.

    Raises:
        SettingsError: an override is not NAME=VALUE, or a value is out of bounds.
    """
    from medhop_dspy.settings import Settings

    return Settings.load(preset, file=file, **parse_overrides(overrides))


def program_settings(program: str, preset: str | None, file: Path | None, overrides: list[str] | None) -> Settings:
    """Settings for a program by its name, or those of a saved one (``.json``) at the places that the options give.

    Raises:
        InputError: a preset for a saved program; one out of the environment is no wish and gives way.
        ProgramError: the saved program cannot be read, or its settings do not fit this version.
        SettingsError: as :func:`load_settings`.
    """
    if not program.endswith(".json"):
        return load_settings(preset, file, overrides)
    if preset and preset != os.environ.get("MEDHOP_PRESET"):
        raise InputError(
            f"{program} brings its own settings, --preset {preset} cannot change them", hint="Leave --preset out."
        )
    from medhop_dspy import saving

    return saving.saved_settings(saving.read(program), file, **parse_overrides(overrides))


def parse_overrides(overrides: list[str] | None) -> dict[str, str]:
    """``NAME=VALUE`` items as a dict.

    Raises:
        SettingsError: one has no ``=``.
    """
    values: dict[str, str] = {}
    for item in overrides or []:
        name, equals, value = item.partition("=")
        if not equals:
            raise SettingsError(f"--set wants NAME=VALUE, got {item!r}")
        values[name.strip()] = value.strip()
    return values
