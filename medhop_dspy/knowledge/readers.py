"""Readers of the files in which Orphanet's data are published.

A reader yields partial records, several for one code where the file has several rows for it;
:func:`~medhop_dspy.knowledge.records.merge` makes one record of each code.
"""

from __future__ import annotations

import csv
import io
import logging
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final
from xml.etree.ElementTree import ParseError

from medhop_dspy.errors import CorpusError
from medhop_dspy.knowledge.records import Disorder, GeneLink, code_of
from medhop_dspy.rows import allow_long_fields

if TYPE_CHECKING:
    from pathlib import Path
    from xml.etree.ElementTree import Element

_log = logging.getLogger(__name__)

_MIM = re.compile(r"(?<![0-9])(?<!PS)[0-9]{6}(?![0-9])")
_HEADER_ROWS: Final = 50

# Field of a record: the column titles that hold it, letters and digits only, the best one first. GARD's SourceID is
# absent on purpose: in its OMIM rows that number is an OMIM number, which only SourceLabelID tells.
_COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "code": (
        "orphacode",
        "orphanumber",
        "orphanetcode",
        "orphanetid",
        "orphaid",
        "orpha",
        "sourcelabelid",
    ),
    "name": ("preferredterm", "disordername", "diseasename", "name", "label", "disorder", "disease"),
    "synonyms": ("synonyms", "synonym"),
    "type": ("typology", "disordertype", "type"),
    "omim": ("omim", "omimcodes", "omimcode", "omimids", "omimid", "mim"),
    "symbol": ("genesymbol", "symbol", "gene"),
    "gene_name": ("genetitle", "genename"),
    "gene_synonyms": ("genesynonym", "genesynonyms"),
    "locus": ("locus", "genelocus"),
    "association": ("associationtype", "disordergeneassociationtype"),
    "status": ("associationstatus", "disordergeneassociationstatus"),
}


def read_file(path: Path) -> list[Disorder]:
    """Partial records of one file, in the file's order.

    Raises:
        CorpusError: if the file cannot be read, is of an unknown kind or holds no disorder.
    """
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        raise CorpusError(f"{path}: no reader for {path.suffix!r} files", hint=f"Give {', '.join(READERS)}.")
    try:
        records = list(reader(path))
    except OSError as error:
        raise CorpusError(f"cannot read {path}: {error.strerror or error}") from error
    if not records:
        raise CorpusError(
            f"{path}: 0 disorders parsed",
            hint="XML needs Disorder elements with an OrphaCode or OrphaNumber; a table needs a row of titles with "
            "a column ORPHAcode (or SourceLabelID) and a column PreferredTerm or GeneSymbol.",
        )
    return records


# --- XML -----------------------------------------------------------------------------------------------------------


def _read_xml(path: Path) -> Iterator[Disorder]:
    # Bytes, never text: the parser then obeys the declared encoding or the byte order mark.
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import iterparse

    with path.open("rb") as file:
        try:
            for _, element in iterparse(file, events=("end",)):
                if element.tag == "Disorder":
                    code = code_of(_text(element, "OrphaCode") or _text(element, "OrphaNumber"))
                    if code:
                        yield _from_xml(code, element)
                    element.clear()
        except (ParseError, DefusedXmlException, LookupError, ValueError) as error:
            raise CorpusError(f"{path} is not readable XML: {error}", hint="Download the file again.") from error


def _text(element: Element, path: str) -> str:
    """Text of the first such child, never of a deeper one of the same name: a gene has a ``Name`` too."""
    return " ".join((element.findtext(path) or "").split())


def _texts(element: Element, path: str) -> tuple[str, ...]:
    texts = (" ".join((e.text or "").split()) for e in element.findall(path))
    return tuple(dict.fromkeys(t for t in texts if t))


def _from_xml(code: str, element: Element) -> Disorder:
    links = map(_link_from_xml, element.findall("DisorderGeneAssociationList/DisorderGeneAssociation"))
    references = element.findall("ExternalReferenceList/ExternalReference")
    return Disorder(
        code=code,
        name=_text(element, "Name"),
        synonyms=_texts(element, "SynonymList/Synonym"),
        type=_text(element, "DisorderType/Name"),
        genes=tuple(link for link in links if link.symbol),
        omim=tuple(_text(r, "Reference") for r in references if _text(r, "Source") == "OMIM"),
        url=_text(element, "ExpertLink"),
    )


