"""What a planner's reply may contain."""

import pytest

from medhop_dspy.pipelines.plan import copied_phrases, sanitised_hops
from medhop_dspy.signatures import HopType, PlannedHop

QUESTION = "On which chromosome is the gene that is mutated in Marfan syndrome located?"
FIRST = "Which gene is mutated in Marfan syndrome?"
SECOND = "On which chromosome is #1 located?"


def kept(*questions, question=QUESTION):
    return [
        h.question for h in sanitised_hops([PlannedHop(question=q, type=HopType.OTHER) for q in questions], question)
    ]


@pytest.mark.parametrize(
    ("hops", "expected"),
    [
        ([FIRST, SECOND], [FIRST, SECOND]),
        ([FIRST, FIRST, SECOND], [FIRST, SECOND]),
        ([FIRST, FIRST.upper(), SECOND], [FIRST, SECOND]),
        ([QUESTION], []),
        (["On which chromosome is the gene mutated in Marfan syndrome located?"], []),
        (["FBN1"], []),
        (["Which gene?"], []),
        (["The gene that is mutated in Marfan syndrome"], []),
        (["", "   "], []),
        (["哪个基因导致马凡综合征 在 染色体 上"], []),
        (["Which gene\nis mutated in Marfan syndrome?"], []),
        ([], []),
    ],
    ids=["good", "repeat", "case", "same", "rephrased", "one-word", "short", "no-question", "blank", "not-english",
         "two-lines", "none"],
)  # fmt: skip
def test_only_questions_of_their_own_stay(hops, expected):
    assert kept(*hops) == expected


@pytest.mark.parametrize(
    ("phrases", "expected"),
    [
        (["lowers blood glucose", "first-line therapy"], ("lowers blood glucose", "first-line therapy")),
        (["Lowers Blood Glucose"], ("Lowers Blood Glucose",)),
        (["raises blood glucose"], ()),
        (["lowers blood gluc"], ()),
        (["lowers blood glucose", "lowers blood glucose"], ("lowers blood glucose",)),
        (["", " "], ()),
        (["which", "drug", "lowers", "blood"], ("which", "drug", "lowers")),
    ],
)
def test_phrases_are_copied_verbatim(phrases, expected):
    assert copied_phrases(phrases, "Which drug lowers blood glucose and is first-line therapy?") == expected
