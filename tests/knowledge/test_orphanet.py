"""Orphanet tables: reading, look-up by code and name, expansion of a question."""

import importlib.util
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from medhop_dspy.errors import CorpusError, InputError
from medhop_dspy.knowledge.orphanet import Disorder, Expansion, GeneLink, Orphanet
from medhop_dspy.settings import Settings
from tests.conftest import ROOT, SHARED

SAMPLE = ROOT / "data" / "orphanet"
GARD = SHARED / "facts" / "GARD_genes.csv"
CAUSAL = "Disease-causing germline mutation(s) in"


def needs(path: Path):
    return pytest.mark.skipif(not path.exists(), reason=f"{path} is absent")


def xml(*disorders: str, encoding: str = "UTF-8") -> bytes:
    text = (
        f'<?xml version="1.0" encoding="{encoding}"?><JDBOR><DisorderList>{"".join(disorders)}</DisorderList></JDBOR>'
    )
    return text.encode(encoding)


def disorder_xml(code: str = "558", name: str = "Marfan syndrome", extra: str = "", tag: str = "OrphaCode") -> str:
    return f'<Disorder id="1"><{tag}>{code}</{tag}><Name lang="en">{escape(name)}</Name>{extra}</Disorder>'


def gene_xml(symbol: str, association: str = CAUSAL, status: str = "Assessed", loci: tuple[str, ...] = ()) -> str:
    return (
        f"<DisorderGeneAssociation><Gene><Name>name of {symbol}</Name><Symbol>{symbol}</Symbol><LocusList>"
        + "".join(f"<Locus><GeneLocus>{locus}</GeneLocus></Locus>" for locus in loci)
        + f"</LocusList></Gene><DisorderGeneAssociationType><Name>{association}</Name></DisorderGeneAssociationType>"
        f"<DisorderGeneAssociationStatus><Name>{status}</Name></DisorderGeneAssociationStatus></DisorderGeneAssociation>"
    )


def genes_xml(*genes: str) -> str:
    return f"<DisorderGeneAssociationList>{''.join(genes)}</DisorderGeneAssociationList>"


def load(tmp_path: Path, content: bytes, name: str = "table.xml") -> Orphanet:
    path = tmp_path / name
    path.write_bytes(content)
    return Orphanet.load(path)


def workbook(path: Path, *sheets: list[list[object]]) -> Path:
    from openpyxl import Workbook

    book = Workbook()
    book.remove(book.active)
    for rows in sheets:
        sheet = book.create_sheet()
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def named(*names: str, **others: tuple[str, ...]) -> Orphanet:
    """Disorders 1, 2, ... of these names; keywords give further names of disorder nN."""
    return Orphanet(Disorder(str(i), n, synonyms=others.get(f"n{i}", ())) for i, n in enumerate(names, 1))


def causal(*symbols: str) -> tuple[GeneLink, ...]:
    return tuple(GeneLink(s, association=CAUSAL, status="Assessed") for s in symbols)


# --- XML -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tag", ["OrphaNumber", "OrphaCode"])
@pytest.mark.parametrize("code", [558, "558", "ORPHA:558", "orpha:558", "Orphanet_558", "ORPHA558", " ORPHA 558 "])
def test_both_tag_generations_and_every_spelling_of_a_code_give_one_record(tmp_path, tag, code):
    table = load(tmp_path, xml(disorder_xml(tag=tag)))
    assert table.lookup(code) == Disorder("558", "Marfan syndrome", url="https://www.orpha.net/en/disease/detail/558")


@pytest.mark.parametrize("code", ["", "OMIM:154700", "Marfan", "558.5", "-558", "0", True, None, "GARD:0006975"])
def test_what_is_no_code_is_refused(code):
    with pytest.raises(InputError, match=f"{code!r} is not an ORPHAcode"):
        named("Marfan syndrome").lookup(code)


def test_an_unknown_code_is_refused():
    with pytest.raises(InputError, match="ORPHA:558 is not among the 1 disorders read"):
        named("Marfan syndrome").lookup("558")


@pytest.mark.parametrize("code", ["", "0558", "ORPHA:558", "x"])
def test_a_record_needs_a_plain_code(code):
    with pytest.raises(InputError, match=f"ORPHAcode {code!r} is not a plain number"):
        Disorder(code)


