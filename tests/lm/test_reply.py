import pytest

from medhop_dspy.errors import ReplyError
from medhop_dspy.lm.failures import BadReplyError, EmptyReplyError
from medhop_dspy.lm.reply import final_text, without_thinking

from .conftest import completion


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        pytest.param("FBN1", "FBN1", id="plain"),
        pytest.param("<think>maybe 14</think>\n15", "15", id="leading block"),
        pytest.param("maybe 14</think>15", "15", id="no opener"),
        pytest.param("<THINK>x</Think>15", "15", id="upper case"),
        pytest.param("<think>a<think>b</think>c</think>15", "15", id="nested"),
        pytest.param("<thinking>a</thinking > 15", "15", id="other spelling"),
        pytest.param("<think>a</think>15<think>b</think>", "15", id="two blocks"),
        pytest.param("x</think>y</think>15", "15", id="closed twice"),
        pytest.param('<think>draft {"answer":"14"}</think>{"answer":"15"}', '{"answer":"15"}', id="brace in thinking"),
        pytest.param('{"answer":"14"}</think>{"answer":"15"}', '{"answer":"15"}', id="brace, no opener"),
        pytest.param("<think>a { b</think>15", "15", id="unbalanced brace in thinking"),
        pytest.param(
            '{"answer":"15","reasoning":"text with <think> inside"}',
            '{"answer":"15","reasoning":"text with <think> inside"}',
            id="tag inside JSON",
        ),
        pytest.param('```json\n{"a": "</think>"}\n```', '```json\n{"a": "</think>"}\n```', id="tag inside fenced JSON"),
        pytest.param("p<0.05 and x>2", "p<0.05 and x>2", id="comparison"),
        pytest.param("  kept as it is \n", "  kept as it is \n", id="untouched without tags"),
    ],
)
def test_thinking_is_removed_and_nothing_else(reply, text):
    assert without_thinking(reply) == text


@pytest.mark.parametrize("reply", ["<think>answer: 14 ... (cut)", "15 <think>no, wait", "<think>a<think>b</think>"])
def test_unclosed_thinking_is_no_answer(reply):
    with pytest.raises(ReplyError, match="ends inside its thinking"):
        without_thinking(reply)


def test_a_whole_object_in_reasoning_content_is_the_reply():
    assert final_text(completion("", reasoning_content='{"answer":"15"}'), limit=None) == '{"answer":"15"}'


@pytest.mark.parametrize(
    ("body", "kind", "match"),
    [
        pytest.param(completion(""), EmptyReplyError, "empty reply", id="empty"),
        pytest.param(completion("   \n"), EmptyReplyError, "empty reply", id="blank"),
        pytest.param(completion(None), EmptyReplyError, "empty reply", id="null"),
        pytest.param(completion("<think>a</think>\n"), EmptyReplyError, "empty reply", id="thinking only"),
        pytest.param(
            completion(None, reasoning_content="I think it is chromosome 15 or"),
            BadReplyError,
            "no final content",
            id="prose in reasoning_content",
        ),
        pytest.param(
            completion("", reasoning_content='{"answer": "1'), BadReplyError, "no final content", id="half an object"
        ),
        pytest.param(completion("", reasoning="15"), BadReplyError, "no final content", id="number in reasoning"),
        pytest.param(completion("15q", "length"), BadReplyError, r"cut at 7 tokens \(max_tokens 7\)", id="cut"),
        pytest.param(completion("", "length"), BadReplyError, "cut at 7 tokens", id="cut and empty"),
        pytest.param(completion("15", "abort"), BadReplyError, "'abort'", id="aborted"),
    ],
)
def test_what_is_no_reply(body, kind, match):
    with pytest.raises(kind, match=match) as caught:
        final_text(body, limit=7)
    assert isinstance(caught.value, ReplyError)
    assert caught.value.retryable is (kind is EmptyReplyError)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"choices": []},
        {"choices": "no"},
        {"choices": [1]},
        {"choices": [{"message": "hi"}]},
        {"choices": [{}, {}]},
        completion(15),
    ],
)
def test_what_is_no_completion(body):
    with pytest.raises(ValueError, match="wanted"):
        final_text(body, limit=None)


def test_content_parts_are_joined():
    parts = [{"type": "text", "text": "chromosome "}, {"type": "image"}, {"type": "text", "text": "15"}]
    assert final_text(completion(parts), limit=None) == "chromosome 15"
