"""``medhop analyse``: how much runs disagree, what one got wrong, and which strategies it took."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medhop_dspy.evaluation.exports import DISCLAIMER

if TYPE_CHECKING:
    from medhop_dspy.evaluation.disagreement import Asked, Bin, Group, Scored
    from medhop_dspy.evaluation.statistics import Interval

app = typer.Typer(no_args_is_help=True, help="What runs tell: disagreement, errors, strategies.")
Run = Annotated[Path, typer.Argument(help="Folder of the run.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object, for scripts.")]


@app.command()
def disagreement(
    files: Annotated[list[Path], typer.Argument(help="Run folders, or CSV files with QIDX, Question and Answer.")],
    raw: Annotated[
        bool, typer.Option("--raw", help="Compare answers as written, as the scores published with MedHopper do.")
    ] = False,
    bins: Annotated[int, typer.Option(min=1, help="Quantile bins.")] = 5,
    per_bin: Annotated[int, typer.Option(min=1, help="Questions named for each bin, nearest to its median.")] = 1,
    orphanet: Annotated[
        Path | None, typer.Option(help="Rare-disease tables, to count the questions that name one.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="CSV to write; default: standard output.")] = None,
    plot: Annotated[Path | None, typer.Option(help="SVG to write: density of the scores.")] = None,
) -> None:
    """Entropy of the answers that several runs give to each question, 0 (all agree) to 1 (no two do).

    Writes QIDX, Question, disagreement_score and bin, one row a question that all runs hold. The summary goes to
    standard output with --out, otherwise to standard error.
    """
    from medhop_dspy.evaluation import disagreement as measure
    from medhop_dspy.evaluation.density import density_svg
    from medhop_dspy.evaluation.exports import write_file

    runs = [measure.read_answer_set(path) for path in files]
    rows = measure.join(runs)
    scored, edges = measure.score(rows, raw=raw, bins=bins)
    described = measure.describe_bins(scored, edges, per_bin)
    groups = _groups(rows, scored, len(edges) - 1, orphanet)
    table = measure.scores_csv(scored)
    if out:
        write_file(out, table)
    else:
        typer.echo(table, nl=False)
    left_out = len({key for run in runs for key in run.questions}) - len(rows)
    how = "as written" if raw else "normalised"
    summary = [
        f"{len(runs)} runs, {len(rows):,} questions in all of them, {left_out:,} left out; answers compared {how}",
        f"no disagreement: {sum(each.score == 0 for each in scored):,} questions",
        *_bin_lines(described),
        *_group_lines(groups),
    ]
    typer.echo("\n".join(summary), err=out is None)
    scores = [each.score for each in scored]
    if plot and len(set(scores)) > 1:
        write_file(plot, density_svg(scores, edges).encode())
    elif plot:
        typer.echo(f"{plot} not drawn: all scores are {scores[0]:.3f}", err=True)


@app.command()
def errors(
    run: Run,
    as_json: AsJson = False,
    out: Annotated[Path | None, typer.Option(help="CSV to write: every question that is not right.")] = None,
) -> None:
    """Sort the answers of a run with gold: right, surface form, wrong entity, wrong type, no answer, failed."""
    from medhop_dspy.evaluation.analysis import ErrorClass, count_by_type, errors_csv, judge
    from medhop_dspy.evaluation.exports import write_file
    from medhop_dspy.evaluation.results import read_results

    judged = judge(read_results(run))
    counts = count_by_type(judged)
    if out:
        write_file(out, errors_csv(judged))
        typer.echo(f"{out} written. {DISCLAIMER}", err=True)
    if as_json:
        by_type = {name: {str(kind): count[kind] for kind in ErrorClass} for name, count in counts.items()}
        classes = {each.result.id: each.error_class for each in judged}
        typer.echo(json.dumps({"n": len(judged), "by_answer_type": by_type, "classes": classes}, ensure_ascii=False))
        return
    header = ("answer type", "n", *ErrorClass)
    rows = [(name, str(count.total()), *(str(count[kind]) for kind in ErrorClass)) for name, count in counts.items()]
    totals = (str(sum(count[kind] for count in counts.values())) for kind in ErrorClass)
    _print_table([header, *rows, ("all", str(len(judged)), *totals)])


@app.command()
def strategies(run: Run, as_json: AsJson = False) -> None:
    """How often a run took each strategy, how often as the gold says, and how often it was right.

    Where the run does not tell a question's strategy, the rules decide.
    """
    from dataclasses import asdict

    from medhop_dspy.evaluation.analysis import strategy_shares
    from medhop_dspy.evaluation.results import read_results

    shares = strategy_shares(read_results(run))
    if as_json:
        typer.echo(json.dumps([asdict(share) for share in shares]))
        return
    total = sum(share.questions for share in shares)
    header = ("strategy", "n", "share", "by rules", "as gold", "EM")
    rows = [
        (
            share.strategy.value,
            str(share.questions),
            f"{share.questions / total:.1%}",
            str(share.by_rules),
            "not stated" if share.as_gold is None else str(share.as_gold),
            _interval(share.em),
        )
        for share in shares
    ]
    _print_table([header, *rows])


def _groups(rows: Sequence[Asked], scored: Sequence[Scored], bins: int, orphanet: Path | None) -> list[Group]:
    """The questions by strategy and, with tables, those that name a rare disease and the others."""
    from medhop_dspy.answers import Strategy
    from medhop_dspy.evaluation.analysis import strategy_of
    from medhop_dspy.evaluation.disagreement import group

    strategy = {row.id: strategy_of(row.id, row.text, row.strategy) for row in rows}
    groups = []
    for name in Strategy:
        members = [each for each in scored if strategy[each.id] is name]
        by_rules = sum(not each.strategy for each in members)
        source = "" if not by_rules else " (by rules)" if by_rules == len(members) else f" ({by_rules} by rules)"
        groups.append(group(f"{name}{source}", members, bins))
    if orphanet:
        from medhop_dspy.knowledge.orphanet import Orphanet

        tables = Orphanet.load(orphanet)
        rare = {row.id for row in rows if tables.find(row.text, 1)}
        groups += [
            group("names a rare disease", [s for s in scored if s.id in rare], bins),
            group("names none", [s for s in scored if s.id not in rare], bins),
        ]
    return [each for each in groups if each.questions]


def _bin_lines(bins: Sequence[Bin]) -> Iterator[str]:
    header = ("bin", "scores", "n", "median", "nearest to it")
    rows = [
        (
            str(each.number),
            f"{each.low:.3f} to {each.high:.3f}",
            str(each.questions),
            f"{each.median:.3f}",
            ", ".join(s.id for s in each.nearest),
        )
        for each in bins
    ]
    return _table([header, *rows])


def _group_lines(groups: Sequence[Group]) -> Iterator[str]:
    numbers = [f"bin {number}" for number in range(1, len(groups[0].per_bin) + 1)]
    rows = [(each.name, str(each.questions), f"{each.mean:.3f}", *map(str, each.per_bin)) for each in groups]
    return _table([("questions", "n", "mean score", *numbers), *rows])


def _interval(value: Interval | None) -> str:
    return "none answered" if value is None else str(value)


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    typer.echo("\n".join(_table(rows)))


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
