"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medhop_dspy.errors import SettingsError

if TYPE_CHECKING:
    from medhop_dspy.settings import Settings

Preset = Annotated[str | None, typer.Option("--preset", help="local, paper or released.", envvar="MEDHOP_PRESET")]
SettingsFile = Annotated[Path | None, typer.Option("--settings", help="TOML file of settings.")]
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
