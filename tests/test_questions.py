"""Question files."""

import pytest

from medhop_dspy.errors import InputError
from medhop_dspy.questions import read_questions


def read(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return [(q.id, q.text) for q in read_questions(path)]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("q.csv", b'\xef\xbb\xbfQIDX,Question\r\n1,"Which, gene?"\r\n', [("1", "Which, gene?")]),
        ("q.csv", '\ufeff"QIDX","Question"\n1,ok?\n', [("1", "ok?")]),
        ("q.csv", 'QIDX,Question\n1,"Line one\nline two"\n2,ok\n', [("1", "Line one\nline two"), ("2", "ok")]),
        ("q.csv", "qidx , question\n007,q\n\n008,r\n", [("007", "q"), ("008", "r")]),
        ("q.csv", "QIDX,Extra,Question\n1,x,q\n", [("1", "q")]),
        (
            "q.csv",
            "QIDX,Question,Answer\n007,q,NA\n008,None,None\n1e5,NA,1e5\n010,null,\n",
            [("007", "q"), ("008", "None"), ("1e5", "NA"), ("010", "null")],
        ),
        (
            "q.jsonl",
            '{"QIDX": 7, "Question": "q"}\n\n{"qidx": "8", "question": "r\u2028s"}\n',
            [("7", "q"), ("8", "r\u2028s")],
        ),
        ("q.jsonl", '{"QIDX": 1e5, "question": "q"}\n{"QIDX": null, "question": "r"}', [("1e5", "q"), ("2", "r")]),
        ("q.jsonl", '{"question": "q"}\n{"question": "r"}', [("1", "q"), ("2", "r")]),
        ("q.txt", "Which gene?\n\n  Which bone?\r\n", [("1", "Which gene?"), ("3", "Which bone?")]),
    ],
)
def test_every_layout(tmp_path, name, content, expected):
    assert read(tmp_path, name, content) == expected


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("q.csv", "QIDX,Question\n5,a\n6,b\n5,c\n", "QIDX 5 stands in line 2 and line 4"),
        ("q.csv", 'QIDX,Question\n5,"a\nb"\n6,b\n5,c\n', "QIDX 5 stands in line 2 and line 5"),
        ("q.csv", "QIDX,Question\n,a\n", "line 2: QIDX is empty"),
        ("q.csv", "QIDX,Question,question\n1,a,b\n", "two columns of the same name: qidx, question, question"),
        ("q.csv", "id,text\n1,q\n", "columns id, text; QIDX and Question are needed"),
        ("q.csv", "", "columns none"),
        ("q.csv", "QIDX,Question\n1,a,b\n", "line 2: 3 fields, the header has 2"),
        ("q.csv", 'QIDX,Question\n1,"a\nb"\n\n2,c,d\n', "line 5: 3 fields, the header has 2"),
        ("q.csv", "QIDX,Question\n1\n", "line 2: 1 fields"),
        ("q.csv", 'QIDX,Question\n1,"open\n', "not CSV"),
        ("q.csv", "QIDX,Question\n", "holds no row"),
        ("q.jsonl", '{"question": "q"}\n{"question"\n', "line 2: not JSON"),
        ("q.jsonl", '{"text": "q"}\n', "line 1: no text in the field question"),
        ("q.jsonl", "[1]\n", "line 1: list in place of an object"),
        ("q.jsonl", '{"QIDX": [1], "question": "q"}\n', r"line 1: QIDX is \[1\], not a text"),
        (
            "q.jsonl",
            '{"QIDX": 7, "question": "q"}\n{"QIDX": "7", "question": "r"}\n',
            "QIDX 7 stands in line 1 and line 2",
        ),
        ("q.jsonl", '{"QIDX": 7, "QIDX": 8, "question": "q"}\n', "line 1: not JSON: the name 'QIDX' occurs twice"),
        ("q.txt", "\n \n", "holds no row"),
        ("q.txt", b"\xff\xfe", "not UTF-8"),
    ],
)
def test_faults_name_their_place(tmp_path, name, content, message):
    with pytest.raises(InputError, match=message) as error:
        read(tmp_path, name, content)
    assert error.value.hint


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*q\.csv"):
        read_questions(tmp_path / "q.csv")


def test_the_bundled_demo_questions(tmp_path):
    from tests.conftest import ROOT

    assert len(read_questions(ROOT / "data" / "demo.jsonl")) == 3


@pytest.mark.parametrize(
    ("name", "count", "first"),
    [
        (
            "questions_1000.csv",
            1_000,
            ("623637", "What is the name of the type of pneumoconiosis which resulted in 3,"),
        ),
        ("questions_10000.csv", 10_000, ("717298", "Which autoimmune disease is associated with chronic hives")),
    ],
)
def test_the_real_medhopqa_questions(shared, name, count, first):
    questions = read_questions(shared / "medhopqa" / name)
    assert len(questions) == count
    assert (questions[0].id, questions[0].text[: len(first[1])]) == first
