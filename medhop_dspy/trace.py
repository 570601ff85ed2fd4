"""Frozen records of what happened to one question, with a JSON round trip."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

CheckName = Literal["format", "self_reference", "type", "grounding", "quote"]
Judge = Literal["python", "model"]


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk of a document, as stored and as retrieved.

    Attributes:
        id: Unique in an index, ``{doc_id}#{number}``, numbers from 0.
        doc_id: The document that it was cut from.
        title: Title of the document.
        url: Link to the document, or the empty string.
        text: The chunk's own text, without the title.
        score: Higher is better; what it means depends on who ranked last
            (cosine similarity, MaxSim or cross-encoder probability). 0.0 when unranked.
    """

    id: str
    doc_id: str
    title: str
    url: str
    text: str
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one or more LM calls. ``cached_tokens`` is part of ``prompt_tokens``."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
        )

    @property
    def computed_tokens(self) -> int:
        """Prompt tokens that the server had to read, that is, not from its prefix cache."""
        return self.prompt_tokens - self.cached_tokens

    @property
    def cached_share(self) -> float:
        """Share of the prompt tokens that came from the prefix cache, 0.0 to 1.0."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else 0.0


@dataclass(frozen=True, slots=True)
class LMCall:
    """One request to the model server, successful or not.

    Attributes:
        usage: Zero where the server did not answer.
        seconds: Wall time of the request.
        finish_reason: ``stop``, ``length`` or what the server said; empty on error.
        error: Empty, or the class name and message of the error.
    """

    usage: Usage
    seconds: float
    finish_reason: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Hop:
    """One sub-question and what became of it.

    Attributes:
        question: The sub-question as asked.
        type: Hop answer type, one of ``signatures.HopType``.
        answer: The extracted answer, empty while unresolved.
        locked: Whether the answer is specific enough to steer later retrieval.
        attempts: How often it was asked.
        reason: Why the last answer was refused, empty if it was not.
    """

    question: str
    type: str
    answer: str = ""
    locked: bool = False
    attempts: int = 0
    reason: str = ""

    @property
    def resolved(self) -> bool:
        """Whether the hop has an answer."""
        return bool(self.answer)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one check of a draft, and who decided it."""

    check: CheckName
    passed: bool
    by: Judge
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One round of draft and validation; round 0 is the first, the rest are repairs."""

    round: int
    queries: tuple[str, ...]
    passage_ids: tuple[str, ...]
    draft: str
    verdicts: tuple[Verdict, ...]
    repair_query: str = ""

    @property
    def passed(self) -> bool:
        """Whether there was a draft and every check passed."""
        return bool(self.draft) and all(v.passed for v in self.verdicts)


@dataclass(frozen=True, slots=True)
class Failure:
    """A step that failed without ending the question, with its reason."""

    step: str
    reason: str


@dataclass(frozen=True, slots=True)
class SearchRecord:
    """One search through the knowledge graph.

    Attributes:
        queries: The query strings.
        entities: Names that it started from in the graph.
        graph_used: False where the graph had nothing to start from, so that the vector index served alone.
        passage_ids: What was found, best first.
    """

    queries: tuple[str, ...]
    entities: tuple[str, ...]
    graph_used: bool
    passage_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """Everything that happened to one question, in order. ``searches`` are those through a graph."""

    question: str
    strategy: str = ""
    answer_type: str = ""
    constraints: tuple[str, ...] = ()
    expansion: tuple[str, ...] = ()
    hops: tuple[Hop, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    calls: tuple[LMCall, ...] = ()
    failures: tuple[Failure, ...] = ()
    searches: tuple[SearchRecord, ...] = ()
    seconds: float = 0.0

    @property
    def usage(self) -> Usage:
        """Tokens of all calls together."""
        return sum((c.usage for c in self.calls), Usage())

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, dicts, strings and numbers, ready for ``json.dumps``."""
        return asdict(self)

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Trace:
        """Inverse of :meth:`to_dict`; accepts what ``json.loads`` gives back."""
        return cls(
            question=state["question"],
            strategy=state["strategy"],
            answer_type=state["answer_type"],
            constraints=tuple(state["constraints"]),
            expansion=tuple(state["expansion"]),
            hops=tuple(Hop(**h) for h in state["hops"]),
            attempts=tuple(
                Attempt(
                    round=a["round"],
                    queries=tuple(a["queries"]),
                    passage_ids=tuple(a["passage_ids"]),
                    draft=a["draft"],
                    verdicts=tuple(Verdict(**v) for v in a["verdicts"]),
                    repair_query=a["repair_query"],
                )
                for a in state["attempts"]
            ),
            calls=tuple(LMCall(**{**c, "usage": Usage(**c["usage"])}) for c in state["calls"]),
            failures=tuple(Failure(**f) for f in state["failures"]),
            searches=tuple(
                SearchRecord(tuple(s["queries"]), tuple(s["entities"]), s["graph_used"], tuple(s["passage_ids"]))
                for s in state.get("searches", ())  # older records have none
            ),
            seconds=state["seconds"],
        )
