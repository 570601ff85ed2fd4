"""A knowledge graph as lines of text for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from medhop_dspy.graph.index import SYNONYM
from medhop_dspy.graph.show import QUANTILES, stating

if TYPE_CHECKING:
    from medhop_dspy.graph.index import GraphIndex
    from medhop_dspy.graph.show import GraphSummary, Step

_COMPONENTS: Final = 5  # sizes shown
_SHOWN: Final = 12  # types, relations
_TITLES: Final = 3  # beside an edge


def summary_lines(summary: GraphSummary) -> Iterator[str]:
    """Counts, degrees, connected parts and hubs, a line each."""
    types = [(kind or "no type", count) for kind, count in summary.types]
    yield f"entities    {summary.entities:,} by {summary.source}: {_counted(types)}"
    yield f"triples     {summary.triples:,} of {len(summary.relations):,} relations: {_counted(summary.relations)}"
    yield f"synonyms    {summary.synonyms:,}"
    yield f"mentions    {summary.links:,} in {summary.passages:,} passages"
    yield f"similar     {summary.passage_edges:,} pairs of passages"
    quantiles = zip(QUANTILES, summary.degrees, strict=False)
    yield f"degrees     {', '.join(f'{share:.0%}: {degree:,.0f}' for share, degree in quantiles) or 'none'}"
    largest = ", ".join(f"{size:,}" for size in summary.components[:_COMPONENTS])
    yield f"components  {len(summary.components):,}, the largest of {largest or 0} entities and passages"
    for hub in summary.hubs:
        yield f"hub         {plain(hub.label)}: {hub.degree:,} edges, {hub.passages:,} passages"


def _counted(counts: Sequence[tuple[str, int]]) -> str:
    shown = ", ".join(f"{plain(name)} {count:,}" for name, count in counts[:_SHOWN])
    return f"{shown}, and {len(counts) - _SHOWN:,} more" if len(counts) > _SHOWN else shown or "none"


def step_line(graph: GraphIndex, start: int, step: Step) -> str:
    """``-> relation: neighbour [titles]``; further away, the entity in between comes first."""
    arrow = "=" if step.relation == SYNONYM else "->" if step.forward else "<-"
    via = "" if step.entity == start else f"{graph.names[step.entity]} "
    return plain(f"  {via}{arrow} {step.relation}: {graph.label(step.neighbour)}{some(stating(graph, step))}")


def some(titles: Sequence[str]) -> str:
    """The first titles in brackets after two spaces; nothing for none."""
    if not titles:
        return ""
    more = f" and {len(titles) - _TITLES:,} more" if len(titles) > _TITLES else ""
    return f"  [{'; '.join(plain(title) for title in titles[:_TITLES])}{more}]"


def plain(text: str) -> str:
    """``text`` without characters that would steer a terminal."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)
