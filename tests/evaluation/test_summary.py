"""What a run comes to, in a record, a file and a table; and how it is shown while it runs."""

import io
import json
import resource
from dataclasses import replace

import pytest
from rich.console import Console

from medhop_dspy.answers import AnswerType, Strategy
from medhop_dspy.errors import InputError
from medhop_dspy.evaluation import live
from medhop_dspy.evaluation.outcomes import Result, gold_fields
from medhop_dspy.evaluation.records import GoldQuestion
from medhop_dspy.evaluation.results import RESULTS, ResultsFile, read_results
from medhop_dspy.evaluation.runner import Progress
from medhop_dspy.evaluation.summary import Group, Share, summarise
from medhop_dspy.evaluation.tally import SUMMARY, last_summary, table, write_summary
from medhop_dspy.journal import encode
from medhop_dspy.trace import Failure, LMCall, Trace, Usage

GENE = GoldQuestion("1", "Which gene?", "FBN1", ("MFS1",), AnswerType.GENE, Strategy.MULTIHOP, 2, ("A", "B"))
CALL = LMCall(Usage(100, 80, 5), 0.5, "stop")
RIGHT = Result(
    gold=GENE,
    key="k",
    status="answered",
    answer="FBN1",
    draft="FBN1",
    validated=True,
    lm_calls=3,
    usage=Usage(100, 80, 5),
    seconds=2.0,
    trace=Trace("Which gene?", calls=(CALL, CALL), failures=(Failure("route", "cut"), Failure("route", "empty"))),
    em=True,
    em_strict=True,
    em_official=True,
    f1=1.0,
    gold_in_evidence=True,
    article_in_evidence=False,
    recall={1: False, 5: True, 10: True, 20: True},
)
NULL = replace(  # the draft was right and did not pass the checks
    RIGHT, gold=replace(GENE, id="2"), answer=None, draft="MFS1", validated=False, seconds=6.0, em=False,
    em_strict=False, em_official=False, f1=0.0, recall={1: False, 5: False, 10: False, 20: True},
)  # fmt: skip
YES = replace(
    RIGHT,
    gold=GoldQuestion("3", "Is it?", "yes", (), AnswerType.YES_NO),
    draft="Yes",
    recall=None,
    gold_in_evidence=None,
    trace=None,
)
FAILED = Result(
    gold=GENE, key="k", status="failed", error="ReplyError: a: b", failed_in="program", usage=Usage(50, 0, 0)
)
NO_METRIC = replace(RIGHT, error="TypeError: x", failed_in="metric", em=None, f1=None)
ALL = [RIGHT, NULL, YES, replace(FAILED, gold=replace(GENE, id="4")), replace(NO_METRIC, gold=replace(GENE, id="5"))]
RUN = {"program": {"name": "medhopper"}}


def test_every_question_is_in_one_class_and_in_the_denominator():
    summary = summarise(ALL, RUN, pending=2)
    assert (summary.n, summary.pending, summary.answered, summary.failed) == (5, 2, 3, 2)
    assert (summary.correct, summary.wrong, summary.exit_code) == (2, 1, 1)
    assert (summary.failures.program, summary.failures.metric) == (("4",), ("5",))
    assert summary.failures.by_class == {"ReplyError": ("4",), "TypeError": ("5",)}
    assert summary.em.mean == summary.f1.mean == 0.4
    assert summary.em.low < 0.4 < summary.em.high
    assert summary.em_of_drafts == 0.6
    assert (summary.validated, summary.null_answers) == (Share(3, 2 / 3), 1)


def test_recall_and_evidence_count_only_where_they_can():
    summary = summarise(ALL, RUN)
    assert [summary.recall[k].share for k in (1, 5, 10, 20)] == [0.0, 2 / 3, 2 / 3, 1.0]
    assert {share.n for share in summary.recall.values()} == {3}
    assert summary.gold_in_evidence == Share(3, 1.0)
    assert summary.article_in_evidence == Share(4, 0.0)


def test_groups_are_those_of_the_question_set():
    summary = summarise(ALL, RUN)
    assert summary.by_answer_type == {"gene": Group(4, 0.25), "yes_no": Group(1, 1.0)}
    assert summary.by_strategy == {"multihop": Group(4, 0.25), "not stated": Group(1, 1.0)}
    assert summary.by_hops == {"2": Group(4, 0.25), "not stated": Group(1, 1.0)}


def test_effort():
    effort = summarise(ALL, RUN, wall_seconds=60.0).effort
    assert (effort.lm_calls, effort.requests) == (12, 6)
    assert (effort.prompt_tokens, effort.cached_tokens, effort.computed_tokens) == (450, 320, 130)
    assert (effort.completion_tokens, effort.cached_share) == (20, 320 / 450)
    assert (effort.seconds_mean, effort.seconds_median, effort.seconds_max) == (10 / 3, 2.0, 6.0)
    assert effort.wall_seconds == 60.0
    assert summarise(ALL, RUN).unusable_replies == {"route": 6}


