import json
from pathlib import Path

import pytest

from medhop_dspy.errors import InputError
from medhop_dspy.evaluation.check import check_data

ARTICLES = {
    "Alpha disease": "Alpha disease makes the skin blue. It is caused by variants in the gene ABC1.",
    "ABC1": "ABC1 is a gene on chromosome 15. It encodes alphin, a protein of 213 amino acids.",
    "Beta disease": "Beta disease is a disorder of the spleen, caused by variants in BCD2.",
    "BCD2": "BCD2 lies on the short arm of chromosome 7 and encodes betaine kinase.",
}


def question(**changes):
    return {
        "QIDX": "1",
        "Question": "On which chromosome is the gene mutated in alpha disease?",
        "answer": "15",
        "synonyms": ["chromosome 15"],
        "answer_type": "chromosome",
        "strategy": "multihop",
        "hops": 2,
        "supporting_titles": ["Alpha disease", "ABC1"],
        "subject": "alpha disease",
        "rare_disease": True,
    } | changes


ASKED = question()
OTHER = question(
    QIDX="2",
    Question="Which enzyme is encoded by the gene behind Beta disease?",
    answer="betaine kinase",
    synonyms=[],
    answer_type="enzyme",
    supporting_titles=["Beta disease", "BCD2"],
    subject="Beta disease",
)
CHOICE = {
    "question": "Which organ is affected in beta disease?",
    "answer": "Spleen",
    "options": {"A": "Liver", "B": "Spleen", "C": "Skin", "D": "Lung"},
    "answer_idx": "B",
    "meta_info": "step1",
}


@pytest.fixture
def write(tmp_path: Path):
    def write(*, articles=ARTICLES, dev=(OTHER,), test=(ASKED,), mcq=(CHOICE,)) -> Path:
        documents = [{"id": f"d{n}", "title": t, "url": "", "text": x} for n, (t, x) in enumerate(articles.items())]
        (tmp_path / "corpus").mkdir()
        for name, rows in {"corpus/a": documents, "dev": dev, "test": test, "mcq": mcq}.items():
            lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            (tmp_path / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
        return tmp_path

    return write


def findings(folder: Path) -> list[str]:
    return [f"{each.place}: {each.reason}" for each in check_data(folder)]


def test_a_sound_data_set_has_no_finding(write):
    assert findings(write()) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"answer": "25", "synonyms": []}, "'25' is no chromosome", id="no such chromosome"),
        pytest.param({"synonyms": ["blue"]}, "'blue' is no chromosome", id="synonym of another type"),
        pytest.param({"answer": "16", "synonyms": []}, "no supporting article holds '16'", id="gold in no article"),
        pytest.param(
            {"answer": "alphin", "synonyms": [], "answer_type": "other", "supporting_titles": ["Alpha disease"]},
            "no supporting article holds 'alphin'",
            id="gold in another article",
        ),
        pytest.param({"supporting_titles": ["Alpha disease", "ABC9"]}, "no article 'ABC9'", id="unknown title"),
        pytest.param({"supporting_titles": []}, "no supporting title", id="no title"),
        pytest.param({"strategy": None}, "answer_type, strategy and hops are needed", id="no strategy"),
        pytest.param({"hops": 1}, "at least 2 hops", id="one hop"),
        pytest.param({"strategy": "direct"}, "a direct question has 1 hop, not 2", id="two direct hops"),
        pytest.param({"subject": ""}, "needs a subject", id="no subject"),
        pytest.param({"subject": "gamma"}, "'gamma' does not stand in the question", id="subject not asked about"),
        pytest.param({"subject": "chromosome"}, "does not hold the subject 'chromosome'", id="subject elsewhere"),
        pytest.param(
            {"supporting_titles": ["ABC1", "ABC1"], "Question": "On which chromosome is ABC1?", "subject": "ABC1"},
            "the article 'ABC1' alone holds the subject 'ABC1' and the answer",
            id="one article is enough",
        ),
        pytest.param(
            {"Question": "On which chromosome is alpha disease\u200b?"}, r"'\u200b' in the text", id="unclean"
        ),
        pytest.param({"Question": "Which gene, in alpha disease, as Ménie\u0300re said?"}, "form NFC", id="not NFC"),
    ],
)
def test_faults_of_a_question(write, changes, message):
    found = findings(write(test=[question(**changes)]))
    assert any(message in each for each in found), found
    assert all(each.startswith("test 1: ") for each in found)


