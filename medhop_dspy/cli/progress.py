"""Which step of a program runs, for people who wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dspy
from dspy.utils.callback import BaseCallback

_STEPS = {
    "Router": "routing",
    "ConstraintExtractor": "extracting constraints",
    "HopPlanner": "planning hops",
    "HopAnswer": "answering hop",
    "RareDiseaseGate": "looking for a rare disease",
    "AnswerDraft": "drafting an answer",
    "SelfReferenceJudge": "checking: new to the question?",
    "TypeValidator": "checking: right type?",
    "GroundingJudge": "checking: supported by the evidence?",
    "RepairQuery": "repairing the query",
    "Canonicalizer": "shortening the answer",
    "SubQuestions": "asking sub-questions",
    "FollowUpQuestions": "asking what is missing",
    "SubAnswer": "answering sub-question",
    "FinalAnswer": "answering from what was found",
    "DirectAnswer": "answering without evidence",
    "FinalChoice": "choosing an option",
    "QueryEntities": "naming entities",
    "NamedEntities": "reading entities",
    "Triples": "reading relations",
}
_SUB_QUESTIONS = {"HopAnswer", "SubAnswer"}  # whose question is not the user's


class StepReporter(BaseCallback):
    """Tells ``show`` about every predictor call as it starts."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show

    def begin(self, question: str) -> None:
        """A new question is about to be asked."""
        self._show(f"question: {question[:100]}")

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:  # noqa: ANN401
        """DSPy's hook; only predictors are steps."""
        if isinstance(instance, dspy.Predict):
            name = instance.signature.__name__
            about = inputs.get("kwargs", inputs).get("answer") or (
                inputs.get("kwargs", inputs).get("question", "") if name in _SUB_QUESTIONS else ""
            )
            self._show(f"  {_STEPS.get(name, name)}{f': {about}' if about else ''}")
