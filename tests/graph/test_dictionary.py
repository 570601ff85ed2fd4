"""Names in texts, and what the words between them say."""

import re
from pathlib import Path

import pytest

from medhop_dspy.graph import dictionary, names, phrases, vocabulary
from medhop_dspy.graph.dictionary import ALSO_KNOWN_AS, WEAK, DictionaryExtractor, Matcher
from medhop_dspy.graph.records import Entity, Triple
from medhop_dspy.graph.vocabulary import aliases, collect, long_form, title_kind
from medhop_dspy.knowledge.orphanet import Disorder, GeneLink, Orphanet
from medhop_dspy.retrieval.chunking import chunk_document
from medhop_dspy.retrieval.corpus import Document, ReadReport, read_corpus
from medhop_dspy.trace import Passage
from tests.conftest import ROOT

CORPUS = ROOT / "data" / "corpus"
NAMES = {
    "Marfan syndrome": "disease",
    "Loeys–Dietz syndrome": "disease",
    "FBN1": "gene",
    "FBN2": "gene",
    "fibrillin-1": "gene",
    "chromosome 15": "chromosome",
    "losartan": "chemical",
    "CAT": "gene",
    "Cat": "organism",
}


def passage(title: str, text: str) -> Passage:
    return Passage("d#0", "d", title, "", text)


def found(names, text):
    return [name for _, _, name in Matcher(names).find(text)]


def triples(title: str, text: str, names=NAMES) -> list[tuple[str, str, str]]:
    extraction = DictionaryExtractor(names).extract(passage(title, text))
    return [(t.subject, t.relation, t.object) for t in extraction.triples]


# --- matching


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Marfan syndrome", "In MARFAN SYNDROME, the lens moves."),
        ("Loeys–Dietz syndrome", "Loeys-Dietz syndrome"),
        ("TNF-α", "tnf alpha rises"),
        ("IL-2", "given IL2."),
        ("Parkinson disease", "Parkinson’s disease"),
        ("Sjögren syndrome", "Sjogren's syndrome"),
        ("Gaucher disease type 1", "Gaucher disease, type I"),
        ("线粒体", "人类线粒体的基因"),
        ("FBN1", "an FBN1-related disorder"),
        ("brca1", "BRCA1"),
        ("TP53", "is tp53 mutated?"),
    ],
)
def test_spellings_of_a_name_are_found(name, text):
    assert found([name], text) == [name]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("FBN", "FBN1"),
        ("FBN1", "AFBN1 and FBN12"),
        ("IL", "IL-2"),
        ("TNF", "TNF-α and TNF-beta"),
        ("CD4", "CD4+ cells"),
        ("COVID", "COVID-19"),
        ("type", "typed"),
        ("15q2", "15q21.1"),
        ("15q21", "15q21.1"),
        ("CA2", "Ca2+ enters"),
    ],
)
def test_parts_of_words_and_siblings_are_not(name, text):
    assert found([name], text) == []


def test_short_symbols_are_no_ordinary_words():
    symbols = ["CAT", "IT", "WAS", "REST", "C3", "IMPACT"]
    assert found(symbols, "It was a cat at rest; the impact was great, as in c3 grass, Was it?") == []
    assert found(symbols, "WAS, CAT and REST are genes; so is IMPACT.") == ["WAS", "CAT", "REST", "IMPACT"]


def test_pronouns_and_letters_are_never_found():
    assert found(["It", "This", "patient", "A", "5", "No"], "It is this patient. A dose of 5. No, no dose.") == []
    assert found(["NO"], "No dose raises NO.") == ["NO"]


def test_the_leftmost_then_longest_counts_and_the_text_s_place_is_told():
    text = "type 1 diabetes mellitus and diabetes"
    mentions = Matcher(["diabetes", "diabetes mellitus", "type 1 diabetes"]).find(text)
    assert [(text[m.start : m.end], m.name) for m in mentions] == [
        ("type 1 diabetes", "type 1 diabetes"),
        ("diabetes", "diabetes"),
    ]


