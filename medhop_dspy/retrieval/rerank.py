"""The one verb that orders a pool of candidates, and the choice of what does it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from medhop_dspy.errors import InputError

if TYPE_CHECKING:
    from medhop_dspy.settings import Settings
    from medhop_dspy.trace import Passage


class Reranker(Protocol):
    """Orders passages by how well they fit a query."""

    def rank(self, query: str, passages: Sequence[Passage]) -> list[Passage]:
        """New records with a score of this ranker, descending, ties in the order given; the input is untouched."""
        ...


class NoReranker:
    """Keeps the order and the scores of the first stage."""

    def rank(self, query: str, passages: Sequence[Passage]) -> list[Passage]:
        """The passages as they came."""
        return list(passages)


def check_query(query: str) -> None:
    """Refuse a query that no passage can fit better than another.

    Raises:
        InputError: if it is blank.
    """
    if not query.strip():
        raise InputError(f"the query to rerank with is blank: {query!r}", hint="Give some text.")


def passage_text(passage: Passage, *, with_title: bool) -> str:
    """What a model reads of a passage."""
    return f"{passage.title}: {passage.text}" if with_title and passage.title else passage.text


def by_score(passages: Sequence[Passage], scores: Sequence[float]) -> list[Passage]:
    """New records with ``scores`` (one each, finite), descending, ties in the order given."""
    scored = [replace(p, score=float(s)) for p, s in zip(passages, scores, strict=True)]
    return sorted(scored, key=lambda p: -p.score)


def make_reranker(settings: Settings) -> Reranker:
    """The reranker that ``settings.reranker`` names, with its model loaded.

    Raises:
        ArtefactError: if a model file is missing, empty or unusable.
        SettingsError: if FlashRank does not know ``settings.reranker_model``.
    """
    if settings.reranker == "none":
        return NoReranker()
    if settings.reranker == "flashrank":
        from medhop_dspy.retrieval.flashrank_reranker import FlashRankReranker

        return FlashRankReranker(settings.reranker_model, settings.home / "models", with_title=settings.embed_title)
    from medhop_dspy.retrieval.late_interaction import LateInteractionReranker
    from medhop_dspy.retrieval.model_folder import locate_model

    return LateInteractionReranker(locate_model(settings.embedder, settings.home), with_title=settings.embed_title)