def _link_from_xml(element: Element) -> GeneLink:
    return GeneLink(
        symbol=_text(element, "Gene/Symbol"),
        name=_text(element, "Gene/Name"),
        synonyms=_texts(element, "Gene/SynonymList/Synonym"),
        locus="; ".join(_texts(element, "Gene/LocusList/Locus/GeneLocus")),
        association=_text(element, "DisorderGeneAssociationType/Name"),
        status=_text(element, "DisorderGeneAssociationStatus/Name"),
    )


# --- Tables --------------------------------------------------------------------------------------------------------


def _read_xlsx(path: Path) -> Iterator[Disorder]:
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    with path.open("rb") as file:
        try:
            book = load_workbook(file, read_only=True, data_only=True)
            for sheet in book.worksheets:
                sheet.reset_dimensions()  # some writers declare a size of one cell
                yield from _from_rows(path, sheet.iter_rows(values_only=True))
        except (InvalidFileException, zipfile.BadZipFile, ParseError, LookupError, ValueError) as error:
            raise CorpusError(f"{path} is not a readable xlsx workbook: {error}", hint="Save it again.") from error


def _read_csv(path: Path) -> Iterator[Disorder]:
    allow_long_fields()
    try:
        text = path.read_bytes().decode("utf-8-sig")
        for delimiter in ",;\t":
            rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
            records = list(_from_rows(path, rows))
            if records:
                return iter(records)
    except UnicodeDecodeError as error:
        raise CorpusError(f"{path} is not UTF-8: {error}", hint="Save the table as UTF-8.") from error
    except csv.Error as error:
        raise CorpusError(f"{path} is not a readable table: {error}", hint="Save it as CSV again.") from error
    return iter(())


def _from_rows(path: Path, rows: Iterable[Sequence[object]]) -> Iterator[Disorder]:
    """Records of the rows below the row of titles, which may follow other rows; nothing if there is none."""
    rest = iter(rows)
    columns = next((c for c in map(_columns, islice(rest, _HEADER_ROWS)) if c), None)
    skipped = 0
    for row in rest if columns else ():
        cells = {f: "" if i >= len(row) or row[i] is None else str(row[i]).strip() for f, i in (columns or {}).items()}
        code = code_of(cells["code"])
        if code:
            yield _from_cells(code, cells)
        else:
            skipped += any(cells.values())
    if skipped:
        _log.info("%s: left out %d rows without an ORPHAcode", path, skipped)


def _columns(row: Sequence[object]) -> dict[str, int]:
    """Position of each field, or nothing if the row is not a row of titles."""
    titles = ["" if cell is None else re.sub(r"[^a-z0-9]", "", str(cell).casefold()) for cell in row]
    found = {
        f: titles.index(next(n for n in names if n in titles)) for f, names in _COLUMNS.items() if {*names} & {*titles}
    }
    return found if "code" in found and ("name" in found or "symbol" in found) else {}


def _from_cells(code: str, cells: Mapping[str, str]) -> Disorder:
    links: tuple[GeneLink, ...] = ()
    if cells.get("symbol"):
        links = (
            GeneLink(
                symbol=cells["symbol"],
                name=cells.get("gene_name", ""),
                synonyms=_list(cells.get("gene_synonyms", "")),
                locus=cells.get("locus", ""),
                association=cells.get("association", ""),
                status=cells.get("status", ""),
            ),
        )
    # In a table of genes the OMIM column belongs to the gene.
    omim = "" if "symbol" in cells else cells.get("omim", "")
    return Disorder(
        code=code,
        name=cells.get("name", ""),
        synonyms=_list(cells.get("synonyms", "")),
        type=cells.get("type", ""),
        genes=links,
        omim=tuple(dict.fromkeys(_MIM.findall(omim))),
    )


def _list(cell: str) -> tuple[str, ...]:
    """Items of ``[a, b (c, d)]`` (commas in parentheses are part of it) or of ``a; b | c``; t(9;22) is one item."""
    if cell.startswith("[") and cell.endswith("]"):
        items = re.split(r",\s+(?![^()]*\))", cell[1:-1])
    else:
        items = re.split(r";\s+|\s*\|\s*|\n", cell)
    return tuple(dict.fromkeys(i.strip() for i in items if i.strip()))


READERS: Final[dict[str, Callable[[Path], Iterator[Disorder]]]] = {
    ".xml": _read_xml,
    ".xlsx": _read_xlsx,
    ".csv": _read_csv,
    ".tsv": _read_csv,
}
