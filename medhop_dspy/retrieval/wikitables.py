"""Tables to lines of ``Header: cell; Header: cell``, so that each row can be read on its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell as written: its text on one line, and how many columns and rows it spans (1 or more)."""

    text: str
    header: bool = False
    columns: int = 1
    rows: int = 1


_MAX_COLUMNS: Final = 200  # a hostile table may claim any number


def table_text(rows: list[list[Cell]]) -> str:
    """One line for each row that has text.

    Rows of header cells only name the columns below them (several in a row are put together). A cell that spans
    columns is written once, one that spans rows in each of them. Without column names, a row that
    starts with a header becomes ``header: cell; cell``. A single cell stays a plain line.
    """
    lines: list[str] = []
    names: list[str] = []
    unused = False  # names that no row has stood under yet
    for row in _grid(rows):
        distinct = list(dict.fromkeys(row))
        if len(distinct) > 1 and all(slot.cell.header for slot in distinct):
            names = _column_names(row, names if unused else [])
            unused = True
            continue
        unused = unused and len(distinct) < 2
        lines.append(_line(row, names))
    if unused:
        lines.append("; ".join(filter(None, names)))
    return "\n".join(filter(None, lines))


@dataclass(frozen=True, slots=True, eq=False)
class _Slot:
    """One cell in the grid; the same object in all the places that it spans."""

    cell: Cell


def _grid(rows: list[list[Cell]]) -> Iterator[list[_Slot]]:
    """Rows with every spanning cell repeated."""
    carried: dict[int, tuple[_Slot, int]] = {}  # column -> cell from above, rows that it still fills
    for cells in rows:
        row: list[_Slot] = []
        for cell in cells:
            _take_carried(row, carried)
            slot = _Slot(cell)
            for _ in range(max(1, min(cell.columns, _MAX_COLUMNS - len(row)))):
                if cell.rows > 1:
                    carried[len(row)] = (slot, cell.rows - 1)
                row.append(slot)
        _take_carried(row, carried)
        yield row


def _take_carried(row: list[_Slot], carried: dict[int, tuple[_Slot, int]]) -> None:
    while len(row) in carried:
        slot, left = carried.pop(len(row))
        if left > 1:
            carried[len(row)] = (slot, left - 1)
        row.append(slot)


def _column_names(row: list[_Slot], above: list[str]) -> list[str]:
    """Text of each column's header cells, from the top."""
    texts = [slot.cell.text for slot in row]
    above = above + [""] * (len(texts) - len(above))
    return [text if text == upper else f"{upper} {text}".strip() for upper, text in zip(above, texts, strict=False)]


def _line(row: list[_Slot], names: list[str]) -> str:
    cells = [(column, slot.cell) for column, slot in enumerate(row) if slot not in row[:column] and slot.cell.text]
    if len(cells) == 1:
        return cells[0][1].text
    if not names and cells and cells[0][1].header:
        return f"{cells[0][1].text}: {'; '.join(cell.text for _, cell in cells[1:])}"
    named = ((names[column] if column < len(names) else "", cell.text) for column, cell in cells)
    return "; ".join(f"{name}: {text}" if name else text for name, text in named)