def test_a_deeper_name_never_replaces_the_disorders(tmp_path):
    for before in (True, False):
        parts = ["<DisorderType><Name>Disease</Name></DisorderType>", genes_xml(gene_xml("FBN1", loci=("15q21.1",)))]
        name = "<Name>Marfan syndrome</Name>"
        parts = [*parts, name] if before else [name, *parts]
        table = load(tmp_path, xml(f"<Disorder><OrphaCode>558</OrphaCode>{''.join(parts)}</Disorder>"))
        found = table.lookup(558)
        assert (found.name, found.type) == ("Marfan syndrome", "Disease")
        assert found.genes == (GeneLink("FBN1", "name of FBN1", (), "15q21.1", CAUSAL, "Assessed"),)


def test_a_gene_on_both_sex_chromosomes_keeps_both_loci(tmp_path):
    table = load(tmp_path, xml(disorder_xml(extra=genes_xml(gene_xml("SHOX", loci=("Xp22.33", "Yp11.32"))))))
    assert table.lookup(558).genes[0].locus == "Xp22.33; Yp11.32"


def test_names_and_numbers_of_the_nomenclature(tmp_path):
    extra = (
        "<ExpertLink>http://www.orpha.net/x?lng=en&amp;Expert=558</ExpertLink>"
        "<SynonymList><Synonym>MFS</Synonym><Synonym> Marfan\n disease </Synonym><Synonym/></SynonymList>"
        "<ExternalReferenceList>"
        "<ExternalReference><Source>OMIM</Source><Reference>154700</Reference></ExternalReference>"
        "<ExternalReference><Source>ICD-10</Source><Reference>Q87.4</Reference></ExternalReference>"
        "<ExternalReference><Source>OMIM</Source><Reference>610168</Reference></ExternalReference>"
        "</ExternalReferenceList>"
    )
    found = load(tmp_path, xml(disorder_xml(extra=extra))).lookup(558)
    assert found.synonyms == ("MFS", "Marfan disease")
    assert found.omim == ("154700", "610168")
    assert found.url == "http://www.orpha.net/x?lng=en&Expert=558"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(xml(disorder_xml(name="Behçet disease"), encoding="ISO-8859-1"), id="latin-1"),
        pytest.param(xml(disorder_xml(name="Behçet disease"), encoding="windows-1252"), id="windows-1252"),
        pytest.param(xml(disorder_xml(name="Behçet disease")), id="utf-8"),
        pytest.param(b"\xef\xbb\xbf" + xml(disorder_xml(name="Behçet disease")), id="utf-8 with mark"),
        pytest.param(xml(disorder_xml(name="Behçet disease"), encoding="UTF-16"), id="utf-16"),
        pytest.param(xml(disorder_xml(name="Behçet disease")).split(b"?>", 1)[1], id="undeclared"),
    ],
)
def test_the_declared_encoding_is_obeyed(tmp_path, content):
    assert load(tmp_path, content).lookup(558).name == "Behçet disease"


BOMB = b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><JDBOR>&b;</JDBOR>'


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        pytest.param("x.xml", xml("<Disorder><Name>x</Name></Disorder>"), "0 disorders parsed", id="neither tag"),
        pytest.param("x.xml", xml(disorder_xml("none")), "0 disorders parsed", id="no number"),
        pytest.param("x.xml", b"<html></html>", "0 disorders parsed", id="other XML"),
        pytest.param("x.xml", xml(disorder_xml())[:-20], "not readable XML", id="cut XML"),
        pytest.param("x.xml", b"", "not readable XML", id="empty XML"),
        pytest.param("x.xml", b'<?xml version="1.0" encoding="nonsense"?><a/>', "not readable XML", id="encoding"),
        pytest.param("x.xml", BOMB, "not readable XML: EntitiesForbidden", id="entities"),
        pytest.param("x.xlsx", b"no zip", "not a readable xlsx workbook", id="no workbook"),
        pytest.param("x.csv", b"", "0 disorders parsed", id="empty CSV"),
        pytest.param("x.csv", b"id,title\n558,Marfan\n", "0 disorders parsed", id="no known columns"),
        pytest.param("x.csv", b"ORPHAcode,Name\nOMIM:154700,Marfan\n", "0 disorders parsed", id="no code in rows"),
        pytest.param("x.csv", "ORPHAcode,Name\n1,Behçet".encode("latin-1"), "is not UTF-8", id="latin-1 CSV"),
        pytest.param("x.json", b"{}", "no reader for '.json' files", id="unknown kind"),
    ],
)
def test_an_unusable_file_is_an_error(tmp_path, name, content, message):
    with pytest.raises(CorpusError, match=message) as caught:
        load(tmp_path, content, name)
    assert name in str(caught.value)
    assert caught.value.hint


