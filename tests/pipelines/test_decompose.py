"""Hops by rules."""

import pytest

from medhop_dspy.pipelines.decompose import decompose

CASES = {
    "On which chromosome is the gene mutated in Marfan syndrome located?": (
        ["What is the gene mutated in Marfan syndrome?"],
        "On which chromosome is #1 located?",
    ),
    "On which chromosome is the gene that is mutated in Wilson disease located?": (
        ["What is the gene that is mutated in Wilson disease?"],
        "On which chromosome is #1 located?",
    ),
    "Which cofactor is required by the enzyme that is deficient in phenylketonuria?": (
        ["What is the enzyme that is deficient in phenylketonuria?"],
        "Which cofactor is required by #1?",
    ),
    "How many amino acids make up the protein encoded by the gene responsible for the syndrome treated with X?": (
        [
            "What is the syndrome treated with X?",
            "What is the gene responsible for #1?",
            "What is the protein encoded by #2?",
        ],
        "How many amino acids make up #3?",
    ),
    "Which recombinant form of the enzyme deficient in Gaucher disease is produced in carrot cells?": (
        ["What is the enzyme deficient in Gaucher disease?"],
        "Which recombinant form of #1 is produced in carrot cells?",
    ),
    "Does the gene mutated in cystic fibrosis encode a transporter?": (
        ["What is the gene mutated in cystic fibrosis?"],
        "Does #1 encode a transporter?",
    ),
    "Are the genes mutated in Huntington disease and Hurler syndrome located on the same chromosome?": (
        ["What is the gene mutated in Huntington disease?", "What is the gene mutated in Hurler syndrome?"],
        "Are #1 and #2 located on the same chromosome?",
    ),
    "How many repeats does the protein have whose gene is mutated in Becker muscular dystrophy?": (
        ["What is the protein whose gene is mutated in Becker muscular dystrophy?"],
        "How many repeats does #1 have?",
    ),
    "Which protein forms the inclusions in the disease for which George Cotzias established oral treatment?": (
        ["What is the disease for which George Cotzias established oral treatment?"],
        "Which protein forms the inclusions in #1?",
    ),
    "On which chromosome is the gene whose mutations cause retinoschisis located?": (
        ["What is the gene whose mutations cause retinoschisis?"],
        "On which chromosome is #1 located?",
    ),
    "Which organ does the drug inhibit that is used for gout?": (
        ["What is the drug that is used for gout?"],
        "Which organ does #1 inhibit?",
    ),
    "Can the procedure that collects the fluid altered in Guillain–Barré syndrome be fatal?": (
        ["What is the fluid altered in Guillain–Barré syndrome?", "What is the procedure that collects #1?"],
        "Can #2 be fatal?",
    ),
    "On which chromosome is the gene found that is altered in the disorder with hexagonal crystals in the urine?": (
        ["What is the disorder with hexagonal crystals in the urine?", "What is the gene that is altered in #1?"],
        "On which chromosome is #2 found?",
    ),
    "On which chromosome is the gene located that underlies fundus flavimaculatus, a macular dystrophy with flecks?": (
        ["What is the gene that underlies fundus flavimaculatus, a macular dystrophy with flecks?"],
        "On which chromosome is #1 located?",
    ),
    "To which plant family does the species belong whose seeds set off attacks of favism?": (
        ["What is the species whose seeds set off attacks of favism?"],
        "To which plant family does #1 belong?",
    ),
    "Which enzyme converts the drug for the disease in which hypomimia is seen into its active product?": (
        ["What is the disease in which hypomimia is seen?", "What is the drug for #1?"],
        "Which enzyme converts #2 into its active product?",
    ),
    "Is the drug that is an inhibitor of xanthine oxidase a purine analogue?": (
        ["What is the drug that is an inhibitor of xanthine oxidase?"],
        "Is #1 a purine analogue?",
    ),
    "Which enzyme does the drug inhibit that is used to treat gout?": (
        ["What is the drug that is used to treat gout?"],
        "Which enzyme does #1 inhibit?",
    ),
    "Is the protein whose gene is mutated in Becker muscular dystrophy an enzyme?": (
        ["What is the protein whose gene is mutated in Becker muscular dystrophy?"],
        "Is #1 an enzyme?",
    ),
    "Which firm brought out the textbook whose illustrator wrote on mycetoma?": (
        ["What is the textbook whose illustrator wrote on mycetoma?"],
        "Which firm brought out #1?",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("question", "expected"), CASES.items(), ids=list(CASES))
def test_descriptions_become_hops_innermost_first(question, expected):
    planned = decompose(question, 3)
    assert ([h.question for h in planned.hops], planned.question) == expected


@pytest.mark.parametrize(
    "question",
    [
        "Which gene is mutated in Marfan syndrome?",
        "What is the enzyme that is deficient in phenylketonuria?",
        "What is the name of the gene responsible for Pyle disease?",
        "Which bone is defined as the largest sesamoid bone of the human body?",
        "Which drug is the antibiotic used for cholera?",
        "Are both of the genes that are mutated in these disorders autosomal?",
        "Is metformin safe in kidney disease?",
        "Which condition has lipomas across the body that are painful?",
        "What is the name of the severe form of epilepsy that occurs within three months?",
        "What is the technique that assumes the function of the heart?",
        "Who was the geneticist that first discovered ring chromosomes?",
        "Which drug treats the storage disease known as Fanconi–Bickel syndrome?",
        "At which university did the winner who discovered the virus earn his degree?",
        "What is a gene with a conserved domain?",
        "What is the #1 complication of the disease caused by mutations in FBN1?",
        "",
        "?",
    ],
)
def test_a_question_that_describes_only_its_answer_is_left_alone(question):
    planned = decompose(question, 3)
    assert planned.hops == ()
    assert planned.question == question


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_the_innermost_hops_fit_the_limit(limit):
    question = "How many acids make up the protein encoded by the gene responsible for the syndrome treated with X?"
    planned = decompose(question, limit)
    assert len(planned.hops) == limit
    assert planned.question.count("#") == min(limit, 1)


def test_real_questions_are_read_without_a_fault(shared):
    import csv

    with (shared / "medhopqa" / "questions_1000.csv").open(encoding="utf-8-sig", newline="") as file:
        questions = [row["Question"] for row in csv.DictReader(file)]
    planned = [decompose(q, 3) for q in questions]
    assert 150 <= sum(bool(p.hops) for p in planned) <= 300
    asked = [h.question for p in planned for h in p.hops]
    assert all(len(each) <= 160 for each in asked)
    assert not [
        each for each in asked if each.rstrip("?").endswith((" to", " is", " are", " that", " of", " by", " the"))
    ]


def test_long_repetitive_text_ends_quickly():
    decompose("the gene that the drug for the disease with " * 45, 3)
