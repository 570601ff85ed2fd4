"""Run as ``python -m tests.evaluation.evaluate_in_process URL FOLDER COUNT WORKERS``: a run to be killed."""

import sys

import dspy

from medhop_dspy.evaluation.records import GoldQuestion
from medhop_dspy.evaluation.runner import evaluate
from medhop_dspy.lm.connect import connect
from tests.evaluation.worlds import program
from tests.lm.conftest import MODEL


def main(url, folder, count, workers):
    questions = [
        GoldQuestion(str(n), f"Which gene is mutated in Marfan syndrome, asked for time {n}?", "FBN1")
        for n in range(int(count))
    ]
    made = program(lm_url=url, lm_model=MODEL, retries=0, timeout=5)
    with dspy.context(lm=connect(made.settings)):
        evaluate(made, questions, folder, workers=int(workers))


if __name__ == "__main__":
    main(*sys.argv[1:])
