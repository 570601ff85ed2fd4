import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from medhop_dspy.errors import SettingsError, StoreError
from medhop_dspy.retrieval.location import FolderLocation, ServerLocation, parse_location
from medhop_dspy.retrieval.manifest import (
    EncoderRecord,
    HnswParameters,
    Manifest,
    Recipe,
    check_chroma,
    check_recipe,
    corpus_digest,
)
from medhop_dspy.retrieval.metadata import Chunk, decode_metadata, encode_metadata, passage_of
from medhop_dspy.trace import Passage

ENCODER = EncoderRecord("MiniLM", "c0ffee", "53aa", 384)
RECIPE = Recipe(ENCODER, 512, 32, embed_title=True)
MANIFEST = Manifest("complete", "1.5.9", RECIPE, documents=2, chunks=7, corpus_digest="ab")


def test_json_round_trip() -> None:
    assert Manifest.from_json(MANIFEST.to_json(), "here") == MANIFEST


def _without(*path: str) -> Callable[[dict[str, Any]], None]:
    def remove(state: dict[str, Any]) -> None:
        for key in path[:-1]:
            state = state[key]
        del state[path[-1]]

    return remove


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(lambda s: s.update(format=2), "here has index format 2, wanted 1", id="later format"),
        pytest.param(lambda s: s.update(format="1"), "index format '1', wanted 1", id="text as format"),
        pytest.param(_without("format"), "manifest of here is damaged: 'format'", id="no format"),
        pytest.param(_without("chunks"), None, id="counts have defaults"),
        pytest.param(_without("recipe", "chunk_size"), "damaged: recipe.chunk_size", id="no chunk size"),
        pytest.param(_without("recipe", "encoder", "digest"), "damaged: recipe.encoder.digest", id="no model digest"),
        pytest.param(lambda s: s.update(state="done"), "damaged: state", id="unknown state"),
        pytest.param(lambda s: s.update(chunks="many"), "damaged: chunks", id="text as number"),
    ],
)
def test_a_changed_manifest(change: Callable[[dict[str, Any]], None], message: str | None) -> None:
    state = json.loads(MANIFEST.to_json())
    change(state)
    if message is None:
        assert Manifest.from_json(json.dumps(state), "here").chunks == 0
        return
    with pytest.raises(StoreError, match=message):
        Manifest.from_json(json.dumps(state), "here")


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b"3", b"\xff\xfe", b"null", b"[" * 200_000], ids=lambda text: text[:9]
)
def test_not_a_manifest(text: bytes) -> None:
    with pytest.raises(StoreError, match="manifest of here is damaged"):
        Manifest.from_json(text, "here")


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        pytest.param(replace(RECIPE, chunk_size=256), "chunk_size 512, wanted 256", id="chunk size"),
        pytest.param(replace(RECIPE, chunk_overlap=0), "chunk_overlap 32, wanted 0", id="overlap"),
        pytest.param(replace(RECIPE, embed_title=False), "embed_title True, wanted False", id="title"),
        pytest.param(
            replace(RECIPE, encoder=EncoderRecord("MedEmbed", "c0ffee", "99bb", 384)),
            r"vectors of MiniLM \(384-d, weights 53aa, .*wanted MedEmbed \(384-d, weights 99bb",
            id="other weights of the same dimension",
        ),
        pytest.param(
            replace(RECIPE, encoder=replace(ENCODER, revision="beef")),
            "configuration c0ffee.*wanted .*configuration beef",
            id="other prompt or pooling",
        ),
        pytest.param(
            replace(RECIPE, encoder=EncoderRecord("mpnet", "1", "2", 768)), "384-d.*wanted .*768-d", id="dimension"
        ),
        pytest.param(
            replace(RECIPE, chunk_size=64, embed_title=False),
            "chunk_size 512, wanted 64; embed_title True, wanted False",
            id="two differences",
        ),
        pytest.param(replace(RECIPE, hnsw=HnswParameters(ef_search=10)), "'ef_search': 800.*wanted .*10", id="hnsw"),
    ],
)
def test_a_recipe_that_does_not_fit(wanted: Recipe, message: str) -> None:
    with pytest.raises(StoreError, match=f"index here does not fit.*{message}") as caught:
        check_recipe(RECIPE, wanted, "here")
    assert "was not changed" in caught.value.hint


def test_the_name_of_the_same_model_may_differ() -> None:
    renamed = replace(RECIPE, encoder=replace(ENCODER, name="sentence-transformers/MiniLM"))
    check_recipe(RECIPE, renamed, "here")
    assert replace(MANIFEST, recipe=renamed).digest == MANIFEST.digest


