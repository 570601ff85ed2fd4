"""What good is for each predictor, by hand-made calls and by runs of the whole program."""

import doctest

import dspy
import pytest

from medhop_dspy.answers import AnswerType, Strategy
from medhop_dspy.evaluation import predictor_metrics
from medhop_dspy.evaluation.demonstrations import predictor_examples
from medhop_dspy.evaluation.predictor_metrics import METRICS, PredictorCall, RecordedRun, bridges, calls_of, judge_call
from medhop_dspy.evaluation.records import GoldQuestion
from medhop_dspy.pipelines.medhopper import MedHopper
from tests.evaluation.compile_world import SETTINGS
from tests.pipelines.conftest import FACTS, MULTIHOP, LexicalRetriever, script

GOLD = GoldQuestion(
    id="1",
    text=MULTIHOP,
    answer="15",
    synonyms=("chromosome 15",),
    answer_type=AnswerType.CHROMOSOME,
    strategy=Strategy.MULTIHOP,
    hops=2,
    supporting_titles=("Marfan syndrome", "FBN1"),
    rare_disease=True,
)
EVIDENCE = [f"{title}: {text}" for title, text in FACTS.items()]
WITHOUT = [text for text in EVIDENCE if not text.startswith("FBN1: ")]


def call(predictor, evidence=EVIDENCE, **fields):
    outputs = {"strategy", "answer_type", "hops", "repeats", "fits", "supported", "query", "rare"}
    if not predictor.startswith(("judge", "validate")):
        outputs.add("answer")
    said = {name: value for name, value in fields.items() if name in outputs}
    return PredictorCall(predictor, {"evidence": evidence, **{k: v for k, v in fields.items() if k not in said}}, said)


def hop(answer, evidence=EVIDENCE):
    return call("answer_hop", evidence, question="Which gene is it?", answer=answer)


def draft(answer, evidence=EVIDENCE):
    return call("draft", evidence, question=MULTIHOP, answer=answer)


CASES = [
    ("route", [call("route", strategy="multihop", answer_type="chromosome")], True),
    ("route", [call("route", strategy="direct", answer_type="chromosome")], False),
    ("plan_hops", [call("plan_hops", hops=[]), hop("FBN1")], True),
    ("plan_hops", [call("plan_hops", hops=[]), hop("FBN2")], False),
    ("plan_hops", [call("plan_hops", hops=[])], False),
    ("answer_hop", [hop("FBN1")], True),
    ("answer_hop", [hop("Chromosome 15")], True),
    ("answer_hop", [hop("FBN2")], False),
    ("answer_hop", [hop("fibrillin-1")], None),  # stands in the article of the gene
    ("answer_hop", [hop("fibrillin-1", WITHOUT)], False),
    ("answer_hop", [hop("Marfan syndrome")], False),  # the question names it
    ("draft", [draft("Chr. 15")], True),
    ("draft", [draft("Chromosome 5")], False),
    ("judge_self_reference", [call("judge_self_reference", answer="15", repeats="no")], True),
    ("judge_self_reference", [call("judge_self_reference", answer="15", repeats="yes")], False),
    ("judge_self_reference", [call("judge_self_reference", answer="Marfan syndrome", repeats="yes")], True),
    ("judge_self_reference", [call("judge_self_reference", answer="5", repeats="no")], None),
    ("validate_type", [call("validate_type", answer="15", fits="no")], False),
    ("validate_type", [call("validate_type", answer="5", fits="yes")], None),
    ("judge_grounding", [call("judge_grounding", answer="15", supported="yes")], True),
    ("judge_grounding", [call("judge_grounding", answer="5", supported="yes")], False),
    ("repair_query", [draft("5", WITHOUT), call("repair_query", query="FBN1"), draft("15")], True),
    ("repair_query", [draft("5", WITHOUT), call("repair_query", query="q"), draft("5", WITHOUT)], False),
    ("repair_query", [draft("5"), call("repair_query", query="q"), draft("15")], None),  # it was found before
    ("repair_query", [draft("5", WITHOUT), call("repair_query", query="q")], None),
    ("gate_rare_disease", [call("gate_rare_disease", rare="yes")], True),
    ("gate_rare_disease", [call("gate_rare_disease", rare="no")], False),
    ("some_other", [call("some_other")], True),  # as right as the final answer
]


