from __future__ import annotations

import bz2
import io
import re
import time
import tracemalloc
import zlib
from pathlib import Path

import pytest

from medhop_dspy.errors import CorpusError
from medhop_dspy.retrieval.corpus import Document, ReadReport, read_corpus
from medhop_dspy.retrieval.wikipedia import Redirects, read_dump, wiki_pages, wiki_text

MARKUP = ("{{", "}}", "[[", "]]", "{|", "|}", "|-", "||", "'''", "<ref", "colspan", "&nbsp;", "__")


def show(wikitext: str) -> str:
    text = wiki_text(wikitext)
    assert not [mark for mark in MARKUP if mark in text]
    return text


# ---------------------------------------------------------------- templates (cases 48, 49)

TEMPLATES = [
    ("about {{formatnum:1500}} exons", "about 1500 exons"),
    ("At {{convert|230|kb|kbp}}, it", "At 230 kb, it"),
    ("{{convert|5|to|10|km|mi|abbr=on}}", "5 to 10 km"),
    ("{{cvt|3|-|4|mm|in}}", "3–4 mm"),
    ("{{convert|10|x|20|mm|in}}", "10 × 20 mm"),
    ("{{convert|6|ft|2|in|m|2}}", "6 ft 2 in"),
    ("{{convert|100|km|0}}", "100 km"),
    ("{{convert|-3.5|C|F}}", "-3.5 C"),
    ("born {{birth date|1950|4|2}}", "born 2 April 1950"),
    ("{{Birth date and age|df=yes|1950|04|02}}", "2 April 1950"),
    ("{{death date and age|2000|1|31|1950|4|2}}", "31 January 2000"),
    ("{{start date|1950|4}}", "April 1950"),
    ("{{start date|1950}}", "1950"),
    ("{{dts|January 5, 1950}}", "January 5, 1950"),
    ("{{as of|2009|lc=y}}, few", "as of 2009, few"),
    ("{{circa|1950}}", "c. 1950"),
    ("{{val|1.5|0.2|e=5|u=kg}}", "1.5 ± 0.2 × 10⁵ kg"),
    ("{{val|11|u=g|up=L}}", "11 g/L"),
    ("{{frac|1|2}} {{frac|3|1|2}} {{frac|4}}", "1/2 3 1/2 1/4"),
    ("{{gaps|1|500}}", "1500"),
    ("{{ratio|1|3}}", "1:3"),
    ("10{{sup|5}} {{e|-3}} {{10^|6}} {{pow|2|8}}", "10⁵ × 10⁻³ 10⁶ 2⁸"),
    ("{{chem|Ca||2+}} {{chem2|H2O}}", "Ca2+ H2O"),
    ("{{nowrap|1 in 5,000}} {{small|a {{nobr|b c}}}}", "1 in 5,000 a b c"),
    ("{{nowrap|1=p = 0.05}}", "p = 0.05"),
    ("{{lang|fr|syndrome de Marfan}} {{lang-la|os}} {{transl|grc|haima}}", "syndrome de Marfan os haima"),
    ("{{abbr|MFS|Marfan syndrome}}", "MFS"),
    ("a{{nbsp}}b{{ndash}}c{{spaced ndash}}d", "a b–c – d"),
    ("{{hlist|a|b}}; {{unbulleted list|c|d}}; {{plainlist|\n* e\n* f\n}}", "a, b; c, d; e, f"),
    ("{{quote|Said so.|Somebody}}", "Said so."),
    ("{{lc:ABC}} {{ucfirst:abc}} {{PAGENAME}}{{DEFAULTSORT:x}}{{#if:a|b|c}}", "abc Abc"),
    ("{{{1|default}}}{{{2}}}", "default"),
    ("x {{lang|2=os|1=la}} {{boxed|y}}", "x os y"),
    ("{{Population by year|1790=3,929|1800=5,308}}", "1790: 3,929; 1800: 5,308"),
    ("(a {{cn}}), ({{respell|x}} b)\n* {{cn}}.", "(a), (b)"),
    ("a {{never heard of|1 in 5|10%}} b", "a 1 in 5 10% b"),
    ("{{Historical populations|1790|3,929|1800|5,308}}", "1790 3,929 1800 5,308"),
    ("Text{{cn|date=May 2010}}{{citation needed|reason=a|date=b}}{{sfn|Smith|2010|p=3}}{{rp|23}}.", "Text."),
    ("{{About|a|b}}\n{{Main|FBN1}}\n{{Some navigation box|x}}\nText.", "Text."),
    ("Marfan ({{IPAc-en|m|ɑːr}}; {{respell|mar|fan}}, '''MFS''') is", "Marfan (MFS) is"),
    ("Marfan ({{IPAc-en|m|ɑːr}}; {{IPA-fr|m}}) is", "Marfan is"),
    ("<!-- c -->{{ <!-- c --> nowrap\n| x }}", "x"),
]


