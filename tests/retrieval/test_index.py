import copy
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chromadb.api.models.Collection import Collection

from medhop_dspy.errors import CorpusError, InputError, StoreError
from medhop_dspy.retrieval import store as store_module
from medhop_dspy.retrieval.corpus import Document, ReadReport
from medhop_dspy.retrieval.index import Index
from medhop_dspy.retrieval.location import FolderLocation
from medhop_dspy.retrieval.manifest import Manifest, Recipe
from medhop_dspy.retrieval.metadata import Chunk
from medhop_dspy.retrieval.store import Store
from medhop_dspy.retrieval.sync import UpdateReport
from medhop_dspy.settings import Settings
from medhop_dspy.trace import Passage

from .corpora import document, documents, state_of, write_corpus
from .hashing_encoder import HashingEncoder

TOP = Path(__file__).resolve().parents[len(__package__.split("."))]  # where the package of the tests is found


# Search


@pytest.mark.parametrize("mode", ["exact", "hnsw"])
def test_search_is_by_cosine_then_id(built: Path, settings: Settings, encoder: HashingEncoder, mode: str) -> None:
    with Index.open(str(built / "index"), encoder, settings.replace(index_search=mode)) as index:
        passages, vectors, _ = state_of(index)
        queries = encoder.embed(["gene7 protein3 syndrome1", "chromosome15 mutation2"])
        results = index.search(queries, 10)
    assert len(results) == 2
    for query, found in zip(queries, results, strict=True):
        scores = np.round(vectors @ query, 6)
        expected = sorted(zip(-scores, [p.id for p in passages], strict=True))[:10]
        assert [p.id for p in found] == [i for _, i in expected]
        np.testing.assert_allclose([p.score for p in found], [-s for s, _ in expected], atol=2e-6)
        assert all(type(p.score) is float for p in found)
    best = results[0][0]
    original = {p.id: p for p in passages}[best.id]
    assert replace(best, score=0.0) == original


@pytest.mark.parametrize("mode", ["exact", "hnsw"])
def test_equal_passages_tie_and_are_ordered_by_id(
    tmp_path: Path, settings: Settings, encoder: HashingEncoder, mode: str
) -> None:
    settings = settings.replace(index_search=mode, embed_title=False)
    same = [Document(f"d{n:02d}", f"T{n}", "", "fibrillin gene") for n in range(12)]
    corpus = write_corpus(tmp_path / "c.jsonl", [*same, *documents(5)])
    with Index.build(str(tmp_path / "index"), corpus, encoder, settings)[0] as index:
        found = index.search(encoder.embed(["fibrillin gene"]), 12)[0]
    assert [p.id for p in found] == [f"d{n:02d}#0" for n in range(12)]
    assert {p.score for p in found} == {1.0}


@pytest.mark.parametrize("mode", ["exact", "hnsw"])
@pytest.mark.parametrize("k", [1, 3, 20, 1000])
def test_k_beyond_the_collection(
    tmp_path: Path, settings: Settings, encoder: HashingEncoder, mode: str, k: int
) -> None:
    settings = settings.replace(index_search=mode)
    corpus = write_corpus(tmp_path / "c.jsonl", documents(3, words=5))
    with Index.build(str(tmp_path / "index"), corpus, encoder, settings)[0] as index:
        query = encoder.embed(["gene"])
        assert len(index.search(query, k)[0]) == min(k, 3)
        assert index.search(query[:0], k) == []
        assert index.delete(f"doc{n:04d}" for n in range(3)).deleted == 3
        assert index.search(query, k) == [[]]
        assert index.count == 0
        with pytest.raises(InputError, match="cannot measure recall with 0 queries in 0 passages"):
            index.check_recall(5)
    with pytest.raises(StoreError, match="index is empty"):
        Index.open(str(tmp_path / "index"), encoder, settings)