def test_a_missing_path_and_an_empty_folder_are_errors(tmp_path):
    with pytest.raises(CorpusError, match="no such file or folder"):
        Orphanet.load(tmp_path / "absent")
    (tmp_path / "README.md").write_text("no table")
    with pytest.raises(CorpusError, match="0 disorders parsed"):
        Orphanet.load(tmp_path)


# --- Tables --------------------------------------------------------------------------------------------------------

TITLES = ["ORPHAcode", "PreferredTerm", "Synonyms", "Typology", "OMIM"]


def test_a_workbook_with_title_rows_float_codes_and_blank_tail(tmp_path):
    rows = [
        ["Orphanet nomenclature, July 2026"],
        [],
        TITLES,
        [558.0, "Marfan syndrome", "MFS; Marfan disease", "Disease", "154700; 610168"],
        ["166024", "Multiple epiphyseal dysplasia, Al-Gazali type", None, "Disease", 607131.0],
        ["ORPHA:905", "Wilson disease", "Leukemia with t(9;22)(q34;q11)", None, "OMIM:277900, PS277901"],
        *[[None, "", None, " ", None]] * 1000,
    ]
    table = Orphanet.load(workbook(tmp_path / "x.xlsx", [["About this file"], ["see www.orpha.net"]], rows))
    assert [d.code for d in table] == ["558", "905", "166024"]
    assert table.lookup(558).omim == ("154700", "610168")
    assert table.lookup(558).synonyms == ("MFS", "Marfan disease")
    assert table.lookup(558).type == "Disease"
    assert table.lookup(166024).omim == ("607131",)
    assert table.lookup(905).omim == ("277900",)
    assert table.lookup(905).synonyms == ("Leukemia with t(9;22)(q34;q11)",)


def test_a_workbook_with_one_row_for_each_synonym_and_columns_in_another_order(tmp_path):
    rows = [["ICDcodes", "Synonyms", "PreferredTerm", "ORPHAcode"]]
    rows += [["Q87.4", s, "Marfan syndrome", 558] for s in (None, "MFS", "Marfan disease", "MFS")]
    table = Orphanet.load(workbook(tmp_path / "x.xlsx", rows))
    assert [(d.name, d.synonyms) for d in table] == [("Marfan syndrome", ("MFS", "Marfan disease"))]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_delimited_table_with_byte_order_mark_and_title_row(tmp_path, delimiter):
    lines = ["Nomenclature", delimiter.join(["OrphaCode", "Disorder name", "Synonyms"])]
    lines += [delimiter.join(["558", '"Marfan syndrome, classic; x"', "MFS|Marfan disease"])]
    table = load(tmp_path, "\ufeff".encode() + "\r\n".join(lines).encode(), "x.csv")
    assert table.lookup(558).name == "Marfan syndrome, classic; x"
    assert table.lookup(558).synonyms == ("MFS", "Marfan disease")


GARD_TITLES = (
    "GardID,DataSource,SourceID,SourceLabelID,GeneSymbol,GeneSynonym,"
    "GeneTitle,Locus,AssociationType,AssociationStatus,OMIM"
)


