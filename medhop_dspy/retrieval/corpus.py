"""Corpus files to documents.

Read are JSON Lines, JSON, CSV, text files and Wikipedia dumps, plain or compressed, one file or a folder of them. Which
fields a record must have is in one table, :data:`medhop_dspy.retrieval.records.LAYOUTS`.
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from medhop_dspy.errors import CorpusError
from medhop_dspy.retrieval.records import (
    LAYOUTS,
    Record,
    Records,
    layout_of,
    read_csv,
    read_json,
    read_jsonl,
    read_text,
)
from medhop_dspy.retrieval.wikipedia import Redirects, WikiPage, read_dump, wiki_pages

_READERS: Final[dict[str, Callable[[IO[bytes], str], Records]]] = {
    "jsonl": read_jsonl,
    "json": read_json,
    "csv": read_csv,
    "text": read_text,
}
_NOTICE: Final = re.compile(r"(readme|licen[cs]e|copying|notice|changelog)\b", re.IGNORECASE)
_KINDS_HINT: Final = (
    "A corpus is one or more files of kind .jsonl, .json, .csv, .txt, .md or Wikipedia dump (.xml, .xml.bz2); "
    ".jsonl, .json, .csv and .xml may end in .gz or .bz2."
)
_LAYOUTS_HINT: Final = (
    "Needed are " + ", or ".join(f"{', '.join(sorted(lay.needs))} ({lay.name})" for lay in LAYOUTS) + "."
)


@dataclass(frozen=True, slots=True)
class Document:
    """One article, abstract, page or book section.

    Attributes:
        id: Unique in a corpus, never empty.
        title: Title, or the id where the source has none.
        url: Link to the source, or the empty string.
        text: Plain text.
        aliases: Other names of the document, such as titles that redirect to it.
    """

    id: str
    title: str
    url: str
    text: str
    aliases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.id:
            raise CorpusError(f"document {self.title!r} has an empty id", hint="Give every document an id of its own.")

    @property
    def digest(self) -> str:
        """Hex SHA-256 of all fields, the same on every machine."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode("ascii")).hexdigest()


class Problem(NamedTuple):
    """A record or file that was left out, and why.

    Attributes:
        source: The file, relative to the corpus folder.
        number: Line on which the record begins, or its place in a JSON object, from 1; 0 if it is the whole file.
        reason: What is wrong with it.
    """

    source: str
    number: int
    reason: str


@dataclass(slots=True)
class ReadReport:
    """What a reading has met so far.

    Attributes:
        documents: Documents that were handed out.
        empty: Records and pages without text.
        redirects: Wikipedia pages that only lead to another one; their titles are aliases of that one.
        disambiguations: Wikipedia pages that only list others; left out.
        problems: What could not be used.
        skipped: Files of a folder that are of no kind that is read, and readme and licence files.
    """

    documents: int = 0
    empty: int = 0
    redirects: int = 0
    disambiguations: int = 0
    problems: list[Problem] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


class _File(NamedTuple):
    path: Path
    source: str  # the path relative to the corpus
    kind: str

    def place(self, number: int) -> str:
        unit = {"dump": "page", "json": "item"}.get(self.kind, "line")
        return f"{self.source} {unit} {number}" if number else self.source


def read_corpus(path: Path, report: ReadReport) -> Iterator[Document]:
    """Documents of a file or of all files below a folder, in the order of their paths, then as in the file.

    One document is in memory at a time, or one ``.json`` file, besides all ids. Counts are right once the documents
    are used up.

    Args:
        path: ``.jsonl`` and ``.csv``; ``.json``, one object of records, or of lists of sentences, by their ids;
            ``.txt`` and ``.md``, one document each, whose id is the relative path and whose title is the file's name;
            Wikipedia dumps (``.xml``). All but text files also as ``.gz`` or ``.bz2``, where a ``.bz2`` of no other
            kind is a dump. Hidden files are passed over.
        report: Where counts and refused records are noted.

    Raises:
        CorpusError: at once, if there is no such path or no file that can be read. While reading, if a file is
            damaged or its first record is of no known layout, or if an id occurs twice. At the end, if there was no
            document.
    """
    return _unique(_find(path, report), report, path)


