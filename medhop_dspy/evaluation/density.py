"""The density of scores from 0 to 1 as a drawing: SVG, without a plotting library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from medhop_dspy.errors import InputError
from medhop_dspy.evaluation.charts import horizontal_ticks

_WIDTH, _HEIGHT = 640, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 50, 620, 20, 310  # of the area that the curve fills
_POINTS: Final = 201


def density_svg(scores: Sequence[float], edges: Sequence[float] = (), label: str = "disagreement score") -> str:
    """A Gaussian kernel density of ``scores`` (Scott's bandwidth) over 0 to 1, and a dashed line at each of ``edges``.

    The kernel is not folded back at 0 and 1: what lies beyond is not drawn. All text in it is ``label``, numbers and
    the number of scores.

    Raises:
        InputError: there are fewer than two different scores, so that there is no density.
    """
    from html import escape

    from scipy.stats import gaussian_kde

    if len(set(scores)) < 2:
        raise InputError(
            f"{len(scores)} scores with {len(set(scores))} different values have no density",
            hint="Leave the drawing out.",
        )
    at = np.linspace(0, 1, _POINTS)
    density = gaussian_kde(np.asarray(scores, float))(at)
    heights = _BOTTOM - density / density.max() * (_BOTTOM - _TOP)
    curve = " ".join(f"{_x(x):.2f},{y:.2f}" for x, y in zip(at, heights, strict=True))
    ticks = horizontal_ticks(_x, _BOTTOM, _BOTTOM + 5, "black")
    lines = "".join(
        f'<line x1="{_x(e):.2f}" y1="{_TOP}" x2="{_x(e):.2f}" y2="{_BOTTOM}" stroke="gray" stroke-dasharray="4"/>'
        for e in edges
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        f'font-size="13"><rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>{lines}'
        f'<polyline points="{curve}" fill="none" stroke="steelblue" stroke-width="2"/>'
        f'<line x1="{_LEFT}" y1="{_BOTTOM}" x2="{_RIGHT}" y2="{_BOTTOM}" stroke="black"/>{ticks}'
        f'<text x="{(_LEFT + _RIGHT) / 2}" y="{_HEIGHT - 8}" text-anchor="middle">'
        f"{escape(label)}, {len(scores):,} questions</text>"
        f'<text x="15" y="{(_TOP + _BOTTOM) / 2}" text-anchor="middle" '
        f'transform="rotate(-90 15 {(_TOP + _BOTTOM) / 2})">density, up to {density.max():.2f}</text></svg>\n'
    )


def _x(value: float) -> float:
    """Where a score lies on the horizontal axis, in pixels."""
    return _LEFT + value * (_RIGHT - _LEFT)
