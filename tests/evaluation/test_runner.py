"""Evaluation runs: what is asked, what is written, what is refused, and what a crash leaves."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import replace

import dspy
import pytest

from medhop_dspy.errors import InputError, ProgramError, ReplyError, ServerUnavailableError, SettingsError, StoreError
from medhop_dspy.evaluation.metrics import answer_metric
from medhop_dspy.evaluation.records import GoldQuestion
from medhop_dspy.evaluation.report_runs import read_runs
from medhop_dspy.evaluation.results import RESULTS, read_results
from medhop_dspy.evaluation.run_folder import MANIFEST, DataFile
from medhop_dspy.evaluation.runner import MOST_WORKERS, choose, default_workers, evaluate
from medhop_dspy.evaluation.scoring import RECALL_AT, beside_their_kin
from medhop_dspy.evaluation.summary import Share
from medhop_dspy.evaluation.tally import SUMMARY
from medhop_dspy.journal import encode
from medhop_dspy.lm.connect import connect
from medhop_dspy.lm.failures import LMUnavailableError
from medhop_dspy.pipelines.program import as_record
from medhop_dspy.pipelines.single_pass import SinglePass
from medhop_dspy.retrieval.rerank import NoReranker
from medhop_dspy.retrieval.retriever import Retriever
from medhop_dspy.settings import Settings
from medhop_dspy.trace import Passage
from tests.conftest import ROOT, prompt_of
from tests.evaluation.worlds import ANSWERS, QUESTIONS, Broken, lines, program, reply
from tests.lm.conftest import MODEL, Remote, completion
from tests.pipelines.conftest import LexicalRetriever
from tests.retrieval.test_retriever import ExactIndex, HashedWords


@pytest.fixture
def run(scripted_lm, tmp_path):
    """``run(...)`` -> (summary, engine) of a run in ``tmp_path / "run"``."""

    def go(made=None, questions=QUESTIONS, replies=reply, folder=tmp_path / "run", **options):
        lm, engine = scripted_lm(replies)
        with dspy.context(lm=lm):
            return evaluate(made or program(), questions, folder, **options), engine

    return go


def asked(engine):
    """QIDX of every request, in order."""
    by_text = {text: name for name, (text, *_) in ANSWERS.items()}
    return [next(name for text, name in by_text.items() if text in prompt_of(r)) for r in engine.requests]


# ---------------------------------------------------------------- one run


def test_a_line_has_question_gold_prediction_and_scores(run, tmp_path):
    summary, engine = run(order="file")
    first = lines(tmp_path / "run")[0]
    with dspy.context(lm=dspy.LM("scripted/model", engine=engine, cache=False)):
        record = as_record(program()(question=QUESTIONS[0].text))
    assert list(first)[:7] == ["QIDX", "Question", "key", "status", "error", "failed_in", "gold"]
    assert set(record) < set(first)
    assert first["evidence"] == json.loads(json.dumps(record["evidence"]))
    assert (first["QIDX"], first["answer"], first["status"], first["error"]) == ("1", "FBN1", "answered", "")
    assert first["gold"] == {
        "answer": "FBN1",
        "synonyms": [],
        "answer_type": "gene",
        "strategy": "direct",
        "hops": 2,
        "supporting_titles": ["Marfan syndrome"],
        "rare_disease": None,
    }
    assert [first[name] for name in ("em", "em_strict", "em_official", "f1")] == [True, True, True, 1.0]
    assert (first["gold_in_evidence"], first["article_in_evidence"]) == (True, True)
    assert first["recall"] == {"1": True, "5": True, "10": True, "20": True}
    assert (summary.n, summary.answered, summary.correct, summary.exit_code) == (4, 4, 4, 0)


@pytest.mark.parametrize("overrides", [{"pool": 10}, {"candidates": 12}])
def test_recall_is_not_told_of_ranks_that_the_settings_cannot_reach(run, tmp_path, overrides):
    summary, _ = run(program(**overrides))
    assert lines(tmp_path / "run")[0]["recall"].keys() == {"1", "5", "10"}
    assert (summary.recall[10].n, summary.recall[20]) == (3, Share(0, None))


def test_yes_and_no_are_not_looked_for_in_passages(run, tmp_path):
    run()
    last = next(result for result in read_results(tmp_path / "run") if result.id == "4")
    assert (last.em, last.gold_in_evidence, last.recall, last.article_in_evidence) == (True, None, None, True)


def test_results_are_read_as_records(run, tmp_path):
    run(order="file")
    results = read_results(tmp_path / "run")
    assert [replace(result.gold, subject="") for result in results] == QUESTIONS
    assert set(results[0].evidence) == set(program().retriever.search([QUESTIONS[0].text], 3))
    assert results[0].trace.attempts[0].passage_ids == tuple(passage.id for passage in results[0].evidence)
    assert results[0].extra == {}
    assert len({result.key for result in results}) == 4


def test_the_manifest_says_what_the_run_is_of(run, tmp_path):
    file = tmp_path / "dev.jsonl"
    file.write_bytes(b"{}\n")
    run(data=DataFile.of(file))
    about = json.loads((tmp_path / "run" / MANIFEST).read_text())
    assert about["program"]["name"] == "single_pass"
    assert about["model"] == {"name": "scripted/model", "fingerprint": ""}
    assert about["data"]["name"] == "dev.jsonl" and about["data"]["sha256"].startswith("ca3d163b")
    assert about["settings"]["evidence"] == 3 and "home" not in about["settings"]
    assert about["versions"]["dspy"] == dspy.__version__


def test_the_summary_file_is_the_summary(run, tmp_path):
    summary, _ = run()
    saved = json.loads((tmp_path / "run" / SUMMARY).read_text())
    assert (saved["n"], saved["em"]["mean"], saved["pending"]) == (4, 1.0, 0)
    assert saved["run"]["program"] == summary.run["program"]


def test_progress_counts_what_is_done_and_right(run):
    states = []
    run(replies=lambda request: "CFTR", progress=states.append)
    assert [(s.total, s.done, s.asked) for s in states] == [(4, n, n) for n in range(5)]
    assert (states[-1].correct, states[-1].failed) == (0, 0)


def test_workers_share_the_context_and_lose_nothing(run, tmp_path):
    many = [replace(QUESTIONS[0], id=str(n)) for n in range(40)]
    threads = set()

    def answer(request):
        threads.add(threading.get_ident())
        time.sleep(0.002)
        return "FBN1"

    summary, engine = run(questions=many, replies=answer, workers=4)
    assert len(threads) == 4
    assert len(engine.requests) == summary.correct == 40
    assert sorted(int(line["QIDX"]) for line in lines(tmp_path / "run")) == list(range(40))


def test_without_a_model_nothing_is_written(tmp_path):
    with dspy.context(lm=None), pytest.raises(SettingsError, match="no language model"):
        evaluate(program(), QUESTIONS, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("slots", "workers"), [(0, 1), (1, 1), (4, 4), (2048, MOST_WORKERS)])
def test_as_many_workers_as_the_server_has_slots(slots, workers):
    assert default_workers(slots) == workers


# ---------------------------------------------------------------- choosing and ordering


@pytest.mark.parametrize(
    ("options", "ids"),
    [({}, "1234"), ({"limit": 2}, "12"), ({"min_hops": 2}, "13"), ({"min_hops": 2, "limit": 1}, "1")],
)
def test_choose(options, ids):
    assert "".join(question.id for question in choose(QUESTIONS, **options)) == ids


@pytest.mark.parametrize(
    ("questions", "options", "message"),
    [
        ([], {}, "the question set is empty"),
        (QUESTIONS, {"min_hops": 3}, "none of the 4 questions has 3 hops or more"),
        (QUESTIONS, {"limit": 0}, "limit must be at least 1, got 0"),
        ([*QUESTIONS, QUESTIONS[1]], {}, "QIDX 2 stands in place 2 and place 5"),
    ],
)
def test_nothing_to_ask_is_an_error(questions, options, message):
    with pytest.raises(InputError, match=message):
        choose(questions, **options)


def test_no_question_is_refused_before_the_model_is_asked(run, tmp_path):
    with pytest.raises(InputError, match="the question set is empty"):
        run(questions=[])
    with pytest.raises(InputError, match="workers must be at least 1"):
        run(workers=0)
    assert not (tmp_path / "run").exists()


def dense(texts, **overrides):
    """A dense retriever over ``texts``, each chunk's document being the part of its id before #."""
    embedder = HashedWords()
    passages = [Passage(name, name.partition("#")[0], name, "", text) for name, text in texts.items()]
    settings = Settings(**{"reranker": "none", "candidates": 30, "pool": 30, **overrides})
    return Retriever(ExactIndex(passages, embedder), embedder, NoReranker(), settings)


