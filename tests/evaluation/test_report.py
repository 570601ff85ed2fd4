"""Reports: what stands in them, that data stays data in HTML, Markdown and drawings, and what is refused."""

import html
import json
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import dspy
import pytest
import typer
from typer.testing import CliRunner

from medhop_dspy.cli.report import report as command
from medhop_dspy.errors import InputError
from medhop_dspy.evaluation.charts import Bar, Line, bars_svg, lines_svg
from medhop_dspy.evaluation.documents import Drawing, Section, Table, html_page, markdown, markdown_table
from medhop_dspy.evaluation.published import AGREEMENT, CHOICE, NO_PROGRAM, SYSTEMS
from medhop_dspy.evaluation.records import ChoiceQuestion
from medhop_dspy.evaluation.report import report
from medhop_dspy.evaluation.report_runs import read_runs
from medhop_dspy.evaluation.run_folder import MANIFEST, DataFile
from medhop_dspy.evaluation.runner import evaluate
from medhop_dspy.evaluation.statistics import Interval, bootstrap_ci
from medhop_dspy.evaluation.tally import SUMMARY
from medhop_dspy.lm.failures import LMUnavailableError
from medhop_dspy.pipelines.registry import PROGRAMS
from medhop_dspy.pipelines.single_pass import SinglePass, ZeroShot
from medhop_dspy.settings import Settings
from medhop_dspy.trace import Passage
from tests.conftest import prompt_of
from tests.evaluation.worlds import CHOICES, QUESTIONS, Chooser, program, reply
from tests.pipelines.conftest import PASSAGES, LexicalRetriever

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "[x](javascript:alert(1))",
    "p<0.05 | a & b `c` *d* _e_ ![f](g)",
    "</svg></td></table></details>",
    "\x00\x1b[31m \u202e \ud800",
]


@pytest.fixture
def run(scripted_lm, tmp_path):
    """``run(name, answers, ...)`` -> folder of a run; ``answers`` gives other replies by QIDX."""

    def make(name, answers=None, questions=QUESTIONS, made=None):
        def replies(request):
            given = {q.text: (answers or {}).get(q.id) for q in questions}
            return next((a for text, a in given.items() if a and text in prompt_of(request)), None) or reply(request)

        data = tmp_path / "test.jsonl"
        data.write_text("the same for all")
        with dspy.context(lm=scripted_lm(replies)[0]):
            evaluate(made or program(), questions, tmp_path / name, data=DataFile.of(data))
        return tmp_path / name

    return make


def tables(folders):
    """Rows as dicts by the title of their section and, where there are several tables, its number."""
    found = {}
    for section in report(read_runs(folders)):
        for number, table in enumerate(part for part in section.parts if isinstance(part, Table)):
            found[section.title, number] = {row[0]: dict(zip(table.header, row, strict=True)) for row in table.rows}
    return found


def test_one_run(run):
    found = tables([run("base", {"1": "FBN2", "3": LMUnavailableError("gone")})])
    about = found["Runs", 0]["base"]
    assert (about["program"], about["model"], about["questions"]) == (
        "single_pass",
        "scripted/model",
        "test.jsonl, n = 4",
    )
    measures = {name: row["base"] for name, row in found["Measures", 0].items()}
    assert measures["exact match"] == f"{bootstrap_ci([False, True, False, True])} (2 of 4)"
    assert (measures["failed"], measures["recall@20, one search"]) == ("1", "1.000 of 2")
    assert measures["validated"].endswith(" of 3, 0 without an answer")
    assert measures["article in the evidence"] == "1.000 of 3"
    assert "strict" in measures and not any("hops" in name for name in measures)
    assert found["By answer type", 0]["gene"]["base"] == "0.000 [0.000, 0.000] of 1"
    assert found["By hops", 0]["2"]["base"].endswith("of 2")
    assert {name: row["base"] for name, row in found["What became of the questions", 0].items()} == {
        "right": "2", "surface form": "0", "wrong entity": "1", "wrong type": "0", "no answer": "0", "failed": "1",
    }  # fmt: skip
    assert found["Costs", 0]["LM calls a question"]["base"] == "0.8"  # three calls, the fourth never got a reply
    wrong = found["Not right: base", 0]
    assert (wrong["1"]["answer"], wrong["1"]["gold"]) == ("FBN2", "FBN1")
    assert "gone" in wrong["3"]["quoted, or the error"]
    assert not any(title.startswith("Against") for title, _ in found)


