"""Wikitext to plain text.

The parsing is mwparserfromhell's; this module says what becomes of each kind of node. A few patterns at the end
only mend what the parser hands back as text because it was never closed.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Final

import mwparserfromhell
from mwparserfromhell.nodes import Argument, Comment, ExternalLink, Heading, HTMLEntity, Tag, Template, Text, Wikilink

from medhop_dspy.retrieval.wikitables import Cell, table_text
from medhop_dspy.retrieval.wikitemplates import Arguments, one_line, power, template_text

_LISTED_SECTIONS: Final = frozenset(
    {"references", "notes and references", "notes", "footnotes", "citations", "external links", "further reading"}
)
_DROPPED_TAGS: Final = frozenset({
    "categorytree", "gallery", "graph", "hiero", "imagemap", "indicator", "inputbox", "mapframe", "maplink", "ref",
    "references", "score", "script", "section", "style", "templatedata", "templatestyles", "timeline",
})  # fmt: skip
_RAW_TAGS: Final = frozenset({"ce", "chem", "math", "nowiki", "pre", "source", "syntaxhighlight"})
_LINE_TAGS: Final = frozenset({
    "blockquote", "br", "center", "div", "dl", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "ol", "p", "poem", "ul",
})  # fmt: skip
_FILE_OPTION: Final = re.compile(
    r"thumb(nail)?|frame(d|less)?|border|left|right|center|centre|none|baseline|sub|super|top|middle|bottom|text-top|"
    r"text-bottom|upright|\d*(x\d*)? ?px|(alt|link|class|lang|page|start|end|thumbtime|upright|thumb(nail)?)\s*=.*",
    re.IGNORECASE | re.DOTALL,
)
# Links to the same article in other languages; sister projects have longer prefixes and stay in the sentence.
_LANGUAGE_LINK: Final = re.compile(r"(?!doi$|irc$)[a-z]{2,3}(-[a-z]{2,8}){0,2}|simple")

_QUOTES: Final = re.compile(r"'{2,}")
_SPACES: Final = re.compile(r"[^\S\n]+")
_MAGIC_WORD: Final = re.compile(r"__[A-Z]{3,}__")
_STRAY_TAG: Final = re.compile(
    r"</?(?:ref|references|gallery|nowiki|includeonly|noinclude|onlyinclude|br|hr|p|div|span|small|big|center|sup|sub|"
    r"b|i|u|s|em|strong|font|blockquote|table|tr|td|th|ul|ol|li|dl|dt|dd|code|math)\b[^<>\n]*>?",
    re.IGNORECASE,
)
_STRAY_MARK: Final = re.compile(r"\{\{+|\}\}+|\[\[|\]\]|<!--|-->")
# Brackets and separators around something that is not shown; repeats are bounded to keep the search linear.
_HOLLOW: Final = re.compile(
    r" \((?: ?[,;:]){0,8} ?\)|\((?: ?[,;:]){1,8} ?\)|(?<=\()(?: ?[,;]){1,8} ?|(?: ?[,;]){1,8} ?(?=\))"
)
_GAP: Final = re.compile(r" (?=[,;.](?:\s|$)|\))|(?<=\() ")


def wiki_text(wikitext: str) -> str:
    """What a reader would see of ``wikitext``, one line for each paragraph, list item, heading and table row.

    Left out: references, comments, categories, language links, picture options, and sections that only list
    references or links elsewhere. Kept: captions, and boxes and table rows as ``key: value; key: value``.
    """
    return page_text(parse(wikitext))


def parse(wikitext: str) -> Any:  # noqa: ANN401  (Wikicode; the parser has no type information)
    """The nodes of ``wikitext``.

    Bold and italic stay text: the parser takes an unclosed ``''`` for a reason to give up on the table,
    reference or link around it, where MediaWiki closes it at the end of the line.
    """
    return mwparserfromhell.parse(wikitext, skip_style_tags=True)


def page_text(code: Any) -> str:  # noqa: ANN401
    """:func:`wiki_text` of what is parsed already."""
    kept: list[tuple[int, str, str]] = []
    for level, title, body in reversed(list(_sections(code.nodes))):
        # A heading stays if something stands below it.
        if body or (title and kept and kept[-1][0] > level):
            kept.append((level, title, body))
    return "\n".join(line for _, title, body in reversed(kept) for line in (title, body) if line)


def _sections(nodes: Sequence[Any]) -> Iterator[tuple[int, str, str]]:
    """(level, heading, text) in order; the lead has level 0. Sections of listed references are left out."""
    bounds = [-1, *(i for i, node in enumerate(nodes) if isinstance(node, Heading)), len(nodes)]
    skipped = 7  # headings at this level or above end what is skipped; none is deeper than 6
    for start, end in pairwise(bounds):
        level, title = (nodes[start].level, _inline(nodes[start].title)) if start >= 0 else (0, "")
        if level > skipped:
            continue
        skipped = level if title.lower() in _LISTED_SECTIONS else 7
        if skipped == 7:
            yield level, title, _tidy(_render(nodes[start + 1 : end], block=True))


def _render(nodes: Sequence[Any], *, block: bool = False) -> str:
    """Text of ``nodes``. ``block``: they stand at the level of paragraphs, not inside a line."""
    shown = ""
    for position, node in enumerate(nodes):
        if isinstance(node, Text):
            shown += _QUOTES.sub(_apostrophes, str(node.value))
        elif isinstance(node, Template):
            alone = block and _at_line_start(shown) and _at_line_end(nodes[position + 1 : position + 2])
            shown += template_text(_inline(node.name), partial(_arguments, node), own_line=alone)
        elif isinstance(node, Tag):
            shown += _tag(node, shown, block=block)
        elif renderer := _RENDERERS.get(type(node)):
            shown += renderer(node)
    return shown


def _apostrophes(quotes: re.Match[str]) -> str:
    """What MediaWiki shows of a run of apostrophes: bold and italic take 2, 3 or 5 of them."""
    count = len(quotes.group())
    return "'" if count == 4 else "'" * max(0, count - 5)


def _inline(code: Any) -> str:  # noqa: ANN401
    return _tidy(_render(code.nodes))


def _at_line_start(shown: str) -> bool:
    return not shown[shown.rfind("\n") + 1 :].strip(" ")


def _at_line_end(following: Sequence[Any]) -> bool:
    """Whether nothing that a reader sees follows on the line, going by the next node alone."""
    if not following or isinstance(following[0], Template | Comment):
        return True
    return isinstance(following[0], Text) and str(following[0].value).lstrip(" ").startswith("\n")


def _arguments(template: Any) -> Arguments:  # noqa: ANN401
    named = {str(param.name).strip(): _render(param.value.nodes).strip() for param in template.params}
    positional: list[str] = []
    # The parser names unnamed arguments 1, 2, ..., as an author may do too. Numbers beyond, such as years, are keys.
    while (value := named.pop(str(len(positional) + 1), None)) is not None:
        positional.append(value)
    return Arguments(tuple(positional), named)


def _tag(node: Any, shown: str, *, block: bool) -> str:  # noqa: ANN401
    name = str(node.tag).strip().lower()
    if name in _DROPPED_TAGS:
        return ""
    if name in _RAW_TAGS:
        return _raw(name, str(node.contents or ""))
    if name == "table":
        return f"\n{table_text(list(_rows(node.contents.nodes)))}\n"
    if name in {"li", "dt", "dd"}:
        return _list_mark(node, name, shown)
    inner = _render(node.contents.nodes, block=block) if node.contents else ""
    if name == "sup":
        return power(inner.strip()) if shown[-1:].isalnum() or shown.endswith(")") else inner
    return f"\n{inner}\n" if name in _LINE_TAGS else inner


def _raw(name: str, source: str) -> str:
    """Text that is not wikitext. Braces and bars of formulae are kept apart, so that they do not pass for markup."""
    text = html.unescape(source)
    if name != "math":
        return text
    return " ".join(re.sub(r"(?<=[{}])(?=[{}])", " ", text).replace("||", "‖").split())


def _list_mark(node: Any, name: str, shown: str) -> str:  # noqa: ANN401
    if not node.wiki_markup:
        return f"\n- {_render(node.contents.nodes) if node.contents else ''}\n"
    if not _at_line_start(shown):
        return ": " if name == "dd" else ""  # the definition in `; term : definition`, or a further `*`
    return "- " if name == "li" else ""


def _rows(nodes: Sequence[Any]) -> Iterator[list[Cell]]:
    """Rows of cells of a table's content; cells before the first row mark are a row of their own."""
    loose: list[Cell] = []
    for node in nodes:
        name = str(node.tag).strip().lower() if isinstance(node, Tag) else ""
        if name in {"td", "th"} and not _is_caption(node):
            loose.append(_cell(node, name))
        elif name in {"caption", "td", "th"}:
            yield [Cell(_cell(node, name).text.removeprefix("+").strip())]
        elif name in {"tr", "tbody", "thead", "tfoot"}:
            if loose:
                yield loose
                loose = []
            yield from _rows(node.contents.nodes)
    if loose:
        yield loose