def _find(path: Path, report: ReadReport) -> list[_File]:
    if not path.exists():
        raise CorpusError(f"no such file or folder: {path}", hint="Give the path of a corpus file or folder.")
    if path.is_dir():
        below = {p.relative_to(path).as_posix(): p for p in path.rglob("*") if p.is_file()}
        files = [_File(below[source], source, _kind(source)) for source in sorted(below) if not _hidden(source)]
    else:
        files = [_File(path, path.name, _kind(path.name))]
    report.skipped += [file.source for file in files if not file.kind]
    if not any(file.kind for file in files):
        raise CorpusError(f"nothing to read in {path}: no file of a kind that is read", hint=_KINDS_HINT)
    return [file for file in files if file.kind]


def _hidden(source: str) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in source.split("/"))


def _kind(source: str) -> str:
    """``dump`` or a key of :data:`_READERS`; empty for anything else."""
    name = source.lower().rpartition("/")[2]
    plain = name.removesuffix(".gz").removesuffix(".bz2")
    if plain.endswith((".jsonl", ".json", ".csv")):
        return plain.rpartition(".")[2]
    if plain.endswith((".txt", ".md")):
        # Compressed text is the index that comes with a multistream dump.
        return "" if plain != name or _NOTICE.match(name) else "text"
    return "dump" if ".xml" in plain or name.endswith(".bz2") else ""


def _unique(files: list[_File], report: ReadReport, path: Path) -> Iterator[Document]:
    places: dict[str, tuple[_File, int]] = {}
    for file, number, document in _documents(files, report):
        if document.id in places:
            first_file, first_number = places[document.id]
            raise CorpusError(
                f"document id {document.id!r} occurs twice: {first_file.place(first_number)} and {file.place(number)}",
                hint="Give every document an id of its own, or leave one of the two out.",
            )
        places[document.id] = (file, number)
        report.documents += 1
        yield document
    if not places:
        first = f", the first in {report.problems[0].source}: {report.problems[0].reason}" if report.problems else ""
        raise CorpusError(
            f"no document in {path}: {report.empty} records without text, {len(report.problems)} problems{first}",
            hint=_KINDS_HINT,
        )


def _documents(files: list[_File], report: ReadReport) -> Iterator[tuple[_File, int, Document]]:
    """Every document and its place. Dumps are read twice: a redirect may stand in another file than its target."""
    with Redirects() as redirects:
        for file in files:
            if file.kind == "dump":
                with _opened(file) as stream:
                    redirects.add(read_dump(stream, file.source))
        for file in files:
            with _opened(file) as stream:
                if file.kind == "dump":
                    records = _dump_records(wiki_pages(read_dump(stream, file.source), redirects), report)
                else:
                    records = _READERS[file.kind](stream, file.source)
                for number, document in _usable(records, file, report):
                    yield file, number, document


def _usable(records: Records, file: _File, report: ReadReport) -> Iterator[tuple[int, Document]]:
    """The records that are documents. The others are counted or reported, but an unfit first one ends the reading."""
    first = True
    for number, record in records:
        try:
            document = _document(record)
        except CorpusError as error:
            if first and not isinstance(record, str) and layout_of(record) is None:
                raise CorpusError(f"{file.place(number)}: {error}", hint=_LAYOUTS_HINT) from error
            report.problems.append(Problem(file.source, number, str(error)))
            continue
        finally:
            first = first and isinstance(record, str)
        if document:
            yield number, document
        else:
            report.empty += 1


def _document(record: Record | str) -> Document | None:
    """The document of a record; None if it has no text. Raises CorpusError with the reason for any other."""
    if isinstance(record, str):
        raise CorpusError(record)
    layout = layout_of(record)
    if layout is None:
        raise CorpusError(f"fields of no known layout: {', '.join(map(str, record)) or 'none'}")
    fields = layout.fields(record)
    return Document(**fields) if fields["text"].strip() else None


def _dump_records(pages: Iterable[WikiPage], report: ReadReport) -> Records:
    for number, page in enumerate(pages, start=1):
        if page.kind == "redirect":
            report.redirects += 1
        elif page.kind == "disambiguation":
            report.disambiguations += 1
        else:
            yield number, asdict(page)


@contextmanager
def _opened(file: _File) -> Iterator[IO[bytes]]:
    """The file's bytes, uncompressed; what is wrong with them becomes a CorpusError that names the file."""
    openers: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}
    try:
        with openers.get(file.path.suffix.lower(), open)(file.path, "rb") as stream:
            yield stream
    except UnicodeDecodeError as error:
        raise CorpusError(f"{file.path} is not UTF-8: {error}", hint="Save the file as UTF-8.") from error
    except (OSError, EOFError, zlib.error) as error:
        raise CorpusError(f"cannot read {file.path}: {error}", hint="The file may be damaged or cut.") from error
