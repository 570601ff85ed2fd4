"""CodaBench submissions: what is in the zip, byte for byte, and what is refused."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from medhop_dspy.cli.submit import submit
from medhop_dspy.errors import InputError
from medhop_dspy.evaluation.exports import csv_bytes, defused, write_file
from medhop_dspy.evaluation.results import read_results
from medhop_dspy.evaluation.submission import fill, read_template

app = typer.Typer()
app.command()(submit)


def result_line(qidx, question, answer, **changes):
    """A line of a run's results.jsonl."""
    gold = {"answer": "FBN1", "synonyms": [], "answer_type": "gene", **changes.pop("gold", {})}
    status = "failed" if "error" in changes else "answered"
    about = {"QIDX": qidx, "Question": question, "key": "k", "status": status, "gold": gold, "answer": answer}
    return about | {"long_answer": f"{answer}." if answer else ""} | changes


def run_folder(folder: Path, *lines) -> Path:
    folder.mkdir(exist_ok=True)
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "results.jsonl").write_text(text, encoding="utf-8")
    return folder


ANSWERED = (result_line("2", "Second?", "=1+1"), result_line("007", 'First, "one"?', "-5"))
TEMPLATE = '\ufeffQIDX,Question\n007,"First, ""one""?"\n2, Second?\n'


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "questions.csv").write_text(TEMPLATE, encoding="utf-8")
    (tmp_path / "team.txt").write_bytes("Team Name: Ångström\r\nA. Member".encode())
    return tmp_path


def submitted(place: Path, *lines, options=()):
    """Run the command over a run of ``lines``: (result, names and bytes in the zip, or None without one)."""
    run = run_folder(place / "my run", *lines)
    out = place / "submission.zip"
    given = ["--questions", str(place / "questions.csv"), "--team", str(place / "team.txt"), "--out", str(out)]
    result = CliRunner().invoke(app, [str(run), *given, *options])
    if not out.exists():
        return result, None
    with zipfile.ZipFile(out) as archive:
        assert archive.testzip() is None
        return result, {name: archive.read(name) for name in archive.namelist()}


def test_the_zip_is_flat_and_byte_exact(place):
    result, files = submitted(place, *ANSWERED, result_line("9", "Not asked for?", "x"))
    assert result.exit_code == 0
    assert list(files) == ["README.md", "submission.csv", "Team.txt"]
    assert files["README.md"] == b"Run #1\nmy run\n"
    assert files["Team.txt"] == "Team Name: Ångström\r\nA. Member".encode()
    assert files["submission.csv"] == (
        b'QIDX,Question,Short Answer,Long Answer\r\n007,"First, ""one""?",-5,-5.\r\n2, Second?,=1+1,=1+1.\r\n'
    )
    assert "2 of 2 answered" in result.stdout


def test_three_columns_name_and_number(place):
    _, files = submitted(place, *ANSWERED, options=("--three-columns", "--name", "Full", "--number", "2"))
    assert files["submission.csv"] == b'QIDX,Question,Answer\r\n007,"First, ""one""?",-5\r\n2, Second?,=1+1\r\n'
    assert files["README.md"] == b"Run #2\nFull\n"


def test_the_same_answers_give_the_same_bytes(place):
    submitted(place, *ANSWERED)
    first = (place / "submission.zip").read_bytes()
    submitted(place, *reversed(ANSWERED))
    assert (place / "submission.zip").read_bytes() == first
    with zipfile.ZipFile(io.BytesIO(first)) as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert sorted(path.name for path in place.iterdir()) == ["my run", "questions.csv", "submission.zip", "team.txt"]


FAILED = result_line("2", "Second?", None, error="ServerError: down")
INCOMPLETE = {
    "failed": ([ANSWERED[1], FAILED], "1 of 2 questions have no answer: 1 failed \\(2\\)"),
    "failed after its answer": ([ANSWERED[1], FAILED | {"answer": "x"}], "1 failed \\(2\\)"),
    "withheld": ([ANSWERED[1], result_line(2, "Second?", None)], "1 without an answer \\(2\\)"),
    "blank": ([ANSWERED[1], result_line(2, "Second?", " ")], "1 without an answer \\(2\\)"),
    "not asked": ([ANSWERED[1]], "1 not asked \\(2\\)"),
    "asked again, in vain": ([*ANSWERED, FAILED], "1 failed \\(2\\)"),
}


@pytest.mark.parametrize(("lines", "message"), INCOMPLETE.values(), ids=INCOMPLETE)
def test_an_incomplete_run_is_refused_and_leaves_no_file(place, lines, message):
    result, files = submitted(place, *lines)
    assert files is None
    with pytest.raises(InputError, match=message):
        raise result.exception
    assert "--allow-missing" in result.exception.hint


@pytest.mark.parametrize("lines", [lines for lines, _ in INCOMPLETE.values()], ids=INCOMPLETE)
def test_a_partial_submission_is_named_so_and_holds_every_question(place, lines):
    result, files = submitted(place, *lines, options=("--allow-missing",))
    assert result.exit_code == 0
    assert files["README.md"].endswith(b"\nPartial submission: 1 of 2 questions have no answer.\n")
    assert files["submission.csv"].splitlines()[1:] == [b'007,"First, ""one""?",-5,-5.', b"2, Second?,,"]
    assert "no answer: 2" in result.stderr


