"""Everything that the README shows and that can run here is run as it is shown."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.lm
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"<!-- test: (\w+) -->\n```\w+\n(.*?)```", README, re.DOTALL)
SCRIPTS = [block for kind, block in BLOCKS if kind == "sh"]


@pytest.fixture
def environment(served, tmp_path):
    """The environment of a user whose index is that of the tests and whose server runs.

    Prompts are kept short and few, which makes them fast: what is shown here is that the commands run.
    """
    for name in ("data", "programs"):
        (tmp_path / name).symlink_to(ROOT / name)
    bin_folder = Path(sys.executable).parent
    env = {k: v for k, v in os.environ.items() if not k.startswith("MEDHOP_")}
    return env | {
        "PATH": f"{bin_folder}{os.pathsep}{env['PATH']}",
        "MEDHOP_HOME": str(served.home),
        "MEDHOP_INDEX": served.index,
        "MEDHOP_LM_URL": served.lm_url,
        "MEDHOP_EVIDENCE": "3",
        "MEDHOP_HOP_EVIDENCE": "2",
        "MEDHOP_MAX_REPAIRS": "0",
    }


def run(command, environment, folder):
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, cwd=folder, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("code", [b for kind, b in BLOCKS if kind == "python"], ids=["session", "by hand"])
def test_python(code, environment, tmp_path):
    assert run([sys.executable, "-c", code], environment, tmp_path).strip()


@pytest.mark.parametrize("script", SCRIPTS, ids=["commands", "graph", "evaluating"])
def test_commands(script, environment, tmp_path):
    assert run(["sh", "-ec", script], environment, tmp_path).strip()


def test_every_command_of_the_tool_is_in_the_readme():
    from typer.main import get_command

    from medhop_dspy.cli import app

    tool = get_command(app)
    assert all(f"medhop {name}" in README for name in tool.commands)


def test_the_readme_says_what_it_must():
    for words in ("Not a medical device", "make demo", "make test", "SGLang", "Your own corpus", "Limits"):
        assert words in README
