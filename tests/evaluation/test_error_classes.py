"""Classes of wrong answers, strategies of a run, and the commands that show them."""

from __future__ import annotations

import csv
import io
import json

import pytest
from typer.testing import CliRunner

from medhop_dspy.answers import AnswerType, Strategy
from medhop_dspy.cli.analyse import app
from medhop_dspy.errors import InputError
from medhop_dspy.evaluation.analysis import ErrorClass, classify, judge, strategy_by_rules, strategy_shares
from medhop_dspy.evaluation.results import read_results
from tests.evaluation.test_submission import result_line, run_folder

CASES = {
    ErrorClass.RIGHT: [
        ("chr15", ["15"], "chromosome"),
        ("the Marfan syndrome", ["Marfan syndrome"], "disease_or_syndrome"),
        ("IL2", ["IL-2"], "protein"),
        ("Yes.", ["yes"], "yes_no"),
        ("None", ["none"], None),
    ],
    ErrorClass.SURFACE_FORM: [
        ("Hunter disease", ["Hunter syndrome"], "disease_or_syndrome"),
        ("TownesBrocks syndrome", ["Townes-Brocks syndrome"], "disease_or_syndrome"),
        ("Parkinson disease", ["Parkinson's disease"], "disease_or_syndrome"),
        ("Gauchers disease", ["Gaucher disease"], "disease_or_syndrome"),
        ("fibrillin-1 (FBN1)", ["FBN1"], "gene"),
        ("primary hyperparathyroidism", ["hyperparathyroidism"], "disease_or_syndrome"),
        ("dominant polycystic kidney disease", ["autosomal dominant polycystic kidney disease"], "disease_or_syndrome"),
        ("Dr Karl Landsteiner", ["Karl Landsteiner"], "person"),
        ("something else", ["x", "something else entirely", "something else (X)"], None),
    ],
    ErrorClass.WRONG_ENTITY: [
        ("FBN2", ["FBN1"], "gene"),
        ("16", ["15"], "chromosome"),
        ("No", ["yes"], "yes_no"),
        ("Down syndrome", ["Marfan syndrome"], "disease_or_syndrome"),
        ("Usher syndrome type 1", ["Usher syndrome type 2"], "disease_or_syndrome"),
        ("type 2 diabetes", ["diabetes"], "disease_or_syndrome"),
        ("kidney disease", ["polycystic kidney disease"], "disease_or_syndrome"),
        ("insulin receptor", ["insulin"], "protein"),
        ("non-Hodgkin lymphoma", ["Hodgkin lymphoma"], "disease_or_syndrome"),
        ("BRCA1 and BRCA2", ["BRCA2"], "gene"),
        ("anemia due to iron deficiency", ["iron deficiency"], "disease_or_syndrome"),
        ("vitamin", ["vitamin A"], "chemical"),
        ("10", ["5-10"], "number"),
        ("-5", ["5"], "number"),
    ],
    ErrorClass.WRONG_TYPE: [
        ("Marfan syndrome", ["15"], "chromosome"),
        ("Marfan syndrome", ["FBN1"], "gene"),
        ("many", ["213"], "number"),
        ("Maybe", ["yes"], "yes_no"),
        ("cardiology", ["cardiologist"], "medical_specialist"),
    ],
    ErrorClass.NO_ANSWER: [
        (None, ["FBN1"], "gene"),
        ("", ["FBN1"], "gene"),
        ("—", ["FBN1"], "gene"),
        ("unknown", ["FBN1"], "gene"),
        ("Not specified in the text", ["FBN1"], None),
    ],
}


@pytest.mark.parametrize(
    ("answer", "golds", "kind", "expected"),
    [(*case, expected) for expected, cases in CASES.items() for case in cases],
)
def test_classes(answer, golds, kind, expected):
    assert classify(answer, golds, AnswerType(kind) if kind else None) is expected


def test_a_question_without_gold_is_an_error():
    with pytest.raises(InputError, match="needs at least one"):
        classify("x", [""], None)