@pytest.mark.parametrize(
    "other",
    [
        replace(MANIFEST, corpus_digest="cd"),
        replace(MANIFEST, recipe=replace(RECIPE, embed_title=False)),
        replace(MANIFEST, recipe=replace(RECIPE, encoder=replace(ENCODER, digest="0"))),
        replace(MANIFEST, recipe=replace(RECIPE, hnsw=HnswParameters(max_neighbors=8))),
    ],
    ids=["corpus", "title", "model", "hnsw"],
)
def test_digest_covers(other: Manifest) -> None:
    assert other.digest != MANIFEST.digest


@pytest.mark.parametrize(
    ("stored", "running", "fits"),
    [
        ("1.5.9", "1.5.9", True),
        ("1.5.9", "1.5.12", True),
        ("1.5.9", "1.6.0", False),
        ("0.4.24", "1.5.9", False),
        ("1.5.9", "15.9", False),
    ],
)
def test_chroma_series(stored: str, running: str, fits: bool) -> None:
    if fits:
        check_chroma(stored, running, "here")
        return
    with pytest.raises(StoreError, match=f"here was written by Chroma {stored}, this is Chroma {running}"):
        check_chroma(stored, running, "here")


def test_corpus_digest_is_of_a_set_of_pairs() -> None:
    pairs = [("a", "1"), ("b", "2")]
    assert corpus_digest(pairs) == corpus_digest(dict(reversed(pairs)))
    assert corpus_digest(pairs) != corpus_digest([("a", "2"), ("b", "1")])
    assert corpus_digest([("a1", "2")]) != corpus_digest([("a", "12")])


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("/data/index", FolderLocation(Path("/data/index"))),
        ("index", FolderLocation(Path.cwd() / "index")),
        ("http://127.0.0.1:9000/genes", ServerLocation("127.0.0.1", 9000, False, "genes")),
        ("http://localhost", ServerLocation("localhost", 8000, False, "medhop")),
        ("https://chroma.example/", ServerLocation("chroma.example", 443, True, "medhop")),
        ("http://[::1]:8000/genes/", ServerLocation("::1", 8000, False, "genes")),
    ],
)
def test_locations(text: str, location: FolderLocation | ServerLocation) -> None:
    assert parse_location(text) == location
    assert parse_location(str(location)) == location


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "location is empty"),
        ("  ", "location is empty"),
        ("ftp://host/x", "'ftp://host/x' cannot be used"),
        ("http://", "cannot be used"),
        ("http://host:port", "is no URL"),
        ("http://host:99999", "is no URL"),
        ("http://user:secret@host/genes", "cannot be used"),
        ("http://host/genes?x=1", "cannot be used"),
        ("http://host/ab", "names the collection 'ab'"),
        ("http://host/a/b", "names the collection 'a/b'"),
        ("http://host/-genes", "names the collection '-genes'"),
    ],
)
def test_refused_locations(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        parse_location(text)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(
            {"title": "FBN1", "section": None, "aliases": ["MFS1", "SGS"], "year": 1991, "is_list": True}, id="mixed"
        ),
        pytest.param({}, id="nothing"),
        pytest.param({"section": None}, id="only None"),
        pytest.param({"aliases": [], "text": "", "zero": 0, "no": False}, id="falsy values"),
        pytest.param({"nested": {"a": [1, None, "x"]}, "mixed": [1, "a", True]}, id="nested"),
        pytest.param({"doc_id": "d", "number": 0, "digest": "ab", "chunks": 3, "json": "own"}, id="reserved names"),
        pytest.param({"name": "Sjögren \u2028 线粒体 \x00"}, id="unicode"),
    ],
)
def test_metadata_round_trip_through_chroma(tmp_path: Path, values: dict[str, Any]) -> None:
    import chromadb

    with chromadb.PersistentClient(str(tmp_path)) as client:
        collection = client.create_collection("metadata", embedding_function=None)
        collection.upsert(["1"], embeddings=[[1.0, 0.0]], documents=["x"], metadatas=[encode_metadata(values)])
        stored = collection.get(["1"])["metadatas"]
    assert stored is not None
    read = decode_metadata(stored[0])
    assert read == {key: value for key, value in values.items() if value is not None}
    assert {key: type(value) for key, value in read.items()} == {key: type(values[key]) for key in read}


@pytest.mark.parametrize("doc_id", ["d", "a#b", "#", "x#1", "folder/päge.txt"])
def test_a_chunk_comes_back_as_its_passage(doc_id: str) -> None:
    passage = Passage(f"{doc_id}#12", doc_id, "Title", "https://x.example", "text")
    chunk = Chunk(passage, "digest", 13, ("alias", "another"))
    assert chunk.number == 12
    assert passage_of(passage.id, "text", chunk.metadata()) == passage
    assert decode_metadata(chunk.metadata())["aliases"] == ["alias", "another"]
