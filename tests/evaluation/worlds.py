"""Questions about the small world of the pipelines' tests, and programs that answer them."""

import json

import dspy

from medhop_dspy.answers import AnswerType, Strategy
from medhop_dspy.evaluation.records import ChoiceQuestion, GoldQuestion
from medhop_dspy.evaluation.results import RESULTS
from medhop_dspy.pipelines.program import Program
from medhop_dspy.pipelines.single_pass import SinglePass
from medhop_dspy.settings import Settings
from tests.conftest import prompt_of
from tests.pipelines.conftest import LexicalRetriever

ANSWERS = {
    "1": ("Which gene is mutated in Marfan syndrome?", "FBN1", AnswerType.GENE, "Marfan syndrome"),
    "2": ("On which chromosome is FBN2?", "5", AnswerType.CHROMOSOME, "FBN2"),
    "3": ("What is the half-life of digoxin?", "36 hours", AnswerType.DURATION, "Digoxin"),
    "4": ("Does insulin lower blood glucose?", "yes", AnswerType.YES_NO, "Insulin"),
}
QUESTIONS = [
    GoldQuestion(name, text, gold, (), kind, Strategy.DIRECT, int(name) % 2 + 1, (title,))
    for name, (text, gold, kind, title) in ANSWERS.items()
]

CHOICES = [
    ChoiceQuestion("c1", ANSWERS["1"][0], {"A": "FBN2", "B": "FBN1", "C": "CFTR"}, "B", "", "MedQA"),
    ChoiceQuestion("c2", ANSWERS["2"][0], {"A": "5", "B": "15"}, "A", "", "MedQA"),
    ChoiceQuestion("c3", ANSWERS["3"][0], {"A": "6 hours", "B": "36 hours"}, "B", "", "anatomy"),
    ChoiceQuestion("c4", ANSWERS["4"][0], {"A": "yes", "B": "no", "C": "maybe"}, "A", "An abstract.", "anatomy"),
]


def reply(request):
    """The gold answer of the question in the prompt."""
    prompt = prompt_of(request)
    return next(gold for text, gold, *_ in ANSWERS.values() if text in prompt)


def program(**overrides):
    return SinglePass(LexicalRetriever(), Settings(evidence=3, hop_evidence=2, pool=20).replace(**overrides))


def lines(folder):
    return [json.loads(line) for line in (folder / RESULTS).read_text(encoding="utf-8").splitlines()]


class Broken(Program):
    """A program that fails where ``faults`` names the question, and otherwise answers like ``inner``."""

    name = "single_pass"

    def __init__(self, inner, faults):
        super().__init__(inner.retriever, inner.settings)
        self.inner = inner
        self.faults = faults

    def forward(self, question):
        fault = self.faults.get(question)
        if isinstance(fault, Exception):
            raise fault
        return dspy.Prediction(**fault) if fault else self.inner(question=question)


class Chooser(Program):
    """A program that searches and asks the model like ``inner``, and then chooses as it is told.

    ``letters`` gives a letter, anything else, or an exception by the question's text; ``asked`` holds the calls.
    """

    name = "single_pass"

    def __init__(self, inner, letters):
        super().__init__(inner.retriever, inner.settings)
        self.inner = inner
        self.letters = letters
        self.asked = []

    def forward(self, question, options=None):
        self.asked.append((question, options))
        letter = self.letters[question]
        if isinstance(letter, Exception):
            raise letter
        prediction = self.inner(question=question)
        prediction.answer = letter
        return prediction
