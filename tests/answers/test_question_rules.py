"""What the wording of a question decides."""

from __future__ import annotations

import csv
from collections import Counter

import pytest

from medhop_dspy.answers import (
    AnswerType,
    RouteOverride,
    Strategy,
    check_self_reference,
    route_overrides,
    type_from_question,
)

T = AnswerType

OVERRIDES = [
    ("Is FBN1 on chromosome 15?", None, T.YES_NO),
    ("Doesn't it cause deafness?", None, T.YES_NO),
    ("And can colchicine be used?", None, T.YES_NO),
    ("Is the half-life of X longer than a day?", None, T.YES_NO),
    ("In women, can hyperprolactinemia cause hot flashes?", None, T.YES_NO),
    ("Although it resembles chickenpox, is it caused by the same virus, which is common?", None, T.YES_NO),
    ("CSA and CSB have two genes. Are they on the same chromosome?", None, T.YES_NO),
    ("Cystic hygroma is a vascular malformation. True or False", None, T.YES_NO),
    ("Are cancer or trauma known causes?", None, T.YES_NO),
    ("Does it cause proportionate dwarfism or disproportionate dwarfism?", None, T.OTHER),
    ("Is inheritance dominant or recessive?", None, T.OTHER),
    ("Is hearing loss typically temporary or permanent?", None, T.OTHER),
    ("Is it classified as a structural disorder or a functional disorder?", None, T.OTHER),
    ("How do reactive oxygen species contribute to rhabdomyolysis?", Strategy.MULTIHOP, T.OTHER),
    ("How can smoking affect it?", Strategy.MULTIHOP, T.OTHER),
    ("How does the drug cause harm?", Strategy.MULTIHOP, T.OTHER),
    ("How is it inherited?", None, T.OTHER),
    ("Which medical specialty treats Eisenmenger syndrome?", Strategy.DEFINITION, T.FIELD_OF_BIOLOGY),
    ("What is the half\u2011life of the drug?", Strategy.MULTIHOP, T.DURATION),
    ("What is the medical term for night sweats?", Strategy.DEFINITION, None),
    ("Which gene causes Marfan syndrome?", None, None),
    ("", None, None),
]


@pytest.mark.parametrize(("question", "strategy", "answer_type"), OVERRIDES)
def test_route_overrides(question, strategy, answer_type):
    assert route_overrides(question) == RouteOverride(strategy, answer_type)


