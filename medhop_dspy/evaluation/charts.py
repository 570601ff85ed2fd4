"""Shares with their intervals, as horizontal bars and as lines over a whole number: SVG, without a plotting library."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from medhop_dspy.errors import InputError
from medhop_dspy.evaluation.documents import shown
from medhop_dspy.evaluation.statistics import Interval

TICKS: Final = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # of an axis of shares
_UNDER: Final = 14  # pixels from the end of a tick to its number

_WIDTH: Final = 640
_LEFT, _RIGHT = 230, 560  # of the area that the bars fill
_ROW, _TOP = 22, 10
_LABEL: Final = 32  # characters that fit beside the bars
_COLOURS: Final = ("steelblue", "darkorange", "seagreen", "indianred", "slategray", "goldenrod")

_PLOT_LEFT, _PLOT_RIGHT, _PLOT_TOP, _PLOT_BOTTOM = 50, 400, 30, 260  # of the area that the lines fill
_PLOT_HEIGHT: Final = 310
_APART: Final = 4  # pixels between the lines, so that no interval hides another


@dataclass(frozen=True, slots=True)
class Bar:
    """A share, 0 to 1, with its interval; bars of one ``series`` have one colour."""

    label: str
    value: Interval
    series: int = 0


@dataclass(frozen=True, slots=True)
class Line:
    """Shares, 0 to 1, with their intervals, by a whole number in ascending order."""

    label: str
    points: tuple[tuple[int, Interval], ...]


def bars_svg(bars: Sequence[Bar], label: str) -> str:
    """One bar a row, in order, each with its interval as a line and its value beside it; ``label`` is the axis'.

    Raises:
        InputError: there are no bars.
    """
    if not bars:
        raise InputError("a chart of no bars", hint="Leave the drawing out.")
    bottom = _TOP + _ROW * len(bars)
    rows = "".join(_row(bar, _TOP + _ROW * number) for number, bar in enumerate(bars))
    return _drawing(
        label,
        bottom + 44,
        f"{horizontal_ticks(_x, _TOP, bottom + 4, '#ddd')}{rows}{_text((_LEFT + _RIGHT) / 2, bottom + 36, label)}",
    )


def lines_svg(lines: Sequence[Line], across: str, up: str) -> str:
    """One line a series over a common axis of whole numbers, intervals as vertical lines, names at the right.

    Args:
        lines: In the order of their colours.
        across: What the whole numbers are.
        up: What the shares are.

    Raises:
        InputError: there is no line, or one without a point.
    """
    if not lines or not all(line.points for line in lines):
        raise InputError("a chart of no lines, or of one without a point", hint="Leave the drawing out.")
    numbers = sorted({number for line in lines for number, _ in line.points})
    step = (_PLOT_RIGHT - _PLOT_LEFT) / (len(numbers) + 1)
    at = {number: _PLOT_LEFT + step * place for place, number in enumerate(numbers, start=1)}
    grid = "".join(
        _line(_PLOT_LEFT, _y(t), _PLOT_RIGHT, _y(t), "#ddd") + _text(_PLOT_LEFT - 8, _y(t) + 4, f"{t:.1f}", "end")
        for t in TICKS
    )
    marks = "".join(_text(x, _PLOT_BOTTOM + 18, str(number)) for number, x in at.items())
    middle = (len(lines) - 1) / 2
    drawn = "".join(
        _plotted(line, {n: x + _APART * (place - middle) for n, x in at.items()}, place)
        for place, line in enumerate(lines)
    )
    names = _text((_PLOT_LEFT + _PLOT_RIGHT) / 2, _PLOT_BOTTOM + 38, across) + _text(_PLOT_LEFT, 14, up, "start")
    return _drawing(f"{up} against {across}", _PLOT_HEIGHT, f"{grid}{marks}{drawn}{names}")


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


def _plotted(line: Line, at: Mapping[int, float], series: int) -> str:
    """The line over the places ``at`` of its numbers, dots and intervals there, and its name in a row of its own."""
    colour = _COLOURS[series % len(_COLOURS)]
    points = " ".join(f"{at[n]:.1f},{_y(value.mean):.1f}" for n, value in line.points)
    dots = "".join(
        f'<circle cx="{at[n]:.1f}" cy="{_y(value.mean):.1f}" r="3" fill="{colour}"/>' for n, value in line.points
    )
    whiskers = "".join(_line(at[n], _y(value.low), at[n], _y(value.high), colour) for n, value in line.points)
    row = 40 + _ROW * series
    return (
        f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>{dots}{whiskers}'
        f"{_line(_PLOT_RIGHT + 12, row - 4, _PLOT_RIGHT + 28, row - 4, colour)}"
        f"{_text(_PLOT_RIGHT + 34, row, line.label, 'start')}"
    )


def _row(bar: Bar, top: float) -> str:
    middle, end = top + _ROW / 2, _x(bar.value.mean)
    low, high = _x(bar.value.low), _x(bar.value.high)
    whisker = "".join(
        _line(x1, y1, x2, y2, "black")
        for x1, y1, x2, y2 in (
            (low, middle, high, middle),
            (low, middle - 4, low, middle + 4),
            (high, middle - 4, high, middle + 4),
        )
    )
    return (
        f"{_text(_LEFT - 8, middle + 4, bar.label, 'end')}"
        f'<rect x="{_LEFT}" y="{top + 4}" width="{end - _LEFT:.1f}" height="{_ROW - 8}" '
        f'fill="{_COLOURS[bar.series % len(_COLOURS)]}"/>{whisker}'
        f"{_text(_RIGHT + 12, middle + 4, f'{bar.value.mean:.3f}', 'start')}"
    )


def _drawing(title: str, height: float, content: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" '
        f'font-size="12" role="img"><title>{escape(shown(title))}</title>'
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>{content}</svg>'
    )


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    """``text`` as data, cut to what fits."""
    text = shown(text)
    text = text if len(text) <= _LABEL else f"{text[: _LABEL - 1]}…"
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _x(value: float) -> float:
    """Where a share lies on the horizontal axis, in pixels."""
    return _LEFT + value * (_RIGHT - _LEFT)


def _y(value: float) -> float:
    """Where a share lies on the vertical axis, in pixels."""
    return _PLOT_BOTTOM - value * (_PLOT_BOTTOM - _PLOT_TOP)
