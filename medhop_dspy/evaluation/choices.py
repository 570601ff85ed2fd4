"""Readers of multiple-choice sets: local files in the layouts of their authors, and data sets of the hub.

Parquet files are read by ``datasets``. Its readers of JSON and CSV are not used: they guess types (see
:mod:`medhop_dspy.rows`) and call the hub even for a local file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from medhop_dspy.errors import InputError
from medhop_dspy.evaluation.choice_layouts import LAYOUTS, layout_of
from medhop_dspy.evaluation.records import ChoiceQuestion
from medhop_dspy.rows import by_id, csv_records, csv_rows, json_lines, json_objects, read_utf8

if TYPE_CHECKING:
    from datasets import Dataset

MMLU_MED: Final = (
    "anatomy",
    "clinical_knowledge",
    "college_biology",
    "college_medicine",
    "medical_genetics",
    "professional_medicine",
)
_MMLU_LETTERS: Final = "ABCD"
_MMLU_FIELDS: Final = 6  # question, four options, letter
_KNOWN: Final = ", or ".join(f"{', '.join(sorted(layout.needs))} ({layout.name})" for layout in LAYOUTS)
_LAYOUTS_HINT: Final = f"Known are {_KNOWN}. Open questions are JSON lines (.jsonl) with QIDX, Question, answer."


class _Row(NamedTuple):
    place: str  # for messages, such as "line 3"
    fields: dict[str, Any]


def read_choices(source: Path) -> list[ChoiceQuestion]:
    """The questions of a multiple-choice set, in order; no text is changed, no network used and no cache written.

    The layout is recognised by the columns: MedQA, MedMCQA, MMLU or PubMedQA, as their authors publish them or as on
    the hub. A question without an id has its number, from 1; one of MMLU has its subject and number.

    MedMCQA's ``cop`` counts from 1 in the original files and from 0 on the hub. Which one a file has follows from all
    of its rows: 0 or -1 (kept back) stand only in a count from 0, 4 only in one from 1. Neither, or both, is an error.

    Args:
        source: ``.jsonl``; ``.json`` with a list, objects one after the other, or one object by PMID; ``.csv``, with a
            header or as MMLU's files, whose subject is the file's name; ``.parquet``; or a folder with MMLU's
            ``*_test.csv``, of which the six of MMLU-Med are read, in alphabetical order.

    Raises:
        InputError: the file cannot be read, is of no known kind or layout, or has no question; a row lacks a column,
            has a value of the wrong kind or an id that occurs twice; the folder lacks a subject.
    """
    if not source.exists():
        raise InputError(f"no such file or folder: {source}", hint="Give the path of a multiple-choice set.")
    if source.is_dir():
        return [question for path in files_of(source) for question in read_choices(path)]
    reader = _READERS.get(source.suffix.lower())
    if reader is None:
        raise InputError(
            f"{source} is of kind {source.suffix or 'none'}; {', '.join(_READERS)} or a folder is needed",
            hint="Give the file as its authors publish it, unpacked.",
        )
    return _questions(list(reader(source)), source)


def choices_of(dataset: Dataset) -> list[ChoiceQuestion]:
    """The questions of one split that was loaded with ``datasets``, as :func:`read_choices` gives them.

    Raises:
        InputError: it is no ``Dataset``, or as for a file, with the row, from 1.
    """
    from datasets import Dataset

    if not isinstance(dataset, Dataset):
        raise InputError(
            f"a {type(dataset).__name__} in place of a datasets.Dataset",
            hint='Load one split, such as load_dataset(..., split="test"), without streaming.',
        )
    return _questions(list(_dataset_rows(dataset)), "the data set")


def _questions(rows: list[_Row], source: object) -> list[ChoiceQuestion]:
    return list(by_id(_converted(rows, source), source, "id").values())


def _converted(rows: list[_Row], source: object) -> Iterator[tuple[str, str, ChoiceQuestion]]:
    """Place, id and question of each row."""
    if not rows:
        return
    columns = rows[0].fields
    layout = layout_of(columns)
    if layout is None:
        raise InputError(f"{source}: the columns {', '.join(columns)} are of no known layout", hint=_LAYOUTS_HINT)
    try:
        convert = layout.converter([row.fields for row in rows])
    except ValueError as error:
        raise InputError(f"{source}: {error}", hint=f"Check that it is the file of {layout.name}.") from error
    for number, (place, fields) in enumerate(rows, start=1):
        if missing := layout.needs - fields.keys():
            raise InputError(f"{source}, {place}: no {', '.join(sorted(missing))}", hint=_LAYOUTS_HINT)
        try:
            question = convert(fields, number)
        except ValueError as error:
            raise InputError(f"{source}, {place}: {error}", hint=f"Compare with {layout.name}'s own files.") from error
        yield place, question.id, question


def files_of(source: Path) -> list[Path]:
    """The files that are read: ``source``, or where it is a folder, those of MMLU-Med in alphabetical order.

    Raises:
        InputError: the folder lacks a subject.
    """
    if not source.is_dir():
        return [source]
    files = [source / f"{subject}_test.csv" for subject in MMLU_MED]
    if missing := [file.name for file in files if not file.is_file()]:
        raise InputError(
            f"{source} lacks {', '.join(missing)}; the six subjects of MMLU-Med are needed",
            hint="Give the folder data/test of MMLU, or a single file.",
        )
    return files


def _json_line_rows(path: Path) -> Iterator[_Row]:
    for number, fields in json_lines(read_utf8(path), path):
        yield _Row(f"line {number}", fields)


def _json_rows(path: Path) -> Iterator[_Row]:
    yield from (_Row(*item) for item in json_objects(read_utf8(path), path, key="PMID"))


def _csv_rows(path: Path) -> Iterator[_Row]:
    text = read_utf8(path)
    _, first = next(csv_rows(text, path), (0, []))
    if len(first) == _MMLU_FIELDS and first[-1] in set(_MMLU_LETTERS):
        yield from _mmlu_rows(text, path)
    else:
        yield from (_Row(f"line {line}", record) for line, record in csv_records(text, path))


def _mmlu_rows(text: str, path: Path) -> Iterator[_Row]:
    """The rows of one of MMLU's files, which have no header, in the columns of the copy on the hub."""
    subject = re.sub(r"_(test|val|dev)$", "", path.stem)
    for line, row in csv_rows(text, path):
        if len(row) != _MMLU_FIELDS:
            raise InputError(
                f"{path}, line {line}: {len(row)} fields, MMLU has {_MMLU_FIELDS}",
                hint="A row is the question, four options and the letter of the right one.",
            )
        question, *choices, answer = row
        yield _Row(f"line {line}", {"question": question, "choices": choices, "answer": answer, "subject": subject})


