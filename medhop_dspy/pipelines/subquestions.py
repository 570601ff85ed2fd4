"""Programs in rounds of sub-questions that are answered side by side, and one answer from what they found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final

import dspy

from medhop_dspy import answers, signatures
from medhop_dspy.answers import AnswerType, Strategy
from medhop_dspy.pipelines.conclude import Concluding
from medhop_dspy.pipelines.decompose import decompose
from medhop_dspy.pipelines.evidence import line
from medhop_dspy.pipelines.queries import resolve_references
from medhop_dspy.pipelines.run import printable
from medhop_dspy.signatures import HopType
from medhop_dspy.trace import Hop

if TYPE_CHECKING:
    from medhop_dspy.graph.retriever import GraphRetriever
    from medhop_dspy.pipelines.run import Run
    from medhop_dspy.retrieval.retriever import Retriever
    from medhop_dspy.settings import Settings
    from medhop_dspy.trace import Passage

_REFERENCE: Final = re.compile(r"#\d")


class SubQuestioning(Concluding):
    """``settings.rounds`` rounds of at most ``settings.sub_questions`` sub-questions, then one answer.

    The first round decomposes the question, the later ones ask for what the history leaves open. With ``plan_by``
    rules the words of the question are taken apart instead (:mod:`medhop_dspy.pipelines.decompose`): a round asks
    what earlier rounds have made answerable. The cost is linear in the number of rounds; a round without a new
    sub-question ends them where ``stop_early`` is on.
    """

    strategy = Strategy.MULTIHOP
    final = signatures.FinalAnswer

    def __init__(
        self, retriever: Retriever | GraphRetriever, settings: Settings, adapter: dspy.Adapter | None = None
    ) -> None:
        super().__init__(retriever, settings, adapter)
        self.ask_sub_questions = dspy.Predict(signatures.SubQuestions)
        if self.settings.rounds > 1:
            self.ask_follow_up = dspy.Predict(signatures.FollowUpQuestions)
        self.answer_sub_question = dspy.Predict(signatures.SubAnswer)

    @classmethod
    def max_lm_calls(cls, settings: Settings) -> int:
        """In each round the sub-questions, where the model asks them, and their answers; then one answer."""
        adjusted = cls.adjusted(settings)
        planning = 1 if adjusted.plan_by == "model" else 0
        return adjusted.rounds * (planning + adjusted.sub_questions * cls._calls_each(adjusted)) + 1

    @classmethod
    def _calls_each(cls, settings: Settings) -> int:
        """LM calls of one sub-question."""
        return 1

    async def _collect(self, run: Run) -> Sequence[str]:
        by_rules = run.settings.plan_by == "rules"
        if by_rules:
            run.hops = _taken_apart(run.question, run.settings.max_hops)
        for number in range(run.settings.rounds):
            places = _ready(run, number) if by_rules else await self._asked(run, number)
            if not places and run.settings.stop_early:
                break
            answered = await run.together([partial(self._resolve, run.hops[place]) for place in places])
            for place, hop in zip(places, answered, strict=True):
                run.hops[place] = hop
        return [hop.question for hop in run.hops if hop.attempts]

    async def _asked(self, run: Run, number: int) -> list[int]:
        """Places of the sub-questions that the model asks in this round: new ones, at the end of ``run.hops``."""
        most = run.settings.sub_questions
        if number:
            known = [f"{hop.question} {hop.answer or 'unknown'}" for hop in run.hops]
            reply = await run.ask("follow_up", self.ask_follow_up, question=run.question, known=known, at_most=most)
        else:
            reply = await run.ask("sub_questions", self.ask_sub_questions, question=run.question, at_most=most)
        new = _new(reply.questions if reply else (), run.hops)[:most]
        if not new and not run.hops:
            new = [run.question]  # the least that can be asked
        start = len(run.hops)
        run.hops += [Hop(question, HopType.OTHER.value) for question in new]
        return list(range(start, len(run.hops)))

    async def _resolve(self, hop: Hop, run: Run) -> Hop:
        """``hop`` with its answer, or the reason why it has none."""
        shown = await self._search(run, hop.question)
        evidence = [line(p) for p in shown]
        reply = await run.ask("sub_answer", self.answer_sub_question, evidence=evidence, question=hop.question)
        asked = replace(hop, attempts=hop.attempts + 1)
        if reply is None:
            return replace(asked, reason=run.failures[-1].reason)
        answer = answers.shorten(reply.answer, AnswerType.OTHER)
        if answers.is_placeholder(answer) or answers.is_generic(answer):
            return replace(asked, reason=f"not specific: {reply.answer[:60]!r}")
        return replace(asked, answer=answer)

    async def _search(self, run: Run, question: str) -> Sequence[Passage]:
        return await run.search(self.retriever, [question], question, k=run.settings.hop_evidence)


class DecompRAG(SubQuestioning):
    """At most four sub-questions, all at once, over BM25 and dense search fused 0.4 to 0.6; then composition."""

    name = "decomp_rag"
    overrides: ClassVar = {**SubQuestioning.overrides, "retriever": "dense", "rounds": 1, "sub_questions": 4}
    fusion: ClassVar = {"dense": 0.6, "lexical": 0.4}


class IMedRAG(SubQuestioning):
    """Follow-up questions over rounds, each answered from the fused rankings of MedRAG."""

    name = "imedrag"
    overrides: ClassVar = {**SubQuestioning.overrides, "retriever": "dense"}
    fusion: ClassVar = {"dense": 1, "lexical": 1, "reranked": 1}


def _taken_apart(question: str, max_hops: int) -> list[Hop]:
    """The bridging hops of ``question`` and, last, what is left of it, all still to be asked."""
    planned = decompose(question, max_hops)
    hops = [Hop(hop.question, hop.type.value) for hop in planned.hops]
    return [*hops, Hop(planned.question, HopType.OTHER.value)]


def _ready(run: Run, number: int) -> list[int]:
    """Places of the hops that can be asked in round ``number``, their references put in.

    What is left of the question is asked in the last round at the latest, and where nothing else can be: with the
    question as it stands, if a hop that it refers to has no answer.
    """
    most, last = run.settings.sub_questions, len(run.hops) - 1
    open_hops = {n: resolve_references(h.question, run.hops) for n, h in enumerate(run.hops) if not h.attempts}
    asked = {_key(hop.question) for hop in run.hops if hop.attempts}
    places = [n for n, text in open_hops.items() if not _REFERENCE.search(text) and _key(text) not in asked]
    if last in open_hops and last not in places and (number == run.settings.rounds - 1 or not places):
        open_hops[last] = run.question
        places = [*places[: most - 1], last]
    for n in places[:most]:
        run.hops[n] = replace(run.hops[n], question=open_hops[n])
    return places[:most]


def _new(questions: Iterable[str], hops: Sequence[Hop]) -> list[str]:
    """The ``questions`` that are text and were not asked yet, in order, each once."""
    known = {_key(hop.question) for hop in hops} | {""}
    by_key: dict[str, str] = {}
    for text in printable(questions):
        by_key.setdefault(_key(text), text)
    return [text for key, text in by_key.items() if key not in known]


def _key(question: str) -> str:
    """What two spellings of one question have in common."""
    return " ".join(re.findall(r"\w+", question.casefold()))
