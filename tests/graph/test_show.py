import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from medhop_dspy.errors import InputError, SettingsError
from medhop_dspy.graph.build import build
from medhop_dspy.graph.index import GraphIndex
from medhop_dspy.graph.picture import neighbourhood_svg
from medhop_dspy.graph.records import Entity, Extraction, Triple
from medhop_dspy.graph.show import describe, find, mentioning, neighbourhood, stating, suggestions
from medhop_dspy.graph.triples import clean
from medhop_dspy.retrieval.corpus import Document
from medhop_dspy.trace import Passage
from tests.graph.graphs import make_graph
from tests.graph.small_world import ATAXIA, SentenceExtractor, documents, edge_texts, index_of
from tests.retrieval.hashing_encoder import HashingEncoder

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphIndex]:
    folder = tmp_path_factory.mktemp("world")
    with index_of(folder, documents()) as index:
        yield build(folder / "graph", index, HashingEncoder(), SentenceExtractor())[0]


def steps_of(graph: GraphIndex, name: str, hops: int = 1) -> list[tuple[str, str, bool, str, tuple[str, ...]]]:
    start = find(graph, name)[0]
    return [
        (graph.names[s.entity], s.relation, s.forward, graph.names[s.neighbour], tuple(stating(graph, s)))
        for s in neighbourhood(graph, start, hops)
    ]


def test_counts_agree_with_the_graph(graph: GraphIndex) -> None:
    summary = describe(graph, hubs=3)
    assert (summary.entities, summary.source) == (len(graph.names), "model")
    assert sum(count for _, count in summary.types) == len(graph.names)
    assert dict(summary.types)["disease"] == sum(kind == "disease" for kind in graph.types)
    assert dict(summary.relations)["affects"] == sum(r == "affects" for _, r, _ in edge_texts(graph))
    assert "synonym" not in dict(summary.relations)
    assert (summary.synonyms, summary.triples) == (1, len(graph.edges) - 1)
    assert summary.links == graph.mentions.toarray().sum()
    degrees = [int((graph.edges[:, [0, 2]] == e).sum()) for e in range(len(graph.names))]
    assert summary.degrees[0] == min(degrees) and summary.degrees[-1] == max(degrees)
    assert [hub.degree for hub in summary.hubs] == sorted(degrees, reverse=True)[:3]
    assert summary.hubs[0].name == "Marfan syndrome" and summary.hubs[0].passages == 2
    assert summary.hubs[0].label == "Marfan syndrome (disease)"


def test_connected_parts_are_those_of_the_whole_graph(graph: GraphIndex) -> None:
    import networkx

    whole = networkx.Graph()
    whole.add_nodes_from([*((0, e) for e in range(len(graph.names))), *((1, p) for p in range(len(graph.passage_ids)))])
    whole.add_edges_from(((0, h), (0, t)) for h, _, t in graph.edges.tolist())
    whole.add_edges_from(((0, e), (1, p)) for e, p in np.argwhere(graph.mentions.toarray()).tolist())
    whole.add_edges_from(((1, a), (1, b)) for a, b in graph.passage_edges.tolist())
    sizes = sorted(map(len, networkx.connected_components(whole)), reverse=True)
    assert len(sizes) > 1
    assert list(describe(graph).components) == sizes


def test_an_empty_graph_can_be_summarised(tmp_path: Path) -> None:
    with index_of(tmp_path, documents("refs")) as index:
        graph, _ = build(tmp_path / "graph", index, HashingEncoder(), SentenceExtractor())
    summary = describe(graph)
    assert (summary.entities, summary.degrees, summary.components, summary.hubs) == (0, (), (1,), ())
    with pytest.raises(InputError, match="no entity 'FBN1'"):
        find(graph, "FBN1")


def test_pronouns_and_general_words_are_no_hubs(tmp_path: Path) -> None:
    class Triples(SentenceExtractor):
        """What a small model makes of any passage."""

        def extract(self, passage: Passage) -> Extraction:
            said = [["This", "related_to", "a gene"], ["It", "causes", "MFS"], ["the patient", "has", "MFS"]]
            return clean([], [*said, ["FBN1", "causes", f"MFS {passage.doc_id}"]], self.source)

    with index_of(tmp_path, documents()) as index:
        graph, report = build(tmp_path / "graph", index, HashingEncoder(), Triples())
    passages = len(graph.passage_ids)
    hubs = describe(graph, hubs=100).hubs
    assert (hubs[0].name, hubs[0].degree, hubs[0].passages) == ("FBN1", passages, passages)
    assert {hub.name.casefold() for hub in hubs}.isdisjoint({"this", "it", "the patient", "patient", "a gene", "gene"})
    assert report.rejected == 3 * passages


@pytest.mark.parametrize("spelling", ["TNF-α", "tnf alpha", "TNF-alpha", " TNFα "])
def test_an_entity_is_found_in_any_spelling(graph: GraphIndex, spelling: str) -> None:
    assert [graph.names[e] for e in find(graph, spelling)] == [graph.names[find(graph, "TNF-α")[0]]]