@pytest.mark.parametrize("mode", ["exact", "hnsw"])
@pytest.mark.parametrize(
    ("vectors", "k", "message"),
    [
        pytest.param(np.ones((1, 32)), 0, "k must be at least 1, got 0", id="k=0"),
        pytest.param(np.ones((1, 32)), -1, "k must be at least 1, got -1", id="negative k"),
        pytest.param(np.ones((1, 31)), 3, r"shape \(1, 31\), wanted \(n, 32\)", id="dimension"),
        pytest.param(np.ones(32), 3, r"shape \(32,\), wanted \(n, 32\)", id="one vector without its list"),
        pytest.param(np.full((2, 32), np.nan), 3, "not finite", id="nan"),
        pytest.param(np.full((1, 32), np.inf), 3, "not finite", id="infinite"),
        pytest.param(np.eye(2, 32) * [[1], [0]], 3, "no direction", id="zero"),
    ],
)
def test_queries_that_cannot_be_searched_with(
    built: Path, settings: Settings, encoder: HashingEncoder, mode: str, vectors: np.ndarray, k: int, message: str
) -> None:
    index = Index.open(str(built / "index"), encoder, settings.replace(index_search=mode))
    with index, pytest.raises(InputError, match=message):
        index.search(vectors, k)


def test_recall_counts_what_approximate_search_finds(built: Path, settings: Settings, encoder: HashingEncoder) -> None:
    with Index.open(str(built / "index"), encoder, settings) as index:
        assert index.check_recall(10, sample=50) > 0.99
        assert index.check_recall(10_000, sample=3) == 1.0
        assert index.check_recall(5, vectors=encoder.embed(["gene7"])) == 1.0
        with pytest.raises(InputError, match="0 queries"):
            index.check_recall(5, sample=0)
        exact = index._exact()
        query = exact.vectors[0]
        best = [p.id for p in exact.search(query[None], 4)[0]]
        assert exact.recall(query, best[:3], 4) == 0.75
        assert exact.recall(query, ["nothing"], 4) == 0.0


@pytest.mark.parametrize("mode", ["exact", "hnsw"])
def test_reading_passages(built: Path, settings: Settings, encoder: HashingEncoder, mode: str) -> None:
    with Index.open(str(built / "index"), encoder, settings.replace(index_search=mode)) as index:
        everything = list(index.all_passages())
        ids = [p.id for p in everything]
        assert ids == sorted(ids)
        assert len(ids) == index.count > 100
        of_one = index.passages("doc0007")
        assert [p.id for p in of_one] == [f"doc0007#{n}" for n in range(len(of_one))]
        assert len(of_one) > 5
        text = document(7).text
        assert of_one[0].text + "".join(p.text[8:] for p in of_one[1:]) == text
        assert index.passages("nobody") == []
        picked = [ids[5], ids[0], ids[5]]
        assert index.vectors(picked).shape == (3, 32)
        np.testing.assert_array_equal(index.vectors(picked)[0], index.vectors(picked)[2])
        assert index.vectors([]).shape == (0, 32)
        with pytest.raises(InputError, match="1 passages are not in the index, such as 'x#0'"):
            index.vectors([ids[0], "x#0"])
        assert index.by_ids([*picked, "x#0"]) == {i: everything[ids.index(i)] for i in picked}
        assert index.by_ids([]) == {}


