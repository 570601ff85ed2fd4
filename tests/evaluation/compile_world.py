"""Questions of which a scripted model gets half right by itself, and the rest once its prompt shows an example."""

import json

from medhop_dspy.answers import AnswerType, Strategy
from medhop_dspy.evaluation.compiling import Plan
from medhop_dspy.evaluation.optimisers import OPTIMISERS
from medhop_dspy.evaluation.records import GoldQuestion
from medhop_dspy.evaluation.tasks import Budget
from medhop_dspy.pipelines.single_pass import SinglePass
from medhop_dspy.settings import Settings
from tests.conftest import prompt_of
from tests.pipelines.conftest import LexicalRetriever

NAMES = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu"]
QUESTIONS = [
    GoldQuestion(
        id=str(number),
        text=f"Which gene is mutated in Marfan syndrome, asks reader {name}?",
        answer="FBN1",
        synonyms=("fibrillin 1 gene",),
        answer_type=AnswerType.GENE,
        strategy=Strategy.DIRECT,
        hops=1 + number % 2,
        supporting_titles=("Marfan syndrome",),
    )
    for number, name in enumerate(NAMES)
]
SETTINGS = Settings(evidence=3, hop_evidence=2, pool=10, use_expansion=False)
HARD = tuple(f"asks reader {name}?" for name in NAMES[::2])
EXAMPLE, REWRITTEN = "\nExample:", "Name the gene."


def reply(request):
    """FBN1 where the question is easy, an example is shown or the task was rewritten; the optimisers get proposals."""
    prompt = prompt_of(request)
    if "Task: " not in prompt:
        return proposal(prompt)
    question = next(line for line in prompt.splitlines() if line.startswith("Question: "))
    helped = EXAMPLE in prompt or REWRITTEN in prompt
    return "FBN1" if helped or not question.endswith(HARD) else "FBN2"


def proposal(prompt):
    """What COPRO, GEPA and SIMBA ask for: any field that ends in an instruction."""
    fields = {
        "proposed_instruction": REWRITTEN,
        "proposed_prefix_for_output_field": "Gene:",
        "improved_instruction": REWRITTEN,
        "new_instruction": REWRITTEN,
        "discussion": "The one names the gene.",
        "module_advice": {"draft": REWRITTEN},
    }
    return json.dumps({name: value for name, value in fields.items() if name in prompt})


def program():
    return SinglePass(LexicalRetriever(), SETTINGS)


def plan(name, folds=3, **budget):
    return Plan(OPTIMISERS[name], Budget(**budget), folds=folds, seed=1)
