"""Question files: JSONL, CSV in the layout of MedHopQA, or plain text with a question a line."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from medhop_dspy.errors import InputError

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
        InputError: the file cannot be read, is not UTF-8, lacks a column, has a ragged row, a duplicate id or no
            question, each with its place.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8: {error}") from error
    readers = {".csv": _csv_rows, ".jsonl": _json_rows}
    rows = list(readers.get(path.suffix.lower(), _text_rows)(text, path))
    if not rows:
        raise InputError(f"{path} holds no question")
    seen: dict[str, int] = {}
    for number, question in rows:
        if question.id in seen:
            raise InputError(f"{path}: QIDX {question.id} stands in rows {seen[question.id]} and {number}")
        seen[question.id] = number
    return [question for _, question in rows]


def _csv_rows(text: str, path: Path) -> Iterator[tuple[int, Question]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [name.strip().lower() for name in next(reader, [])]
        if not {_ID, _TEXT} <= set(header):
            raise InputError(f"{path} has the columns {', '.join(header) or 'none'}; QIDX and Question are needed")
        for row in reader:
            if not any(cell.strip() for cell in row):
                continue
            if len(row) != len(header):
                raise InputError(f"{path}, line {reader.line_num}: {len(row)} fields, the header has {len(header)}")
            record = dict(zip(header, row, strict=True))
            yield reader.line_num, Question(record[_ID].strip(), record[_TEXT].strip())
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: not CSV: {error}") from error


def _json_rows(text: str, path: Path) -> Iterator[tuple[int, Question]]:
    for number, line in enumerate(text.split("\n"), start=1):  # str.splitlines would also split inside strings
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise InputError(f"{path}, line {number}: not JSON: {error}") from error
        fields = {str(k).lower(): v for k, v in record.items()} if isinstance(record, dict) else {}
        if not isinstance(fields.get(_TEXT), str):
            raise InputError(f"{path}, line {number}: no text in the field question")
        yield number, Question(str(fields.get(_ID, number)), fields[_TEXT].strip())


def _text_rows(text: str, path: Path) -> Iterator[tuple[int, Question]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, Question(str(number), line.strip())