def test_questions_about_one_document_stand_together():
    retriever = dense({"a#0": "fever and chills", "b#0": "rash and itching", "c#0": "cough at night"})
    texts = ["a rash", "fever high", "itching where", "chills and fever", "cough", "rash again"]
    questions = [GoldQuestion(str(n), text, "x") for n, text in enumerate(texts)]
    assert [question.id for question in beside_their_kin(retriever, questions)] == ["0", "2", "5", "1", "3", "4"]
    assert retriever.index.searches == [(6, 1)]


def test_the_order_of_the_file_can_be_kept(run):
    retriever = dense({"a#0": "Marfan syndrome FBN1", "b#0": "chromosome FBN2"})
    questions = [replace(QUESTIONS[i], id=str(n)) for n, i in enumerate((0, 1, 0))]
    made = SinglePass(retriever, program().settings)
    assert asked(run(made, questions, order="file")[1]) == ["1", "2", "1"]
    assert retriever.index.searches[0] != (3, 1)


def test_neighbours_do_not_disturb_the_ranks():
    texts = {f"d#{n}": f"filler text {n}" for n in range(30)} | {"e#0": "fever at night", "f#0": "fever"}
    plain, around = dense(texts), dense(texts, neighbours_of=2)
    wanted = plain.search(["filler text 7 fever"], 20)
    assert around.search(["filler text 7 fever"], 20) != wanted
    assert around.without_neighbours().search(["filler text 7 fever"], 20) == wanted


