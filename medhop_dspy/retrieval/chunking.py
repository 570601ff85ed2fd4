"""Documents into overlapping windows of characters."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Final

from medhop_dspy.trace import Passage

if TYPE_CHECKING:
    from medhop_dspy.retrieval.corpus import Document

_MARKS: Final = frozenset({"Mn", "Mc", "Me"})  # variation selectors are Mn
_ZERO_WIDTH_JOINER: Final = "\u200d"
_ZERO_WIDTH_NON_JOINER: Final = "\u200c"
# Characters that are no marks by category, yet are drawn into the one before: conjoining Hangul vowels and
# finals, skin tones, and the tags of sub-national flags.
_EXTENDING_RANGES: Final = (
    ("\u1160", "\u11ff"),
    ("\ud7b0", "\ud7fb"),
    ("\U0001f3fb", "\U0001f3ff"),
    ("\U000e0020", "\U000e007f"),
)


def chunk_text(text: str, size: int = 512, overlap: int = 32) -> list[str]:
    """Cut ``text`` into windows of ``size`` characters, neighbours sharing ``overlap``.

    See :func:`chunk_spans` for the rules. An empty text has no window.

    Raises:
        ValueError: unless ``0 <= overlap < size``.
    """
    return [text[start:end] for start, end in chunk_spans(text, size, overlap)]


def chunk_spans(text: str, size: int = 512, overlap: int = 32) -> list[tuple[int, int]]:
    """Half-open character ranges of the windows of ``text``, in order.

    The ranges cover the text without a gap, each ends after its predecessor, and none is longer than ``size``.
    Neighbours share exactly ``overlap`` characters, and all but the last range have ``size``, except where such a
    cut would part a character from its combining marks, variation selectors or joined successors: there a
    range ends earlier or shares less. Only a sequence that is longer than ``size`` on its own is cut.

    Raises:
        ValueError: unless ``0 <= overlap < size``.
    """
    if not 0 <= overlap < size:
        raise ValueError(f"overlap must be at least 0 and below size, got overlap={overlap} and size={size}")
    spans: list[tuple[int, int]] = []
    end = 0
    while end < len(text):
        start, end = _next_span(text, size, overlap, end)
        spans.append((start, end))
    return spans


def chunk_document(document: Document, size: int = 512, overlap: int = 32) -> list[Passage]:
    """Passages of one document, in order, with ids ``{document.id}#{n}`` and ``n`` from 0 without a gap.

    Windows of nothing but white space are left out.

    Raises:
        ValueError: unless ``0 <= overlap < size``.
    """
    chunks = (chunk for chunk in chunk_text(document.text, size, overlap) if chunk.strip())
    return [
        Passage(id=f"{document.id}#{n}", doc_id=document.id, title=document.title, url=document.url, text=chunk)
        for n, chunk in enumerate(chunks)
    ]


def _next_span(text: str, size: int, overlap: int, covered: int) -> tuple[int, int]:
    """The range after one that ended at ``covered``; its end lies behind ``covered``."""
    start = _boundary_from(text, max(covered - overlap, 0), covered)
    end = _boundary_back_from(text, min(start + size, len(text)), covered)
    if end > covered:
        return start, end
    # What follows does not fit behind this much overlap: give up overlap until it does.
    # The search stops past `size`, so that a text of nothing but marks takes linear time.
    end = _boundary_from(text, covered + 1, min(covered + size + 1, len(text)))
    start = _boundary_from(text, min(max(end - size, start), covered), covered)
    return start, min(end, start + size)


def _boundary_from(text: str, position: int, limit: int) -> int:
    """The first place at or after ``position`` where a cut is allowed; ``limit`` if there is none before."""
    while position < limit and _continues(text, position):
        position += 1
    return position


def _boundary_back_from(text: str, position: int, limit: int) -> int:
    """The last place at or before ``position`` where a cut is allowed; ``limit`` if there is none after."""
    while position > limit and _continues(text, position):
        position -= 1
    return position


def _continues(text: str, position: int) -> bool:
    """Whether the character at ``position`` belongs to the one before it."""
    if not 0 < position < len(text):
        return False
    before, char = text[position - 1], text[position]
    return before == _ZERO_WIDTH_JOINER or (
        char in {_ZERO_WIDTH_JOINER, _ZERO_WIDTH_NON_JOINER}
        or unicodedata.category(char) in _MARKS
        or any(first <= char <= last for first, last in _EXTENDING_RANGES)
    )