def test_a_run_without_a_line_has_a_summary():
    summary = summarise([], RUN, pending=3)
    assert (summary.n, summary.em, summary.em_of_drafts, summary.recall[1]) == (0, None, None, Share(0, None))
    assert "0 answered, 0 failed, 3 to ask" in table(summary)
    assert str(summary.recall[1]) == "none asked"


def test_the_table_gives_denominators_and_names_what_failed():
    rows = {line[:22].strip(): line[23:] for line in table(summarise(ALL, RUN, wall_seconds=61)).splitlines()}
    assert rows["questions"] == "5: 3 answered, 2 failed"
    assert rows["exact match"].startswith("0.400 [") and rows["exact match"].endswith("(2 of 5)")
    assert (rows["recall@5, one search"], rows["validated"]) == ("0.667 of 3", "0.667 of 3, 1 without an answer")
    assert rows["2 hops"] == "0.250 of 4"
    assert rows["prompt tokens"] == "450, 71% from the prefix cache"
    assert (rows["failed: ReplyError"], rows["failed: TypeError"]) == ("4", "5")


def test_the_file_is_plain_json_and_remembers_the_time(tmp_path):
    assert last_summary(tmp_path) == (0, 0.0)
    write_summary(tmp_path, summarise(ALL, RUN, pending=2, wall_seconds=12.5))
    saved = json.loads((tmp_path / SUMMARY).read_text())
    assert set(saved["em"]) == {"mean", "low", "high"}
    assert saved["by_hops"]["2"] == {"n": 4, "em": 0.25}
    assert last_summary(tmp_path) == (7, 12.5)
    (tmp_path / SUMMARY).write_text("{")
    assert last_summary(tmp_path) == (0, 0.0)


# ---------------------------------------------------------------- lines


def line(name="1", **fields):
    """The least that a line must hold, and ``fields``."""
    return {"QIDX": name, "Question": "Which?", "key": "k", "status": "answered", "gold": gold_fields(GENE), **fields}


def test_a_line_of_an_older_version_has_defaults_and_keeps_what_is_unknown():
    result = Result.from_line(line(7, answer="Ω", colour="red"))
    assert (result.id, result.answer, result.extra, result.trace) == ("7", "Ω", {"colour": "red"}, None)
    assert result.gold == replace(GENE, id="7", text="Which?")


@pytest.mark.parametrize("answer", ["Ω", "a\u2028b", "half \ud800", "line\nbreak", "NA"])
def test_any_answer_is_one_line_and_comes_back(tmp_path, answer):
    file = ResultsFile(tmp_path / RESULTS, Result)
    file.append(line(answer=answer))
    file.append(line("2"))
    file.close()
    assert [result.answer for result in read_results(tmp_path)] == [answer, None]
    assert (tmp_path / RESULTS).read_bytes().count(b"\n") == 2


@pytest.mark.parametrize("value", [float("nan"), object()])
def test_what_json_cannot_hold_is_not_written(tmp_path, value):
    file = ResultsFile(tmp_path / RESULTS, Result)
    with pytest.raises((TypeError, ValueError)):
        file.append(line(f1=value))
    file.close()
    assert (tmp_path / RESULTS).read_bytes() == b""


def test_a_line_that_does_not_fit_on_the_disk_leaves_no_part(tmp_path):
    file = ResultsFile(tmp_path / RESULTS, Result)
    file.append(line())
    size = (tmp_path / RESULTS).stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50, before[1]))
    try:
        with pytest.raises(InputError, match="cannot read or write"):
            file.append(line("2", answer="x" * 100))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (tmp_path / RESULTS).read_bytes() == encode(line())
    file.append(line("3"))
    file.close()
    assert [result.id for result in read_results(tmp_path)] == ["1", "3"]


def test_no_run_to_read(tmp_path):
    with pytest.raises(InputError, match="cannot read or write"):
        read_results(tmp_path)


# ---------------------------------------------------------------- progress

STATE = Progress(total=10, done=4, correct=3, failed=1, asked=2, usage=Usage(1000, 900, 20), seconds=12.0)


def test_progress_in_words():
    assert live.describe(STATE) == (
        "EM 0.750 (3 of 4), 1 failed, 10 tokens/s, 90% of prompt tokens cached, 0:00:36 left"
    )
    assert live.describe(Progress(total=10, done=0)) == ""


def test_without_a_terminal_there_is_a_line_now_and_then():
    out = io.StringIO()
    with live.live_progress(Console(file=out, width=20)) as progress:
        for _ in range(5):
            progress(STATE)
    assert out.getvalue() == f"4/10 {live.describe(STATE)}\n"


def test_on_a_terminal_there_is_a_bar():
    out = io.StringIO()
    with live.live_progress(Console(file=out, force_terminal=True, width=160)) as progress:
        progress(STATE)
    assert "4/10" in out.getvalue() and "EM 0.750 (3 of 4)" in out.getvalue()