def test_a_shorter_name_counts_where_the_longer_is_no_whole_word():
    assert found(["factor V", "factor"], "factor VIII") == ["factor"]


def test_a_dictionary_without_names_finds_nothing():
    assert Matcher([]).find("FBN1") == []
    assert DictionaryExtractor({}).extract(passage("References", "[1] A. [2] B.")).entities == ()


def test_one_spelling_of_two_things_is_told_by_case():
    entities = DictionaryExtractor(NAMES).extract(passage("", "CAT is a gene of the cat.")).entities
    assert entities == (Entity("CAT", "gene"), Entity("Cat", "organism"))


# --- triples


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Marfan syndrome is caused by mutations in the FBN1 gene.", ("is caused by mutations in", "FBN1")),
        ("It is caused by heterozygous mutations in FBN1.", ("is caused by mutations in", "FBN1")),
        ("The disease has been linked to FBN1.", ("is linked to", "FBN1")),
        ("The cause lies in the gene FBN1.", ("cause lies in", "FBN1")),
        ("The gene at fault is FBN1.", ("gene at fault is", "FBN1")),
        ("Mutations in the FBN1 gene underlie it.", ("mutations in", "FBN1")),
        ("It is treated mainly with losartan.", ("is treated with", "losartan")),
        ("It is named after a physician.", None),
        ("It is not caused by FBN2.", (WEAK, "FBN2")),
        ("It is rare, whereas a similar disorder is caused by FBN2.", (WEAK, "FBN2")),
        ("People were examined; FBN2 was normal.", (WEAK, "FBN2")),
        ("The cause is a heterozygous pathogenic variant in the gene FBN1.", ("cause is variant in", "FBN1")),
        ("The cause in nearly all patients is FBN1.", ("cause in nearly all patients is", "FBN1")),
        ("The protein of the lens is encoded by FBN1.", (WEAK, "FBN1")),
        ("Its long fibres bind FBN1.", (WEAK, "FBN1")),
    ],
)
def test_sentences_about_the_title(text, wanted):
    assert triples("Marfan syndrome", text) == ([("Marfan syndrome", *wanted)] if wanted else [])


def test_phrases_between_names_and_a_second_predicate_of_the_subject():
    text = "FBN1 encodes the glycoprotein fibrillin-1 and is located on the long arm of chromosome 15."
    assert triples("", text) == [("FBN1", "encodes", "fibrillin-1"), ("FBN1", "is located on", "chromosome 15")]


def test_coordinated_names_share_the_relation():
    assert triples("", "FBN1 and FBN2 cause Marfan syndrome or Loeys-Dietz syndrome.") == [
        ("FBN1", "cause", "Marfan syndrome"),
        ("FBN1", "cause", "Loeys–Dietz syndrome"),
        ("FBN2", "cause", "Marfan syndrome"),
        ("FBN2", "cause", "Loeys–Dietz syndrome"),
    ]


def test_the_noun_of_a_definition_tells_the_relation():
    assert triples("", "FBN1 mutations cause Marfan syndrome.") == [("FBN1", "mutations cause", "Marfan syndrome")]
    text = "Marfan syndrome is a heritable disorder of fibrillin-1."
    assert triples("", text) == [("Marfan syndrome", "is a disorder of", "fibrillin-1")]


def test_an_entity_that_nothing_relates_is_mentioned_with_the_title_and_the_title_is_an_entity():
    extraction = DictionaryExtractor(NAMES).extract(passage("Marfan syndrome", "Losartan. Aspirin."))
    assert extraction.entities == (Entity("Marfan syndrome", "disease"), Entity("losartan", "chemical"))
    assert extraction.triples == (Triple("Marfan syndrome", WEAK, "losartan"),)
    assert extraction.source == "dictionary"