# ---------------------------------------------------------------- failures


def test_errors_are_neither_wrong_answers_nor_silent(run, tmp_path):
    """Right, program error, metric error, wrong: four different things. A metric error does not ask again."""
    spoilt = replace(QUESTIONS[2], answer="")
    questions = [QUESTIONS[0], QUESTIONS[1], spoilt, replace(QUESTIONS[3], answer="no")]
    made = Broken(program(), {QUESTIONS[1].text: ValueError("broken: here")})
    summary, _ = run(made, questions)
    assert (summary.n, summary.correct, summary.wrong, summary.failed, summary.exit_code) == (4, 1, 1, 2, 1)
    assert (summary.failures.program, summary.failures.metric) == (("2",), ("3",))
    assert summary.failures.by_class == {"ValueError": ("2",), "InputError": ("3",)}
    assert summary.em.mean == 0.25
    results = {result.id: result for result in read_results(tmp_path / "run")}
    assert (results["2"].error, results["2"].failed_in) == ("ValueError: broken: here", "program")
    assert "InputError: gold answers are ('',)" in results["3"].error
    assert (results["3"].status, results["3"].em, results["3"].answer) == ("answered", None, "36 hours")
    again, engine = run(Broken(program(), {}), questions)
    assert (asked(engine), again.correct, again.failed, again.exit_code) == (["2"], 2, 1, 1)


class SearchesOnce(LexicalRetriever):
    """Fails where retrieval is measured, after the program has answered."""

    def search(self, queries, k, rerank_query=None):
        if k == max(RECALL_AT):
            raise StoreError("the index is gone")
        return super().search(queries, k, rerank_query)


def test_an_answer_whose_retrieval_cannot_be_measured_is_right_or_wrong_all_the_same(run, tmp_path):
    summary, _ = run(SinglePass(SearchesOnce(), program().settings), QUESTIONS[:1])
    assert (summary.correct, summary.failed, summary.exit_code) == (1, 0, 1)
    assert summary.failures.metric == ("1",) and summary.recall[1].n == 0