def test_several_runs_are_paired_with_the_first(run):
    folders = [run("base"), run("other", {"1": "FBN2", "2": "chromosome 5."}), run("part", None, QUESTIONS[1:])]
    other_text = [replace(q, text=f"{q.text} Really?") for q in QUESTIONS[:1]]
    folders.append(run("elsewhere", {"1": "FBN1"}, other_text))
    rows = tables(folders)["Against base", 0]
    assert (rows["other"]["n"], rows["other"]["gained"], rows["other"]["lost"]) == ("4", "0", "1")
    assert rows["other"]["difference in EM"].startswith("-0.250 [-0.750, +0.000]")
    assert (rows["other"]["p"], rows["other"]["same answers"]) == ("1.000", "75.0%")
    assert rows["other"]["note"] == "not resolved at n = 4"
    assert rows["part"]["n"] == "3" and rows["part"]["difference in EM"].startswith("+0.000")
    assert (rows["elsewhere"]["n"], rows["elsewhere"]["note"]) == ("0", "no question in common")


def test_a_difference_that_is_resolved_has_no_note(run):
    many = [replace(QUESTIONS[0], id=str(n), text=f"{QUESTIONS[0].text} For time {n}?") for n in range(12)]
    row = tables([run("base", None, many), run("other", {q.id: "FBN2" for q in many}, many)])["Against base", 0][
        "other"
    ]
    assert (row["lost"], row["p"], row["note"]) == ("12", "< 0.001", "")


def test_published_numbers_have_a_column_and_a_label_of_their_own(run):
    found = tables([run("base")])
    open_questions = found["Published results", 0]
    assert open_questions["MedHopper, Qwen2.5-7B"]["published"] == "0.55"
    assert [len(found["Published results", n]) for n in range(3)] == [
        len({each.system for each in group}) for group in (SYSTEMS, AGREEMENT, CHOICE)
    ]
    for n in range(3):
        for row in found["Published results", n].values():
            assert row["published on"] and row["ours, on our own questions"] == "-"
    ours = [row["our program"] for row in open_questions.values()]
    assert ours == ["medhopper", "decomp_rag", "zero_shot", NO_PROGRAM]
    assert {each.program for each in (*SYSTEMS, *AGREEMENT, *CHOICE)} <= {"", *PROGRAMS}
    assert "Not in this package: this package has no program" in markdown("", report(read_runs([run("other")])))


def chosen(run, name, letters=None, program_name="single_pass", **settings):
    """A run of multiple choice; ``letters`` gives other choices by id."""
    inner = program(**settings)
    made = Chooser(inner, {q.text: (letters or {}).get(q.id, q.answer) for q in CHOICES})
    return renamed(run(name, None, CHOICES, made), program_name)


def renamed(folder, program_name):
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["program"]["name"] = program_name
    (folder / MANIFEST).write_text(json.dumps(manifest))
    return folder


