"""Candidates: which phrases of the evidence could be an answer."""

from __future__ import annotations

import json
import time
from functools import cache

import pytest

from medhop_dspy.answers import ANSWER_TYPES, AnswerType, candidates, canonical
from medhop_dspy.answers.quantities import find_quantities
from tests.conftest import ROOT

T = AnswerType
WHAT = "What is it?"


def found(text: str, kind: AnswerType, question: str = WHAT, refused: tuple[str, ...] = ()) -> list[str]:
    return candidates([text], question, kind, refused)


BY_FORM = [
    (T.CHROMOSOME, "It lies on chromosome 15, not at Xp21.2 or on chromosome 99.", ["Chromosome 15", "Chromosome X"]),
    (T.CHROMOSOME, "The mitochondrial DNA and the Y chromosome.", ["Chromosome MT", "Chromosome Y"]),
    (T.NUMBER, "It has 65 exons in 230 kb and affects 1,300 people.", ["65", "230 kb", "1300"]),
    (T.NUMBER, "Twenty-one percent of CFTR and IL-2.", ["21%"]),
    (T.DURATION, "A gene of 230 kb; its half-life is 36 hours, up to two days.", ["36 hours", "up to 2 days"]),
    (T.GENE, "FBN1, C9orf72 (not Dystrophin) and HLA-B matter.", ["FBN1", "C9orf72", "HLA-B"]),
    (T.ENZYME, "It is a hydrolase, not fibrillin.", ["hydrolase"]),
    (T.BONE, "The heart; the femur.", ["femur"]),
    (T.FLUID_TYPE, "The heart; the saliva.", ["saliva"]),
    (T.PHASE, "The heart; the anaphase.", ["heart", "anaphase"]),
    (T.PROCEDURE, "The heart; the biopsy.", ["heart", "biopsy"]),
    (T.MEDICAL_SPECIALIST, "The heart; the cardiologist.", ["cardiologist"]),
    (T.FIELD_OF_BIOLOGY, "The heart; the cardiology.", ["cardiology"]),
    (T.PRESS_OR_PUBLISHER, "The heart; the Lancet.", ["heart", "Lancet"]),
    (T.PROTEIN, "503 amino acids are in fibrillin.", ["fibrillin"]),
    (T.GENE_MUTATION, "It is p.Phe508del.", ["p.Phe508del"]),
    (T.DISEASE_OR_SYNDROME, "It is called Kawasaki disease.", ["Kawasaki", "Kawasaki disease"]),
    (T.SYMPTOM, "It is known by headache.", ["headache"]),
    (T.MEDICATION, "It is losartan.", ["losartan"]),
    (T.ORGANISM, "The sandfly is the host.", ["sandfly", "host"]),
    (T.LOCATION, "It was found in Norway.", ["Norway"]),
    (T.CHEMICAL, "It is zinc.", ["zinc"]),
    (T.OTHER, "The colour is orange.", ["colour", "orange"]),
]


@pytest.mark.parametrize(("kind", "text", "phrases"), BY_FORM)
def test_what_has_the_form_of_the_type(kind, text, phrases):
    assert found(text, kind) == phrases


def test_every_type_but_yes_and_no_has_a_form():
    assert {kind for kind, _, _ in BY_FORM} == set(T) - {T.YES_NO, T.PERSON}
    assert found("Yes, the gene is FBN1.", T.YES_NO) == []


def test_a_person_begins_behind_a_word_in_small_letters():
    names = found("It was described by the chemist Walter Schindler in 1902.", T.PERSON)
    assert "Walter Schindler" in names and "Schindler" not in names
    assert found("It was described in 1902 by a chemist.", T.PERSON) == []


@pytest.mark.parametrize(
    ("text", "inside", "across"),
    [
        ("It is gout, scurvy or rickets", ["gout", "scurvy"], "gout scurvy"),
        ("It is gout: a swelling; redness", ["gout", "swelling", "redness"], "gout a swelling"),
        ("It is gout (podagra) at night", ["gout", "podagra"], "gout podagra"),
        ("It is gout [podagra].", ["gout", "podagra"], "gout podagra"),
        ('It is gout "podagra" again', ["gout", "podagra", "again"], "gout podagra"),
        ("It is gout \u201cpodagra\u201d again", ["gout", "podagra", "again"], "gout podagra"),
        ("It is gout \u2014 podagra", ["gout", "podagra"], "gout podagra"),
        ("It is gout. Podagra hurts", ["gout", "Podagra hurts"], "gout. Podagra"),
        ("It is gout which hurts", ["gout", "hurts"], "gout which hurts"),
        ("It is gout that causes pain", ["gout", "pain"], "gout that causes pain"),
        ("It is gout inherited rarely", ["gout"], "gout inherited"),
    ],
)
def test_no_phrase_goes_across_what_ends_a_name(text, inside, across):
    phrases = found(f"{text}.", T.OTHER)
    assert set(inside) <= set(phrases)
    assert across not in {" ".join(phrase.split()) for phrase in phrases}


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("It is 1,2-dioxygenase.", "1,2-dioxygenase"),
        ("It is a non-Hodgkin lymphoma.", "non-Hodgkin lymphoma"),
        ("It grows E. coli.", "E. coli"),
        ("It is called Wiskott\u2013Aldrich syndrome.", "Wiskott\u2013Aldrich syndrome"),
        ("It is the tetralogy of Fallot.", "tetralogy of Fallot"),
        ("It binds NAD(P)H.", "NAD(P)H"),
    ],
)
def test_marks_and_small_words_inside_a_name_stay(text, whole):
    assert whole in found(text, T.OTHER)