def test_measures_are_those_of_the_code_that_reads_whatever_the_line_says(run, tmp_path):
    run(order="file")
    written = read_results(tmp_path / "run")
    frozen = {b'"em": true': b'"em": false', b'"f1": 1.0': b'"f1": 0.25'}
    for before, after in frozen.items():
        edit(tmp_path / "run", lambda data, before=before, after=after: data.replace(before, after))
    assert b'"em": false' in (tmp_path / "run" / RESULTS).read_bytes()
    assert read_results(tmp_path / "run") == written
    summary, engine = run(order="file")
    assert (summary.correct, summary.em_of_drafts, engine.requests) == (4, 1.0, [])


def test_what_json_cannot_hold_is_an_error_of_the_program(run, tmp_path):
    made = Broken(program(), {QUESTIONS[0].text: {"answer": "FBN1"}})
    summary, _ = run(made)
    assert summary.failures.by_class == {"AttributeError": ("1",)}


def test_the_cost_of_a_failed_question_counts(make_remote, tmp_path):
    remote = make_remote()
    remote.replies = [completion("15"), (400, {}, b'{"error": {"message": "no"}}')]
    made = program(lm_url=remote.url, lm_model=MODEL, retries=0)
    with dspy.context(lm=connect(made.settings)):
        summary = evaluate(made, QUESTIONS[:2], tmp_path / "run", order="file")
    assert (summary.answered, summary.failed) == (1, 1)
    failed = read_results(tmp_path / "run")[1]
    assert failed.error.startswith("ServerError: ") and failed.lm_calls == 1
    assert (summary.effort.prompt_tokens, summary.effort.cached_tokens, summary.effort.computed_tokens) == (100, 80, 20)


GONE = LMUnavailableError("http://203.0.113.1 did not answer")


def test_a_server_that_is_gone_ends_the_run_and_what_was_answered_stays(run, tmp_path):
    many = [replace(QUESTIONS[0], id=str(n)) for n in range(9)]
    count = iter(range(100))

    def replies(request):
        number = next(count)
        return "FBN1" if number in {0, 2} else GONE  # the second answer begins the count anew

    with pytest.raises(
        ServerUnavailableError, match="2 answered, 4 failed, then the model server was gone: http"
    ) as raised:
        run(questions=many, replies=replies)
    assert raised.value.exit_code == 4
    assert "run the same command again" in raised.value.hint
    saved = json.loads((tmp_path / "run" / SUMMARY).read_text())
    assert (saved["answered"], saved["failed"], saved["pending"]) == (2, 4, 3)
    summary, engine = run(questions=many)
    assert (summary.correct, summary.failed, len(engine.requests)) == (9, 0, 7)


def test_a_server_that_is_down_for_the_whole_run(run):
    with pytest.raises(ServerUnavailableError, match="0 answered, 3 failed"):
        run(questions=QUESTIONS[:3], replies=lambda request: GONE)


def test_other_errors_do_not_end_the_run(run):
    summary, engine = run(Broken(program(), {question.text: ReplyError("no") for question in QUESTIONS}))
    assert (summary.answered, summary.failed, summary.exit_code) == (0, 4, 1)
    assert summary.failures.by_class == {"ReplyError": ("1", "2", "3", "4")}
    assert not engine.requests


def test_an_interrupted_run_has_a_summary(run, tmp_path):
    def stop(state):
        if state.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(progress=stop)
    saved = json.loads((tmp_path / "run" / SUMMARY).read_text())
    assert (saved["n"], saved["pending"]) == (2, 2)


# ---------------------------------------------------------------- going on


def edit(folder, change):
    """Change the bytes of the results file."""
    path = folder / RESULTS
    path.write_bytes(change(path.read_bytes()))


def test_a_finished_run_asks_nothing(run, tmp_path):
    run()
    before = (tmp_path / "run" / RESULTS).read_bytes()
    summary, engine = run()
    assert not engine.requests and summary.correct == 4
    assert (tmp_path / "run" / RESULTS).read_bytes() == before