def test_runs_of_multiple_choice_stand_in_a_table_of_their_own(run):
    folders = [
        chosen(run, "base", {"c1": "A", "c2": None}),
        chosen(run, "other", {"c4": "B"}, "hybrid_ir"),
        run("open"),
    ]
    found = tables(folders)
    rows = found["Multiple choice: test.jsonl", 0]
    assert rows.keys() == {"base", "other"}
    assert rows["base"]["accuracy"] == f"{bootstrap_ci([False, False, True, True])} (2)"
    assert (rows["base"]["no choice"], rows["base"]["difference"], rows["base"]["LM calls"]) == ("1", "-", "1.0")
    assert (rows["other"]["program"], rows["other"]["against single_pass: n"]) == ("hybrid_ir", "4")
    assert rows["other"]["difference"].startswith("+0.250")
    assert (rows["other"]["gained"], rows["other"]["lost"], rows["other"]["p"]) == ("2", "1", "1.000")
    assert rows["other"]["same answers"] == "25.0%" and rows["other"]["note"] == "not resolved at n = 4"
    assert found["By set or subject", 0]["anatomy"] == {
        "": "anatomy", "base": "1.000 [1.000, 1.000] of 2", "other": "0.500 [0.000, 1.000] of 2",
    }  # fmt: skip
    assert found["Measures", 0]["exact match"].keys() == {"", "open"}
    assert set(found["Against base", 0]) == {"other"}
    assert found["Not right: base", 0]["c1"] == {
        "id": "c1", "question": CHOICES[0].text, "chosen": "A: FBN2", "right": "B: FBN1",
        "quoted, or the error": "Marfan syndrome: “It is caused by mutations in the FBN1 gene.”",
    }  # fmt: skip
    assert found["Not right: base", 0]["c2"]["chosen"] == "-"


def test_accuracy_stands_beside_the_published_one_of_the_same_set(run):
    folder = renamed(run("ours", None, CHOICES[:2], Chooser(program(), {q.text: "A" for q in CHOICES})), "hybrid_ir")
    rows = [part for section in report(read_runs([folder])) if section.title == "Published results"
            for part in section.parts if isinstance(part, Table)][2].rows  # fmt: skip
    ours = {(row[0], row[3]): row[-1] for row in rows}
    assert ours.pop(("Hybrid-IR, Llama-3-8B", "MedQA")) == "50.0 [0.0, 100.0] (ours: test.jsonl, n = 2; scripted/model)"
    assert set(ours.values()) == {"-"}


def test_programs_over_one_file_stand_in_one_table(run):
    folders = [run("base", {"1": "FBN2"}), renamed(run("other"), "medhopper")]
    folders.append(run("blind", made=ZeroShot(LexicalRetriever(), Settings())))
    elsewhere = run("elsewhere", None, QUESTIONS[1:])
    manifest = json.loads((elsewhere / MANIFEST).read_text())
    (elsewhere / MANIFEST).write_text(json.dumps(manifest | {"data": {"name": "dev.jsonl", "sha256": "0"}}))
    found = tables([*folders, elsewhere])
    assert [title for title, _ in found if title.startswith("Programs:")] == ["Programs: test.jsonl"]
    rows = found["Programs: test.jsonl", 0]
    assert rows["base"]["EM"] == f"{bootstrap_ci([False, True, True, True])} (3)"
    assert rows["base"]["gold in the evidence"] == "1.000 of 3"
    assert (rows["base"]["retriever"], rows["blind"]["retriever"]) == ("dense", "-")
    assert (rows["base"]["tokens"], rows["base"]["against single_pass: n"]) == ("0", "-")
    assert (rows["other"]["gained"], rows["other"]["lost"], rows["other"]["p"]) == ("1", "0", "1.000")


def test_rounds_are_drawn_for_each_retriever(run):
    runs = [(f"{name}-{t}", t, name, right) for name in ("graph", "hybrid") for t, right in ((1, "A"), (3, "B"))]
    folders = [chosen(run, name, {"c1": right}, "hybrid_ir", rounds=t) for name, t, _, right in runs]
    for folder, (_, _, retriever, _) in zip(folders, runs, strict=True):
        manifest = json.loads((folder / MANIFEST).read_text())
        manifest["settings"]["retriever"] = retriever
        (folder / MANIFEST).write_text(json.dumps(manifest))
    found = tables(folders)
    assert found["Rounds: hybrid_ir on test.jsonl", 0]["graph"] == {
        "retriever": "graph",
        "T = 1": str(bootstrap_ci([False, True, True, True])),
        "T = 3": "1.000 [1.000, 1.000]",
    }
    page = html_page("", report(read_runs(folders)))
    assert page.count("<polyline") == 2 and "accuracy against rounds T" in page
    assert not any(title.startswith("Rounds") for title, _ in tables(folders[:1]))


