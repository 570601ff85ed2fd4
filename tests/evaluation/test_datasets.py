"""Open question sets with gold answers, and files of answers."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from medhop_dspy.answers import AnswerType, Strategy
from medhop_dspy.errors import InputError
from medhop_dspy.evaluation.datasets import read_answers, read_gold, read_hotpotqa
from medhop_dspy.evaluation.records import GoldQuestion
from medhop_dspy.questions import read_questions

GOLD = {"QIDX": "007", "Question": "Which gene?", "answer": "FBN1"}
FULL = GOLD | {
    "synonyms": ["fibrillin-1 gene"],
    "answer_type": "gene",
    "strategy": "multihop",
    "hops": 2,
    "supporting_titles": ["Marfan syndrome", "FBN1"],
    "subject": "Marfan syndrome",
    "rare_disease": True,
}
HOTPOT = {
    "_id": "5a",
    "question": "Are both rivers?",
    "answer": "yes",
    "supporting_facts": [["B", 0], ["A", 0], ["B", 2]],
    "type": "comparison",
    "level": "easy",
    "context": [],
}


def written(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8", newline="")
    return path


def lines(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


# ---------------------------------------------------------------- read_gold


def test_gold_questions(tmp_path: Path) -> None:
    questions = read_gold(written(tmp_path, "q.jsonl", "\ufeff" + lines(GOLD, FULL | {"QIDX": 8}) + "\n"))
    assert questions == [
        GoldQuestion("007", "Which gene?", "FBN1"),
        GoldQuestion(
            "8",
            "Which gene?",
            "FBN1",
            ("fibrillin-1 gene",),
            AnswerType.GENE,
            Strategy.MULTIHOP,
            2,
            ("Marfan syndrome", "FBN1"),
            "Marfan syndrome",
            True,
        ),
    ]
    assert questions[1].golds == ("FBN1", "fibrillin-1 gene")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "holds no row"),
        ("{", "line 1: not JSON"),
        ("[" * 100_000, "line 1: not JSON: it is nested too deeply"),
        ('{"QIDX": NaN}', "line 1: not JSON: NaN is no JSON value"),
        (lines([1]), "line 1: list in place of an object"),
        (lines(GOLD, GOLD), "QIDX 007 stands in line 1 and line 2"),
        (lines(GOLD | {"QIDX": " "}), "line 1: QIDX is ' ', not a text"),
        (lines({"QIDX": "1", "answer": "x"}), "line 1: no field 'Question'"),
        (lines(GOLD | {"answer": ""}), "line 1: answer is '', not a text"),
        (lines(GOLD | {"synonyms": "x"}), "synonyms is 'x', not a list of texts"),
        (lines(GOLD | {"synonyms": [1]}), "synonyms is 1, not a text"),
        (lines(GOLD | {"answer_type": "genes"}), "'genes' is not a valid AnswerType"),
        (lines(GOLD | {"hops": -1}), "hops is -1, not a whole number"),
        (lines(GOLD | {"rare_disease": "yes"}), "rare_disease is 'yes', not true or false"),
    ],
)
def test_faults_of_gold_questions_name_the_line(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        read_gold(written(tmp_path, "q.jsonl", content))
    assert error.value.hint


# ---------------------------------------------------------------- read_hotpotqa


@pytest.mark.parametrize("content", [json.dumps([HOTPOT], indent=4), lines(HOTPOT)])
def test_hotpotqa(tmp_path: Path, content: str) -> None:
    assert read_hotpotqa(written(tmp_path, "q.json", content)) == [
        GoldQuestion(
            "5a",
            "Are both rivers?",
            "yes",
            answer_type=AnswerType.YES_NO,
            hops=2,
            supporting_titles=("B", "A"),
        )
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "holds no row"),
        ("[", "is not JSON"),
        ("[3]", "item 1: int in place of an object"),
        (lines({"_id": "5a", "question": "q", "answer": "x"}), "item 1: no field 'supporting_facts'"),
        (lines(HOTPOT, HOTPOT), "_id 5a stands in item 1 and item 2"),
        (lines(HOTPOT | {"answer": None}), "item 1: answer is None, not a text"),
        (lines(HOTPOT | {"supporting_facts": {"title": []}}), "supporting_facts is .* not a list of pairs"),
        (lines(HOTPOT | {"supporting_facts": [["A"]]}), "supporting_facts is .* not a list of pairs"),
        (lines(HOTPOT | {"supporting_facts": [[3, 0]]}), "a supporting title is 3, not a text"),
    ],
)
def test_faults_of_hotpotqa_name_the_item(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        read_hotpotqa(written(tmp_path, "q.json", content))
    assert error.value.hint


def test_the_real_hotpotqa(shared: Path) -> None:
    questions = read_hotpotqa(shared / "hotpotqa" / "hotpotqa_train.json")
    assert len(questions) == 100
    assert sum(q.answer_type is AnswerType.YES_NO for q in questions) == 9
    assert {q.hops for q in questions} == {2}
    assert questions[0] == GoldQuestion(
        "5a77ec115542992a6e59dff7",
        "If Gallu is a demon Lilu is what?",
        "a spirit",
        hops=2,
        supporting_titles=("Alû", "Lilu (mythology)"),
    )


# ---------------------------------------------------------------- read_answers (cases 73, 74, 76, 77)

AS_TEXT = "QIDX,Question,Answer\n007,q,NA\n008,q,None\n009,q,1e5\n010,q,\n"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (AS_TEXT, {"007": "NA", "008": "None", "009": "1e5", "010": ""}),
        ("\ufeffQIDX,Answer\r\n1,null\r\n2,nan\r\n", {"1": "null", "2": "nan"}),
        ('\ufeff"QIDX","Answer"\n1, x \n', {"1": " x "}),
        (" answer , qidx \n-5.20,1\n\n=1+1,2\n", {"1": "-5.20", "2": "=1+1"}),
        ('QIDX,Answer,LongAnswer\n1,"a, ""b""","l\n\nm"\n2,"c\r\nd",\n', {"1": 'a, "b"', "2": "c\r\nd"}),
    ],
)
def test_answers_are_text_byte_for_byte(tmp_path: Path, content: str, expected: dict[str, str]) -> None:
    assert read_answers(written(tmp_path, "a.csv", content)) == expected


