"""Cross-validation, resuming and freezing on a scripted model."""

import contextlib
import json
import subprocess
import sys
import threading
import time
from dataclasses import replace

import dspy
import pytest

from medhop_dspy import saving
from medhop_dspy.errors import InputError, ProgramError, ServerUnavailableError
from medhop_dspy.evaluation.candidates import Scores
from medhop_dspy.evaluation.compile_report import Report, table
from medhop_dspy.evaluation.compiling import cross_validate, freeze
from medhop_dspy.evaluation.results import read_results
from medhop_dspy.evaluation.run_folder import DataFile, Served
from medhop_dspy.evaluation.statistics import Interval, compare
from medhop_dspy.lm.failures import LMUnavailableError
from medhop_dspy.trace import Usage
from tests.conftest import ROOT, ScriptedEngine, prompt_of
from tests.evaluation.compile_world import EXAMPLE, QUESTIONS, plan, program, reply
from tests.test_saving import prompts


@pytest.fixture
def scripted(scripted_lm):
    lm, engine = scripted_lm(reply)
    with dspy.context(lm=lm):
        yield engine


def test_every_question_is_scored_by_a_program_that_did_not_see_it(tmp_path, scripted):
    report = cross_validate(program(), QUESTIONS, plan("labeled"), tmp_path)
    assert (report.before.mean, report.after.mean, report.failed) == (0.5, 1.0, 0)
    assert (report.comparison.gained, report.comparison.lost, report.comparison.p) == (6, 0, 0.03125)
    assert report.better and "larger than chance" in table(report)
    for request in scripted.requests:
        head, *examples = prompt_of(request).split(EXAMPLE)
        asked = next(line for line in head.splitlines() if line.startswith("Question: "))
        assert not any(asked in example for example in examples)


def test_nothing_that_stands_is_asked_again(tmp_path, scripted):
    first = cross_validate(program(), QUESTIONS, plan("bootstrap"), tmp_path)
    asked = len(scripted.requests)
    assert replace(cross_validate(program(), QUESTIONS, plan("bootstrap"), tmp_path), usage=first.usage) == first
    assert len(scripted.requests) == asked


@pytest.mark.parametrize("after", [1, 13, 17])
def test_killed_at_any_moment_it_goes_on(after, tmp_path, scripted_lm):
    """Interrupted after some requests and begun again: the same report, and no answer is asked for twice."""
    asked = []

    def stopping(request):
        asked.append(prompt_of(request))
        if len(asked) == after:
            raise KeyboardInterrupt
        return reply(request)

    lm, _ = scripted_lm(stopping)
    whole, _ = scripted_lm(reply)
    with dspy.context(lm=whole):
        wanted = cross_validate(program(), QUESTIONS, plan("labeled"), tmp_path / "whole")
    with dspy.context(lm=lm):
        with contextlib.suppress(KeyboardInterrupt):
            cross_validate(program(), QUESTIONS, plan("labeled"), tmp_path / "work")
        again = cross_validate(program(), QUESTIONS, plan("labeled"), tmp_path / "work")
    assert again == wanted
    assert len(asked) <= 24 + 1, "12 questions by the uncompiled program and 12 by candidates, and the one cut off"


def test_all_candidates_are_asked_a_question_before_the_next(tmp_path, scripted):
    candidates = [program(), program(), program()]
    for number, each in enumerate(candidates):
        each.draft.signature = each.draft.signature.with_instructions(f"Way {number}.")
    with Scores(tmp_path, Served("scripted/model"), None) as scores:
        found = scores.ask_all([(each, QUESTIONS[:4]) for each in candidates])
    asked = [prompt_of(request).partition("Task: ") for request in scripted.requests]
    assert [before for before, _, _ in asked[::3]] == [before for before, _, _ in asked[2::3]]
    assert [after[:6] for _, _, after in asked] == ["Way 0.", "Way 1.", "Way 2."] * 4
    assert [set(results) for results in found] == [{"0", "1", "2", "3"}] * 3


@pytest.mark.parametrize("slots", [1, 4])
def test_a_server_that_goes_away_ends_all_and_what_was_under_way_is_kept(slots, tmp_path, scripted_lm):
    """The first of as many questions as there are slots fails while the others are being answered."""
    begun = threading.Barrier(slots)

    def leaving(request):
        begun.wait(10)
        if "alpha" in prompt_of(request):
            raise LMUnavailableError("gone")
        time.sleep(0.5)
        return reply(request)

    candidates = [program(), program()]
    candidates[1].draft.signature = candidates[1].draft.signature.with_instructions("Another way.")
    lm, engine = scripted_lm(leaving)
    with (
        dspy.context(lm=lm),
        Scores(tmp_path, Served("scripted/model", slots=slots), None) as scores,
        pytest.raises(ServerUnavailableError, match="gone"),
    ):
        scores.ask_all([(each, QUESTIONS) for each in candidates])
    assert len(engine.requests) == slots
    kept = [result.id for folder in tmp_path.iterdir() for result in read_results(folder)]
    assert sorted(kept) == [question.id for question in QUESTIONS[1:slots]]


def test_scores_are_of_the_model_that_was_there_at_first(tmp_path, scripted):
    other = dspy.LM("scripted/other", engine=ScriptedEngine(reply), cache=False)
    with Scores(tmp_path, Served("scripted/model"), None) as scores, dspy.context(lm=other):
        scores.result(program(), QUESTIONS[0])
        scores.ask_all([(program(), QUESTIONS[1:3])])
    assert len(scripted.requests) == 3 and not other.engine.requests