def test_many_ids_are_read_in_pages(
    built: Path, settings: Settings, encoder: HashingEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    get = Collection.get

    def counted(self: Collection, ids: Any = None, **arguments: Any) -> Any:
        asked.append(len(ids or ()))
        return get(self, ids=ids, **arguments)

    with Index.open(str(built / "index"), encoder, settings.replace(index_search="hnsw")) as index:
        passages, vectors, _ = state_of(index)
        monkeypatch.setattr(store_module, "READ_BATCH", 7)
        monkeypatch.setattr(Collection, "get", counted)
        ids = [p.id for p in passages[:17]]
        np.testing.assert_array_equal(index.vectors(ids[::-1]), vectors[:17][::-1])
        assert asked == [7, 7, 3]
        assert index.by_ids(ids) == {p.id: p for p in passages[:17]}
        assert asked == [7, 7, 3] * 2


def test_titles_are_embedded_but_not_stored(tmp_path: Path, settings: Settings, encoder: HashingEncoder) -> None:
    corpus = write_corpus(tmp_path / "c.jsonl", [Document("d", "FBN1", "", "lies on chromosome15")])
    for on, text in ((True, "FBN1: lies on chromosome15"), (False, "lies on chromosome15")):
        place = str(tmp_path / str(on))
        with Index.build(place, corpus, encoder, settings.replace(embed_title=on))[0] as index:
            np.testing.assert_allclose(index.vectors(["d#0"]), encoder.embed([text]), atol=1e-6)
            assert index.passages("d")[0].text == "lies on chromosome15"


def test_vectors_of_any_length_are_stored_as_directions(tmp_path: Path, settings: Settings) -> None:
    encoder = HashingEncoder(dimension=2)
    manifest = Manifest("building", "1.5.9", Recipe.of(encoder, settings))
    store = Store.create(FolderLocation(tmp_path / "index"), manifest)
    chunks = [Chunk(Passage(f"d#{n}", "d", "t", "", "x"), "digest", 2) for n in range(2)]
    store.put(chunks, np.array([[1, 0], [10, 0]], np.float32))
    found = store.nearest(np.array([[1, 0]], np.float32), 2)[0]
    store.close()
    assert [p.score for p in found] == pytest.approx([1, 1], abs=1e-6)
    again = Store.create(FolderLocation(tmp_path / "index"), manifest)
    assert again._collection.configuration_json["hnsw"]["space"] == "cosine"
    again.close()


def test_an_index_is_shared_by_copies(built: Path, settings: Settings, encoder: HashingEncoder) -> None:
    with Index.open(str(built / "index"), encoder, settings) as index:
        assert copy.deepcopy([index])[0] is index
        assert copy.copy(index) is index


# Opening


def test_info(built: Path, settings: Settings, encoder: HashingEncoder) -> None:
    with Index.open(str(built / "index"), encoder, settings) as index:
        info = index.info()
        assert (info.location, info.search, info.digest) == (str(built / "index"), "exact", index.digest)
        assert (info.manifest.documents, info.manifest.chunks) == (20, index.count)
        assert info.manifest.recipe.encoder.name == "hashing"


def edit_manifest(**changes: Any) -> Callable[[Path], None]:
    def edit(place: Path) -> None:
        file = place / "manifest.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | changes), encoding="utf-8")

    return edit


def lose_chunks(place: Path) -> None:
    store = Store.open(FolderLocation(place))
    store.remove(["doc0003#0", "doc0003#1"])
    store.close()


def damage_database(place: Path) -> None:
    (place / "chroma" / "chroma.sqlite3").write_bytes(b"no database")


def use_l2(place: Path) -> None:
    import chromadb
    from chromadb.config import Settings as ChromaSettings

    shutil.rmtree(place / "chroma")
    with chromadb.PersistentClient(
        str(place / "chroma"), settings=ChromaSettings(anonymized_telemetry=False)
    ) as client:
        client.create_collection("passages", embedding_function=None)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        pytest.param(shutil.rmtree, "there is no index in", id="no folder"),
        pytest.param(lambda p: [shutil.rmtree(p), p.mkdir()], "there is no index in", id="empty folder"),
        pytest.param(
            lambda p: (p / "manifest.json").unlink(), "not empty and holds no index: chroma", id="no manifest"
        ),
        pytest.param(lambda p: (p / "manifest.json").write_text("{"), "manifest of .* is damaged", id="cut manifest"),
        pytest.param(edit_manifest(format=99), "has index format 99, wanted 1", id="later format"),
        pytest.param(edit_manifest(chroma="0.4.24"), "written by Chroma 0.4.24, this is Chroma", id="other Chroma"),
        pytest.param(edit_manifest(state="building"), "not complete: its build was interrupted", id="half built"),
        pytest.param(edit_manifest(state="updating"), "half changed: its update was interrupted", id="half updated"),
        pytest.param(edit_manifest(chunks=150), r"holds \d+ chunks, wanted 150", id="count"),
        pytest.param(lose_chunks, r"holds \d+ chunks, wanted \d+", id="lost chunks"),
        pytest.param(lambda p: shutil.rmtree(p / "chroma"), "has lost its database", id="no database"),
        pytest.param(
            lambda p: (p / "chroma" / "chroma.sqlite3").write_bytes(b"no"), "index .*: ", id="damaged database"
        ),
        pytest.param(use_l2, "has the distance 'l2', wanted 'cosine'", id="other distance"),
    ],
)
def test_what_is_not_opened(
    place: Path, settings: Settings, encoder: HashingEncoder, damage: Callable[[Path], object], message: str
) -> None:
    damage(place)
    before = sorted(p.relative_to(place) for p in place.rglob("*") if p.suffix in {".json", ".sqlite3"})
    with pytest.raises(StoreError, match=message) as caught:
        Index.open(str(place), encoder, settings)
    assert str(place) in str(caught.value)
    assert sorted(p.relative_to(place) for p in place.rglob("*") if p.suffix in {".json", ".sqlite3"}) == before