@pytest.mark.parametrize(
    "name", ["arachnodactyly", "hydrocephaly", "acromegaly", "sandfly", "vitamin A", "hepatitis A"]
)
def test_names_that_look_like_adverbs_or_articles(name):
    assert name in found(f"It is {name} of the young.", T.OTHER)


@pytest.mark.parametrize("text", ["It is gout mostly.", "It is gout chiefly.", "It is gout treated."])
def test_no_phrase_ends_with_an_adverb_or_a_participle(text):
    assert found(text, T.OTHER) == ["gout"]


def test_a_phrase_has_at_most_six_words():
    text = "one-word two-word three-word four-word five-word six-word"
    assert found(f"{text}.", T.OTHER) == [text]
    assert found(f"{text} seven-word.", T.OTHER) == []


def test_the_word_in_which_a_chunk_ends_is_no_part_of_a_phrase():
    assert found("It is caused by the bacterium Vibrio vulnific", T.ORGANISM) == ["bacterium Vibrio", "Vibrio"]
    assert found("It lies on chromosome 15 or on chromosome 1", T.CHROMOSOME) == ["Chromosome 15"]


def test_words_of_the_question_bound_a_phrase_and_make_none():
    assert found("Marfan syndrome is severe.", T.OTHER, "What is Marfan syndrome?") == ["severe"]
    assert "weakens aorta" in found("It weakens aorta walls.", T.OTHER, "What are walls?")
    assert found("It weakens aorta walls.", T.OTHER) == ["weakens aorta walls"]
    assert found("The FBN1 gene and FBN2.", T.GENE, "Which gene is like FBN1?") == ["FBN2"]


@pytest.mark.parametrize("question", ["Is it Marfan syndrome or gout?", "Which of Marfan syndrome and gout is rarer?"])
def test_a_question_that_offers_a_choice_may_be_answered_in_its_words(question):
    assert {"Marfan syndrome", "gout"} <= set(found("Marfan syndrome is rarer than gout.", T.OTHER, question))


@pytest.mark.parametrize("refused", ["TNF-\u03b1", "tnf alpha", "TNF alpha"])
def test_refused_names_are_left_out_in_any_spelling(refused):
    assert found("It binds TNF-\u03b1, and albumin.", T.PROTEIN) == ["TNF-\u03b1", "albumin"]
    assert found("It binds TNF-\u03b1, and albumin.", T.PROTEIN, refused=(refused,)) == ["albumin"]


def test_category_words_and_placeholders_are_no_answers():
    assert found("The gene is unknown. It is a syndrome or a disorder, n/a.", T.OTHER) == []


@pytest.mark.parametrize("passages", [[], [""], [" \n ", "..."], ["\u200b", "()[]\u201c\u201d"]])
@pytest.mark.parametrize("kind", T)
def test_nothing_comes_of_nothing(passages, kind):
    assert candidates(passages, WHAT, kind) == []


def test_phrases_stand_in_the_order_of_the_text_each_once():
    assert candidates(["It is scurvy.", "It is gout. It is scurvy."], WHAT, T.OTHER) == ["scurvy", "gout"]


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("It is M\u00e9ni\u00e8re\u2019s disease.", "M\u00e9ni\u00e8re\u2019s disease"),
        ("It is \u03b2-thalassaemia.", "\u03b2-thalassaemia"),
        ("It is \u907a\u4f1d\u5b50.", "\u907a\u4f1d\u5b50"),
        ("It is Sjo\u0308gren\u00a0syndrome.", "Sjo\u0308gren syndrome"),
    ],
)
def test_any_script_is_read(text, phrase):
    assert phrase in found(text, T.DISEASE_OR_SYNDROME)


@pytest.mark.parametrize("piece", ["word ", "Aa b ", "of the ", "a, ", "(", "\u201c", "A. ", "1 2 ", "9", "\u00e9d "])
@pytest.mark.parametrize("kind", [T.OTHER, T.NUMBER, T.CHROMOSOME, T.GENE, T.PERSON])
def test_the_time_grows_with_the_text_and_no_faster(piece, kind):
    """A passage is 512 characters by default; forty times as many take less than a second on an idle machine."""
    start = time.process_time()
    candidates([piece * (20_000 // len(piece))], WHAT, kind)
    assert time.process_time() - start < 5


@cache
def corpus() -> list[str]:
    with (ROOT / "data" / "corpus" / "genetics.jsonl").open(encoding="utf-8") as lines:
        documents = [json.loads(line) for line, _ in zip(lines, range(50), strict=False)]
    assert len(documents) == 50
    return [f"{each['title']}: {each['text']}" for each in documents]


@pytest.mark.parametrize("kind", [T.CHROMOSOME, T.NUMBER, T.DURATION, T.GENE, T.ENZYME, T.PERSON, T.OTHER])
def test_every_candidate_stands_in_the_passages_and_has_the_form(kind):
    check = ANSWER_TYPES[kind].check
    for text in corpus():
        if kind is T.CHROMOSOME:
            standing = {f"Chromosome {name}" for name in canonical.chromosomes_in(text)}
        elif kind in {T.NUMBER, T.DURATION}:
            standing = {quantity.text for quantity in find_quantities(text)}
        else:
            standing = " ".join(text.split())
        for phrase in found(text, kind):
            assert phrase in standing
            assert check(phrase) is not False
            assert len(phrase.split()) <= 6