@pytest.mark.parametrize(("wikitext", "text"), TEMPLATES)
def test_templates(wikitext: str, text: str) -> None:
    assert show(wikitext) == text


def test_lead_keeps_its_content() -> None:
    wikitext = "'''Marfan syndrome''' ({{lang|fr|syndrome de Marfan}}; '''MFS''') affects {{nowrap|1 in 5,000}}."
    assert show(wikitext) == "Marfan syndrome (syndrome de Marfan; MFS) affects 1 in 5,000."


# ---------------------------------------------------------------- links and files (case 51)

LINKS = [
    ("[[chromosome 15|15]] [[gene]]s [[a_b]]", "15 genes a b"),
    ("[[CSI: Miami]] [[:Category:Genes]] [[wikt:gene|gene]]", "CSI: Miami Category:Genes gene"),
    ("a[[Category:Genes]][[category: x|y]][[de:Fibrillin]][[zh-min-nan:X]][[simple:X]][[fr:X|y]]b", "ab"),
    ("[[:de:Fibrillin|German]] [[#Function]] [[gene|]]", "German Function gene"),
    ("[http://x.org the site], [http://x.org] see", "the site, see"),
    ("[[File:a.png|thumb]][[Image:b.png|20px|left|link=c]]x", "x"),
    ("[[File:a.png|thumb|upright=1.2|See {{nowrap|[[FBN1]] (a)}}|alt=y|]]", "See FBN1 (a)"),
    ("<gallery>\nFile:a.png|caption\n</gallery>x", "x"),
]


@pytest.mark.parametrize(("wikitext", "text"), LINKS)
def test_links(wikitext: str, text: str) -> None:
    assert show(wikitext) == text


def test_file_leaves_only_its_caption() -> None:
    wikitext = (
        "Foo [[File:Fbn1.png|thumb|250px|alt=x|Gene on [[chromosome 15]]]] bar."
        "[[Category:Genes on human chromosome 15]][[de:Fibrillin]]"
    )
    assert show(wikitext) == "Foo\nGene on chromosome 15\nbar."


# ---------------------------------------------------------------- boxes and tables (case 54)

TABLES = [
    pytest.param(
        "{{Infobox gene|symbol=FBN1|chromosome=15|arm=q|band=21.1}}",
        "symbol: FBN1; chromosome: 15; arm: q; band: 21.1",
        id="infobox",
    ),
    pytest.param(
        "{{Infobox disease\n| name = Marfan\n| image = x.png\n| image_size = 250px\n| width = 3\n| field = \n"
        "| symptoms = {{plainlist|\n* Tall\n* Thin\n}}\n| causes = [[Gene]]<br />''FBN1''<ref>x</ref>\n}}'''MFS''' is",
        "name: Marfan; symptoms: Tall, Thin; causes: Gene, FBN1\nMFS is",
        id="infobox values",
    ),
    pytest.param(
        "{{Chembox|Name=A|Section1={{Chembox Identifiers|CASNo=50-78-2|PubChem=2244}}}}",
        "Name: A; Section1: CASNo: 50-78-2; PubChem: 2244",
        id="nested box",
    ),
    pytest.param("{|\n! Gene !! Chr\n|- \n| FBN1 || 15\n|}", "Gene: FBN1; Chr: 15", id="table"),
    pytest.param(
        '{| class="wikitable"\n|+ Genes\n! rowspan="2" | Gene\n! colspan=2 | Locus\n|-\n! Chr !! Band\n|-\n'
        "| rowspan=2 | FBN1 || 15 || q21\n|-\n| X || p1\n|-\n! colspan=3 | Others\n|-\n| A || colspan=2 | none\n|}",
        "Genes\nGene: FBN1; Locus Chr: 15; Locus Band: q21\nGene: FBN1; Locus Chr: X; Locus Band: p1\nOthers\n"
        "Gene: A; Locus Chr: none",
        id="spans, caption, two header rows",
    ),
    pytest.param("{|\n! Symbol\n| FBN1\n|-\n! Size\n| 1 || 2\n|}", "Symbol: FBN1\nSize: 1; 2", id="row headers"),
    pytest.param("{|\n! A !! B\n|}", "A; B", id="header only"),
    pytest.param("{|\n! G !! C\n|-\n| a\n|-\n| b || 1 || more\n|}", "a\nG: b; C: 1; more", id="ragged rows"),
    pytest.param("{|\n| a '''b || c ''d\n|}\nx", "a b; c d\nx", id="unclosed quotes in cells"),
    pytest.param("{|\n| a\n{|\n| b || c\n|}\n| d\n|}", "a, b; c; d", id="nested table"),
    pytest.param("<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2</td></tr></table>", "A: 1; B: 2", id="html"),
    pytest.param('{|\n|-\n| style="x" | a || b\n|-\n! c !! d\nunclosed', "a; b\nc; d\nunclosed", id="unclosed table"),
    pytest.param("{|\n| colspan=999999999 | a\n| rowspan=99999 | b\n|}", "a; b", id="absurd spans"),
]


