import os
import signal
import subprocess
import sys
import textwrap
import urllib.error
import urllib.request

import pytest

from medhop_dspy.errors import ArtefactError, ContextOverflowError, ServerError, ServerUnavailableError
from medhop_dspy.lm import artefacts, llamacpp
from medhop_dspy.lm.connect import connect, probe
from medhop_dspy.lm.engine import record_calls
from medhop_dspy.lm.serve import model_server, serve, server_running
from medhop_dspy.settings import Settings

from .test_process import gone

NAME = "smollm2-135m-instruct-q4_1"


@pytest.fixture(scope="module")
def local() -> Settings:
    pytest.importorskip("xllamacpp")
    settings = Settings.load("local", lm_model=NAME, context_tokens=1024, slots=2, port=1, timeout=120)
    try:
        artefacts.path(NAME, settings.home)
    except ArtefactError as error:
        pytest.skip(f"{error}; {error.hint}")
    return settings


@pytest.fixture(scope="module")
def served(local):
    with model_server(local) as settings:
        yield settings


@pytest.fixture(scope="module")
def lm(served):
    return connect(served)


def schema(body):
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": body}}


@pytest.mark.parametrize(("context", "slots", "total"), [(8192, 4, "32768"), (4096, 1, "4096")])
def test_the_context_is_given_for_all_slots(tmp_path, context, slots, total):
    settings = Settings.load("local", home=tmp_path, context_tokens=context, slots=slots)
    line = llamacpp.command(settings, tmp_path / "m.gguf", 9)
    assert line[line.index("--ctx-size") + 1] == total
    assert line[line.index("--parallel") + 1] == str(slots)


def test_the_key_is_not_on_the_command_line(tmp_path):
    settings = Settings.load("local", home=tmp_path, api_key="sk-test-000")
    assert "sk-test-000" not in " ".join(llamacpp.command(settings, tmp_path, 9))


@pytest.mark.lm
def test_each_request_gets_the_whole_context(served):
    info = probe(served.base_url, model=NAME)
    assert (info.backend, info.model, info.context_tokens, info.slots) == ("llamacpp", NAME, 1024, 2)
    assert server_running(served) == info


@pytest.mark.lm
@pytest.mark.parametrize(
    ("body", "allowed"),
    [
        pytest.param({"enum": ["YES", "NO"]}, {'"YES"', '"NO"'}, id="choice at the root"),
        pytest.param(
            {
                "type": "object",
                "properties": {"strategy": {"enum": ["direct", "multihop"]}},
                "required": ["strategy"],
                "additionalProperties": False,
            },
            {'{"strategy":"direct"}', '{"strategy":"multihop"}'},
            id="object",
        ),
    ],
)
def test_schemas_are_enforced(lm, body, allowed):
    # The grammar allows some white space after the end, and small models like it.
    [reply] = lm("Tell me a long story about gene therapy.", max_tokens=96, response_format=schema(body))
    assert reply.replace(" ", "").replace("\n", "") in allowed


@pytest.mark.lm
def test_stop_ends_the_reply(lm):
    [reply] = lm("List three colours, one a line.", max_tokens=40, stop=["\n"])
    assert "\n" not in reply


@pytest.mark.lm
def test_a_shared_prefix_is_read_once(lm):
    evidence = " ".join(f"Gene number {n} lies on chromosome {n % 22 + 1}." for n in range(30))
    with record_calls() as calls:
        for question in ("Where is gene 1?", "Where is gene 2?"):
            lm(f"{evidence}\n{question}", max_tokens=16, stop=["\n", "."])
    assert calls[0].usage.cached_share < 0.5
    assert calls[1].usage.cached_share > 0.9


@pytest.mark.lm
def test_a_prompt_that_is_too_long_is_typed(lm):
    with pytest.raises(ContextOverflowError, match="1024 tokens"):
        lm("word " * 1500, max_tokens=1)


@pytest.mark.lm
def test_no_web_page_may_ask_it(served):
    request = urllib.request.Request(f"{served.base_url}/v1/models", headers={"Origin": "https://example.org"})
    with urllib.request.urlopen(request, timeout=20) as reply:
        assert reply.headers.get("Access-Control-Allow-Origin") not in ("*", "https://example.org")


@pytest.mark.lm
def test_a_running_server_is_used_and_left_alone(served):
    with model_server(served) as inner:
        assert inner.base_url == served.base_url
    assert server_running(served) is not None


@pytest.mark.lm
def test_another_model_is_not_taken_for_the_wanted_one(served):
    with (
        pytest.raises(ServerError, match=f"serves '{NAME}', wanted 'other'"),
        model_server(served.replace(lm_model="other")),
    ):
        pytest.fail("served")


@pytest.mark.lm
def test_our_server_wants_its_key_and_ends_with_the_block(local):
    url = ""
    with pytest.raises(KeyboardInterrupt), model_server(local.replace(api_key="k1")) as settings:
        url = settings.base_url
        assert server_running(settings)
        with pytest.raises(ServerError, match="refused the key"):
            server_running(settings.replace(api_key="k2"))
        raise KeyboardInterrupt
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(url, timeout=2)


@pytest.mark.lm
def test_it_ends_when_its_parent_is_killed(local):
    parent = textwrap.dedent(f"""
        import time
        from medhop_dspy.lm import artefacts, llamacpp
        from medhop_dspy.settings import Settings
        settings = Settings.load("local", lm_model={NAME!r}, context_tokens=1024)
        server = llamacpp.start(settings, artefacts.path({NAME!r}, settings.home))
        print(server.pid, flush=True)
        time.sleep(60)
    """)
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True) as process:
        child = int(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
    assert gone(child)


def test_a_file_that_is_no_model(tmp_path):
    pytest.importorskip("xllamacpp")
    (tmp_path / "m.gguf").write_bytes(b"not a model")
    settings = Settings.load("local", home=tmp_path)
    with pytest.raises(ServerError, match="the model server ended with code"):
        llamacpp.start(settings, tmp_path / "m.gguf")


def test_a_taken_port_is_an_error_at_once(remote, tmp_path):
    pytest.importorskip("xllamacpp")
    (tmp_path / "m.gguf").write_bytes(b"")
    settings = Settings.load("local", home=tmp_path, lm_model=str(tmp_path / "m.gguf"))
    taken = settings.replace(port=int(remote.url.rpartition(":")[2]))
    with pytest.raises(ServerError, match="cannot listen on"), serve(taken):
        pytest.fail("served")


def test_an_absent_model_is_named(tmp_path, closed_port):
    settings = Settings.load("local", home=tmp_path, port=closed_port)
    for server in (model_server, serve):
        with pytest.raises(ArtefactError, match="is missing"), server(settings):
            pytest.fail("served")


def test_a_server_of_others_is_never_started_here(tmp_path, closed_port):
    url = f"http://127.0.0.1:{closed_port}"
    for settings in (
        Settings.load("local", home=tmp_path, lm_url=url),
        Settings.load("paper", home=tmp_path, port=closed_port),
    ):
        with pytest.raises(ServerUnavailableError, match=f"no model server answers at {url}"), model_server(settings):
            pytest.fail("served")
