"""Rows of CSV and JSON files without a changed value: what a cell or a string holds is the text that comes out.

Libraries for tables guess types: ``datasets`` and pandas turn ``007`` into 7, ``NA`` into nothing, ``1e5`` into
100000.0 and ``2015-01-01`` into a date. An option, an id or an answer may be any of these, so they are read here.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from medhop_dspy.errors import InputError

_Item = TypeVar("_Item")
_LONGEST_FIELD: Final = 2**30  # the csv module stops at 131,072 characters, which long articles exceed
_JSON_TOKEN: Final = re.compile(r"[^ \t\r\n]")


def read_utf8(path: Path) -> str:
    """The text of a file, without a byte order mark.

    Raises:
        InputError: the file cannot be read or is not UTF-8.
    """
    try:
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", hint="Give the path of a readable file.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8: {error}", hint="Save the file as UTF-8.") from error


def allow_long_fields() -> None:
    """Let the csv module read cells of up to 2^30 characters.

    The limit is the interpreter's, not a reader's: every reader here calls this, so that none depends on another.
    """
    csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_FIELD))


def csv_rows(text: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not blank, each with the line on which it begins, from 1.

    Raises:
        InputError: the text is not CSV.
    """
    allow_long_fields()
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    while True:
        line = reader.line_num + 1  # of the row's beginning: line_num is that of its end
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(f"{path}, line {line}: not CSV: {error}", hint="Look for an unpaired quote.") from error
        if any(cell.strip() for cell in row):
            yield line, row


def csv_records(text: str, path: Path, needed: Sequence[str] = ()) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows under a header as :func:`csv_rows` counts them, by the names of their columns in lower case.

    Raises:
        InputError: the text is not CSV, lacks a column (compared without case and surrounding spaces), has two of the
            same name or a row with another number of fields than the header.
    """
    rows = csv_rows(text, path)
    _, header = next(rows, (1, []))
    names = [name.strip().lower() for name in header]
    if not {name.lower() for name in needed} <= set(names):
        wanted = " and ".join(needed)
        raise InputError(
            f"{path} has the columns {', '.join(names) or 'none'}; {wanted} are needed",
            hint=f"Name the columns {wanted} in the first line.",
        )
    if len(set(names)) < len(names):
        raise InputError(f"{path} has two columns of the same name: {', '.join(names)}", hint="Rename one of them.")
    for line, row in rows:
        if len(row) != len(names):
            raise InputError(
                f"{path}, line {line}: {len(row)} fields, the header has {len(names)}",
                hint="A field that holds a comma must stand in double quotes.",
            )
        yield line, dict(zip(names, row, strict=True))


def json_lines(text: str, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of JSON Lines, each with its line, from 1; blank lines are skipped. See :func:`parse_json`.

    Raises:
        InputError: a line is not JSON, or not an object.
    """
    for number, line in enumerate(text.split("\n"), start=1):  # str.splitlines would also split inside strings
        if not line.strip():
            continue
        try:
            value = parse_json(line)
        except ValueError as error:
            raise InputError(f"{path}, line {number}: not JSON: {error}", hint="Mend or remove the line.") from error
        yield number, _object(value, f"{path}, line {number}")


def json_objects(text: str, path: Path, key: str) -> list[tuple[str, dict[str, Any]]]:
    """The objects of a ``.json`` file, each with its place, such as ``item 3``.

    They may stand in one list, one after the other as in JSON Lines, or in one object by their ids; then ``key`` is
    the field that receives the id.

    Raises:
        InputError: the text is not JSON, or something in it is not an object.
    """
    try:
        values = list(_json_values(text))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}", hint="Download or write the file again.") from error
    if len(values) == 1 and isinstance(values[0], list):
        values = values[0]
    elif len(values) == 1 and isinstance(values[0], dict) and all(isinstance(v, dict) for v in values[0].values()):
        return [(f"item {name}", {**fields, key: name}) for name, fields in values[0].items()]
    places = [f"item {number}" for number in range(1, len(values) + 1)]
    return [(place, _object(value, f"{path}, {place}")) for place, value in zip(places, values, strict=True)]


def parse_json(text: str) -> Any:  # noqa: ANN401  (any JSON value)
    """One JSON value. Numbers with a point or an exponent are kept as their text, ``1e5`` as ``"1e5"``.

    Raises:
        ValueError: it is not JSON (nor are NaN and Infinity), is nested too deeply, or an object has a name twice.
    """
    try:
        return _DECODER.decode(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def scalar_text(value: object, name: str) -> str:
    """A string as it is, a number as its text.

    Raises:
        ValueError: it is anything else.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"{name} is {value!r}, not a text")


def by_id(items: Iterable[tuple[str, str, _Item]], source: object, name: str) -> dict[str, _Item]:
    """Items by id, in order, from triples of place, id and item.

    Args:
        items: The triples.
        source: The file, for messages.
        name: What the source calls an id, for messages.

    Raises:
        InputError: there is no item, or an id is blank or occurs twice; both places are named.
    """
    found: dict[str, _Item] = {}
    places: dict[str, str] = {}
    for place, key, item in items:
        if not key.strip():
            raise InputError(f"{source}, {place}: {name} is empty", hint=f"Give every row a {name} of its own.")
        if key in places:
            raise InputError(
                f"{source}: {name} {key} stands in {places[key]} and {place}",
                hint=f"Give every row a {name} of its own, or leave one of the two out.",
            )
        places[key], found[key] = place, item
    if not found:
        raise InputError(f"{source} holds no row", hint="Give a file with at least one.")
    return found


def _json_values(text: str) -> Iterator[Any]:
    """All values that stand one after the other."""
    at = 0
    while found := _JSON_TOKEN.search(text, at):
        value, at = _DECODER.raw_decode(text, found.start())
        yield value


def _object(value: object, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{place}: {type(value).__name__} in place of an object", hint="Put fields in {}.")
    return value


def _unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice!r} occurs twice in an object")
    return fields


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


_DECODER: Final = json.JSONDecoder(parse_float=str, parse_constant=_no_number, object_pairs_hook=_unique_names)
