import os
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from medhop_dspy.errors import ServerError
from medhop_dspy.lm import sglang
from medhop_dspy.lm.connect import probe
from medhop_dspy.lm.process import bindable
from medhop_dspy.settings import Settings

# Takes SGLang's command line and serves the pages that are asked for at start. It stands in for SGLang itself, which
# needs a GPU: what is tested is our handling of the process, not SGLang.
LAUNCHER = f"""#!{sys.executable}
import http.server, json, sys
assert sys.argv[1:3] == ["-m", "sglang.launch_server"], sys.argv
options = dict(zip(sys.argv[3::2], sys.argv[4::2]))
name = options["--served-model-name"]
pages = {{
    "/health": {{}},
    "/v1/models": {{"data": [{{"id": name, "max_model_len": int(options["--context-length"])}}]}},
    "/server_info": {{"model_path": options["--model-path"], "version": "0", "random_seed": options["--random-seed"]}},
}}
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        page = pages.get(self.path)
        self.send_response(404 if page is None else 200); self.end_headers()
        self.wfile.write(json.dumps(page or {{}}).encode())
http.server.HTTPServer((options["--host"], int(options["--port"])), Handler).serve_forever()
"""

PYTHON = Path("/opt/sglang/bin/python")


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def paper(tmp_path) -> Settings:
    return Settings.load("paper", home=tmp_path, port=bindable(0))


@pytest.fixture
def gpus(tmp_path, monkeypatch):
    """A driver that lists as many GPUs as asked for."""

    def install(count: int, code: int = 0) -> None:
        lines = "".join(f"echo 'GPU {n}: Some GPU (UUID: GPU-{n})'\n" for n in range(count))
        executable(tmp_path / "bin" / "nvidia-smi", f"#!/bin/sh\n{lines}exit {code}\n")
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin")

    return install


def options(line: list[str]) -> dict[str, str | None]:
    """Flags and their values, in any order."""
    words = [*line[3:], "--end"]
    return {a: None if b.startswith("--") else b for a, b in pairwise(words) if a.startswith("--") and a != "--end"}


def test_the_command_is_deterministic_and_reports_cached_tokens(paper):
    line = sglang.command(paper.replace(port=31000), PYTHON)
    assert line[:3] == [str(PYTHON), "-m", "sglang.launch_server"]
    assert options(line) == {
        "--model-path": "Qwen/Qwen2.5-7B-Instruct",
        "--served-model-name": "Qwen/Qwen2.5-7B-Instruct",
        "--host": "127.0.0.1",
        "--port": "31000",
        "--context-length": "8192",
        "--random-seed": "42",
        "--attention-backend": "triton",
        "--grammar-backend": "xgrammar",
        "--mem-fraction-static": "0.85",
        "--enable-deterministic-inference": None,
        "--enable-cache-report": None,
        "--constrained-json-disable-any-whitespace": None,
    }


def test_several_gpus_go_through_the_router(paper):
    line = sglang.command(paper, PYTHON, gpus=4, revision="abc")
    assert line[2] == "sglang_router.launch_server"
    assert options(line)["--dp-size"] == "4"
    assert options(line)["--revision"] == "abc"
    assert options(sglang.command(paper.replace(api_key="k1"), PYTHON))["--api-key"] == "k1"


def test_the_python_is_looked_for_in_settings_and_home(paper, tmp_path):
    with pytest.raises(ServerError, match=r"no SGLang: .*envs/sglang/bin/python") as caught:
        sglang.find_python(paper)
    assert "sglang_python" in caught.value.hint
    own = executable(tmp_path / "envs/sglang/bin/python", "")
    assert sglang.find_python(paper) == own
    other = executable(tmp_path / "other", "")
    assert sglang.find_python(paper.replace(sglang_python=other)) == other
    other.chmod(0o644)
    with pytest.raises(ServerError, match="not an executable Python"):
        sglang.find_python(paper.replace(sglang_python=other))


def test_without_a_driver_it_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ServerError, match="nvidia-smi is not installed") as caught:
        sglang.require_gpus(1)
    assert "--preset local" in caught.value.hint


@pytest.mark.parametrize(
    ("count", "code", "wanted", "match"),
    [(2, 0, 4, "2 GPUs, wanted 4"), (0, 0, 1, "0 GPUs, wanted 1"), (1, 9, 1, "wanted 1")],
    ids=["too few", "none", "driver fails"],
)
def test_too_few_gpus(gpus, count, code, wanted, match):
    gpus(count, code)
    with pytest.raises(ServerError, match=match):
        sglang.require_gpus(wanted)


def test_enough_gpus(gpus):
    gpus(2)
    sglang.require_gpus(2)


def test_it_is_started_probed_and_stopped(paper, gpus, tmp_path):
    gpus(1)
    settings = paper.replace(sglang_python=executable(tmp_path / "launcher", LAUNCHER))
    with sglang.start(settings, start_timeout=30) as server:
        info = probe(server.url, model=settings.lm_model)
        assert (info.backend, info.model, info.context_tokens) == ("sglang", "Qwen/Qwen2.5-7B-Instruct", 8192)
        assert server.url == settings.base_url
    assert not server.running


def test_a_failing_start_shows_why(paper, gpus, tmp_path):
    gpus(1)
    broken = executable(tmp_path / "launcher", "#!/bin/sh\necho 'No module named sglang'\nexit 1\n")
    with pytest.raises(ServerError, match="ended with code 1: No module named sglang"):
        sglang.start(paper.replace(sglang_python=broken))


def test_a_failing_install_shows_why(tmp_path, monkeypatch):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    steps = []
    with pytest.raises(ServerError, match=r"pip .* install sglang.* failed with code 1: .*sglang"):
        sglang.install(tmp_path, steps.append)
    assert steps[0] == f"creating {tmp_path / 'envs' / 'sglang'}"
    assert (tmp_path / "envs/sglang/bin/python").exists()
