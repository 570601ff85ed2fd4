"""The neighbourhood of an entity as a drawing: SVG that loads nothing and runs nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from medhop_dspy.errors import SettingsError
from medhop_dspy.graph.index import SYNONYM

if TYPE_CHECKING:
    from medhop_dspy.graph.index import GraphIndex
    from medhop_dspy.graph.show import Step

_WIDTH, _HEIGHT = 960, 720
_MARGIN: Final = 90
_LEGEND: Final = 20  # height of a line
_NAME, _RELATION = 28, 20  # characters shown of each
_SEED: Final = 0
_COLOURS: Final = (
    "steelblue",
    "darkorange",
    "seagreen",
    "indianred",
    "mediumpurple",
    "goldenrod",
    "teal",
    "palevioletred",
)
_UNKNOWN: Final = "slategray"
# Characters without a picture, which XML forbids or which would turn the writing round.
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def neighbourhood_svg(graph: GraphIndex, start: int, steps: Iterable[Step]) -> str:
    """A drawing of ``start``, in the middle of attention, and the steps around it; the same for the same graph.

    Colours are types, arrows go from subject to object, broken lines join synonyms.

    Raises:
        SettingsError: the library networkx is not installed.
    """
    drawn = list(steps)
    nodes = list(dict.fromkeys([start, *(n for step in drawn for n in (step.entity, step.neighbour))]))
    places = _layout(nodes, drawn)
    types = sorted({graph.types[node] for node in nodes} - {""})
    colours = {kind: _COLOURS[number % len(_COLOURS)] for number, kind in enumerate(types)} | {"": _UNKNOWN}
    height = _HEIGHT + _LEGEND * (len(types) + 1)
    body = [
        *(_line(step, places) for step in drawn),
        *(_node(graph, node, places[node], colours, chosen=node == start) for node in nodes),
        *_legend(colours, any(not graph.types[node] for node in nodes)),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif" '
        f'font-size="12" role="img"><title>{_text(f"Around {graph.names[start]}")}</title>'
        '<defs><marker id="end" viewBox="0 0 8 8" refX="15" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        f'<path d="M0 0L8 4L0 8z" fill="#888"/></marker></defs><rect width="{_WIDTH}" height="{height}" fill="white"/>'
        f"{''.join(body)}</svg>\n"
    )


def _layout(nodes: Sequence[int], steps: Sequence[Step]) -> dict[int, tuple[float, float]]:
    """Where each node is, in pixels."""
    try:
        import networkx
    except ImportError as error:
        raise SettingsError(
            "a picture needs the library networkx, which is not installed",
            hint="Install medhop-dspy with its extra `graph`.",
        ) from error
    drawing = networkx.Graph()
    drawing.add_nodes_from(nodes)
    drawing.add_edges_from((step.entity, step.neighbour) for step in steps)
    found = networkx.spring_layout(drawing, seed=_SEED, center=(0, 0), scale=1)
    across, down = _WIDTH / 2 - _MARGIN, _HEIGHT / 2 - _MARGIN
    return {n: (_WIDTH / 2 + float(x) * across, _HEIGHT / 2 + float(y) * down) for n, (x, y) in found.items()}


def _line(step: Step, places: Mapping[int, tuple[float, float]]) -> str:
    ends = (step.entity, step.neighbour) if step.forward else (step.neighbour, step.entity)
    (x1, y1), (x2, y2) = (places[end] for end in ends)
    style = 'stroke-dasharray="4 3"' if step.relation == SYNONYM else 'marker-end="url(#end)"'
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#888" {style}/>'
        f'<text x="{(x1 + x2) / 2:.1f}" y="{(y1 + y2) / 2 - 3:.1f}" text-anchor="middle" font-size="9" fill="#666">'
        f"{_text(_cut(step.relation, _RELATION))}</text>"
    )


def _node(graph: GraphIndex, node: int, place: tuple[float, float], colours: Mapping[str, str], *, chosen: bool) -> str:
    x, y = place
    radius, weight = (10, "bold") if chosen else (6, "normal")
    return (
        f'<g><title>{_text(graph.names[node])}</title><circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" '
        f'fill="{colours[graph.types[node]]}"/><text x="{x:.1f}" y="{y - radius - 4:.1f}" text-anchor="middle" '
        f'font-weight="{weight}">{_text(_cut(graph.names[node], _NAME))}</text></g>'
    )


def _legend(colours: Mapping[str, str], unknown: bool) -> Iterable[str]:
    shown = [(kind, colour) for kind, colour in colours.items() if kind or unknown]
    for number, (kind, colour) in enumerate(shown):
        y = _HEIGHT + _LEGEND * number
        name = _text(kind or "no type")
        yield f'<circle cx="20" cy="{y}" r="6" fill="{colour}"/><text x="34" y="{y + 4}">{name}</text>'


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _text(text: str) -> str:
    return escape(_CONTROL.sub("\ufffd", text))