@pytest.mark.parametrize(
    ("other", "overrides", "message"),
    [
        pytest.param(HashingEncoder("other", 48), {}, r"hashing \(32-d.*wanted other \(48-d", id="dimension"),
        pytest.param(HashingEncoder("other"), {}, r"hashing \(32-d.*wanted other \(32-d", id="same dimension"),
        pytest.param(HashingEncoder(revision="2"), {}, "configuration 1.*configuration 2", id="prompt or pooling"),
        pytest.param(HashingEncoder(), {"chunk_size": 128}, "chunk_size 64, wanted 128", id="chunk size"),
        pytest.param(HashingEncoder(), {"chunk_overlap": 0}, "chunk_overlap 8, wanted 0", id="overlap"),
        pytest.param(HashingEncoder(), {"embed_title": False}, "embed_title True, wanted False", id="title"),
    ],
)
def test_an_index_made_in_another_way_is_neither_opened_nor_changed(
    built: Path, settings: Settings, other: HashingEncoder, overrides: dict[str, Any], message: str
) -> None:
    changed = settings.replace(**overrides)
    with pytest.raises(StoreError, match=message):
        Index.open(str(built / "index"), other, changed)
    with pytest.raises(StoreError, match=message):
        Index.build(str(built / "index"), built / "corpus.jsonl", other, changed)
    Index.open(str(built / "index"), HashingEncoder(), settings).close()


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path, settings: Settings, encoder: HashingEncoder) -> None:
    corpus = write_corpus(tmp_path / "c.jsonl", documents(1))
    with pytest.raises(StoreError, match=r"not empty and holds no index: c\.jsonl"):
        Index.build(str(tmp_path), corpus, encoder, settings)
    assert [p.name for p in tmp_path.iterdir()] == ["c.jsonl"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda p: p.write_text("x"), "cannot read or write", id="a file"),
        pytest.param(lambda p: p.symlink_to(p), "cannot read or write|no index", id="a loop"),
    ],
)
def test_a_location_that_is_no_folder(
    tmp_path: Path, settings: Settings, encoder: HashingEncoder, make: Callable[[Path], object], message: str
) -> None:
    make(tmp_path / "index")
    corpus = write_corpus(tmp_path / "c.jsonl", documents(1))
    with pytest.raises(StoreError, match=message):
        Index.open(str(tmp_path / "index"), encoder, settings)
    with pytest.raises(StoreError, match="cannot read or write"):
        Index.build(str(tmp_path / "index"), corpus, encoder, settings)


def test_a_damaged_cache_is_made_again(place: Path, settings: Settings, encoder: HashingEncoder) -> None:
    with Index.open(str(place), encoder, settings) as index:
        expected = index.search(encoder.embed(["gene7"]), 5)
    (vectors,) = (place / "exact").glob("*.npy")
    whole = vectors.read_bytes()
    for damaged in (whole[:300], b"", whole[:-128]):
        vectors.write_bytes(damaged)
        with Index.open(str(place), encoder, settings) as index:
            assert index.search(encoder.embed(["gene7"]), 5) == expected
        assert vectors.read_bytes() == whole


# Changing


def test_update_brings_the_index_to_the_state_of_the_corpus(
    place: Path, tmp_path: Path, settings: Settings, encoder: HashingEncoder
) -> None:
    corpus = [*documents(17), document(17, version=1), document(18, words=5), document(30)]
    corpus[16] = Document("doc0016", "Title 16", "https://x.example/16", " \n ")
    with Index.open(str(place), encoder, settings) as index:
        old = index.digest
        report = index.update(corpus)
        assert report == UpdateReport(added=1, replaced=2, unchanged=16, deleted=1, empty=1, embedded=report.embedded)
        assert encoder.embedded == report.embedded == sum(len(index.passages(d.id)) for d in corpus[17:])
        assert index.passages("doc0016") == index.passages("doc0019") == []
        assert len(index.passages("doc0018")) == 1
        assert index.digest != old
        assert index.update(corpus) == UpdateReport(unchanged=19, empty=1)
        updated = state_of(index)
        hits = index.search(index.vectors(["doc0017#3"]), 1)
        assert hits[0][0].id == "doc0017#3"
    fresh, _ = Index.build(str(tmp_path / "fresh"), write_corpus(tmp_path / "c.jsonl", corpus), encoder, settings)
    with fresh:
        expected = state_of(fresh)
    assert updated[0] == expected[0]
    np.testing.assert_array_equal(updated[1], expected[1])
    assert updated[2] == expected[2]
    for mode in ("exact", "hnsw"):
        with Index.open(str(place), encoder, settings.replace(index_search=mode)) as index:
            assert index.search(updated[1][:3], 1) == [[replace(p, score=1.0)] for p in updated[0][:3]]