CUTS = {
    "in the third line": (lambda data: b"".join(data.splitlines(True)[:2]) + b'{"QIDX":"3","answ', ["3", "4"]),
    "in the third line, with newline": (
        lambda d: b"".join(d.splitlines(True)[:2]) + b'{"QIDX":"3","answ\n',
        ["3", "4"],
    ),
    "in a letter of two bytes": (lambda d: b"".join(d.splitlines(True)[:2]) + b'{"QIDX":"3\xc3', ["3", "4"]),
    "the newline only": (lambda data: b"".join(data.splitlines(True)[:2])[:-1], ["3", "4"]),
    "zeros after a power failure": (lambda data: b"".join(data.splitlines(True)[:2]) + b"\0" * 99, ["3", "4"]),
    "blank lines": (lambda data: data + b"\n\n", []),
    "everything": (lambda data: b"", ["1", "2", "3", "4"]),
}


@pytest.mark.parametrize(("cut", "missing"), CUTS.values(), ids=CUTS)
def test_a_cut_end_is_mended_and_only_what_is_missing_is_asked(run, tmp_path, cut, missing):
    run(order="file")
    edit(tmp_path / "run", cut)
    readable = [result.id for result in read_results(tmp_path / "run")]
    assert readable == [name for name in "1234" if name not in missing]
    summary, engine = run(order="file")
    assert asked(engine) == missing
    written = [json.loads(line) for line in (tmp_path / "run" / RESULTS).read_bytes().split(b"\n") if line]
    assert [line["QIDX"] for line in written] == ["1", "2", "3", "4"]
    assert summary.correct == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: [lines[0], b"hello\n", *lines[2:]], "line 2: not a result: Expecting value"),
        (lambda lines: [lines[0][:-1] + lines[1], *lines[2:]], "line 1: not a result: Extra data"),
        (lambda lines: [lines[0], lines[1][:50] + b"\n", *lines[2:]], "line 2: not a result"),
        (lambda lines: [lines[0], b'{"QIDX": "9"}\n', *lines[2:]], "line 2: not a result: no field 'status'"),
        (lambda lines: [b"[1]\n", *lines[1:]], "line 1: not a result"),
        (lambda lines: [*lines, b'{"QIDX": "9", "status": "maybe"}\n'], "line 5: not a result: status is 'maybe'"),
    ],
)
def test_garbage_in_the_middle_stops_with_its_line(run, tmp_path, change, message):
    run(order="file")
    edit(tmp_path / "run", lambda data: b"".join(change(data.splitlines(True))))
    before = (tmp_path / "run" / RESULTS).read_bytes()
    with pytest.raises(InputError, match=re.escape(message)):
        run()
    with pytest.raises(InputError, match=re.escape(message)):
        read_results(tmp_path / "run")
    assert (tmp_path / "run" / RESULTS).read_bytes() == before


def test_failed_lines_are_tried_again_and_the_last_line_counts(run, tmp_path):
    """Done, failed, done with a field of another version and a number as id, absent."""
    run(order="file")

    def older(data):
        first, second, third, _ = [json.loads(line) for line in data.splitlines()]
        second |= {"status": "failed", "error": "ServerUnavailableError: timeout", "failed_in": "program"}
        third |= {"QIDX": 3, "mood": "good"}
        return b"".join(map(encode, (first, second, third)))

    edit(tmp_path / "run", older)
    summary, engine = run(order="file")
    assert asked(engine) == ["2", "4"]
    assert (summary.n, summary.correct, summary.failed) == (4, 4, 0)
    results = {result.id: result for result in read_results(tmp_path / "run")}
    assert list(results) == ["1", "2", "3", "4"] and results["2"].answered
    assert results["3"].extra == {"mood": "good"}
    assert [line["QIDX"] for line in lines(tmp_path / "run")] == ["1", "2", 3, "2", "4"]