@pytest.mark.parametrize(
    ("gap", "wanted"),
    [
        (" shares this position with ", "shares position with"),
        (" encodes the receptor for ", "encodes receptor for"),
        (" is isolated in 1894 by ", "is isolated by"),
        (" is a severe infection, caused in most cases by ", "caused by"),
        (" lies in a cluster of related genes on the long arm of ", "lies on"),
        (" is a gene of ten exons on the long arm of ", "is a gene on"),
        (" is classified as a form of ", "is a form of"),
        (" arises from homozygous or compound heterozygous mutations in ", "arises from mutations in"),
        (" encodes the α subunit, and ", ""),
        (", the first to be found (1993), ", ""),
        (" is expressed in nearly every tissue apart from the liver, where its relative ", ""),
        (" is the insertion of a needle into the lower back for ", ""),
        (" is carried in from the cytosol through the ", ""),
    ],
)
def test_what_a_verb_has_besides_the_second_mention(gap, wanted):
    assert phrases.relation(gap) == wanted


@pytest.mark.parametrize(
    ("text", "title_kind", "words", "whole"),
    [
        ("It lies there.", "gene", "It", True),
        ("The rare disease strikes.", "disease", "The rare disease", True),
        ("The drug raises levels.", "", "The drug", True),
        ("The gene at fault is here.", "", "The", False),
        ("The name stands for it.", "gene", "The", False),
        ("Its cause is unknown.", "disease", "Its", False),
        ("Their disease is rare.", "disease", "Their", False),
        ("Doctors know.", "disease", "", False),
    ],
)
def test_how_a_sentence_refers_to_its_subject(text, title_kind, words, whole):
    assert phrases.implicit_subject(text, title_kind) == (len(words), whole)


def test_every_relation_is_in_lower_case_and_short():
    gaps = [" Is Caused By Mutations In The ", " encodes ", " IS A FORM OF ", ", which is located on "]
    assert [phrases.relation(gap) for gap in gaps] == [
        "is caused by mutations in",
        "encodes",
        "is a form of",
        "is located on",
    ]
    assert phrases.relation(" and a long time after that, when nobody expected it any more, a man called " * 2) == ""
    assert phrases.relation(" treatment of the liver by ") == ""


# --- names of a corpus


def test_titles_aliases_abbreviations_and_gene_symbols_are_names():
    texts = {
        "Marfan syndrome": "Marfan syndrome (MFS) is rare. It is caused by variants in TGFBR9.",
        "Leprosy": "Leprosy, or Hansen disease, is an infection. The gene XYZ1 lies at 15q21.1.",
        "Digitalis (foxglove)": "Digitalis is a plant with low-density lipoprotein (LDL).",
        "Does aspirin help?": "Other names for it include acetylsalicylic acid and ASA.",
        "IDUA": "IDUA encodes an enzyme. Its full name is iduronidase, alpha-L, a protein.",
        "Danon disease": "It is also known as GSD2B, mild, X-linked, type 2 and Danon's heart disease.",
    }
    names = collect(Document(title, title, "", text, (f"alias of {title}",)) for title, text in texts.items())
    wanted = {
        "Marfan syndrome": "disease", "MFS": "disease", "TGFBR9": "gene", "Leprosy": "disease", "XYZ1": "gene",
        "Hansen disease": "disease", "15q21.1": "chromosome", "Digitalis": "organism", "low-density lipoprotein": "",
        "LDL": "", "IDUA": "gene", "iduronidase, alpha-L": "gene", "Danon disease": "disease", "GSD2B": "disease",
        "Danon's heart disease": "disease", "chromosome 15": "chromosome",
        "alias of Marfan syndrome": "disease",
    }  # fmt: skip
    assert {name: names.get(name) for name in wanted} == wanted
    absent = {"mild", "X-linked", "type 2", "Does aspirin help?", "foxglove", "Digitalis (foxglove)"}
    assert not absent & names.keys()


def test_a_name_that_a_passage_cuts_is_no_alias():
    text = "It is also known as progressive diaphyseal dysplasia and Camurati-Engel"
    assert aliases("CED", text) == [("CED", "progressive diaphyseal dysplasia")]


