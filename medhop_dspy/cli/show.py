"""A prediction as text for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import dspy

    from medhop_dspy.trace import Passage, SearchRecord, Trace


def as_text(question: str, prediction: dspy.Prediction, *, trace: bool) -> str:
    """What a person wants to see, in lines of ``Label     text``."""
    usage, record = prediction.usage, prediction.trace
    answer = prediction.answer if prediction.answer is not None else f"none (last draft: {prediction.draft or 'none'})"
    lines = [
        ("Question", question),
        ("Answer", f"{answer}   [{'validated' if prediction.validated else 'not validated'}]"),
        ("Kind", f"{prediction.strategy}, {prediction.answer_type}"),
    ]
    for number, hop in enumerate(prediction.hops, start=1):
        lines.append((f"Hop {number}", f"{hop.question} -> {hop.answer or f'unresolved ({hop.reason})'}"))
    if prediction.quote:
        lines.append(("Quote", f'"{prediction.quote}"'))
        lines += [("Source", f"{p.title}  {p.url}") for p in _sources(prediction)]
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


def _sources(prediction: dspy.Prediction) -> list[Passage]:
    """The passage that holds the quote; the quote may begin with its title."""
    quote = prediction.quote.strip(" .…")
    return [p for p in prediction.evidence if quote in f"{p.title}: {p.text}"][:1]


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
