"""Keys, kinds and numbered siblings of names."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medhop_dspy.graph.names import KINDS, key, kind, numbered_siblings, words


def test_unlike_names_stay_apart_in_any_script():
    names = ["TNF-α", "TNF-β", "Sjögren", "线粒体", "5-HT1A", "5-HT2A"]
    assert len({key(name) for name in names}) == 6
    assert all(key(name) for name in names)
    assert key("TNF-alpha") == key("TNF-α")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("IL-2", "IL2"),
        ("IL 2", "il-2"),
        ("Loeys–Dietz syndrome", "loeys-dietz  syndrome"),
        ("Sjögren", "Sjo\u0308gren"),
        ("Parkinson’s disease", "Parkinson disease"),
        ("the liver", "liver"),
        ("Gaucher disease type III", "Gaucher disease, type 3"),
        ("factor VIII", "Factor 8"),
        ("glycogen storage disease type IIIa", "glycogen storage disease type 3A"),
        ("vitamin B₆", "vitamin B6"),
        ("α-L-iduronidase", "Alpha-L-iduronidase"),
        ("ＦＢＮ１", "FBN1"),
    ],
)
def test_spellings_of_one_name_meet(one, other):
    assert key(one) == key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("IL-2", "IL-12"),
        ("15q21.1", "15q211"),
        ("1-2", "12"),
        ("CD4+", "CD4"),
        ("A antigen", "antigen"),
        ("ตับ", "ตบ"),
        ("हृदय", "हदय"),
        ("XIV", "14"),
    ],
)
def test_other_names_do_not_meet(one, other):
    assert key(one) != key(other)


@given(st.text(max_size=12))
def test_a_name_with_a_letter_or_digit_has_a_key(name):
    if any(c.isalnum() for c in name):
        assert key(name)


@given(st.text(max_size=20))
def test_words_are_spans_of_the_text_in_order(text):
    spans = [(word.start, word.end) for word in words(text)]
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert spans == sorted(spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


@pytest.mark.parametrize("name", ["", "  ", "—", "()", "%"])
def test_a_name_of_signs_has_no_key(name):
    assert key(name) == ""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("type 1 diabetes", "type 2 diabetes"),
        ("diabetes mellitus type 1", "type 2 diabetes"),
        ("FBN1", "FBN2"),
        ("TNF-alpha", "TNF-β"),
        ("HEXA", "HEXB"),
        ("ABCA4", "ABCB4"),
        ("haemophilia A", "hemophilia B"),
        ("hepatitis B", "hepatitis C"),
        ("chromosome X", "chromosome 10"),
        ("neurofibromatosis", "neurofibromatosis type 1"),
        ("Gaucher disease type I", "Gaucher disease type III"),
    ],
)
def test_numbered_siblings(one, other):
    assert numbered_siblings(one, other)
    assert numbered_siblings(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("haemophilia A", "hemophilia A"),
        ("factor V", "Factor 5"),
        ("TNF-α", "TNF alpha"),
        ("CYP2C9", "cytochrome P450 2C9"),
        ("fibrillin-1", "FBN1"),
        ("Marfan syndrome", "Marfan's syndrome"),
        ("kidney", "renal organ"),
    ],
)
def test_other_pairs_are_no_siblings(one, other):
    assert not numbered_siblings(one, other)
    assert not numbered_siblings(other, one)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("gene", "gene"),
        ("Enzyme", "gene"),
        ("rare disease", "disease"),
        ("viruses", "organism"),
        ("animal", "organism"),
        ("cytogenetic_band", "chromosome"),
        ("heavy metal band", ""),
        ("band", ""),
        ("cell_type", ""),
        ("other", ""),
        ("", ""),
    ],
)
def test_kinds(name, wanted):
    assert kind(name) == wanted


def test_kinds_are_kinds_of_their_own_names():
    assert [kind(name) for name in KINDS] == list(KINDS)
