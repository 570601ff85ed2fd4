"""``medhop doctor``: check every part, and say how to mend what is broken."""

from __future__ import annotations

import importlib.metadata
import shutil
import sys
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

import typer

from medhop_dspy.cli.options import Override, Preset, SettingsFile, load_settings
from medhop_dspy.errors import MedhopError, ServerError

if TYPE_CHECKING:
    from medhop_dspy.settings import Settings

_PACKAGES = ("dspy", "chromadb", "sentence-transformers", "flashrank", "torch")
_FREE_GIB = 2


def doctor(preset: Preset = None, settings_file: SettingsFile = None, override: Override = None) -> None:
    """Check packages, models, index and model server; the exit code is that of the first fault."""
    settings = load_settings(preset, settings_file, override)
    typer.echo(f"preset {settings.preset}, home {settings.home}")
    faults: list[MedhopError] = []
    for name, check in _CHECKS.items():
        try:
            typer.echo(f"ok    {name}: {check(settings)}")
        except MedhopError as error:
            faults.append(error)
            typer.echo(f"FAULT {name}: {error}" + (f"\n      {error.hint}" if error.hint else ""))
    if faults:
        raise typer.Exit(faults[0].exit_code)


def _packages(settings: Settings) -> str:
    versions = [f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES]
    return f"Python {sys.version.split()[0]}, {', '.join(versions)}"


def _disk(settings: Settings) -> str:
    place = next(p for p in (settings.home, *settings.home.parents) if p.exists())
    free = shutil.disk_usage(place).free / 2**30
    if free < _FREE_GIB:
        raise MedhopError(f"{free:.1f} GiB free at {place}", hint="Free some space, or move MEDHOP_HOME.")
    return f"{free:.0f} GiB free at {place}"


def _models(settings: Settings) -> str:
    from medhop_dspy.lm import artefacts

    names = artefacts.needed(settings)
    for name in names:
        artefacts.path(name, settings.home)
    return ", ".join(names)


def _index(settings: Settings) -> str:
    from medhop_dspy.runtime import open_retriever

    retriever = open_retriever(settings)
    with closing(retriever.index):
        found = retriever.search(["gene"], 1)
    return f"{settings.index_location}, first hit {found[0].title!r}" if found else settings.index_location


def _orphanet(settings: Settings) -> str:
    from medhop_dspy.runtime import open_orphanet

    table = open_orphanet(settings)
    return f"{len(table)} disorders" if table else "not configured (optional)"


def _server(settings: Settings) -> str:
    from medhop_dspy.lm.connect import connect
    from medhop_dspy.lm.serve import model_server

    with model_server(settings) as served:
        lm = connect(served)
        reply = lm("Reply with the one word: ready")
        started = "a running server" if served.lm_url == settings.base_url else "the embedded server, started for this"
        if not reply or not str(reply[0]).strip():
            raise ServerError(f"{served.base_url} answered with nothing")
        return f"{started}: {lm.model} replies {str(reply[0]).strip()[:40]!r}"


_CHECKS: dict[str, Callable[[Settings], str]] = {
    "packages": _packages,
    "disk": _disk,
    "models": _models,
    "index": _index,
    "orphanet": _orphanet,
    "model server": _server,
}