def test_answers_that_are_written_back_are_the_same_file(tmp_path: Path) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("QIDX", "Question", "Answer"))
    writer.writerows((key, "q", answer) for key, answer in read_answers(written(tmp_path, "a.csv", AS_TEXT)).items())
    assert text.getvalue() == AS_TEXT


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "columns none; QIDX and Answer are needed"),
        ("QIDX,Question\n1,q\n", "columns qidx, question; QIDX and Answer are needed"),
        ("QIDX,Answer,answer\n1,a,b\n", "two columns of the same name: qidx, answer, answer"),
        ("QIDX,Answer\n", "holds no row"),
        ('QIDX,Answer\n5,"a\nb"\n6,b\n5,c\n', "QIDX 5 stands in line 2 and line 5"),
        ("QIDX,Answer\n,a\n", "line 2: QIDX is empty"),
        ('QIDX,Answer\n1,"a\nb"\n\n2,c,d\n', "line 5: 3 fields, the header has 2"),
        ("QIDX,Answer\n1\n", "line 2: 1 fields, the header has 2"),
        ('QIDX,Answer\n1,a\n2,"b\n3,c\n', "line 3: not CSV"),
    ],
)
def test_faults_of_answers_name_their_place(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        read_answers(written(tmp_path, "a.csv", content))
    assert error.value.hint


@pytest.mark.parametrize(
    ("name", "count", "questions", "key", "answer"),
    [
        ("full_pipeline", 10_000, "questions_10000.csv", "717298", "Sjögrens syndrome"),
        ("no_generic_filter", 1_000, "questions_1000.csv", "623637", "Coal Workers Pneumoconiosis"),
    ],
)
def test_the_real_answers(shared: Path, name: str, count: int, questions: str, key: str, answer: str) -> None:
    folder = shared / "medhopqa"
    answers = read_answers(folder / "ablations" / f"MedHopQA_Test_Dataset_matched__{name}__seed42.csv")
    assert len(answers) == count
    assert answers[key] == answer
    assert answers.keys() == {question.id for question in read_questions(folder / questions)}


def test_every_real_file_of_answers_is_read(shared: Path) -> None:
    counts = [len(read_answers(path)) for path in sorted((shared / "medhopqa" / "ablations").glob("*.csv"))]
    assert counts == [10_000] + [1_000] * 13