@pytest.mark.parametrize("options", [(), ("--allow-missing",)])
def test_nothing_answered_is_an_error(place, options):
    result, files = submitted(place, FAILED, options=options)
    assert files is None
    with pytest.raises(InputError, match="0 of 2 questions are answered: 1 not asked \\(007\\); 1 failed \\(2\\)"):
        raise result.exception


def test_another_question_under_the_same_id_is_refused(place):
    result, files = submitted(place, ANSWERED[0], result_line("007", "Something else?", "x"))
    assert files is None
    with pytest.raises(InputError, match="QIDX 007: the run answered 'Something else\\?'"):
        raise result.exception


def test_long_short_answers_are_named(place):
    result, files = submitted(place, result_line("2", "Second?", "one two three four"), ANSWERED[1])
    assert "more than 3 words: 2\n" in result.stderr
    assert b"one two three four" in files["submission.csv"]


def test_the_team_must_be_there(place):
    (place / "team.txt").write_text(" \n")
    result, files = submitted(place, *ANSWERED)
    assert files is None
    with pytest.raises(InputError, match=r"team\.txt is empty"):
        raise result.exception
    (place / "team.txt").write_bytes(b"x" * (2**20 + 1))
    with pytest.raises(InputError, match=r"team\.txt is no file of at most 1,048,576 bytes"):
        raise submitted(place, *ANSWERED)[0].exception
    (place / "team.txt").unlink()
    (place / "team.txt").symlink_to("/dev/zero")
    with pytest.raises(InputError, match=r"team\.txt is no file"):
        raise submitted(place, *ANSWERED)[0].exception
    (place / "team.txt").unlink()
    with pytest.raises(InputError, match=r"cannot read .*team\.txt"):
        raise submitted(place, *ANSWERED)[0].exception


def test_a_folder_that_is_not_there_is_an_error_and_leaves_nothing(tmp_path):
    with pytest.raises(InputError, match="cannot write"):
        write_file(tmp_path / "no" / "x.zip", b"x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "answer", ["NA", "None", "1e5", "007", '"', "a\rb", "a\nb", "a\r\nb", ",", " x ", "Δ-9", "a\u2028b"]
)
def test_values_come_back_as_they_were(place, answer):
    _, files = submitted(place, result_line("2", "Second?", answer), ANSWERED[1])
    assert not files["submission.csv"].startswith(b"\xef\xbb\xbf")
    rows = list(csv.reader(io.StringIO(files["submission.csv"].decode(), newline="")))
    assert [row[2] for row in rows] == ["Short Answer", "-5", answer]


def test_what_utf8_cannot_write_is_named(place):
    with pytest.raises(InputError, match="QIDX 2 holds half of a surrogate pair"):
        raise submitted(place, result_line("2", "Second?", "\ud83d"), ANSWERED[1])[0].exception


def test_a_template_with_an_id_twice_is_refused(tmp_path):
    path = tmp_path / "q.csv"
    path.write_text("QIDX,Question\n5,a\n 5,b\n")
    with pytest.raises(InputError, match="QIDX 5 stands in line 2 and line 3"):
        read_template(path)


def test_a_template_of_json_lines(tmp_path):
    path = tmp_path / "q.jsonl"
    path.write_text('{"QIDX": 7, "Question": "Which?"}\n')
    run = run_folder(tmp_path / "run", result_line("7", "Which?", "FBN1"))
    assert fill(read_template(path), read_results(run)).csv().splitlines()[1] == b"7,Which?,FBN1,FBN1."


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("=cmd|'x'!A0", "'=cmd|'x'!A0"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("-2+3+cmd|' /C calc'!A0", "'-2+3+cmd|' /C calc'!A0"),
        ("+A1", "'+A1"),
        ("\t=1+1", "'\t=1+1"),
        (" =1+1", "' =1+1"),
        ("\uff1d1+1", "'\uff1d1+1"),
        ("-5.2", "-5.2"),
        ("+3", "+3"),
        ("-1,300", "-1,300"),
        ("-2.5e-3", "-2.5e-3"),
        ("-20 °C", "-20 °C"),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_cells_for_people_are_defused_and_negative_numbers_stay(cell, shown):
    assert defused(cell) == shown


def test_a_cell_for_people_can_always_be_written():
    assert csv_bytes(["x"], [[defused("a\ud800b")]]) == b"x\r\na?b\r\n"


def test_the_real_template(shared, tmp_path):
    template = shared / "medhopqa" / "questions_1000.csv"
    rows = read_template(template)
    lines = [result_line(row.id, row.question, "Yes") for row in reversed(rows)]
    submission = fill(rows, read_results(run_folder(tmp_path / "run", *lines)))
    written = csv.DictReader(io.StringIO(submission.csv().decode(), newline=""))
    with template.open(encoding="utf-8-sig", newline="") as file:
        asked = [(row["QIDX"], row["Question"]) for row in csv.DictReader(file)]
    assert [(row["QIDX"], row["Question"]) for row in written] == asked
    assert len(asked) == 1000
