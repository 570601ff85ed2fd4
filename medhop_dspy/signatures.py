"""Every Signature of the programs, and so every prompt, but those about the graph (medhop_dspy.graph.signatures).

Some field names have a place in the prompt (see :class:`medhop_dspy.adapter.EvidenceFirstAdapter`): ``evidence``
stands first and ``question`` second, which decides how much of a prompt a server has already read; ``answer_type``
names a one-line reply. The other inputs stand behind the task.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import dspy
from pydantic import BaseModel, ConfigDict, Field

from medhop_dspy.answers import AnswerType, Strategy

YesNo = Literal["yes", "no"]


class HopType(StrEnum):
    """What a hop's answer is. ``yes_no`` answers are kept but never steer retrieval."""

    GENE = "gene"
    PROTEIN = "protein"
    ENZYME = "enzyme"
    DISEASE = "disease"
    SYNDROME = "syndrome"
    ORGANISM = "organism"
    CHEMICAL = "chemical"
    NUMBER = "number"
    YES_NO = "yes_no"
    OTHER = "other"


class PlannedHop(BaseModel):
    """A sub-question; ``#1`` and ``#2`` stand for the answers of the hops before it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str = Field(max_length=160)
    type: HopType


class Router(dspy.Signature):
    """Classify the question.
    strategy: direct = one lookup; definition = asks for the term that fits a description; intersection = one answer
    must satisfy several conditions at once; multihop = a fact about something that is itself described and must be
    found first.
    answer_type: the kind of thing that answers it.
    """

    question: str = dspy.InputField()
    strategy: Strategy = dspy.OutputField(desc="how to find the answer")
    answer_type: AnswerType = dspy.OutputField(desc="kind of answer asked for")


class ConstraintExtractor(dspy.Signature):
    """Copy from the question, word for word, the separate conditions that the answer must satisfy."""

    question: str = dspy.InputField()
    constraints: list[str] = dspy.OutputField(desc="phrases copied from the question, three at most", max_length=3)


class HopPlanner(dspy.Signature):
    """Split the question into the shortest chain of simple questions. The first can be looked up at once; each later
    one asks about the answer before it, written #1 or #2. Two are usually enough.
    Example: "On which chromosome is the gene that is mutated in Wilson disease?" ->
    {"hops": [{"question": "Which gene is mutated in Wilson disease?", "type": "gene"},
    {"question": "On which chromosome is #1 located?", "type": "other"}]}
    """

    question: str = dspy.InputField()
    hops: list[PlannedHop] = dspy.OutputField(desc="sub-questions in the order to ask them", max_length=6)


class HopAnswer(dspy.Signature):
    """Answer the question from the evidence with one specific name, number or term."""

    evidence: list[str] = dspy.InputField()
    question: str = dspy.InputField()
    answer_type: str = dspy.InputField(desc="kind of answer")
    candidates_to_confirm: list[str] = dspy.InputField(desc="symbols that count only if the evidence supports them")
    answer: str = dspy.OutputField(desc="the answer alone, without a sentence around it")


class AnswerDraft(dspy.Signature):
    """Answer the question from the evidence. Give the answer alone, as short as possible."""

    evidence: list[str] = dspy.InputField()
    question: str = dspy.InputField()
    known: list[str] = dspy.InputField(desc="facts found so far")
    constraints: list[str] = dspy.InputField(desc="conditions that must all hold")
    rule: str = dspy.InputField(desc="form of the answer")
    answer_type: str = dspy.InputField(desc="kind of answer")
    answer: str = dspy.OutputField(desc="the answer alone, at most a few words")


class SelfReferenceJudge(dspy.Signature):
    """Does the answer merely repeat what the question already names, instead of telling something new?"""

    evidence: list[str] = dspy.InputField()
    question: str = dspy.InputField()
    answer: str = dspy.InputField()
    repeats: YesNo = dspy.OutputField(desc="whether the answer only repeats the question")


class TypeValidator(dspy.Signature):
    """Is the answer of the required kind?"""

    evidence: list[str] = dspy.InputField()
    question: str = dspy.InputField()
    answer: str = dspy.InputField()
    required_kind: str = dspy.InputField()
    fits: YesNo = dspy.OutputField(desc="whether the answer is of that kind")


class GroundingJudge(dspy.Signature):
    """Does the evidence support this answer to the question?"""

    evidence: list[str] = dspy.InputField()
    question: str = dspy.InputField()
    answer: str = dspy.InputField()
    quote: str = dspy.InputField(desc="where the answer occurs")
    supported: YesNo = dspy.OutputField(desc="whether the evidence supports the answer")


class RepairQuery(dspy.Signature):
    """The last search did not lead to a valid answer. Write one better search query: key terms, no sentence."""

    question: str = dspy.InputField()
    wanted: str = dspy.InputField(desc="kind of answer asked for")
    strategy: str = dspy.InputField()
    next_question: str = dspy.InputField(desc="sub-question that is still open")
    known: str = dspy.InputField(desc="latest entity that was found")
    failed_checks: list[str] = dspy.InputField()
    query: str = dspy.OutputField(desc="search query")


class Canonicalizer(dspy.Signature):
    """Cut the answer down to the few words that answer the question. Use only words of the answer."""

    question: str = dspy.InputField()
    answer: str = dspy.InputField()
    rule: str = dspy.InputField(desc="form of the answer")
    short_answer: str = dspy.OutputField(desc="the shortened answer")


class RareDiseaseGate(dspy.Signature):
    """Is the question about a rare or genetic disease?"""

    question: str = dspy.InputField()
    rare: YesNo = dspy.OutputField(desc="whether a rare or genetic disease is involved")


class SubQuestions(dspy.Signature):
    """Break the question down into simple questions that can each be looked up without knowing the answers of the
    others.
    """

    question: str = dspy.InputField()
    at_most: int = dspy.InputField(desc="how many sub-questions to ask at most")
    questions: list[str] = dspy.OutputField(desc="sub-questions", max_length=10)


class FollowUpQuestions(dspy.Signature):
    """Ask only for what is still missing to answer the question. Do not repeat what is known. Reply with an empty list
    where nothing is missing.
    """

    question: str = dspy.InputField()
    known: list[str] = dspy.InputField(desc="sub-questions asked so far, with their answers")
    at_most: int = dspy.InputField(desc="how many sub-questions to ask at most")
    questions: list[str] = dspy.OutputField(desc="new sub-questions", max_length=10)


class SubAnswer(dspy.Signature):
    """Answer the question from the evidence in a few words, or reply "unknown" where the evidence does not tell."""

    evidence: list[str] = dspy.InputField()
    question: str = dspy.InputField()
    answer: str = dspy.OutputField(desc="a few words")


class FinalAnswer(dspy.Signature):
    """Answer the question from what is known and the evidence. Give the answer alone, as short as possible."""

    evidence: list[str] = dspy.InputField()
    question: str = dspy.InputField()
    known: list[str] = dspy.InputField(desc="sub-questions with their answers")
    rule: str = dspy.InputField(desc="form of the answer")
    answer_type: str = dspy.InputField(desc="kind of answer")
    answer: str = dspy.OutputField(desc="the answer alone, at most a few words")


class DirectAnswer(dspy.Signature):
    """Answer the question from what you know. Give the answer alone, as short as possible."""

    question: str = dspy.InputField()
    rule: str = dspy.InputField(desc="form of the answer")
    answer_type: str = dspy.InputField(desc="kind of answer")
    answer: str = dspy.OutputField(desc="the answer alone, at most a few words")


class FinalChoice(dspy.Signature):
    """Choose the option that answers the question.

    A call narrows ``choice`` down to the letters, or to the texts, of its own question's options (see
    :func:`medhop_dspy.pipelines.conclude.choose`).
    """

    evidence: list[str] = dspy.InputField()
    question: str = dspy.InputField()
    known: list[str] = dspy.InputField(desc="facts found so far")
    options: list[str] = dspy.InputField(desc="each behind its letter, or its text alone")
    choice: str = dspy.OutputField(desc="the right option")
