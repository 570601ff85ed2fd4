"""What every question-answering program shares: one entry point, two ways to call it, one Prediction out."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar

import dspy

from medhop_dspy import saving
from medhop_dspy.adapter import EvidenceFirstAdapter
from medhop_dspy.lm.engine import record_calls
from medhop_dspy.pipelines.run import Run, checked_question, drive

if TYPE_CHECKING:
    from pathlib import Path

    from medhop_dspy.retrieval.retriever import Retriever
    from medhop_dspy.settings import Settings
    from medhop_dspy.trace import Trace


class Answer(dspy.Prediction):
    """A Prediction that ``dspy.Evaluate`` can save: as a dict it holds JSON values only, see :func:`as_record`."""

    def toDict(self) -> dict[str, Any]:  # noqa: N802  (DSPy's name)
        """See :func:`as_record`."""
        return as_record(self)


class Program(dspy.Module):
    """A program over one retriever.

    Called as ``program(question=...)`` or ``await program.acall(question=...)`` inside ``dspy.context(lm=...)``, it
    returns a ``dspy.Prediction`` with ``answer`` (str, or None where nothing passed the checks and ``unvalidated`` is
    ``null``), ``draft``,
    ``validated``, ``strategy``, ``answer_type``, ``hops``, ``evidence`` (passages in prompt order), ``quote``,
    ``long_answer``, ``lm_calls``, ``usage`` and ``trace``.

    Raises:
        InputError: the question is blank, has no letters or more than 2,000 characters.
        ServerError: the model server is down or refused a request.
        StoreError: the index cannot be searched.
    """

    name: ClassVar[str]
    """Key of :data:`medhop_dspy.pipelines.registry.PROGRAMS`."""

    def __init__(self, retriever: Retriever, settings: Settings, adapter: dspy.Adapter | None = None) -> None:
        super().__init__()
        self.retriever = retriever
        self.settings = settings
        self.adapter = adapter or EvidenceFirstAdapter()

    def forward(self, question: str) -> dspy.Prediction:
        """Answer ``question``."""
        with dspy.context(adapter=self.adapter):
            return drive(self._recorded(question, blocking=True))

    async def aforward(self, question: str) -> dspy.Prediction:
        """Answer ``question`` without blocking the event loop."""
        with dspy.context(adapter=self.adapter):
            return await self._recorded(question, blocking=False)

    def save(self, path: Path | str, **facts: Any) -> None:  # noqa: ANN401
        """Write the program as JSON; ``facts`` join its manifest (see :func:`medhop_dspy.saving.save`)."""
        saving.save(self, path, facts=facts)

    def load(self, path: Path | str) -> None:
        """Put a saved state into this program (see :func:`medhop_dspy.saving.restore`)."""
        saving.restore(self, saving.read(path))

    async def _recorded(self, question: str, *, blocking: bool) -> dspy.Prediction:
        with record_calls() as calls:
            run = Run(checked_question(question), self.settings, blocking, calls)
            draft, validated, quote = await self._answer(run)
            return await self._prediction(run, draft, validated=validated, quote=quote)

    @abstractmethod
    async def _answer(self, run: Run) -> tuple[str, bool, str]:
        """The last draft, whether it passed every check, and the sentence that supports it."""

    async def _finish(self, run: Run, draft: str) -> str:
        """The form in which ``draft`` is reported."""
        return draft

    async def _prediction(self, run: Run, draft: str, *, validated: bool, quote: str) -> dspy.Prediction:
        reported = validated or self.settings.unvalidated == "draft"
        answer = await self._finish(run, draft) if draft and reported else None
        trace = run.trace()
        return Answer(
            answer=answer,
            draft=draft,
            validated=validated,
            strategy=trace.strategy,
            answer_type=trace.answer_type,
            hops=trace.hops,
            evidence=tuple(run.shown),
            quote=quote,
            long_answer=_long_answer(answer, quote, run.shown),
            lm_calls=run.asked,
            usage=trace.usage,
            trace=trace,
        )


def _long_answer(answer: str | None, quote: str, evidence: Any) -> str:  # noqa: ANN401
    """Answer, quote and sources in words; the empty string without an answer."""
    if not answer:
        return ""
    sources = dict.fromkeys(f"{p.title} ({p.url})" if p.url else p.title for p in evidence)
    parts = [
        f"{answer}.",
        f'Evidence: "{quote}"' if quote else "",
        f"Sources: {'; '.join(sources)}." if sources else "",
    ]
    return " ".join(filter(None, parts))


def as_record(prediction: dspy.Prediction) -> dict[str, Any]:
    """The prediction as plain JSON values, in the order of the documentation."""
    trace: Trace = prediction.trace
    return {
        "answer": prediction.answer,
        "draft": prediction.draft,
        "validated": prediction.validated,
        "strategy": prediction.strategy,
        "answer_type": prediction.answer_type,
        "hops": [asdict(h) for h in prediction.hops],
        "evidence": [
            {"id": p.id, "title": p.title, "url": p.url, "text": p.text, "score": p.score} for p in prediction.evidence
        ],
        "quote": prediction.quote,
        "long_answer": prediction.long_answer,
        "lm_calls": prediction.lm_calls,
        "usage": asdict(prediction.usage),
        "seconds": round(trace.seconds, 3),
        "trace": trace.to_dict(),
    }
