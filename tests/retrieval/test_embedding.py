import copy
import json
import os
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from medhop_dspy.errors import ArtefactError, InputError
from medhop_dspy.retrieval.embedding import Embedder
from medhop_dspy.settings import Settings

from .tiny_encoder import make_encoder

TEXTS = ["FBN1 lies on chromosome 15.", "x", "Marfan syndrome: aortic dilatation, 1 in 5000", "a" * 40, "FBN1?"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    make_encoder(home / "models" / "tiny")
    return home


@pytest.fixture(scope="module")
def embedder(home: Path) -> Embedder:
    return Embedder("tiny", home=home, device="cpu")


@pytest.fixture
def model(home: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(home / "models" / "tiny", tmp_path / "models" / "tiny"))


def test_vectors_are_unit_rows_in_order(embedder: Embedder) -> None:
    vectors = embedder.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), 32) == (len(TEXTS), embedder.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert not np.allclose(vectors[0], vectors[1])


def test_a_vector_does_not_depend_on_the_texts_beside_it(embedder: Embedder) -> None:
    together = embedder.embed(TEXTS)
    for text, vector in zip(TEXTS, together, strict=True):
        np.testing.assert_array_equal(embedder.embed([text])[0], vector)
    np.testing.assert_array_equal(embedder.embed(TEXTS[::-1])[::-1], together)


NAMES = [f"{letter * (1 + n % 5)} {n % 7}" for n, letter in enumerate("abcdefghijklmnopqrstuvwxyz" * 3)]


def test_names_in_batches_have_the_vectors_that_they_have_alone(embedder: Embedder) -> None:
    together = embedder.embed_names(NAMES)
    np.testing.assert_allclose(together, embedder.embed(NAMES), atol=1e-6)
    assert len({len(name) for name in NAMES}) > 1  # batches of several lengths, put back in order


def test_names_do_not_depend_on_the_names_beside_them(embedder: Embedder) -> None:
    together = embedder.embed_names(NAMES)
    np.testing.assert_array_equal(embedder.embed_names(NAMES[::-1])[::-1], together)
    for start in (0, 5, 40):
        np.testing.assert_array_equal(embedder.embed_names(NAMES[start : start + 3]), together[start : start + 3])


def test_names_longer_than_the_model_reads_are_cut(embedder: Embedder) -> None:
    long = ["ab " * 100, "ab " * 200]
    np.testing.assert_allclose(embedder.embed_names(long), embedder.embed(long), atol=1e-6)


def test_nothing_gives_no_rows(embedder: Embedder) -> None:
    assert embedder.embed([]).shape == (0, 32)
    assert embedder.embed_queries([]).shape == embedder.embed_names([]).shape == (0, 32)
    assert embedder.truncated([]) == 0


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        pytest.param("abc", "got the string 'abc'.*wanted a list", id="one string"),
        pytest.param([""], "text 0 .* is ''", id="empty"),
        pytest.param(["a", " \n\t"], "text 1 .* not blank", id="white space"),
        pytest.param(["a", None], "text 1 .* is None", id="none"),
        pytest.param([b"a"], "text 0 .* is b'a'", id="bytes"),
        pytest.param(["a\ud800"], "half of a surrogate pair", id="surrogate"),
    ],
)
def test_refuses(embedder: Embedder, texts: list[str], message: str) -> None:
    for method in (embedder.embed, embedder.embed_queries, embedder.truncated):
        with pytest.raises(InputError, match=message):
            method(texts)


@pytest.mark.parametrize("text", ["\u200b", "\U0001f9ec", "线粒体", "TNF-α", "\x00", "a" * 5000], ids=ascii)
def test_any_other_text_has_a_finite_vector(embedder: Embedder, text: str) -> None:
    assert np.isfinite(embedder.embed([text])).all()


@pytest.mark.parametrize(
    ("texts", "count"),
    [
        pytest.param(["a" * 62], 0, id="62 tokens and 2 special ones fit into 64"),
        pytest.param(["a" * 63], 1, id="63 do not"),
        pytest.param(["a" * 63, "b", "c " * 500], 2, id="two of three"),
    ],
)
def test_counts_texts_that_are_cut(embedder: Embedder, texts: list[str], count: int) -> None:
    assert embedder.max_tokens == 64
    assert embedder.truncated(texts) == count