def _is_caption(cell: Any) -> bool:  # noqa: ANN401
    """Whether it is ``|+ caption``, which the parser takes for a cell."""
    return cell.wiki_markup == "|" and str(cell.contents).startswith("+")


def _cell(node: Any, name: str) -> Cell:  # noqa: ANN401
    text = one_line(_tidy(_render(node.contents.nodes))) if node.contents else ""
    return Cell(text, header=name == "th", columns=_span(node, "colspan"), rows=_span(node, "rowspan"))


def _span(node: Any, attribute: str) -> int:  # noqa: ANN401
    value = str(node.get(attribute).value).strip(" \"'") if node.has(attribute) else ""
    return int(value) if value.isdecimal() and value.isascii() and len(value) < 4 else 1


def _link(node: Any) -> str:  # noqa: ANN401
    target = _inline(node.title)
    space, colon, _ = target.partition(":")
    space = space.strip()
    if colon and space.lower() in {"file", "image"}:
        return _caption(node.text.nodes if node.text else [])
    if colon and (space.lower() == "category" or _LANGUAGE_LINK.fullmatch(space)):
        return ""
    if node.text is not None and (shown := _render(node.text.nodes)).strip():
        return shown
    return target.lstrip(":#").replace("_", " ")


def _caption(nodes: Sequence[Any]) -> str:
    """The last option of a file link that is none, on a line of its own."""
    options: list[list[Any]] = [[]]
    for node in nodes:
        parts = str(node).split("|") if isinstance(node, Text) else [node]
        for number, part in enumerate(parts):
            if number:
                options.append([])
            options[-1].append(Text(part) if isinstance(part, str) else part)
    captions = (_render(option).strip() for option in reversed(options))
    caption = next((text for text in captions if text and not _FILE_OPTION.fullmatch(text)), "")
    return f"\n{caption}\n" if caption else ""


