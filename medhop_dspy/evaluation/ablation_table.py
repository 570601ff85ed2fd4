"""What an ablation comes to: a table for people, and ``ablations.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from medhop_dspy.evaluation.ablations import FACTORIAL, VALIDATORS, checks_name
from medhop_dspy.evaluation.determinism import Determinism, determinism, same_answers
from medhop_dspy.evaluation.documents import Section, Table, markdown
from medhop_dspy.evaluation.outcomes import Result
from medhop_dspy.evaluation.results import file_errors
from medhop_dspy.evaluation.run_folder import write_json
from medhop_dspy.evaluation.statistics import Comparison, Interval, bootstrap_ci, compare
from medhop_dspy.evaluation.validators import Factorial, effects, overlaps

if TYPE_CHECKING:
    from medhop_dspy.evaluation.ablation_runs import Ablated, Skipped
    from medhop_dspy.evaluation.outcomes import AnyResult

TABLE: Final = "ablations.json"
NONE: Final = "-"
GREEDY: Final = "no sampling, so that seeds differ by what batching does at the server, if at all"


@dataclass(frozen=True, slots=True)
class Row:
    """One configuration in numbers; ``n`` questions, each asked once a seed. A failed question counts as not right.

    Attributes:
        em: Share of right answers (lenient exact match, or the right option), mean over seeds and questions; its
            interval resamples questions.
        against_full: This one less the first row, see :func:`tabulate`; None for the first row itself.
        same_answers: Share of questions answered alike here and in the first row, once normalised, mean over seeds;
            None for the first row or where no question is answered in both.
        withheld: Share of questions that got no answer since no draft passed the checks, or no choice.
        failed: Questions that failed, over all seeds.
        lm_calls: Calls a question.
        seconds: Mean of the answered questions.
        seeds: What changes between seeds; None with one seed, or where none was answered at all seeds.
        same_as: The earlier configuration that this one is under these settings, or empty.
    """

    name: str
    meaning: str
    program: str
    overrides: Mapping[str, Any]
    n: int
    em: Interval
    against_full: Comparison | None
    same_answers: float | None
    withheld: float
    failed: int
    lm_calls: float
    seconds: float
    seeds: Determinism | None
    same_as: str = ""

    @property
    def note(self) -> str:
        """What must be known to read the difference."""
        if self.same_as:
            return f"same settings as {self.same_as}"
        return unresolved(self.against_full.difference, self.n) if self.against_full else ""


@dataclass(frozen=True, slots=True)
class Ablation:
    """The outcome: rows in the order of the configurations, and the factorial of checks where all of it was run.

    ``measure`` is what the share of right answers is called: EM or accuracy.
    """

    seeds: tuple[int, ...]
    temperature: float
    data: str
    rows: tuple[Row, ...]
    factorial: Factorial | None
    skipped: Mapping[str, str]
    measure: str

    @property
    def failed(self) -> int:
        """Questions that failed, of all runs; a run that stands for two configurations counts once."""
        return sum(row.failed for row in self.rows if not row.same_as)


def tabulate(
    ablated: Sequence[Ablated], skipped: Sequence[Skipped], seeds: Sequence[int], temperature: float, data: str
) -> Ablation:
    """The numbers of what was run at ``temperature`` on the questions of ``data``; all are compared with the first.

    A difference is that of the questions' shares of seeds at which they are right, with a paired bootstrap interval.
    Gained, lost and the exact McNemar test need right or wrong: a question counts as right if it is at more than half
    of the seeds. With one seed, both are :func:`~medhop_dspy.evaluation.statistics.compare`.
    """
    full = ablated[0]
    return Ablation(
        seeds=tuple(seeds),
        temperature=temperature,
        data=data,
        rows=tuple(_row(each, None if each is full else full) for each in ablated),
        factorial=_factorial(ablated),
        skipped={each.configuration.name: each.reason for each in skipped},
        measure=full.runs[0][0].measure,
    )


def _row(ablated: Ablated, full: Ablated | None) -> Row:
    configuration, everything = ablated.configuration, [result for run in ablated.runs for result in run]
    answered = [result for result in everything if result.scored]
    return Row(
        name=configuration.name,
        meaning=configuration.meaning,
        program=configuration.program,
        overrides=dict(configuration.overrides),
        n=len(ablated.runs[0]),
        em=bootstrap_ci(_right(ablated)),
        against_full=_against(full, ablated) if full else None,
        same_answers=_same_answers(full, ablated) if full else None,
        withheld=sum(result.answer is None for result in answered) / len(everything),
        failed=len(everything) - len(answered),
        lm_calls=fmean(result.lm_calls for result in everything),
        seconds=fmean(result.seconds for result in answered) if answered else 0.0,
        seeds=determinism(ablated.runs) if len(ablated.runs) > 1 and _all_answered(ablated.runs) else None,
        same_as=ablated.same_as,
    )


def _right(ablated: Ablated) -> list[float]:
    """By question, the share of seeds at which it is right."""
    return [fmean(bool(result.right) for result in each) for each in zip(*ablated.runs, strict=True)]


def _against(full: Ablated, other: Ablated) -> Comparison:
    first, second = _right(full), _right(other)
    tested = compare([share > 0.5 for share in first], [share > 0.5 for share in second])
    difference = bootstrap_ci([b - a for a, b in zip(first, second, strict=True)])
    return Comparison(difference, tested.gained, tested.lost, tested.p)


def _same_answers(full: Ablated, other: Ablated) -> float | None:
    shares = [same_answers(zip(*pair, strict=True)) for pair in zip(full.runs, other.runs, strict=True)]
    known = [share for share in shares if share is not None]
    return fmean(known) if known else None


def _all_answered(runs: Sequence[Sequence[AnyResult]]) -> bool:
    """Whether any question is answered in all of the runs."""
    return any(all(result.answered for result in each) for each in zip(*runs, strict=True))


def _factorial(ablated: Sequence[Ablated]) -> Factorial | None:
    by_name = {each.configuration.name: each for each in ablated}
    if not all(each.name in by_name for each in FACTORIAL):
        return None
    switches = VALIDATORS.items()
    cells = {
        frozenset(v for v, switch in switches if each.overrides[switch]): _right(by_name[each.name])
        for each in FACTORIAL
    }
    drafts, refused, pairs = overlaps({v: by_name[checks_name([v])].runs for v in VALIDATORS})
    return Factorial(len(ablated[0].runs[0]), effects(cells), drafts, refused, pairs)


def write_table(folder: Path, ablation: Ablation) -> None:
    """Write ``ablations.json``: the fields of :class:`Ablation`, and each row's note.

    Raises:
        DiskFullError, InputError: it cannot be written; what was there stays.
    """
    value = asdict(ablation)
    for row, saved in zip(ablation.rows, value["rows"], strict=True):
        saved["note"] = row.note
    with file_errors(folder / TABLE):
        write_json(folder / TABLE, value)


def as_markdown(ablation: Ablation) -> str:
    """The tables, with what must be known to read them."""
    n, seeds, measure = ablation.rows[0].n, ", ".join(map(str, ablation.seeds)), ablation.measure
    meaning = "lenient exact match" if measure == Result.measure else "share of questions whose right option was chosen"
    compared = sum(row.against_full is not None and not row.same_as for row in ablation.rows)
    notes = [
        f"{n} questions of {ablation.data}, seeds {seeds}. {measure}: {meaning}, with its 95 % bootstrap interval; "
        f"difference: less that of {ablation.rows[0].name}, paired by question; p: exact McNemar test, not corrected "
        f"for several comparisons ({compared} here).",
        "Not resolved: the interval of the difference holds 0, so that these questions do not tell the two apart. "
        "Same answers: once normalised. Seconds depend on what the model server still held of the prompts of the run "
        "before.",
        *(f"Not run: {name}: {reason}" for name, reason in ablation.skipped.items()),
    ]
    sections = [
        Section(
            "Configurations", (*notes, Table(("configuration", measure, *_HEADER), tuple(map(_cells, ablation.rows))))
        )
    ]
    if len(ablation.seeds) > 1:
        sections.append(_seed_section(ablation))
    if ablation.factorial:
        sections.append(_factorial_section(ablation.factorial, measure))
    return markdown("Ablation", sections)


_HEADER: Final = (
    *("difference", "gained", "lost", "p", "same answers", "no answer", "failed", "LM calls", "s/question", "note"),
)


def _cells(row: Row) -> tuple[str, ...]:
    against = row.against_full
    return (
        row.name,
        str(row.em),
        *(compared_cells(against) if against else (NONE,) * 4),
        share_cell(row.same_answers),
        f"{row.withheld:.1%}",
        str(row.failed),
        f"{row.lm_calls:.1f}",
        f"{row.seconds:.1f}",
        row.note,
    )


def _seed_section(ablation: Ablation) -> Section:
    header = ("configuration", "runs", "n", "identical in all", "in two", "kappa", f"SD of {ablation.measure}")
    temperature = ablation.temperature
    cells = [
        (
            row.name,
            str(row.seeds.runs),
            str(row.seeds.n),
            f"{row.seeds.identical:.1%}",
            f"{row.seeds.agreement:.1%}",
            f"{row.seeds.kappa:.3f}",
            f"{row.seeds.em_sd:.4f}",
        )
        for row in ablation.rows
        if row.seeds and not row.same_as
    ]
    about = (
        "Answers as they are written, not normalised as in the table above, of the n questions answered at every seed; "
        f"kappa: mean over pairs of seeds. Temperature {temperature:g}{'' if temperature else f': {GREEDY}'}."
    )
    return Section("Between seeds", (about, Table(header, tuple(cells))))


def _factorial_section(factorial: Factorial, measure: str) -> Section:
    header = ("checks", f"effect on {measure}", "note")
    rows = tuple(
        (" x ".join(effect.validators), _signed(effect.em), unresolved(effect.em, factorial.n))
        for effect in factorial.effects
    )
    refused = ", ".join(f"{name} {count}" for name, count in factorial.refused.items())
    met = tuple(
        (" and ".join(pair.validators), str(pair.both), str(pair.either), share_cell(pair.share))
        for pair in factorial.overlaps
    )
    return Section(
        "Checks alone and together",
        (
            f"Effect of one check: mean {measure} with it on less mean {measure} with it off. Of two: {measure} where "
            f"both are on or both are off, less {measure} where one is on; below 0 they do in part the same.",
            Table(header, rows),
            f"First drafts refused by each check alone, of {factorial.drafts}: {refused}. Of each pair:",
            Table(("checks", "both refuse", "either refuses", "overlap"), met),
        ),
    )


def compared_cells(compared: Comparison) -> tuple[str, str, str, str]:
    """Difference, gained, lost and p for people; a p is never 0."""
    p = "< 0.001" if compared.p < 0.001 else f"{compared.p:.3f}"
    return _signed(compared.difference), str(compared.gained), str(compared.lost), p


def unresolved(difference: Interval, n: int) -> str:
    """The note on a difference whose interval holds 0; empty for others."""
    return f"not resolved at n = {n}" if difference.low <= 0 <= difference.high else ""


def share_cell(share: float | None) -> str:
    """A share in percent, or a dash."""
    return NONE if share is None else f"{share:.1%}"


def _signed(value: Interval) -> str:
    return f"{value.mean:+.3f} [{value.low:+.3f}, {value.high:+.3f}]"