def test_cut_texts_that_begin_alike_have_one_vector(embedder: Embedder) -> None:
    first, second = embedder.embed(["a" * 80 + "b", "a" * 80 + "c"])
    np.testing.assert_array_equal(first, second)
    assert embedder.truncated(["a" * 80 + "b", "a" * 80 + "c"]) == 2


def test_a_prompt_goes_before_documents_only_and_counts(home: Path) -> None:
    plain = Embedder("tiny", home=home, device="cpu")
    prompted = Embedder(str(make_encoder(home / "prompted", prompt="passage: ")), home=home, device="cpu")
    np.testing.assert_array_equal(prompted.embed(["a"]), plain.embed(["passage: a"]))
    np.testing.assert_array_equal(prompted.embed_queries(["a"]), plain.embed(["a"]))
    assert (plain.truncated(["a" * 60]), prompted.truncated(["a" * 60])) == (0, 1)
    assert prompted.digest == plain.digest
    assert prompted.revision != plain.revision


def test_identity(home: Path, embedder: Embedder) -> None:
    by_path = Embedder(str(home / "models" / "tiny"), home=Path("/nowhere"), device="cpu")
    other = Embedder(str(make_encoder(home / "other", seed=1)), home=home, device="cpu")
    for attribute in ("name", "revision", "digest", "dimension"):
        assert getattr(by_path, attribute) == getattr(embedder, attribute)
    assert (other.name, other.dimension, other.revision) == ("other", 32, embedder.revision)
    assert other.digest != embedder.digest


def test_settings_name_the_model(home: Path) -> None:
    settings = Settings.load("local", home=home, embedder="tiny")
    assert Embedder.from_settings(settings).name == "tiny"


def test_is_shared_by_copies(embedder: Embedder) -> None:
    assert copy.deepcopy({"retriever": [embedder]})["retriever"][0] is embedder


def test_threads_may_share_it(embedder: Embedder) -> None:
    texts = [f"gene {i} " * (i % 7 + 1) for i in range(24)]
    expected = embedder.embed(texts)
    with ThreadPoolExecutor(4) as pool:
        counts = [pool.submit(embedder.truncated, texts) for _ in range(8)]
        vectors = [pool.submit(embedder.embed, [text]) for text in texts]
        np.testing.assert_array_equal(np.concatenate([v.result() for v in vectors]), expected)
    assert len({c.result() for c in counts}) == 1


def test_other_threads_keep_their_number_of_threads(embedder: Embedder) -> None:
    import torch

    before = torch.get_num_threads()
    embedder.embed(TEXTS)
    with ThreadPoolExecutor(1) as pool:
        assert torch.get_num_threads() == before == pool.submit(torch.get_num_threads).result()


def _empty(file: str) -> Callable[[Path], None]:
    return lambda folder: (folder / file).write_bytes(b"")


def _remove(file: str) -> Callable[[Path], None]:
    return lambda folder: (folder / file).unlink()


def _cut(file: str, size: int) -> Callable[[Path], None]:
    return lambda folder: os.truncate(folder / file, size)


def _write(file: str, text: str) -> Callable[[Path], None]:
    return lambda folder: (folder / file).write_text(text, encoding="utf-8") and None


def _remove_tokenizers(folder: Path) -> None:
    for name in ("tokenizer.json", "vocab.txt"):
        (folder / name).unlink(missing_ok=True)


