import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from medhop_dspy.errors import GraphError, StoreError
from medhop_dspy.graph.build import build
from medhop_dspy.graph.index import GraphIndex
from medhop_dspy.graph.manifest import GraphManifest, GraphRecipe
from medhop_dspy.graph.name_vectors import BLOCK, NameVectors
from medhop_dspy.retrieval.index import Index
from tests.graph.small_world import SentenceExtractor, documents, files_of, index_of
from tests.retrieval.hashing_encoder import HashingEncoder


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Index, Path]]:
    folder = tmp_path_factory.mktemp("world")
    with index_of(folder, documents()) as index:
        build(folder / "graph", index, HashingEncoder(), SentenceExtractor())
        yield index, folder / "graph"


@pytest.fixture
def place(world: tuple[Index, Path], tmp_path: Path) -> Path:
    """A copy of the graph that a test may damage."""
    return Path(shutil.copytree(world[1], tmp_path / "graph"))


def test_what_is_opened_is_what_was_built(world: tuple[Index, Path], tmp_path: Path) -> None:
    index, place = world
    built, _ = build(tmp_path / "graph", index, HashingEncoder(), SentenceExtractor())
    opened = GraphIndex.open(place, index, HashingEncoder())
    for name in ("names", "types", "relations", "passage_ids", "passage_titles", "digest"):
        assert getattr(opened, name) == getattr(built, name), name
    for name in ("edges", "edge_weights", "passage_edges", "passage_weights", "vectors"):
        np.testing.assert_array_equal(getattr(opened, name), getattr(built, name))
    for name in ("mentions", "support"):
        np.testing.assert_array_equal(getattr(opened, name).toarray(), getattr(built, name).toarray())
    assert (opened.edges.dtype, opened.passage_edges.dtype) == (np.int64, np.int64)
    assert (opened.vectors.dtype, opened.passage_weights.dtype) == (np.float32, np.float32)
    np.testing.assert_array_equal(opened.vectors, HashingEncoder().embed(opened.names))
    np.testing.assert_array_equal(opened.passage_counts, opened.mentions.toarray().sum(axis=1))
    assert opened.relations[opened.synonym] == "synonym"
    cats = [opened.label(row) for row, name in enumerate(opened.names) if name == "CAT"]
    assert cats == ["CAT (gene)", "CAT (animal)"]
    assert opened.label(opened.names.index("retina")) == "retina"


def test_there_is_no_graph(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="there is no graph in") as caught:
        GraphIndex.open(tmp_path / "none")
    assert "medhop graph build" in caught.value.hint
    assert isinstance(caught.value, StoreError) and caught.value.exit_code == 5


def test_a_graph_of_another_index_is_refused(world: tuple[Index, Path], tmp_path: Path) -> None:
    with index_of(tmp_path, documents("fbn1")) as other, pytest.raises(GraphError, match="is of the index") as caught:
        GraphIndex.open(world[1], other)
    assert "medhop graph add" in caught.value.hint


@pytest.mark.parametrize("other", [HashingEncoder("other"), HashingEncoder(revision="2"), HashingEncoder(dimension=8)])
def test_a_graph_of_another_embedder_is_refused(world: tuple[Index, Path], other: HashingEncoder) -> None:
    with pytest.raises(GraphError, match=r"has name vectors of hashing .*, wanted"):
        GraphIndex.open(world[1], embedder=other)


def test_the_name_of_the_embedder_does_not_matter(world: tuple[Index, Path]) -> None:
    renamed = HashingEncoder()
    renamed.name = "another name"
    GraphIndex.open(world[1], embedder=renamed)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: len(text) // 2], "manifest of the graph .* is damaged"),
        (lambda text: "[" * 200_000, "manifest of the graph .* is damaged"),
        (lambda text: text.replace('"format": 2', '"format": 99'), "has format 99, wanted 2"),
        (lambda text: text.replace("index_digest", "digest_of_index"), "is not that of a graph"),
        (lambda text: text.replace('"source": "model"', '"source": "guess"'), "is damaged"),
        (lambda text: text.replace('"edges.npy"', '"other.npy"'), "names other files"),
        (lambda text: text.replace('"neighbours": 5', '"neighbours": -5'), "is damaged"),
    ],
)
def test_a_damaged_manifest_is_refused_and_built_over(
    world: tuple[Index, Path], place: Path, damage, message: str
) -> None:
    file = place / "manifest.json"
    whole = files_of(place)
    file.write_text(damage(file.read_text()), encoding="utf-8")
    assert files_of(place) != whole
    with pytest.raises(GraphError, match=message):
        GraphIndex.open(place)
    extractor = SentenceExtractor()
    build(place, world[0], HashingEncoder(), extractor)
    assert extractor.read == []
    assert files_of(place) == whole


@pytest.mark.parametrize("name", ["edges.npy", "entities.json", "vectors.npy"])
@pytest.mark.parametrize("lost", [True, False])
def test_a_changed_or_lost_file_is_noticed_and_mended(
    world: tuple[Index, Path], place: Path, name: str, lost: bool
) -> None:
    whole = files_of(place)
    file = next(place.glob(f"data-*/{name}"))
    if lost:
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-1] + b"?")
    with pytest.raises(GraphError, match=name if lost else f"{name} was changed after it was written"):
        GraphIndex.open(place)
    build(place, world[0], HashingEncoder(), SentenceExtractor())
    assert files_of(place) == whole


