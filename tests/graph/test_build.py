import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from medhop_dspy.errors import GraphError, InputError, ReplyError, StoreLockedError
from medhop_dspy.graph.build import add, build
from medhop_dspy.graph.dictionary import DictionaryExtractor
from medhop_dspy.graph.index import GraphIndex
from medhop_dspy.graph.manifest import GraphRecipe
from medhop_dspy.graph.neighbours import block_rows, nearest_pairs, similar_pairs
from medhop_dspy.graph.records import Entity, Extraction, Triple
from medhop_dspy.graph.resolve import resolve
from medhop_dspy.retrieval.corpus import Document
from medhop_dspy.retrieval.index import Index
from medhop_dspy.trace import Passage
from tests.conftest import ROOT
from tests.graph.small_world import (
    ATAXIA,
    SENTENCES,
    SentenceExtractor,
    documents,
    edge_texts,
    files_of,
    index_of,
    settings_at,
)
from tests.retrieval.hashing_encoder import HashingEncoder


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Index, Path]]:
    """Its folder, the index of all sentences, and a graph built without interruption."""
    folder = tmp_path_factory.mktemp("world")
    with index_of(folder, documents()) as index:
        build(folder / "graph", index, HashingEncoder(), SentenceExtractor())
        yield folder, index, folder / "graph"


@pytest.fixture(scope="module")
def graph(world: tuple[Path, Index, Path]) -> GraphIndex:
    return GraphIndex.open(world[2], world[1], HashingEncoder())


def test_entities_meet_under_one_name(graph: GraphIndex) -> None:
    assert graph.names.count("Marfan syndrome") == 1
    assert "marfan syndrome" not in graph.names
    assert sum(name in ("TNF-α", "TNF alpha") for name in graph.names) == 1
    mentions = graph.mentions.toarray()
    row = mentions[graph.names.index("Marfan syndrome")]
    assert [p for p, there in zip(graph.passage_ids, row, strict=True) if there] == ["fbn1#0", "marfan#0"]
    assert set(np.unique(mentions)) <= {0, 1}


def test_names_of_conflicting_types_stay_apart_and_are_no_synonyms(graph: GraphIndex) -> None:
    cats = [row for row, name in enumerate(graph.names) if name == "CAT"]
    assert [graph.types[row] for row in cats] == ["gene", "animal"]
    assert ("CAT", "synonym", "CAT") not in edge_texts(graph)
    ends = {(graph.types[h], graph.relations[r]) for h, r, _ in graph.edges.tolist() if h in cats}
    assert ends == {("gene", "encodes"), ("gene", "lies on"), ("animal", "carries")}


def test_synonyms_are_near_names_but_never_numbered_siblings(graph: GraphIndex) -> None:
    synonyms = [{h, t} for h, r, t in edge_texts(graph) if r == "synonym"]
    assert synonyms == [{"Marfan syndrome", "marfan syndrome disease"}]
    (weight,) = graph.edge_weights[graph.edges[:, 1] == graph.synonym]
    one, other = (graph.vectors[graph.names.index(name)] for name in synonyms[0])
    assert weight == pytest.approx(one @ other, abs=1e-6) and 0.85 <= weight < 1
    assert set(graph.edge_weights[graph.edges[:, 1] != graph.synonym].tolist()) == {1}
    siblings = [f"{ATAXIA} type {n}" for n in (1, 3)]
    one, other = HashingEncoder().embed(siblings)
    assert one @ other > 0.85 and set(siblings) <= set(graph.names)


def test_every_edge_has_its_passages(graph: GraphIndex) -> None:
    support = {
        (graph.names[h], graph.relations[r], graph.names[t]): [graph.passage_ids[p] for p in np.flatnonzero(row)]
        for (h, r, t), row in zip(graph.edges.tolist(), graph.support.toarray(), strict=True)
    }
    assert support["FBN1", "causes", "Marfan syndrome"] == ["fbn1#0"]
    assert all(bool(passages) == (relation != "synonym") for (_, relation, _), passages in support.items())
    assert len(np.unique(graph.edges, axis=0)) == len(graph.edges)