def _sharded_without_a_shard(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    shards = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}), encoding="utf-8")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        pytest.param(lambda f: shutil.rmtree(f), "there is no folder .*models/tiny", id="no folder"),
        pytest.param(lambda f: [shutil.rmtree(f), f.mkdir()], "modules.json is missing in model folder", id="no file"),
        pytest.param(_remove("modules.json"), "modules.json is missing", id="pooling would be guessed"),
        pytest.param(_remove("config.json"), "config.json is missing", id="no configuration"),
        pytest.param(_remove("1_Pooling/config.json"), "config.json is missing .*1_Pooling", id="no pooling"),
        pytest.param(_remove("model.safetensors"), "model.safetensors or .* is missing", id="no weights"),
        pytest.param(_empty("model.safetensors"), "model.safetensors .* is empty", id="empty weights"),
        pytest.param(_cut("model.safetensors", 5), "model.safetensors .* without a readable header", id="5 bytes"),
        pytest.param(_cut("model.safetensors", 9000), "model.safetensors .* damaged: 9,000 bytes", id="cut weights"),
        pytest.param(_sharded_without_a_shard, "model-00002-of-00002.safetensors is missing", id="shard missing"),
        pytest.param(_remove_tokenizers, "tokenizer.json or .* is missing", id="no tokenizer"),
        pytest.param(_write("modules.json", "[{"), "modules.json .* is not JSON", id="cut modules"),
        pytest.param(_write("modules.json", "{}"), "modules.json .* is no list of modules", id="other modules"),
        pytest.param(_write("config.json", "{}"), "cannot be loaded", id="unknown architecture"),
    ],
)
def test_an_incomplete_model_is_refused_at_the_start(model: Path, damage: Callable[[Path], None], message: str) -> None:
    damage(model)
    with pytest.raises(ArtefactError, match=message) as caught:
        Embedder("tiny", home=model.parents[1], device="cpu")
    assert caught.value.hint
    assert str(model) in str(caught.value)


def test_a_model_that_was_not_downloaded_is_not_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempts: list[tuple[str, object]] = []
    watching = [True]
    names = {"socket.connect", "socket.getaddrinfo"}
    sys.addaudithook(lambda event, args: attempts.append((event, args)) if watching and event in names else None)
    with pytest.raises(ArtefactError, match="no embedding model 'nobody/no-such-model'") as caught:
        Embedder("nobody/no-such-model", home=tmp_path)
    watching.clear()  # an audit hook stays for ever
    assert f"hf download nobody/no-such-model --local-dir {tmp_path}/models/nobody/no-such-model" in caught.value.hint
    assert attempts == []


@pytest.mark.parametrize("name", ["./missing", "~/missing-model", "/missing", "missing", "a/b/c", ""], ids=repr)
def test_names_of_nothing(tmp_path: Path, name: str) -> None:
    with pytest.raises(ArtefactError):
        Embedder(name, home=tmp_path)


def test_weights_that_give_nan_are_reported(model: Path) -> None:
    from safetensors.numpy import load_file, save_file

    weights = load_file(model / "model.safetensors")
    save_file({k: np.full_like(w, np.nan) for k, w in weights.items()}, model / "model.safetensors", {"format": "pt"})
    embedder = Embedder("tiny", home=model.parents[1], device="cpu")
    with pytest.raises(ArtefactError, match="gave no unit vector for 'abc'"):
        embedder.embed(["abc"])


def test_two_encoders_behind_a_router(home: Path, tmp_path: Path) -> None:
    """The layout of MedCPT: one encoder for queries, another for articles, first token as the vector."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Router, Transformer

    folders = [make_encoder(tmp_path / name, seed=seed) for seed, name in enumerate(("query", "article"))]
    parts = [[Transformer(str(f)), Pooling(32, pooling_mode="cls")] for f in folders]
    SentenceTransformer(modules=[Router.for_query_document(*parts)], device="cpu").save(str(tmp_path / "pair"))
    pair = Embedder(str(tmp_path / "pair"), home=home, device="cpu")
    assert pair.max_tokens == 128
    assert pair.truncated(["a " * 126, "a " * 127]) == 1
    query, article = pair.embed_queries(["FBN1"])[0], pair.embed(["FBN1"])[0]
    np.testing.assert_allclose([np.linalg.norm(query), np.linalg.norm(article)], 1, atol=1e-6)
    assert not np.allclose(query, article)


def test_real_model_reads_512_characters_of_english() -> None:
    settings = Settings.load("local")
    if not (settings.home / "models" / settings.embedder).is_dir():
        pytest.skip(f"no model {settings.embedder} in {settings.home}/models")
    embedder = Embedder.from_settings(settings)
    english = ("Marfan syndrome is caused by mutations of the FBN1 gene on chromosome 15. " * 8)[:512]
    assert embedder.truncated([english]) == 0
    assert embedder.truncated(["线粒体脑肌病" * 86, english]) == 1
    query = embedder.embed_queries(["Which gene is mutated in Marfan syndrome?"])[0]
    near, far = embedder.embed([english, "The museum opens at nine and closes at five."]) @ query
    assert near > far + 0.3
