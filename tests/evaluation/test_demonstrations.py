"""Which demos there are, in which order, and which are refused."""

import dspy
import pytest

from medhop_dspy import saving
from medhop_dspy.answers import AnswerType
from medhop_dspy.errors import ProgramError
from medhop_dspy.evaluation.demonstrations import check_demos, predictor_examples, tidy_demos
from medhop_dspy.evaluation.predictor_metrics import PredictorCall, RecordedRun
from medhop_dspy.evaluation.records import ChoiceQuestion, GoldQuestion
from tests.evaluation.compile_world import QUESTIONS, program

FIELDS = {"question": "Q?", "known": [], "constraints": [], "rule": "r", "answer_type": "gene", "answer": "FBN1"}


def judged(number, answer, verdict):
    gold = GoldQuestion(str(number), f"Which gene is number {number}?", "FBN1")
    inputs = {"question": gold.text, "evidence": ["FBN1: x"], "answer": answer, "quote": "q" * number}
    return RecordedRun(gold, answer, (PredictorCall("judge_grounding", inputs, {"supported": verdict}),))


def test_examples_alternate_between_verdicts_shortest_first_and_wrong_verdicts_are_mended():
    runs = [judged(3, "FBN1", "yes"), judged(2, "FBN1", "yes"), judged(1, "FBN1", "no"), judged(4, "FBN2", "yes")]
    examples = predictor_examples(runs)["judge_grounding"]
    assert [(len(each.quote), each.supported) for each in examples] == [(1, "yes"), (4, "no"), (2, "yes"), (3, "yes")]


def test_the_same_example_comes_once():
    assert len(predictor_examples([judged(1, "FBN1", "yes")] * 3)["judge_grounding"]) == 1


def hop(question, answer):
    inputs = {"question": question, "answer_type": "chemical", "evidence": ["Praziquantel: calcium", "Vigabatrin: x"]}
    return PredictorCall("answer_hop", inputs, {"answer": answer})


@pytest.mark.parametrize(
    ("replies", "kept"),
    [
        (["Praziquantel"], ["answer_hop", "draft"]),
        (["Vigabatrin"], ["answer_hop"]),  # with the label in place of the wrong reply
        (["Vigabatrin", "Praziquantel"], ["answer_hop", "draft"]),  # asked once more, held to the evidence
    ],
)
def test_what_was_asked_after_a_wrong_hop_is_no_example(replies, kept):
    gold = GoldQuestion(
        "1", "Which ion does the drug for bilharzia let in?", "calcium", answer_type=AnswerType.CHEMICAL,
        supporting_titles=("Praziquantel",),
    )  # fmt: skip
    calls = [hop("Which drug treats bilharzia?", answer) for answer in replies]
    inputs = {**FIELDS, "question": f"Which ion does {replies[-1]} let in?", "evidence": calls[0].inputs["evidence"]}
    del inputs["answer"]
    calls.append(PredictorCall("draft", inputs, {"answer": "calcium"}))
    assert list(predictor_examples([RecordedRun(gold, "calcium", tuple(calls))])) == kept


def test_a_draft_without_evidence_learns_the_gold_answer():
    inputs = {name: value for name, value in FIELDS.items() if name != "answer"} | {"answer_type": "gene"}
    gold = GoldQuestion("1", "Q?", "FBN2", answer_type=AnswerType.GENE)
    run = RecordedRun(gold, "FBN1", (PredictorCall("draft", inputs, {"answer": "FBN1"}),))
    assert [each.answer for each in predictor_examples([run])["draft"]] == ["FBN2"]


def test_a_demo_keeps_the_fields_of_its_predictor_and_no_evidence():
    made = program()
    made.draft.demos = [
        dspy.Example(augmented=True, evidence=["FBN1: x"], **FIELDS),
        dspy.Example(question="a question with an answer of another field", gold="FBN1"),
    ]
    tidy_demos(made)
    assert [demo.toDict() for demo in made.draft.demos] == [FIELDS]


@pytest.mark.parametrize(
    ("demo", "message"),
    [
        ({"question": QUESTIONS[3].text.upper()}, "a demo of draft holds test question 3"),
        ({"known": ["x", QUESTIONS[4].text]}, "a demo of draft holds test question 4"),
    ],
)
def test_a_test_question_in_a_demo_is_refused(tmp_path, demo, message):
    made = program()
    made.draft.demos = [dspy.Example(**FIELDS)]
    made.save(tmp_path / "p.json")
    check_demos(saving.read(tmp_path / "p.json"), QUESTIONS)
    made.draft.demos = [dspy.Example(**{**FIELDS, **demo})]
    made.save(tmp_path / "p.json")
    with pytest.raises(ProgramError, match=message):
        check_demos(saving.read(tmp_path / "p.json"), QUESTIONS)


def test_a_program_compiled_on_a_test_question_is_refused(tmp_path):
    program().save(tmp_path / "p.json", compiling={"train": ["7"]})
    with pytest.raises(ProgramError, match="it was compiled on test question 7"):
        check_demos(saving.read(tmp_path / "p.json"), QUESTIONS)
    check_demos(saving.read(tmp_path / "p.json"), QUESTIONS[:5])
    check_demos(saving.read(tmp_path / "p.json"), [ChoiceQuestion("7", "Which?", {"A": "x", "B": "y"}, "A")])
