import asyncio
import logging
import socket
import subprocess
import sys

import dspy
import pytest

from medhop_dspy.errors import ReplyError, ServerError, ServerUnavailableError
from medhop_dspy.lm.connect import ServerInfo, connect, probe

from .conftest import MODEL, completion

LLAMACPP_PROPS = {
    "default_generation_settings": {"n_ctx": 2048},
    "total_slots": 4,
    "model_path": "/models/a.gguf",
    "build_info": "b1",
    "chat_template": "t",
}
SGLANG_INFO = {
    "model_path": "Qwen/Qwen2.5-7B-Instruct",
    "version": "0.5.3",
    "random_seed": 42,
    "max_running_requests": 64,
    "internal_states": [{"last_gen_throughput": 1.0}],
}


@pytest.fixture
def own_cache():
    """DSPy's cache is one for the process; give it back."""
    before = dspy.cache
    yield
    dspy.cache = before


def models(**entry):
    return {"object": "list", "data": [{"id": MODEL, **entry}]}


def test_llamacpp_reports_the_context_of_one_slot(remote):
    remote.pages = {"/v1/models": models(meta={"size": 1}), "/props": LLAMACPP_PROPS}
    info = probe(remote.url)
    assert (info.backend, info.model, info.context_tokens, info.slots) == ("llamacpp", MODEL, 2048, 4)


@pytest.mark.parametrize("page", ["/server_info", "/get_server_info"])
def test_sglang_is_known_by_its_server_info(remote, page):
    remote.pages = {"/v1/models": models(max_model_len=8192), page: SGLANG_INFO}
    info = probe(remote.url + "/v1/")
    assert (info.url, info.backend, info.context_tokens, info.slots) == (remote.url, "sglang", 8192, 64)


def test_another_server_is_known_by_its_models(remote):
    info = probe(remote.url)
    assert info == ServerInfo(remote.url, "openai", MODEL, info.fingerprint)
    assert len(info.fingerprint) == 16


def fingerprint(remote, **pages):
    remote.pages = {"/v1/models": models(), **pages}
    return probe(remote.url).fingerprint


@pytest.mark.parametrize(
    ("page", "before", "after", "same"),
    [
        pytest.param("/props", LLAMACPP_PROPS, {**LLAMACPP_PROPS, "model_path": "/models/b.gguf"}, False, id="weights"),
        pytest.param("/props", LLAMACPP_PROPS, {**LLAMACPP_PROPS, "build_info": "b2"}, False, id="build"),
        pytest.param("/props", LLAMACPP_PROPS, {**LLAMACPP_PROPS, "chat_template": "u"}, False, id="template"),
        pytest.param("/props", LLAMACPP_PROPS, {**LLAMACPP_PROPS, "is_sleeping": True}, True, id="state of llama.cpp"),
        pytest.param("/server_info", SGLANG_INFO, {**SGLANG_INFO, "version": "0.6"}, False, id="version of SGLang"),
        pytest.param("/server_info", SGLANG_INFO, {**SGLANG_INFO, "quantization": "fp8"}, False, id="quantisation"),
        pytest.param("/server_info", SGLANG_INFO, {**SGLANG_INFO, "internal_states": []}, True, id="state of SGLang"),
    ],
)
def test_the_fingerprint_follows_what_is_served_and_nothing_else(remote, page, before, after, same):
    assert (fingerprint(remote, **{page: before}) == fingerprint(remote, **{page: after})) is same


def test_weights_of_this_machine_are_known_by_the_file_not_the_port(make_remote, tmp_path):
    weights = tmp_path / "m.gguf"
    weights.write_bytes(b"one")
    props = {**LLAMACPP_PROPS, "model_path": str(weights)}
    first, second = make_remote(), make_remote()
    assert fingerprint(first, **{"/props": props}) == fingerprint(second, **{"/props": props})
    before = fingerprint(first, **{"/props": props})
    weights.write_bytes(b"other")
    assert fingerprint(first, **{"/props": props}) != before


@pytest.mark.parametrize(
    ("served", "wanted"),
    [
        ("qwen", "qwen"),
        ("/models/Qwen2.5-7B.gguf", "qwen2.5-7b"),
        ("Qwen/Qwen2.5-7B-Instruct", "Qwen2.5-7B-Instruct"),
        ("anything", ""),
    ],
)
def test_one_model_goes_by_many_spellings(remote, served, wanted):
    remote.pages = {"/v1/models": {"data": [{"id": served}]}}
    assert probe(remote.url, model=wanted).model == served


