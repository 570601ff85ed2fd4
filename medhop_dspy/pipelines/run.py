"""The state of one question, and the two ways to drive a program: blocking and awaited.

A program is written once, as a coroutine over :class:`Run`. In blocking mode no await in it ever suspends, so
:func:`drive` runs it to its end without an event loop.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from dspy.utils.exceptions import AdapterParseError

from medhop_dspy.errors import InputError, ReplyError
from medhop_dspy.pipelines.evidence import arrange
from medhop_dspy.pipelines.queries import resolve_references
from medhop_dspy.trace import Attempt, Failure, Hop, LMCall, Passage, Trace

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    import dspy

    from medhop_dspy.retrieval.retriever import Retriever
    from medhop_dspy.settings import Settings

T = TypeVar("T")
MAX_QUESTION = 2000  # characters


@dataclass
class Run:
    """What happened to one question so far. Made anew for every question; nothing stays on the program."""

    question: str
    settings: Settings
    blocking: bool
    calls: Sequence[LMCall] = ()
    reduced: str = ""  # the question with #1, #2 ... for what the hops find; empty: the question itself
    strategy: str = ""
    answer_type: str = ""
    constraints: tuple[str, ...] = ()
    expansion: tuple[str, ...] = ()
    hops: list[Hop] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    shown: list[Passage] = field(default_factory=list)
    best: Passage | None = None  # first of the last search
    asked: int = 0
    started: float = field(default_factory=time.perf_counter)

    def asked_question(self) -> str:
        """The question with what the hops found put in, as far as all references are resolved."""
        resolved = resolve_references(self.reduced, self.hops)
        return resolved if resolved and "#" not in resolved else self.question

    async def ask(self, step: str, predictor: dspy.Module, **inputs: Any) -> dspy.Prediction | None:  # noqa: ANN401
        """One predictor call; None, with the reason kept in ``failures``, where the reply is unusable.

        Raises:
            ServerError: the server is down, or refused the request; the question ends.
        """
        self.asked += 1
        try:
            return predictor(**inputs) if self.blocking else await predictor.acall(**inputs)
        except AdapterParseError as error:
            self.failures.append(Failure(step, _parse_reason(error)))
        except ReplyError as error:
            self.failures.append(Failure(step, str(error)))
        return None

    async def search(
        self, retriever: Retriever, queries: Sequence[str], rerank_query: str, *, k: int | None = None
    ) -> list[Passage]:
        """Search and put the result behind what is shown already (see :func:`arrange`)."""
        first = min(self.settings.first_evidence or self.settings.evidence, self.settings.evidence)
        wanted = k or (self.settings.hop_evidence if self.shown else first)
        if self.blocking:
            ranked = retriever.search(queries, wanted, rerank_query)
        else:
            ranked = await asyncio.to_thread(retriever.search, queries, wanted, rerank_query)
        self.best = ranked[0] if ranked else None
        self.shown = arrange(self.shown, ranked, self.settings.evidence, self.settings.context_tokens)
        return self.shown

    def trace(self) -> Trace:
        """Everything so far, frozen."""
        return Trace(
            question=self.question,
            strategy=self.strategy,
            answer_type=self.answer_type,
            constraints=self.constraints,
            expansion=self.expansion,
            hops=tuple(self.hops),
            attempts=tuple(self.attempts),
            calls=tuple(self.calls),
            failures=tuple(self.failures),
            seconds=time.perf_counter() - self.started,
        )


def drive(program: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never suspends.

    Raises:
        RuntimeError: it did suspend, that is, it awaited something real in blocking mode.
    """
    try:
        program.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    program.close()
    raise RuntimeError("a program suspended in blocking mode; await only Run's methods in it")


def checked_question(question: str) -> str:
    """``question`` without surrounding white space.

    Raises:
        InputError: it is not a text, is blank, has no letter, is longer than 2,000 characters, or is not Unicode.
    """
    if not isinstance(question, str):
        raise InputError(f"a question must be a text, not {type(question).__name__}")
    question = question.strip()
    if not question:
        raise InputError("the question is empty")
    if not any(c.isalpha() for c in question):
        raise InputError(f"the question has no letters: {question[:40]!r}")
    if any("\ud800" <= c <= "\udfff" for c in question):
        raise InputError("the question holds half of a surrogate pair, which is no character")
    if len(question) > MAX_QUESTION:
        raise InputError(
            f"the question has {len(question):,} characters, at most {MAX_QUESTION:,} are read",
            hint="Ask one question; put background text into the corpus.",
        )
    return question


def _parse_reason(error: AdapterParseError) -> str:
    reply = str(error.lm_response).strip()
    return f"{_first_line(error)} (reply: {reply[:120]!r})" if reply else "empty reply"


def _first_line(error: AdapterParseError) -> str:
    cause = error.__cause__
    return str(cause if cause else error).splitlines()[0]