def test_leftovers_of_killed_builds_are_swept(world: tuple[Index, Path], place: Path) -> None:
    whole = files_of(place)
    for folder in (".123.new", "data-0123456789abcdef"):
        (place / folder).mkdir()
        (place / folder / "edges.npy").write_bytes(b"x")
    build(place, world[0], HashingEncoder("other"), SentenceExtractor())
    build(place, world[0], HashingEncoder(), SentenceExtractor())
    assert files_of(place) == whole


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"types": ()}, r"types has the shape \(0,\)"),
        ({"edges": np.array([[0, 0, 9999]])}, "edge_weights has the shape"),
        ({"edges": np.array([[0, 0, 9999]]), "edge_weights": np.ones(1, np.float32)}, "support has the shape"),
        ({"vectors": np.zeros((1, 3), np.float32)}, "vectors has the shape"),
        ({"passage_edges": np.array([[0, 1, 2]])}, "passage_edges has the shape"),
        ({"passage_titles": ("a",)}, "passage_titles has the shape"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(
    world: tuple[Index, Path], wrong: dict[str, object], message: str
) -> None:
    with pytest.raises(GraphError, match=message):
        replace(GraphIndex.open(world[1]), **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("column", [0, 1, 2])
def test_edges_that_lead_nowhere_are_refused(world: tuple[Index, Path], column: int) -> None:
    graph = GraphIndex.open(world[1])
    edges = graph.edges.copy()
    edges[0, column] = 9999
    with pytest.raises(GraphError, match="leads to an entity or relation that is not there"):
        replace(graph, edges=edges)
    pairs = graph.passage_edges.copy()
    pairs[0, 0] = -1
    with pytest.raises(GraphError, match="leads to a passage that is not there"):
        replace(graph, passage_edges=pairs)


def test_the_digest_is_of_what_decides_results(world: tuple[Index, Path]) -> None:
    manifest = GraphIndex.open(world[1]).manifest
    same = [
        replace(manifest, encoder=replace(manifest.encoder, name="other")),
        replace(manifest, software="9.9"),
        replace(manifest, files={**manifest.files, "vectors.npy": "0" * 64, "edge_weights.npy": "0" * 64}),
    ]
    other = [
        replace(manifest, index_digest="0" * 64),
        replace(manifest, extractors=("0" * 64,)),
        replace(manifest, recipe=replace(manifest.recipe, synonym_floor=0.9)),
        replace(manifest, encoder=replace(manifest.encoder, digest="0" * 64)),
        replace(manifest, files={**manifest.files, "edges.npy": "0" * 64}),
    ]
    assert {each.digest for each in same} == {manifest.digest}
    assert len({manifest.digest, *(each.digest for each in other)}) == len(other) + 1
    assert GraphManifest.from_json(manifest.to_json(), "here") == manifest


def test_name_vectors_survive_a_crash_by_blocks(tmp_path: Path) -> None:
    names = [f"entity {n}" for n in range(2 * BLOCK + 5)]

    def fail(count: int) -> None:
        if count == 2 * BLOCK:
            raise KeyboardInterrupt

    journal = tmp_path / "names"
    with pytest.raises(KeyboardInterrupt):
        NameVectors(journal, HashingEncoder(before=fail), {}).embed(names)
    next(iter(sorted(journal.iterdir()))).write_bytes(b"cut")  # as after a power failure
    encoder = HashingEncoder()
    resumed = NameVectors(journal, encoder, {})
    vectors = resumed.embed([*names, names[3]])
    assert resumed.embedded == encoder.embedded == BLOCK + 5
    np.testing.assert_array_equal(vectors, HashingEncoder().embed([*names, names[3]]))
    other = HashingEncoder("other")
    NameVectors(journal, other, {}).embed(names[:7])
    assert other.embedded == 7
    resumed.clear()
    assert not journal.exists()


def test_a_graph_that_is_replaced_while_it_is_opened_is_opened_anew(world: tuple[Index, Path], place: Path) -> None:
    class Busy:
        """The index of a reader that is slow enough for a build to end between its manifest and its files."""

        built = False

        @property
        def digest(self) -> str:
            if not self.built:
                self.built = True
                build(place, world[0], HashingEncoder(), SentenceExtractor(), GraphRecipe(synonym_floor=0.99))
            return world[0].digest

    graph = GraphIndex.open(place, Busy())
    assert graph.manifest.recipe.synonym_floor == 0.99
    assert not (graph.edges[:, 1] == graph.synonym).any()


def test_importing_loads_no_heavy_library() -> None:
    modules = [
        f"medhop_dspy.{name}" for name in ("graph.index", "graph.build", "graph.show", "graph.picture", "cli.graph")
    ]
    heavy = ["torch", "chromadb", "networkx", "sentence_transformers", "dspy", "ahocorasick"]
    code = (
        f"import sys, importlib\nfor name in {modules}:\n    importlib.import_module(name)\n"
        f"    print(name, [m for m in {heavy} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [f"{name} []" for name in modules], done.stderr