def test_a_run_takes_more_questions_later(run, tmp_path):
    assert run(questions=QUESTIONS[:1])[0].n == 1
    summary, engine = run()
    assert (asked(engine), summary.n) == (["2", "3", "4"], 4)


def test_other_versions_are_named_and_the_manifest_stays_as_it_began(run, tmp_path, caplog):
    run(questions=QUESTIONS[:1])
    path = tmp_path / "run" / MANIFEST
    about = json.loads(path.read_text())
    about["versions"]["dspy"] = "3.4.0"
    path.write_text(json.dumps(about | {"started": "2020-01-01"}))
    summary, _ = run()
    assert "begun with other versions: {'dspy': '3.4.0'}" in caplog.text
    assert summary.run["started"] == json.loads(path.read_text())["started"] == "2020-01-01"


def test_time_adds_up_over_the_calls(run, tmp_path):
    first = run(questions=QUESTIONS[:1])[0].effort.wall_seconds
    assert run()[0].effort.wall_seconds > first > 0


def test_another_question_under_a_finished_id(run, tmp_path):
    run()
    other = [replace(QUESTIONS[0], text="Which gene encodes fibrillin-1?"), *QUESTIONS[1:]]
    with pytest.raises(ProgramError, match=r"question 1 .*'Which gene is mutated.*now 'Which gene encodes"):
        run(questions=other)


def test_a_finished_line_of_another_run(run, tmp_path):
    run(program(evidence=2), folder=tmp_path / "other")
    run(questions=QUESTIONS[1:])
    line = (tmp_path / "other" / RESULTS).read_bytes().splitlines(True)[0]
    edit(tmp_path / "run", lambda data: line + data)
    with pytest.raises(ProgramError, match=r"question 1 .* of another program, settings, index or model"):
        run()


def instructed():
    made = program()
    made.draft.signature = made.draft.signature.with_instructions("Guess.")
    return made


OTHERS = {
    "settings": (lambda: program(evidence=2), {}, "setting evidence: 3, now 2"),
    "instructions": (instructed, {}, "digest of the program: '"),
    "question file": (program, {"data": DataFile("test.jsonl", "00")}, "question file: None, now '00'"),
    "index": (lambda: SinglePass(dense({"a#0": "x"}), program().settings), {}, "index: None, now '1'"),
}


@pytest.mark.parametrize(("make", "options", "message"), OTHERS.values(), ids=OTHERS)
def test_a_folder_of_another_run_is_refused(run, tmp_path, make, options, message):
    run()
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    with pytest.raises(ProgramError, match=re.escape(message)):
        run(make(), **options)
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


def test_another_model_or_what_it_serves_is_refused(make_remote, tmp_path):
    remote = make_remote()
    made = program(lm_url=remote.url, lm_model="", retries=0)
    with dspy.context(lm=connect(made.settings)):
        evaluate(made, QUESTIONS[:1], tmp_path / "run")
    for served, message in (
        ({"id": MODEL, "root": "/new"}, "fingerprint"),
        ({"id": "other"}, "model: 'test-model', now"),
    ):
        remote.pages["/v1/models"] = {"data": [served]}
        with dspy.context(lm=connect(made.settings)), pytest.raises(ProgramError, match=message):
            evaluate(made, QUESTIONS[:1], tmp_path / "run")
    assert remote.requests == 1


def test_the_preset_of_equal_settings_does_not_matter(run):
    run()
    same = program()
    same.settings = same.settings.model_validate({**same.settings.model_dump(), "preset": "paper"})
    assert not run(same)[1].requests


def test_a_second_run_in_the_same_folder_is_refused_at_once(run, tmp_path):
    errors = []

    def second(state):
        if state.done == 1:
            start = time.monotonic()
            with pytest.raises(InputError, match="another run is writing to") as raised:
                run()
            errors.append((raised.value.exit_code, time.monotonic() - start < 2))

    run(progress=second)
    assert errors == [(2, True)]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({RESULTS: "{}\n"}, f"has {RESULTS} but no {MANIFEST}"),
        ({MANIFEST: "{"}, "is no manifest of a run"),
        ({MANIFEST: "[" * 200_000}, "is no manifest of a run"),
        ({MANIFEST: "[]"}, "is no manifest of a run"),
    ],
)
def test_a_folder_of_something_else_is_refused(run, tmp_path, files, message):
    for name, text in files.items():
        (tmp_path / "run").mkdir(exist_ok=True)
        (tmp_path / "run" / name).write_text(text)
    with pytest.raises(InputError, match=message):
        run()