LINES = [
    result_line("1", "Which gene is mutated in Marfan syndrome?", "FBN1", strategy="direct", em=True),
    result_line("2", "Which gene?", "=cmd|'x'!A0", strategy="direct", em=False, gold={"strategy": "multihop"}),
    result_line("3", "How many?", "-5.2", em=False, gold={"answer": "-5.3", "answer_type": "number"}),
    result_line("4", "Which?", None, strategy="multihop", em=False, draft="FBN2", gold={"answer_type": None}),
    result_line("5", "Which gene?", None, error="ServerError: down", gold={"strategy": "direct"}),
]


def run(place, *arguments):
    result = CliRunner().invoke(app, [arguments[0], str(run_folder(place / "run", *LINES)), *arguments[1:]])
    assert result.exit_code == 0, result.exception
    return result


def test_a_table_of_classes_by_answer_type(tmp_path):
    lines = [" ".join(line.split()) for line in run(tmp_path, "errors").stdout.splitlines()]
    assert lines == [
        "answer type n right surface form wrong entity wrong type no answer failed",
        "gene 3 1 0 1 0 0 1",
        "not stated 1 0 0 0 0 1 0",
        "number 1 0 0 1 0 0 0",
        "all 5 1 0 2 0 1 1",
    ]


def test_classes_as_json(tmp_path):
    found = json.loads(run(tmp_path, "errors", "--json").stdout)
    assert found["n"] == 5
    assert found["by_answer_type"]["gene"] == dict.fromkeys(map(str, ErrorClass), 0) | {
        "right": 1,
        "wrong entity": 1,
        "failed": 1,
    }
    assert found["classes"] == dict(
        zip("12345", ["right", "wrong entity", "wrong entity", "no answer", "failed"], strict=True)
    )


def test_errors_for_a_spreadsheet(tmp_path):
    out = tmp_path / "errors.csv"
    assert "Not a medical device." in run(tmp_path, "errors", "--out", str(out)).stderr
    rows = list(csv.DictReader(io.StringIO(out.read_text(encoding="utf-8"), newline="")))
    assert [(row["QIDX"], row["Class"], row["Answer"]) for row in rows] == [
        ("2", "wrong entity", "'=cmd|'x'!A0"),
        ("3", "wrong entity", "-5.2"),
        ("4", "no answer", ""),
        ("5", "failed", ""),
    ]
    assert (rows[1]["Gold"], rows[2]["Draft"], rows[3]["Error"]) == ("-5.3", "FBN2", "ServerError: down")


def test_strategies_of_a_run(tmp_path):
    lines = run(tmp_path, "strategies").stdout.splitlines()
    assert [" ".join(line.split()) for line in lines] == [
        "strategy n share by rules as gold EM",
        "direct 4 80.0% 2 1 0.333 [0.000, 1.000]",
        "multihop 1 20.0% 0 not stated 0.000 [0.000, 0.000]",
    ]


def test_strategies_as_json(tmp_path):
    first = json.loads(run(tmp_path, "strategies", "--json").stdout)[0]
    assert (first["strategy"], first["questions"], first["by_rules"], first["as_gold"]) == ("direct", 4, 2, 1)
    assert first["em"]["mean"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("question", "strategy"),
    [
        ("On which chromosome is the gene that is mutated in Marfan syndrome located?", Strategy.MULTIHOP),
        ("What is the term for a fear of water?", Strategy.DEFINITION),
        ("Which gene causes Marfan syndrome?", Strategy.DIRECT),
    ],
)
def test_strategies_by_rules(question, strategy):
    assert strategy_by_rules(question) is strategy


def test_unusable_runs_are_errors(tmp_path):
    with pytest.raises(InputError, match="no results"):
        judge([])
    with pytest.raises(InputError, match="no results"):
        strategy_shares([])
    odd = read_results(run_folder(tmp_path / "run", result_line("1", "Which?", "x", strategy="guess")))
    with pytest.raises(InputError, match="QIDX 1 has the strategy 'guess', not one of direct"):
        strategy_shares(odd)
