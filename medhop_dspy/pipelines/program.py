"""What every question-answering program shares: one entry point, two ways to call it, one Prediction out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import dspy

from medhop_dspy import saving, signatures
from medhop_dspy.adapter import EvidenceFirstAdapter
from medhop_dspy.errors import SettingsError
from medhop_dspy.graph.retriever import GraphRetriever
from medhop_dspy.lm.engine import record_calls
from medhop_dspy.pipelines.concurrency import drive
from medhop_dspy.pipelines.evidence import sources
from medhop_dspy.pipelines.run import Run, checked_options, checked_question

if TYPE_CHECKING:
    from pathlib import Path

    from medhop_dspy.retrieval.retriever import Retriever
    from medhop_dspy.settings import Settings
    from medhop_dspy.trace import Passage, Trace


# Settings that a retriever with a graph has put to use when it was opened.
_OF_GRAPH_SEARCH: Final = ("graph_scorer", "damping", "link_floor", "top_entities", "candidates")


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
    ``long_answer``, ``lm_calls``, ``usage``, ``searches`` (through a graph) and ``trace``.

    With ``options={"A": "text", ...}`` the ``answer`` is one of their letters, or None where the model names none.
    Options are read in the last step only; no search sees them.

    Raises:
        InputError: the question is blank, has no letters or more than 5,000 characters; or the options are unusable.
        ServerError: the model server is down or refused a request.
        StoreError: the index or the graph cannot be searched.
        SettingsError: on construction, if ``settings.retriever`` asks for a graph and ``retriever`` has none, or one
            that was opened with other settings.
    """

    name: ClassVar[str]
    """Key of :data:`medhop_dspy.pipelines.registry.PROGRAMS`."""

    overrides: ClassVar[Mapping[str, Any]] = {}
    """Settings that make the program what it is, whatever else is set."""

    made_for: ClassVar[Literal["dense", "graph", "hybrid"]] = "dense"
    """``settings.retriever`` where that is None."""

    def __init__(
        self, retriever: Retriever | GraphRetriever, settings: Settings, adapter: dspy.Adapter | None = None
    ) -> None:
        super().__init__()
        self.settings = self.adjusted(settings)
        self.retriever = _fitting(retriever, self.settings)
        self.adapter = adapter or EvidenceFirstAdapter()
        self.choose = dspy.Predict(signatures.FinalChoice)

    @classmethod
    def adjusted(cls, settings: Settings) -> Settings:
        """``settings`` as the program uses them, and as its retriever must be opened; ``retriever`` is never None."""
        return settings.replace(**{"retriever": settings.retriever or cls.made_for, **cls.overrides})

    @classmethod
    @abstractmethod
    def max_lm_calls(cls, settings: Settings) -> int:
        """An upper bound on the LM calls of one question, HTTP retries aside."""

    def forward(self, question: str, options: Mapping[str, str] | None = None) -> dspy.Prediction:
        """Answer ``question``."""
        with dspy.context(adapter=self.adapter):
            return drive(self._recorded(question, options, blocking=True))

    async def aforward(self, question: str, options: Mapping[str, str] | None = None) -> dspy.Prediction:
        """Answer ``question`` without blocking the event loop."""
        with dspy.context(adapter=self.adapter):
            return await self._recorded(question, options, blocking=False)

    def save(self, path: Path | str, **facts: Any) -> None:  # noqa: ANN401
        """Write the program as JSON; ``facts`` join its manifest (see :func:`medhop_dspy.saving.save`)."""
        saving.save(self, path, facts=facts)

    def load(self, path: Path | str) -> None:
        """Put a saved state into this program (see :func:`medhop_dspy.saving.restore`)."""
        saving.restore(self, saving.read(path))

    async def _recorded(self, question: str, options: Mapping[str, str] | None, *, blocking: bool) -> dspy.Prediction:
        with record_calls() as calls:
            run = Run(checked_question(question), self.settings, blocking, calls, checked_options(options))
            draft, validated, quote = await self._answer(run)
            return await self._prediction(run, draft, validated=validated, quote=quote)

    @abstractmethod
    async def _answer(self, run: Run) -> tuple[str, bool, str]:
        """The last draft, whether it passed every check, and the sentence that supports it.

        Of a question with options the draft is a letter, or empty.
        """

    async def _finish(self, run: Run, draft: str) -> str:
        """The form in which ``draft`` is reported."""
        return draft

    async def _prediction(self, run: Run, draft: str, *, validated: bool, quote: str) -> dspy.Prediction:
        reported = validated or self.settings.unvalidated == "draft"
        answer: str | None = draft or None
        if not run.options:
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
            searches=trace.searches,
            trace=trace,
        )


def _fitting(retriever: Retriever | GraphRetriever, settings: Settings) -> Retriever | GraphRetriever:
    """``retriever`` searching as ``settings.retriever`` says, which is not None."""
    wanted = settings.retriever
    if isinstance(retriever, GraphRetriever):
        if wanted == "dense":
            return retriever.dense
        for name in _OF_GRAPH_SEARCH:
            opened, asked = getattr(retriever.settings, name), getattr(settings, name)
            if opened != asked:
                raise SettingsError(
                    f"{name} is {asked!r}, the retriever was opened with {opened!r}",
                    hint="Open the retriever with the settings of the program.",
                )
        return retriever if retriever.mode == wanted else retriever.in_mode(wanted)
    if wanted != "dense":
        raise SettingsError(
            f"retriever is {wanted!r}, but the {type(retriever).__name__} given has no graph",
            hint="Open it with medhop_dspy.open_retriever and the program's `adjusted` settings; `medhop graph build` "
            "makes the graph.",
        )
    return retriever


def _long_answer(answer: str | None, quote: str, evidence: Sequence[Passage]) -> str:
    """Answer, quote and where it stands in words, or all that was read; the empty string without an answer."""
    if not answer:
        return ""
    quoted = sources(quote, evidence)
    named = dict.fromkeys(f"{p.title} ({p.url})" if p.url else p.title for p in quoted or evidence)
    parts = [
        f"{answer}.",
        f'Evidence: "{quote}"' if quote else "",
        f"{'Source' if quoted else 'Passages read'}: {'; '.join(named)}." if named else "",
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