def _parquet_rows(path: Path) -> Iterator[_Row]:
    import pyarrow.parquet  # type: ignore[import-untyped]
    from datasets import Dataset

    try:
        table = pyarrow.parquet.read_table(path)
    except (OSError, ValueError) as error:  # pyarrow's own errors are ValueErrors
        raise InputError(f"cannot read {path}: {error}", hint="Download or write the file again.") from error
    # Not Dataset.from_parquet, which copies the table into a cache on disk.
    return _dataset_rows(Dataset(table))


def _dataset_rows(dataset: Dataset) -> Iterator[_Row]:
    """Rows, from 1, in which class labels are their names, and None where they are kept back."""
    from datasets import ClassLabel

    labels = {name: feature for name, feature in dataset.features.items() if isinstance(feature, ClassLabel)}
    for number, row in enumerate(dataset.with_format(None), start=1):
        for name, feature in labels.items():
            row[name] = feature.int2str(row[name]) if row[name] not in {None, -1} else None
        yield _Row(f"row {number}", row)


_READERS: Final[dict[str, Callable[[Path], Iterator[_Row]]]] = {
    ".jsonl": _json_line_rows,
    ".json": _json_rows,
    ".csv": _csv_rows,
    ".parquet": _parquet_rows,
}
KINDS: Final = frozenset(_READERS)
"""Endings of the files that :func:`read_choices` takes."""