def test_passages_are_linked_to_similar_ones_of_other_documents(world: tuple[Path, Index, Path]) -> None:
    _, index, place = world
    graph = GraphIndex.open(place)
    vectors = index.vectors(graph.passage_ids).astype(np.float64)
    cosines = vectors @ vectors.T
    np.fill_diagonal(cosines, -1)
    near = {
        tuple(sorted((row, int(other))))
        for row in range(len(cosines))
        for other in np.argsort(-cosines[row])[:5]
        if cosines[row, other] >= 0.6
    }
    assert near
    assert {tuple(pair) for pair in graph.passage_edges.tolist()} == near
    np.testing.assert_allclose(
        graph.passage_weights, cosines[graph.passage_edges[:, 0], graph.passage_edges[:, 1]], atol=1e-6
    )


@pytest.mark.parametrize("when", ["extract", "embed", "compare", "write"])
def test_a_killed_build_goes_on_and_ends_with_the_same_files(
    world: tuple[Path, Index, Path], tmp_path: Path, when: str
) -> None:
    folder, index, whole = world
    place = tmp_path / "graph"
    done = in_process(folder, place, when)
    _, errors = done.communicate(timeout=60)
    assert done.returncode == -signal.SIGKILL, errors
    with pytest.raises(GraphError, match="is not complete: its build was interrupted"):
        GraphIndex.open(place, index, HashingEncoder())
    extractor = SentenceExtractor()
    _, report = build(place, index, HashingEncoder(), extractor)
    assert len(extractor.read) == report.extracted == (len(SENTENCES) - 6 if when == "extract" else 0)
    assert report.reused == len(SENTENCES) - report.extracted
    assert files_of(place) == files_of(whole)


def test_a_build_under_way_is_not_read_and_not_joined(world: tuple[Path, Index, Path], tmp_path: Path) -> None:
    folder, index, _ = world
    process = in_process(folder, tmp_path / "graph", "wait")
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        with pytest.raises(GraphError, match=f"not complete: process {process.pid} is building it"):
            GraphIndex.open(tmp_path / "graph")
        with pytest.raises(StoreLockedError, match=f"^{tmp_path / 'graph'} is being written by process {process.pid}"):
            build(tmp_path / "graph", index, HashingEncoder(), SentenceExtractor())
    finally:
        process.kill()
        process.communicate()


