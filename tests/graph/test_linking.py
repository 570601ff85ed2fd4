import pytest

from medhop_dspy.errors import InputError
from medhop_dspy.graph.linking import EntityLinker, seed_rows
from tests.retrieval.hashing_encoder import HashingEncoder

from .graphs import empty_graph, make_graph

NAMES = ["Marfan syndrome", "FBN1", "TNF-α", "cat", "Cat", "Wilson disease", "long QT syndrome type 1"]
PASSAGES = {"p": ["Marfan syndrome", "Cat"], "q": ["FBN1", "cat", "Cat"], "r": ["TNF-α", "Wilson disease"]}
GRAPH = make_graph(NAMES, [], PASSAGES)


def linker(floor=0.8, encoder=None):
    return EntityLinker(GRAPH, encoder or HashingEncoder(), floor)


@pytest.mark.parametrize(
    ("name", "entity"),
    [
        ("Marfan syndrome", "Marfan syndrome"),
        ("marfan  SYNDROME", "Marfan syndrome"),
        ("TNF-alpha", "TNF-α"),
        ("TNF-beta", None),
        ("fbn-1", "FBN1"),
        ("FBN2", None),
        ("cat", "Cat"),  # in more passages than the other of that key
        ("zzqx protein", None),
        ("", None),
        ("  \t", None),
        ("?!", None),
        ("\u200b", None),
    ],
)
def test_links_by_key(name, entity):
    found = linker().link([name])[0]
    assert (found if found is None else NAMES[found]) == entity


def test_links_by_cosine_down_to_the_floor():
    name = "congenital Wilson disease"
    cosine = float(HashingEncoder().embed([name])[0] @ GRAPH.vectors[5])
    assert 0.5 < cosine < 0.95
    assert linker(cosine - 0.01).link([name]) == [5]
    assert linker(cosine + 0.01).link([name]) == [None]


def test_a_numbered_sibling_is_never_linked_however_near():
    name = "long QT syndrome type 2"
    encoder = HashingEncoder()
    assert float(encoder.embed([name])[0] @ GRAPH.vectors[6]) > 0.6
    assert EntityLinker(GRAPH, encoder, 0.6).link([name]) == [None]
    near = make_graph([*NAMES, "long QT syndrome of type 2"], [], {})
    assert EntityLinker(near, encoder, 0.6).link([name]) == [7]  # the next one after the sibling


def test_results_keep_the_order_of_the_names():
    names = ["FBN1", "zzqx protein", "", "FBN1", "Marfan syndrome", "Marfan's syndrome"]
    assert linker().link(names) == [1, None, None, 1, 0, 0]
    assert linker().link([]) == []


def test_only_unknown_names_are_embedded():
    encoder = HashingEncoder()
    linker(encoder=encoder).link(["FBN1", "", "TNF alpha"])
    assert encoder.embedded == 0
    linker(encoder=encoder).link(["FBN1", "congenital Wilson disease", "congenital Wilson disease"])
    assert encoder.embedded == 1


def test_a_name_links_alone_as_beside_others():
    names = ["congenital Wilson disease", "Wilson disease of adults", "syndrome of Marfan", "zzqx protein"]
    together = linker(0.5).link(names)
    assert together == [linker(0.5).link([name])[0] for name in names]
    assert together[0] == 5


def test_one_string_is_refused():
    with pytest.raises(InputError, match="got the one string 'FBN1' to link"):
        linker().link("FBN1")


@pytest.mark.parametrize("floor", [-0.1, 1.1, float("nan")])
def test_floors_out_of_bounds_are_refused(floor):
    with pytest.raises(InputError, match="must be from 0 to 1, got"):
        linker(floor)


def test_an_empty_graph_links_and_spots_nothing():
    empty = EntityLinker(empty_graph(["p#0"]), HashingEncoder(), 0.8)
    assert empty.link(["FBN1", "", "anything"]) == [None, None, None]
    assert empty.spot("Is FBN1 mutated in Marfan syndrome?") == []


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Is FBN1 mutated in Marfan syndrome?", ["FBN1", "Marfan syndrome"]),
        ("Marfan syndrome, FBN1 and again Marfan syndrome", ["Marfan syndrome", "FBN1"]),
        ("What is it?", []),
        ("", []),
        ("Is FBN12 mutated?", []),
        ("zzqx protein", []),
    ],
)
def test_spots_names_in_questions(question, names):
    assert linker().spot(question) == names


def test_what_is_spotted_links():
    one = linker()
    assert one.link(one.spot("Is FBN1 mutated in Marfan syndrome or in Wilson disease?")) == [1, 0, 5]


def test_seed_rows():
    assert seed_rows([[1, None, 1], [], [None], [2, 0]], 3).tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0], [1, 0, 1]]
    assert seed_rows([], 3).shape == (0, 3)
    assert seed_rows([[]], 0).shape == (1, 0)
