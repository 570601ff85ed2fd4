"""One search, one draft: the baseline that shows what hops and checks are worth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dspy

from medhop_dspy import answers
from medhop_dspy.answers import AnswerType, Strategy
from medhop_dspy.pipelines.evidence import line
from medhop_dspy.pipelines.program import Program
from medhop_dspy.signatures import AnswerDraft
from medhop_dspy.trace import Attempt

if TYPE_CHECKING:
    from medhop_dspy.pipelines.run import Run
    from medhop_dspy.retrieval.retriever import Retriever
    from medhop_dspy.settings import Settings


class SinglePass(Program):
    """Retrieve with the question, draft once, report the draft; nothing is validated."""

    name = "single_pass"

    def __init__(self, retriever: Retriever, settings: Settings, adapter: dspy.Adapter | None = None) -> None:
        super().__init__(retriever, settings.replace(unvalidated="draft"), adapter)
        self.draft = dspy.Predict(AnswerDraft)

    async def _answer(self, run: Run) -> tuple[str, bool, str]:
        answer_type = answers.type_from_question(run.question) or AnswerType.OTHER
        run.strategy, run.answer_type = Strategy.DIRECT.value, answer_type.value
        evidence = [line(p) for p in await run.search(self.retriever, [run.question], run.question)]
        reply = await run.ask(
            "draft",
            self.draft,
            evidence=evidence,
            question=run.question,
            known=[],
            constraints=[],
            rule=answers.ANSWER_TYPES[answer_type].format_rule,
            answer_type=answer_type.value,
        )
        draft = answers.shorten(reply.answer, answer_type) if reply else ""
        run.attempts.append(Attempt(0, (run.question,), tuple(p.id for p in run.shown), draft, ()))
        quote = answers.supporting_quote(draft, run.question, evidence, answer_type) if draft else None
        return draft, False, quote.text if quote else ""