def test_a_gard_table_gives_genes_to_orpha_codes_only(tmp_path, caplog):
    lines = [
        GARD_TITLES,
        f'GARD:1,Orphanet,6,ORPHA:6,MCCC2,"[MCCB, acetylase (a, b), x]",subunit 2,5q13.2,{CAUSAL},Assessed,609014',
        "GARD:2,Orphanet+OMIM,558,OMIM:558,BRCA1,,,17q21,The molecular basis of the disorder is known,Unknown,113705",
    ]
    table = load(tmp_path, "\n".join(lines).encode(), "gard.csv")
    assert [d.code for d in table] == ["6"]
    link = GeneLink("MCCC2", "subunit 2", ("MCCB", "acetylase (a, b)", "x"), "5q13.2", CAUSAL, "Assessed")
    assert table.lookup(6).genes == (link,)
    assert table.lookup(6).omim == ()  # the column holds the gene's number
    assert "1 of 1 disorders have no name" in caplog.text


def test_a_folder_is_joined_by_code(tmp_path):
    (tmp_path / "b_genes.xml").write_bytes(xml(disorder_xml(extra=genes_xml(gene_xml("FBN1"), gene_xml("X")))))
    (tmp_path / "a_names.xml").write_bytes(
        xml(disorder_xml(name="Marfan's syndrome"), disorder_xml("15", "Achondroplasia"))
    )
    (tmp_path / "c_gard.csv").write_text(
        f"{GARD_TITLES}\n,,558,ORPHA:558,FBN1,,fibrillin 1,15q21.1,{CAUSAL},Assessed,1"
    )
    (tmp_path / "~$open.xlsx").write_bytes(b"lock")
    (tmp_path / ".hidden.xml").write_bytes(b"")
    table = Orphanet.load(tmp_path)
    assert [d.code for d in table] == ["15", "558"]
    marfan = table.lookup(558)
    assert (marfan.name, marfan.synonyms) == ("Marfan's syndrome", ("Marfan syndrome",))
    assert [(g.symbol, g.name, g.locus) for g in marfan.genes] == [
        ("FBN1", "name of FBN1", "15q21.1"),
        ("X", "name of X", ""),
    ]


def test_one_unusable_file_in_a_folder_is_an_error(tmp_path):
    (tmp_path / "a.xml").write_bytes(xml(disorder_xml()))
    (tmp_path / "b.csv").write_text("QIDX,Question\n1,Which gene?\n")
    with pytest.raises(CorpusError, match=r"b\.csv: 0 disorders parsed"):
        Orphanet.load(tmp_path)


# --- Causal genes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("association", "expected"),
    [
        ("Disease-causing germline mutation(s) in", True),
        ("Disease-causing germline mutation(s) (loss of function) in", True),
        ("Disease-causing germline mutation(s) (gain of function) in", True),
        ("Disease-causing somatic mutation(s) in", True),
        ("Candidate gene tested in", False),
        ("Modifying germline mutation in", False),
        ("Major susceptibility factor in", False),
        ("Role in the phenotype of", False),
        ("Part of a fusion gene in", False),
        ("Biomarker tested in", False),
        ("The molecular basis of the disorder is known", False),
        ("Non disease-causing mutation in", False),
        ("", False),
    ],
)
def test_only_disease_causing_genes_are_causal(tmp_path, association, expected):
    genes = genes_xml(gene_xml("GENE1"), gene_xml("GENE2", association, "Not yet assessed"))
    table = load(tmp_path, xml(disorder_xml(extra=genes)))
    offered = ("GENE1", "GENE2") if expected else ("GENE1",)
    assert [g.association for g in table.lookup(558).genes] == [CAUSAL, association]
    assert tuple(g.symbol for g in table.lookup(558).causal_genes) == offered
    assert table.expand("Which gene causes Marfan syndrome?", Settings()).genes == offered


def test_a_deletion_syndrome_offers_no_gene(tmp_path):
    genes = genes_xml(*(gene_xml(f"GENE{i}", "Role in the phenotype of") for i in range(27)))
    table = load(tmp_path, xml(disorder_xml("904", "Williams syndrome", genes)))
    assert len(table.lookup(904).genes) == 27
    expansion = table.expand("Which gene causes Williams syndrome?", Settings())
    assert (expansion.terms, expansion.genes) == (("Williams syndrome",), ())


def test_causal_genes_are_unique_and_assessed_ones_come_first():
    loss = "Disease-causing germline mutation(s) (loss of function) in"
    genes = (
        GeneLink("B", association=CAUSAL, status="Not yet assessed"),
        GeneLink("C", association=CAUSAL, status="Assessed"),
        GeneLink("A", association=loss, status="Assessed"),
        GeneLink("C", association=loss, status="Assessed"),
        GeneLink("B", association=loss, status="Assessed"),
    )
    found = Disorder("1", genes=genes).causal_genes
    assert [(g.symbol, g.association) for g in found] == [("C", CAUSAL), ("A", loss), ("B", loss)]


