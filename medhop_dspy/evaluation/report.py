"""A report on one or several runs: what they come to, where they differ, what they got wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from medhop_dspy.evaluation.ablation_table import NONE
from medhop_dspy.evaluation.analysis import ErrorClass, judge
from medhop_dspy.evaluation.charts import Bar, bars_svg
from medhop_dspy.evaluation.documents import Drawing, Section, Table
from medhop_dspy.evaluation.exports import DISCLAIMER
from medhop_dspy.evaluation.published import AGREEMENT, CHOICE, NO_PROGRAM, SYSTEMS, Published
from medhop_dspy.evaluation.report_programs import by_data, by_rounds, paired
from medhop_dspy.evaluation.report_runs import ChoiceRun, OpenRun
from medhop_dspy.evaluation.statistics import bootstrap_ci
from medhop_dspy.evaluation.tally import NOT_STATED

if TYPE_CHECKING:
    from medhop_dspy.evaluation.analysis import Judged
    from medhop_dspy.evaluation.outcomes import ChoiceResult, Result
    from medhop_dspy.evaluation.report_runs import AnyRun

_DIGEST: Final = 12  # digits of a digest that are shown


def report(runs: Sequence[AnyRun]) -> list[Section]:
    """All sections, for :func:`~medhop_dspy.evaluation.documents.html_page` and its Markdown twin."""
    opened = [run for run in runs if isinstance(run, OpenRun)]
    choices = [run for run in runs if isinstance(run, ChoiceRun)]
    return [
        _about(runs),
        *by_data(runs),
        *by_rounds(runs),
        *(_open_sections(opened) if opened else ()),
        *(_choice_sections(choices) if choices else ()),
        _costs(runs),
        _published(opened, choices),
        *(_not_right(run, judge(run.results)) for run in opened),
        *map(_not_chosen, choices),
    ]


def _open_sections(runs: Sequence[OpenRun]) -> list[Section]:
    kinds: tuple[tuple[str, Callable[[Result], object]], ...] = (
        ("By answer type", lambda result: result.gold.answer_type),
        ("By strategy", lambda result: result.gold.strategy),
        ("By hops", lambda result: result.gold.hops),
    )
    return [
        _measures(runs),
        *([_against_first(runs)] if len(runs) > 1 else []),
        *(_by_kind(runs, title, kind) for title, kind in kinds),
        _errors(runs),
    ]


def _choice_sections(runs: Sequence[ChoiceRun]) -> list[Section]:
    def source(result: ChoiceResult) -> str:
        return result.gold.source

    against = [_against_first(runs)] if len(runs) > 1 else []
    return [*against, _by_kind(runs, "By set or subject", source)]


def _about(runs: Sequence[AnyRun]) -> Section:
    header = ("run", "program", "model", "preset", "settings", "index", "started", "questions")
    rows = tuple(
        (
            *(run.name, run.program, run.model, run.preset, run.settings_digest[:_DIGEST]),
            *(run.index_digest[:_DIGEST] or NONE, run.started, run.data),
        )
        for run in runs
    )
    return Section("Runs", (DISCLAIMER, Table(header, rows)))


def _side_by_side(runs: Sequence[AnyRun], columns: Sequence[Sequence[tuple[str, str]]]) -> Table:
    """One column a run: names and values, the names being the same for all."""
    rows = ((cells[0][0].strip(), *(value for _, value in cells)) for cells in zip(*columns, strict=True))
    return Table(("", *(run.name for run in runs)), tuple(rows))


def _measures(runs: Sequence[OpenRun]) -> Section:
    columns = [
        [
            ("questions", run.data + f", {run.summary.pending} to ask" * bool(run.summary.pending)),
            *run.summary.measures(),
            ("article in the evidence", str(run.summary.article_in_evidence)),
            ("failed", str(run.summary.failed)),
        ]
        for run in runs
    ]
    bars = [Bar(run.name, run.summary.em, series) for series, run in enumerate(runs) if run.summary.em is not None]
    return Section(
        "Measures",
        (
            "Means with 95 % bootstrap intervals over questions; a failed question counts as not right.",
            _side_by_side(runs, columns),
            Drawing(bars_svg(bars, "exact match")),
        ),
    )


def _against_first(runs: Sequence[AnyRun]) -> Section:
    header = ("run", "n", f"difference in {runs[0].measure}", "gained", "lost", "p", "same answers", "note")
    return Section(
        f"Against {runs[0].name}",
        (
            "Each run less the first, over the questions that both hold, paired; p: exact McNemar test, not corrected "
            f"for several comparisons ({len(runs) - 1} here). Not resolved: the interval holds 0. Same answers: once "
            "normalised.",
            Table(header, tuple((run.name, *paired(runs[0], run)) for run in runs[1:])),
        ),
    )


def _by_kind(runs: Sequence[AnyRun], title: str, kind: Callable[[Any], object]) -> Section:
    groups: dict[str, dict[int, list[bool]]] = {}
    for place, run in enumerate(runs):
        for result in run.results:
            groups.setdefault(str(kind(result) or NOT_STATED), {}).setdefault(place, []).append(bool(result.right))
    rows, bars = [], []
    for name, by_run in sorted(groups.items()):
        means = {place: bootstrap_ci(right) for place, right in by_run.items()}
        cells = (f"{means[p]} of {len(by_run[p])}" if p in means else NONE for p in range(len(runs)))
        rows.append((name, *cells))
        bars += [Bar(f"{name}, {runs[p].name}" if len(runs) > 1 else name, mean, p) for p, mean in means.items()]
    table = Table(("", *(run.name for run in runs)), tuple(rows))
    return Section(title, (table, Drawing(bars_svg(bars, runs[0].measure))))


def _errors(runs: Sequence[OpenRun]) -> Section:
    classes = [[each.error_class for each in judge(run.results)] for run in runs]
    rows = tuple((kind.value, *(str(found.count(kind)) for found in classes)) for kind in ErrorClass)
    return Section("What became of the questions", (Table(("", *(run.name for run in runs)), rows),))


def _costs(runs: Sequence[AnyRun]) -> Section:
    columns = [
        [
            ("LM calls a question", f"{effort.lm_calls / run.summary.n:.1f}"),
            ("prompt tokens", f"{effort.prompt_tokens:,}"),
            ("of which from the prefix cache", f"{effort.cached_share:.0%}"),
            ("generated tokens", f"{effort.completion_tokens:,}"),
            ("seconds a question, mean", f"{effort.seconds_mean:.1f}"),
            ("median", f"{effort.seconds_median:.1f}"),
            ("longest", f"{effort.seconds_max:.1f}"),
            ("seconds in all", f"{effort.wall_seconds:.0f}"),
        ]
        for run in runs
        for effort in (run.summary.effort,)
    ]
    return Section("Costs", (_side_by_side(runs, columns),))


def _published(opened: Sequence[OpenRun], choices: Sequence[ChoiceRun]) -> Section:
    header = ("system", "measure", "published", "published on", "our program", "ours, on our own questions")

    def row(each: Published, ours: Sequence[str]) -> tuple[str, ...]:
        program = each.program or NO_PROGRAM
        return (each.system, each.measure, each.value, each.data, program, "; ".join(ours) or NONE)

    def open_row(each: Published) -> tuple[str, ...]:
        return row(each, [_ours(run, str(run.summary.em)) for run in opened if run.program == each.program])

    def choice_row(each: Published) -> tuple[str, ...]:
        ours = [run for run in choices if run.program == each.program and run.summary.set_name == each.data]
        return row(each, [_ours(run, _percent(run)) for run in ours])

    return Section(
        "Published results",
        (
            "The published numbers are of other questions, and of other models and corpora, than ours: the two columns "
            f"must not be compared as if they were one. {NO_PROGRAM.capitalize()}: this package has no program of that "
            "kind, or no run of it can stand beside the number. A dash: no run is in this report.",
            Table(header, tuple(map(open_row, SYSTEMS)), "Systems, open questions"),
            Table(header, tuple(map(open_row, AGREEMENT)), "MedHopper's ablations"),
            Table(header, tuple(map(choice_row, CHOICE)), "Multiple choice"),
        ),
    )


def _ours(run: AnyRun, value: str) -> str:
    return f"{value} ({run.name}: {run.data}; {run.model})"


def _percent(run: ChoiceRun) -> str:
    share = run.summary.accuracy
    return NONE if share is None else f"{100 * share.mean:.1f} [{100 * share.low:.1f}, {100 * share.high:.1f}]"


def _not_right(run: OpenRun, judged: Sequence[Judged]) -> Section:
    header = ("QIDX", "question", "class", "answer", "last draft", "gold", "quoted, or the error")
    wrong = [each for each in judged if each.error_class is not ErrorClass.RIGHT]
    rows = tuple(
        (
            *(each.result.id, each.result.question, each.error_class.value, each.result.answer or NONE),
            *(each.result.draft or NONE, " | ".join(each.result.gold.golds), each.result.error or _quoted(each.result)),
        )
        for each in wrong
    )
    return Section(f"Not right: {run.name}", (Table(header, rows),), folded=True)


def _not_chosen(run: ChoiceRun) -> Section:
    header = ("id", "question", "chosen", "right", "quoted, or the error")
    rows = tuple(
        (
            *(result.id, result.question, _option(result, result.choice), _option(result, result.gold.answer)),
            result.error or _quoted(result),
        )
        for result in run.results
        if not result.right
    )
    return Section(f"Not right: {run.name}", (Table(header, rows),), folded=True)


def _option(result: ChoiceResult, letter: str | None) -> str:
    return f"{letter}: {result.gold.options[letter]}" if letter else NONE


def _quoted(result: Result | ChoiceResult) -> str:
    """The quote with the title of the passage that holds it; the quote may begin with that title."""
    quote = result.quote.strip(" .…")
    titles = [passage.title for passage in result.evidence if quote in f"{passage.title}: {passage.text}"]
    return f"{titles[0]}: “{result.quote}”" if quote and titles else result.quote or NONE
