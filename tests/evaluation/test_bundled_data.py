"""The data set in ``data/``: what its README promises."""

from collections import Counter
from pathlib import Path

import pytest

from medhop_dspy.answers import AnswerType
from medhop_dspy.evaluation.check import check_data
from medhop_dspy.evaluation.datasets import read_choices, read_gold
from medhop_dspy.retrieval.corpus import ReadReport, read_corpus

DATA = Path(__file__).resolve().parents[2] / "data"
FACTS = "facts.jsonl"


@pytest.fixture(scope="module")
def articles():
    """What was written by hand, without the generated fact pages."""
    files = [path for path in sorted((DATA / "corpus").glob("*.jsonl")) if path.name != FACTS]
    return [document for path in files for document in read_corpus(path, ReadReport())]


def test_nothing_is_to_be_mended():
    assert check_data(DATA) == []


def test_articles_are_many_and_short(articles):
    words = [len(document.text.split()) for document in articles]
    assert len(articles) >= 200
    assert min(words) >= 120
    assert max(words) <= 350


def test_the_fact_pages_are_in_the_corpus():
    assert len(list(read_corpus(DATA / "corpus" / FACTS, ReadReport()))) >= 1500


def test_the_splits_are_of_the_promised_size():
    assert len(read_gold(DATA / "dev.jsonl")) == 45
    assert len(read_gold(DATA / "test.jsonl")) >= 150
    assert len(read_gold(DATA / "demo.jsonl")) == 3


def test_every_answer_type_is_tested():
    assert {question.answer_type for question in read_gold(DATA / "test.jsonl")} == set(AnswerType)


@pytest.mark.parametrize("split", ["dev", "test"])
def test_at_least_half_need_several_hops_and_yes_is_as_frequent_as_no(split):
    questions = read_gold(DATA / f"{split}.jsonl")
    assert sum(question.hops >= 2 for question in questions) >= len(questions) / 2
    count = Counter(q.answer for q in questions if q.answer_type is AnswerType.YES_NO)
    assert set(count) == {"Yes", "No"}
    assert 0.4 <= count["Yes"] / count.total() <= 0.6


def test_choices_have_four_options_and_no_favourite_letter():
    questions = read_choices(DATA / "mcq.jsonl")
    assert len(questions) >= 60
    assert all(list(question.options) == list("ABCD") for question in questions)
    letters = Counter(question.answer for question in questions)
    assert all(0.15 <= letters[letter] / len(questions) <= 0.35 for letter in "ABCD")


def test_the_readme_tells_the_counts(articles):
    readme = (DATA / "README.md").read_text(encoding="utf-8")
    dev, test = (read_gold(DATA / f"{split}.jsonl") for split in ("dev", "test"))
    for kind in AnswerType:
        counts = (sum(question.answer_type is kind for question in questions) for questions in (dev, test))
        assert f"| {kind} | {' | '.join(map(str, counts))} |" in readme
    for hops, name in ((1, "1 hop"), (2, "2 hops"), (3, "3 hops")):
        counts = (sum(question.hops == hops for question in questions) for questions in (dev, test))
        assert f"| {name} | {' | '.join(map(str, counts))} |" in readme
    pages = len(list(read_corpus(DATA / "corpus" / FACTS, ReadReport())))
    for count in (len(articles), f"{pages:,}", len(dev), len(test), len(read_choices(DATA / "mcq.jsonl"))):
        assert f"| {count} |" in readme
