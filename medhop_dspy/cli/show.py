"""A prediction as text for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from medhop_dspy.pipelines.evidence import sources
from medhop_dspy.pipelines.queries import resolve_references

if TYPE_CHECKING:
    import dspy

    from medhop_dspy.trace import SearchRecord, Trace


def as_text(question: str, prediction: dspy.Prediction, *, trace: bool) -> str:
    """What a person wants to see, in lines of ``Label     text``."""
    usage, record = prediction.usage, prediction.trace
    answer = prediction.answer if prediction.answer is not None else f"none (last draft: {prediction.draft or 'none'})"
    lines = [
        ("Question", question),
        ("Answer", f"{answer}   [{_standing(prediction)}]"),
        ("Kind", f"{prediction.strategy}, {prediction.answer_type}"),
    ]
    for number, hop in enumerate(prediction.hops, start=1):
        question = resolve_references(hop.question, prediction.hops)
        lines.append((f"Hop {number}", f"{question} -> {hop.answer or f'unresolved ({hop.reason})'}"))
    if prediction.quote:
        lines.append(("Quote", f'"{prediction.quote}"'))
        lines += [("Source", f"{p.title}  {p.url}") for p in sources(prediction.quote, prediction.evidence)]
    lines.append(
        (
            "Effort",
            f"{prediction.lm_calls} LM calls, {usage.prompt_tokens:,} prompt tokens ({usage.cached_share:.0%} from the "
            f"prefix cache), {usage.completion_tokens:,} generated, {record.seconds:.1f} s",
        )
    )
    if trace:
        lines += _trace_lines(record)
    elif not prediction.draft:
        lines += [("Failure", f"{f.step}: {f.reason}") for f in record.failures]
    return "\n".join(f"{label:9} {text}" for label, text in lines)


def _standing(prediction: dspy.Prediction) -> str:
    """What the checks of the last draft came to."""
    attempts = prediction.trace.attempts
    verdicts = attempts[-1].verdicts if attempts else ()
    if not verdicts:
        return "not checked"
    undecided = [v.check for v in verdicts if v.passed and v.reason]
    unsure = f", undecided: {', '.join(undecided)}" if undecided else ""
    return f"validated{unsure}" if prediction.validated else "not validated"


def _search_line(search: SearchRecord) -> str:
    """What a search through the graph started from, asked for and found."""
    start = " from ".join(filter(None, ("graph", ", ".join(search.entities))))
    if not search.graph_used:
        start = "vectors alone, no name of the graph"
    return f"{start}; queries: {' | '.join(search.queries)}; passages: {', '.join(search.passage_ids)}"


def _trace_lines(trace: Trace) -> list[tuple[str, str]]:
    lines = [(f"Search {n}", _search_line(search)) for n, search in enumerate(trace.searches, start=1)]
    for attempt in trace.attempts:
        label = f"Round {attempt.round}"
        if attempt.repair_query:
            lines.append((label, f"repair query: {attempt.repair_query}"))
        lines.append((label, f"queries: {' | '.join(attempt.queries)}"))
        lines.append((label, f"passages: {', '.join(attempt.passage_ids)}"))
        lines.append((label, f"draft: {attempt.draft or 'none'}"))
        lines += [
            (label, f"{v.check}: {'pass' if v.passed else 'fail'} by {v.by}{f', {v.reason}' if v.reason else ''}")
            for v in attempt.verdicts
        ]
    lines += [("Failure", f"{f.step}: {f.reason}") for f in trace.failures]
    return lines