@pytest.mark.parametrize(
    ("page", "error", "match"),
    [
        pytest.param({"data": [{"id": "llama"}]}, ServerError, "serves 'llama', wanted 'qwen'", id="another model"),
        pytest.param({"data": [{"id": "a"}, {"id": "b"}]}, ServerError, "serves 'a', 'b'", id="several others"),
        pytest.param({"data": []}, ServerError, "lists no model", id="none"),
        pytest.param({"data": [{}]}, ServerError, "lists no model", id="nameless"),
        pytest.param(b"<html>", ServerError, "no /v1/models", id="HTML"),
        pytest.param((404, {}, b""), ServerError, "no /v1/models", id="no page"),
        pytest.param((401, {}, b""), ServerError, "refused the key", id="no key"),
        pytest.param((503, {}, b""), ServerUnavailableError, "not ready: HTTP 503", id="loading"),
    ],
)
def test_a_server_that_is_not_the_one_wanted(remote, page, error, match):
    remote.pages = {"/v1/models": page}
    with pytest.raises(error, match=match) as caught:
        probe(remote.url, model="qwen")
    assert type(caught.value) is error


def test_nothing_listens(closed_port):
    with pytest.raises(ServerUnavailableError, match="no model server answers"):
        probe(f"http://127.0.0.1:{closed_port}")


def test_a_server_that_never_answers(remote):
    remote.pages = {"/v1/models": lambda handler: remote.release.wait(10)}
    with pytest.raises(ServerUnavailableError, match="ReadTimeout"):
        probe(remote.url, timeout=0.2)


def test_the_smaller_context_counts(remote, settings, caplog):
    remote.pages["/props"] = LLAMACPP_PROPS
    with caplog.at_level(logging.WARNING):
        assert connect(settings.replace(context_tokens=4096)).engine.context_tokens == 2048
    assert "2048 tokens per request, below context_tokens = 4096" in caplog.text
    assert connect(settings.replace(context_tokens=1024)).engine.context_tokens == 1024
    remote.pages.pop("/props")
    assert connect(settings.replace(context_tokens=4096)).engine.context_tokens == 4096


def test_without_cache_the_same_question_is_asked_again(remote, settings):
    lm = connect(settings)
    assert [lm("q"), lm("q")] == [["15"], ["15"]]
    assert remote.requests == 2
    assert lm.model == MODEL


def test_caches_of_two_servers_are_apart(make_remote, settings, own_cache):
    servers = make_remote(), make_remote()
    servers[1].replies = [completion("16")]
    lms = [connect(settings.replace(lm_url=s.url, lm_cache=True)) for s in servers]
    assert [lm("q") for lm in lms] == [["15"], ["16"]]
    assert [lm("q") for lm in lms] == [["15"], ["16"]]
    assert [s.requests for s in servers] == [1, 1]
    assert servers[0].bodies[0]["model"] == MODEL


def test_the_cache_outlives_the_process_and_ignores_the_key(remote, settings, own_cache):
    connect(settings.replace(lm_cache=True))("q")
    dspy.cache = None
    connect(settings.replace(lm_cache=True, api_key="another"))("q")
    assert remote.requests == 1
    assert any((settings.home / "replies").rglob("cache.db"))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param({"max_tokens": 16}, {"max_tokens": 512}, id="max_tokens"),
        pytest.param({"temperature": 0.0}, {"temperature": 0.5}, id="temperature"),
        pytest.param({"stop": ["\n"]}, {}, id="stop"),
        pytest.param({"seed": 1}, {"seed": 2}, id="seed"),
        pytest.param({"top_p": 0.5}, {}, id="top_p"),
        pytest.param({"response_format": {"type": "json_object"}}, {}, id="response_format"),
    ],
)
def test_other_sampling_is_another_entry(remote, settings, own_cache, first, second):
    lm = connect(settings.replace(lm_cache=True))
    lm("q", **first)
    lm("q", **second)
    assert remote.requests == 2


@pytest.mark.parametrize("bad", [completion("1", "length"), completion(""), completion("<think>a")])
def test_what_is_no_reply_is_never_cached(remote, settings, own_cache, bad):
    remote.replies = [bad, completion("15")]
    lm = connect(settings.replace(lm_cache=True))
    with pytest.raises(ReplyError):
        lm("q")
    assert lm("q") == ["15"]
    assert asyncio.run(lm.acall("q")) == ["15"]


def test_no_other_host_is_ever_contacted(remote, settings, monkeypatch):
    real = socket.getaddrinfo

    def guarded(host, *args, **kwargs):
        if host != "127.0.0.1":
            pytest.fail(f"look-up of {host}")
        return real(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", guarded)
    remote.replies = [completion("[[ ## answer ## ]]\n15\n\n[[ ## completed ## ]]")]
    with dspy.context(lm=connect(settings), track_usage=True):
        assert dspy.Predict("question -> answer")(question="q").answer == "15"


def test_importing_asks_for_nothing_heavy():
    code = (
        "import sys, medhop_dspy.lm.connect, medhop_dspy.lm.serve, medhop_dspy.lm.artefacts\n"
        "print(sorted({'dspy', 'httpx', 'torch', 'xllamacpp', 'litellm'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
