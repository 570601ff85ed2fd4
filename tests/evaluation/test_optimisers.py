"""Every optimiser on a scripted model: what it makes, what it refuses, what candidates share."""

import importlib.util
import logging
from copy import deepcopy
from dataclasses import replace

import dspy
import pytest

from medhop_dspy.errors import InputError, ServerUnavailableError
from medhop_dspy.evaluation.candidates import Focus
from medhop_dspy.evaluation.compiling import cross_validate
from medhop_dspy.evaluation.optimisers import OPTIMISERS, find_optimiser
from medhop_dspy.evaluation.predictor_metrics import PredictorCall, RecordedRun, calls_of
from medhop_dspy.evaluation.sampling import sampling
from medhop_dspy.evaluation.tasks import Budget, Task, bootstrap_metric, example_of, feedback_metric
from medhop_dspy.knowledge.orphanet import Orphanet
from medhop_dspy.lm.failures import LMUnavailableError
from medhop_dspy.pipelines.medhopper import MedHopper
from tests.conftest import prompt_of
from tests.evaluation.compile_world import HARD, QUESTIONS, REWRITTEN, SETTINGS, plan, program, reply
from tests.evaluation.test_predictor_metrics import GOLD
from tests.pipelines.conftest import MULTIHOP, LexicalRetriever, script

MANY = [
    replace(each, id=f"{each.id}-{n}", text=f"Case {n}: {each.text}") for n in range(4) for each in QUESTIONS[:8]
]  # of SIMBA's batch of 32


@pytest.fixture(autouse=True)
def quiet():
    """DSPy's optimisers log every step."""
    logging.disable(logging.INFO)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def scripted(scripted_lm):
    lm, engine = scripted_lm(reply)
    with dspy.context(lm=lm):
        yield engine


def compiled(name, tmp_path, questions=QUESTIONS, **budget):
    report = cross_validate(program(), questions, plan(name, folds=2, **budget), tmp_path)
    made = []
    for path in sorted((tmp_path / "candidates").iterdir()):
        made.append(program())
        made[-1].load(path)
    return report, made


@pytest.mark.parametrize("name", ["labeled", "bootstrap", "bootstrap_random_search"])
def test_demos_are_found_that_help(name, tmp_path, scripted):
    report, made = compiled(name, tmp_path, candidates=2)
    assert (report.before.mean, report.after.mean) == (0.5, 1.0)
    for each in made:
        assert 1 <= len(each.draft.demos) <= 3
        assert {demo["answer"] for demo in each.draft.demos} == {"FBN1"}
        assert all("evidence" not in demo and "augmented" not in demo for demo in each.draft.demos)


@pytest.mark.parametrize("name", ["copro", "gepa"])
def test_instructions_are_found_that_help(name, tmp_path, scripted):
    report, made = compiled(name, tmp_path, metric_calls=30)
    assert (report.before.mean, report.after.mean) == (0.5, 1.0)
    assert {each.draft.signature.instructions for each in made} == {REWRITTEN}
    assert all(each.draft.demos == [] and each.draft.lm is None for each in made)


@pytest.mark.skipif(importlib.util.find_spec("optuna") is None, reason="optuna, an extra, is not installed")
def test_mipro_finds_instructions_or_demos_that_help(tmp_path, scripted):
    report, made = compiled("mipro", tmp_path, candidates=3)
    assert (report.before.mean, report.after.mean) == (0.5, 1.0)
    for each in made:
        assert each.draft.signature.instructions == REWRITTEN or each.draft.demos
        assert each.draft.lm is None and all("evidence" not in demo for demo in each.draft.demos)


def test_an_instruction_that_gains_nothing_is_not_taken(tmp_path, scripted_lm):
    lm, _ = scripted_lm(lambda request: "FBN1" if "Task: " in prompt_of(request) else reply(request))
    with dspy.context(lm=lm):
        _, made = compiled("copro", tmp_path)
    assert {each.draft.signature.instructions for each in made} == {program().draft.signature.instructions}


def test_simba_finds_demos_in_32_questions(scripted):
    runs = [RecordedRun(QUESTIONS[0], None, (PredictorCall("draft", {}, {}),))]
    made = OPTIMISERS["simba"].build(task_of(program(), MANY, runs=runs, budget=Budget()))
    assert made.draft.demos and {demo["answer"] for demo in made.draft.demos} == {"FBN1"} and made.draft.lm is None


