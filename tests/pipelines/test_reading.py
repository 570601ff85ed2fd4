"""Readings that are held to phrases of the evidence, against a server that says how sure it is of its tokens."""

import dspy
import pytest

from medhop_dspy.adapter import EvidenceFirstAdapter
from medhop_dspy.answers import AnswerType
from medhop_dspy.errors import ServerError
from medhop_dspy.lm.connect import connect
from medhop_dspy.pipelines.reading import read, sizes
from medhop_dspy.pipelines.run import Run
from medhop_dspy.replies import held_to
from medhop_dspy.settings import Settings
from medhop_dspy.signatures import AnswerDraft
from medhop_dspy.trace import Passage
from tests.lm.conftest import MODEL, completion, make_remote, remote  # noqa: F401  (fixtures)

QUESTION = "Which gene is mutated in Marfan syndrome?"
PASSAGES = [
    Passage(f"p{n}", f"d{n}", title, "", f"{title} is a gene.") for n, title in enumerate(("FBN1", "FBN2", "CFTR"))
]


def sure(answer, *logprobs):
    """A completion with the log-probability of each of its tokens."""
    made = completion(answer)
    tokens = [{"token": "t", "logprob": value, "bytes": None, "top_logprobs": []} for value in logprobs]
    made["choices"][0]["logprobs"] = {"content": tokens}
    return made


@pytest.fixture
def settings(remote, tmp_path):  # noqa: F811
    return Settings(home=tmp_path, backend="openai", lm_url=remote.url, lm_model=MODEL, timeout=5, retries=0)


@pytest.fixture
def ask(remote, settings):  # noqa: F811
    """``ask(replies, readings, kind=..., refused=())`` -> (answer, run)."""

    async def reading(replies, readings, kind=AnswerType.GENE, refused=(), blocking=True):
        remote.replies = replies
        remote.bodies.clear()
        run = Run(QUESTION, settings, blocking)
        inputs = {"question": QUESTION, "known": [], "constraints": [], "rule": "short", "answer_type": kind.value}
        with dspy.context(lm=connect(settings), adapter=EvidenceFirstAdapter()):
            answer = await read(run, "draft", dspy.Predict(AnswerDraft), readings, kind, refused=refused, **inputs)
        assert run.asked == remote.requests
        return answer, run

    return reading


def phrases(body):
    return body["response_format"]["json_schema"]["schema"]["enum"]


@pytest.mark.parametrize("blocking", [True, False])
async def test_the_most_probable_reply_counts(ask, blocking):
    replies = [sure("FBN1", -0.9, -0.7), sure("FBN2", -0.1, -0.3), sure("CFTR", -2.0)]
    answer, run = await ask(replies, [PASSAGES[:1], PASSAGES[:2], PASSAGES], blocking=blocking)
    assert (answer, run.asked, run.failures) == ("FBN2", 3, [])


async def test_the_mean_decides_not_the_number_of_tokens(ask):
    answer, _ = await ask([sure("FBN1", -0.5), sure("FBN2", *[-0.2] * 8)], [PASSAGES[:1], PASSAGES])
    assert answer == "FBN2"


async def test_of_equals_the_earlier_reading_counts(ask):
    answer, _ = await ask([sure("FBN1", -0.5), sure("FBN2", -0.5)], [PASSAGES[:1], PASSAGES])
    assert answer == "FBN1"


async def test_a_reply_that_the_model_finds_improbable_is_none(ask):
    answer, run = await ask([sure("FBN1", -4.0), sure("FBN2", -2.0, -5.0)], [PASSAGES[:1], PASSAGES])
    assert (answer, run.asked) == ("", 2)


async def test_a_server_that_tells_no_probabilities_is_believed(ask):
    answer, _ = await ask([completion("FBN1"), sure("FBN2", -0.1)], [PASSAGES[:1], PASSAGES])
    assert answer == "FBN1"


async def test_each_reading_is_held_to_the_phrases_of_its_own_passages(ask, remote):  # noqa: F811
    await ask([sure("FBN1", -0.5)], [PASSAGES[:1], PASSAGES])
    first, second = remote.bodies
    assert (phrases(first), phrases(second)) == (["FBN1"], ["FBN1", "FBN2", "CFTR"])
    assert first["response_format"] == held_to(["FBN1"])["response_format"]
    assert (first["logprobs"], first["stop"]) == (True, ["\n"])
    prompts = [body["messages"][-1]["content"].split("\n\nQuestion: ")[0] for body in (first, second)]
    assert prompts[1].startswith(prompts[0])


async def test_refused_names_are_not_offered(ask, remote):  # noqa: F811
    answer, _ = await ask([sure("FBN2", -0.5)], [PASSAGES[:2]], refused=["FBN1"])
    assert answer == "FBN2"
    assert phrases(remote.bodies[0]) == ["FBN2"]


async def test_a_reading_without_a_phrase_asks_nothing(ask):
    answer, run = await ask([sure("FBN1", -0.5)], [[], PASSAGES[:1]], refused=["FBN1"])
    assert (answer, run.asked) == ("", 0)
    answer, run = await ask([sure("Yes", -0.5)], [PASSAGES[:1], PASSAGES], kind=AnswerType.YES_NO)
    assert (answer, run.asked) == ("", 0)


@pytest.mark.parametrize("reply", [completion(""), completion("FB", "length")], ids=["empty", "cut"])
async def test_a_failed_reading_is_recorded_and_the_others_count(ask, reply):
    answer, run = await ask([reply, sure("FBN2", -1.0)], [PASSAGES[:1], PASSAGES])
    assert (answer, run.asked) == ("FBN2", 2)
    assert [failure.step for failure in run.failures] == ["draft"]
    answer, run = await ask([reply], [PASSAGES[:1]])
    assert (answer, len(run.failures)) == ("", 1)


async def test_a_reply_that_is_none_of_the_phrases_is_none(ask):
    """As of a server that does not know schemas."""
    answer, run = await ask([sure("I think FBN1", -0.1), sure('"FBN2"', -1.0)], [PASSAGES[:1], PASSAGES])
    assert (answer, run.failures) == ("FBN2", [])


async def test_a_server_fault_ends_the_question(ask):
    with pytest.raises(ServerError):
        await ask([(400, {}, {"error": {"message": "no grammar"}})], [PASSAGES[:1], PASSAGES])


@pytest.mark.parametrize(
    ("readings", "found", "expected"),
    [
        (0, 12, []),
        (1, 12, [1]),
        (2, 12, [1, 4]),
        (3, 12, [1, 4, 16]),
        (3, 4, [1, 4]),
        (3, 5, [1, 4, 16]),
        (2, 1, [1]),
        (2, 0, [1]),
    ],
)
def test_passages_of_each_reading_end_with_what_there_is(readings, found, expected):
    assert sizes(readings, found) == expected
