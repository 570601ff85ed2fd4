"""Which passages a prompt shows, and in which order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from medhop_dspy.trace import Passage

# English takes about four bytes a token, formulae and other scripts about two and a half. Too low a guess costs
# passages only where the window is nearly full.
_BYTES_PER_TOKEN: Final = 2.5
_TASK_TOKENS: Final = 900  # task, inputs, examples and reply
_NUMBERING: Final = 6  # bytes of "[12] " and the newline


def arrange(shown: Sequence[Passage], ranked: Sequence[Passage], limit: int, context_tokens: int) -> list[Passage]:
    """The passages of the next prompt, so that it repeats as long a start of the last one as possible.

    Args:
        shown: Passages of the last prompt, in its order.
        ranked: Passages that the new search found, best first. They take room before anything shown earlier.
        limit: Passages of one prompt, at most.
        context_tokens: Window that they must fit beside task and reply. Passages are dropped whole.

    Returns:
        The kept passages in their old order, then the new ones with the best last, next to the question, where small
        models read best. Where there is no room for everything, those of ``shown``
        that the new search did not find leave first, the lowest score first, then the lowest ranked.
    """
    found = {p.id for p in ranked}
    chosen: set[str] = set()
    room = (context_tokens - _TASK_TOKENS) * _BYTES_PER_TOKEN
    earlier = sorted((p for p in shown if p.id not in found), key=lambda p: -p.score)
    for passage in [*ranked, *earlier][:limit]:
        room -= len(line(passage).encode()) + _NUMBERING
        if room < 0:
            break
        chosen.add(passage.id)
    old = [p for p in shown if p.id in chosen]
    seen = {p.id for p in old}
    return old + [p for p in reversed(ranked) if p.id in chosen and p.id not in seen]


def line(passage: Passage) -> str:
    """A passage as the prompt shows it: ``title: text``."""
    return f"{passage.title}: {passage.text}"


def sources(quote: str, evidence: Sequence[Passage]) -> list[Passage]:
    """The first passage that holds ``quote``, which may begin with its title; empty for no quote."""
    quote = quote.strip(" .\u2026")
    return [p for p in evidence if quote and quote in line(p)][:1]
