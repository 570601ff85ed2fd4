"""The axis of shares from 0 to 1 that the drawings have in common, as SVG."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

TICKS: Final = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_UNDER: Final = 14  # from a mark to its number, in pixels


def horizontal_ticks(place: Callable[[float], float], top: float, bottom: float, colour: str) -> str:
    """A line from ``top`` to ``bottom`` at each of :data:`TICKS`, its number under it.

    Args:
        place: Where a share lies, in pixels from the left.
        top: In pixels from above, like ``bottom``.
        bottom: Where the lines end.
        colour: Of the lines, a name or ``#`` and digits.
    """
    return "".join(
        f'<line x1="{place(t):.2f}" y1="{top}" x2="{place(t):.2f}" y2="{bottom}" stroke="{colour}"/>'
        f'<text x="{place(t):.2f}" y="{bottom + _UNDER}" text-anchor="middle">{t:.1f}</text>'
        for t in TICKS
    )