def test_our_run_stands_beside_its_kind_with_its_own_label(run, tmp_path):
    folder = run("base")
    rows = tables([renamed(folder, "medhopper")])["Published results", 0]
    ours = rows["MedHopper, Qwen2.5-7B"]["ours, on our own questions"]
    assert ours == "1.000 [1.000, 1.000] (base: test.jsonl, n = 4; scripted/model)"
    assert rows["DecompRAG"]["ours, on our own questions"] == "-"


# ---------------------------------------------------------------- hostile data


class Tags(HTMLParser):
    """Every element with its attributes, and the text."""

    def __init__(self):
        super().__init__()
        self.tags, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


OURS = {
    *("html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "details", "summary"),
    *("table", "caption", "thead", "tbody", "tr", "th", "td", "svg", "rect", "line", "text"),
}


@pytest.mark.parametrize("hostile", HOSTILE[:5])
def test_answers_titles_and_run_names_are_shown_and_never_run(run, tmp_path, hostile):
    passages = [Passage("x#0", "x", hostile, "javascript:alert(1)", "Marfan FBN1"), *PASSAGES]
    made = SinglePass(LexicalRetriever(passages), Settings(evidence=3, hop_evidence=2, pool=10))
    question = replace(QUESTIONS[0], answer=hostile, synonyms=("x",))
    name = hostile.replace("/", "∕")
    folder = run(name, {"1": f"no {hostile}"}, [question], made)
    target, text = tmp_path / "report.html", tmp_path / "report.md"
    app = typer.Typer()
    app.command()(command)
    done = CliRunner().invoke(app, [str(folder), "--out", str(target), "--markdown", str(text)])
    assert done.exit_code == 0, done.exception
    page = target.read_text()
    parsed = Tags()
    parsed.feed(page)
    assert {tag for tag, _ in parsed.tags} <= OURS
    attributes = {name for tag, attrs in parsed.tags for name in attrs if tag not in {"svg", "rect", "line", "text"}}
    assert attributes <= {"lang", "charset", "http-equiv", "content"}
    assert hostile in parsed.text and html.escape(hostile) in page
    assert page.count("<script") == 0 and "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "<" not in text.read_text().replace("\\<", "") and "](" not in text.read_text()
    assert "Not a medical device" in page and "Not a medical device" in text.read_text()


@pytest.mark.parametrize("hostile", HOSTILE[:5])
def test_options_and_sets_are_shown_and_never_run(run, hostile):
    question = ChoiceQuestion("1", QUESTIONS[0].text, {"A": hostile, "B": "x"}, "B", "", hostile)
    folder = run("mcq", None, [question], Chooser(program(), {question.text: "A"}))
    page = html_page("", report(read_runs([folder])))
    parsed = Tags()
    parsed.feed(page)
    assert {tag for tag, _ in parsed.tags} <= OURS
    assert f"A: {hostile}" in parsed.text and page.count("<script") == 0


@pytest.mark.parametrize("text", HOSTILE)
def test_every_cell_is_one_cell_in_markdown_and_encodes(text):
    rows = markdown_table(Table(("a", "b"), ((text, "2\n3"),))).splitlines()
    assert len(rows) == 3
    assert rows[2].replace("\\|", "").count("|") == 3 and rows[2].endswith("| 2 3 |")
    assert "\x1b" not in rows[2] and rows[2].encode()


def test_markdown_and_page_hold_the_same_but_for_drawings():
    sections = [
        Section("One", ("Text & more", Table(("a",), (("1",),), "caption"), Drawing("<svg></svg>"))),
        Section("Two", (), folded=True),
    ]
    assert markdown("T", sections) == (
        "# T\n\n## One\n\nText \\& more\n\ncaption\n\n| a   |\n| --- |\n| 1   |\n\n## Two\n"
    )
    page = html_page("T", sections)
    assert "<p>Text &amp; more</p>" in page and "<svg></svg>" in page and page.count("<details>") == 1


# ---------------------------------------------------------------- drawings


def test_bars_are_drawn_to_scale():
    drawn = ElementTree.fromstring(
        bars_svg([Bar("a", Interval(0.5, 0.25, 0.75)), Bar("<b>", Interval(1, 1, 1), 1)], "EM")
    )
    space = "{http://www.w3.org/2000/svg}"
    bars = [r for r in drawn.iter(f"{space}rect") if r.get("x")]
    assert [float(bar.get("width")) for bar in bars] == [165, 330]
    assert bars[0].get("fill") != bars[1].get("fill")
    black = [line for line in drawn.iter(f"{space}line") if line.get("stroke") == "black"]
    assert (black[0].get("x1"), black[0].get("x2")) == ("312.5", "477.5")
    assert {"a", "<b>", "0.500", "EM"} <= {text.text for text in drawn.iter(f"{space}text")}


def test_a_long_label_is_cut():
    drawn = bars_svg([Bar("x" * 100, Interval(0, 0, 0))], "EM")
    assert f"{'x' * 31}…" in drawn and "x" * 32 not in drawn


def test_nothing_to_draw():
    with pytest.raises(InputError, match="no bars"):
        bars_svg([], "EM")
    for lines in ([], [Line("a", ())]):
        with pytest.raises(InputError, match="no lines, or of one without a point"):
            lines_svg(lines, "T", "EM")


def test_lines_are_drawn_to_scale():
    points = ((1, Interval(0.5, 0.25, 0.75)), (3, Interval(1, 1, 1)))
    drawn = ElementTree.fromstring(lines_svg([Line("<b>", points), Line("a", points[:1])], "rounds T", "EM"))
    space = "{http://www.w3.org/2000/svg}"
    first, second = drawn.iter(f"{space}polyline")
    (x1, y1), (x2, y2) = (map(float, point.split(",")) for point in first.get("points").split())
    assert (y1, y2) == (145, 30) and x1 < x2  # 0 lies at 260, 1 at 30
    assert first.get("stroke") != second.get("stroke")
    dots = [(dot.get("cy"), dot.get("fill")) for dot in drawn.iter(f"{space}circle")]  # one point alone draws no line
    assert dots == [("145.0", first.get("stroke")), ("30.0", first.get("stroke")), ("145.0", second.get("stroke"))]
    intervals = [line for line in drawn.iter(f"{space}line") if line.get("stroke") == first.get("stroke")]
    assert [float(intervals[0].get(name)) for name in ("y1", "y2")] == [202.5, 87.5]
    assert {"<b>", "a", "1", "3", "0.2", "rounds T", "EM"} <= {text.text for text in drawn.iter(f"{space}text")}


# ---------------------------------------------------------------- reading runs


def test_runs_are_named_by_as_much_of_their_path_as_needed(run):
    folders = [run("full/seed-42"), run("lexical/seed-42")]
    assert [each.name for each in read_runs(folders)] == ["full/seed-42", "lexical/seed-42"]
    assert [each.name for each in read_runs(folders[:1])] == ["seed-42"]


def test_pending_questions_are_told(run):
    folder = run("base")
    for counts in ({"n": 2, "pending": 5}, {"n": 7, "pending": 0}):  # one was killed after two more lines
        (folder / SUMMARY).write_text(json.dumps({**counts, "effort": {"wall_seconds": 1}}))
        assert tables([folder])["Measures", 0]["questions"]["base"] == "test.jsonl, n = 4, 3 to ask"
    (folder / SUMMARY).unlink()
    assert tables([folder])["Measures", 0]["questions"]["base"] == "test.jsonl, n = 4"


def test_what_is_no_run(run, tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        read_runs([tmp_path])
    with pytest.raises(InputError, match="0 runs"):
        read_runs([])
    folder = run("base")
    with pytest.raises(InputError, match="2 runs, 1 different"):
        read_runs([folder, folder / ".." / "base"])
    (folder / MANIFEST).write_text('{"program": {}}')
    with pytest.raises(InputError, match="no manifest of a run"):
        read_runs([folder])
    (folder / "results.jsonl").write_text("")
    with pytest.raises(InputError, match="holds no results"):
        read_runs([folder])
