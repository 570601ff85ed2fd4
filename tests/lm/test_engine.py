import asyncio
import copy
import threading
import time

import dspy
import pytest
from dspy.lm15 import Config, Message, Request

from medhop_dspy.errors import ContextOverflowError, MedhopError, ReplyError, ServerError, ServerUnavailableError
from medhop_dspy.lm.connect import connect
from medhop_dspy.lm.engine import AsyncRecordingEngine, RecordingEngine, record_calls
from medhop_dspy.replies import held_to
from medhop_dspy.trace import Usage

from .conftest import MODEL, completion
from .test_connect import LLAMACPP_PROPS, SGLANG_INFO

SCHEMA = {"type": "json_schema", "json_schema": {"name": "strategy", "schema": {"enum": ["direct", "multihop"]}}}


def hang(remote):
    return lambda handler: remote.release.wait(10)


def truncate(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')
    handler.wfile.flush()
    handler.close_connection = True


def drop(handler):
    handler.close_connection = True
    handler.connection.close()


def sglang_error(message):
    return 400, {}, {"object": "error", "message": message, "type": "BadRequestError", "code": 400}


LLAMACPP_OVERFLOW = (
    400,
    {},
    {
        "error": {
            "code": 400,
            "message": "request (6030 tokens) exceeds the available context size (4096 tokens), try increasing it",
            "type": "exceed_context_size_error",
            "n_prompt_tokens": 6030,
            "n_ctx": 4096,
        }
    },
)

FAULTS = [
    pytest.param((500, {}, {"error": {"message": "boom"}}), ServerUnavailableError, "HTTP 500: boom", id="500"),
    pytest.param((503, {}, b"loading"), ServerUnavailableError, "HTTP 503: loading", id="503 as text"),
    pytest.param((429, {}, {"error": {"message": "slow"}}), ServerUnavailableError, "HTTP 429: slow", id="429"),
    pytest.param(truncate, ServerUnavailableError, "did not answer", id="truncated body"),
    pytest.param(drop, ServerUnavailableError, "did not answer", id="dropped connection"),
    pytest.param(LLAMACPP_OVERFLOW, ContextOverflowError, r"6030 tokens", id="overflow of llama.cpp"),
    pytest.param(
        sglang_error("The input (9000 tokens) is longer than the model's context length (8192 tokens)."),
        ContextOverflowError,
        "9000 tokens",
        id="overflow of SGLang",
    ),
    pytest.param(
        sglang_error("Requested token count exceeds the model's maximum context length of 8192 tokens."),
        ContextOverflowError,
        "8192 tokens",
        id="overflow of SGLang with max_tokens",
    ),
    pytest.param(
        (400, {}, {"error": {"message": "too long", "code": "context_length_exceeded"}}),
        ContextOverflowError,
        "too long",
        id="overflow of OpenAI",
    ),
    pytest.param(sglang_error("bad temperature"), ServerError, "HTTP 400: bad temperature", id="400"),
    pytest.param((422, {}, {"detail": [{"loc": ["seed"]}]}), ServerError, "seed", id="422 of FastAPI"),
    pytest.param((401, {}, {"error": {"message": "no"}}), ServerError, "refused the key", id="401"),
    pytest.param((404, {}, b""), ServerError, "HTTP 404", id="404"),
    pytest.param(b"", ServerError, "other than a chat completion", id="empty body"),
    pytest.param(b"<html>portal</html>", ServerError, "other than a chat completion", id="HTML"),
    pytest.param(b"\xff\xfe", ServerError, "other than a chat completion", id="not text"),
    pytest.param({"hello": 1}, ServerError, "wanted one choice", id="other JSON"),
    pytest.param([1], ServerError, "other than a chat completion", id="JSON list"),
    pytest.param(completion(""), ReplyError, "empty reply", id="empty reply"),
    pytest.param(completion("15", "length"), ReplyError, "cut at 7 tokens", id="cut reply"),
    pytest.param(completion(None, reasoning_content="hm"), ReplyError, "no final content", id="only thinking"),
]


@pytest.mark.parametrize(("reply", "kind", "match"), FAULTS)
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_every_fault_is_typed_counted_and_recorded(remote, settings, reply, kind, match, asynchronous):
    remote.replies = [reply]
    lm = connect(settings)
    with record_calls() as calls, pytest.raises(kind, match=match) as caught:
        asyncio.run(lm.acall("q", max_tokens=7)) if asynchronous else lm("q", max_tokens=7)
    assert remote.requests == 1
    assert isinstance(caught.value, dspy.utils.exceptions.LMError)
    [call] = calls
    assert call.error.startswith(f"{kind.__name__}: ")
    assert call.finish_reason == ""


def test_a_hanging_server_is_given_up(remote, settings):
    remote.replies = [hang(remote)]
    lm = connect(settings.replace(timeout=0.3))
    start = time.monotonic()
    with pytest.raises(ServerUnavailableError, match=r"at most 0\.3 s"):
        lm("q")
    assert time.monotonic() - start < 3


def test_a_refusing_server_is_named_with_what_to_do(closed_port):
    engine = RecordingEngine(f"http://127.0.0.1:{closed_port}", MODEL)
    with pytest.raises(ServerUnavailableError, match=f"127.0.0.1:{closed_port}") as caught:
        engine.complete(Request(model=MODEL, messages=(Message.user("q"),)))
    assert "medhop lm serve" in caught.value.hint
    assert caught.value.exit_code == 4


NOW = {"Retry-After": "0"}
PASSING = (503, NOW, {"error": {"message": "busy"}})


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize(
    ("replies", "retries", "requests"),
    [
        pytest.param([PASSING, completion("15")], 2, 2, id="passes at the second try"),
        pytest.param([completion(""), completion("  \n"), completion("15")], 2, 3, id="empty, blank, good"),
    ],
)
def test_a_passing_fault_is_retried_and_every_try_recorded(remote, settings, replies, retries, requests, asynchronous):
    remote.replies = replies
    lm = connect(settings.replace(retries=retries))
    with record_calls() as calls:
        answer = asyncio.run(lm.acall("q")) if asynchronous else lm("q")
    assert answer == ["15"]
    assert remote.requests == requests == len(calls)
    assert [bool(c.error) for c in calls] == [True] * (requests - 1) + [False]


@pytest.mark.parametrize(
    ("reply", "retries", "requests"),
    [
        pytest.param(PASSING, 0, 1, id="no retries"),
        pytest.param(PASSING, 3, 4, id="three retries are four tries, not more"),
        pytest.param(completion(""), 2, 3, id="empty replies"),
        pytest.param((400, NOW, {"error": {"message": "no"}}), 3, 1, id="a refusal is final"),
        pytest.param(completion("x", "length"), 3, 1, id="a cut reply is final"),
        pytest.param(b"garbage", 3, 1, id="garbage is final"),
    ],
)
def test_retries_are_bounded_and_never_multiplied(remote, settings, reply, retries, requests):
    remote.replies = [reply]
    lm = connect(settings.replace(retries=retries))
    predict = dspy.Predict("question -> answer")
    adapter = dspy.ChatAdapter(use_json_adapter_fallback=False)
    with record_calls() as calls, dspy.context(lm=lm, adapter=adapter), pytest.raises(MedhopError):
        predict(question="q")
    assert remote.requests == requests == len(calls)


def test_the_pause_before_a_retry_doubles_and_does_not_vary(remote, settings, monkeypatch):
    pauses = []
    monkeypatch.setattr("dspy.clients.execution.time.sleep", pauses.append)
    remote.replies = [(500, {}, b"")]
    with pytest.raises(ServerUnavailableError):
        connect(settings.replace(retries=3))("q")
    assert pauses == [1, 2, 4]


def test_a_server_cannot_put_us_to_sleep_for_long(remote, settings, monkeypatch):
    pauses = []
    monkeypatch.setattr("dspy.clients.execution.time.sleep", pauses.append)
    remote.replies = [(429, {"Retry-After": "86400"}, b"")]
    with pytest.raises(ServerUnavailableError):
        connect(settings.replace(retries=1))("q")
    assert pauses == [60]


def test_usage_is_recorded_with_cached_tokens(remote, settings):
    with record_calls() as calls:
        assert connect(settings)("q") == ["15"]
    [call] = calls
    assert call.usage == Usage(prompt_tokens=100, cached_tokens=80, completion_tokens=7)
    assert (call.finish_reason, call.error) == ("stop", "")
    assert 0 < call.seconds < 5


def test_a_refused_reply_still_counts_its_tokens(remote, settings):
    remote.replies = [completion("15", "length")]
    with record_calls() as calls, pytest.raises(ReplyError):
        connect(settings)("q")
    assert calls[0].usage.completion_tokens == 7


def test_recorders_nest(remote, settings):
    lm = connect(settings)
    with record_calls() as outer:
        lm("a")
        with record_calls() as inner:
            lm("b")
    lm("c")
    assert (len(outer), len(inner)) == (2, 1)


class Asker(dspy.Module):
    def forward(self, question):
        return dspy.Prediction(answer=dspy.settings.lm(question)[0])


def ask_in_parallel(lm):
    with dspy.context(lm=lm):
        examples = [dspy.Example(question=str(n)).with_inputs("question") for n in range(6)]
        dspy.Parallel(num_threads=3, disable_progress_bar=True)([(Asker(), e) for e in examples])


def ask_with_asyncify(lm):
    async def ask():
        program = dspy.asyncify(Asker())
        with dspy.context(lm=lm):
            await asyncio.gather(*(program(question=str(n)) for n in range(6)))

    asyncio.run(ask())


def ask_async(lm):
    async def ask():
        await asyncio.gather(*(lm.acall(str(n)) for n in range(6)))

    asyncio.run(ask())


@pytest.mark.parametrize("ask", [ask_in_parallel, ask_with_asyncify, ask_async])
def test_calls_of_other_threads_and_tasks_are_collected(remote, settings, ask):
    lm = connect(settings)
    with record_calls() as calls:
        ask(lm)
    assert remote.requests == len(calls) == 6
    assert not any(c.error for c in calls)


def test_calls_of_unrelated_threads_are_not_collected(remote, settings):
    lm = connect(settings)
    with record_calls() as calls:
        thread = threading.Thread(target=lm, args=("q",))
        thread.start()
        thread.join()
    assert (remote.requests, calls) == (1, [])


def test_a_cancelled_call_is_recorded(remote, settings):
    remote.replies = [hang(remote)]
    lm = connect(settings)

    async def ask():
        async with asyncio.timeout(0.3):
            await lm.acall("q")

    with record_calls() as calls, pytest.raises(TimeoutError):
        asyncio.run(ask())
    assert [c.error.partition(":")[0] for c in calls] == ["CancelledError"]


def test_everything_asked_for_reaches_the_wire(remote, settings):
    lm = connect(settings.replace(seed=7, api_key="sk-test-000"))
    lm("Which strategy?", max_tokens=16, stop=["\n"], response_format=SCHEMA)
    [body] = remote.bodies
    assert body == {
        "model": MODEL,
        "messages": [{"role": "user", "content": "Which strategy?"}],
        "temperature": 0.0,
        "seed": 7,
        "max_tokens": 16,
        "stop": ["\n"],
        "response_format": SCHEMA,
    }
    assert remote.headers[0]["authorization"] == "Bearer sk-test-000"


GRAMMARS = [
    pytest.param("/props", LLAMACPP_PROPS, "grammar", id="llama.cpp"),
    pytest.param("/server_info", SGLANG_INFO, "ebnf", id="SGLang"),
]


@pytest.mark.parametrize(("page", "content", "key"), GRAMMARS)
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_phrases_are_plain_lines_of_a_grammar(remote, settings, page, content, key, asynchronous):
    remote.pages[page] = content
    lm, options = connect(settings), held_to(["FBN1", 'the "A" \\ band', "\u03b2-catenin"])
    asyncio.run(lm.acall("q", **options)) if asynchronous else lm("q", **options)
    [body] = remote.bodies
    assert body[key] == 'root ::= "FBN1" | "the \\"A\\" \\\\ band" | "\u03b2-catenin"'
    assert "response_format" not in body
    assert body["logprobs"] is True


def test_phrases_are_a_schema_for_a_server_without_grammars(remote, settings):
    options = held_to(["FBN1", "FBN2"])
    connect(settings)("q", **options)
    [body] = remote.bodies
    assert body["response_format"] == options["response_format"]
    assert body["response_format"]["json_schema"]["schema"] == {"type": "string", "enum": ["FBN1", "FBN2"]}
    assert not {"grammar", "ebnf"} & body.keys()


@pytest.mark.parametrize(("page", "content", "key"), GRAMMARS)
def test_other_schemas_stay_schemas(remote, settings, page, content, key):
    remote.pages[page] = content
    connect(settings)("q", response_format=SCHEMA)
    assert remote.bodies[0]["response_format"] == SCHEMA
    assert key not in remote.bodies[0]


def test_a_grammar_leaves_other_extensions(remote, settings):
    remote.pages["/props"] = LLAMACPP_PROPS
    lm = connect(settings)
    schema = {"type": "json_schema", **held_to(["FBN1"])["response_format"]["json_schema"]}
    config = Config(response_format=schema, extensions={"cache_prompt": False})
    lm(Request(model=lm.model, messages=(Message.user("q"),), config=config))
    assert remote.bodies[0]["cache_prompt"] is False
    assert remote.bodies[0]["grammar"] == 'root ::= "FBN1"'


@pytest.mark.parametrize("content", [LLAMACPP_PROPS, None], ids=["llamacpp", "openai"])
@pytest.mark.parametrize("prefix_cache", [True, False])
def test_the_prefix_cache_of_llamacpp_can_be_left_out(remote, settings, content, prefix_cache):
    if content:
        remote.pages["/props"] = content
    connect(settings.replace(prefix_cache=prefix_cache))("q", **held_to(["FBN1"]))
    assert remote.bodies[0].get("cache_prompt") == (False if content and not prefix_cache else None)
    assert ("grammar" in remote.bodies[0]) == (content is not None)


def test_typed_requests_are_sent_alike(remote, settings):
    lm = connect(settings)
    config = Config(temperature=0.0, max_tokens=3, extensions={"regex": "(YES|NO)"})
    response = lm(Request(model=lm.model, messages=(Message.user("q"),), config=config))
    assert response.text == "15"
    assert remote.bodies[0]["regex"] == "(YES|NO)"
    assert remote.bodies[0]["model"] == MODEL


def test_an_adapter_sees_that_schemas_are_honoured(remote, settings):
    remote.replies = [completion('{"answer": "15"}')]
    with dspy.context(lm=connect(settings), adapter=dspy.JSONAdapter(use_native_function_calling=False)):
        assert dspy.Predict("question -> answer")(question="q").answer == "15"
    assert remote.bodies[0]["response_format"]["type"] == "json_schema"


def test_an_ignored_schema_is_a_parse_error_not_an_answer(remote, settings):
    remote.replies = [completion("I would say 15.")]
    adapter = dspy.JSONAdapter(use_native_function_calling=False)
    with dspy.context(lm=connect(settings), adapter=adapter), pytest.raises(dspy.AdapterParseError):
        dspy.Predict("question -> answer")(question="q")
    assert remote.requests == 1


def test_a_proxy_is_never_asked_about_this_machine(remote, settings, monkeypatch, closed_port):
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{closed_port}")
    monkeypatch.setenv("NO_PROXY", "")
    monkeypatch.setenv("no_proxy", "")
    lm = connect(settings)
    assert lm("q") == ["15"]
    assert asyncio.run(lm.acall("q")) == ["15"]


def test_the_environment_redirects_nothing(remote, settings, monkeypatch, closed_port):
    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE", "SGLANG_BASE_URL", "SGLANG_API_BASE"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{closed_port}")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-other")
    assert connect(settings)("q") == ["15"]
    assert "sk-other" not in remote.headers[0]["authorization"]


@pytest.mark.parametrize("engine", [RecordingEngine, AsyncRecordingEngine])
def test_an_engine_shows_no_secret_and_is_never_copied(engine):
    made = engine("http://user:sk-test-000@127.0.0.1:9/v1", MODEL, api_key="sk-test-000")
    assert "sk-test-000" not in repr(made) + made.address
    assert copy.deepcopy(made) is made


def test_the_engines_close_and_open_again_in_another_loop(remote, settings):
    lm = connect(settings)

    async def ask():
        answer = await lm.acall("q")
        await lm._async_engine_spec.aclose()
        return answer

    assert [asyncio.run(ask()) for _ in range(2)] == [["15"], ["15"]]
    lm("q")
    lm.engine.close()
