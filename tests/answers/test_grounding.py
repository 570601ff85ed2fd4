"""Whether an answer occurs in the evidence."""

from __future__ import annotations

import pytest

from medhop_dspy.answers import AnswerType, Quote, grounded, occurs, shared_words, supporting_quote

T = AnswerType
FIRST = "Marfan syndrome is rare (e.g. in Iceland)."
GENE = "It is caused by FBN1, and the receptor gene IL2RA lies at 10p15.1, near chr6p21.3."
COUNT = "Twenty percent of patients, 1,300 people, live 5 to 10 years; 2.5 mg suffice."
DOCTOR = "See a pediatric cardiologist."
NAMES = "TNF\u2011α and Sjögren’s syndrome occur with E. coli and a non\u2010small cell carcinoma."
EVIDENCE = [f"{FIRST} {GENE}", f"{COUNT}\n\n{NAMES} {DOCTOR}"]


@pytest.mark.parametrize(
    ("answer", "answer_type", "expected"),
    [
        ("marfan syndrome", T.DISEASE_OR_SYNDROME, Quote(0, FIRST)),
        ("the Marfan syndrome", None, Quote(0, FIRST)),
        ("FBN1", T.GENE, Quote(0, GENE)),
        ("the FBN1 gene", T.GENE, Quote(0, GENE)),
        ("IL-2RA", T.GENE, Quote(0, GENE)),
        ("IL2", T.GENE, None),
        ("IL2R", T.GENE, None),
        ("FBN", T.GENE, None),
        ("FBN12", T.GENE, None),
        ("10", T.CHROMOSOME, Quote(0, GENE)),
        ("Chromosome 6", T.CHROMOSOME, Quote(0, GENE)),
        ("Chromosome 1", T.CHROMOSOME, None),
        ("5", T.CHROMOSOME, None),
        ("10p15.1", T.LOCATION, Quote(0, GENE)),
        ("6p21.3", T.LOCATION, Quote(0, GENE)),
        ("10p15", T.LOCATION, None),
        ("Iceland", T.LOCATION, Quote(0, FIRST)),
        ("20%", T.NUMBER, Quote(1, COUNT)),
        ("1300", T.NUMBER, Quote(1, COUNT)),
        ("1,300", T.OTHER, Quote(1, COUNT)),
        ("130", T.NUMBER, None),
        ("5\u201310 years", T.DURATION, Quote(1, COUNT)),
        ("5 years", T.DURATION, None),
        ("2.5 mg", T.NUMBER, Quote(1, COUNT)),
        ("5 mg", T.NUMBER, None),
        ("TNF-alpha", T.PROTEIN, Quote(1, NAMES)),
        ("TNF-beta", T.PROTEIN, None),
        ("Sjogren's Syndrome", T.DISEASE_OR_SYNDROME, Quote(1, NAMES)),
        ("E. coli", T.ORGANISM, Quote(1, NAMES)),
        ("non-small cell", T.OTHER, Quote(1, NAMES)),
        ("Pediatric cardiology", T.FIELD_OF_BIOLOGY, Quote(1, DOCTOR)),
        ("Cardiologist", T.MEDICAL_SPECIALIST, Quote(1, DOCTOR)),
        ("Neurology", T.FIELD_OF_BIOLOGY, None),
        ("Yes", T.YES_NO, None),
        ("", T.GENE, None),
        ("...", None, None),
    ],
)
def test_grounded(answer, answer_type, expected):
    assert grounded(answer, EVIDENCE, answer_type) == expected


def test_a_name_that_the_splitter_cuts_is_quoted_with_its_passage():
    passage = "The virus of St. Louis. The encephalitis was named there."
    assert grounded("Louis the encephalitis", [passage]) == Quote(0, passage)


def test_no_evidence():
    assert grounded("FBN1", []) is None


@pytest.mark.parametrize(
    ("answer", "text", "expected"),
    [("1", "15", False), ("1", "1-5", True), ("15", "1-5", False), ("il 2", "IL-2 is", True), ("IL2", "IL-2RA", False)],
)
def test_occurs_on_token_boundaries(answer, text, expected):
    assert occurs(answer, text) is expected


WATERY = "What is the term for the watery fluid between the cornea and the lens?"


def test_the_supporting_quote_is_the_sentence_that_speaks_of_the_question():
    passages = [
        "Aqueous humour: ure the iris blocks the way, with pain. Timolol reduces it.",
        "The aqueous humour is the watery fluid between the cornea and the lens. It fills the anterior chamber.",
        "Drainage of aqueous humour from the lens is slow.",
    ]
    assert supporting_quote("aqueous humour", WATERY, passages) == Quote(
        1, "The aqueous humour is the watery fluid between the cornea and the lens."
    )
    assert grounded("aqueous humour", passages) == Quote(0, "Aqueous humour: ure the iris blocks the way, with pain.")
    assert supporting_quote("vitreous body", WATERY, passages) is None


def test_words_of_the_answer_and_of_asking_connect_nothing():
    assert shared_words("Aqueous humour is a fluid.", WATERY, "aqueous humour") == {"fluid"}
    assert shared_words("What is this type used with?", "Which type is this used with?", "x") == set()