@pytest.mark.parametrize(("wikitext", "text"), TABLES)
def test_boxes_and_tables(wikitext: str, text: str) -> None:
    assert show(wikitext) == text


# ---------------------------------------------------------------- the rest of the markup (case 55)

MARKS = [
    pytest.param("x<ref>a</ref>y<ref name=z />z<!-- c -->", "xyz", id="references and comments"),
    pytest.param("x <ref>a [[FBN1]].", "x a FBN1.", id="unclosed reference"),
    pytest.param("x <!-- a", "x a", id="unclosed comment"),
    pytest.param("a\n{{Infobox gene\n| symbol = FBN1\nb", "a\nInfobox gene\nsymbol = FBN1\nb", id="unclosed box"),
    pytest.param("}} a ]] b [[c", "a b c", id="stray brackets"),
    pytest.param("'''a ''b''' c\n''''q'''' 5'", "a b c\n'q' 5'", id="quotes"),
    pytest.param("&alpha;&#946;&#x3b3;&nbsp;&lt;5&amp;", "αβγ <5&", id="entities"),
    pytest.param("<nowiki>[x] & &amp; y</nowiki><nowiki/>", "[x] & & y", id="nowiki"),
    pytest.param("<math>K_{d}</math> <math>{{a}}||b</math>", "K_{d} { {a} }‖b", id="math"),
    pytest.param("10<sup>5</sup> 10<sup>−9</sup> m<sup>2</sup>", "10⁵ 10⁻⁹ m²", id="powers"),
    pytest.param("Ca<sup>2+</sup> <sup>14</sup>C H<sub>2</sub>O", "Ca2+ 14C H2O", id="ions, isotopes, formulae"),
    pytest.param("a<br>b<br/>c<p>d</p>e\n----\nf", "a\nb\nc\nd\ne\nf", id="line breaks"),
    pytest.param("* a\n** b\n# c\n; t : d\n: e", "- a\n- b\n- c\nt : d\ne", id="lists"),
    pytest.param("p < 0.05, q > 3 <b>b</b> <span class='x'>s</span></div>", "p < 0.05, q > 3 b s", id="html"),
    pytest.param("__NOTOC__\n\n\na   b\u00a0\n", "a b", id="white space"),
    pytest.param("", "", id="nothing"),
    pytest.param(
        "a\n== Function ==\nb\n== Empty ==\n== Outer ==\n=== ''Inner'' ===\nc\n"
        "== References ==\n{{reflist}}\n=== x ===\nd\n== See also ==\n* [[e]]\n== External links ==\n* [http://x x]",
        "a\nFunction\nb\nOuter\nInner\nc\nSee also\n- e",
        id="headings",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("wikitext", "text"), MARKS)
def test_marks(wikitext: str, text: str) -> None:
    assert show(wikitext) == text


def test_unclosed_template_leaves_the_rest() -> None:
    text = show("Start {{cite web|title=x. Middle text. '''End''' [[FBN1]].")
    assert all(word in text for word in ("Start", "Middle text", "End", "FBN1"))


@pytest.mark.parametrize(
    "wikitext",
    ["{{" * 3000, "[[" * 3000, "{|\n" * 500, "{{a|" * 900 + "}}" * 900, "<ref>" * 1000, "|" * 20_000, "( ;" * 8000,
     " " * 200_000, "\n" * 200_000, "{{{" * 2000, "<!--" * 1000, "'''" * 5000 + "x"],
    ids=["{{", "[[", "{|", "deep", "<ref>", "|", "( ;", "spaces", "lines", "{{{", "<!--", "quotes"],
)  # fmt: skip
def test_hostile_markup_ends_soon(wikitext: str) -> None:
    started = time.perf_counter()
    wiki_text(wikitext)
    assert time.perf_counter() - started < 10


# ---------------------------------------------------------------- dumps (case 52)


def page(title: str, text: str | None, *, ns: str | None = "0", number: int = 0, extra: str = "") -> str:
    body = "<text />" if text is None else f'<text xml:space="preserve">{text}</text>'
    space = "" if ns is None else f"<ns>{ns}</ns>"
    return (
        f"<page><title>{title}</title>{space}<id>{number or zlib.crc32(title.encode())}</id>{extra}"
        f"<revision><id>1</id><timestamp>2020-01-01T00:00:00Z</timestamp>{body}</revision></page>"
    )


def dump(*pages: str, version: str = "0.11", base: str = "https://en.wikipedia.org/wiki/Main_Page") -> bytes:
    namespace = f' xmlns="http://www.mediawiki.org/xml/export-{version}/"' if version else ""
    spaces = '<namespaces><namespace key="0" /><namespace key="1">Talk</namespace></namespaces>'
    info = f"<siteinfo><base>{base}</base>{spaces}</siteinfo>"
    return f'<mediawiki{namespace} xml:lang="en">{info}{"".join(pages)}</mediawiki>'.encode()


def read(folder: Path, **files: bytes) -> tuple[list[Document], ReadReport]:
    for name, content in files.items():
        (folder / f"{name}.xml").write_bytes(content)
    report = ReadReport()
    return list(read_corpus(folder, report)), report


@pytest.mark.parametrize("version", ["0.3", "0.10", "0.11", ""])
@pytest.mark.parametrize("mark", ["", '<redirect title="FBN1" />', "<redirect />"])
def test_redirects_and_empty_pages(tmp_path: Path, version: str, mark: str) -> None:
    pages = [page("MFS1", "#REDIRECT [[fBN1#Gene]]", extra=mark), page("Nothing", None), page("FBN1", "F.")]
    documents, report = read(tmp_path, dump=dump(*pages, version=version))
    assert [(d.title, d.text, d.aliases) for d in documents] == [("FBN1", "F.", ("MFS1",))]
    assert (report.documents, report.redirects, report.empty, report.problems) == (1, 1, 1, [])


def test_redirects_are_found_after_their_target_in_other_dumps_and_in_chains(tmp_path: Path) -> None:
    chain = page("FBN", "#redirect [[MFS_1]]"), page("MFS 1", "#REDIRECT: [[FBN1]]"), page("Loop", "#REDIRECT [[Loop]]")
    documents, report = read(tmp_path, a=dump(page("FBN1", "F.")), b=dump(*chain))
    assert documents[0].aliases == ("FBN", "MFS 1")
    assert (report.documents, report.redirects) == (1, 3)


def test_a_circle_of_redirects_ends() -> None:
    with Redirects() as redirects:
        circle = dump(page("A", "#REDIRECT [[B]]"), page("B", "#REDIRECT [[A]]"))
        redirects.add(read_dump(io.BytesIO(circle), "circle"))
        assert redirects.aliases("A") == ("B",)
        assert redirects.aliases("C") == ()


@pytest.mark.parametrize(
    ("title", "text"),
    [
        ("Alien", "'''Alien''' may refer to:\n* [[x]]\n{{Disambiguation|geo}}"),
        ("Alien", "x\n{{disambig}}"),
        ("Aa", "x\n{{Human name disambiguation}}"),
        ("Aa", "x\n{{hndis|Aa}}"),
        ("Austin (disambiguation)", "x"),
    ],
)
def test_disambiguation_pages_are_left_out(tmp_path: Path, title: str, text: str) -> None:
    documents, report = read(tmp_path, dump=dump(page(title, text), page("Gene", "G {{disambiguation needed|date=x}}")))
    assert [d.title for d in documents] == ["Gene"]
    assert report.disambiguations == 1


@pytest.mark.parametrize(
    "pages", [(page("Talk:A", "t", ns="1"),), (page("Talk:A", "t", ns=None),)], ids=["ns", "no ns"]
)
def test_only_the_main_namespace_is_read(tmp_path: Path, pages: tuple[str, ...]) -> None:
    documents, _ = read(
        tmp_path, dump=dump(*pages, page("A: the beginning", "a", ns=None if "<ns>" not in pages[0] else "0"))
    )
    assert [d.title for d in documents] == ["A: the beginning"]


@pytest.mark.parametrize(
    ("title", "base", "url"),
    [
        ("Marfan syndrome", "https://en.wikipedia.org/wiki/Main_Page", "https://en.wikipedia.org/wiki/Marfan_syndrome"),
        ("A/B?", "https://de.wikipedia.org/wiki/Wikipedia:Hauptseite", "https://de.wikipedia.org/wiki/A/B%3F"),
        ("Sjögren &amp; co", "", "https://en.wikipedia.org/wiki/Sj%C3%B6gren_%26_co"),
    ],
)
def test_page_address(title: str, base: str, url: str) -> None:
    pages = list(read_dump(io.BytesIO(dump(page(title, "x", number=7), base=base)), "dump"))
    assert [(p.id, p.url) for p in pages] == [("7", url)]


def test_the_latest_revision_counts_and_pages_do_not_mix() -> None:
    old = "<revision><id>1</id><text>old</text></revision>"
    pages = dump(page("A", "new {{open", extra=old), page("B", "b"))
    with Redirects() as redirects:
        texts = [(p.title, p.text) for p in wiki_pages(read_dump(io.BytesIO(pages), "dump"), redirects)]
    assert texts == [("A", "new open"), ("B", "b")]


def test_multistream_dump(tmp_path: Path) -> None:
    content = dump(page("A", "a"), page("B", "b"))
    (tmp_path / "wiki-multistream.xml-p1p9.bz2").write_bytes(bz2.compress(content[:300]) + bz2.compress(content[300:]))
    (tmp_path / "wiki-multistream-index.txt.bz2").write_bytes(bz2.compress(b"0:1:A"))
    report = ReadReport()
    assert [d.title for d in read_corpus(tmp_path, report)] == ["A", "B"]
    assert report.skipped == ["wiki-multistream-index.txt.bz2"]


BOMB = b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><mediawiki><page><title>&b;</title></page></mediawiki>'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (dump(page("A", "a"))[:-30], "d.xml: not well-formed XML, .*no element found"),
        (b"<JDBOR></JDBOR>", "the root element is <JDBOR>, not <mediawiki>"),
        (BOMB, "XML with entities of its own"),
        (b"no XML", "not well-formed XML"),
        (b"", "not well-formed XML"),
    ],
    ids=["cut", "other XML", "entities", "text", "empty"],
)
def test_unusable_dumps(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        read(tmp_path, d=content)


def test_memory_does_not_grow_with_the_dump() -> None:
    class Endless(io.RawIOBase):
        """A dump of 4,000 pages of 25 kB, never held as a whole."""

        def __init__(self) -> None:
            self.parts = iter(
                [dump()[: -len("</mediawiki>")], *([page("A", "x" * 25_000).encode()] * 4000), b"</mediawiki>"]
            )

        def read(self, size: int = -1) -> bytes:
            return next(self.parts, b"")

    tracemalloc.start()
    try:
        count = sum(1 for _ in read_dump(Endless(), "endless"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 4000
    assert peak < 5_000_000


# ---------------------------------------------------------------- a real dump


def test_real_dump_leaves_no_markup(shared: Path) -> None:
    path = next((shared / "wikipedia").glob("*.bz2"), None)
    if path is None:
        pytest.skip("no Wikipedia fragment among the real data")
    report = ReadReport()
    documents = {d.title: d for d in read_corpus(path, report)}
    assert (report.documents, report.redirects, report.disambiguations, report.empty) == (98, 99, 8, 0)
    assert report.problems == []

    left = {mark: [t for t, d in documents.items() if mark in d.text] for mark in (*MARKUP, "''", "thumb|", "File:")}
    assert {mark: titles for mark, titles in left.items() if titles} == {}
    assert not [t for t, d in documents.items() if re.search(r"\n\s|\s\n|  ", d.text)]

    autism = documents["Autism"]
    assert "OMIM: 209850" in autism.text
    assert "Autism is a neurodevelopmental disorder" in autism.text
    assert documents["Analysis of variance"].aliases == ("ANOVA", "Analysis of Variance")
    assert documents["Alkali metal"].url == "https://en.wikipedia.org/wiki/Alkali_metal"
    assert "Name: Atomic number; Lithium: 3; Sodium: 11; Potassium: 19" in documents["Alkali metal"].text