@pytest.mark.parametrize(
    ("title", "text", "wanted"),
    [
        ("Rabies", "Rabies spreads. There are inclusions, most of them round, that are known as Negri bodies.", []),
        ("MYBPC3", "A linker called the M-domain releases a brake and speeds up contraction.", []),
        ("Leprosy", "Some lose muscle tone, which is called gelastic cataplexy.", []),
        (
            "Malaria",
            "The illness is called benign fever, although severe anaemia and death do occur.",
            ["benign fever"],
        ),
        ("Rett syndrome", "The gene is called MECP2.", []),
        (
            "Rifampicin",
            "Rifampicin, called rifampin elsewhere, binds RNA and blocks the start.",
            ["rifampin elsewhere"],
        ),
        ("PAH", "PAH is also called PheOH and must not be confused with hypertension.", ["PheOH"]),
        ("Gout, mild", "The condition known as gout, mild, is a disease and an ailment.", []),
        ("HK1", "Other symbols for it include HK1-ta and HKD.", ["HK1-ta", "HKD"]),
        ("SADDAN", "It is also known as SADDAN dysplasia.", ["SADDAN dysplasia"]),
        ("DEE36", "It is also known as early infantile encephalopathy 36.", ["early infantile encephalopathy 36"]),
        (
            "NR",
            "It is also known as lissencephaly 2 and polydactyly type 1.",
            ["lissencephaly 2", "polydactyly type 1"],
        ),
        (
            "Glutaric acidemia I",
            "It is also known as glutaric academia 1, glutaric aciduria 1, glutaric aciduria I and GA1.",
            ["glutaric academia 1", "glutaric aciduria 1", "glutaric aciduria I", "GA1"],
        ),
        ("Emicizumab", "Emicizumab (trade name Hemlibra) is an antibody.", ["Hemlibra"]),
        ("NF2", "NF2 is a gene. The name merlin stands for moesin-like protein.", []),
        (
            "HSAN7",
            "HSAN7 is a hereditary sensory and autonomic neuropathy. It is also known as CIP and sensory and autonomic "
            "neuropathy type VII.",
            ["CIP", "sensory and autonomic neuropathy type VII"],
        ),
    ],
)
def test_names_of_other_things_are_no_aliases(title, text, wanted):
    assert aliases(title, text) == [(title, name) for name in wanted]


def test_a_disease_and_the_gene_of_its_symbol_are_not_one():
    passages = [
        passage("Bardet-Biedl syndrome 1", "It is abbreviated BBS1. The gene at fault is BBS1."),
        passage("BBS1", "BBS1 is a gene. Its full name is Bardet-Biedl syndrome 1."),
    ]
    extractor = DictionaryExtractor.for_corpus(passages)
    assert (extractor.names["BBS1"], extractor.names["Bardet-Biedl syndrome 1"]) == ("gene", "disease")
    assert extractor.extract(passages[0]).triples == (Triple("Bardet-Biedl syndrome 1", "gene at fault is", "BBS1"),)


def test_stated_aliases_become_triples():
    text = "Marfan syndrome (MFS) is rare."
    extractor = DictionaryExtractor.for_corpus([passage("Marfan syndrome", text)])
    extraction = extractor.extract(passage("Marfan syndrome", text))
    assert extraction.triples == (Triple("Marfan syndrome", ALSO_KNOWN_AS, "MFS"),)


@pytest.mark.parametrize(
    ("short", "before", "long"),
    [
        ("WHO", "as the World Health Organization ", "World Health Organization"),
        ("LDL", "receptors for low-density lipoprotein ", "low-density lipoprotein"),
        ("SSTR2", "binds somatostatin receptor subtype 2 ", "somatostatin receptor subtype 2"),
        ("MFS", "an unrelated condition ", ""),
        ("PheOH", "PAH is the gene for phenylalanine hydroxylase ", ""),
        ("anti-CCP", "antibodies against cyclic citrullinated peptides ", ""),
        ("see", "for more see ", ""),
        ("95%", "of confidence ", ""),
        ("Bill", "a book by Colin Escott and William ", ""),
    ],
)
def test_long_forms_of_abbreviations(short, before, long):
    assert long_form(short, before) == long