def test_candidates_of_another_budget_or_seed_are_others(tmp_path, scripted):
    for way in (plan("labeled"), plan("labeled", demos=1), replace(plan("labeled"), seed=2)):
        cross_validate(program(), QUESTIONS, way, tmp_path)
    assert len(list((tmp_path / "candidates").iterdir())) == 9


def test_the_runs_can_be_read_like_any_other(tmp_path, scripted):
    cross_validate(program(), QUESTIONS, plan("labeled"), tmp_path)
    sizes = sorted(len(read_results(folder)) for folder in (tmp_path / "runs").iterdir())
    assert sizes == [4, 4, 4, 12]


def test_a_failed_question_is_counted_and_named_wrong(tmp_path, scripted_lm):
    lm, _ = scripted_lm(lambda request: ValueError("no") if "alpha" in prompt_of(request) else reply(request))
    with dspy.context(lm=lm):
        report = cross_validate(program(), QUESTIONS, plan("labeled"), tmp_path)
    assert (report.questions, report.failed, report.after.mean) == (12, 2, 11 / 12)


def frozen(tmp_path, data=None, **more):
    way = replace(plan("labeled"), data=data)
    report = cross_validate(program(), QUESTIONS, way, tmp_path / "work")
    out = tmp_path / "compiled" / "p.json"
    freeze(program(), QUESTIONS, way, tmp_path / "work", out, report, reason="better", **more)
    return out, report


def test_the_manifest_says_how_and_on_what(tmp_path, scripted):
    data = DataFile("dev.jsonl", "0" * 64)
    out, report = frozen(tmp_path, data=data)
    about = saving.read(out)["medhop"]
    made = about["compiling"]
    assert (made["optimiser"], made["seed"], made["budget"]["demos"]) == ("labeled", 1, 3)
    assert made["data"] == {"name": "dev.jsonl", "sha256": "0" * 64}
    assert sorted(made["train"]) == sorted(each for fold in made["folds"] for each in fold)
    assert (made["before"]["mean"], made["after"]["mean"]) == (report.before.mean, report.after.mean)
    assert (made["better"], made["frozen_because"], made["model"]["name"]) == (True, "better", "scripted/model")
    assert (made["frozen"], made["predictors"]) == ("compiled", [])
    assert made["note"] == "12 questions are few: each weighs 8.3 points."
    assert {"versions", "created", "index_digest"} <= about.keys()


def test_a_compiled_program_has_the_same_prompts_in_another_process(tmp_path, scripted):
    out, _ = frozen(tmp_path)
    made = program()
    made.load(out)
    assert len(made.draft.demos) == 3 and made.draft.lm is None
    code = (
        "import json; from tests.test_saving import prompts; from tests.evaluation.compile_world import program\n"
        f"made = program(); made.load({str(out)!r}); print(json.dumps(prompts(made)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert json.loads(done.stdout) == prompts(made)
    assert prompts(made)["draft"].count(EXAMPLE) == 3


def test_a_program_that_saw_a_test_question_is_not_frozen(tmp_path, scripted):
    test = [replace(QUESTIONS[0], id="other")]
    with pytest.raises(InputError, match="QIDX 0"):
        frozen(tmp_path, tests={DataFile("test.jsonl", ""): test})
    assert not (tmp_path / "compiled").exists()


def test_where_it_cannot_be_written_nothing_is_compiled(tmp_path, scripted):
    report = cross_validate(program(), QUESTIONS, plan("labeled"), tmp_path / "work")
    candidates = len(list((tmp_path / "work" / "candidates").iterdir()))
    (tmp_path / "file").touch()
    for name, message in (("p.pkl", r"ends in \.json"), ("file/p.json", "cannot write program")):
        with pytest.raises(ProgramError, match=message):
            freeze(
                program(), QUESTIONS, plan("labeled"), tmp_path / "work", tmp_path / name, report, reason="asked"
            )  # fmt: skip
    assert len(list((tmp_path / "work" / "candidates").iterdir())) == candidates


def test_only_the_predictors_that_are_named_are_changed(tmp_path, scripted):
    alone = replace(plan("labeled"), predictors=("draft",))
    assert cross_validate(program(), QUESTIONS, alone, tmp_path / "alone").comparison.gained == 6
    for name, message in (("drafts", "has no predictor drafts"), ("choose", "no question reaches choose")):
        with pytest.raises(InputError, match=message):
            cross_validate(program(), QUESTIONS, replace(plan("labeled"), predictors=(name,)), tmp_path / name)


def test_the_last_build_tells_its_progress(tmp_path, scripted):
    report = cross_validate(program(), QUESTIONS, plan("bootstrap_random_search"), tmp_path / "work")
    states = []
    freeze(
        program(), QUESTIONS, plan("bootstrap_random_search"), tmp_path / "work", tmp_path / "p.json", report,
        reason="asked", progress=states.append,
    )  # fmt: skip
    assert any(state.asked for state in states)


def report_of(before, after):
    def interval(values):
        return Interval(sum(values) / len(values), 0.0, 1.0)

    return Report("x", interval(before), interval(after), compare(before, after), len(before), 0, Usage(100, 40, 5))


@pytest.mark.parametrize(
    ("gained", "lost", "verdict"),
    [
        (6, 0, "The gain is larger"),
        (5, 0, "No gain is shown"),
        (6, 5, "No gain is shown"),
        (0, 6, "The loss is larger"),
    ],
)
def test_a_gain_within_chance_is_not_called_one(gained, lost, verdict):
    same = 45 - gained - lost
    report = report_of([False] * gained + [True] * (lost + same), [True] * gained + [False] * lost + [True] * same)
    assert verdict in table(report) and report.better == verdict.startswith("The gain")
    assert "45 questions are few: each weighs 2.2 points." in table(report)
    assert "40% of them cached" in table(report)
