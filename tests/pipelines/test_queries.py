"""Query strings by strategy, type and what is known."""

import pytest

from medhop_dspy.answers import AnswerType, Strategy
from medhop_dspy.pipelines.queries import draft_queries, hop_queries, locked_entities, resolve_references
from medhop_dspy.trace import Hop

HOPS = [Hop("Which gene?", "gene", "FBN1", locked=True), Hop("Is it?", "yes_no", "Yes"), Hop("Where?", "other")]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("On which chromosome is #1?", "On which chromosome is FBN1?"),
        ("Is #2 or #1 right?", "Is Yes or FBN1 right?"),
        ("What is #3?", "What is #3?"),
        ("What is #4, #0 or #10?", "What is #4, #0 or #10?"),
        ("No reference", "No reference"),
    ],
)
def test_references_become_answers(question, expected):
    assert resolve_references(question, HOPS) == expected


def test_an_answer_with_a_reference_or_group_in_it_is_plain_text():
    assert resolve_references("What is #1?", [Hop("q", "other", r"\1 #2", locked=True)]) == r"What is \1 #2?"


def test_only_locked_answers_steer():
    assert locked_entities(HOPS) == ["FBN1"]


@pytest.mark.parametrize(
    ("locked", "expected"),
    [
        ([], ["Where is it?"]),
        (["A", "B1"], ["Where is it?", "Where is it? B1"]),
        (["where is"], ["Where is it?"]),
    ],
)
def test_a_hop_is_searched_with_the_latest_entity(locked, expected):
    assert hop_queries("Where is it?", locked) == expected


@pytest.mark.parametrize(
    ("strategy", "kind", "known", "expected"),
    [
        (Strategy.DIRECT, AnswerType.GENE, {}, ["Q"]),
        (Strategy.DEFINITION, AnswerType.OTHER, {"repair_query": "r"}, ["Q", "r"]),
        (Strategy.DIRECT, AnswerType.GENE, {"constraints": ["c"], "locked": ["e"]}, ["Q"]),
        (
            Strategy.INTERSECTION,
            AnswerType.GENE,
            {"constraints": ["c", "d"], "repair_query": "r"},
            ["Q", "c", "d", "r"],
        ),
        (Strategy.MULTIHOP, AnswerType.DISEASE_OR_SYNDROME, {}, ["Q", "Q disease or syndrome"]),
        (
            Strategy.MULTIHOP,
            AnswerType.CHROMOSOME,
            {"locked": ["a", "b", "c"], "repair_query": "r"},
            ["Q", "b c chromosome", "Q chromosome", "r"],
        ),
        (
            Strategy.DIRECT,
            AnswerType.PROCEDURE,
            {"entity": "gout"},
            ["Q", "gout diagnostic test", "gout confirmed by"],
        ),
        (
            Strategy.DIRECT,
            AnswerType.MEDICAL_SPECIALIST,
            {"entity": "gout"},
            ["Q", "gout diagnosis", "gout management", "gout treatment", "gout specialist"],
        ),
        (Strategy.DIRECT, AnswerType.GENE, {"entity": "gout"}, ["Q"]),
    ],
)
def test_draft_queries(strategy, kind, known, expected):
    assert draft_queries("Q", strategy, kind, **known) == expected
