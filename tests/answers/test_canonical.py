"""Text folding, quantities, canonical forms and exact match."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medhop_dspy.answers import AliasTable, AnswerType, canon, canonical, exact_match, strict_match
from medhop_dspy.answers.quantities import find_quantities, parse_quantity
from medhop_dspy.answers.textnorm import normalise, sentences, tidy, tokens
from medhop_dspy.errors import InputError

T = AnswerType


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("IFN\u2011signature", "ifn signature"),
        ("IFN\u2013signature", "ifn signature"),
        ("IFN\u00ad-sig\u200bnature", "ifn signature"),
        ("non\u00a0small", "non small"),
        ("TNFα", "tnf alpha"),
        ("αβ T cell", "alpha beta t cell"),
        ("alphabet", "alphabet"),
        ("Sjögren’s", "sjogrens"),
        ("Strøm-Łoś", "strom los"),
        ("HLA-B*57:01", "hla b 57 01"),
        ("t(9;22)", "t 9 22"),
        ("15q21.1", "15q21.1"),
        ("1,2-dichloroethane", "1 2 dichloroethane"),
        ("1,234,567.5", "1234567.5"),
        ("10⁵", "10^5"),
        ("H₂O", "h2o"),
        ("1½", "1 1/2"),
        ("−5", "-5"),
        ("CD4+", "cd4+"),
        ("CD4-", "cd4"),
        ("Na+/K+-ATPase", "na+ k+ atpase"),
        ("20 per cent", "20 %"),
        ("the liver", "liver"),
        ("A antigen", "a antigen"),
        ("a antigen", "antigen"),
        ("The", "the"),
        ("...", ""),
        ("线粒体", "线粒体"),
    ],
)
def test_normalise(text, expected):
    assert normalise(text) == expected


def test_tidy_keeps_spelling_and_drops_what_is_invisible():
    assert tidy(" Sjo\u0308gren\u200b\u00a0 IL-2\t5’ \n") == "Sjögren IL-2 5’"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Dr. Smith found E. coli (e.g. strain K. 12) at 15q21.1. It weighs 1.5 mg.", 2),
        ("This is hepatitis B. It is a virus.", 2),
        ("See J. Smith et al. for details.", 1),
        ("The answer is no. Yes. No. 5 is the last.", 3),
        ("It is rare! Is it?\n\nSecond paragraph. 3 genes were found.", 4),
        ('He said "stop." Then he left.', 2),
        ("approx. ten of 50 cases vs. five", 1),
        ("", 0),
    ],
)
def test_sentences(text, count):
    found = sentences(text)
    assert len(found) == count, found
    assert "".join("".join(found).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "value", "unit", "shown"),
    [
        ("1,300", 1300, "", "1300"),
        ("(3.14).", Fraction("3.14"), "", "3.14"),
        (".5", Fraction(1, 2), "", "0.5"),
        ("two hundred and five", 205, "", "205"),
        ("twenty-one years", 21, "year", "21 years"),
        ("two and a half hours", Fraction(5, 2), "hour", "2.5 hours"),
        ("\u22125", -5, "", "-5"),
        ("3 × 10⁻²", Fraction(3, 100), "", "3 × 10^-2"),
        ("52.9 million people", 52_900_000, "", "52.9 million"),
        ("1 in 5,000", Fraction(1, 5000), "", "1 in 5000"),
        ("one in a million", Fraction(1, 10**6), "", "1 in 1000000"),
        ("1:5000", Fraction(1, 5000), "", "1 in 5000"),
        ("½", Fraction(1, 2), "", "1/2"),
        ("20 per cent", 20, "%", "20%"),
        ("20% of 100 patients", 20, "%", "20%"),
        ("The answer is about 90 µg/day", 90, "μg/day", "90 μg/day"),
        ("423 amino acids", 423, "", "423"),
        ("in 1950", 1950, "", "1950"),
        ("5-year", 5, "year", "5 year"),
        ("2,065 bp", 2065, "bp", "2065 bp"),
        ("at least 5 years", 5, "year", "at least 5 years"),
    ],
)
def test_parse_quantity(text, value, unit, shown):
    found = parse_quantity(text)
    assert (found.low, found.high, found.unit, found.text) == (value, value, unit, shown)


@pytest.mark.parametrize("text", ["5\u201310", "5-10", "5 to 10", "between 5 and 10", "five to ten", "5 - 10"])
def test_ranges_are_one_form(text):
    assert canon(T.NUMBER, text) == "5-10"


@pytest.mark.parametrize(
    "text",
    [
        "under investigation", "CA1", "IL-2", "15q21.1", "47,XXY", "1950s",
        "2,3-BPG", "5-HT", "11β-hydroxylase", "one-third",
        "2nd", "5 or 10", "5 exons and 4 introns", "chromosome 15", "1/0", "1e999999999", "10^999999", "9" * 500, "",
    ],
)  # fmt: skip
def test_what_is_no_single_number(text):
    assert parse_quantity(text) is None


def test_find_quantities_passes_over_names():
    prose = "Marfan (15q21.1, IL-6R, 5-HT) affects 1 in 5,000 people; 3,600 deaths, twenty percent, 5 to 10 years old."
    assert [q.text for q in find_quantities(prose)] == ["1 in 5000", "3600", "20%", "5-10 years old"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Chromosome 15", "15"),
        ("chr15", "15"),
        ("15", "15"),
        ("chromosome 15 (human)", "15"),
        ("15q21.1", "15"),
        ("15q11-q22", "15"),
        ("15q11.2-q13", "15"),
        ("the long arm of chromosome 15", "15"),
        ("Chromosome 15 (15q21.1)", "15"),
        ("FBN1 is located on chromosome 15.", "15"),
        ("chromosome fifteen", "15"),
        ("15th chromosome", "15"),
        ("Xp21.2-p11.23", "X"),
        ("the X chromosome", "X"),
        ("X|Y", "X|Y"),
        ("Y and X", "X|Y"),
        ("chrM", "MT"),
        ("MT", "MT"),
        ("mitochondrial", "MT"),
        ("mitochondrial DNA", "MT"),
        ("chromosome 23", None),
        ("chromosome", None),
        ("0", None),
        ("Z", None),
        ("47,XXY", None),
        ("XP", None),
        ("22 pairs of chromosomes", None),
        ("FBN1", None),
        ("", None),
    ],
)
def test_chromosome(text, expected):
    assert canon(T.CHROMOSOME, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("chr15q21.1", "15q21.1"),
        ("chromosome 15, band q21.1", "15q21.1"),
        ("1q21.2q21.2", "1q21.2"),
        ("17q21-17q22", "17q21-q22"),
        ("Xp21.2-p11.23", "Xp21.2-p11.23"),
        ("short arm of the X chromosome", "Xp"),
        ("the femur", "femur"),
        ("15", "15"),
    ],
)
def test_location(text, expected):
    assert canon(T.LOCATION, text) == expected


@pytest.mark.parametrize(
    "text", ["Yes", "YES.", "yes, it is", "Yes - because", "The answer is yes", "True", "**Yes**", "It is true."]
)
def test_yes(text):
    assert canon(T.YES_NO, text) == "yes"


@pytest.mark.parametrize("text", ["No", "No.", "No, it is not", "no because", "Answer: No", "False", "'no'"])
def test_no(text):
    assert canon(T.YES_NO, text) == "no"


@pytest.mark.parametrize(
    "text",
    [
        "not known", "Norway", "none", "nothing found", "yesterday", "unknown", "yes and no", "yes/no", "Yes or no", "",
        "no evidence", "no-one", "No known cause", "true or false", "falsehood", "maybe",
    ],
)  # fmt: skip
def test_neither_yes_nor_no(text):
    assert canon(T.YES_NO, text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FBN1 gene", "FBN1"),
        ("the FBN1 gene", "FBN1"),
        ("FBN1 (fibrillin 1)", "FBN1"),
        ("Mutations in the FBN1 gene", "FBN1"),
        ("the human gene FBN1", "FBN1"),
        ("IL-2.", "IL-2"),
        ("HLA-B*57:01", "HLA-B*57:01"),
        ("FBN1 or FBN2", "FBN1 or FBN2"),
        ("gene", "gene"),
        ("...", None),
    ],
)
def test_gene(text, expected):
    assert canon(T.GENE, text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the liver", "liver"),
        ("The liver.", "liver"),
        ("The Lancet", "The Lancet"),
        ("A antigen", "A antigen"),
        ("'Marfan syndrome'.", "Marfan syndrome"),
        ("**FBN1**", "FBN1"),
        ("E. coli", "E. coli"),
        ("U.S.", "U.S."),
        ("t(9;22)", "t(9;22)"),
        ("1.5 hours", "1.5 hours"),
        ("'a' and 'b'", "'a' and 'b'"),
        ("5'-nucleotidase", "5'-nucleotidase"),
        ("?", None),
    ],
)
def test_text(text, expected):
    assert canonical.text(text) == expected


EQUAL = [
    ("A", "A", None),
    ("the FBN1 gene", "FBN1 gene", None),
    ("The Beatles", "Beatles", None),
    ("IFN\u2011signature", "IFN\u2013signature", None),
    ("IFN signature", "IFN-signature", None),
    ("X-linked", "X linked", None),
    ("TNF-α", "TNF-alpha", None),
    ("TNF alpha", "TNFα", None),
    ("5 \u00b5g", "5 \u03bcg", None),
    ("\u03c2", "\u03c3", None),
    ("Sjögrens Syndrome", "sjogren's syndrome", None),
    ("IL-2", "IL2", T.GENE),
    ("il-2", "IL 2", T.GENE),
    ("FBN1 (fibrillin 1)", "FBN1", T.GENE),
    ("vitamin B-12", "vitamin B12", T.CHEMICAL),
    ("chr15", "Chromosome 15", T.CHROMOSOME),
    ("15q21.1", "15", T.CHROMOSOME),
    ("15", "Chromosome 15", None),
    ("Y|X", "X|Y", T.CHROMOSOME),
    ("chr15q21.1", "15q21.1", T.LOCATION),
    ("1q21.2q21.2", "1q21.2", T.LOCATION),
    ("1,300", "1300", T.NUMBER),
    ("1.0", "1", T.NUMBER),
    ("29.00", "29", None),
    ("(3.14).", "3.14", T.NUMBER),
    ("two", "2", T.NUMBER),
    ("twenty-one", "21", None),
    ("\u22125", "-5", T.NUMBER),
    ("10⁵", "100000", T.NUMBER),
    ("20%", "20 %", T.NUMBER),
    ("20 percent", "20 per cent", None),
    ("The answer is 20%", "20%", T.NUMBER),
    ("20% of 100 patients", "20%", T.NUMBER),
    ("20%", "20", T.NUMBER),
    ("20", "20%", T.NUMBER),
    ("5\u201310", "5 to 10", T.NUMBER),
    ("423 amino acids", "423", T.NUMBER),
    ("3 hrs", "3 hours", T.DURATION),
    ("Yes, it is", "Yes", None),
    ("Nephrologist", "Nephrology", T.FIELD_OF_BIOLOGY),
]
UNEQUAL = [
    ("B", "A", None),
    ("hepatitis", "hepatitis A", None),
    ("vitamin", "vitamin A", None),
    ("antigen", "A antigen", None),
    ("non-small cell", "small cell", None),
    ("TNF-α", "TNF-β", None),
    ("TNF-α", "TNF", None),
    ("αbet", "alphabet", None),
    ("HLA-B*57:01", "HLA-B5701", T.GENE),
    ("t(9;22)", "t922", None),
    ("IL2", "IL12", T.GENE),
    ("IL2", "IL2RA", T.GENE),
    ("IL2", "IL20", T.GENE),
    ("IL1-2", "IL12", T.GENE),
    ("HER2", "ERBB2", T.GENE),
    ("FBN1 or FBN2", "FBN1", T.GENE),
    ("1", "11", T.CHROMOSOME),
    ("1", "21", T.CHROMOSOME),
    ("X", "X|Y", T.CHROMOSOME),
    ("15", "15q21.1", T.LOCATION),
    ("15q21", "15q21.1", None),
    ("1", "15", None),
    ("15", "1", None),
    ("3.14", "314", None),
    ("10", "1.0", T.NUMBER),
    ("5", "-5", T.NUMBER),
    ("2,065 bp", "2.065", T.NUMBER),
    ("10⁵", "105", T.NUMBER),
    ("20% of 100 patients", "100", T.NUMBER),
    ("20%", "200%", T.NUMBER),
    ("20%", "0.2", T.NUMBER),
    ("50 kb", "50 kDa", T.NUMBER),
    ("50", "50 kb", T.NUMBER),
    ("5 exons", "5 introns", T.NUMBER),
    ("<5", "5", T.NUMBER),
    ("5\u201310", "510", T.NUMBER),
    ("5\u201310", "10", T.NUMBER),
    ("5\u201310", "-10", T.NUMBER),
    ("1.5 hours", "15 hours", T.DURATION),
    ("6 days", "6 hours", T.DURATION),
    ("beta-thalassemia", "beta-thalassemia, dominant", None),
    ("none", "no", T.YES_NO),
    ("Norway", "no", None),
]


@pytest.mark.parametrize(("pred", "gold", "answer_type"), EQUAL)
def test_exact_match_is_lenient(pred, gold, answer_type):
    assert exact_match(pred, [gold], answer_type)


@pytest.mark.parametrize(("pred", "gold", "answer_type"), UNEQUAL)
def test_exact_match_is_not_too_lenient(pred, gold, answer_type):
    assert not exact_match(pred, [gold], answer_type)


@pytest.mark.parametrize("pred", ["", "  ", "...", "\u200b", None])
@pytest.mark.parametrize("answer_type", [None, T.CHROMOSOME, T.OTHER])
def test_an_empty_prediction_matches_nothing(pred, answer_type):
    assert not exact_match(pred, ["15", "..."], answer_type)
    assert not strict_match(pred, ["15"])


@pytest.mark.parametrize("golds", [[], "", ["15", " "], [None], ["\u200b"]])
@pytest.mark.parametrize("match", [exact_match, strict_match])
def test_an_empty_gold_is_an_error(golds, match):
    with pytest.raises(InputError, match="needs at least one and none may be empty"):
        match("15", golds)


def test_several_golds_in_any_order_and_a_plain_string_is_one():
    assert exact_match("MFS1", ["FBN1", "MFS1"]) and exact_match("MFS1", ("MFS1", "FBN1"))
    assert not exact_match("F", "FBN1")
    assert exact_match("yes", True) and exact_match("No.", [False]) and exact_match("15", 15)
    assert not exact_match("False", [True])


def test_aliases_join_names_but_short_ones_only_as_spelled():
    table = AliasTable([["ERBB2", "HER2", "HER-2/neu"], ["HBB", "H-B"]])
    assert exact_match("her2", ["ERBB2"], T.GENE, table)
    assert exact_match("H-B", ["HBB"], T.GENE, table)
    assert not exact_match("Hb", ["HBB"], T.GENE, table)
    assert not exact_match("HER2", ["HBB"], T.GENE, table)


def test_strict_match_is_the_trimmed_string():
    assert strict_match(" FBN1 ", ["FBN1"])
    assert not strict_match("fbn1", ["FBN1"])
    assert strict_match("yes", True)


_WORDS = "the FBN1 gene 15 15q21.1 X 1.5 hours % yes no or 10⁵ ½ to - α ( ) A"
_PIECES = st.sampled_from(_WORDS.split(" "))
_TEXTS = st.one_of(st.lists(_PIECES, max_size=7).map(" ".join), st.text(max_size=30))


@settings(max_examples=150, deadline=None)
@given(text=_TEXTS, answer_type=st.sampled_from(list(T)))
def test_canonical_forms_are_stable_and_every_answer_matches_itself(text, answer_type):
    form = canon(answer_type, text)
    assert form is None or canon(answer_type, form) == form
    if tokens(text):
        assert exact_match(text, [text], answer_type)
        assert exact_match(text, [text])
