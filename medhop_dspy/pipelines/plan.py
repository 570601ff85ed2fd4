"""What a planner's reply may contain: plain Python over the model's words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from medhop_dspy.signatures import PlannedHop

MAX_CONSTRAINTS: Final = 3
_WORD = re.compile(r"[\w#'-]+")
_MIN_WORDS: Final = 4
_OPENING: Final = 3  # "In what year", "On which chromosome"
_SAME: Final = 0.8  # share of common words above which two questions are one
_ASKS: Final = re.compile(
    r"\b(who|whom|whose|what|which|when|where|why|how|is|are|was|were|does|do|did|can|could|has|have|had|will|would"
    r"|should|may)\b",
    re.IGNORECASE,
)


def copied_phrases(phrases: Iterable[str], source: str) -> tuple[str, ...]:
    """The ``phrases`` that stand in ``source`` word for word (case aside), in order, without repeats, three at most."""
    flat = _flat(source)
    kept = dict.fromkeys(p.strip() for p in phrases if p.strip() and f" {_flat(p)} " in f" {flat} ")
    return tuple(kept)[:MAX_CONSTRAINTS]


def sanitised_hops(hops: Iterable[PlannedHop], question: str) -> list[PlannedHop]:
    """The ``hops`` that are questions of their own, in order.

    Dropped are repeats, rephrasings of ``question`` (four fifths of the words in common), and what is no English
    question of at least four words.
    """
    kept: list[PlannedHop] = []
    for hop in hops:
        earlier = [question, *(k.question for k in kept)]
        if _is_question(hop.question) and not any(_similarity(hop.question, e) >= _SAME for e in earlier):
            kept.append(hop)
    return kept


def _is_question(text: str) -> bool:
    words = _WORD.findall(text)
    asks = (text.rstrip().endswith("?") and _ASKS.search(text)) or _ASKS.search(" ".join(words[:_OPENING]))
    return len(words) >= _MIN_WORDS and bool(asks) and text.isprintable()


def _similarity(a: str, b: str) -> float:
    """Jaccard similarity of the sets of words, 0 to 1; a reference such as #1 is a word."""
    left, right = (set(_WORD.findall(t.casefold())) for t in (a, b))
    return len(left & right) / len(left | right) if left | right else 1.0


def _flat(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))