def in_process(folder: Path, place: Path, when: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.graph.build_graph_in_process", str(folder), str(place), when]
    return subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_building_again_does_nothing(world: tuple[Path, Index, Path]) -> None:
    _, index, place = world
    before = {f: f.stat().st_mtime_ns for f in place.rglob("*.npy")}
    extractor, encoder = SentenceExtractor(), HashingEncoder()
    graph, report = build(place, index, encoder, extractor)
    assert (extractor.read, encoder.embedded, report.written) == ([], 0, False)
    assert graph.digest == GraphIndex.open(place).digest
    assert {f: f.stat().st_mtime_ns for f in place.rglob("*.npy")} == before


@pytest.mark.parametrize("how", [add, build])
def test_a_new_document_leaves_the_others_as_they_were(tmp_path: Path, how) -> None:
    first = documents("fbn1", "marfan", "tnf")
    with index_of(tmp_path, first) as index:
        old, _ = build(tmp_path / "graph", index, HashingEncoder(), SentenceExtractor())
        index.add(documents("again"))
        with pytest.raises(GraphError, match="is of the index"):
            GraphIndex.open(tmp_path / "graph", index)
        extractor, encoder = SentenceExtractor(), HashingEncoder()
        new, report = how(tmp_path / "graph", index, encoder, extractor)
        assert extractor.read == ["again#0"]
        assert (report.extracted, report.reused, report.changed) == (1, 3, ())
        assert encoder.embedded == report.embedded == 1  # hypertension
        assert edge_texts(new) - edge_texts(old) == {("Losartan", "treats", "hypertension")}
        assert edge_texts(old) < edge_texts(new)
        fresh, _ = build(tmp_path / "fresh", index, HashingEncoder(), SentenceExtractor())
        assert files_of(tmp_path / "graph") == files_of(tmp_path / "fresh")
        before = files_of(tmp_path / "graph")
        index.add(documents("again"))
        assert not how(tmp_path / "graph", index, HashingEncoder(), SentenceExtractor())[1].written
        assert files_of(tmp_path / "graph") == before
        assert fresh.digest == new.digest != old.digest


def test_new_names_in_the_dictionary_leave_the_other_documents_as_they_were(tmp_path: Path) -> None:
    def texts(graph: GraphIndex, passage: str) -> set[str]:
        return {graph.names[e] for e in np.flatnonzero(graph.mentions.toarray()[:, graph.passage_ids.index(passage)])}

    small, place = {"FBN1": "gene", "Marfan syndrome": "disease"}, tmp_path / "graph"
    first, second = DictionaryExtractor(small), DictionaryExtractor(small | {"aorta": "anatomy", "Losartan": "drug"})
    with index_of(tmp_path, documents("fbn1", "marfan")) as index:
        old, _ = build(place, index, HashingEncoder(), first)
        index.add(documents("synonym"))
        new, report = add(place, index, HashingEncoder(), second)
        assert (report.extracted, report.reused, report.changed) == (1, 2, ())
        assert texts(old, "marfan#0") == texts(new, "marfan#0") == {"Marfan syndrome"}
        assert "aorta" in texts(new, "synonym#0")
        assert new.manifest.extractors == (first.digest, second.digest)
        before = files_of(place)
        assert not add(place, index, HashingEncoder(), second)[1].written
        index.add([Document("later", "Later", "", "Losartan treats Marfan syndrome.")])
        assert texts(add(place, index, HashingEncoder(), second)[0], "marfan#0") == {"Marfan syndrome"}
        index.delete(["later"])
        add(place, index, HashingEncoder(), second)
        assert files_of(place) == before
        everywhere, report = build(place, index, HashingEncoder(), second)
        assert texts(everywhere, "marfan#0") == {"Marfan syndrome", "aorta", "Losartan"}
        assert report.changed[0].startswith("dictionary extractor")
        with pytest.raises(GraphError, match="extractor dictionary, wanted model"):
            add(place, index, HashingEncoder(), SentenceExtractor())


def test_a_deleted_document_is_gone(tmp_path: Path) -> None:
    with index_of(tmp_path, documents("fbn1", "cat-pet")) as index:
        build(tmp_path / "graph", index, HashingEncoder(), SentenceExtractor())
        index.delete(["cat-pet"])
        graph, report = add(tmp_path / "graph", index, HashingEncoder(), SentenceExtractor())
    assert report.extracted == 0
    assert (graph.passage_ids, "CAT" in graph.names) == (("fbn1#0",), False)


def test_another_prompt_reads_again_and_says_so_and_going_back_costs_nothing(tmp_path: Path) -> None:
    with index_of(tmp_path, documents("fbn1", "marfan")) as index:
        place = tmp_path / "graph"
        first, _ = build(place, index, HashingEncoder(), SentenceExtractor("1"))
        with pytest.raises(GraphError, match=r"cannot add .* model extractor \w+, wanted \w+"):
            add(place, index, HashingEncoder(), SentenceExtractor("2"))
        assert GraphIndex.open(place).digest == first.digest
        changed, report = build(place, index, HashingEncoder(), SentenceExtractor("2"))
        assert (report.extracted, report.reused) == (2, 0)
        assert report.changed[0].startswith("model extractor ")
        assert changed.digest != first.digest
        back, report = build(place, index, HashingEncoder(), SentenceExtractor("1"))
        assert (report.extracted, report.reused, back.digest) == (0, 2, first.digest)


def test_other_thresholds_rebuild_from_what_was_read(tmp_path: Path) -> None:
    with index_of(tmp_path, documents("fbn1", "marfan", "synonym")) as index:
        place = tmp_path / "graph"
        build(place, index, HashingEncoder(), SentenceExtractor())
        encoder = HashingEncoder()
        graph, report = build(place, index, encoder, SentenceExtractor(), GraphRecipe(synonym_floor=0.99, neighbours=0))
        assert report.changed == ("synonym_floor 0.85, wanted 0.99", "neighbours 5, wanted 0")
        assert (report.extracted, encoder.embedded) == (0, 0)
        assert not any(relation == "synonym" for _, relation, _ in edge_texts(graph))
        assert len(graph.passage_edges) == 0
        assert add(place, index, encoder, SentenceExtractor())[0].manifest.recipe.synonym_floor == 0.99


def test_another_embedder_embeds_anew(tmp_path: Path) -> None:
    with index_of(tmp_path, documents("fbn1")) as index:
        build(tmp_path / "graph", index, HashingEncoder(), SentenceExtractor())
        other = HashingEncoder("other")
        graph, report = build(tmp_path / "graph", index, other, SentenceExtractor())
        assert report.embedded == other.embedded == len(graph.names)
        assert "name vectors of hashing" in report.changed[0] and "wanted other" in report.changed[0]
        np.testing.assert_array_equal(graph.vectors, HashingEncoder("other").embed(graph.names))
        with pytest.raises(GraphError, match=r"cannot add .*name vectors"):
            add(tmp_path / "graph", index, HashingEncoder(), SentenceExtractor())


def test_a_limit_takes_the_first_passages(world: tuple[Path, Index, Path], tmp_path: Path) -> None:
    extractor = SentenceExtractor()
    graph, _ = build(tmp_path / "g", world[1], HashingEncoder(), extractor, GraphRecipe(limit=3))
    assert list(graph.passage_ids) == extractor.read == sorted(f"{name}#0" for name in SENTENCES)[:3]
    assert GraphIndex.open(tmp_path / "g", world[1]).manifest.recipe.limit == 3


def test_a_corpus_of_one_chunk_without_entities(tmp_path: Path) -> None:
    with index_of(tmp_path, documents("refs")) as index:
        _, report = build(tmp_path / "graph", index, HashingEncoder(), SentenceExtractor())
        assert (report.extracted, report.failed) == (1, 0)
        graph = GraphIndex.open(tmp_path / "graph", index, HashingEncoder())
        assert (graph.names, graph.edges.shape, graph.mentions.shape) == ((), (0, 3), (0, 1))
        assert (graph.vectors.shape, graph.passage_edges.shape, graph.relations) == ((0, 32), (0, 2), ("synonym",))
        again = SentenceExtractor()
        build(tmp_path / "graph", index, HashingEncoder(), again, GraphRecipe(neighbours=1))
        assert again.read == []  # no entities is a result like any other


def test_a_failed_passage_is_counted_and_tried_again(tmp_path: Path) -> None:
    corpus = [*documents(), Document("bad", "Bad", "", "unreadable")]
    with index_of(tmp_path, corpus) as index:
        graph, report = build(tmp_path / "graph", index, HashingEncoder(), SentenceExtractor())
        assert (report.failed, graph.manifest.counts["failed"]) == (1, 1)
        assert graph.passage_counts.sum() > 0
        assert graph.mentions.toarray()[:, graph.passage_ids.index("bad#0")].sum() == 0
        before = files_of(tmp_path / "graph")
        again = SentenceExtractor()
        same, report = build(tmp_path / "graph", index, HashingEncoder(), again)
        assert again.read == ["bad#0"]
        assert (report.failed, report.written, report.reused, same.digest) == (1, False, len(SENTENCES), graph.digest)
        assert files_of(tmp_path / "graph") == before

        class Reader(SentenceExtractor):
            """The same, but it can read anything."""

            def extract(self, passage: Passage) -> Extraction:
                return super().extract(replace(passage, text=passage.text.replace("unreadable", "A causes B.")))

        mended, report = build(tmp_path / "graph", index, HashingEncoder(), Reader())
        assert (report.failed, report.written, report.extracted) == (0, True, 1)
        assert edge_texts(mended) - edge_texts(graph) == {("A", "causes", "B")}


def test_passages_of_one_title_and_text_are_read_once(tmp_path: Path) -> None:
    twice = [Document(name, "FBN1", "", SENTENCES["fbn1"][1]) for name in ("one", "two")]
    with index_of(tmp_path, twice) as index:
        extractor = SentenceExtractor()
        graph, report = build(tmp_path / "graph", index, HashingEncoder(), extractor)
    assert (extractor.read, report.extracted, report.reused) == (["one#0"], 1, 1)
    assert graph.passage_counts[graph.names.index("FBN1")] == 2


def test_an_extractor_that_never_works_leaves_no_graph(tmp_path: Path) -> None:
    with index_of(tmp_path, [Document(f"d{n}", "t", "", f"unreadable {n}") for n in range(8)]) as index:
        with pytest.raises(ReplyError, match="extraction failed for"):
            build(tmp_path / "graph", index, HashingEncoder(), SentenceExtractor())
        with pytest.raises(GraphError, match="not complete"):
            GraphIndex.open(tmp_path / "graph")


def test_several_workers_make_the_same_files(world: tuple[Path, Index, Path], tmp_path: Path) -> None:
    build(tmp_path / "graph", world[1], HashingEncoder(), SentenceExtractor(), workers=4)
    assert files_of(tmp_path / "graph") == files_of(world[2])


def test_progress_ends_where_it_should(world: tuple[Path, Index, Path], tmp_path: Path) -> None:
    seen: dict[str, tuple[int, int]] = {}
    graph, _ = build(
        tmp_path / "g",
        world[1],
        HashingEncoder(),
        SentenceExtractor(),
        progress=lambda stage, done, total: seen.__setitem__(stage, (done, total)),
    )
    passages, names = (len(SENTENCES),) * 2, (len(graph.names),) * 2
    assert list(seen) == ["extracting", "embedding names", "comparing names", "comparing passages"]
    assert (seen["extracting"], seen["comparing passages"]) == (passages, passages)
    assert seen["comparing names"] == names
    assert seen["embedding names"] == (len(set(graph.names)),) * 2


def test_files_of_somebody_else_are_left_alone(world: tuple[Path, Index, Path], tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(GraphError, match=r"not empty and holds no graph: thesis\.txt"):
        build(tmp_path, world[1], HashingEncoder(), SentenceExtractor())
    with pytest.raises(GraphError, match="there is no graph in"):
        add(tmp_path, world[1], HashingEncoder(), SentenceExtractor())
    assert [f.name for f in tmp_path.iterdir()] == ["thesis.txt"]


def test_the_folder_of_the_index_is_left_alone(tmp_path: Path) -> None:
    with index_of(tmp_path, documents("fbn1")) as index:
        place = tmp_path / "index"
        before = {file: file.read_bytes() for file in place.rglob("*.json")}
        with pytest.raises(GraphError, match=r"holds no graph: chroma, .*manifest\.json"):
            build(place, index, HashingEncoder(), SentenceExtractor())
        with pytest.raises(GraphError, match="is not that of a graph"):
            add(place, index, HashingEncoder(), SentenceExtractor())
        assert before and {file: file.read_bytes() for file in place.rglob("*.json")} == before
    Index.open(str(place), HashingEncoder(), settings_at(tmp_path)).close()


@pytest.mark.parametrize("manifest", ['{"format": 2, "files": {}}', "[1]", "no JSON"])
def test_folders_named_like_ours_beside_a_foreign_manifest_stay(
    world: tuple[Path, Index, Path], tmp_path: Path, manifest: str
) -> None:
    (tmp_path / "manifest.json").write_text(manifest, encoding="utf-8")
    (tmp_path / "data-x").mkdir()
    with pytest.raises(GraphError, match=r"holds no graph: data-x, manifest\.json"):
        build(tmp_path, world[1], HashingEncoder(), SentenceExtractor())
    assert sorted(file.name for file in tmp_path.iterdir()) == ["data-x", "manifest.json"]


def test_weights_and_locks_may_be_there_before_the_graph_and_other_folders_stay(
    world: tuple[Path, Index, Path], tmp_path: Path
) -> None:
    (tmp_path / "gfm").mkdir()
    (tmp_path / "writer.lock").touch()
    build(tmp_path, world[1], HashingEncoder(), SentenceExtractor())
    (tmp_path / "data-x").mkdir()
    build(tmp_path, world[1], HashingEncoder(), SentenceExtractor(), GraphRecipe(synonym_floor=0.99))
    assert (tmp_path / "gfm").is_dir() and (tmp_path / "data-x").is_dir()
    assert len(list(tmp_path.glob("data-*"))) == 2


@pytest.mark.parametrize(
    "wrong",
    [{"synonym_floor": 0.0}, {"neighbour_floor": 1.1}, {"neighbours": -1}, {"limit": 0}, {"synonym_floor": np.nan}],
)
def test_a_senseless_recipe_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        GraphRecipe(**wrong)  # type: ignore[arg-type]


def test_the_kind_in_a_passage_counts_before_the_frequent_one() -> None:
    frequent = Extraction((Entity("CAT", "gene"),), (), "model")
    own = Extraction((Entity("CAT", "animal"),), (Triple("CAT", "carries", "parasites"),), "model")
    nameless = Extraction((), (Triple("CAT", "encodes", "catalase"),), "model")
    found = resolve([frequent, frequent, own, nameless])
    subjects = {found.relations[r]: found.types[h] for h, r, _ in found.edges.tolist()}
    assert subjects == {"carries": "animal", "encodes": "gene"}


def test_an_unknown_type_is_upgraded_in_whatever_order() -> None:
    unknown = Extraction((Entity("FBN1"),), (Triple("fbn1", "causes", "MFS"),), "model")
    known = Extraction((Entity("FBN1", "Gene"),), (), "model")
    for order in ([unknown, known], [known, unknown]):
        found = resolve(order)
        assert dict(zip(found.names, found.types, strict=True)) == {"FBN1": "gene", "MFS": ""}
        assert found.mentions.toarray().sum() == 3


def test_resolution_does_not_depend_on_the_order_of_passages() -> None:
    extractor = SentenceExtractor()
    passages = [Passage(f"{i}#0", i, title, "", text) for i, (title, text) in SENTENCES.items()]
    one = resolve([extractor.extract(p) for p in passages])
    other = resolve([extractor.extract(p) for p in reversed(passages)])
    assert (one.names, one.types, one.relations) == (other.names, other.types, other.relations)
    np.testing.assert_array_equal(one.edges, other.edges)
    np.testing.assert_array_equal(one.support.toarray(), other.support.toarray()[:, ::-1])


def test_triples_of_one_entity_with_itself_are_left_out() -> None:
    said = Extraction(
        (), (Triple("TNF-α", "is", "TNF alpha"), Triple("IL-2", "binds", "IL2R"), Triple("--", "is", "x"))
    )
    found = resolve([said])
    assert [tuple(found.relations[r] for _, r, _ in found.edges.tolist())] == [("binds",)]
    assert "--" not in found.names


@pytest.mark.parametrize("block", [1, 7, 512])
def test_blocks_do_not_change_what_is_near(block: int) -> None:
    draw = np.random.default_rng(0)
    centres = draw.standard_normal((12, 16))
    vectors = centres[draw.integers(0, 12, 60)] + 0.4 * draw.standard_normal((60, 16))
    unit = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    cosines = unit.astype(np.float64) @ unit.T.astype(np.float64)
    pairs, values = similar_pairs(unit, 0.85, block=block)
    wanted = np.argwhere(np.triu(cosines >= 0.85, 1))
    assert len(wanted) > 20
    np.testing.assert_array_equal(pairs, wanted)
    np.testing.assert_allclose(values, cosines[tuple(wanted.T)], atol=1e-6)
    groups = [str(n // 3) for n in range(60)]
    near, weights = nearest_pairs(unit, groups, 4, 0.3, block=block)
    expected = set()
    for row in range(60):
        others = [n for n in range(60) if groups[n] != groups[row] and cosines[row, n] >= 0.3]
        expected |= {tuple(sorted((row, n))) for n in sorted(others, key=lambda n: -cosines[row, n])[:4]}
    assert {tuple(pair) for pair in near.tolist()} == expected
    np.testing.assert_allclose(weights, cosines[tuple(near.T)], atol=1e-6)


@pytest.mark.parametrize(("columns", "rows"), [(0, 512), (1, 512), (2**17, 512), (2**20, 64), (2**27, 1)])
def test_the_cosines_in_memory_are_bounded(columns: int, rows: int) -> None:
    assert block_rows(columns) == rows


def test_equally_near_passages_are_taken_in_order() -> None:
    unit = np.tile(np.array([[1, 0]], np.float32), (6, 1))
    near, weights = nearest_pairs(unit, list("abcdef"), 2, 0.5)
    assert near.tolist() == [[0, 1], [0, 2], [0, 3], [0, 4], [0, 5], [1, 2], [1, 3], [1, 4], [1, 5]]
    assert set(weights.tolist()) == {1.0}


def test_the_manifest_says_what_the_graph_was_made_of(world: tuple[Path, Index, Path], graph: GraphIndex) -> None:
    state = json.loads((world[2] / "manifest.json").read_bytes())
    assert state["index_digest"] == world[1].digest
    assert state["extractors"] == [SentenceExtractor().digest]
    assert state["recipe"] == {"synonym_floor": 0.85, "neighbours": 5, "neighbour_floor": 0.6, "limit": None}
    assert state["counts"]["entities"] == len(graph.names) and state["counts"]["synonyms"] == 1
    assert state["digest"] == graph.digest
