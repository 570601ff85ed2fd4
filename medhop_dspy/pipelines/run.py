"""The state of one question, and the two ways to drive a program: blocking and awaited.

A program is written once, as a coroutine over :class:`Run`. In blocking mode no await in it ever suspends, so
:func:`drive` runs it to its end without an event loop. Steps that do not depend on one another run at the same time
in both modes, see :meth:`Run.together`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

import dspy
from dspy.utils.exceptions import AdapterParseError

from medhop_dspy.errors import InputError, ReplyError
from medhop_dspy.graph.retriever import GraphRetriever, GraphSearch
from medhop_dspy.lm.failures import parse_reason
from medhop_dspy.pipelines.concurrency import in_tasks, in_threads
from medhop_dspy.pipelines.evidence import arrange
from medhop_dspy.pipelines.queries import resolve_references
from medhop_dspy.retrieval.records import has_half_pair
from medhop_dspy.retrieval.retriever import merge
from medhop_dspy.trace import Attempt, Failure, Hop, LMCall, Passage, SearchRecord, Trace

if TYPE_CHECKING:
    from medhop_dspy.settings import Settings

T = TypeVar("T")
MAX_QUESTION = 5000  # characters; case vignettes of examinations have up to 4,700


class Searcher(Protocol):
    """What a search needs of a retriever."""

    def search(self, queries: Sequence[str], k: int, rerank_query: str | None = None) -> list[Passage]:
        """At most ``k`` passages, best first; see :meth:`medhop_dspy.retrieval.retriever.Retriever.search`."""
        ...


@runtime_checkable
class GraphSearcher(Protocol):
    """A retriever that says what a graph had to do with a search; its searches are recorded."""

    def find(
        self,
        queries: Sequence[str],
        k: int,
        rerank_query: str | None = None,
        *,
        entities: Sequence[str] | None = None,
    ) -> GraphSearch:
        """As :meth:`medhop_dspy.graph.retriever.GraphRetriever.find`."""
        ...


@dataclass
class Run:
    """What happened to one question so far. Made anew for every question; nothing stays on the program."""

    question: str
    settings: Settings
    blocking: bool
    calls: Sequence[LMCall] = ()
    options: Mapping[str, str] = field(default_factory=dict)  # letter to text; empty for an open question
    reduced: str = ""  # the question with #1, #2 ... for what the hops find; empty: the question itself
    strategy: str = ""
    answer_type: str = ""
    constraints: tuple[str, ...] = ()
    expansion: tuple[str, ...] = ()
    hops: list[Hop] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    searches: list[SearchRecord] = field(default_factory=list)
    shown: list[Passage] = field(default_factory=list)
    found: list[Passage] = field(default_factory=list)  # by the last search, best first
    asked: int = 0
    started: float = field(default_factory=time.perf_counter)

    @property
    def best(self) -> Passage | None:
        """The first of the last search."""
        return self.found[0] if self.found else None

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
            self.failures.append(Failure(step, parse_reason(error)))
        except ReplyError as error:
            self.failures.append(Failure(step, str(error)))
        return None

    async def search(
        self,
        retriever: Searcher,
        queries: Sequence[str],
        rerank_query: str,
        *,
        k: int | None = None,
        entities: Sequence[str] | None = None,
    ) -> list[Passage]:
        """Search and put the result behind what is shown already (see :func:`arrange`).

        Args:
            retriever: Where to search.
            queries: Query strings.
            rerank_query: What the candidates are ordered by.
            k: Passages; default: ``hop_evidence`` where some are shown already, else ``first_evidence``.
            entities: Names to start from in a graph; none: those that stand in the query strings.
        """
        first = min(self.settings.first_evidence or self.settings.evidence, self.settings.evidence)
        wanted = k or (self.settings.hop_evidence if self.shown else first)
        if isinstance(retriever, GraphSearcher):
            found = await self.threaded(retriever.find, queries, wanted, rerank_query, entities=entities)
            self.found = list(found.passages)
            ids = tuple(p.id for p in found.passages)
            self.searches.append(SearchRecord(tuple(queries), found.entities, found.graph_used, ids))
        else:
            self.found = await self.threaded(retriever.search, queries, wanted, rerank_query)
        self._show(self.found)
        return self.shown

    async def entities(self, predictor: dspy.Module, retriever: Searcher, question: str) -> list[str] | None:
        """Names that a search for ``question`` starts from in a graph, by the model.

        None, so that names of the graph are looked for, where rules do that, where there is no graph, and where the
        model names nothing.
        """
        if self.settings.plan_by == "rules" or not isinstance(retriever, GraphRetriever):
            return None
        reply = await self.ask("entities", predictor, question=question)
        return printable(reply.entities) or None if reply else None

    async def together(self, steps: Sequence[Callable[[Run], Coroutine[Any, Any, T]]]) -> list[T]:
        """The results of steps that do not depend on one another, in their order.

        At most ``settings.slots`` run at once. Each gets a run of its own with nothing on show; what they record and
        find is joined here in the order of the steps, whichever ended first.

        Raises:
            ServerError: from a step, the first in their order; those that have not begun are left out.
        """
        branches = [replace(self, **_emptied()) for _ in steps]
        traces: list[list[Any]] = [[] for _ in steps]

        async def job(number: int) -> T:
            with dspy.context(trace=traces[number]):
                return await steps[number](branches[number])

        jobs = [lambda number=number: job(number) for number in range(len(steps))]
        run_all = in_threads if self.blocking else in_tasks
        results = await run_all(jobs, self.settings.slots)
        for branch, trace in zip(branches, traces, strict=True):
            self.asked += branch.asked
            self.failures += branch.failures
            self.searches += branch.searches
            if dspy.settings.trace is not None:
                dspy.settings.trace.extend(trace)
        self._show(merge([branch.found for branch in branches], self.settings.evidence))
        return results

    async def threaded(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:  # noqa: ANN401
        """``function`` here in blocking mode, else in a thread."""
        return function(*args, **kwargs) if self.blocking else await asyncio.to_thread(function, *args, **kwargs)

    def _show(self, ranked: Sequence[Passage]) -> None:
        self.shown = arrange(self.shown, ranked, self.settings.evidence, self.settings.context_tokens)

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
            searches=tuple(self.searches),
            seconds=time.perf_counter() - self.started,
        )


def checked_question(question: str) -> str:
    """``question`` without surrounding white space.

    Raises:
        InputError: it is not a text, is blank, has no letter, is longer than 5,000 characters, or is not Unicode.
    """
    if not isinstance(question, str):
        raise InputError(f"a question must be a text, not {type(question).__name__}")
    question = question.strip()
    if not question:
        raise InputError("the question is empty")
    if not any(c.isalpha() for c in question):
        raise InputError(f"the question has no letters: {question[:40]!r}")
    if has_half_pair(question):
        raise InputError("the question holds half of a surrogate pair, which is no character")
    if len(question) > MAX_QUESTION:
        raise InputError(
            f"the question has {len(question):,} characters, at most {MAX_QUESTION:,} are read",
            hint="Ask one question; put background text into the corpus.",
        )
    return question


def checked_options(options: Mapping[str, str] | None) -> dict[str, str]:
    """Letter to text without surrounding white space; empty for an open question.

    Raises:
        InputError: it is no mapping of texts, has fewer than two, one is blank or not Unicode, two letters differ in
            case only, or all together have more than 5,000 characters.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping) or not all(isinstance(t, str) for pair in options.items() for t in pair):
        raise InputError(f"options must be a mapping of letters to texts, not {options!r:.80}")
    cleaned = {letter.strip(): text.strip() for letter, text in options.items()}
    if not all(letter and text for letter, text in cleaned.items()):
        raise InputError(f"an option is blank: {dict(options)!r:.200}")
    written = "".join(text for pair in cleaned.items() for text in pair)
    if has_half_pair(written):
        raise InputError(f"an option holds half of a surrogate pair, which is no character: {dict(options)!r:.200}")
    if len(written) > MAX_QUESTION:
        raise InputError(f"the options have {len(written):,} characters, at most {MAX_QUESTION:,} are read")
    if len(cleaned) < 2 or len({letter.casefold() for letter in cleaned}) < len(options):
        raise InputError(
            f"the options have the letters {list(options)!r:.80}, wanted two or more different ones",
            hint='Give them as {"A": "text", "B": "text"}, or none for an open question.',
        )
    return cleaned


def printable(texts: Iterable[str]) -> list[str]:
    """The ``texts`` of a reply that hold something and no control character, white space made single."""
    tidied = (" ".join(text.split()) for text in texts)
    return [text for text in tidied if text and text.isprintable()]


def _emptied() -> dict[str, Any]:
    """What a branch starts without."""
    return {**{name: [] for name in ("hops", "attempts", "failures", "searches", "shown", "found")}, "asked": 0}
