import csv
import importlib
import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from medhop_dspy.evaluation.check import check_documents
from medhop_dspy.retrieval.corpus import ReadReport, read_corpus
from tests.conftest import ROOT, SHARED

FACTS = ROOT / "data" / "facts"
RAW = SHARED / "facts"
BAND = re.compile(r"chromosom|\b(?:[1-9]|1\d|2[0-2]|X|Y)(?:[pq]\d|[pq]ter|cen)|\b(?:short|long) arm", re.IGNORECASE)


@pytest.fixture(scope="module")
def scripts():
    """The scripts of data/facts, which import each other as neighbours."""
    names = ("definitions", "derive_tables", "make_pages", "sentences")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FACTS))
        yield SimpleNamespace(**{name: importlib.import_module(name) for name in names})


def table(name):
    with (FACTS / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


DISEASES = {row["doid"]: row for row in table("diseases.tsv")}
GENES = {f"gene-{row['gene_id']}": row for row in table("genes.tsv")}


def articles_beside(folder: Path) -> Path:
    """The folder with copies of the articles; its facts.jsonl is yet to be written."""
    for file in (ROOT / "data" / "corpus").glob("*.jsonl"):
        if file.name != "facts.jsonl":
            shutil.copy(file, folder)
    return folder / "facts.jsonl"


def made(scripts, output: Path):
    scripts.make_pages.main(FACTS, output)
    return [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    """Where the pages are written, beside copies of the articles."""
    return articles_beside(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def pages(scripts, output):
    return made(scripts, output)


@pytest.fixture(scope="module")
def disease_pages(pages):
    return [(page, DISEASES[page["id"]]) for page in pages if page["id"] in DISEASES]


@pytest.fixture(scope="module")
def gene_pages(pages):
    return [(page, GENES[page["id"]]) for page in pages if page["id"] in GENES]


def values(cell):
    return [value for value in cell.split("|") if value]


def has(text, value):
    return re.search(rf"(?<![\w-]){re.escape(value)}(?![\w-])", text, re.IGNORECASE) is not None


def test_there_are_enough_pages_of_both_kinds(pages, disease_pages, gene_pages):
    assert len(pages) == len(disease_pages) + len(gene_pages) >= 1500
    assert min(len(disease_pages), len(gene_pages)) >= 500


def test_the_pages_pass_the_checks_of_the_data(pages, output):
    report = ReadReport()
    documents = list(read_corpus(output.parent, report))
    ids = {page["id"] for page in pages}
    assert [finding for finding in check_documents(documents) if finding.place in ids] == []
    assert [p for p in report.problems if p.source == "facts.jsonl"] == []


def test_pages_have_unique_titles_and_a_good_length(pages):
    assert len({page["title"].casefold() for page in pages}) == len(pages)
    assert {len(page["text"].split()) in range(40, 141) for page in pages} == {True}
    assert all(page["title"][0] == page["title"][0].upper() for page in pages if page["id"] in DISEASES)


def test_sentences_are_whole(pages):
    for page in pages:
        assert not re.search(r"[{}|]|  |,,|\.\.|\s[.,]|\ba [aeio](?!ne)\w|\ban [bcdfgjkpqtvwyz]\w", page["text"]), page
        assert page["text"].endswith(".")


def test_openings_vary(disease_pages):
    begins = {page["text"].replace(page["title"], "*")[:12] for page, _ in disease_pages}
    assert len(begins) > 4


def test_two_runs_give_the_same_bytes(scripts, pages, output):
    first = output.read_bytes()
    assert made(scripts, output) == pages
    assert output.read_bytes() == first
    assert not list(output.parent.glob("*.part"))


def test_no_disease_page_tells_where_its_gene_lies(disease_pages):
    assert [page["title"] for page, _ in disease_pages if BAND.search(page["title"] + "\n" + page["text"])] == []


def test_no_gene_page_names_a_disease_outside_the_genes_own_name(gene_pages):
    names = {name for row in DISEASES.values() for name in (row["name"], *values(row["synonyms"])) if len(name) > 3}
    folded = {name.casefold() for name in names}
    for page, row in gene_pages:
        text = page["text"].replace(row["name"], "").casefold()
        assert [name for name in folded if name in text and has(text, name)] == [], page


def test_disease_pages_say_what_the_table_says(disease_pages):
    for page, row in disease_pages:
        text = page["text"]
        assert page["title"].casefold() == row["name"].casefold()
        assert page["url"].endswith(row["doid"])
        if row["parent"] != "syndrome":
            assert has(text, row["parent"]), row
        for key, limit in (("gene", 1), ("inheritance", 1), ("signs", 6), ("sites", 6), ("agents", 4), ("vectors", 4)):
            assert all(has(text, value) for value in values(row[key])[:limit]), (key, row)
        for number in [*values(row["omim"])[:1], *values(row["orpha"])[:1], row["doid"]]:
            assert has(text, number), row
        for state in values(row["states"]):
            assert has(text, {"compound": "compound heterozygous"}.get(state, state)), row


def test_disease_pages_say_no_more_than_the_table(disease_pages):
    for page, row in disease_pages:
        told = page["text"]
        for name in sorted((row["name"], row["parent"], *values(row["synonyms"])), key=len, reverse=True):
            told = re.sub(re.escape(name), "", told, flags=re.IGNORECASE)
        modes = re.findall(r"autosomal recessive|autosomal dominant|X-linked", told)
        assert all(mode in row["inheritance"] for mode in modes), row
        assert row["states"] or not re.search(r"zygous|copies|copy", told), row


def test_gene_pages_say_what_the_table_says(gene_pages):
    by_symbol = {row["symbol"]: row for row in GENES.values()}
    for page, row in gene_pages:
        text = page["text"]
        assert page["title"] == row["symbol"]
        assert re.findall(r"chromosome (\w+)", text.replace(row["name"], "")) == [row["chromosome"]]
        assert row["name"] in text
        first = row["band"].partition("-")[0]
        assert has(text, first)
        assert ("short arm" in text) == ("p" in first) != ("long arm" in text)
        for value in (*values(row["aliases"])[:4], row["omim"], row["symbol_2015"], f"GeneID {row['gene_id']}"):
            assert not value or has(text, value), row
        told = text.replace(row["name"], "")
        others = set(re.findall(r"[\w-]+", told)) & by_symbol.keys() - {row["symbol"], *values(row["aliases"])}
        assert {by_symbol[symbol]["band"] for symbol in others} <= {row["band"]}, row


def test_each_gene_of_a_disease_is_in_the_table_of_genes():
    symbols = {row["symbol"] for row in GENES.values()}
    assert {row["gene"] for row in DISEASES.values()} - {""} <= symbols


@pytest.mark.parametrize(
    ("title", "lost"),
    [
        ("Bardet–Biedl Syndrome 10", "Bardet-Biedl syndrome 10"),
        ("Spastic paraplegia 11, hereditary", "Hereditary spastic paraplegia 11"),
        ("GRIA3 gene", "GRIA3"),
        ("Nav1.9 (SCN11A)", "SCN11A"),
    ],
)
def test_what_has_an_article_gets_no_page(scripts, tmp_path, title, lost):
    (tmp_path / "a.jsonl").write_text(json.dumps({"id": "a", "title": title, "text": "-"}), encoding="utf-8")
    titles = {page["title"] for page in made(scripts, tmp_path / "facts.jsonl")}
    assert lost not in titles
    assert len(titles) > 2000


@pytest.mark.parametrize(
    ("british", "american"),
    [("Haemophilia", "hemophilia"), ("Leukaemia type II", "leukemia 2"), ("Ménière's disease", "Meniere disease")],
)
def test_spellings_of_a_name_count_as_one(scripts, british, american):
    assert scripts.make_pages.name_key(british) == scripts.make_pages.name_key(american)


CAUSES = [
    ("A x that has_material_basis_in heterozygous mutation in the ABC1 gene on chromosome 1q2.", "ABC1|1q"),
    ("A x that has_material_basis_in an autosomal recessive mutation of ABC1-A on chromosome Xp22.31.", "ABC1-A|Xp"),
    ("A x that has_material_basis_in mutation in the gene encoding abc (ABC1) on chromosome 21.", "ABC1|21"),
    ("A x that has_material_basis_in somatic mutations in the ABC1 gene which is bad.", "ABC1|"),
    ("A x that has_material_basis_in mutation in the ABC1 gene on chromosome 1p3 or the DEF1 gene.", None),
    ("A x that has_material_basis_in mutation in the ABC1 or DEF1 gene.", None),
    ("A x that has_material_basis_in deletion of the chromosome 1p3 region.", None),
    ("A x that has_material_basis_in variation in the chromosome region 1p3.", None),
    ("A x that has_material_basis_in mutation in ABC1.", None),
    ("A x that has_material_basis_in CAG repeat expansion in the ABC1 gene.", None),
    ("A x that has_material_basis_in mutation in mitochondrial gene ABC1 on chromosome 1.", None),
    ("", None),
]


@pytest.mark.parametrize(("definition", "expected"), CAUSES)
def test_only_a_single_plain_cause_is_read(scripts, definition, expected):
    if expected is None:
        with pytest.raises(scripts.definitions.LeftOutError, match="cause"):
            scripts.definitions.cause_of(definition)
    else:
        symbol, _, _, place = scripts.definitions.cause_of(definition)
        assert f"{symbol}|{place}" == expected


def test_states_and_kind_of_a_mutation_are_read(scripts):
    text = "has_material_basis_in homozygous or compound heterozygous gain of function mutation in the ABC1 gene."
    assert scripts.definitions.cause_of(text) == ("ABC1", "homozygous|compound", "gain-of-function", "")


@pytest.mark.parametrize(
    ("definition", "signs"),
    [
        ("A x characterized by ataxia, mental retardation, and odd looks that has_material_basis_in y.", 2),
        ("A x characterized by ataxia without seizures and tremor.", 0),
        ("A x that is odd.", 0),
    ],
)
def test_signs_are_taken_only_from_plain_lists(scripts, definition, signs):
    assert len(scripts.definitions.signs_of(definition)) == signs


def test_relations_give_plain_names_only(scripts):
    text = (
        "An x located_in skin or located_in the liver, has_material_basis_in Aaa bbb, transmitted by ticks. "
        "It has_symptom fever, has_symptom swollen and tender glands, and has symptom cough."
    )
    assert scripts.definitions.relations_of(text) == {
        "signs": ["fever", "cough"],
        "sites": ["skin", "liver"],
        "vectors": ["ticks"],
        "agents": ["Aaa bbb"],
    }


def gene_row(**changes):
    row = {
        "GeneID": "7",
        "Symbol": "ABC1",
        "Synonyms": "ABD|OLD1|MFS1",
        "dbXrefs": "MIM:123456|HGNC:HGNC:5",
        "chromosome": "4",
        "map_location": "4p16.3",
        "description": "abc",
        "type_of_gene": "protein-coding",
        "Full_name_from_nomenclature_authority": "-",
    }
    return row | changes


@pytest.mark.parametrize(
    "changes",
    [
        {"map_location": "-"},
        {"map_location": "Xp22.3; Yp11.3", "chromosome": "X|Y"},
        {"map_location": "4p12-q13"},
        {"map_location": "4p16.3|4p16"},
        {"map_location": "5p13"},
        {"map_location": "-", "chromosome": "MT"},
        {"map_location": "4cen-q12"},
        {"type_of_gene": "pseudo"},
    ],
)
def test_genes_without_one_band_are_left_out(scripts, changes):
    table = scripts.derive_tables.GeneTable([gene_row(**changes)], [])
    with pytest.raises(scripts.definitions.LeftOutError, match="gene"):
        scripts.derive_tables.new_gene(table.find("ABC1"), "ABC1", table)


def test_a_gene_is_found_by_its_alias_and_keeps_no_name_of_a_disease(scripts):
    table = scripts.derive_tables.GeneTable([gene_row(map_location="4p16-p15.1")], ["MFS"])
    gene = scripts.derive_tables.new_gene(table.find("OLD1"), "OLD1", table)
    assert (gene.symbol, gene.symbol_2015, gene.name, gene.aliases) == ("OLD1", "ABC1", "abc", "ABD")
    assert (gene.omim, gene.hgnc) == ("123456", "5")


def term(definition, **changes):
    fields = {"name": "Foo disease", "parents": ["foo disorder"]} | changes
    lists = {key: [] for key in ("synonyms", "acronyms", "other_names", "omim", "orpha")}
    return {"id": "DOID:1", "definition": definition} | lists | fields


@pytest.mark.parametrize(
    ("definition", "name", "reason"),
    [
        ("A x that has_material_basis_in mutation in the ABC1 gene on chromosome 5p1.", "Foo", "place"),
        ("A x that has_material_basis_in mutation in the ABC1 gene on chromosome 4q1.", "Foo", "place"),
        ("A x that has_material_basis_in mutation in the OLD1 gene.", "Foo", "alias"),
        ("A x that has_material_basis_in mutation in the NEW1 gene.", "Foo", "not in gene_info"),
        ("A x that has_material_basis_in mutation in the ABC1 gene.", "X-linked foo", "inheritance"),
        ("A x that has_material_basis_in heterozygous mutation in the ABC1 gene.", "Autosomal recessive foo", "states"),
        ("A x that has_material_basis_in mutation in the ABC1 gene.", "4p16 foo", "holds a chromosome"),
        ("A x that has_symptom fever.", "Foo", "few relations"),
    ],
)
def test_terms_that_contradict_the_genes_are_left_out(scripts, definition, name, reason):
    name = name.replace("Autosomal", "autosomal")
    table = scripts.derive_tables.GeneTable([gene_row()], [])
    with pytest.raises(scripts.definitions.LeftOutError, match=reason):
        scripts.derive_tables.new_disease(scripts.definitions.Term(**term(definition, name=name)), table, set())


@pytest.mark.parametrize(
    ("phrase", "article"),
    [
        ("X-linked disease", "an"),
        ("urea cycle disorder", "a"),
        ("inherited disease", "an"),
        ("hereditary disease", "a"),
        ("11-beta disease", "an"),
        ("3-methyl disease", "a"),
        ("RNA disease", "an"),
    ],
)
def test_articles_follow_the_sound(scripts, phrase, article):
    assert scripts.sentences.article(phrase) == f"{article} {phrase}"


@pytest.mark.skipif(not RAW.is_dir(), reason=f"real data not present at {RAW} (set REAL_DATA)")
def test_the_committed_tables_are_those_of_the_raw_files(scripts, tmp_path):
    scripts.derive_tables.main(RAW, tmp_path)
    for name in ("diseases.tsv", "genes.tsv"):
        assert (tmp_path / name).read_bytes() == (FACTS / name).read_bytes()
