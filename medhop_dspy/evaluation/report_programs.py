"""Sections of a report that set several programs side by side: on one question file, and over rounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from medhop_dspy.evaluation.ablation_table import NONE, compared_cells, share_cell, unresolved
from medhop_dspy.evaluation.charts import Line, lines_svg
from medhop_dspy.evaluation.determinism import same_answers
from medhop_dspy.evaluation.documents import Drawing, Section, Table
from medhop_dspy.evaluation.report_runs import AnyRun, ChoiceRun
from medhop_dspy.evaluation.statistics import compare

BASELINE: Final = "single_pass"


def by_data(runs: Sequence[AnyRun]) -> list[Section]:
    """A table for each question file of multiple choice, and for each that several runs of open questions share."""
    files: dict[tuple[str, str, str], list[AnyRun]] = {}
    for run in runs:
        files.setdefault((run.measure, run.data_name, run.data_digest), []).append(run)
    return [_programs(group) for group in files.values() if len(group) > 1 or isinstance(group[0], ChoiceRun)]


def _programs(runs: Sequence[AnyRun]) -> Section:
    first = runs[0]
    found = "no choice" if isinstance(first, ChoiceRun) else "gold in the evidence"
    header = (
        *("run", "program", "retriever", "model", "n", first.measure, found, "failed", "LM calls", "tokens", "seconds"),
        *(f"against {BASELINE}: n", "difference", "gained", "lost", "p", "same answers", "note"),
    )
    name = first.data_name or "questions without a file"
    kind = "Multiple choice" if isinstance(first, ChoiceRun) else "Programs"
    return Section(
        f"{kind}: {name}",
        (
            f"{first.measure} with its 95 % bootstrap interval. LM calls, tokens (read and written) and seconds are of "
            f"one question, in the mean. Differences from the first run of {BASELINE} with the same model, over the "
            "questions that both hold, paired; p: exact McNemar test, not corrected for several comparisons. Retriever "
            f"{NONE}: no passage was read.",
            Table(header, tuple(_row(run, _baseline(run, runs)) for run in runs)),
        ),
    )


def _baseline(run: AnyRun, runs: Sequence[AnyRun]) -> AnyRun | None:
    return next((each for each in runs if each.program == BASELINE and each.model == run.model), None)


def _row(run: AnyRun, baseline: AnyRun | None) -> tuple[str, ...]:
    summary, effort, n = run.summary, run.summary.effort, run.summary.n
    return (
        *(run.name, run.program, run.retriever if any(each.evidence for each in run.results) else NONE, run.model),
        str(n) + f", {summary.pending} to ask" * bool(summary.pending),
        f"{summary.share_right} ({summary.correct})",
        str(run.summary.no_choice) if isinstance(run, ChoiceRun) else str(run.summary.gold_in_evidence),
        str(summary.failed),
        f"{effort.lm_calls / n:.1f}",
        f"{(effort.prompt_tokens + effort.completion_tokens) / n:,.0f}",
        f"{effort.seconds_mean:.1f}",
        *((NONE,) * 7 if baseline is None or baseline is run else paired(baseline, run)),
    )


def paired(first: AnyRun, other: AnyRun) -> tuple[str, ...]:
    """``other`` less ``first`` over what both were asked: n, difference, gained, lost, p, same answers, note."""
    before = {result.same_question: result for result in first.results}
    pairs = [(before[result.same_question], result) for result in other.results if result.same_question in before]
    if not pairs:
        return ("0", *(NONE,) * 5, "no question in common")
    compared = compare([bool(a.right) for a, _ in pairs], [bool(b.right) for _, b in pairs])
    note = unresolved(compared.difference, len(pairs))
    return (str(len(pairs)), *compared_cells(compared), share_cell(same_answers(pairs)), note)


def by_rounds(runs: Sequence[AnyRun]) -> list[Section]:
    """Right answers against the number of rounds, for each program, question file and model with runs of several."""
    groups: dict[tuple[str, ...], dict[str, dict[int, AnyRun]]] = {}
    for run in runs:
        if run.rounds is not None:
            key = (run.program, run.measure, run.data_name, run.data_digest, run.model)
            groups.setdefault(key, {}).setdefault(run.retriever, {}).setdefault(run.rounds, run)
    return [
        _rounds(key, by_retriever)
        for key, by_retriever in groups.items()
        if len({rounds for each in by_retriever.values() for rounds in each}) > 1
    ]


def _rounds(key: tuple[str, ...], by_retriever: dict[str, dict[int, AnyRun]]) -> Section:
    program, measure, data_name, _, model = key
    numbers = sorted({rounds for each in by_retriever.values() for rounds in each})
    rows = tuple(
        (retriever, *(str(each[t].summary.share_right) if t in each else NONE for t in numbers))
        for retriever, each in by_retriever.items()
    )
    lines = [
        Line(retriever, tuple((t, share) for t in sorted(each) if (share := each[t].summary.share_right)))
        for retriever, each in by_retriever.items()
    ]
    return Section(
        f"Rounds: {program} on {data_name or 'questions without a file'}",
        (
            f"{measure} by the number of rounds T, for each retriever; model: {model}; the first run of each T. With "
            "several runs, see their n above: they need not hold the same questions.",
            Table(("retriever", *(f"T = {t}" for t in numbers)), rows),
            Drawing(lines_svg(lines, "rounds T", measure)),
        ),
    )
