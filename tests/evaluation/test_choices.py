"""Multiple-choice sets: every layout, every fault with its place, the real files."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, Value

from medhop_dspy.errors import InputError
from medhop_dspy.evaluation.choices import MMLU_MED, choices_of, read_choices
from medhop_dspy.evaluation.records import ChoiceQuestion

MEDQA = {"question": "Which?", "answer": "x", "options": {"A": "w", "B": "x"}, "meta_info": "step1", "answer_idx": "B"}
MEDMCQA = {"id": "u1", "question": "Which?", "exp": None, "opa": "w", "opb": "x", "opc": "y", "opd": "z", "cop": 4}
MMLU = {"question": "Which?", "subject": "anatomy", "choices": ["w", "x", "y", "z"], "answer": 2}
PUBMEDQA = {"QUESTION": "Is it?", "CONTEXTS": ["One.", "Two."], "final_decision": "maybe", "LONG_ANSWER": "Perhaps."}
PUBMEDQA_HUB = {
    "pubid": 7,
    "question": "Is it?",
    "context": {"contexts": ["One.", "Two."], "labels": ["a", "b"]},
    "long_answer": "Perhaps.",
    "final_decision": "maybe",
}
# Texts that libraries for tables take for something else.
TRAPS = ["None", "NA", "1e5", "007", "True", "2015-01-01", " nan", "null", "", "1.50"]


def written(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8", newline="")
    return path


def lines(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def table(*rows: dict) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0])
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def medmcqa(*cops: object) -> list[dict]:
    return [MEDMCQA | {"id": f"u{number}", "cop": cop} for number, cop in enumerate(cops)]


FOUR = {"A": "w", "B": "x", "C": "y", "D": "z"}
DECISIONS = {"A": "yes", "B": "no", "C": "maybe"}


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("q.jsonl", lines(MEDQA), ChoiceQuestion("1", "Which?", {"A": "w", "B": "x"}, "B", "", "MedQA")),
        (
            "q.json",
            json.dumps([MEDQA], indent=1),
            ChoiceQuestion("1", "Which?", {"A": "w", "B": "x"}, "B", "", "MedQA"),
        ),
        ("q.json", lines(MEDMCQA), ChoiceQuestion("u1", "Which?", FOUR, "D", "", "MedMCQA")),
        ("q.JSON", lines(MEDMCQA, MEDMCQA | {"id": 5}), ChoiceQuestion("u1", "Which?", FOUR, "D", "", "MedMCQA")),
        ("q.csv", table(MEDMCQA), ChoiceQuestion("u1", "Which?", FOUR, "D", "", "MedMCQA")),
        ("q.csv", "\ufeff" + table(MEDMCQA), ChoiceQuestion("u1", "Which?", FOUR, "D", "", "MedMCQA")),
        ("anatomy_test.csv", "Which?,w,x,y,z,C\n", ChoiceQuestion("anatomy-1", "Which?", FOUR, "C", "", "anatomy")),
        ("law_dev.csv", '"A\nB?",w,x,y,z,A\n', ChoiceQuestion("law-1", "A\nB?", FOUR, "A", "", "law")),
        ("q.jsonl", lines(MMLU), ChoiceQuestion("anatomy-1", "Which?", FOUR, "C", "", "anatomy")),
        (
            "q.json",
            json.dumps({"0012": PUBMEDQA}),
            ChoiceQuestion("0012", "Is it?", DECISIONS, "C", "One.\nTwo.", "PubMedQA"),
        ),
        ("q.jsonl", lines(PUBMEDQA_HUB), ChoiceQuestion("7", "Is it?", DECISIONS, "C", "One.\nTwo.", "PubMedQA")),
    ],
)
def test_every_layout(tmp_path: Path, name: str, content: str, expected: ChoiceQuestion) -> None:
    assert read_choices(written(tmp_path, name, content))[0] == expected


def test_texts_are_unchanged_in_every_kind_of_file(tmp_path: Path) -> None:
    options = dict(zip("ABCDEFGHIJ", TRAPS, strict=True))
    rows = [MEDMCQA | {"id": text or "-", "question": text or "-", "opa": text} for text in TRAPS]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "q.parquet")
    written(tmp_path, "q.csv", table(*rows))
    written(tmp_path, "q.json", lines(*rows))
    for kind in ("parquet", "csv", "json"):
        questions = read_choices(tmp_path / f"q.{kind}")
        assert [q.options["A"] for q in questions] == TRAPS
        assert [(q.id, q.text) for q in questions] == [(text or "-", text or "-") for text in TRAPS]
    path = written(tmp_path, "q.jsonl", lines(MEDQA | {"options": options}))
    assert read_choices(path)[0].options == options
    path = written(tmp_path, "x_test.csv", f"q,{','.join(TRAPS[:4])},A\n")
    assert list(read_choices(path)[0].options.values()) == TRAPS[:4]


def test_numbers_among_options_become_the_text_that_was_written(tmp_path: Path) -> None:
    raw = '{"question": "q", "options": {"A": 7, "B": 1.50, "C": 1e5, "D": "x"}, "answer_idx": "A"}'
    assert read_choices(written(tmp_path, "q.jsonl", raw))[0].options == {"A": "7", "B": "1.50", "C": "1e5", "D": "x"}


def test_a_fifth_option_that_only_some_rows_have(tmp_path: Path) -> None:
    rows = [MEDQA | {"options": {"A": "w", "B": "x", "C": None}}, MEDQA | {"options": {"A": "w", "B": "x", "C": "y"}}]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "q.parquet")
    assert [list(q.options) for q in read_choices(tmp_path / "q.parquet")] == [["A", "B"], ["A", "B", "C"]]


@pytest.mark.parametrize(
    ("cops", "answers"),
    [
        ([1, 2, 3, 4], "ABCD"),
        ([4], "D"),
        ([0, 1, 2, 3], "ABCD"),
        ([0], "A"),
        ([-1, 1, 3], ["", "B", "D"]),
        ([1, None, 4], ["A", "", "D"]),
        ([None, ""], ["", ""]),
        (["1", "4"], "AD"),
        (["0", "3", "-1"], ["A", "D", ""]),
        (["a", "d"], "AD"),
    ],
)
def test_the_count_of_medmcqa_follows_from_the_whole_file(tmp_path: Path, cops: list, answers: list[str]) -> None:
    path = written(tmp_path, "q.jsonl", lines(*medmcqa(*cops)))
    assert [q.answer for q in read_choices(path)] == list(answers)


@pytest.mark.parametrize(
    ("layout", "row"),
    [
        ("MedMCQA", {name: value for name, value in MEDMCQA.items() if name != "cop"}),
        ("MedQA", MEDQA | {"answer_idx": None}),
        ("PubMedQA", PUBMEDQA | {"final_decision": None}),
        ("PubMedQA", {name: value for name, value in PUBMEDQA_HUB.items() if name != "final_decision"}),
        ("anatomy", MMLU | {"answer": -1}),
    ],
)
def test_an_answer_that_is_kept_back_is_empty(tmp_path: Path, layout: str, row: dict) -> None:
    [question] = read_choices(written(tmp_path, "q.jsonl", lines(row)))
    assert (question.source, question.answer) == (layout, "")


def test_a_folder_is_the_six_subjects_of_mmlu_med(tmp_path: Path) -> None:
    for subject in (*MMLU_MED, "abstract_algebra"):
        written(tmp_path, f"{subject}_test.csv", "Which?,w,x,y,z,C\nWhich?,w,x,y,z,D\n")
    questions = read_choices(tmp_path)
    assert [q.id for q in questions] == [f"{subject}-{number}" for subject in MMLU_MED for number in (1, 2)]
    (tmp_path / "college_biology_test.csv").unlink()
    with pytest.raises(InputError, match=r"lacks college_biology_test\.csv; the six subjects"):
        read_choices(tmp_path)


# ---------------------------------------------------------------- data sets of the hub


def test_data_sets_as_the_hub_has_them(tmp_path: Path) -> None:
    features = Features({name: Value("string") for name in MEDMCQA} | {"cop": ClassLabel(names=list("abcd"))})
    # 1 and 3 alone could count from 0 or 1, but the labels have names.
    dataset = Dataset.from_list(medmcqa(1, 3, -1), features=features)
    assert [(q.id, q.answer) for q in choices_of(dataset)] == [("u0", "B"), ("u1", "D"), ("u2", "")]
    pyarrow.parquet.write_table(dataset.with_format("arrow")[:], tmp_path / "q.parquet")
    assert read_choices(tmp_path / "q.parquet") == choices_of(dataset)
    assert [q.answer for q in choices_of(dataset.select([1, 0]).with_format("numpy"))] == ["D", "B"]


@pytest.mark.parametrize(
    ("row", "options", "answer"),
    [
        (MMLU, FOUR, "C"),
        (PUBMEDQA_HUB, DECISIONS, "C"),
        (MEDQA, {"A": "w", "B": "x"}, "B"),
        (MEDQA | {"options": [{"key": "A", "value": "w"}, {"key": "B", "value": "x"}]}, {"A": "w", "B": "x"}, "B"),
    ],
)
def test_other_data_sets_of_the_hub(row: dict, options: dict, answer: str) -> None:
    [question] = choices_of(Dataset.from_list([row]))
    assert (question.options, question.answer) == (options, answer)


def test_only_one_split_is_taken() -> None:
    with pytest.raises(InputError, match=r"a DatasetDict in place of a datasets\.Dataset") as error:
        choices_of(DatasetDict({"test": Dataset.from_list([MMLU])}))
    assert "split=" in error.value.hint


def test_a_faulty_row_of_a_data_set_is_named() -> None:
    with pytest.raises(InputError, match="the data set, row 2: the answer is 'I', not one of A, B, C, D"):
        choices_of(Dataset.from_list([MMLU, MMLU | {"answer": 8}]))


# ---------------------------------------------------------------- faults


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("q.jsonl", "", "holds no row"),
        ("q.json", "{}", "holds no row"),
        ("q.csv", "question,opa,opb,opc,opd\n", "holds no row"),
        ("q.txt", "x", r"of kind \.txt; \.jsonl, \.json, \.csv, \.parquet or a folder is needed"),
        ("q.parquet", "x", r"cannot read .*q\.parquet"),
        ("q.jsonl", lines({"text": "x", "label": 1}), r"q\.jsonl: the columns text, label are of no known layout"),
        ("q.csv", "text,label\nx,1\n", "the columns text, label are of no known layout"),
        ("q.jsonl", lines(MEDQA, {"question": "x"}), "line 2: no answer_idx, options"),
        ("q.jsonl", lines(MEDQA, MEDQA | {"question": " "}), "line 2: the question is ' ', not a text"),
        ("q.jsonl", lines(MEDQA | {"question": 7}), "the question is 7, not a text"),
        ("q.jsonl", lines(MEDQA | {"answer_idx": "C"}), "the answer is 'C', not one of A, B"),
        ("q.jsonl", lines(MEDQA | {"answer_idx": 1}), "the answer is 1, not one of A, B"),
        ("q.jsonl", lines(MEDQA | {"options": "A. x"}), r"options is 'A\. x', not texts by the letters"),
        ("q.jsonl", lines(MEDQA | {"options": []}), r"options is \[\], not texts by the letters"),
        ("q.jsonl", lines(MEDQA | {"options": {"A": "w", "C": "x"}}), "options is .*, not texts by the letters"),
        ("q.jsonl", lines(MEDQA | {"options": {"A": None}}), "there are 0 options, not 1 to 10"),
        ("q.jsonl", lines(MEDQA | {"options": {"A": None, "B": "x"}}), "option A is None, not a text"),
        ("q.jsonl", lines(MEDQA | {"options": {"A": True, "B": "x"}}), "option A is True, not a text"),
        ("q.jsonl", lines(MEDQA | {"id": "a"}, MEDQA | {"id": "a"}), "id a stands in line 1 and line 2"),
        ("q.jsonl", lines(MEDQA | {"id": " "}), "line 1: id is empty"),
        ("q.jsonl", lines(MEDQA | {"id": [1]}), r"the id is \[1\], not a text"),
        ("q.jsonl", '{"question": "q", "question": "r"}', "line 1: not JSON: the name 'question' occurs twice"),
        ("q.jsonl", lines(*medmcqa(0, 4)), "cop counts from 0 in some rows and from 1 in others"),
        ("q.jsonl", lines(*medmcqa(1, 2, 3, 2)), "cop is 1, 2 or 3 in all rows, so it may count from 0 or from 1"),
        ("q.jsonl", lines(*medmcqa(4, 5)), "line 2: the answer is 'E', not one of A, B, C, D"),
        ("q.jsonl", lines(*medmcqa(4, 15)), "line 2: cop is 15, not a letter or a number from 1"),
        ("q.jsonl", lines(*medmcqa(4, [1])), r"line 2: cop is \[1\], not a letter or a number from 1"),
        ("q.jsonl", lines(MMLU | {"choices": {"text": ["w"]}}), "choices is .* not a list of texts"),
        ("x_test.csv", "q,w,x,y,z,A\nq,w,x,y,A\n", "line 2: 5 fields, MMLU has 6"),
        ("x_test.csv", "q,w,x,y,z,A\nq,w,x,y,z,E\n", "line 2: the answer is 'E', not one of A, B, C, D"),
        ("x_test.csv", "q,w,x,y,z,A\nq,w,x,y,z,yes\n", "line 2: answer is 'yes', not a letter"),
        ("q.csv", table(MEDMCQA) + "u2,q\n", "line 3: 2 fields, the header has 8"),
        ("q.json", '{"1": {"QUESTION": "q"', "is not JSON: Expecting"),
        ("q.json", json.dumps({"1": PUBMEDQA, "2": 3}), "the columns 1, 2 are of no known layout"),
        ("q.json", "[1]", "item 1: int in place of an object"),
        ("q.json", "[" * 100_000, "is not JSON"),
        ("q.json", json.dumps({"1": PUBMEDQA | {"CONTEXTS": "x"}}), "item 1: the contexts are 'x', not a list"),
        ("q.json", json.dumps({"1": PUBMEDQA | {"final_decision": "Yes!"}}), "final_decision is 'Yes!', not yes, no"),
        ("q.json", json.dumps({"1": PUBMEDQA})[:-1] + ', "1": {}}', "the name '1' occurs twice"),
    ],
)
def test_faults_name_their_place_and_the_remedy(tmp_path: Path, name: str, content: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        read_choices(written(tmp_path, name, content))
    assert error.value.hint


def test_an_unknown_layout_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        read_choices(written(tmp_path, "q.jsonl", lines({"text": "x"})))
    assert "answer_idx, options, question (MedQA)" in error.value.hint
    assert "CONTEXTS, QUESTION (PubMedQA)" in error.value.hint


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no such file or folder: .*absent"):
        read_choices(tmp_path / "absent")


def test_reading_uses_no_network_and_writes_no_cache(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([MMLU]), tmp_path / "q.parquet")
    written(tmp_path, "q.jsonl", lines(MEDQA))
    written(tmp_path, "q.csv", table(MEDMCQA))
    code = (
        "import socket\n"
        "calls = []\n"
        "def refuse(*args, **options):\n"
        "    calls.append(args)\n"
        "    raise OSError('no network')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from pathlib import Path\n"
        "from medhop_dspy.evaluation.choices import read_choices\n"
        f"kinds = [len(read_choices(Path({str(tmp_path)!r}) / name)) for name in ('q.parquet', 'q.jsonl', 'q.csv')]\n"
        "print(kinds, calls)\n"
    )
    home = tmp_path / "home"
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "XDG_"))}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=env | {"HOME": str(home)}
    )
    assert (done.stdout.strip(), done.stderr) == ("[1, 1, 1] []", "")
    assert not home.exists()


# ---------------------------------------------------------------- the real files


def test_medqa(shared: Path) -> None:
    folder = shared / "multiple_choice" / "medqa" / "data_clean" / "questions" / "US" / "4_options"
    questions = read_choices(folder / "phrases_no_exclude_test.jsonl")
    assert len(questions) == 1273
    assert {tuple(q.options) for q in questions} == {tuple("ABCD")}
    last = questions[-1]
    assert (last.id, last.answer, last.options["B"]) == ("1273", "C", "Lymphangioleiomyomatosis")
    assert " Hepatic venous outflow obstruction" in questions[828].options.values()


def test_medmcqa(shared: Path) -> None:
    questions = read_choices(shared / "multiple_choice" / "medmcqa" / "data" / "dev.json")
    assert [sum(q.answer == letter for q in questions) for letter in "ABCD"] == [1348, 1085, 925, 825]
    assert questions[0].id == "45258d3d-b974-44dd-a161-c3fccbdadd88"
    assert questions[0].options["A"] == "Impulse through myelinated fibers is slower than non-myelinated fibers"
    assert questions[3].options["D"] == "None"


def test_mmlu_med(shared: Path) -> None:
    questions = read_choices(shared / "multiple_choice" / "mmlu" / "data" / "test")
    assert [sum(q.source == subject for q in questions) for subject in MMLU_MED] == [135, 265, 144, 173, 100, 272]
    third = next(q for q in questions if q.id == "medical_genetics-3")
    assert third.options == {"A": "0.01", "B": "0.001", "C": "0.02", "D": "0.0001"}
    assert third.answer == "A"


def test_pubmedqa(shared: Path) -> None:
    questions = read_choices(shared / "multiple_choice" / "pubmedqa" / "data" / "test_set.json")
    assert len(questions) == 500
    assert (questions[0].id, questions[0].answer) == ("12377809", "A")
    assert questions[0].context.startswith("Dyschesia can be provoked by")
    everything = read_choices(shared / "pubmedqa" / "ori_pqal.json")
    assert [sum(q.answer == letter for q in everything) for letter in "ABC"] == [552, 338, 110]
