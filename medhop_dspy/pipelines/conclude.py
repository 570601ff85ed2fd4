"""The last step of a program: one answer, or one letter where the question comes with options."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import dspy

from medhop_dspy import answers, signatures
from medhop_dspy.answers import AnswerType, Strategy
from medhop_dspy.pipelines.evidence import line
from medhop_dspy.pipelines.program import Program
from medhop_dspy.replies import held_to
from medhop_dspy.trace import Attempt, Failure

if TYPE_CHECKING:
    from medhop_dspy.graph.retriever import GraphRetriever
    from medhop_dspy.pipelines.run import Run
    from medhop_dspy.retrieval.retriever import Retriever
    from medhop_dspy.settings import Settings


class Concluding(Program):
    """A program that collects evidence and known facts, then answers once; nothing is validated.

    A subclass says what it collects. Its answer is reported as it is.
    """

    fusion: ClassVar[Mapping[str, float] | None] = None
    """Weights of the rankings that it searches by, see :meth:`Retriever.fused`; None: searches as the settings say."""

    overrides: ClassVar[Mapping[str, Any]] = {"unvalidated": "draft"}
    strategy: ClassVar[Strategy] = Strategy.DIRECT
    final: ClassVar[type[dspy.Signature]] = signatures.AnswerDraft

    def __init__(
        self, retriever: Retriever | GraphRetriever, settings: Settings, adapter: dspy.Adapter | None = None
    ) -> None:
        super().__init__(retriever, settings, adapter)
        if self.fusion is not None:
            self.retriever = self.retriever.dense.fused(**self.fusion)
        self.draft = dspy.Predict(self.final)

    @classmethod
    def max_lm_calls(cls, settings: Settings) -> int:
        """One answer."""
        return 1

    @abstractmethod
    async def _collect(self, run: Run) -> Sequence[str]:
        """Put passages on show and sub-questions into ``run.hops``; returns the query strings."""

    def _known(self, run: Run) -> list[str]:
        """What the last step is told besides the passages."""
        return [f"{hop.question} {hop.answer}" for hop in run.hops if hop.resolved]

    async def _answer(self, run: Run) -> tuple[str, bool, str]:
        answer_type = answers.type_from_question(run.question) or AnswerType.OTHER
        run.strategy, run.answer_type = self.strategy.value, answer_type.value
        searched = await self._collect(run)
        evidence = [line(p) for p in run.shown]
        if run.options:
            draft, quote = await choose(run, self.choose, self._known(run)), None
        else:
            draft = await self._draft(run, answer_type, evidence)
            quote = answers.supporting_quote(draft, run.question, evidence, answer_type) if draft else None
        run.attempts.append(Attempt(0, tuple(searched), tuple(p.id for p in run.shown), draft, ()))
        return draft, False, quote.text if quote else ""

    async def _draft(self, run: Run, answer_type: AnswerType, evidence: list[str]) -> str:
        inputs = {
            "evidence": evidence,
            "question": run.question,
            "known": self._known(run),
            "constraints": [],
            "rule": answers.ANSWER_TYPES[answer_type].format_rule,
            "answer_type": answer_type.value,
        }
        reply = await run.ask("draft", self.draft, **{n: v for n, v in inputs.items() if n in self.final.input_fields})
        return answers.shorten(reply.answer, answer_type) if reply else ""


async def choose(run: Run, predictor: dspy.Predict, known: Sequence[str]) -> str:
    """The letter of one of ``run.options``, or the empty string where the reply names none.

    The reply is held to exactly these letters. With ``readings`` the options are shown without letters and the reply is
    held to their texts, since small models have a favourite letter. Where nothing was searched for, the prompt speaks
    of no evidence.
    """
    signature = predictor.signature
    inputs: dict[str, Any] = {"question": run.question, "known": list(known)}
    if run.shown:
        inputs["evidence"] = [line(p) for p in run.shown]
    else:
        signature = signature.delete("evidence")
    if run.settings.readings:
        return await _by_text(run, predictor, signature=signature, **inputs)
    signature = signature.with_updated_fields("choice", type_=Literal[tuple(run.options)])
    inputs["options"] = [f"{letter}: {text}" for letter, text in run.options.items()]
    reply = await run.ask("choose", predictor, signature=signature, **inputs)
    return str(reply.choice) if reply else ""


async def _by_text(run: Run, predictor: dspy.Predict, **inputs: Any) -> str:  # noqa: ANN401  (those of the predictor)
    letters: dict[str, str] = {}  # of two options with one text, the first counts
    for letter, text in run.options.items():
        letters.setdefault(" ".join(text.split()), letter)
    texts = list(letters)
    reply = await run.ask("choose", predictor, options=texts, config=held_to(texts), **inputs)
    if reply and reply.choice not in letters:
        run.failures.append(Failure("choose", f"choice is {reply.choice!r}, not the text of an option"))
    return letters.get(reply.choice, "") if reply else ""