TYPES = [
    ("Which gene on chromosome 7 causes cystic fibrosis?", T.GENE),
    ("On which chromosome is the gene that encodes the enzyme located?", T.CHROMOSOME),
    ("On which human chromosome is it?", T.CHROMOSOME),
    ("The gene mutated in Hay-Wells syndrome is located on which chromosome?", T.CHROMOSOME),
    ("Angiolipomas happen randomly. A study named a gene. On which chromosome is this gene located?", T.CHROMOSOME),
    ("What is the chromosome that spans about 159 million base pairs?", T.CHROMOSOME),
    ("Mutation of what gene is identified in the most common kidney neoplasm?", T.GENE),
    ("This condition is caused by mutations in which gene?", T.GENE),
    ("Which tumor suppressor gene, frequently mutated, spans 20 kb?", T.GENE),
    ("Which gene mutation is associated with both?", T.GENE_MUTATION),
    ("Which recessive mutation in a gene that catalyzes it causes the syndrome?", T.GENE_MUTATION),
    ("What is the name of the enzyme whose deficiency causes Hurler syndrome?", T.ENZYME),
    ("Which kinase, when activated by phorbol esters, leads to a lipoma?", T.ENZYME),
    ("Which protein is encoded by the gene that is mutated in it?", T.PROTEIN),
    ("Which rare and aggressive T-cell cancer typically presents with enlarged nodes?", T.DISEASE_OR_SYNDROME),
    ("What is this condition called?", T.DISEASE_OR_SYNDROME),
    ("What type of leukemia is associated with the gene?", T.DISEASE_OR_SYNDROME),
    ("Given the symptoms, which mental disorder is most commonly associated with them?", T.DISEASE_OR_SYNDROME),
    ("Which symptom, characterized by elevated bilirubin, is meant?", T.SYMPTOM),
    ("What commonly prescribed glucocorticoid medication causes it?", T.MEDICATION),
    ("Which class of drugs reduces the symptoms?", T.MEDICATION),
    ("Which chimeric monoclonal antibody, used to treat colitis, binds TNF-α?", T.MEDICATION),
    ("What procedure is performed in newborns?", T.PROCEDURE),
    ("Which genus of mosquito transmits the virus?", T.ORGANISM),
    ("Which family of viruses includes the agent?", T.ORGANISM),
    ("What body fluid transmits it?", T.FLUID_TYPE),
    ("In which phase of mitosis do the chromosomes line up?", T.PHASE),
    ("How many amino acids are in the enzyme?", T.NUMBER),
    ("In which year was the hormone first isolated?", T.NUMBER),
    ("What percentage of leukemias does the type represent?", T.NUMBER),
    ("Where is the gene located?", T.LOCATION),
    ("Which region of chromosome 5 contains the gene?", T.LOCATION),
    ("Which medical specialist treats Walker\u2013Warburg syndrome?", T.MEDICAL_SPECIALIST),
    ("Which physician would treat a patient with it?", T.MEDICAL_SPECIALIST),
    ("Which neurologist described ankylosing spondylitis in 1880?", T.PERSON),
    ("Who was the geneticist that first discovered ring chromosomes?", T.PERSON),
    ("Which publisher printed the textbook?", T.PRESS_OR_PUBLISHER),
    ("In a syndrome, which long bones in the hands exhibit abnormal shapes?", T.BONE),
    ("Which vitamin is essential for the synthesis of collagen?", T.CHEMICAL),
    ("How long does the disease last?", T.DURATION),
    ("What is the inheritance pattern of the deficiency?", T.OTHER),
]
UNDECIDED = [
    "Which gene family does the gene belong to?",
    "The enzyme belongs to which enzyme family?",
    "Which form of endocytosis is impaired?",
    "What is the name of the commercialized variant of the enzyme?",
    "Which blood-filtering organ is affected?",
    "Which diagram best represents the route of transmission?",
    "Which virus subtype caused the pandemic?",
    "What does the heart increase to compensate?",
    "What is FBN1?",
    "Which vitamin deficiency causes scurvy?",
    "what ,",
    "",
]


@pytest.mark.parametrize(("question", "expected"), TYPES)
def test_type_from_question(question, expected):
    assert type_from_question(question) is expected


@pytest.mark.parametrize("question", UNDECIDED)
def test_unsure_questions_are_left_to_the_router(question):
    assert type_from_question(question) is None


def test_most_real_questions_are_decided(shared):
    with (shared / "medhopqa" / "questions_1000.csv").open(encoding="utf-8-sig", newline="") as file:
        questions = [row["Question"] for row in csv.DictReader(file)]
    counts = Counter(type_from_question(q) for q in questions)
    assert counts[None] < 0.22 * len(questions)
    # Every question that says 'On which chromosome' asks for one.
    asking = [q for q in questions if "on which chromosome" in q.casefold()]
    assert len(asking) > 40 and {type_from_question(q) for q in asking} == {T.CHROMOSOME}


QUESTION = "Which gene on chromosome 15 causes Marfan syndrome?"


@pytest.mark.parametrize(
    ("answer", "question", "expected"),
    [
        ("Marfan syndrome", QUESTION, True),
        ("the marfan\u2010syndrome", QUESTION, True),
        ("FBN1", QUESTION, False),
        ("Marfan", QUESTION, None),
        ("trimethadione", "Which drug is associated with fetal trimethadione syndrome?", None),
        ("joint pain", "What symptom can be described as joint pain?", True),
        ("Chromosome 15", QUESTION, None),
        ("15", QUESTION, None),
        ("Marfan syndrome type 2", QUESTION, None),
        ("neonatal progeroid syndrome of Petty", QUESTION, False),
        ("Yes", QUESTION, False),
        ("", QUESTION, False),
        ("Klinefelter syndrome", "Which is more severe: Klinefelter syndrome or XXXY syndrome?", None),
        ("glaucoma", "Which of glaucoma and cataract is more common?", None),
        ("smoking", "Is smoking a cause?", False),
    ],
)
def test_check_self_reference(answer, question, expected):
    assert check_self_reference(answer, question) is expected
