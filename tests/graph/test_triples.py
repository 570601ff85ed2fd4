"""What is kept of a model's reply."""

import pytest

from medhop_dspy.graph.records import Entity, Extraction, Triple
from medhop_dspy.graph.triples import clean, usable_name

FBN1 = Triple("FBN1", "located on", "chromosome 15")


def test_malformed_triples_are_counted_and_the_others_kept():
    reply = [
        ["FBN1", "located on", "chromosome 15"],
        ["FBN1", "causes"],
        ["a", "b", "c", "d"],
        "IL2",
        "",
        ["FBN1", None, "x"],
        ["FBN1", "is", ["p", "q"]],
        ["  ", "r", "s"],
        ["FBN1", "located on", "chromosome 15"],
    ]
    found = clean([], reply, "model")
    assert found == Extraction((Entity("FBN1"), Entity("chromosome 15")), (FBN1,), "model", rejected=7)


@pytest.mark.parametrize("relation", ["relation", "predicate"])
def test_a_triple_may_be_an_object(relation):
    found = clean([], [{"subject": "FBN1", relation: "located on", "object": "chromosome 15"}], "model")
    assert found.triples == (FBN1,)
    assert not found.rejected


def test_what_the_passage_does_not_name_is_rejected():
    """A small model copies its prompt's example, whatever the passage is about."""
    entities = [{"name": "TNF-alpha", "type": "gene"}, {"name": "ATP7B", "type": "gene"}]
    reply = [["TNF alpha", "is made by", "macrophages"], ["Wilson disease", "is caused by mutations in", "ATP7B"]]
    found = clean(entities, reply, "model", "Cytokine: TNF-\u03b1 is made by macrophages.")
    assert [entity.name for entity in found.entities] == ["TNF-alpha", "macrophages"]
    assert found.triples == (Triple("TNF-alpha", "is made by", "macrophages"),)
    assert found.rejected == 2


def test_nothing_found_is_a_result():
    assert clean([], [], "model") == Extraction((), (), "model")
    assert clean(None, None, "model") == Extraction((), (), "model")


@pytest.mark.parametrize("reply", ["no entities", {"named_entities": []}, 3, [[]], [None], [["x"]], [{"title": "x"}]])
def test_a_reply_of_another_form_is_rejected(reply):
    assert clean(reply, [], "model") == Extraction((), (), "model", rejected=1)
    assert clean([], reply, "model") == Extraction((), (), "model", rejected=1)


def test_pronouns_and_general_words_are_no_entities():
    reply = [
        ["This", "related_to", "a gene"],
        ["It", "causes", "MFS"],
        ["the patient", "has", "MFS"],
        ["FBN1", "causes", "MFS"],
    ]
    found = clean(["It", "these patients", "the disease", "FBN1"], reply, "model")
    assert found.entities == (Entity("FBN1"), Entity("MFS"))
    assert found.triples == (Triple("FBN1", "causes", "MFS"),)
    assert found.rejected == 6


def test_one_name_of_two_kinds_is_two_entities_and_an_unknown_type_is_made_good():
    entities = [
        {"name": "CAT", "type": "gene"},
        {"name": "CAT", "type": "animal"},
        {"name": "FBN1"},
        {"name": "FBN1", "type": "gene"},
        {"name": "fbn1", "type": "other"},
    ]
    found = clean(entities, [["fbn1", "is like", "FBN2"]], "model")
    assert found.entities == (Entity("CAT", "gene"), Entity("CAT", "organism"), Entity("FBN1", "gene"), Entity("FBN2"))
    assert found.triples == (Triple("FBN1", "is like", "FBN2"),)


def test_spellings_are_tidied_and_relations_are_in_lower_case():
    found = clean([], [['"The  Lancet".', "Is_Published\nBy", "the Elsevier."]], "model")
    assert found.triples == (Triple("The Lancet", "is published by", "Elsevier"),)


@pytest.mark.parametrize(
    "triple",
    [
        ["IL-2", "is", "IL2"],
        ["FBN1", "...", "MFS"],
        ["FBN1", "x" * 61, "MFS"],
        ["FBN1", "causes", "word " * 30],
        ["FBN1", "causes \ud800", "MFS"],
        ["FBN1\udfff", "causes", "MFS"],
    ],
)
def test_triples_without_meaning_are_rejected(triple):
    assert clean([], [triple], "model").rejected == 1
    assert not clean([], [triple], "model").triples


@pytest.mark.parametrize("name", ["", "—", "This", "these genes", "None", 7, None, "x" * 121, "half \ud800"])
def test_names_of_nothing(name):
    assert usable_name(name) == ""


@pytest.mark.parametrize("name", ["线粒体", "5-HT1A", "X chromosome", "IT15", "Its1"])
def test_names_of_something(name):
    assert usable_name(name) == name