# --- Names ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Marfan syndrome", "what causes MARFAN SYNDROME?"),
        ("Marfan syndrome", "Marfan\n  syndrome"),
        ("Ehlers-Danlos syndrome", "the Ehlers Danlos syndrome"),
        ("Ehlers-Danlos syndrome", "the Ehlers\u2013Danlos syndrome"),
        ("Ehlers-Danlos syndrome", "the Ehlers\u2010Danlos\u00a0syndrome."),
        ("Ehlers Danlos syndrome", "(Ehlers-Danlos syndrome)"),
        ("Huntington disease", "Huntington's disease"),
        ("Huntington disease", "Huntington\u2019s disease"),
        ("Huntington's disease", "Huntington disease's onset"),
        ("Graves disease", "Graves\u2019 disease"),
        ("Behçet disease", "Behcet disease"),
        ("Behçet disease", "Behc\u0327et disease"),
        ("Sjogren-Larsson syndrome", "Sjögren\u2013Larsson syndrome"),
        ("Sjogren-Larsson syndrome", "Sjøgren-Larsson syndrome"),
        ("Beta-thalassemia", "β-thalassemia"),
        ("Alport syndrome", "Al\u00adport syndrome"),
        ("Mucopolysaccharidosis type 3A", "mucopolysaccharidosis type IIIA"),
        ("Mucopolysaccharidosis type IV", "mucopolysaccharidosis type 4"),
        ("Glycogen storage disease, type IX", "glycogen storage disease type 9"),
        ("Kuru", "what is kuru"),
        ("CF", "Is CF inherited?"),
        ("CF", "CF's gene"),
        ("CADASIL", "cadasil"),
    ],
)
def test_spellings_of_one_name_are_found(name, text):
    assert [d.name for d in named(name).find(text, 5)] == [name]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("CF", "cf. the next page"),
        ("ALS", "als is a German word"),
        ("vEDS", "VEDS"),
        ("C3G", "c3g"),
        ("PKU", "PKUs"),
        ("Marfan syndrome", "Marfanoid syndrome"),
        ("Marfan syndrome", "the syndrome of Marfan"),
        ("Ehlers-Danlos syndrome type V", "Ehlers-Danlos syndrome type X"),
        ("Hemophilia C", "Hemophilia 100"),
        ("X", "X"),
        ("OBSOLETE: Marfan syndrome", "obsolete Marfan syndrome"),
        ("", "Marfan syndrome"),
        ("Marfan syndrome", ""),
        ("Marfan syndrome", " - '' \u2019\u2019 !"),
    ],
)
def test_what_only_looks_like_a_name_is_not_found(name, text):
    assert named(name).find(text, 5) == []


def test_the_longest_name_wins_and_its_parts_are_not_reported():
    table = named("Usher syndrome", "Usher syndrome type 1", "syndrome type 1")
    assert [d.code for d in table.find("Is Usher syndrome type 1 rare?", 5)] == ["2"]
    assert [d.code for d in table.find("Is Usher syndrome type 2 rare?", 5)] == ["1"]


def test_order_is_position_then_code_and_each_disorder_counts_once():
    table = named(
        "Wilson disease", "Marfan syndrome", "Third", n3=("Marfan's syndrome",), n1=("hepatolenticular degeneration",)
    )
    text = "Marfan syndrome, hepatolenticular degeneration, Wilson disease and Marfan syndrome"
    assert [d.code for d in table.find(text, 5)] == ["2", "3", "1"]
    assert [d.code for d in table.find(text, 2)] == ["2", "3"]
    assert table.find(text, 0) == []
    with pytest.raises(InputError, match="limit is -1"):
        table.find(text, -1)


def test_codes_are_ordered_as_numbers():
    table = Orphanet([Disorder("100", "Same name"), Disorder("9", "Same name")])
    assert [d.code for d in table.find("same name", 5)] == ["9", "100"]


