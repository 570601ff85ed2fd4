"""Records of corpus files: how they are read from bytes, and which fields mean what.

Each reader yields ``(number, record)`` in the order of the file; a record that cannot be read is given as the reason,
a string. ``number`` is the line on which the record begins, from 1, or its place in a JSON object, and 0 where the
file is one record or cannot be read at all.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any, Final

from medhop_dspy.errors import CorpusError
from medhop_dspy.rows import allow_long_fields, parse_json

Record = Mapping[str, Any]
Records = Iterator[tuple[int, Record | str]]

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Layout:
    """A way to lay out records. All layouts have ``id`` and a title and may have ``url``.

    Attributes:
        name: For messages.
        needs: Fields that mark a record as of this layout.
        text: Makes the text of a record.
        aliases: Field that holds a list of other names, if any.
        title: Field that holds the title.
    """

    name: str
    needs: frozenset[str]
    text: Callable[[Record], str]
    aliases: str = "aliases"
    title: str = "title"

    def fields(self, record: Record) -> dict[str, Any]:
        """Arguments of a Document.

        Raises:
            CorpusError: if a field is of another type than it should be, or the id is empty.
        """
        identifier = _string(record, "id").strip()
        if not identifier:
            raise CorpusError("the id is empty")
        title = " ".join(_string(record, self.title).split()) or identifier
        aliases = tuple(name for name in dict.fromkeys(_texts(record, self.aliases)) if name != title)
        url, text = _string(record, "url").strip(), self.text(record)
        return {"id": identifier, "title": title, "url": url, "text": text, "aliases": aliases}


def layout_of(record: Record) -> Layout | None:
    """The first of :data:`LAYOUTS` that the record has all fields for."""
    return next((layout for layout in LAYOUTS if layout.needs <= record.keys()), None)


def read_jsonl(stream: IO[bytes], source: str) -> Records:
    """JSON objects, one a line. Only LF ends a line: U+2028 and U+0085 are text."""
    for number, line in enumerate(stream, start=1):
        if line.strip():
            yield number, _json_object(line, "utf-8-sig" if number == 1 else "utf-8")


def read_csv(stream: IO[bytes], source: str) -> Records:
    """Rows under a header; names of columns are compared without case and surrounding spaces, values not changed.

    Raises:
        CorpusError: if the header is broken or two columns have the same name.
        UnicodeDecodeError: if the file is not UTF-8.
    """
    allow_long_fields()
    with io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text:
        rows = _csv_rows(csv.reader(text, strict=True))
        number, header = next(rows, (1, []))
        if isinstance(header, str):
            raise CorpusError(f"{source} line {number}: {header}")
        names = [name.strip().lower() for name in header]
        if len(set(names)) < len(names):
            raise CorpusError(f"{source}: two columns have the same name: {', '.join(names)}")
        for number, row in rows:
            if isinstance(row, str):
                yield number, row
            elif len(row) != len(names):
                yield number, f"{len(row)} fields where the header has {len(names)}"
            else:
                yield number, dict(zip(names, row, strict=True))


def read_json(stream: IO[bytes], source: str) -> Records:
    """The records of a list, or the values of one object: records, or lists of sentences, whose names are their ids.

    Numbered from 1.

    The whole file is in memory at once.
    """
    try:
        entries = parse_json(stream.read().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        yield 0, f"not UTF-8: {error}"
        return
    except ValueError as error:
        yield 0, f"not JSON: {error}"
        return
    if isinstance(entries, list):
        for number, value in enumerate(entries, start=1):
            yield number, value if isinstance(value, dict) else f"a JSON {type(value).__name__} instead of an object"
        return
    if not isinstance(entries, dict):
        yield 0, f"a JSON {type(entries).__name__} instead of an object"
        return
    for number, (name, value) in enumerate(entries.items(), start=1):
        yield number, _entry(name, value)


def read_text(stream: IO[bytes], source: str) -> Records:
    """The whole file as one record, its path as the id and its name as the title."""
    try:
        text = stream.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        yield 0, f"not UTF-8: {error}"
        return
    yield 0, {"id": source, "title": PurePosixPath(source).stem.replace("_", " "), "text": text}


def _entry(name: str, value: object) -> Record | str:
    if isinstance(value, dict):
        return {**value, "id": name}
    if isinstance(value, list):
        return {"id": name, "title": name, "sentences": value}
    return f"a JSON {type(value).__name__} instead of an object or a list of sentences"


def _json_object(line: bytes, encoding: str) -> Record | str:
    try:
        record = json.loads(line.decode(encoding))
    except UnicodeDecodeError as error:
        return f"not UTF-8: {error}"
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}"
    return record if isinstance(record, dict) else f"a JSON {type(record).__name__} instead of an object"


def _csv_rows(reader: Any) -> Iterator[tuple[int, list[str] | str]]:  # noqa: ANN401  (csv's own type is private)
    """Rows that are not blank, each with the line on which it begins; a broken one as the reason."""
    while True:
        number = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield number, f"not CSV: {error}"
            continue
        if any(field.strip() for field in row):
            yield number, row


def has_half_pair(text: str) -> bool:
    """Whether ``text`` holds half of a surrogate pair: no character, and neither to be written nor to be embedded."""
    return _SURROGATE.search(text) is not None


def _string(record: Record, field: str) -> str:
    value = record.get(field)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if value is not None and not isinstance(value, str):
        raise CorpusError(f"field {field!r} is of type {type(value).__name__}, not text")
    if value and has_half_pair(value):
        raise CorpusError(f"field {field!r} holds half of a surrogate pair, which is no character")
    return value or ""


def _texts(record: Record, field: str) -> list[str]:
    values = record.get(field) or []
    if not isinstance(values, list | tuple):
        raise CorpusError(f"field {field!r} is of type {type(values).__name__}, not a list of texts")
    names = (" ".join(_string({field: value}, field).split()) for value in values)
    return [name for name in names if name]


def _objects(record: Record, field: str) -> Iterable[Record]:
    values = record[field] or []
    if not isinstance(values, list) or not all(isinstance(value, dict) for value in values):
        raise CorpusError(f"field {field!r} is not a list of objects")
    return values


def _squeezed(text: str) -> str:
    """Without blank lines and runs of spaces."""
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def _medquad_text(record: Record) -> str:
    """Synonyms, then each question above its answer; questions whose answer is withheld are left out."""
    names = _texts(record, "synonyms")
    lines = [f"Also called: {'; '.join(names)}"] if names else []
    for section in _objects(record, "sections"):
        if answer := _squeezed(_string(section, "answer")):
            lines += [" ".join(_string(section, "question").split()), answer]
    return "\n".join(lines)


def _textbook_text(record: Record) -> str:
    """Paragraphs, with the name of a section above its first one."""
    lines: list[str] = []
    above = ""
    for paragraph in _objects(record, "paragraphs"):
        section, text = _string(paragraph, "section").strip(), _squeezed(_string(paragraph, "text"))
        if text:
            lines += [section, text] if section and section != above else [text]
            above = section
    return "\n".join(lines)


LAYOUTS: Final = (
    Layout("NIH MedQuAD", frozenset({"id", "title", "sections"}), _medquad_text, "synonyms"),
    Layout("OpenStax textbook", frozenset({"id", "title", "paragraphs"}), _textbook_text),
    Layout(
        "PubMedQA",
        frozenset({"id", "QUESTION", "CONTEXTS"}),
        lambda r: "\n".join(_texts(r, "CONTEXTS")),
        title="QUESTION",
    ),
    Layout("HotpotQA", frozenset({"id", "title", "sentences"}), lambda r: " ".join(_texts(r, "sentences"))),
    Layout("plain", frozenset({"id", "title", "text"}), lambda record: _string(record, "text")),
    Layout("MedRAG", frozenset({"id", "title", "content"}), lambda record: _string(record, "content")),
)
