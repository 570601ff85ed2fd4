"""What the tests share: a scripted language model, and the places of data that may be absent."""

from __future__ import annotations

import importlib.util
import io
import os
import sys
from functools import cache
from pathlib import Path

import dspy
import pytest
import typer
from dspy.lm15 import Message, Request, Response, TextPart, Usage

from medhop_dspy.cli import run

ROOT = Path(__file__).parent.parent
# Real data that is not part of this repository; tests that need it skip where it is absent.
SHARED = Path(os.environ.get("REAL_DATA", ROOT.parent / "shared")) / "data"


class ScriptedEngine:
    """A DSPy engine whose reply is a function of the request; it keeps every request."""

    supports_response_schema = True
    supported_params = frozenset({"response_format", "stop", "max_tokens", "temperature", "seed", "logprobs"})

    def __init__(self, reply):
        self.reply = reply
        self.requests: list[Request] = []

    def complete(self, request: Request) -> Response:
        self.requests.append(request)
        text = self.reply(request)
        if isinstance(text, Exception):
            raise text
        message = Message.assistant([TextPart(text)])
        return Response(id=None, model=request.model, message=message, finish_reason="stop", usage=Usage())

    def __deepcopy__(self, memo):
        return self


class AsyncScriptedEngine:
    def __init__(self, engine):
        self.engine = engine

    async def complete(self, request: Request) -> Response:
        return self.engine.complete(request)


def prompt_of(request: Request) -> str:
    """The user message of a request."""
    return "".join(part.text for message in request.messages for part in message.parts)


def task_of(request: Request) -> str:
    """The task line of a request's prompt."""
    return next(line for line in prompt_of(request).splitlines() if line.startswith("Task: "))


@pytest.fixture
def scripted_lm():
    """``scripted_lm(reply)`` -> (lm, engine); ``reply`` maps a Request to text or an exception to raise."""

    def make(reply):
        engine = ScriptedEngine(reply)
        lm = dspy.LM(
            "scripted/model", engine=engine, async_engine=AsyncScriptedEngine(engine), cache=False, num_retries=0
        )
        return lm, engine

    return make


@cache
def script_app(name: str) -> typer.Typer:
    """The command line of ``programs/NAME.py``."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "programs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.app


@pytest.fixture
def in_process(monkeypatch, capsys):
    """``in_process(app, *arguments, home=...)`` -> (exit code, stdout, stderr), for what ends with an error.

    As a process of its own would be run: in the folder of the repository, with nothing on standard input.
    """

    def ended(app, *arguments, home):
        for name in [name for name in os.environ if name.startswith("MEDHOP_")]:
            monkeypatch.delenv(name)
        monkeypatch.setenv("MEDHOP_HOME", str(home))
        monkeypatch.chdir(ROOT)
        monkeypatch.setattr(sys, "argv", ["the-command", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        with pytest.raises(SystemExit) as left:
            run(app, "the-command")
        return left.value.code, *capsys.readouterr()

    return ended


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data that is not part of this repository."""
    if not SHARED.is_dir():
        pytest.skip(f"real data not present at {SHARED} (set REAL_DATA)")
    return SHARED
