"""The rules that a repair query has to keep."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medhop_dspy.answers import AnswerType, enforce_repair_query
from medhop_dspy.errors import InputError

T = AnswerType


@pytest.mark.parametrize(
    ("query", "answer_type", "entity", "expected"),
    [
        ("location of the gene", T.CHROMOSOME, "", "location of the gene chromosome"),
        ("Chromosome of the gene", T.CHROMOSOME, "", "Chromosome of the gene"),
        ("textbook of 1953", T.PRESS_OR_PUBLISHER, "", "textbook of 1953 published organization"),
        ("press release", T.PRESS_OR_PUBLISHER, "", "press release organization"),
        ("pressure", T.PRESS_OR_PUBLISHER, "", "pressure published organization"),
        ("vitiligo", T.MEDICAL_SPECIALIST, "", "vitiligo specialist treatment"),
        ("vitiligo doctor", T.MEDICAL_SPECIALIST, "", "vitiligo doctor specialist"),
        ("vitiligo management by physician", T.MEDICAL_SPECIALIST, "", "vitiligo management by physician"),
        ("myositis imaging", T.PROCEDURE, "", "myositis imaging diagnostic"),
        ("location", T.GENE, "FBN1", "FBN1 location"),
        ("FBN1 location", T.GENE, "FBN1", "FBN1 location"),
        ("fbn1 location", T.GENE, "FBN1", "FBN1 fbn1 location"),
        ("IL2RA function", T.GENE, "IL2", "IL2 IL2RA function"),
        ("causes besides smoking", T.OTHER, "", "causes smoking"),
        ("drugs Other  Than insulin instead of diet", T.OTHER, "", "drugs insulin diet"),
        ("other besides than x", T.OTHER, "", "x"),
        (
            "course of pain other than headache",
            T.OTHER,
            "pain other than headache",
            "course of pain other than headache",
        ),
        ("a\n b\u200b ", T.OTHER, "", "a b"),
        ("", T.CHROMOSOME, "FBN1", "FBN1 chromosome"),
    ],
)
def test_enforce_repair_query(query, answer_type, entity, expected):
    assert enforce_repair_query(query, answer_type, entity) == expected


@pytest.mark.parametrize("query", ["", "  ", "besides"])
def test_nothing_to_search_for_is_an_error(query):
    with pytest.raises(InputError, match="query is empty, and no entity is locked"):
        enforce_repair_query(query, T.CHROMOSOME, "")


def test_a_long_query_keeps_entity_and_type_words():
    query = enforce_repair_query("word " * 5000, T.PROCEDURE, "Marfan syndrome", max_chars=60)
    assert len(query) <= 60
    assert query.startswith("Marfan syndrome word") and query.endswith("word diagnostic procedure")


_WORDS = "besides other than instead of other chromosome FBN1 IL2 IL2RA press published test diagnosis ( ) α"
_PIECES = st.sampled_from(_WORDS.split(" "))


@settings(max_examples=200, deadline=None)
@given(
    query=st.lists(_PIECES, max_size=12).map(" ".join),
    answer_type=st.sampled_from(list(T)),
    entity=st.lists(_PIECES, min_size=1, max_size=4).map(" ".join),
    max_chars=st.integers(20, 80),
)
def test_enforcing_twice_gives_the_same(query, answer_type, entity, max_chars):
    once = enforce_repair_query(query, answer_type, entity, max_chars)
    assert entity in once
    assert enforce_repair_query(once, answer_type, entity, max_chars) == once
