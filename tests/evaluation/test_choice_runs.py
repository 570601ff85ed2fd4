"""Runs of multiple-choice questions: what is asked, kept, counted, resumed and refused; the real sets."""

from __future__ import annotations

import json
from dataclasses import replace

import dspy
import pytest

from medhop_dspy.errors import InputError, ProgramError, ReplyError
from medhop_dspy.evaluation import live
from medhop_dspy.evaluation.choice_summary import SourceAccuracy
from medhop_dspy.evaluation.choices import MMLU_MED
from medhop_dspy.evaluation.datasets import read_set
from medhop_dspy.evaluation.outcomes import ChoiceResult, Result
from medhop_dspy.evaluation.records import ChoiceQuestion, GoldQuestion
from medhop_dspy.evaluation.results import RESULTS, read_any_results, read_results
from medhop_dspy.evaluation.run_folder import MANIFEST, DataFile, question_key
from medhop_dspy.evaluation.runner import choose, evaluate
from medhop_dspy.evaluation.statistics import bootstrap_ci
from medhop_dspy.evaluation.tally import SUMMARY, table
from tests.conftest import ROOT, prompt_of
from tests.evaluation.worlds import CHOICES, QUESTIONS, Chooser, lines, program

RIGHT = {question.text: question.answer for question in CHOICES}
OPEN_ONLY = {"em", "em_strict", "em_official", "f1", "recall", "gold_in_evidence", "article_in_evidence"}


@pytest.fixture
def run(scripted_lm, tmp_path):
    """``run(letters, ...)`` -> (summary, program, engine) of a run in ``tmp_path / "run"``."""

    def go(letters=RIGHT, questions=CHOICES, folder=tmp_path / "run", **options):
        lm, engine = scripted_lm(lambda request: "FBN1")
        made = Chooser(program(), letters)
        with dspy.context(lm=lm):
            return evaluate(made, questions, folder, **options), made, engine

    return go


# ---------------------------------------------------------------- one run


def test_options_go_to_the_program_and_nowhere_else(run):
    _, made, engine = run(order="file")
    assert made.asked == [(question.text, question.options) for question in CHOICES]
    searches = [query for queries, *_ in made.retriever.searches for query in queries]
    assert searches == [question.text for question in CHOICES]  # and none for recall@k
    assert not any("An abstract." in prompt_of(request) for request in engine.requests)


def test_a_line_holds_options_and_choice_and_no_measure_of_open_answers(run, tmp_path):
    run(RIGHT | {CHOICES[1].text: "B"}, order="file")
    first, second = lines(tmp_path / "run")[:2]
    assert list(first)[:7] == ["QIDX", "Question", "key", "status", "error", "failed_in", "gold"]
    assert first["gold"] == {"options": CHOICES[0].options, "answer": "B", "source": "MedQA"}
    assert [each["answer"] for each in (first, second)] == ["B", "B"]
    assert not (OPEN_ONLY | {"right"}) & first.keys()
    results = read_any_results(tmp_path / "run")
    assert [replace(result.gold, context=CHOICES[3].context) for result in results[3:]] == CHOICES[3:]
    assert [(result.right, result.choice) for result in results[:2]] == [(True, "B"), (False, "B")]
    assert results[0].extra == {} and results[0].lm_calls == 1 and results[0].evidence


def test_lines_of_an_older_version_say_themselves_what_is_right_and_are_read_alike(run, tmp_path):
    run(order="file")
    written = read_any_results(tmp_path / "run")
    older = [each | {"right": False} for each in lines(tmp_path / "run")]
    (tmp_path / "run" / RESULTS).write_text("".join(json.dumps(each) + "\n" for each in older), encoding="utf-8")
    assert read_any_results(tmp_path / "run") == written
    assert run()[1].asked == []