def test_a_file_in_place_of_the_folder(run, tmp_path):
    (tmp_path / "run").write_text("x")
    with pytest.raises(InputError, match="cannot read or write"):
        run()


# ---------------------------------------------------------------- kill -9


def slowly(handler):
    time.sleep(0.1)
    with contextlib.suppress(BrokenPipeError):  # killed in the meantime
        Remote._send(handler, completion("FBN1"))


def start(remote, folder, workers):
    command = [sys.executable, "-m", "tests.evaluation.evaluate_in_process", remote.url, str(folder), "20", workers]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)


def counts(remote):
    texts = (re.search(r"Question: (.*)", body["messages"][-1]["content"]).group(1) for body in remote.bodies)
    return Counter(re.search(r"time (\d+)", text).group(1) for text in texts)


KILLS = {"1": ((1, 0.0), (2, 0.1)), "3": ((2, 0.12), (1, 0.05))}  # before, about and after a line is written


@pytest.mark.parametrize(("workers", "kills"), KILLS.items())
def test_killed_again_and_again_a_run_loses_and_repeats_nothing(make_remote, tmp_path, workers, kills):
    remote = make_remote()
    remote.replies = [slowly]
    finished = {}
    for more, delay in kills:
        requests = remote.requests + more + int(workers)
        process = start(remote, tmp_path / "run", workers)
        until = time.monotonic() + 30
        while remote.requests < requests and process.poll() is None and time.monotonic() < until:
            time.sleep(0.005)
        time.sleep(delay)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stderr.close()
        time.sleep(0.15)  # what was under way has ended
        done = counts(remote)
        finished |= {result.id: done[result.id] for result in read_results(tmp_path / "run")}
    assert 0 < len(finished) < 20
    (reported,) = read_runs([tmp_path / "run"])
    assert reported.summary.pending == 20 - len(finished)
    process = start(remote, tmp_path / "run", workers)
    assert process.communicate(timeout=30)[1] == "" and process.returncode == 0
    assert sorted(int(line["QIDX"]) for line in lines(tmp_path / "run")) == list(range(20))
    assert {result.answer for result in read_results(tmp_path / "run")} == {"FBN1"}
    assert {name: counts(remote)[name] for name in finished} == finished
    assert json.loads((tmp_path / "run" / SUMMARY).read_text())["correct"] == 20


# ---------------------------------------------------------------- dspy.Evaluate


@pytest.fixture
def examples():
    return [
        dspy.Example(
            question=q.text, answer=q.answer, synonyms=q.synonyms, answer_type=q.answer_type.value
        ).with_inputs("question")
        for q in QUESTIONS
    ]


def test_dspy_evaluate_takes_our_programs(scripted_lm, examples):
    lm, _ = scripted_lm(lambda request: GONE if "digoxin" in prompt_of(request) else reply(request))
    with dspy.context(lm=lm):
        result = dspy.Evaluate(devset=examples, metric=answer_metric, num_threads=2, max_errors=5)(program())
    assert result.score == 75.0
    assert [score for *_, score in result.results] == [True, True, 0.0, True]


def test_dspy_evaluate_saves_predictions_as_records(scripted_lm, examples, tmp_path):
    path = tmp_path / "rows.json"
    lm, _ = scripted_lm(reply)
    with dspy.context(lm=lm):
        dspy.Evaluate(devset=examples, metric=answer_metric, num_threads=2, save_as_json=str(path))(program())
    rows = json.loads(path.read_text())
    assert [row["pred_answer"] for row in rows] == ["FBN1", "Chromosome 5", "36 hours", "Yes"]
    assert rows[0]["trace"]["question"] == QUESTIONS[0].text