@pytest.mark.parametrize(
    ("title", "text", "wanted"),
    [
        ("Marfan syndrome", "", "disease"),
        ("Amyotrophic lateral sclerosis type 8", "", "disease"),
        ("Chromosome 4", "", "chromosome"),
        ("Bardet-Biedl syndrome 1", "", "disease"),
        ("Alpha-L-iduronidase", "", "gene"),
        ("Lactase", "", "gene"),
        ("DYSF", "DYSF stands for dysferlin, a human protein-coding gene.", "gene"),
        ("AIDS", "AIDS is the late stage of an infection.", ""),
        ("Malaria", "Malaria is a febrile illness caused by parasites.", "disease"),
        ("Luis Leloir", "Luis Leloir was an Argentine biochemist who won a prize.", "person"),
        ("Thalidomide", "Thalidomide is a derivative that the company sold.", ""),
        ("Volbeat", "Volbeat are a Danish band from Copenhagen.", ""),
    ],
)
def test_kinds_of_titles(title, text, wanted):
    assert title_kind(title, text) == wanted


def test_orphanet_names_and_genes_are_names_too():
    orphanet = Orphanet([Disorder("558", "Marfan syndrome", ("MFS",), genes=(GeneLink("FBN1", "fibrillin 1"),))])
    extractor = DictionaryExtractor.for_corpus([], orphanet)
    extraction = extractor.extract(passage("", "MFS is caused by mutations in FBN1, which encodes fibrillin 1."))
    assert extraction.entities == (Entity("MFS", "disease"), Entity("FBN1", "gene"), Entity("fibrillin 1", "gene"))
    assert [t.relation for t in extraction.triples] == ["is caused by mutations in", "encodes"]


def test_the_digest_is_that_of_names_and_types():
    one = DictionaryExtractor({"a1": "gene", "b1": ""})
    assert one.digest == DictionaryExtractor({"b1": "", "a1": "gene"}).digest
    assert one.digest != DictionaryExtractor({"a1": "disease", "b1": ""}).digest
    assert one.digest != DictionaryExtractor({"a1": "gene"}).digest


@pytest.mark.parametrize("module", [dictionary, names, phrases, vocabulary], ids=lambda module: module.__name__)
def test_the_digest_is_that_of_the_patterns_too(module, monkeypatch):
    extractor = DictionaryExtractor({"a1": "gene"})
    before = extractor.digest
    patterns = {name: value for name, value in vars(module).items() if isinstance(value, re.Pattern)}
    assert patterns
    for name, pattern in patterns.items():
        for other in (re.compile(f"{pattern.pattern} "), re.compile(pattern.pattern, pattern.flags ^ re.DOTALL)):
            monkeypatch.setattr(module, name, other)
            assert extractor.digest != before, name
            monkeypatch.setattr(module, name, pattern)
    assert extractor.digest == before


def test_the_bundled_articles_state_what_they_are_about():
    documents = list(read_corpus(Path(CORPUS / "genetics.jsonl"), ReadReport()))
    passages = [p for document in documents for p in chunk_document(document)]
    extractor = DictionaryExtractor.for_corpus(passages)
    extractions = {p.id: extractor.extract(p) for p in passages}
    said = {triple for extraction in extractions.values() for triple in extraction.triples}
    assert Triple("Wilson disease", "responsible gene is", "ATP7B") in said
    assert Triple("Marfan syndrome", ALSO_KNOWN_AS, "MFS") in said
    assert Triple("Alpha-L-iduronidase", "is encoded by", "IDUA") in said
    first = extractions["marfan-syndrome#0"]
    assert first == extractor.extract(passages[[p.id for p in passages].index("marfan-syndrome#0")])
    assert Entity("FBN1", "gene") in first.entities