def test_the_mark_of_diseases_that_are_not_rare_is_no_part_of_the_name():
    table = named("NON RARE IN EUROPE: Hemochromatosis type 1")
    assert [d.name for d in table.find("hemochromatosis type 1", 1)] == ["Hemochromatosis type 1"]


def test_subtypes_continue_or_end_in_the_name():
    table = named(
        "Marfan syndrome", "Marfan syndrome type 2", "Neonatal Marfan syndrome", "Not Marfan syndrome like", "Marf"
    )
    assert [d.code for d in table.subtypes(table.lookup(1))] == ["2", "3"]
    assert table.subtypes(Disorder("7")) == []


# --- Expansion -----------------------------------------------------------------------------------------------------


@pytest.fixture
def two() -> Orphanet:
    return Orphanet(
        [
            Disorder("1", "Alpha disease", ("AD", "First disease", "Alphaism"), genes=causal("G1", "G2", "G3")),
            Disorder("2", "Beta disease", ("Betaism", "first Disease"), genes=causal("H1", "G1")),
        ]
    )


def test_terms_and_genes_come_in_turn_without_repetition(two):
    expansion = two.expand("Do Beta disease and Alpha disease share a gene?", Settings())
    assert [d.code for d in expansion.disorders] == ["2", "1"]
    assert expansion.terms == (
        "Beta disease", "Alpha disease", "Betaism", "First disease", "H1", "G1", "Alphaism", "G2", "G3",
    )  # fmt: skip
    assert expansion.genes == ("H1", "G1", "G2", "G3")


@pytest.mark.parametrize(
    ("caps", "disorders", "terms", "genes"),
    [
        ({"expansion_disorders": 1}, 1, 6, ("G1", "G2", "G3")),
        ({"expansion_disorders": 0}, 0, 0, ()),
        ({"expansion_genes": 1}, 2, 7, ("G1", "H1")),
        ({"expansion_genes": 0}, 2, 5, ()),
        ({"expansion_terms": 3}, 2, 3, ("G1", "H1", "G2", "G3")),
        ({"expansion_terms": 0}, 2, 0, ("G1", "H1", "G2", "G3")),
        ({"gene_candidates": 2}, 2, 9, ("G1", "H1")),
        ({"gene_candidates": 0}, 2, 9, ()),
    ],
    ids=str,
)
def test_each_cap_of_the_settings_holds(two, caps, disorders, terms, genes):
    expansion = two.expand("Alpha disease and Beta disease", Settings().replace(**caps))
    assert (len(expansion.disorders), len(expansion.terms), expansion.genes) == (disorders, terms, genes)


def test_the_papers_caps_are_the_default():
    table = Orphanet(
        Disorder(
            str(i), f"Disease {w}", tuple(f"{w} {j}" for j in range(20)), genes=causal(*(f"{w}{j}" for j in range(20)))
        )
        for i, w in enumerate(("alpha", "beta", "gamma", "delta"), 1)
    )
    expansion = table.expand("disease alpha, disease beta, disease gamma, disease delta", Settings())
    assert [d.code for d in expansion.disorders] == ["1", "2", "3"]
    assert len(expansion.terms) == 10
    assert expansion.genes == tuple(f"{w}{j}" for j in range(5) for w in ("alpha", "beta", "gamma"))


def test_a_question_without_a_known_name_adds_nothing(two):
    assert two.expand("Which gene causes Gamma disease?", Settings()) == Expansion()


def test_a_disorder_without_genes_offers_those_of_its_subtypes():
    table = Orphanet(
        [
            Disorder("558", "Marfan syndrome"),
            Disorder("284973", "Marfan syndrome type 2", genes=causal("TGFBR2")),
            Disorder("284963", "Marfan syndrome type 1", genes=causal("FBN1")),
        ]
    )
    assert table.expand("Which gene causes Marfan syndrome?", Settings()).genes == ("FBN1", "TGFBR2")
    assert table.expand("Which gene causes Marfan syndrome type 2?", Settings()).genes == ("TGFBR2",)


# --- Committed sample and real tables ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sample() -> Orphanet:
    return Orphanet.load(SAMPLE)