def test_a_number_in_another_sense_is_no_chromosome(write):
    articles = ARTICLES | {"Alpha disease": "Alpha disease begins at 15 years. It is caused by variants in ABC1."}
    found = findings(write(articles=articles, test=[question(supporting_titles=["Alpha disease"])]))
    assert found == ["test 1: no supporting article holds '15' as a chromosome"]


def test_an_article_before_the_subject_does_not_hide_a_short_cut(write):
    articles = ARTICLES | {"Gamma": "An alpha disease gene lies on chromosome 15. The alpha disease is rare."}
    asked = question(Question="Where is the gene of the alpha disease?", subject="the alpha disease")
    assert findings(write(articles=articles, test=[asked])) == [
        "test 1: the article 'Gamma' alone holds the subject 'the alpha disease' and the answer"
    ]


def test_capital_letters_with_a_tilde_are_clean(write):
    assert findings(write(articles=ARTICLES | {"Gamma": "SÃO PAULO, JOÃO, Ã "})) == []


def test_questions_without_words_are_compared_without_a_fault(write):
    asked = [question(QIDX=str(n), Question=text, subject="") for n, text in enumerate(("???", "!!!"), start=1)]
    assert all("shares" not in each for each in findings(write(test=asked)))


def test_yes_and_no_need_no_article_that_says_so(write):
    asked = question(Question="Is ABC1 mutated in alpha disease?", answer="Yes", synonyms=[], answer_type="yes_no")
    assert findings(write(test=[asked])) == []


@pytest.mark.parametrize(
    ("dev", "message"),
    [
        pytest.param({**OTHER, "QIDX": "1"}, "the same QIDX stands in dev", id="id"),
        pytest.param(
            question(QIDX="3", Question="On which chromosome is a gene mutated in alpha disease?"),
            "of its words with dev 3",
            id="wording",
        ),
        pytest.param(
            question(QIDX="3", Question="Which protein does the gene behind alpha disease encode?", answer="alphin")
            | {"answer_type": "protein", "synonyms": []},
            "its answer article 'ABC1' is that of test 1",
            id="answer article",
        ),
    ],
)
def test_dev_and_test_share_nothing(write, dev, message):
    found = findings(write(dev=[dev]))
    assert any(message in each for each in found), found


@pytest.mark.parametrize(
    ("articles", "message"),
    [
        pytest.param(ARTICLES | {"ALPHA DISEASE": "Twice."}, "occurs 2 times", id="title twice"),
        pytest.param(ARTICLES | {"Gamma": "Me\u0301nie\u0300re"}, "form NFC", id="not NFC"),
        pytest.param(ARTICLES | {"Gamma": "cafÃ© au lait"}, "'Ã©' in the text", id="decoded twice"),
        pytest.param(ARTICLES | {"Gamma": "lost \ufffd"}, "in the text", id="replacement character"),
    ],
)
def test_faults_of_the_corpus(write, articles, message):
    found = findings(write(articles=articles))
    assert found
    assert all(message in each for each in found)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"options": {"A": "Liver", "B": "spleen.", "C": "Spleen"}}, "two options are the same", id="same"),
        pytest.param({"options": {"A": "Spleen"}, "answer_idx": "A"}, "fewer than two different options", id="one"),
    ],
)
def test_faults_of_choices(write, changes, message):
    assert any(message in each for each in findings(write(mcq=[CHOICE | changes])))


def test_a_choice_question_that_occurs_twice(write):
    assert findings(write(mcq=[CHOICE, CHOICE])) == [
        "mcq 1: the question occurs twice",
        "mcq 2: the question occurs twice",
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"answer": " "}, "line 1: answer is ' ', not a text", id="empty gold"),
        pytest.param({"synonyms": [""]}, "line 1: synonyms is '', not a text", id="empty synonym"),
        pytest.param({"hops": "2"}, "line 1: hops is '2'", id="hops as text"),
        pytest.param({"answer_type": "gen"}, "line 1: 'gen' is not a valid AnswerType", id="unknown type"),
        pytest.param({"rare_disease": "no"}, "line 1: rare_disease is 'no'", id="rare as text"),
    ],
)
def test_rows_that_cannot_be_read(write, changes, message):
    with pytest.raises(InputError, match=message):
        check_data(write(test=[question(**changes)]))
