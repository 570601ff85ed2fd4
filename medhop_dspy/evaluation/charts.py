"""Shares with their intervals as horizontal bars: SVG, without a plotting library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from medhop_dspy.errors import InputError
from medhop_dspy.evaluation.documents import shown
from medhop_dspy.evaluation.statistics import Interval

_WIDTH: Final = 640
_LEFT, _RIGHT = 230, 560  # of the area that the bars fill
_ROW, _TOP = 22, 10
_LABEL: Final = 32  # characters that fit beside the bars
_COLOURS: Final = ("steelblue", "darkorange", "seagreen", "indianred", "slategray", "goldenrod")
_TICKS: Final = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True, slots=True)
class Bar:
    """A share, 0 to 1, with its interval; bars of one ``series`` have one colour."""

    label: str
    value: Interval
    series: int = 0


def bars_svg(bars: Sequence[Bar], label: str) -> str:
    """One bar a row, in order, each with its interval as a line and its value beside it; ``label`` is the axis'.

    Raises:
        InputError: there are no bars.
    """
    if not bars:
        raise InputError("a chart of no bars", hint="Leave the drawing out.")
    bottom = _TOP + _ROW * len(bars)
    ticks = "".join(
        f'<line x1="{_x(t):.1f}" y1="{_TOP}" x2="{_x(t):.1f}" y2="{bottom + 4}" stroke="#ddd"/>'
        f'<text x="{_x(t):.1f}" y="{bottom + 18}" text-anchor="middle">{t:.1f}</text>'
        for t in _TICKS
    )
    rows = "".join(_row(bar, _TOP + _ROW * number) for number, bar in enumerate(bars))
    name = escape(shown(label))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {bottom + 44}" font-family="sans-serif" '
        f'font-size="12" role="img"><title>{name}</title>'
        f'<rect width="{_WIDTH}" height="{bottom + 44}" fill="white"/>{ticks}{rows}'
        f'<text x="{(_LEFT + _RIGHT) / 2}" y="{bottom + 36}" text-anchor="middle">{name}</text></svg>'
    )


def _row(bar: Bar, top: float) -> str:
    text = shown(bar.label)
    text = text if len(text) <= _LABEL else f"{text[: _LABEL - 1]}…"
    middle, end = top + _ROW / 2, _x(bar.value.mean)
    low, high = _x(bar.value.low), _x(bar.value.high)
    whisker = "".join(
        f'<line x1="{x1:.1f}" y1="{y1}" x2="{x2:.1f}" y2="{y2}" stroke="black"/>'
        for x1, y1, x2, y2 in (
            (low, middle, high, middle),
            (low, middle - 4, low, middle + 4),
            (high, middle - 4, high, middle + 4),
        )
    )
    return (
        f'<text x="{_LEFT - 8}" y="{middle + 4}" text-anchor="end">{escape(text)}</text>'
        f'<rect x="{_LEFT}" y="{top + 4}" width="{end - _LEFT:.1f}" height="{_ROW - 8}" '
        f'fill="{_COLOURS[bar.series % len(_COLOURS)]}"/>{whisker}'
        f'<text x="{_RIGHT + 12}" y="{middle + 4}">{bar.value.mean:.3f}</text>'
    )


def _x(value: float) -> float:
    """Where a share lies on the horizontal axis, in pixels."""
    return _LEFT + value * (_RIGHT - _LEFT)
