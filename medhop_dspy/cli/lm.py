"""``medhop lm``: the model server."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from medhop_dspy.cli.options import Override, Preset, SettingsFile, load_settings
from medhop_dspy.errors import ServerUnavailableError

app = typer.Typer(no_args_is_help=True, help="The model server: serve, status, install-sglang.")


@app.command()
def serve(
    backend: Annotated[str | None, typer.Option(help="llamacpp or sglang; default: the preset's.")] = None,
    port: Annotated[int | None, typer.Option(help="Loopback port.")] = None,
    gpus: Annotated[int, typer.Option(min=1, help="SGLang: GPUs, one copy of the model on each.")] = 1,
    preset: Preset = None,
    settings_file: SettingsFile = None,
    override: Override = None,
) -> None:
    """Run the model server in the foreground until Ctrl-C."""
    from medhop_dspy.lm.serve import serve as run_server

    settings = load_settings(preset, settings_file, override)
    chosen = {"backend": backend} if backend else {}
    settings = settings.replace(**chosen, **({"port": port} if port else {}))
    with run_server(settings, gpus=gpus) as server:
        typer.echo(f"ready at {server.url}, log {server.log}; Ctrl-C stops it")
        server.wait()


@app.command("install-sglang")
def install_sglang(preset: Preset = None, settings_file: SettingsFile = None, override: Override = None) -> None:
    """Make an environment of its own for SGLang, which pins other versions than this software."""
    from medhop_dspy.lm import sglang

    settings = load_settings(preset, settings_file, override)
    typer.echo(sglang.install(settings.home, lambda line: typer.echo(line, err=True)))


@app.command()
def status(
    preset: Preset = None,
    settings_file: SettingsFile = None,
    override: Override = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for scripts.")] = False,
) -> None:
    """Say what the model server at the configured address serves; exit code 4 if none answers."""
    from dataclasses import asdict

    from medhop_dspy.lm.serve import server_running

    settings = load_settings(preset, settings_file, override)
    info = server_running(settings)
    if info is None:
        raise ServerUnavailableError(
            f"no model server answers at {settings.base_url}",
            hint="`medhop ask` starts the embedded one by itself; `medhop lm serve` keeps one running.",
        )
    if as_json:
        typer.echo(json.dumps(asdict(info)))
        return
    for name, value in asdict(info).items():
        typer.echo(f"{name:15} {value}")