def test_the_summary(run, tmp_path):
    letters = {CHOICES[0].text: "B", CHOICES[1].text: "B", CHOICES[2].text: None, CHOICES[3].text: ReplyError("no")}
    summary, *_ = run(letters)
    assert (summary.n, summary.answered, summary.correct, summary.wrong, summary.failed) == (4, 3, 1, 2, 1)
    assert (summary.no_choice, summary.accuracy, summary.exit_code) == (1, bootstrap_ci([1, 0, 0, 0]), 1)
    assert summary.by_source == {
        "MedQA": SourceAccuracy(2, bootstrap_ci([1, 0])),
        "anatomy": SourceAccuracy(2, bootstrap_ci([0, 0])),
    }
    saved = json.loads((tmp_path / "run" / SUMMARY).read_text())
    assert not OPEN_ONLY & saved.keys()
    assert (saved["accuracy"]["mean"], saved["no_choice"], saved["by_source"]["anatomy"]["n"]) == (0.25, 1, 2)
    assert (saved["effort"]["lm_calls"], list(saved)[-1]) == (3, "run")
    assert saved["failures"]["by_class"] == {"ReplyError": ["c4"]}
    rows = {line[:22].strip(): line[23:] for line in table(summary).splitlines()}
    assert rows["accuracy"].startswith("0.250 [") and rows["accuracy"].endswith("(1 of 4)")
    assert (rows["no choice"], rows["MedQA"]) == ("1 of 3", "0.500 [0.000, 1.000] of 2")


@pytest.mark.parametrize("answer", [None, "", "Z", "b", "B: FBN1", "FBN1"])
def test_what_names_no_option_is_wrong_and_counted(run, answer):
    summary, *_ = run(dict.fromkeys(RIGHT, answer))
    assert (summary.correct, summary.wrong, summary.no_choice, summary.failed) == (0, 4, 4, 0)


def test_a_run_without_a_line_has_a_summary(run, tmp_path):
    def stop(state):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(progress=stop)
    saved = json.loads((tmp_path / "run" / SUMMARY).read_text())
    assert (saved["n"], saved["pending"], saved["accuracy"], saved["by_source"]) == (0, 4, None, {})


def test_progress_shows_accuracy(run):
    states = []
    run(RIGHT | {CHOICES[3].text: "C"}, order="file", progress=states.append)
    assert [live.describe(state).partition(",")[0] for state in states] == [
        *("", "accuracy 1.000 (1 of 1)", "accuracy 1.000 (2 of 2)", "accuracy 1.000 (3 of 3)"),
        "accuracy 0.750 (3 of 4)",
    ]


# ---------------------------------------------------------------- going on


def test_a_finished_run_asks_nothing_and_a_failed_question_again(run):
    run(RIGHT | {CHOICES[1].text: ReplyError("no")})
    summary, made, _ = run()
    assert [question for question, _ in made.asked] == [CHOICES[1].text]
    assert (summary.correct, summary.exit_code) == (4, 0)
    assert run()[1].asked == []


def test_other_options_are_another_question(run):
    run()
    other = [replace(CHOICES[0], options={"A": "FBN1", "B": "FBN2"}), *CHOICES[1:]]
    with pytest.raises(ProgramError, match=r"question c1 was asked in another way before: options: .*, now "):
        run(questions=other)


def test_the_key_holds_the_options():
    about = {"settings_digest": "s", "program": {}, "index_digest": "", "model": {}}
    keys = {question_key(about, replace(CHOICES[0], options=options)) for options in ({"A": "x"}, {"A": "y"})}
    as_open = GoldQuestion(CHOICES[0].id, CHOICES[0].text, "x")
    assert len(keys | {question_key(about, as_open), question_key(about, CHOICES[0])}) == 4


def test_open_questions_and_choices_do_not_share_a_folder(run, scripted_lm, tmp_path):
    run()
    with dspy.context(lm=scripted_lm(lambda request: "FBN1")[0]):
        evaluate(program(), QUESTIONS, tmp_path / "open")
    about = (tmp_path / "run" / MANIFEST).read_bytes()
    (tmp_path / "run" / MANIFEST).write_bytes((tmp_path / "open" / MANIFEST).read_bytes())
    message = "line 1: a result of a multiple-choice question, wanted one of an open question"
    with dspy.context(lm=scripted_lm(lambda request: "FBN1")[0]), pytest.raises(InputError, match=message):
        evaluate(program(), QUESTIONS, tmp_path / "run")
    with pytest.raises(InputError, match=message):
        read_results(tmp_path / "run")
    (tmp_path / "open" / MANIFEST).write_bytes(about)
    with pytest.raises(InputError, match="a result of an open question, wanted one of a multiple-choice question"):
        run(folder=tmp_path / "open")
    assert {type(result) for result in read_any_results(tmp_path / "run")} == {ChoiceResult}
    assert {type(result) for result in read_any_results(tmp_path / "open")} == {Result}