@pytest.mark.parametrize(("predictor", "calls", "right"), CASES)
def test_a_call_is_judged(predictor, calls, right):
    index = next(i for i, each in enumerate(calls) if each.predictor == predictor)
    judgement = judge_call(RecordedRun(GOLD, "15", tuple(calls)), index)
    assert judgement.right is right and judgement.feedback


@pytest.mark.parametrize(("short", "right"), [("15", True), ("5", False)])
def test_a_shortened_answer_is_judged(short, right):
    shortening = PredictorCall("canonicalize", {"answer": "it is chromosome 15"}, {"short_answer": short})
    assert judge_call(RecordedRun(GOLD, None, (shortening,)), 0).right is right


def test_the_examples_of_the_docstrings_hold():
    done = doctest.testmod(predictor_metrics)
    assert done.attempted and not done.failed


def test_every_metric_has_a_case():
    assert METRICS.keys() - {"canonicalize"} <= {predictor for predictor, _, _ in CASES}


def test_without_gold_fields_nothing_is_judged():
    bare = GoldQuestion("1", MULTIHOP, "15")
    calls = (call("route", strategy="direct"), hop("FBN2"), call("gate_rare_disease", rare="no"))
    assert [judge_call(RecordedRun(bare, None, calls), i).right for i in range(3)] == [None, None, None]


def test_the_way_leads_over_what_the_question_does_not_name():
    assert bridges(GOLD) == ["FBN1"]


@pytest.fixture
def run_of(scripted_lm):
    """What the program does with :data:`MULTIHOP` under a script, recorded."""

    def run(changes=None):
        lm, _ = scripted_lm(script(changes))
        made = MedHopper(LexicalRetriever(), SETTINGS)
        with dspy.context(lm=lm, trace=[]):
            prediction = made(question=MULTIHOP)
            trace = list(dspy.settings.trace)
        return RecordedRun(GOLD, prediction.answer, calls_of(made, trace)), trace, made

    return run


def test_a_run_is_recorded_call_by_call(run_of):
    run, trace, made = run_of()
    assert {"plan_hops", "answer_hop", "draft"} <= {each.predictor for each in run.calls}
    assert run.right and all(judge_call(run, i).right is not False for i in range(len(run.calls)))
    copy = made.deepcopy()
    assert calls_of(copy, trace) == run.calls, "a copy's predictors are known by their fields"


def test_a_wrong_step_of_a_right_answer_is_seen(run_of):
    run, _, _ = run_of({"Answer the question from the evidence with one": "FBN2"})
    wrong = {each.predictor for i, each in enumerate(run.calls) if judge_call(run, i).right is False}
    assert run.right and wrong == {"plan_hops", "answer_hop"}


def test_examples_come_from_labels_where_the_model_was_wrong(run_of):
    run, _, _ = run_of({"Answer the question from the evidence. Give": "Chromosome 5"})
    assert not run.right
    examples = predictor_examples([run])
    assert {each.answer for each in examples["draft"]} == {"15"}
    assert examples["answer_hop"][0].answer == "FBN1"
    assert all("evidence" not in each for some in examples.values() for each in some)
    assert set(examples["draft"][0].inputs()) == {"question", "known", "constraints", "rule", "answer_type"}


def test_a_draft_that_was_told_something_wrong_is_no_example(run_of):
    run, _, _ = run_of(
        {
            "Answer the question from the evidence with one": "FBN2",
            "Answer the question from the evidence. Give": "Chromosome 5",
        }
    )
    assert "draft" not in predictor_examples([run])