def _external(node: Any) -> str:  # noqa: ANN401
    if node.title is not None:
        return _render(node.title.nodes)
    return "" if node.brackets else str(node.url)


_RENDERERS: Final[dict[type, Callable[[Any], str]]] = {
    Wikilink: _link,
    ExternalLink: _external,
    HTMLEntity: lambda node: html.unescape(str(node)),
    Heading: lambda node: f"\n{_inline(node.title)}\n",
    Argument: lambda node: _render(node.default.nodes) if node.default else "",
}


def _tidy(text: str) -> str:
    """One space between words, no blank lines, and none of the marks that were never closed."""
    text = _STRAY_MARK.sub("", _STRAY_TAG.sub("", _MAGIC_WORD.sub("", text)))
    text = _GAP.sub("", _HOLLOW.sub("", _SPACES.sub(" ", text)))
    lines = (line.strip() for line in text.split("\n"))
    if "|" in text:
        lines = (_without_bars(line).strip() for line in lines)
    return "\n".join(line for line in lines if line.strip("-,;. "))


def _without_bars(line: str) -> str:
    """A line of a table or template that was never closed, as its cells; any other line as it is."""
    if line.startswith(("{|", "|}", "|-")):
        return ""
    if line.startswith(("|", "!")):
        line = line[1:].removeprefix("+").replace("!!", "||")
        attributes, _, cell = line.partition("|")
        if "=" in attributes and cell and not cell.startswith("|"):
            line = cell
    return re.sub(r" ?\|\| ?", "; ", line.replace("{|", ""))