def test_the_sample_is_small_and_whole(sample):
    assert len(sample) == 94
    assert all(d.name and d.causal_genes and all(g.locus for g in d.genes) for d in sample)
    assert all(f.stat().st_size < 250_000 for f in SAMPLE.glob("*.xml"))


@pytest.mark.parametrize(
    ("question", "code", "gene", "locus"),
    [
        ("Which chromosome carries the gene mutated in Marfan's syndrome?", "558", "FBN1", "15q21.1"),
        ("What protein is defective in CF?", "586", "CFTR", "7q31.2"),
        ("Is Huntington disease dominant?", "399", "HTT", "4p16.3"),
        ("Which enzyme is deficient in Hunter syndrome?", "580", "IDS", "Xq28"),
        ("Where is the gene for Morquio A disease?", "309297", "GALNS", "16q24.3"),
        ("Who described neurofibromatosis type 2?", "637", "NF2", "22q12.2"),
        ("Osler\u2013Weber\u2013Rendu disease and SMAD4", "774", "SMAD4", "18q21.2"),
    ],
)
def test_the_sample_answers_well_known_questions(sample, question, code, gene, locus):
    expansion = sample.expand(question, Settings())
    assert [d.code for d in expansion.disorders] == [code]
    assert expansion.genes[0] == gene
    assert {g.symbol: g.locus for g in expansion.disorders[0].causal_genes}[gene] == locus


def test_modifiers_of_cystic_fibrosis_are_kept_but_not_offered(sample):
    assert len(sample.lookup(586).genes) == 19
    assert sample.expand("cystic fibrosis", Settings()).genes == ("CFTR",)


@needs(GARD)
def test_the_real_gard_table(caplog):
    table = Orphanet.load(GARD)
    assert len(table) == 3825
    assert sum(len(d.genes) for d in table) == 7881
    assert [g.symbol for g in table.lookup("ORPHA:399").causal_genes] == ["HTT"]
    assert (len(table.lookup(904).genes), table.lookup(904).causal_genes) == (20, ())
    assert all(s.count("[") == s.count("]") for d in table for g in d.genes for s in g.synonyms)
    assert "3825 of 3825 disorders have no name" in caplog.text


@needs(GARD)
def test_the_script_writes_the_committed_sample(tmp_path):
    spec = importlib.util.spec_from_file_location("make_sample", SAMPLE / "make_sample.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.main(GARD.parent, tmp_path)
    assert {f.name: f.read_bytes() for f in tmp_path.iterdir()} == {
        f.name: f.read_bytes() for f in SAMPLE.glob("*.xml")
    }


@needs(GARD)
def test_the_sample_joins_the_real_gard_table(tmp_path):
    for file in (*SAMPLE.glob("*.xml"), GARD):
        (tmp_path / file.name).symlink_to(file)
    table = Orphanet.load(tmp_path)
    assert table.lookup(399) == Orphanet.load(SAMPLE).lookup(399)
    assert table.lookup(803).causal_genes  # amyotrophic lateral sclerosis: in the table only


@pytest.mark.parametrize(
    ("file", "count", "code", "name", "gene"),
    [
        ("phenol_en_product6_head_2020-08.xml", 34, "166024", "Multiple epiphyseal dysplasia, Al-Gazali type", "KIF7"),
        ("phenol_en_product4_small.xml", 3, "61", "Alpha-mannosidosis", None),
        ("dipper_OrphaNumber_orph-germline-lof.xml", 1, "938475", "too much unit testing disorder", "KS1"),
        ("dipper_OrphaNumber_orph-no-mapping.xml", 1, "938475", "too much unit testing disorder", None),
    ],
)
@needs(SHARED / "orphanet")
def test_real_excerpts_of_both_generations(file, count, code, name, gene):
    table = Orphanet.load(SHARED / "orphanet" / file)
    assert len(table) == count
    assert table.lookup(code).name == name
    assert [g.symbol for g in table.lookup(code).causal_genes] == ([gene] if gene else [])
    assert [d.code for d in table.find(f"What is {name.upper()}?", 3)] == [code]


def test_a_long_cell_is_read_whatever_was_read_before(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"ORPHAcode,Name\n1," + b"x" * 200_000)
    (disorder,) = Orphanet.load(tmp_path)
    assert len(disorder.name) == 200_000
