"""Wikipedia XML dumps to pages, with the titles that redirect to them."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Final, Literal
from urllib.parse import quote
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse

from medhop_dspy.errors import CorpusError, DiskFullError
from medhop_dspy.retrieval.wikitext import page_text, parse, wiki_text

if TYPE_CHECKING:
    from types import TracebackType
    from xml.etree.ElementTree import Element

__all__ = ["DumpPage", "PageKind", "Redirects", "WikiPage", "read_dump", "wiki_pages", "wiki_text"]

PageKind = Literal["article", "redirect", "disambiguation", "empty"]

_DEFAULT_BASE: Final = "https://en.wikipedia.org/wiki/"
_URL_SAFE: Final = ";@$!*(),/~:"  # what MediaWiki leaves as it is
_REDIRECT: Final = re.compile(r"\s*#redirect\b", re.IGNORECASE)
_DISAMBIGUATION: Final = frozenset({
    "dab", "geodis", "hndis", "hospitaldis", "mathdab", "mil-unit-dis", "numberdis", "roaddis", "schooldis",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class DumpPage:
    """A page of the main namespace as it is in the dump.

    Attributes:
        target: Title that the page redirects to, without a section; empty if it is no redirect.
        wikitext: Text of the latest revision; empty for ``<text />``.
    """

    id: str
    title: str
    url: str
    target: str
    wikitext: str


@dataclass(frozen=True, slots=True)
class WikiPage:
    """A page in plain text; only an article has text and aliases."""

    kind: PageKind
    id: str
    title: str
    url: str
    text: str = ""
    aliases: tuple[str, ...] = ()


class Redirects:
    """Which titles redirect to a title, directly or through other redirects.

    The table lives in a temporary database that the system deletes, because a full English dump has more redirects
    than articles. Use as a context manager, or call :meth:`close`.
    """

    def __init__(self) -> None:
        self._database = sqlite3.connect("")  # private, on disk once it outgrows its cache
        self._database.execute(
            "CREATE TABLE redirect (target TEXT, alias TEXT, PRIMARY KEY (target, alias)) WITHOUT ROWID"
        )

    def add(self, pages: Iterable[DumpPage]) -> None:
        """Note every redirect among ``pages``.

        Raises:
            DiskFullError: if the temporary folder has no space left.
        """
        rows = ((page.target, page.title) for page in pages if page.target)
        try:
            with self._database:
                self._database.executemany("INSERT OR IGNORE INTO redirect VALUES (?, ?)", rows)
        except sqlite3.OperationalError as error:
            raise DiskFullError(
                f"cannot write the temporary table of redirects: {error}",
                hint="Free some space in the temporary folder, or point TMPDIR to another one.",
            ) from error

    def aliases(self, title: str) -> tuple[str, ...]:
        """Titles that lead to ``title``, sorted; a circle of redirects ends."""
        found = self._database.execute(
            """WITH RECURSIVE name (title) AS (
                 VALUES (?) UNION SELECT alias FROM redirect JOIN name ON redirect.target = name.title)
               SELECT title FROM name WHERE title <> ? ORDER BY title""",
            (title, title),
        )
        return tuple(row[0] for row in found)

    def close(self) -> None:
        """Delete the table."""
        self._database.close()

    def __enter__(self) -> Redirects:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def read_dump(stream: IO[bytes], source: str) -> Iterator[DumpPage]:
    """Pages of the main namespace, in the order of the dump, one in memory at a time.

    Args:
        stream: A MediaWiki XML export of any version, uncompressed.
        source: Name of the dump for messages.

    Raises:
        CorpusError: if it is not such an export, is cut, or declares entities.
    """
    base, namespaces = _DEFAULT_BASE, frozenset[str]()
    for element in _children(stream, source):
        name = _local(element)
        if name == "siteinfo":
            base = (_text(element, "base") or base).rpartition("/")[0] + "/"
            namespaces = frozenset(
                child.text.lower() for child in element.iter() if _local(child) == "namespace" and child.text
            )
        elif name == "page" and _in_main_namespace(element, namespaces):
            yield _dump_page(element, base)


def wiki_pages(pages: Iterable[DumpPage], redirects: Redirects) -> Iterator[WikiPage]:
    """What each page is, and the plain text of the articles."""
    for page in pages:
        if page.target:
            yield WikiPage("redirect", page.id, page.title, page.url)
            continue
        code = parse(page.wikitext)
        if _is_disambiguation(page.title, code):
            yield WikiPage("disambiguation", page.id, page.title, page.url)
        elif text := page_text(code):
            yield WikiPage("article", page.id, page.title, page.url, text, redirects.aliases(page.title))
        else:
            yield WikiPage("empty", page.id, page.title, page.url)


def _children(stream: IO[bytes], source: str) -> Iterator[Element]:
    """Each complete child of the root element; what was read is forgotten afterwards."""
    depth = 0
    root: Element | None = None
    try:
        for event, element in iterparse(stream, events=("start", "end"), forbid_dtd=True):
            if root is None:
                root = element
                if _local(root) != "mediawiki":
                    raise CorpusError(
                        f"{source}: the root element is <{_local(root)}>, not <mediawiki>",
                        hint="XML in a corpus must be a MediaWiki export, such as a Wikipedia pages-articles dump.",
                    )
            depth += 1 if event == "start" else -1
            if depth == 1 and event == "end":
                yield element
                root.clear()
    except (ParseError, DefusedXmlException) as error:
        raise CorpusError(
            f"{source}: not well-formed XML, or XML with entities of its own: {error}",
            hint="The file may be cut: compare its size with the source's and fetch it again.",
        ) from error


def _dump_page(page: Element, base: str) -> DumpPage:
    title = _text(page, "title")
    revision = _last(page, "revision")
    wikitext = _text(revision, "text") if revision is not None else ""
    mark = _last(page, "redirect")
    target = ""
    if mark is not None or _REDIRECT.match(wikitext):
        target = (mark.get("title") if mark is not None else None) or _first_link(wikitext)
        target = _canonical(target) or title  # a redirect without a target is no article either
    url = base + quote(title.replace(" ", "_"), safe=_URL_SAFE)
    return DumpPage(_text(page, "id") or title, title, url, target, "" if target else wikitext)


def _first_link(wikitext: str) -> str:
    link = next(parse(wikitext).ifilter_wikilinks(), None)
    return str(link.title) if link is not None else ""


def _canonical(title: str) -> str:
    """A link's target as the page's title is written: without section, with spaces, in upper case at the start."""
    title = " ".join(title.partition("#")[0].replace("_", " ").strip().lstrip(":").split())
    return title[:1].upper() + title[1:]


def _in_main_namespace(page: Element, namespaces: frozenset[str]) -> bool:
    number = _text(page, "ns")
    if number:
        return number == "0"
    prefix, colon, _ = _text(page, "title").partition(":")  # exports before version 0.6 have no <ns>
    return not (colon and prefix.lower() in namespaces)


def _is_disambiguation(title: str, code: Any) -> bool:  # noqa: ANN401  (Wikicode)
    if title.endswith("(disambiguation)"):
        return True
    names = (" ".join(str(t.name).replace("_", " ").lower().split()) for t in code.ifilter_templates(recursive=False))
    return any(
        name in _DISAMBIGUATION
        or (name.startswith("disambig") and "needed" not in name)
        or name.endswith(" disambiguation")
        for name in names
    )


def _local(element: Element) -> str:
    """Tag without the namespace, which differs between versions of the export format."""
    return element.tag.rpartition("}")[2]


def _last(parent: Element, name: str) -> Element | None:
    """The last child of that name: of a page's revisions, the latest."""
    return next((child for child in reversed(parent) if _local(child) == name), None)


def _text(parent: Element, name: str) -> str:
    child = _last(parent, name)
    return (child.text or "") if child is not None else ""