def test_add_and_delete(place: Path, settings: Settings, encoder: HashingEncoder) -> None:
    with Index.open(str(place), encoder, settings) as index:
        before = state_of(index)
        report = index.add([document(30), document(3)])
        assert (report.added, report.unchanged, report.deleted) == (1, 1, 0)
        assert index.add([document(30)]).unchanged == 1
        assert index.delete(["doc0030", "nobody", "doc0030"]).deleted == 1
        after = state_of(index)
    assert after[0] == before[0]
    np.testing.assert_array_equal(after[1], before[1])
    assert after[2] == before[2]


def test_only_the_changed_words_of_a_title_make_another_version(
    place: Path, settings: Settings, encoder: HashingEncoder
) -> None:
    with Index.open(str(place), encoder, settings) as index:
        assert index.add([replace(document(3), title="Renamed")]).replaced == 1
        assert {p.title for p in index.passages("doc0003")} == {"Renamed"}


def test_two_documents_with_one_id(place: Path, settings: Settings, encoder: HashingEncoder) -> None:
    twice = [document(40), document(40), document(40, version=1)]
    with Index.open(str(place), encoder, settings) as index:
        with pytest.raises(CorpusError, match="two documents have the id 'doc0040'"):
            index.add(twice)
        Index.open(str(place), encoder, settings).close()
        with pytest.raises(CorpusError, match="two documents have the id 'doc0040'"):
            index.update([*documents(3), *twice])
        with pytest.raises(StoreError, match="half changed"):
            index.add(twice[:1])
        with pytest.raises(StoreError, match="half changed"):
            Index.open(str(place), encoder, settings)
        assert index.update([*documents(20), *twice[:1]]).unchanged == 20
    Index.open(str(place), encoder, settings).close()


def test_an_open_reader_keeps_what_it_has_read(place: Path, settings: Settings, encoder: HashingEncoder) -> None:
    with Index.open(str(place), encoder, settings) as reader, Index.open(str(place), encoder, settings) as writer:
        before = state_of(reader)
        writer.update(documents(10))
        after = state_of(reader)
        assert (after[0], after[2]) == (before[0], before[2])
        np.testing.assert_array_equal(after[1], before[1])
        assert len(list(writer.all_passages())) < len(before[0])


@pytest.mark.parametrize(
    "text",
    [
        "a\x00b",
        "a\u2028b\x85c\x1cd",
        "线粒体 TNF-α",
        "\u200b",
        "\U0001f9ec\ufeff",
        '"quoted" \\ {"json": 1}',
        " a\t\n b ",
    ],
    ids=ascii,
)
def test_any_text_comes_back_as_it_was(place: Path, settings: Settings, encoder: HashingEncoder, text: str) -> None:
    for mode in ("exact", "hnsw"):
        with Index.open(str(place), encoder, settings.replace(index_search=mode)) as index:
            index.add([Document(text, text, text, text)])
            assert index.passages(text) == [Passage(f"{text}#0", text, text, text, text)]
            assert {p.text for p in index.all_passages() if p.doc_id == text} == {text}


def test_build_counts_what_is_cut_and_what_cannot_be_read(
    tmp_path: Path, settings: Settings, encoder: HashingEncoder
) -> None:
    encoder.max_tokens = 8
    corpus = write_corpus(tmp_path / "c.jsonl", [Document("a", "A", "", "x " * 30), Document("b", "B", "", "short")])
    with corpus.open("a", encoding="utf-8") as stream:
        stream.write("{broken\n")
    notes, steps = ReadReport(), []
    index, report = Index.build(
        str(tmp_path / "index"), corpus, encoder, settings, lambda *step: steps.append(step), notes
    )
    index.close()
    assert (report.added, report.embedded, report.truncated) == (2, 2, 1)
    assert [p.number for p in notes.problems] == [3]
    assert steps == [(2, 2)]
