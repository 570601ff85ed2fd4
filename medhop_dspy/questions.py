"""Question files: JSONL, CSV in the layout of MedHopQA, or plain text with a question a line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from medhop_dspy.errors import InputError
from medhop_dspy.rows import by_id, csv_records, json_lines, read_utf8, scalar_text

_ID, _TEXT = "qidx", "question"


@dataclass(frozen=True, slots=True)
class Question:
    """One question; ``id`` is the text of its QIDX, or its line number where the file has none."""

    id: str
    text: str


def read_questions(path: Path) -> list[Question]:
    """The questions of a file, in order, texts unchanged but for surrounding white space.

    ``.csv`` needs the columns QIDX and Question, ``.jsonl`` objects with a ``question`` and perhaps a ``QIDX``
    (names in any case); any other suffix is read as one question a line. Blank lines are skipped.

    Raises:
        InputError: the file cannot be read, is not UTF-8, lacks a column, has a ragged row, an empty or duplicate id
            or no question, each with its place.
    """
    readers = {".csv": _csv_rows, ".jsonl": _json_rows}
    rows = readers.get(path.suffix.lower(), _text_rows)(read_utf8(path), path)
    return list(by_id(((f"line {number}", question.id, question) for number, question in rows), path, "QIDX").values())


def _csv_rows(text: str, path: Path) -> Iterator[tuple[int, Question]]:
    for number, record in csv_records(text, path, ("QIDX", "Question")):
        yield number, Question(record[_ID].strip(), record[_TEXT].strip())


def _json_rows(text: str, path: Path) -> Iterator[tuple[int, Question]]:
    for number, record in json_lines(text, path):
        fields = {name.lower(): value for name, value in record.items()}
        if not isinstance(fields.get(_TEXT), str):
            raise InputError(f"{path}, line {number}: no text in the field question", hint="Add it, as a string.")
        try:
            identifier = scalar_text(number if fields.get(_ID) is None else fields[_ID], "QIDX")
        except ValueError as error:
            raise InputError(f"{path}, line {number}: {error}", hint="Write the QIDX as a string.") from error
        yield number, Question(identifier.strip(), fields[_TEXT].strip())


def _text_rows(text: str, path: Path) -> Iterator[tuple[int, Question]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, Question(str(number), line.strip())