def test_a_name_of_two_types_is_two_entities(graph: GraphIndex) -> None:
    assert [graph.label(e) for e in find(graph, "CAT")] == ["CAT (gene)", "CAT (animal)"]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("Marfan", "Marfan syndrome"),
        ("Losartam", "Losartan"),
        ("marfan sindrome", "Marfan syndrome"),
        ("ataxia", ATAXIA),
    ],
)
def test_an_unknown_entity_gets_suggestions(graph: GraphIndex, name: str, near: str) -> None:
    with pytest.raises(InputError, match=f"no entity '{name}'") as caught:
        find(graph, name)
    assert near in caught.value.hint


def test_suggestions_are_few_and_may_be_none(graph: GraphIndex) -> None:
    assert suggestions(graph, "zzqx") == []
    assert len(suggestions(graph, "a")) == 5
    with pytest.raises(InputError) as caught:
        find(graph, "  ")
    assert "info" in caught.value.hint


def test_a_neighbourhood_tells_relation_direction_and_titles(graph: GraphIndex) -> None:
    assert steps_of(graph, "Marfan syndrome") == [
        ("Marfan syndrome", "affects", True, "aorta", ("Marfan syndrome",)),
        ("Marfan syndrome", "causes", False, "FBN1", ("FBN1",)),
        ("Marfan syndrome", "synonym", True, "marfan syndrome disease", ()),
        ("Marfan syndrome", "treats", False, "Losartan", ("Marfan syndrome",)),
    ]
    assert mentioning(graph, find(graph, "Marfan syndrome")[0]) == ["FBN1", "Marfan syndrome"]


def test_two_hops_go_on_from_the_neighbours(graph: GraphIndex) -> None:
    near, far = steps_of(graph, "aorta"), steps_of(graph, "aorta", hops=2)
    assert far[: len(near)] == near
    assert ("Marfan syndrome", "causes", False, "FBN1", ("FBN1",)) in far
    assert len(set(far)) == len(far)
    assert not any(step[3] == "chromosome 15" for step in far)
    assert any(step[3] == "chromosome 15" for step in steps_of(graph, "aorta", hops=3))
    with pytest.raises(InputError, match="hops is 0"):
        list(neighbourhood(graph, 0, 0))


def test_a_picture_holds_every_name_and_is_the_same_each_time(graph: GraphIndex) -> None:
    start = find(graph, "Marfan syndrome")[0]
    steps = list(neighbourhood(graph, start, 2))
    drawing = neighbourhood_svg(graph, start, steps)
    root = ET.fromstring(drawing)
    assert root.tag == f"{SVG}svg"
    titles = [g.find(f"{SVG}title").text for g in root.iter(f"{SVG}g")]  # type: ignore[union-attr]
    assert sorted(titles) == sorted({graph.names[e] for s in steps for e in (s.entity, s.neighbour)})
    lines = list(root.iter(f"{SVG}line"))
    assert len(lines) == len(steps)
    assert sum(line.get("stroke-dasharray") is not None for line in lines) == 1
    assert neighbourhood_svg(graph, start, steps) == drawing


def test_edges_are_found_from_both_ends_and_once(graph: GraphIndex) -> None:
    for entity in range(len(graph.names)):
        wanted = np.flatnonzero((graph.edges[:, [0, 2]] == entity).any(axis=1))
        assert sorted(step.edge for step in neighbourhood(graph, entity)) == wanted.tolist()
    loop = make_graph(["a", "b"], [("a", "is", "a"), ("b", "is", "a")], {})
    assert [(s.forward, s.neighbour) for s in neighbourhood(loop, 0)] == [(True, 0), (False, 1)]


def test_without_networkx_there_is_no_picture(graph: GraphIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "networkx", None)  # as where it is not installed
    with pytest.raises(SettingsError, match="needs the library networkx") as caught:
        neighbourhood_svg(graph, 0, [])
    assert "`graph`" in caught.value.hint


def test_an_entity_without_edges_can_be_drawn(graph: GraphIndex) -> None:
    root = ET.fromstring(neighbourhood_svg(graph, 0, []))
    assert len(list(root.iter(f"{SVG}circle"))) == 2  # itself, and its type in the legend


def test_names_are_data_in_a_picture(tmp_path: Path) -> None:
    class Hostile(SentenceExtractor):
        def extract(self, passage):
            evil = '"/><script>alert(1)</script>'
            return Extraction((Entity(evil, "gene & <b>"),), (Triple(evil, "<i>causes</i>", "x\x00\u202ey"),), "model")

    with index_of(tmp_path, [Document("d", "t", "", "text")]) as index:
        graph, _ = build(tmp_path / "graph", index, HashingEncoder(), Hostile())
    drawing = neighbourhood_svg(graph, 0, list(neighbourhood(graph, 0)))
    root = ET.fromstring(drawing)
    assert "script" not in {each.tag.removeprefix(SVG) for each in root.iter()}
    assert "\u202e" not in drawing and "\x00" not in drawing
