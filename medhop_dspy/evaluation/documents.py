"""Documents of sections with text, tables and drawings, as Markdown and as one self-contained page of HTML.

Everything in them is data, never markup, drawings apart: whatever an answer or a title holds is shown as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

# Characters without a picture, which would vanish or break a line.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_MARKUP: Final = re.compile(r"[\\`*<>&|~$]|(?<!\w)_|_(?!\w)|(?<=\])\(|!(?=\[)")
_STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:75rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;margin:.8rem 0;display:block;overflow-x:auto}"
    "th,td{border:1px solid #ccc;padding:.25rem .6rem;text-align:left;vertical-align:top;unicode-bidi:isolate}"
    "th{background:#f2f4f7}caption{text-align:left;color:#555}svg{max-width:46rem;width:100%}"
)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under a header, all of one length."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """Finished SVG, with everything in it escaped; left out of Markdown."""

    svg: str


@dataclass(frozen=True, slots=True)
class Section:
    """Paragraphs (plain strings), tables and drawings, in order; a folded one is closed at first on the page."""

    title: str
    parts: tuple[str | Table | Drawing, ...]
    folded: bool = False


def markdown(title: str, sections: Iterable[Section]) -> str:
    """The document in GitHub's Markdown."""
    blocks = [f"# {_plain(title)}"]
    for section in sections:
        blocks.append(f"## {_plain(section.title)}")
        for part in section.parts:
            if isinstance(part, Table):
                blocks += [_plain(part.caption)] if part.caption else []
                blocks.append(markdown_table(part))
            elif isinstance(part, str):
                blocks.append(_plain(part))
    return "\n\n".join(blocks) + "\n"


def markdown_table(table: Table) -> str:
    """The table with aligned columns, without its caption."""
    rows = [[_plain(cell) for cell in row] for row in (table.header, *table.rows)]
    widths = [max(3, *(len(row[i]) for row in rows)) for i in range(len(table.header))]
    lines = ["| " + " | ".join(f"{c:{w}}" for c, w in zip(row, widths, strict=True)) + " |" for row in rows]
    lines.insert(1, "| " + " | ".join("-" * width for width in widths) + " |")
    return "\n".join(lines)


def html_page(title: str, sections: Sequence[Section]) -> str:
    """The document as a page that loads nothing and runs nothing."""
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            # Even if something slipped through, a browser would not load or run it.
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            f"<title>{_html(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{_html(title)}</h1>",
            *(line for section in sections for line in _section(section)),
            "</body>\n</html>\n",
        ]
    )


def _section(section: Section) -> Iterator[str]:
    yield f"<h2>{_html(section.title)}</h2>"
    if section.folded:
        yield "<details><summary>show</summary>"
    for part in section.parts:
        if isinstance(part, Drawing):
            yield part.svg
        elif isinstance(part, Table):
            yield _html_table(part)
        else:
            yield f"<p>{_html(part)}</p>"
    if section.folded:
        yield "</details>"


def _html_table(table: Table) -> str:
    caption = f"<caption>{_html(table.caption)}</caption>" if table.caption else ""
    head = "".join(f"<th>{_html(cell)}</th>" for cell in table.header)
    rows = ("".join(f"<td>{_html(cell)}</td>" for cell in row) for row in table.rows)
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table>{caption}<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"


def shown(text: str) -> str:
    """``text`` with a sign in place of what cannot be shown."""
    return _CONTROL.sub("\ufffd", text)


def _html(text: str) -> str:
    return escape(shown(text))


def _plain(text: str) -> str:
    """One line in which nothing is markup."""
    return _MARKUP.sub(lambda match: f"\\{match[0]}", shown(" ".join(text.split())))