def test_copro_asks_no_question_twice_about_the_same_program(tmp_path, scripted):
    compiled("copro", tmp_path, candidates=3)
    prompts = [prompt_of(request) for request in scripted.requests]
    asked = [prompt for prompt in prompts if "Task: " in prompt]  # the others ask for instructions
    assert len(asked) == len(set(asked)) > len(QUESTIONS)


@pytest.mark.parametrize("name", ["labeled", "bootstrap", "bootstrap_random_search"])
@pytest.mark.parametrize(("demos", "bootstrapped"), [(0, 0), (0, 2), (2, 0)])
def test_no_demos_are_no_demos(name, demos, bootstrapped, tmp_path, scripted):
    _, made = compiled(name, tmp_path, demos=demos, bootstrapped=bootstrapped, candidates=2)
    counts = {len(predictor.demos) for each in made for predictor in each.predictors()}
    assert counts == {0} if not demos else max(counts) <= demos


def test_a_wrong_answer_never_becomes_a_demo(scripted):
    """Of the hard questions none is answered right; a recorded run without evidence gives no label to fill up with."""
    call = PredictorCall("draft", {"question": "Q?", "evidence": [], "answer_type": "gene"}, {"answer": "FBN2"})
    task = task_of(program(), QUESTIONS, runs=[RecordedRun(QUESTIONS[0], "FBN2", (call,))])
    made = OPTIMISERS["bootstrap"].build(task)
    assert len(made.draft.demos) == 4
    assert not any(demo.question.endswith(HARD) or demo.answer != "FBN1" for demo in made.draft.demos)


def task_of(made, questions, **fields):
    values = {
        "program": made, "train": questions, "validation": [], "budget": Budget(demos=4, bootstrapped=4), "seed": 1,
        "ask": None, "compare": None, "runs": [],
    }  # fmt: skip
    return Task(**{**values, **fields})


def traced(changes, scripted_lm):
    lm, _ = scripted_lm(script(changes))
    made = MedHopper(LexicalRetriever(), SETTINGS)
    with dspy.context(lm=lm, trace=[]):
        prediction = made(question=MULTIHOP)
        return made, prediction, list(dspy.settings.trace)


def test_a_wrong_step_of_a_right_answer_becomes_no_demo(scripted_lm):
    made, prediction, trace = traced({"Answer the question from the evidence with one": "FBN2"}, scripted_lm)
    before = {call.predictor for call in calls_of(made, trace)}
    assert bootstrap_metric(task_of(made, [GOLD]))(example_of(GOLD), prediction, trace) is True
    assert before - {call.predictor for call in calls_of(made, trace)} == {
        "plan_hops",
        "answer_hop",
        "draft",  # right, but told something wrong
    }


def test_a_wrong_answer_is_false_and_not_nearly_right():
    metric = bootstrap_metric(task_of(program(), [GOLD]))
    answers = ["chromosome 15", "5", "", None]
    assert [metric(example_of(GOLD), dspy.Prediction(answer=a), []) for a in answers] == [True, False, False, False]


def test_gepa_hears_what_its_predictor_did(scripted_lm):
    made, prediction, trace = traced({"Answer the question from the evidence with one": "FBN2"}, scripted_lm)
    metric = feedback_metric(task_of(made, [GOLD]))
    told = metric(example_of(GOLD), prediction, trace, "answer_hop", trace[-1:])
    assert told.score == 1.0 and "the sub-answer was 'FBN2', wanted one of ['FBN1', '15']" in told.feedback
    assert "sub-answer" not in metric(example_of(GOLD), prediction, trace, "draft", trace[-1:]).feedback


def test_an_optimiser_sees_only_predictors_in_use(scripted_lm):
    made, prediction, trace = traced({}, scripted_lm)
    task = task_of(made, [GOLD], runs=[RecordedRun(GOLD, prediction.answer, calls_of(made, trace))])
    view = task.view()
    assert [name for name, _ in view.named_predictors()] == task.names
    assert {"plan_hops", "answer_hop", "draft"} <= set(task.names) and "repair_query" not in task.names
    view.program.draft.demos = [{"answer": "x"}]
    assert view.reset_copy().program.draft.demos == [] and made.draft.demos == []