# ---------------------------------------------------------------- refused before anything is asked


@pytest.mark.parametrize(
    ("questions", "options", "message"),
    [
        ([CHOICES[0], replace(CHOICES[1], answer="")], {}, "answers of 1 of the 2 questions are kept back.*is c2"),
        ([CHOICES[0], QUESTIONS[0]], {}, "1 multiple-choice questions among 2"),
        (CHOICES, {"min_hops": 2}, "hops are to be 2 or more, and multiple-choice questions state none"),
        ([CHOICES[0], CHOICES[0]], {}, "QIDX c1 stands in place 1 and place 2"),
    ],
)
def test_what_cannot_be_measured(questions, options, message):
    with pytest.raises(InputError, match=message) as error:
        choose(questions, **options)
    assert error.value.hint


def test_the_first_choices():
    assert choose(CHOICES, limit=2) == CHOICES[:2]


# ---------------------------------------------------------------- reading a file of either kind


def test_a_file_is_read_by_its_columns():
    assert isinstance(read_set(ROOT / "data" / "dev.jsonl")[0], GoldQuestion)
    assert isinstance(read_set(ROOT / "data" / "mcq.jsonl")[0], ChoiceQuestion)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("q.jsonl", '{"text": "x"}\n', "the columns text are of no known layout"),
        ("q.csv", "text\nx\n", "the columns text are of no known layout"),
        ("q.txt", '{"text": "x"}\n', r"is of kind \.txt"),
        ("q.jsonl", '{"QIDX": "1", "Question": "Which?"}\n', "line 1: no field 'answer'"),
        ("q.jsonl", "", "holds no row"),
        ("q.jsonl", "x", "line 1: not JSON"),
    ],
)
def test_a_file_of_neither_kind(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=message) as error:
        read_set(tmp_path / name)
    if "layout" in message:
        assert "QIDX, Question, answer" in error.value.hint and "answer_idx, options, question" in error.value.hint


def test_no_file(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*absent\.jsonl"):
        read_set(tmp_path / "absent.jsonl")


def test_a_folder_is_told_apart_by_the_files_that_are_read(tmp_path):
    for subject in MMLU_MED:
        (tmp_path / f"{subject}_test.csv").write_text("Which?,w,x,y,z,C\n")
    before = DataFile.of(tmp_path)
    (tmp_path / "law_test.csv").write_text("Which?,w,x,y,z,C\n")
    assert DataFile.of(tmp_path) == before and before.name == tmp_path.name
    (tmp_path / "anatomy_test.csv").write_text("Which?,w,x,y,z,D\n")
    assert DataFile.of(tmp_path).sha256 != before.sha256


REAL = {
    "MedQA": "medqa/data_clean/questions/US/4_options/phrases_no_exclude_test.jsonl",
    "MedMCQA": "medmcqa/data/dev.json",
    "MMLU": "mmlu/data/test",
    "PubMedQA": "pubmedqa/data/test_set.json",
}


@pytest.mark.parametrize(("name", "path"), REAL.items(), ids=REAL)
def test_the_first_questions_of_the_real_sets(run, shared, tmp_path, name, path):
    source = shared / "multiple_choice" / path
    questions = choose(read_set(source), limit=5)
    letters = {question.text: question.answer for question in questions}
    letters[questions[0].text] = None
    summary, made, _ = run(letters, questions, data=DataFile.of(source), order="file")
    assert [options for _, options in made.asked] == [question.options for question in questions]
    assert (summary.n, summary.correct, summary.no_choice, summary.failed) == (5, 4, 1, 0)
    assert summary.set_name == {"MMLU": "MMLU-Med"}.get(name, name)
    assert summary.by_source.keys() == {"anatomy" if name == "MMLU" else name}
    assert run(letters, questions, data=DataFile.of(source))[1].asked == []
