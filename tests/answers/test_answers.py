"""The table of answer types, its checks, filters and shortening."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medhop_dspy.answers import (
    ANSWER_TYPES,
    AnswerType,
    check_format,
    is_generic,
    is_placeholder,
    is_specific,
    shorten,
)

T = AnswerType


def test_the_table_has_every_type_once_and_rules_fit_a_prompt():
    assert set(ANSWER_TYPES) == set(AnswerType) and len(AnswerType) == 23
    for spec in ANSWER_TYPES.values():
        assert spec.meaning and spec.format_rule.endswith(".") and len(spec.format_rule.split()) <= 15
    assert len({s.meaning for s in ANSWER_TYPES.values()}) == 23


def test_every_member_is_explained():
    for member in AnswerType:
        assert f"    {member.name}: " in AnswerType.__doc__


def test_importing_loads_no_model_library():
    code = "import sys, medhop_dspy.answers; print([m for m in ('dspy', 'torch', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "answer",
    [
        "gene", "Genes", "the protein", "A gene", "disease", "a disorder", "syndrome", "chromosome",
        "enzyme deficiency", "a rare genetic disorder", "an X-linked recessive disorder",
        "the gene responsible", "gene mutation", "It is a gene", "medications", "hormone", "anomalies",
    ],
)  # fmt: skip
def test_category_words_are_generic(answer):
    assert is_generic(answer)
    assert not is_specific(answer, "other")


@pytest.mark.parametrize(
    "answer",
    [
        "Chromosome 7", "7", "A", "X", "vitamin A", "hepatitis B", "factor V", "X chromosome",
        "Marfan syndrome", "FBN1 gene", "autosomal dominant", "glycoprotein", "blood", "liver", "protein C",
        "",
    ],
)  # fmt: skip
def test_names_are_not_generic(answer):
    assert not is_generic(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "", " ", "-", "\u2014", "?", "...", "unknown", "Unknown.", "[unknown]", "N/A", "n.a.", "NA", "nan",
        "None", "null", "not sure", "I'm not sure", "I don't know", "Not specified", "not known",
        "It is not known", "cannot be determined", "no answer", "No information available",
        "not mentioned in the evidence", "unknown gene", "none (unknown)",
        "The passage does not mention the gene.", "There is no information about it", "unable to determine",
        "json", "Answer", "None of the above", "insufficient information",
    ],
)  # fmt: skip
def test_placeholders(answer):
    assert is_placeholder(answer)
    assert not is_specific(answer, "other")
    assert check_format(answer, T.OTHER).ok is False


@pytest.mark.parametrize(
    "answer",
    [
        "1", "0", "A", "No", "Yes", "Na", "Norrie disease", "Noonan syndrome", "null allele", "nonane",
        "NOTCH1", "variant of unknown significance", "cancer of unknown primary",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_placeholder(answer):
    assert not is_placeholder(answer)


@pytest.mark.parametrize(
    ("answer", "hop_type", "expected"),
    [
        ("FBN1", "gene", True),
        ("7", "number", True),
        ("7", "other", True),
        ("Chromosome 7", "other", True),
        ("twelve", "number", True),
        ("FBN1", "number", False),
        ("Yes", "yes_no", False),
        ("No", "other", False),
        ("FBN1", "yes_no", False),
        ("FBN1", T.GENE, True),
        (" ".join(["word"] * 11), "other", False),
        (" ".join(["word"] * 10), "other", True),
        ("%%", "other", False),
        ("", "gene", False),
    ],
)
def test_is_specific(answer, hop_type, expected):
    assert is_specific(answer, hop_type) is expected


YES, NO, OPEN = True, False, None
FORMATS = [
    (T.CHROMOSOME, {"15": YES, "Chromosome X": YES, "chromosome 23": NO, "FBN1": NO, "gene": NO}),
    (
        T.GENE,
        {
            "FBN1": YES,
            "IL-2": YES,
            "ATM": OPEN,
            "ATM gene": YES,
            "dystrophin": OPEN,
            "15q21.1": NO,
            "Marfan syndrome": NO,
            "15": NO,
        },
    ),
    (T.GENE_MUTATION, {"BRAF V600E": YES, "p.Phe508del": YES, "ΔF508": YES, "FBN1": YES, "deletion": OPEN, "7": NO}),
    (
        T.PROTEIN,
        {"C-reactive protein": YES, "FGFR3 receptor": YES, "fibrillin-1": OPEN, "20%": NO, "Pompe disease": NO},
    ),
    (
        T.ENZYME,
        {"alpha-galactosidase A": YES, "Janus kinase": YES, "pepsin": OPEN, "Hurler disease": NO, "chromosome 3": NO},
    ),
    (
        T.DISEASE_OR_SYNDROME,
        {
            "Marfan syndrome": YES,
            "hepatitis": YES,
            "Gigantism": YES,
            "psychosis": YES,
            "2q37 deletion syndrome": YES,
            "Chromosome 5q deletion syndrome": YES,
            "Ring chromosome 18": OPEN,
            "Chromosome 18": NO,
            "plague": OPEN,
            "15": NO,
            "yes": NO,
        },
    ),
    (T.SYMPTOM, {"abdominal pain": YES, "jaundice": YES, "ptosis": OPEN, "3": NO}),
    (
        T.MEDICATION,
        {"rituximab": YES, "doxycycline": YES, "insulin": YES, "levodopa": OPEN, "Graves disease": NO, "2": NO},
    ),
    (T.PROCEDURE, {"appendectomy": YES, "CT scan": YES, "liver transplantation": YES, "stenting": OPEN, "no": NO}),
    (T.ORGANISM, {"Epstein-Barr virus": YES, "E. coli": YES, "Yersinia pestis": OPEN, "Lyme disease": NO}),
    (T.FLUID_TYPE, {"cerebrospinal fluid": YES, "urine": YES, "fluid": NO, "jelly": OPEN}),
    (T.PHASE, {"anaphase": YES, "luteal phase": YES, "G1": YES, "S": YES, "Crohn's": OPEN}),
    (
        T.NUMBER,
        {"423": YES, "20%": YES, "7 exons": YES, "1 in 2,000": YES, "21 hydroxylase": OPEN, "FBN1": NO, "many": NO},
    ),
    (T.LOCATION, {"15q21.1": YES, "CA1 region": OPEN, "42": NO, "Yes": NO}),
    (
        T.MEDICAL_SPECIALIST,
        {
            "Cardiologist": YES,
            "orthopedic surgeon": YES,
            "Pediatric ophthalmologist": YES,
            "urologist": YES,
            "cardiology specialist": YES,
            "Cardiology": NO,
            "midwife": OPEN,
        },
    ),
    (
        T.FIELD_OF_BIOLOGY,
        {"Cardiology": YES, "Genetics": YES, "obstetrics": YES, "Cardiologist": YES, "nurse": NO, "oceans": OPEN},
    ),
    (T.PRESS_OR_PUBLISHER, {"Oxford University Press": YES, "Elsevier": YES, "Faber": OPEN, "12": NO}),
    (T.PERSON, {"Antoine Marfan": OPEN, "FBN1": NO, "fibrillin": NO}),
    (T.BONE, {"femur": YES, "temporal bone": YES, "the bone": NO, "knee": OPEN}),
    (T.CHEMICAL, {"folic acid": YES, "vitamin K": YES, "carnitine": OPEN, "Wilson disease": NO, "5": NO}),
    (T.DURATION, {"1.5 hours": YES, "6-8 weeks": YES, "a few days": OPEN, "15": NO, "FBN1": NO}),
    (T.YES_NO, {"Yes": YES, "No, it is not": YES, "yes and no": NO, "Norway": NO}),
    (T.OTHER, {"autosomal dominant": YES, "15": YES}),
]


@pytest.mark.parametrize(
    ("answer_type", "answer", "expected"),
    [pytest.param(t, a, e, id=f"{t.value}-{a}") for t, cases in FORMATS for a, e in cases.items()],
)
def test_check_format(answer_type, answer, expected):
    verdict = check_format(answer, answer_type)
    assert verdict.ok is expected
    assert bool(verdict.reason) is (expected is not True)


def test_a_sentence_is_no_short_answer():
    verdict = check_format("FBN1 " * 16, T.GENE)
    assert verdict.ok is False and "longer than 15 words" in verdict.reason


SHORTENED = [
    ("The answer is FBN1.", T.GENE, "FBN1"),
    ("Answer: FBN1", T.GENE, "FBN1"),
    ('Answer: "Answer: FBN1."', T.GENE, "FBN1"),
    ("FBN1 (fibrillin 1)", T.GENE, "FBN1"),
    ("FBN1\n\nExplanation: it encodes fibrillin.", T.GENE, "FBN1"),
    ("- FBN1", T.GENE, "FBN1"),
    ("FBN1, which encodes fibrillin", T.GENE, "FBN1"),
    ("The gene that is mutated in Marfan syndrome is FBN1.", T.GENE, "FBN1"),
    ("The disease is caused by mutations in the FBN1 gene.", T.GENE, "FBN1"),
    ("The gene is not known", T.GENE, "gene is not known"),
    ("Pompe disease (GSD II)", T.DISEASE_OR_SYNDROME, "Pompe disease"),
    ("**Marfan syndrome**", T.DISEASE_OR_SYNDROME, "Marfan syndrome"),
    ("It is called dysarthria.", T.SYMPTOM, "dysarthria"),
    ("Yes, it is located there.", T.YES_NO, "Yes"),
    ("no", T.YES_NO, "No"),
    ("yes and no", T.YES_NO, "yes and no"),
    ("The FBN1 gene is located on chromosome 15.", T.CHROMOSOME, "Chromosome 15"),
    ("15", T.CHROMOSOME, "Chromosome 15"),
    ("X and Y", T.CHROMOSOME, "X and Y"),
    ("There are 423 amino acids in the enzyme.", T.NUMBER, "423"),
    ("7 exons", T.NUMBER, "7"),
    ("20% of 100 patients", T.NUMBER, "20% of 100 patients"),
    ("1,300", T.NUMBER, "1,300"),
    ("The half-life is 1.5 to 2 hours.", T.DURATION, "1.5-2 hours"),
    ("Cardiologist.", T.FIELD_OF_BIOLOGY, "Cardiology"),
    ("Pediatricians", T.FIELD_OF_BIOLOGY, "Pediatrics"),
    ("CFTR gene mutation", T.GENE_MUTATION, "CFTR"),
    ("missense mutation", T.GENE_MUTATION, "missense mutation"),
    ("  ", T.GENE, ""),
    ("-", T.OTHER, ""),
]
UNTOUCHED = [
    ("1.5 hours", T.DURATION),
    ("HLA-B*57:01", T.GENE),
    ("t(9;22)", T.GENE_MUTATION),
    ("t(9;22)", T.OTHER),
    ("iron (III) oxide", T.CHEMICAL),
    ("1,25-dihydroxyvitamin D", T.CHEMICAL),
    ("Na+/K+-ATPase", T.ENZYME),
    ("5'-nucleotidase", T.ENZYME),
    ("Sjögren's syndrome", T.DISEASE_OR_SYNDROME),
    ("E. coli", T.ORGANISM),
    ("U.S.", T.LOCATION),
    ("-5", T.NUMBER),
    ("The Lancet", T.PRESS_OR_PUBLISHER),
    ("Chromosome 7", T.CHROMOSOME),
    ("A", T.OTHER),
]


@pytest.mark.parametrize(("reply", "answer_type", "expected"), SHORTENED + [(a, t, a) for a, t in UNTOUCHED])
def test_shorten(reply, answer_type, expected):
    assert shorten(reply, answer_type) == expected


@pytest.mark.parametrize("answer_type", list(T))
@pytest.mark.parametrize("answer", ["1.5 hours", "HLA-B*57:01", "t(9;22)"])
def test_no_type_loses_inner_punctuation(answer, answer_type):
    assert shorten(answer + ".", answer_type) == answer


_PIECES = st.sampled_from(
    [
        "The answer is",
        "Answer:",
        "It is",
        "FBN1",
        "gene",
        "(",
        ")",
        "15q21.1",
        "chromosome",
        "1.5",
        "hours",
        "yes",
        "which",
        "the",
        "A",
        "**",
        '"',
        ".",
        "-",
        "U.S.",
        "because",
        "\n",
        "% of",
        "t(9;22)",
        ",",
    ]
)


@settings(max_examples=200, deadline=None)
@given(
    reply=st.one_of(st.lists(_PIECES, max_size=8).map(" ".join), st.text(max_size=40)),
    answer_type=st.sampled_from(list(T)),
)
def test_shortening_twice_gives_the_same(reply, answer_type):
    once = shorten(reply, answer_type)
    assert shorten(once, answer_type) == once