def test_candidates_share_retriever_tables_and_engine(scripted_lm):
    lm, engine = scripted_lm(reply)
    made = MedHopper(LexicalRetriever(), SETTINGS, Orphanet([]))
    view = Focus(made, ["draft"], lambda program, question: None)
    with dspy.context(lm=lm):
        engines = [deepcopy(sampling(dspy.settings.lm)).engine for _ in range(2)]
    for candidate in (deepcopy(made), view.deepcopy().program, view.reset_copy().program):
        assert candidate is not made and candidate.draft is not made.draft
        assert (candidate.retriever, candidate.orphanet) == (made.retriever, made.orphanet)  # the same objects
        assert candidate.settings == made.settings
        assert candidate.retriever.index is made.retriever.index
    assert all(each._engine is engine for each in engines)


def test_repeated_samples_have_seeds_of_their_own(scripted_lm):
    lm, engine = scripted_lm(lambda request: "x")
    twin = sampling(lm.copy(seed=42))
    for temperature in (0.0, 0.0, 1.0, 1.0):
        twin("the same", temperature=temperature)
    assert [request.config.seed for request in engine.requests] == [42, 42, 42, 43]


def test_a_server_that_goes_ends_the_optimiser(tmp_path, scripted_lm):
    """DSPy would count its errors as wrong answers."""
    asked = []

    def dying(request):
        asked.append(request)
        return reply(request) if len(asked) <= 14 else LMUnavailableError("gone")

    lm, _ = scripted_lm(dying)
    with dspy.context(lm=lm), pytest.raises(ServerUnavailableError, match="gone"):
        compiled("bootstrap", tmp_path)
    assert not list((tmp_path / "candidates").iterdir())


REFUSED = {
    "too few to choose by": ("gepa", QUESTIONS[:1], "needs 2 questions to compile on, got 1"),
    "too few for a batch": ("simba", QUESTIONS, "needs 32 questions to compile on, got 12"),
    "too few for the folds": ("labeled", QUESTIONS[:1], "1 questions cannot fill 2 folds"),
    "none": ("labeled", [], "the question set is empty"),
}


@pytest.mark.parametrize(("name", "questions", "message"), REFUSED.values(), ids=REFUSED)
def test_too_few_questions_are_refused(name, questions, message, tmp_path, scripted):
    with pytest.raises(InputError, match=message):
        compiled(name, tmp_path, questions)
    assert scripted.requests == []


@pytest.mark.skipif(importlib.util.find_spec("optuna") is not None, reason="optuna is installed")
def test_a_missing_package_is_named_with_the_line_that_installs_it():
    with pytest.raises(InputError, match="needs the package optuna") as error:
        OPTIMISERS["mipro"].check(45)
    assert error.value.hint == "pip install 'medhop-dspy[optuna]'"


def test_an_unknown_optimiser_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match="unknown optimiser 'adam'") as error:
        find_optimiser("adam")
    assert all(name in error.value.hint for name in OPTIMISERS)


@pytest.mark.parametrize("budget", [{"demos": -1}, {"candidates": 0}, {"metric_calls": 0}])
def test_a_budget_has_bounds(budget):
    with pytest.raises(InputError, match=f"{next(iter(budget))} must be at least"):
        Budget(**budget)


@pytest.mark.parametrize("name", ["labeled", "bootstrap"])
def test_every_predictor_gets_demos_of_its_own(name, tmp_path, scripted_lm):
    """The whole program: typed demos come back from the file and are shown as replies of their predictor."""
    lm, _ = scripted_lm(script())
    made = MedHopper(LexicalRetriever(), SETTINGS)
    golds = [replace(GOLD, id=str(n), text=MULTIHOP.replace("gene that", f"gene no. {n} that")) for n in range(4)]
    with dspy.context(lm=lm):
        report = cross_validate(made, golds, plan(name, folds=2), tmp_path)
    assert report.before.mean == 1.0
    for path in (tmp_path / "candidates").iterdir():
        made.load(path)
        demos = {each: predictor.demos for each, predictor in made.named_predictors()}
        assert {each for each, some in demos.items() if some} >= {"plan_hops", "answer_hop", "draft", "judge_grounding"}
        assert not demos["repair_query"], "nothing was repaired"
        prompt = made.adapter.format(made.plan_hops.signature, made.plan_hops.demos, {"question": "Q?"})[1]["content"]
        assert 'Reply: {"hops": [{"question": "Which gene is mutated in Marfan syndrome?", "type": "gene"}' in prompt
